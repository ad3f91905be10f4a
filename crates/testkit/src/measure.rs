//! Runs a child process and measures its time and peak memory.
//!
//! `wait4` returns a child's peak resident memory (`ru_maxrss`), including mapped pages of files, as shown by
//! `/usr/bin/time -v`. On Linux a process keeps this maximum across `exec`, so a child starts with the peak of its
//! parent: after a test program used 200 MiB, every small child would report 200 MiB. The child's own `VmHWM`, which
//! is reset at `exec`, is therefore sampled too: see [`Measured`].

use std::fs;
use std::io::{self, Read, Write};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The output and the resource usage of a child process.
#[derive(Debug)]
pub struct Measured {
    /// Exit status, standard output and standard error.
    pub output: Output,
    /// Peak resident memory in bytes. Exact if [`Measured::peak_is_exact`], otherwise the largest sample of the
    /// child's high-water mark (every millisecond at first).
    pub peak_rss: u64,
    /// Whether `peak_rss` is the final value of the operating system.
    pub peak_is_exact: bool,
    /// Elapsed time.
    pub wall: Duration,
    /// Processor time in user mode, including all threads and waited-for children.
    pub user: Duration,
    /// Processor time in the kernel, including all threads and waited-for children.
    pub system: Duration,
}

/// Runs a command with empty standard input and measures it.
///
/// # Errors
/// If the command cannot be started or waited for.
pub fn run_measured(command: Command) -> io::Result<Measured> {
    run_measured_with(command, Vec::new())
}

/// Runs a command with these bytes on standard input and measures it. It is no error if the child stops reading
/// early.
///
/// # Errors
/// If the command cannot be started or waited for.
pub fn run_measured_with(mut command: Command, input: Vec<u8>) -> io::Result<Measured> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    run(command, input)
}

/// Runs a command with the given standard input and output and measures it. The child accesses its files or pipes
/// directly; only standard error is captured.
///
/// # Errors
/// If the command cannot be started or waited for.
pub fn run_measured_redirected(
    mut command: Command,
    input: impl Into<Stdio>,
    output: impl Into<Stdio>,
) -> io::Result<Measured> {
    command.stdin(input).stdout(output);
    run(command, Vec::new())
}

fn run(mut command: Command, input: Vec<u8>) -> io::Result<Measured> {
    let start = Instant::now();
    let mut child = command.stderr(Stdio::piped()).spawn()?;
    // The command has its own copies of files and pipes: close them, so that a writer notices when its reader ends.
    drop(command);
    let pid = child.id();
    // After the start, so that it is not less than the value that the child inherited at `exec`.
    let inherited = high_water(std::process::id()).unwrap_or(u64::MAX);
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let finished = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| stdin.map(|mut pipe| pipe.write_all(&input)));
        let stdout = scope.spawn(|| drain(stdout));
        let stderr = scope.spawn(|| drain(stderr));
        let samples = scope.spawn(|| {
            let mut peak = 0;
            while !finished.load(Ordering::Relaxed) {
                peak = peak.max(high_water(pid).unwrap_or(0));
                // Long runs need fewer samples and should not be slowed by them.
                let pause = start.elapsed() / 50;
                thread::sleep(pause.clamp(Duration::from_millis(1), Duration::from_millis(50)));
            }
            peak
        });
        let waited = wait4(pid);
        let wall = start.elapsed();
        finished.store(true, Ordering::Relaxed);
        let sampled = samples.join().unwrap_or(0);
        let (status, usage) = waited?;
        let (stdout, stderr) =
            (stdout.join().unwrap_or_default(), stderr.join().unwrap_or_default());
        let reported = usage.ru_maxrss.unsigned_abs() * 1024;
        let peak_is_exact = reported > inherited;
        Ok(Measured {
            output: Output { status, stdout, stderr },
            peak_rss: if peak_is_exact { reported } else { sampled },
            peak_is_exact,
            wall,
            user: duration(usage.ru_utime),
            system: duration(usage.ru_stime),
        })
    })
}

fn drain(pipe: Option<impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        // After an error the test sees the bytes read before.
        let _ = pipe.read_to_end(&mut bytes);
    }
    bytes
}

/// Returns the peak resident memory of a running process since `exec`, in bytes.
fn high_water(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kib * 1024)
}

fn duration(time: libc::timeval) -> Duration {
    Duration::from_secs(time.tv_sec.unsigned_abs())
        + Duration::from_micros(time.tv_usec.unsigned_abs())
}

/// Waits for a child. No other code may wait for it.
#[expect(unsafe_code, reason = "std has no API for the resource usage of a child")]
fn wait4(pid: u32) -> io::Result<(ExitStatus, libc::rusage)> {
    use std::os::unix::process::ExitStatusExt;
    let pid = libc::pid_t::try_from(pid).map_err(io::Error::other)?;
    loop {
        let mut status = 0;
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: both pointers are valid for writes for the whole call, and a zeroed rusage is a valid one (it is
        // plain integers), so assume_init is valid even if wait4 fails and writes nothing. The pid is that of our
        // child, whose owner drops it without waiting.
        let (result, usage) =
            unsafe { (libc::wait4(pid, &mut status, 0, usage.as_mut_ptr()), usage.assume_init()) };
        if result == pid {
            return Ok((ExitStatus::from_raw(status), usage));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn output_and_status_are_captured() {
        let ran = run_measured_with(sh("cat; echo no >&2; exit 3"), b"yes".to_vec()).unwrap();
        assert_eq!((ran.output.stdout, ran.output.stderr), (b"yes".to_vec(), b"no\n".to_vec()));
        assert_eq!(ran.output.status.code(), Some(3));
        assert!(ran.wall > Duration::ZERO);
    }

    #[test]
    fn input_and_output_can_be_files() {
        let scratch = crate::scratch::Scratch::new();
        let input = fs::File::open(scratch.write("in", b"yes")).unwrap();
        let output = fs::File::create(scratch.file("out")).unwrap();
        let ran = run_measured_redirected(sh("cat; echo no >&2"), input, output).unwrap();
        assert_eq!((ran.output.stdout, ran.output.stderr), (Vec::new(), b"no\n".to_vec()));
        assert_eq!(scratch.read("out"), b"yes");
    }

    #[test]
    fn child_that_does_not_read_is_no_error() {
        assert!(
            run_measured_with(sh("exit 0"), vec![b'x'; 1 << 20]).unwrap().output.status.success()
        );
    }

    #[test]
    fn peak_is_that_of_the_child() {
        // dd fills a block of 64 MiB; a small child must not inherit the peak of this process.
        let big =
            run_measured(sh("dd if=/dev/zero of=/dev/null bs=64M count=1 2>/dev/null")).unwrap();
        assert!((64 << 20..80 << 20).contains(&big.peak_rss), "{}", big.peak_rss);
        let ballast = vec![1_u8; 100 << 20];
        let small = run_measured(sh("sleep 0.05")).unwrap();
        assert!(small.peak_rss < 20 << 20, "{} (exact: {})", small.peak_rss, small.peak_is_exact);
        drop(std::hint::black_box(ballast));
    }
}
