//! `cargo x bench files`, `full` and `headline`: petal and its rivals on files of lines. Every answer is checked.
//!
//! `files` and `headline` compare programs over two generated files in the page cache. The answers go to a file on the
//! same disk, without fsync. `wc -l` runs in every round as a base line that is comparable between machines: it reads
//! the same bytes and does next to nothing with them. `full` sends 5 billion generated lines through pipes. The rows go
//! to `results/<arch>-<cpu>/<date>-<benchmark>.csv`.
//!
//! DuckDB, ClickHouse and polars run inside Python: time and memory include the start of the interpreter and of the
//! library, a fraction of a second and about 60 MiB (ClickHouse: 230 MiB). Their settings are in `*_lines.py`. huniq and
//! runiq compare short hashes of lines; the others compare lines, or 128 bits of them. A program that fails is a row
//! with its error. The memory of `sort` is that of its larger process.
#![allow(clippy::print_stdout, reason = "a command-line tool")]

mod check;
mod columns;
mod files;
mod full;
mod headline;
mod report;
mod runs;
mod tools;
mod works;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use petal_bench::args;
use petal_bench::corpus::{Corpus, Side};
use petal_bench::paths::{dist, make_file, root};

#[derive(Parser)]
#[command(name = "cargo x bench", bin_name = "cargo x bench")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Files(files::Args),
    Full(full::Args),
    Headline(headline::Args),
}

/// Arguments of all commands.
#[derive(clap::Args)]
struct Common {
    /// Where generated files and rivals are kept
    #[arg(long, value_name = "DIR", default_value = "bench-data")]
    dir: PathBuf,
    /// The program to measure [default: target/dist/petal]
    #[arg(long, value_name = "FILE")]
    petal: Option<PathBuf>,
}

impl Common {
    fn dir(&self) -> PathBuf {
        root().join(&self.dir)
    }

    fn petal(&self) -> PathBuf {
        self.petal.as_ref().map_or_else(|| dist("petal"), |petal| root().join(petal))
    }

    /// Makes a folder with the two files of a corpus, `a.txt` and `b.txt`, and a folder `tmp`.
    fn folder(&self, name: &str, corpus: &Corpus) -> Result<PathBuf, String> {
        let folder = self.dir().join(name);
        fs::create_dir_all(folder.join("tmp"))
            .map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
        println!("two files of {} lines in {}", corpus.count(), folder.display());
        for (name, side) in [("a.txt", Side::A), ("b.txt", Side::B)] {
            make_file(&folder.join(name), corpus, side)?;
        }
        Ok(folder)
    }
}

fn main() -> ExitCode {
    args::main(|args: Args| match args.command {
        Command::Files(args) => files::run(&args),
        Command::Full(args) => full::run(&args),
        Command::Headline(args) => headline::run(&args),
    })
}

fn yes(fact: bool) -> &'static str {
    if fact { "yes" } else { "no" }
}
