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
mod machine;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use contest::{Contest, Tool};
use petal_bench::corpus::{Corpus, LINE_BYTES, Order};

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

/// The root of the repository; cargo runs a bench in its crate's folder.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new("")).to_path_buf()
}

fn options(args: &[String]) -> Result<Options, String> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from);
    let mut runs = None;
    let mut options = Options {
        scale: 100,
        folder: root().join("bench-data"),
        runs: 0,
        petal: root().join(target).join("release/petal"),
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
    for side in ["a", "b"] {
        make_file(&folder, side, &corpus)?;
    }

    let mut tools = vec![Tool::petal(&options.petal, cap_mib)?];
    if options.duckdb {
        let python = duckdb_python(&options.folder)?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("duckdb_semi_join.py");
        for limit in ["256MB", "512MB"] {
            tools.push(Tool::duckdb(&python, &script, limit)?);
        }
    }
    let mut contest = Contest::new(&corpus, &folder, options.scale, tools);
    contest.run(options.runs)?;
    let file = contest.save(&root().join("results"))?;
    contest.print();
    println!("\nraw rows: {}", file.strip_prefix(root()).unwrap_or(&file).display());
    contest.judge_petal(cap_mib)
}

/// Makes one of the two files, aside and then under its name, unless it is there in its full length.
fn make_file(folder: &Path, side: &str, corpus: &Corpus) -> Result<(), String> {
    let file = folder.join(format!("{side}.txt"));
    let length = corpus.count() * LINE_BYTES as u64;
    if fs::metadata(&file).is_ok_and(|data| data.len() == length) {
        return Ok(());
    }
    println!("making {}.txt: {} lines, {:.1} GB", side, corpus.count(), length as f64 / 1e9);
    let aside = folder.join(format!("{side}.part"));
    let status = Command::new(env!("CARGO_BIN_EXE_urls"))
        .args(["--count", &corpus.count().to_string(), "--common", &corpus.common().to_string()])
        .args(["--seed", &SEED.to_string(), "--order", "shuffled", "--side", side, "--out"])
        .arg(&aside)
        .status()
        .map_err(|e| format!("cannot start urls: {e}"))?;
    if !status.success() {
        return Err("the files could not be made".into());
    }
    fs::rename(&aside, &file).map_err(|e| format!("cannot name {}: {e}", file.display()))
}

/// A Python with DuckDB in a virtual environment of the bench folder, made when absent.
fn duckdb_python(folder: &Path) -> Result<PathBuf, String> {
    let venv = folder.join("venv");
    let python = venv.join("bin/python");
    let works = |python: &Path| {
        let check = Command::new(python).args(["-c", "import duckdb"]).output();
        check.is_ok_and(|output| output.status.success())
    };
    if !works(&python) {
        println!("making a Python environment with DuckDB");
        let run = |command: &mut Command| match command.output() {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
            Err(e) => Err(e.to_string()),
        };
        run(Command::new("python3").args(["-m", "venv"]).arg(&venv))
            .and_then(|()| {
                run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "duckdb"]))
            })
            .map_err(|e| {
                format!("no DuckDB (python3 with venv and pip is needed, or --no-duckdb): {e}")
            })?;
    }
    if works(&python) {
        Ok(python)
    } else {
        Err("DuckDB was installed but cannot be imported".into())
    }
}
