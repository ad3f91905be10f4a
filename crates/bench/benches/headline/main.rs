//! `cargo x bench headline`: the main job at scale, beside its nearest rival, every answer judged.
//!
//! The full job is two files of 5 billion URLs and 4 GiB of memory. At scale S both are divided by S, which keeps the
//! memory per line: `--scale 100` is two files of 50 million lines and 41 MiB, `--scale 20` two of 250 million and
//! 205 MiB. DuckDB runs beside it at scales of 100 and more, in two memory limits. Runs alternate, the
//! order turns round after each round, and the table shows medians. The raw rows go to
//! `results/<arch>-<cpu>/<date>-headline.csv`.
//!
//! DuckDB runs inside Python: its time and memory hold the start of the interpreter, a fraction of a second and
//! some 60 MiB. A limit at which it gives up is a row with its error, not a missing row.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

mod contest;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use contest::{Contest, Tool};
use petal_bench::corpus::{Corpus, Order, Side};
use petal_bench::place::{self, make_file, root};
use petal_bench::rivals;

const USAGE: &str = "\
usage: cargo x bench headline [--scale 100|20] [--dir DIR] [--runs N] [--petal FILE] [--no-duckdb]

  --scale S     divide 5 billion lines and 4 GiB by S (default 100: 50 M lines each, -m 41M)
  --dir DIR     where the files are made and kept (default bench-data; scale 100 needs 12 GB, scale 20 needs 60 GB)
  --runs N      rounds (default 3; 1 below scale 100)
  --petal FILE  the program to measure (default: target/release/petal)
  --no-duckdb   leave the rival out
";

const FULL_LINES: u64 = 5_000_000_000;
const FULL_MEMORY_MIB: u64 = 4_096;
const SMALLEST_CAP_MIB: u64 = 8;
const SEED: u64 = 1;

struct Options {
    scale: u64,
    folder: PathBuf,
    runs: usize,
    petal: PathBuf,
    duckdb: bool,
}

fn main() -> ExitCode {
    // `cargo bench` adds `--bench` to what it is given.
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    if args.iter().any(|arg| arg == "--help") {
        print!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    match options(&args).and_then(|options| headline(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("headline: {problem}");
            ExitCode::from(1)
        }
    }
}

fn options(args: &[String]) -> Result<Options, String> {
    let mut runs = None;
    let mut options = Options {
        scale: 100,
        folder: root().join("bench-data"),
        runs: 0,
        petal: place::petal(),
        duckdb: true,
    };
    let mut args = args.iter();
    while let Some(name) = args.next() {
        if name == "--no-duckdb" {
            options.duckdb = false;
            continue;
        }
        let value = args.next().ok_or_else(|| format!("{name} wants a value (see --help)"))?;
        let number = || {
            value
                .parse()
                .ok()
                .filter(|&n: &u64| n > 0)
                .ok_or_else(|| format!("not a number: {value}"))
        };
        match name.as_str() {
            "--scale" => options.scale = number()?,
            "--runs" => runs = Some(number()? as usize),
            "--dir" => options.folder = root().join(value),
            "--petal" => options.petal = root().join(value),
            _ => return Err(format!("not understood: {name} (see --help)")),
        }
    }
    options.runs = runs.unwrap_or(if options.scale >= 100 { 3 } else { 1 });
    options.duckdb &= options.scale >= 100;
    Ok(options)
}

fn headline(options: &Options) -> Result<(), String> {
    let lines = FULL_LINES / options.scale;
    let cap_mib = FULL_MEMORY_MIB.div_ceil(options.scale).max(SMALLEST_CAP_MIB);
    let corpus =
        Corpus::new(SEED, lines, lines / 10, Order::Shuffled).ok_or("this scale has no lines")?;
    if !options.petal.exists() {
        return Err(format!("no program at {}", options.petal.display()));
    }
    let folder = options.folder.join(format!("scale-{}", options.scale));
    fs::create_dir_all(folder.join("tmp"))
        .map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
    println!("two files of {lines} lines in {}, made if they are not there", folder.display());
    for (name, side) in [("a.txt", Side::A), ("b.txt", Side::B)] {
        make_file(&folder.join(name), &corpus, side)?;
    }

    let mut tools = vec![Tool::petal(&options.petal, cap_mib)?];
    if options.duckdb {
        let python = rivals::python_with_duckdb(&options.folder)
            .map_err(|e| format!("{e} (--no-duckdb leaves it out)"))?;
        for limit in ["256MB", "512MB"] {
            tools.push(Tool::duckdb(&python, limit)?);
        }
    }
    let mut contest = Contest::new(&corpus, &folder, options.scale, tools);
    contest.run(options.runs)?;
    let file = contest.save()?;
    contest.print();
    println!("\nraw rows: {}", file.display());
    contest.judge_petal(cap_mib)
}
