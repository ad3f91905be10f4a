//! `batch`: the Rust side of `cargo x bench python`. Fills a filter with the keys of a file and looks up those of
//! another one, in batches, on one thread.
//!
//! A file of keys has keys of the same width, without separators. Prints one line per round: seconds to fill, seconds
//! to look up, keys that were new, keys that were found. `batch machine` prints the machine columns of a row. Exit code
//! 0, or 2 with one line on standard error.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

use std::process::ExitCode;
use std::time::Instant;

use petal::{BatchResults, BloomFilter};
use petal_bench::machine::Machine;

const USAGE: &str = "usage: batch WIDTH RATE ROUNDS MEMBERS QUERIES, or: batch machine";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args[..] {
        ["machine"] => {
            let Machine { slug, description, rustc, commit, date } = Machine::read();
            println!("{slug}\n{description}\n{rustc}\n{commit}\n{date}");
            Ok(())
        }
        [width, fpr, rounds, members, queries] => {
            run(&[width, rounds], fpr, &[members, queries]).map_err(|problem| problem.to_string())
        }
        _ => Err(USAGE.to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("batch: {problem}");
            ExitCode::from(2)
        }
    }
}

fn run(
    numbers: &[&str; 2],
    fpr: &str,
    files: &[&str; 2],
) -> Result<(), Box<dyn std::error::Error>> {
    let [width, rounds] = [numbers[0].parse::<usize>()?.max(1), numbers[1].parse::<usize>()?];
    let [members, queries] = [std::fs::read(files[0])?, std::fs::read(files[1])?];
    let members: Vec<&[u8]> = members.chunks_exact(width).collect();
    let queries: Vec<&[u8]> = queries.chunks_exact(width).collect();
    let (mut new, mut found) = (BatchResults::new(), BatchResults::new());
    for _ in 0..rounds {
        let mut filter = BloomFilter::with_fpr(members.len() as u64, fpr.parse()?)?;
        let start = Instant::now();
        filter.insert_batch(&members, &mut new);
        let fill_seconds = start.elapsed().as_secs_f64();
        let start = Instant::now();
        filter.contains_batch(&queries, &mut found);
        let query_seconds = start.elapsed().as_secs_f64();
        println!("{fill_seconds} {query_seconds} {} {}", new.count_ones(), found.count_ones());
    }
    Ok(())
}
