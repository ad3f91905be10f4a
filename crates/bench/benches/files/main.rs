//! `cargo x bench files`: petal and its rivals on line files, with the targets that petal is held to.
//!
//! Two files of 20 million lines, 67 bytes each with the LF, 5 million in common, in the page cache; every answer
//! goes to a file on the same disk, unsynced, and is judged. `wc -l` runs in every round: what reads the same bytes
//! and does next to nothing with them is the yardstick that travels between machines. Slow rivals run less often.
//! The raw rows go to `results/<arch>-<cpu>/<date>-files.csv`.
//!
//! DuckDB runs inside Python: its time and memory hold the start of the interpreter, a fraction of a second and
//! some 60 MiB. huniq and runiq keep short hashes of lines and trust them; the others compare lines, or 128 bits of
//! them. A tool that gives up is a row with its error, not a missing row. The memory of `sort` is that of its larger
//! process.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

mod contest;
mod plan;
mod report;
mod tools;
mod verdict;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use contest::Contest;
use petal_bench::corpus::{Corpus, Order, Side};
use petal_bench::machine::Machine;
use petal_bench::place::{self, make_file, root};
use plan::{Size, Work};
use report::HEADER;
use tools::Tools;

const USAGE: &str = "\
usage: cargo x bench files [--only WORKS] [--lines N] [--runs N] [--rival-runs N] [--dir DIR] [--petal FILE] [--no-rivals]

  --only WORKS    of build,check,common,dedup,jobs (default: all)
  --lines N       lines of each file, a quarter of them common (default 20000000: 2.7 GB, and as much again for answers)
  --runs N        rounds for petal, wc and DuckDB (default 5)
  --rival-runs N  rounds for the slow rivals (default 1)
  --dir DIR       where files and rivals are made and kept (default bench-data)
  --petal FILE    the program to measure (default: target/release/petal)
  --no-rivals     petal and wc only
";

const URL_BYTES: usize = 66;
const SEED: u64 = 1;

struct Options {
    works: Vec<Work>,
    lines: u64,
    runs: usize,
    rival_runs: usize,
    folder: PathBuf,
    petal: PathBuf,
    rivals: bool,
}

fn main() -> ExitCode {
    // `cargo bench` adds `--bench` to what it is given.
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    if args.iter().any(|arg| arg == "--help") {
        print!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    match options(&args).and_then(|options| files(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("files: {problem}");
            ExitCode::from(1)
        }
    }
}

fn options(args: &[String]) -> Result<Options, String> {
    let mut options = Options {
        works: Work::ALL.map(|(work, _)| work).into(),
        lines: 20_000_000,
        runs: 5,
        rival_runs: 1,
        folder: root().join("bench-data"),
        petal: place::petal(),
        rivals: true,
    };
    let mut args = args.iter();
    while let Some(name) = args.next() {
        if name == "--no-rivals" {
            options.rivals = false;
            continue;
        }
        let value = args.next().ok_or_else(|| format!("{name} wants a value (see --help)"))?;
        let number = || {
            let number = value.parse().ok().filter(|&n: &u64| n > 0);
            number.ok_or_else(|| format!("not a number: {value}"))
        };
        match name.as_str() {
            "--only" => options.works = value.split(',').map(work).collect::<Result<_, _>>()?,
            "--lines" => options.lines = number()?,
            "--runs" => options.runs = number()? as usize,
            "--rival-runs" => options.rival_runs = number()? as usize,
            "--dir" => options.folder = root().join(value),
            "--petal" => options.petal = root().join(value),
            _ => return Err(format!("not understood: {name} (see --help)")),
        }
    }
    Ok(options)
}

fn work(name: &str) -> Result<Work, String> {
    let found = Work::ALL.into_iter().find(|(_, known)| *known == name);
    found.map(|(work, _)| work).ok_or_else(|| format!("no such work: {name} (see --help)"))
}

fn files(options: &Options) -> Result<(), String> {
    let size = Size { lines: options.lines, common: options.lines / 4 };
    let corpus = Corpus::new(SEED, size.lines, size.common, Order::Shuffled)
        .and_then(|corpus| corpus.with_url_bytes(URL_BYTES))
        .ok_or("there is no such corpus")?;
    let folder = options.folder.join(format!("files-{}", size.lines));
    fs::create_dir_all(folder.join("tmp"))
        .map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
    println!("two files of {} lines, made if they are not there; likewise the rivals", size.lines);
    for (name, side) in [("a.txt", Side::A), ("b.txt", Side::B)] {
        make_file(&folder.join(name), &corpus, side)?;
    }
    // Another build of petal may have made it.
    let _ = fs::remove_file(folder.join("a.petal"));
    let tools = Tools::gather(&options.petal, &options.folder, options.rivals)?;

    let mut contest =
        Contest { corpus: &corpus, size, folder: &folder, tools: &tools, lanes: Vec::new() };
    for &work in &options.works {
        contest.run(work, options.runs, options.rival_runs)?;
    }
    let machine = Machine::read();
    let file = machine.save("files", &HEADER, &contest.rows(&machine))?;
    println!("\n{}", machine.line());
    println!(
        "two files of {} lines, {} in common, {} bytes a line, page cache warm; medians",
        size.lines,
        size.common,
        corpus.line_bytes()
    );
    contest.print_table();
    contest.print_targets();
    println!("\nraw rows: {}", file.display());
    contest.judge_petal()
}
