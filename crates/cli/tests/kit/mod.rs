//! Runs the real program and looks at everything it leaves: exit code, both streams, files.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]
#![allow(dead_code, reason = "each test program uses its part of the kit")]

pub(crate) mod pack;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use petal_testkit::measure::run_measured_with;
use petal_testkit::model;
use petal_testkit::rng::Rng;
use petal_testkit::scratch::Scratch;

/// The program under test, with nothing on standard input.
pub(crate) fn petal() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_petal"));
    command.stdin(Stdio::null());
    command
}

/// What a run left.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: Vec<u8>,
    pub(crate) err: String,
    /// Peak resident memory, in bytes.
    pub(crate) peak: u64,
}

impl Ran {
    /// The output of a run that must have gone well.
    #[track_caller]
    pub(crate) fn ok(self) -> Vec<u8> {
        assert_eq!(self.code, Some(0), "{}", self.err);
        self.out
    }

    /// The output as text of a run that must have gone well.
    #[track_caller]
    pub(crate) fn text(self) -> String {
        String::from_utf8(self.ok()).unwrap()
    }

    /// The one line on stderr of a run that must have ended in trouble: exit code 2, nothing
    /// printed, and exactly one line, which begins with the program's name.
    #[track_caller]
    pub(crate) fn trouble(self) -> String {
        assert_eq!(self.code, Some(2), "{} {}", self.err, String::from_utf8_lossy(&self.out));
        assert!(self.out.is_empty(), "{}", String::from_utf8_lossy(&self.out));
        let line = self.err.strip_suffix('\n').expect("a whole line");
        assert!(!line.contains('\n') && line.starts_with("petal: "), "{line}");
        assert!(!line.contains("os error"), "{line}");
        line.to_owned()
    }
}

/// Runs a command with these bytes on standard input.
pub(crate) fn ran_with(command: Command, input: &[u8]) -> Ran {
    let ran = run_measured_with(command, input.to_vec()).unwrap();
    Ran {
        code: ran.output.status.code(),
        out: ran.output.stdout,
        err: String::from_utf8_lossy(&ran.output.stderr).into_owned(),
        peak: ran.peak_rss,
    }
}

/// Runs the program with these words.
pub(crate) fn run<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>) -> Ran {
    let mut command = petal();
    command.args(words);
    ran_with(command, b"")
}

/// A folder for files, and in it one for temporary data.
pub(crate) struct Place {
    pub(crate) files: Scratch,
    temp: Scratch,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { files: Scratch::new(), temp: Scratch::new() }
    }

    fn settle(&self, command: &mut Command) {
        command.current_dir(self.files.path()).env("TMPDIR", self.temp.path());
    }

    /// The folder for temporary data.
    pub(crate) fn temp(&self) -> &Path {
        self.temp.path()
    }

    /// The path of a file, as a word.
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

    /// The program, working in the folder, with temporary data in the other one.
    pub(crate) fn petal(&self, words: &str) -> Command {
        let mut command = petal();
        self.settle(&mut command);
        command.args(words.split_whitespace());
        command
    }

    /// Runs the program in the folder, with words set apart by blanks.
    pub(crate) fn run(&self, words: &str) -> Ran {
        self.run_with(words, b"")
    }

    /// The same, with these bytes on standard input.
    pub(crate) fn run_with(&self, words: &str, input: &[u8]) -> Ran {
        let ran = ran_with(self.petal(words), input);
        self.nothing_left();
        ran
    }

    /// A shell script in the folder; `$petal` is the program.
    pub(crate) fn sh(&self, script: &str) -> Ran {
        let ran = ran_with(self.shell(script), b"");
        self.nothing_left();
        ran
    }

    pub(crate) fn shell(&self, script: &str) -> Command {
        let mut command = Command::new("bash");
        command.args(["-c", script]).stdin(Stdio::null());
        self.settle(&mut command);
        command.env("petal", env!("CARGO_BIN_EXE_petal"));
        command
    }

    /// No temporary data, and nothing half written beside the files.
    #[track_caller]
    pub(crate) fn nothing_left(&self) {
        assert_eq!(self.temp.names(), [""; 0], "left in the folder for temporary data");
        let names = self.files.names();
        assert!(!names.iter().any(|name| name.ends_with(".tmp")), "{names:?}");
    }

    /// Makes a FIFO, and a thread that writes these bytes into it once.
    pub(crate) fn fifo(&self, name: &str, content: Vec<u8>) -> String {
        let path = self.files.file(name);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let word = self.path(name);
        std::thread::spawn(move || {
            // A reader that goes away early is that reader's business.
            File::options().write(true).open(path).and_then(|mut f| f.write_all(&content))
        });
        word
    }
}

/// The verbs of sets, as words and as models.
pub(crate) const VERBS: [&str; 3] = ["common", "diff", "dedup"];

/// Every way to do a set verb exactly.
pub(crate) const STRATEGIES: [&str; 4] =
    ["", "--strategy memory", "--strategy narrow", "--strategy partition"];

/// What a verb has to print.
pub(crate) fn expected(verb: &str, files: &[&[u8]], delimiter: u8) -> Vec<u8> {
    match verb {
        "common" => model::common(files[0], &files[1..], delimiter),
        "diff" => model::diff(files[0], &files[1..], delimiter),
        _ => model::dedup(files, delimiter),
    }
}

/// Writes so many lines, each by its number, without holding them.
pub(crate) fn write_lines(path: &Path, numbers: impl IntoIterator<Item = u64>) {
    let mut out = BufWriter::with_capacity(1 << 16, File::create(path).unwrap());
    for number in numbers {
        writeln!(out, "https://example.org/{:08x}/{number}", number.wrapping_mul(0x9e37_79b9))
            .unwrap();
    }
    out.flush().unwrap();
}

/// Numbers for two files of `lines` lines that share `percent` of them, out of order, with a
/// few repeats.
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

/// Says why a test did not run; not through libtest, which would swallow it.
pub(crate) fn skipped(test: &str, why: &str) {
    let _ = writeln!(io::stderr(), "note: skipped: {test}: {why}");
}

/// Waits for a child for so long, then kills it and gives up.
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

/// Inode and content: two looks are equal if nobody touched the file.
pub(crate) fn look(path: &Path) -> (u64, Vec<u8>) {
    use std::os::unix::fs::MetadataExt as _;
    (fs::metadata(path).unwrap().ino(), fs::read(path).unwrap())
}

/// A path that is not UTF-8 or odd in another way, below a folder.
pub(crate) fn odd_path(folder: &Path, name: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt as _;
    folder.join(OsStr::from_bytes(name))
}
