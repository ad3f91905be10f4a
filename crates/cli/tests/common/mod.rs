//! Runs the program and returns its exit code, both streams and the files it leaves.

#![allow(clippy::unwrap_used, reason = "a failed helper should fail the test")]
#![allow(dead_code, reason = "each test program uses some of the helpers")]

pub(crate) mod pack;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use petal_testkit::measure::run_measured_with;
use petal_testkit::model;
use petal_testkit::rng::Rng;
use petal_testkit::scratch::Scratch;
use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// The program under test, with nothing on standard input.
pub(crate) fn petal() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_petal"));
    command.stdin(Stdio::null());
    command
}

/// The memory of the process beyond the limit, in bytes: 16 MiB in a release. The code of a test build with all features
/// is larger.
pub(crate) const MEMORY_OVERHEAD: u64 = 20 << 20;

/// The result of a run.
#[derive(Debug)]
pub(crate) struct RunOutput {
    pub(crate) code: Option<i32>,
    pub(crate) out: Vec<u8>,
    pub(crate) err: String,
    /// Peak resident memory, in bytes.
    pub(crate) peak: u64,
}

impl RunOutput {
    /// Returns the output; fails unless the exit code is 0.
    #[track_caller]
    pub(crate) fn ok(self) -> Vec<u8> {
        assert_eq!(self.code, Some(0), "{}", self.err);
        self.out
    }

    /// Returns the output as text; fails unless the exit code is 0.
    #[track_caller]
    pub(crate) fn text(self) -> String {
        String::from_utf8(self.ok()).unwrap()
    }

    /// Returns the error line. Fails unless the exit code is 2, nothing was printed, and stderr has
    /// exactly one line, which begins with the program's name.
    #[track_caller]
    pub(crate) fn failure(self) -> String {
        assert_eq!(self.code, Some(2), "{} {}", self.err, String::from_utf8_lossy(&self.out));
        assert!(self.out.is_empty(), "{}", String::from_utf8_lossy(&self.out));
        let line = self.err.strip_suffix('\n').expect("a whole line");
        assert!(!line.contains('\n') && line.starts_with("petal: "), "{line}");
        assert!(!line.contains("os error"), "{line}");
        line.to_owned()
    }
}

/// Runs a command with these bytes on standard input.
pub(crate) fn run_with_input(command: Command, input: &[u8]) -> RunOutput {
    let output = run_measured_with(command, input.to_vec()).unwrap();
    RunOutput {
        code: output.output.status.code(),
        out: output.output.stdout,
        err: String::from_utf8_lossy(&output.output.stderr).into_owned(),
        peak: output.peak_rss,
    }
}

/// Runs the program with these arguments.
pub(crate) fn run<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> RunOutput {
    let mut command = petal();
    command.args(args);
    run_with_input(command, b"")
}

/// A directory for files, and one for temporary files.
pub(crate) struct TestDir {
    pub(crate) files: Scratch,
    temp: Scratch,
}

impl TestDir {
    pub(crate) fn new() -> Self {
        Self { files: Scratch::new(), temp: Scratch::new() }
    }

    fn set_directories(&self, command: &mut Command) {
        command.current_dir(self.files.path()).env("TMPDIR", self.temp.path());
    }

    /// Returns the directory for temporary files.
    pub(crate) fn temp(&self) -> &Path {
        self.temp.path()
    }

    /// Returns the path of a file as an argument.
    pub(crate) fn path(&self, name: &str) -> String {
        self.files.file(name).into_os_string().into_string().unwrap()
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        self.files.write(name, content);
        self.path(name)
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        self.files.read(name)
    }

    /// Returns a command that runs the program in the directory.
    pub(crate) fn petal(&self, args: &str) -> Command {
        let mut command = petal();
        self.set_directories(&mut command);
        command.args(args.split_whitespace());
        if args.contains("--resume") {
            // The keys of the job must come from its journal.
            command.env_remove("PETAL_TEST_SEED");
        }
        command
    }

    /// Runs the program in the directory, with arguments separated by spaces.
    pub(crate) fn run(&self, args: &str) -> RunOutput {
        self.run_with(args, b"")
    }

    /// Runs the program with these bytes on standard input.
    pub(crate) fn run_with(&self, args: &str, input: &[u8]) -> RunOutput {
        let output = run_with_input(self.petal(args), input);
        self.assert_no_temp_files();
        output
    }

    /// Runs a shell script in the directory; `$petal` is the program.
    pub(crate) fn sh(&self, script: &str) -> RunOutput {
        let output = run_with_input(self.shell(script), b"");
        self.assert_no_temp_files();
        output
    }

    pub(crate) fn shell(&self, script: &str) -> Command {
        let mut command = Command::new("bash");
        command.args(["-c", script]).stdin(Stdio::null());
        self.set_directories(&mut command);
        command.env("petal", env!("CARGO_BIN_EXE_petal"));
        command
    }

