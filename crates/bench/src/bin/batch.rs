//! `batch`: the Rust side of `cargo x bench python`.
#![allow(clippy::print_stdout, reason = "a command-line tool")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use petal::{BatchResults, BloomFilter};
use petal_bench::args;
use petal_bench::machine::Machine;

#[derive(Parser)]
enum Args {
    /// Prints the machine columns of a row
    Machine,
    /// Fills a filter with the keys of a file and looks up those of another one, in batches, on one thread
    ///
    /// Keys have the same width, without separators. Prints one line per round: seconds to fill, seconds to look up,
    /// keys that were new, keys that were found.
    Run { width: usize, fpr: f64, rounds: usize, members: PathBuf, queries: PathBuf },
}

fn main() -> ExitCode {
    args::main(|args| run(args).map_err(|problem| problem.to_string()))
}

fn run(args: Args) -> Result<(), Box<dyn std::error::Error>> {
    let Args::Run { width, fpr, rounds, members, queries } = args else {
        let Machine { slug, description, rustc, commit, date } = Machine::read();
        println!("{slug}\n{description}\n{rustc}\n{commit}\n{date}");
        return Ok(());
    };
    let [members, queries] = [std::fs::read(members)?, std::fs::read(queries)?];
    let members: Vec<&[u8]> = members.chunks_exact(width.max(1)).collect();
    let queries: Vec<&[u8]> = queries.chunks_exact(width.max(1)).collect();
    let (mut new, mut found) = (BatchResults::new(), BatchResults::new());
    for _ in 0..rounds {
        let mut filter = BloomFilter::with_fpr(members.len() as u64, fpr)?;
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
