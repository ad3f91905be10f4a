//! `urls`: writes one of two files of generated URLs with a known number of common lines.
//!
//! The same arguments give the same bytes on every machine. Exit code 0, or 1 with one line on standard error.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use petal_bench::args::{self, number};
use petal_bench::corpus::{self, Corpus, URL_BYTES, WIDTHS};

/// Writes distinct lines that look like URLs. The two sides of a seed have exactly --common lines in common.
///
/// Numbers may be written 50000000, 50_000_000 or 50e6.
#[derive(Parser)]
#[command(name = "urls")]
struct Args {
    /// Number of lines
    #[arg(long, value_parser = number)]
    count: u64,
    /// Number of common lines
    #[arg(long, value_parser = number)]
    common: u64,
    /// Which of the two files
    #[arg(long)]
    side: Side,
    /// Order of the lines
    #[arg(long, default_value = "shuffled")]
    order: Order,
    #[arg(long, value_parser = number, default_value = "1")]
    seed: u64,
    /// Length of a line, LF excluded
    #[arg(long, default_value_t = URL_BYTES)]
    bytes: usize,
    /// Output file; `-` is standard output
    #[arg(long, default_value = "-")]
    out: String,
}

#[derive(Clone, Copy, ValueEnum)]
enum Side {
    A,
    B,
}

#[derive(Clone, Copy, ValueEnum)]
enum Order {
    Shuffled,
    Plain,
}

fn main() -> ExitCode {
    args::main(|args: Args| run(&args))
}

fn run(args: &Args) -> Result<(), String> {
    let Args { count, common, bytes, .. } = *args;
    let order = match args.order {
        Order::Shuffled => corpus::Order::Shuffled,
        Order::Plain => corpus::Order::Plain,
    };
    let side = match args.side {
        Side::A => corpus::Side::A,
        Side::B => corpus::Side::B,
    };
    let corpus = Corpus::new(args.seed, count, common, order).ok_or_else(|| {
        format!("--common {common} must be at most --count {count}, and that below 2^40")
    })?;
    let corpus = corpus.with_url_bytes(bytes).ok_or_else(|| {
        format!("--bytes {bytes} must be from {} to {}", WIDTHS.start(), WIDTHS.end())
    })?;
    let out = match args.out.as_str() {
        "-" => standard_output(),
        path => Ok(File::create(path).map_err(|e| format!("cannot create {path}: {e}"))?),
    };
    match out.and_then(|mut out| corpus.write(side, &mut out)) {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|e| format!("cannot write: {e}")),
    }
}

/// Returns standard output without std's line buffer. A pipe is made as large as an unprivileged process may, so that
/// its two ends seldom wait for each other.
fn standard_output() -> io::Result<File> {
    let out = io::stdout().as_fd().try_clone_to_owned()?;
    #[cfg(target_os = "linux")]
    {
        const PIPE_BYTES: usize = 1 << 20;
        // Slower if it is not a pipe or not allowed.
        let _ = rustix::pipe::fcntl_setpipe_size(&out, PIPE_BYTES);
    }
    Ok(File::from(out))
}
