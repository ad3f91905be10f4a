//! Command lines of the benchmarks.

use std::process::ExitCode;

use clap::Parser;

/// Parses the command line of a benchmark and runs it. Exit code 1 and a line on standard error if `run` fails.
///
/// `--bench`, which `cargo bench` adds, is ignored.
#[allow(clippy::print_stderr, reason = "for command-line tools")]
pub fn main<A: Parser>(run: impl FnOnce(A) -> Result<(), String>) -> ExitCode {
    let args = A::parse_from(std::env::args_os().filter(|arg| arg != "--bench"));
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{}: {problem}", A::command().get_name());
            ExitCode::from(1)
        }
    }
}

/// Reads a whole number: digits, with `_` between them or a decimal exponent if wanted (`50_000_000`, `50e6`).
///
/// # Errors
/// If it is not a number of 64 bits.
pub fn number(text: &str) -> Result<u64, String> {
    let invalid = || format!("not a whole number: {text}");
    let plain = text.replace('_', "");
    let (digits, exponent) = plain.split_once(['e', 'E']).unwrap_or((&plain, "0"));
    let digits: u64 = digits.parse().map_err(|_| invalid())?;
    let exponent: u32 = exponent.parse().map_err(|_| invalid())?;
    10_u64.checked_pow(exponent).and_then(|power| digits.checked_mul(power)).ok_or_else(invalid)
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_with_separators_and_exponents() {
        assert_eq!(number("50e6"), Ok(50_000_000));
        assert_eq!(number("5_000"), Ok(5_000));
        assert_eq!(number("0"), Ok(0));
        for invalid in ["", "x", "1.5", "-1", "1e30", "e6", "1e"] {
            assert!(number(invalid).is_err(), "{invalid}");
        }
    }
}
