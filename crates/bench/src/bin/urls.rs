//! `urls`: writes one of two files of made-up URLs that share an exact, known number of lines.
//!
//! The same arguments give the same bytes on every machine. Exit code 0, or 2 with one line on standard error.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::process::ExitCode;

use petal_bench::corpus::{Corpus, Order, Side, URL_BYTES, WIDTHS};

const USAGE: &str = "\
usage: urls --count N --common N --side a|b [--order shuffled|plain] [--seed N] [--bytes N] [--out FILE]

Writes N distinct lines of 64 bytes (or --bytes, LF not counted) that look like URLs. The two sides of one seed share exactly --common lines.
N may be written 50000000, 50_000_000 or 50e6. Without --out, or with --out -, the lines go to standard output.
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.iter().any(|arg| arg == "--help" || arg == "-h") {
        print!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("urls: {problem}");
            ExitCode::from(2)
        }
    }
}

struct Options {
    corpus: Corpus,
    side: Side,
    out: Option<String>,
}

fn run(args: &[String]) -> Result<(), String> {
    let options = parse(args)?;
    let written = match &options.out {
        None => standard_output(),
        Some(path) => Ok(File::create(path).map_err(|e| format!("cannot create {path}: {e}"))?),
    }
    .and_then(|mut out| options.corpus.write(options.side, &mut out));
    match written {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(|e| format!("cannot write: {e}")),
    }
}

fn parse(args: &[String]) -> Result<Options, String> {
    let (mut count, mut common, mut side, mut out) = (None, None, None, None);
    let (mut order, mut seed, mut bytes) = (Order::Shuffled, 1, URL_BYTES as u64);
    let mut args = args.iter();
    while let Some(name) = args.next() {
        let value = args.next().ok_or_else(|| format!("{name} wants a value (see --help)"))?;
        match (name.as_str(), value.as_str()) {
            ("--count", text) => count = Some(number(text)?),
            ("--common", text) => common = Some(number(text)?),
            ("--seed", text) => seed = number(text)?,
            ("--bytes", text) => bytes = number(text)?,
            ("--side", "a") => side = Some(Side::A),
            ("--side", "b") => side = Some(Side::B),
            ("--order", "shuffled") => order = Order::Shuffled,
            ("--order", "plain") => order = Order::Plain,
            ("--out", "-") => out = None,
            ("--out", path) => out = Some(path.to_owned()),
            _ => return Err(format!("not understood: {name} {value} (see --help)")),
        }
    }
    let count = count.ok_or("--count is missing (see --help)")?;
    let common = common.ok_or("--common is missing (see --help)")?;
    let side = side.ok_or("--side is missing (see --help)")?;
    let corpus = Corpus::new(seed, count, common, order).ok_or_else(|| {
        format!("--common {common} must be at most --count {count}, and that below 2^40")
    })?;
    let corpus = usize::try_from(bytes).ok().and_then(|bytes| corpus.with_url_bytes(bytes));
    let corpus = corpus.ok_or_else(|| {
        format!("--bytes {bytes} must be from {} to {}", WIDTHS.start(), WIDTHS.end())
    })?;
    Ok(Options { corpus, side, out })
}

/// A whole number: digits, perhaps with `_` between them, perhaps with a decimal exponent.
fn number(text: &str) -> Result<u64, String> {
    let wrong = || format!("not a whole number: {text}");
    let plain = text.replace('_', "");
    let (digits, exponent) = plain.split_once(['e', 'E']).unwrap_or((&plain, "0"));
    let digits: u64 = digits.parse().map_err(|_| wrong())?;
    let exponent: u32 = exponent.parse().map_err(|_| wrong())?;
    10_u64.checked_pow(exponent).and_then(|power| digits.checked_mul(power)).ok_or_else(wrong)
}

/// Standard output without std's buffer, which looks for the last LF of everything that goes through it. A pipe is
/// made as large as one without privileges may be, so that its two ends seldom wait for each other.
fn standard_output() -> io::Result<File> {
    let out = io::stdout().as_fd().try_clone_to_owned()?;
    #[cfg(target_os = "linux")]
    {
        const PIPE_BYTES: usize = 1 << 20;
        // Not a pipe, or not allowed: slower, not wrong.
        let _ = rustix::pipe::fcntl_setpipe_size(&out, PIPE_BYTES);
    }
    Ok(File::from(out))
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers() {
        assert_eq!(number("50e6"), Ok(50_000_000));
        assert_eq!(number("5_000"), Ok(5_000));
        assert_eq!(number("0"), Ok(0));
        for wrong in ["", "x", "1.5", "-1", "1e30", "e6", "1e"] {
            assert!(number(wrong).is_err(), "{wrong}");
        }
    }
}
