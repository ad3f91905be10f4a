//! The JSON report of a job, as `--report` writes it: read and checked.
//!
//! Invariant: all numbers of a [`JobReport`] are finite and small enough for a chart.

use std::io::Read;

use serde::Deserialize;
use serde_json::Value;

/// The largest report that is read, in bytes.
const MAX_BYTES: u64 = 16 << 20;
/// The largest number of phases, of samples, and of inputs.
const MAX_ITEMS: usize = 10_000;
/// The largest number of bytes or lines, and of seconds.
const MAX_NUMBER: u64 = 1 << 60;
const MAX_SECONDS: f64 = 1e10;

/// The report of a job.
#[derive(Debug, Deserialize)]
pub(crate) struct JobReport {
    pub(super) command: String,
    pub(super) inputs: Vec<String>,
    pub(super) strategy: String,
    pub(super) kept: u64,
    pub(super) first_lines: u64,
    pub(super) passes: u64,
    pub(super) bytes_read: u64,
    pub(super) spilled: u64,
    pub(super) candidates: u64,
    pub(super) false_found: Option<u64>,
    pub(super) false_promised: Option<f64>,
    pub(super) records: u64,
    pub(super) wrong: Option<f64>,
    pub(super) wrong_error: Option<f64>,
    pub(super) repeats_possible: bool,
    pub(super) resumed: u64,
    pub(super) seconds: f64,
    pub(super) phases: Vec<PhaseReport>,
    pub(super) memory_limit_bytes: u64,
    pub(super) memory_peak_bytes: u64,
    pub(super) disk_peak_bytes: u64,
    pub(super) jobs: u64,
    pub(super) samples: Vec<Sample>,
}

/// A phase of a job.
#[derive(Debug, Deserialize)]
pub(crate) struct PhaseReport {
    pub(super) what: String,
    /// Seconds after the start of the run; `None` for a phase of an earlier run.
    pub(super) start: Option<f64>,
    pub(super) seconds: f64,
    pub(super) bytes: u64,
    pub(super) lines: u64,
    pub(super) survivors: Option<u64>,
}

/// Seconds after the start of the run, bytes of memory, bytes on temporary disk.
pub(super) type Sample = (f64, u64, u64);

impl JobReport {
    /// The version of reports that this program writes and reads. Increased when a field changes its
    /// meaning; new fields do not change it.
    pub(crate) const VERSION: u64 = 2;

    /// Reads a report. The error says what is wrong, without the name of the file.
    pub(crate) fn read(from: impl Read) -> Result<Self, String> {
        let mut bytes = Vec::new();
        let read = from.take(MAX_BYTES + 1).read_to_end(&mut bytes);
        read.map_err(|error| format!("cannot read: {}", crate::error::io_text(&error)))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(invalid(&format!("larger than {}", crate::text::size(MAX_BYTES))));
        }
        let value: Value =
            serde_json::from_slice(&bytes).map_err(|error| invalid(&error.to_string()))?;
        Self::of_value(value)
    }

    fn of_value(value: Value) -> Result<Self, String> {
        match (value.get("version"), value.get("strategy")) {
            (None, Some(_)) => {
                return Err(format!(
                    "a report of an older version of petal, without the numbers that a page needs; {}",
                    "run the job again with --report"
                ));
            }
            (None, None) => return Err(invalid("has no field 'version'")),
            (Some(version), _) if version.as_u64() != Some(Self::VERSION) => {
                return Err(format!(
                    "a report of version {}, expected {}; use the petal that wrote it",
                    shortened(&version.to_string()),
                    Self::VERSION,
                ));
            }
            _ => {}
        }
        let report: Self = serde_json::from_value(value)
            .map_err(|error| invalid(&shortened(&error.to_string())))?;
        report.check()?;
        Ok(report)
    }

    /// Checks all numbers.
    fn check(&self) -> Result<(), String> {
        let too_large = |field: &str| Err(invalid(&format!("{field} is out of range")));
        for (field, items) in [
            ("phases", self.phases.len()),
            ("samples", self.samples.len()),
            ("inputs", self.inputs.len()),
        ] {
            if items > MAX_ITEMS {
                return Err(invalid(&format!("{field} has more than {MAX_ITEMS} items")));
            }
        }
        let bounded = |number: u64| number <= MAX_NUMBER;
        let time = |seconds: f64| (0.0..=MAX_SECONDS).contains(&seconds);
        for (field, number) in [
            ("kept", self.kept),
            ("first_lines", self.first_lines),
            ("passes", self.passes),
            ("bytes_read", self.bytes_read),
            ("spilled", self.spilled),
            ("candidates", self.candidates),
            ("false_found", self.false_found.unwrap_or(0)),
            ("records", self.records),
            ("resumed", self.resumed),
            ("memory_limit_bytes", self.memory_limit_bytes),
            ("memory_peak_bytes", self.memory_peak_bytes),
            ("disk_peak_bytes", self.disk_peak_bytes),
            ("jobs", self.jobs),
        ] {
            if !bounded(number) {
                return too_large(field);
            }
        }
        if !time(self.seconds) {
            return too_large("seconds");
        }
        let phase = |phase: &PhaseReport| {
            let PhaseReport { start, seconds, bytes, lines, survivors, .. } = phase;
            time(*seconds)
                && time(start.unwrap_or(0.0))
                && [*bytes, *lines, survivors.unwrap_or(0)].into_iter().all(bounded)
        };
        if !self.phases.iter().all(phase) {
            return too_large("a number of 'phases'");
        }
        let sample =
            |&(seconds, memory, disk): &Sample| time(seconds) && bounded(memory) && bounded(disk);
        if !self.samples.iter().all(sample) {
            return too_large("a number of 'samples'");
        }
        Ok(())
    }
}

fn invalid(problem: &str) -> String {
    format!("not a valid report: {problem}; make one with `petal common A B --report FILE`")
}

/// Returns the start of a text from a file, without control characters.
fn shortened(text: &str) -> String {
    const MOST: usize = 200;
    let mut short: String = text.chars().map(super::escape::visible).take(MOST).collect();
    if text.chars().count() > MOST {
        short.push('…');
    }
    short
}
