//! A command that is printed, run, and must succeed.

use std::cell::Cell;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The result of a command; the error is a sentence.
pub(crate) type Result<T = ()> = std::result::Result<T, String>;

/// Returns the root of the repository.
pub(crate) fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask).to_path_buf()
}

/// Returns the folder of cargo's output.
pub(crate) fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Returns the triple of this machine.
pub(crate) fn host() -> Result<String> {
    let version = Step::program("rustc".as_ref(), &["-vV"]).output();
    let line =
        version.as_deref().and_then(|text| text.lines().find_map(|l| l.strip_prefix("host: ")));
    line.map(str::to_owned).ok_or_else(|| "`rustc -vV` names no host".to_owned())
}

thread_local! {
    /// Whether this thread prints the output of a step when the step has ended.
    static OUTPUT_AT_END: Cell<bool> = const { Cell::new(false) };
}

/// Runs a function; the output of each step that this thread runs in it is printed when the step has ended.
pub(crate) fn with_output_at_end<T>(run: impl FnOnce() -> T) -> T {
    OUTPUT_AT_END.set(true);
    let result = run();
    OUTPUT_AT_END.set(false);
    result
}

/// The seconds of each step that has ended, and its command.
static TIMES: Mutex<Vec<(f64, String)>> = Mutex::new(vec![]);

/// Prints the steps of this process that took more than ten seconds, in the order in which they ended.
pub(crate) fn print_times() {
    println!("\nsteps:");
    for (seconds, step) in TIMES.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        if *seconds > 10.0 {
            println!("{seconds:8.0} s  {step}");
        }
    }
    if let Some(seconds) = processor_seconds() {
        println!("{seconds:8.0} s of processor time in all");
    }
}

/// Returns the processor time of all processes that this one has waited for; `None` where Linux's `/proc` is missing.
fn processor_seconds() -> Option<u64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program, in parentheses, may contain spaces.
    let fields = stat.rsplit(')').next()?.split_whitespace();
    let ticks: Vec<u64> = fields.skip(13).take(2).filter_map(|field| field.parse().ok()).collect();
    Some(ticks.iter().sum::<u64>() / 100)
}

/// A command, run in the root of the repository.
pub(crate) struct Step {
    command: Command,
    shown: String,
}

impl Step {
    /// A cargo command, with the toolchain of this process.
    pub(crate) fn cargo(args: &[&str]) -> Self {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        Self::new(&cargo, "cargo", args)
    }

    /// A cargo command on the nightly toolchain, through rustup.
    pub(crate) fn nightly(args: &[&str]) -> Self {
        let args = [&["+nightly"], args].concat();
        let mut step = Self::new("cargo".as_ref(), "cargo", &args);
        // These variables of the outer cargo would select the wrong toolchain.
        for name in ["CARGO", "RUSTUP_TOOLCHAIN", "RUSTC", "RUSTDOC"] {
            step.command.env_remove(name);
        }
        step
    }

    /// A script of the repository, by its path from the root.
    pub(crate) fn script(path: &str, args: &[&str]) -> Self {
        Self::new(root().join(path).as_ref(), path, args)
    }

    /// Any program.
    pub(crate) fn program(path: &Path, args: &[&str]) -> Self {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
        Self::new(path.as_os_str(), &name, args)
    }

    fn new(program: &OsStr, name: &str, args: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(args).current_dir(root()).stdin(Stdio::null());
        // These describe xtask. Crates that read them when they are built would be built again each time that
        // another program, such as maturin, runs cargo without them.
        for (variable, _) in std::env::vars_os() {
            let text = variable.to_string_lossy();
            if text.starts_with("CARGO_MANIFEST_") || text.starts_with("CARGO_PKG_") {
                command.env_remove(&variable);
            }
        }
        Self { command, shown: format!("{name} {}", args.join(" ")) }
    }

    /// Runs the command in a folder, by its path from the root.
    pub(crate) fn in_folder(mut self, folder: &str) -> Self {
        self.command.current_dir(root().join(folder));
        self.shown = format!("cd {folder}; {}", self.shown);
        self
    }

