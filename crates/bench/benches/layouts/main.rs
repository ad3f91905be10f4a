//! `cargo bench -p petal-bench --bench layouts`: what the block layouts cost in bits and in time.
//!
//! Space is arithmetic: bits per key of each layout at each rate. Speed is ns per 64-bit hash that is given, one
//! thread, in batches: the library's portable kernel through its public functions, and the vector prototypes of
//! [`vector`]. Variants take turns (A B C A B C …), each timed in short samples; the table has the median and the least
//! of them. Read ratios.
//!
//! Before anything is timed the prototypes are compared with the portable kernel, bit for bit; while it is timed no
//! inserted key may be missing, kernels must agree, and the false positives must be those predicted.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

#[cfg(target_arch = "x86_64")]
mod memory;
mod space;
#[cfg(target_arch = "x86_64")]
mod speed;
#[cfg(target_arch = "x86_64")]
mod vector;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use petal_bench::machine::Machine;
use petal_bench::place::root;
use petal_bench::summary::csv_row;

const USAGE: &str = "\
usage: cargo bench -p petal-bench --bench layouts -- [--quick] [--csv FILE] [--keys N]

  --quick     space, and speed for 100 thousand keys in few rounds (seconds)
  --csv FILE  also write the rows there (default: results/<arch>-<cpu>/<date>-layouts.csv, none with --quick)
  --keys N    keys out of cache (default 50 million: takes 3 GB and some minutes)
";

const RATES: [f64; 8] = [0.1, 0.04, 0.02, 0.01, 1e-3, 1e-4, 1e-5, 1e-6];

struct Options {
    quick: bool,
    csv: Option<PathBuf>,
    keys: u64,
}

fn main() -> ExitCode {
    // `cargo bench` adds `--bench` to what it is given.
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    if args.iter().any(|arg| arg == "--help") {
        print!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    match options(&args).and_then(|options| layouts(&options, &args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("layouts: {problem}");
            ExitCode::from(1)
        }
    }
}

fn options(args: &[String]) -> Result<Options, String> {
    let mut options = Options { quick: false, csv: None, keys: 50_000_000 };
    let mut args = args.iter();
    while let Some(name) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{name} wants a value (see --help)"));
        match name.as_str() {
            "--quick" => options.quick = true,
            "--csv" => options.csv = Some(value()?.into()),
            "--keys" => {
                let text = value()?;
                let keys = text.parse().ok().filter(|&keys: &u64| keys >= 1_000_000);
                options.keys =
                    keys.ok_or_else(|| format!("not a number from a million up: {text}"))?;
            }
            _ => return Err(format!("not understood: {name} (see --help)")),
        }
    }
    Ok(options)
}

fn layouts(options: &Options, args: &[String]) -> Result<(), String> {
    let machine = Machine::read();
    let file = match (&options.csv, options.quick) {
        (Some(file), _) => Some(root().join(file)),
        (None, true) => None,
        (None, false) => {
            let name = format!("{}-layouts.csv", machine.date);
            Some(root().join("results").join(&machine.slug).join(name))
        }
    };
    let mut rows = Rows::new(format!(
        "# {}; rustc {}; commit {}; {}\n# cargo bench -p petal-bench --bench layouts -- {}\n",
        machine.description,
        machine.rustc,
        machine.commit,
        machine.date,
        args.join(" ")
    ));
    for rate in RATES {
        for size in space::sizes(rate) {
            rows.space(rate, &size);
        }
    }
    #[cfg(target_arch = "x86_64")]
    speed::measure(options.quick, options.keys, &mut rows);
    if let Some(file) = file {
        let folder = file.parent().unwrap_or(Path::new(""));
        std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(&file, &rows.text))
            .map_err(|e| format!("cannot write {}: {e}", file.display()))?;
        eprintln!("rows are in {}", file.display());
    }
    Ok(())
}

/// Rows, printed as they come and kept for the file.
struct Rows {
    text: String,
}

impl Rows {
    fn new(header: String) -> Self {
        let mut rows = Self { text: String::new() };
        rows.add(header);
        rows.add(csv_row(&[
            "what",
            "rate",
            "layout",
            "probes",
            "bits_per_key",
            "keys",
            "kernel",
            "pages",
            "ns_median",
            "ns_min",
            "samples",
        ]));
        rows
    }

    fn add(&mut self, row: String) {
        print!("{row}");
        self.text += &row;
    }

    fn space(&mut self, rate: f64, size: &space::Size) {
        let space::Size { layout, probes, bits_per_key } = size;
        let fields = [
            "space",
            &rate.to_string(),
            layout,
            &probes.to_string(),
            &format!("{bits_per_key:.3}"),
        ];
        self.add(csv_row(&fields.into_iter().chain([""; 6]).collect::<Vec<_>>()));
    }
}
