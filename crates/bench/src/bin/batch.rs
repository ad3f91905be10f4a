//! `batch`: the Rust side of `cargo x bench python`: fills a filter with the keys of a file and asks it for those of
//! another, by the library's batches, in one thread.
//!
//! A file of keys has all keys one after the other, each of the same width. Prints one line for each round: seconds
//! to fill, seconds to ask, keys that were new, keys that were found. With `machine` alone it prints the facts that
//! go into rows. Exit code 0, or 2 with one line on standard error.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

use std::process::ExitCode;
use std::time::Instant;

use petal::{Answers, BloomFilter};
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
        [width, rate, rounds, members, queries] => {
            run(&[width, rounds], rate, &[members, queries]).map_err(|problem| problem.to_string())
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
    rate: &str,
    files: &[&str; 2],
) -> Result<(), Box<dyn std::error::Error>> {
    let [width, rounds] = [numbers[0].parse::<usize>()?.max(1), numbers[1].parse::<usize>()?];
    let [members, queries] = [std::fs::read(files[0])?, std::fs::read(files[1])?];
    let members: Vec<&[u8]> = members.chunks_exact(width).collect();
    let queries: Vec<&[u8]> = queries.chunks_exact(width).collect();
    let (mut new, mut found) = (Answers::new(), Answers::new());
    for _ in 0..rounds {
        let mut filter = BloomFilter::with_rate(members.len() as u64, rate.parse()?)?;
        let begun = Instant::now();
        filter.insert_batch(&members, &mut new);
        let filled = begun.elapsed().as_secs_f64();
        let begun = Instant::now();
        filter.contains_batch(&queries, &mut found);
        let asked = begun.elapsed().as_secs_f64();
        println!("{filled} {asked} {} {}", new.count_ones(), found.count_ones());
    }
    Ok(())
}