    /// Fails if there are temporary or unfinished files.
    #[track_caller]
    pub(crate) fn assert_no_temp_files(&self) {
        assert_eq!(self.temp.names(), [""; 0], "temporary files remain");
        let names = self.files.names();
        assert!(!names.iter().any(|name| name.ends_with(".tmp")), "{names:?}");
    }

    /// Creates a FIFO, and a thread that writes these bytes to it once.
    pub(crate) fn fifo(&self, name: &str, content: Vec<u8>) -> String {
        let path = self.files.file(name);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let argument = self.path(name);
        std::thread::spawn(move || {
            // The reader may close the FIFO early.
            File::options().write(true).open(path).and_then(|mut f| f.write_all(&content))
        });
        argument
    }
}

/// The set commands with an approximate mode.
pub(crate) const SET_COMMANDS: [&str; 3] = ["common", "diff", "dedup"];

/// All set commands that any number of inputs may follow.
pub(crate) const EXACT_COMMANDS: [&str; 7] =
    ["common", "common --at-least 1", "diff", "dedup", "dedup --keep last", "dedup -d", "dedup -u"];

/// The options for each exact strategy.
pub(crate) const STRATEGIES: [&str; 4] =
    ["", "--strategy memory", "--strategy narrow", "--strategy partition"];

/// Returns the expected output of a set command.
pub(crate) fn expected(command: &str, files: &[&[u8]], delimiter: u8) -> Vec<u8> {
    match command {
        "common" => model::common(files[0], &files[1..], delimiter),
        "common --at-least 1" => model::at_least(1, files[0], &files[1..], delimiter),
        "diff" => model::diff(files[0], &files[1..], delimiter),
        "dedup --keep last" => model::dedup_last(files, delimiter),
        "dedup -d" => model::duplicates(files, delimiter),
        "dedup -u" => model::unique(files, delimiter),
        _ => model::dedup(files, delimiter),
    }
}

/// Notes a record that a set command prints for its key, unless it prints another one.
pub(crate) fn note_record<R>(
    command: &str,
    printed: &mut HashMap<String, R>,
    key: String,
    record: R,
) {
    if command.ends_with("--keep last") {
        printed.insert(key, record);
    } else {
        printed.entry(key).or_insert(record);
    }
}

/// Writes a line for each number.
pub(crate) fn write_lines(path: &Path, numbers: impl IntoIterator<Item = u64>) {
    let mut out = BufWriter::with_capacity(1 << 16, File::create(path).unwrap());
    for number in numbers {
        writeln!(out, "https://example.org/{:08x}/{number}", number.wrapping_mul(0x9e37_79b9))
            .unwrap();
    }
    out.flush().unwrap();
}

/// Returns the numbers of two files of `lines` lines that share `percent` of them: shuffled, with
/// a few repeats.
pub(crate) fn overlapping(lines: u64, percent: u64, seed: u64) -> [Vec<u64>; 2] {
    let mut rng = Rng::new(seed);
    let shared = lines * percent / 100;
    [1u64, 2].map(|side| {
        let own = (shared..lines).map(|at| side << 40 | at);
        let mut numbers: Vec<_> = (0..shared).chain(own).collect();
        rng.shuffle(&mut numbers);
        for _ in 0..lines / 50 {
            let (from, to) = (rng.below(numbers.len()), rng.below(numbers.len()));
            let again = numbers[from];
            numbers.insert(numbers.len() - to % 1000, again);
        }
        numbers
    })
}

/// Prints why a test was skipped; libtest would capture `eprintln!`.
pub(crate) fn skipped(test: &str, why: &str) {
    let _ = writeln!(io::stderr(), "note: skipped: {test}: {why}");
}

/// Waits for a child; kills it and fails after `seconds`.
#[track_caller]
pub(crate) fn wait(child: &mut Child, seconds: u64) -> std::process::ExitStatus {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(seconds);
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if std::time::Instant::now() > end {
            let _ = child.kill();
            panic!("still running after {seconds} s");
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// Returns both ends of a terminal: that of the user, and that of a program.
pub(crate) fn terminal() -> (File, OwnedFd) {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let stdin = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, 0.into()).unwrap();
    (File::from(terminal), stdin)
}

/// Returns the inode and the content, which are equal if the file was not changed.
pub(crate) fn inode_and_content(path: &Path) -> (u64, Vec<u8>) {
    use std::os::unix::fs::MetadataExt as _;
    (fs::metadata(path).unwrap().ino(), fs::read(path).unwrap())
}

/// Returns a path with any bytes in its name.
pub(crate) fn odd_path(folder: &Path, name: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt as _;
    folder.join(OsStr::from_bytes(name))
}
