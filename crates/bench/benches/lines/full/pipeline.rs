//! A job: the generator writes to a pipe, petal reads from it.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use petal_bench::corpus::URL_BYTES;
use petal_bench::rivals::error_line;
use petal_testkit::measure::run_measured_redirected;

const FULL_LINES: u64 = 5_000_000_000;
const FULL_KIB: u64 = 4 << 20;

/// The reader of the pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// `cat`: the speed of the generator.
    Generator,
    Build,
    Check,
}

impl Step {
    pub(crate) const ALL: [Self; 3] = [Self::Generator, Self::Build, Self::Check];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Generator => "generator",
            Self::Build => "build",
            Self::Check => "check",
        }
    }
}

/// One run of a step; the figures are those of the reader.
pub(crate) struct Trial {
    pub(crate) step: Step,
    pub(crate) round: usize,
    pub(crate) wall: f64,
    pub(crate) user: f64,
    pub(crate) system: f64,
    pub(crate) peak: u64,
    /// The number of hits of the check and the rate that the filter estimated; zero for other steps.
    pub(crate) count: u64,
    pub(crate) rate: f64,
    pub(crate) command: String,
}

/// A number of lines and the memory of their filter.
pub(crate) struct Job {
    pub(crate) scale: u64,
    pub(crate) lines: u64,
    pub(crate) memory: u64,
    petal: PathBuf,
    folder: PathBuf,
}

impl Job {
    /// The full job divided by `scale`, with memory rounded up to KiB.
    pub(crate) fn new(scale: u64, petal: PathBuf, folder: PathBuf) -> Result<Self, String> {
        let lines = FULL_LINES / scale;
        if lines == 0 {
            return Err("this scale has no lines".into());
        }
        Ok(Self { scale, lines, memory: FULL_KIB.div_ceil(scale) << 10, petal, folder })
    }

    /// Returns the length of a line, LF included.
    pub(crate) fn line_bytes(&self) -> usize {
        URL_BYTES + 1
    }

    /// Returns lines per second.
    pub(crate) fn speed(&self, trial: &Trial) -> f64 {
        self.lines as f64 / trial.wall
    }

    pub(crate) fn run(&self, step: Step, round: usize) -> Result<Trial, String> {
        let Self { lines, memory, .. } = self;
        let (side, reader) = match step {
            Step::Generator => ("a", "cat".to_owned()),
            Step::Build => {
                ("a", format!("petal build -n {lines} -m {}K -o f.petal -", memory >> 10))
            }
            Step::Check => ("b", "petal check -c f.petal -".to_owned()),
        };
        let writer = format!("urls --count {lines} --common 0 --side {side} --order plain");
        let command = format!("{writer} | {reader}");
        let failed = |e| format!("{command}: {e}");

        let answer = self.folder.join("count.txt");
        let output = match step {
            Step::Generator => Stdio::null(),
            _ => File::create(&answer).map_err(|e| failed(e.to_string()))?.into(),
        };
        let mut urls = self
            .command(&writer)
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| failed(e.to_string()))?;
        let pipe = urls.stdout.take().map_or_else(Stdio::null, Stdio::from);
        let measured = run_measured_redirected(self.command(&reader), pipe, output);
        let wrote = urls.wait().map_err(|e| failed(e.to_string()))?;
        let measured = measured.map_err(|e| failed(e.to_string()))?;
        if !wrote.success() || !measured.output.status.success() {
            return Err(failed(error_line(&measured.output.stderr)));
        }
        let (count, rate) = match step {
            Step::Check => (self.counted().map_err(failed)?, self.predicted_rate()?),
            _ => (0, 0.0),
        };
        Ok(Trial {
            step,
            round,
            wall: measured.wall.as_secs_f64(),
            user: measured.user.as_secs_f64(),
            system: measured.system.as_secs_f64(),
            peak: measured.peak_rss,
            count,
            rate,
            command,
        })
    }

    /// A command as typed in the folder of the job.
    fn command(&self, line: &str) -> Command {
        let mut parts = line.split_whitespace();
        let mut command = match parts.next() {
            Some("petal") => Command::new(&self.petal),
            Some("urls") => Command::new(env!("CARGO_BIN_EXE_urls")),
            other => Command::new(other.unwrap_or_default()),
        };
        command.args(parts).current_dir(&self.folder);
        command
    }

    fn counted(&self) -> Result<u64, String> {
        let text = fs::read_to_string(self.folder.join("count.txt")).map_err(|e| e.to_string())?;
        text.trim().parse().map_err(|_| format!("not a count: {text}"))
    }

    /// Returns the rate that the filter estimates from its bits.
    fn predicted_rate(&self) -> Result<f64, String> {
        let output =
            self.command("petal info --json f.petal").output().map_err(|e| e.to_string())?;
        let info: Option<serde_json::Value> = serde_json::from_slice(&output.stdout).ok();
        let rate = info.as_ref().and_then(|info| info["estimated_fpr"].as_f64());
        rate.ok_or_else(|| format!("petal info has no rate: {}", error_line(&output.stderr)))
    }

    /// Removes the folder of the job; the filter of the full job is large.
    pub(crate) fn tidy(&self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