    /// Adds an environment variable.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self.shown = format!("{name}={value:?} {}", self.shown);
        self
    }

    /// Puts a folder in front of `PATH`, and of the folders of earlier calls.
    pub(crate) fn with_path(mut self, folder: &Path) -> Self {
        let set = self.command.get_envs().find(|(name, _)| *name == "PATH");
        let old = set.and_then(|(_, path)| path.map(OsStr::to_os_string));
        let old = old.or_else(|| std::env::var_os("PATH")).unwrap_or_default();
        let folders = [folder.to_path_buf()].into_iter().chain(std::env::split_paths(&old));
        if let Ok(path) = std::env::join_paths(folders) {
            self.command.env("PATH", path);
        }
        self
    }

    /// Runs the step.
    pub(crate) fn run(mut self) -> Result {
        let start = Instant::now();
        let (status, failed_tests) = if OUTPUT_AT_END.get() {
            self.status_with_output_at_end()?
        } else {
            eprintln!("\n==> {}", self.shown);
            (self.status()?, vec![])
        };
        self.ended(start, status, &failed_tests)
    }

    /// Keeps the time of the step for [`print_times`].
    fn ended(self, start: Instant, status: ExitStatus, failed_tests: &[String]) -> Result {
        let mut failed = format!("`{}` failed ({status})", self.shown);
        for test in failed_tests {
            failed += &format!("\n    {test}");
        }
        let time = (start.elapsed().as_secs_f64(), self.shown);
        TIMES.lock().unwrap_or_else(PoisonError::into_inner).push(time);
        if status.success() { Ok(()) } else { Err(failed) }
    }

    fn status(&mut self) -> Result<ExitStatus> {
        self.command.status().map_err(|e| format!("cannot start `{}`: {e}", self.shown))
    }

    /// Runs the command with its output in a file, and prints the file. A pipe would stay open as long as any server
    /// that the command has started. Returns the failed tests, too.
    fn status_with_output_at_end(&mut self) -> Result<(ExitStatus, Vec<String>)> {
        static STARTED: AtomicUsize = AtomicUsize::new(0);
        let name = [std::process::id() as usize, STARTED.fetch_add(1, Ordering::Relaxed)];
        let path = std::env::temp_dir().join(format!("petal-step-{}-{}.txt", name[0], name[1]));
        let failed = |e: io::Error| format!("{}: {e}", path.display());
        let file = File::create(&path).map_err(failed)?;
        eprintln!("\n==> started: {} (output in {} until it ends)", self.shown, path.display());
        self.command.stdout(file.try_clone().map_err(failed)?).stderr(file);
        let status = self.status();
        let mut text = format!("\n==> {}\n", self.shown).into_bytes();
        text.extend(fs::read(&path).map_err(failed)?);
        fs::remove_file(&path).map_err(failed)?;
        let _ = io::stderr().write_all(&text);
        let text = String::from_utf8_lossy(&text);
        Ok((status?, text.lines().filter_map(failed_test).map(str::to_owned).collect()))
    }

    /// Runs the step, prints its standard output and passes each line to `on_line`.
    pub(crate) fn run_with_lines(mut self, mut on_line: impl FnMut(&str)) -> Result {
        eprintln!("\n==> {}", self.shown);
        let start = Instant::now();
        let mut failed_tests = vec![];
        let mut child = self
            .command
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("cannot start `{}`: {e}", self.shown))?;
        if let Some(stdout) = child.stdout.take() {
            for line in BufReader::new(stdout).split(b'\n').map_while(|line| line.ok()) {
                let line = String::from_utf8_lossy(&line);
                println!("{line}");
                on_line(&line);
                failed_tests.extend(failed_test(&line).map(str::to_owned));
            }
        }
        let status = child.wait().map_err(|e| format!("lost `{}`: {e}", self.shown))?;
        self.ended(start, status, &failed_tests)
    }

    /// Runs the step without output and returns its standard output. `None` if it fails.
    pub(crate) fn output(mut self) -> Option<String> {
        let output = self.command.stderr(Stdio::null()).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then_some(text)
    }
}

/// Returns the test that a line of libtest or pytest says has failed.
fn failed_test(line: &str) -> Option<&str> {
    let of_libtest = || line.strip_prefix("test ")?.split_once(" ... FAILED").map(|(name, _)| name);
    line.strip_prefix("FAILED ").or_else(of_libtest)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Step, failed_test, with_output_at_end};

    #[test]
    fn commands_do_not_get_the_variables_of_xtask() {
        let output = Step::program(Path::new("/usr/bin/env"), &[]).command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("PATH=") && !text.contains("\nCARGO_PKG_NAME="), "{text}");
        assert!(!text.contains("\nCARGO_MANIFEST_DIR="), "{text}");
    }

    #[test]
    fn failed_tests_are_found_in_the_output() {
        assert_eq!(failed_test("test a::b ... FAILED <1.2s>"), Some("a::b"));
        assert_eq!(failed_test("test a::b ... ok <1.2s>"), None);
        assert_eq!(
            failed_test("FAILED tests/test_a.py::test_b - assert 1 == 2"),
            Some("tests/test_a.py::test_b - assert 1 == 2")
        );
        assert_eq!(failed_test("test result: FAILED. 1 passed"), None);
    }

    #[test]
    fn failures_are_returned_with_and_without_output_at_end() {
        let [works, fails] = ["true", "false"].map(Path::new);
        assert!(Step::program(works, &[]).run().is_ok());
        assert!(Step::program(fails, &[]).run().is_err());
        with_output_at_end(|| {
            assert!(Step::program(works, &[]).run().is_ok());
            assert!(Step::program(fails, &[]).run().is_err());
        });
    }
}
