//! `languages`: the Rust side of `cargo x bench languages`.
#![allow(clippy::print_stdout, reason = "a command-line tool")]

use std::fs::{self, File};
use std::io::BufReader;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use petal::{AnyFilter, Kernel};
use petal_bench::args;
use petal_bench::machine::Machine;
use rustix::time::{ClockId, clock_gettime};

const ROUNDS: usize = 5;

#[derive(Parser)]
enum Args {
    /// Prints the machine columns of a row
    Machine,
    /// Times single queries of `TYPE.petal` with the keys of `present.txt` and `absent.txt`
    Run {
        kernel: String,
        #[arg(value_name = "TYPE")]
        filter_type: String,
        folder: PathBuf,
    },
}

fn main() -> ExitCode {
    args::main(|args| run(args).map_err(|problem| problem.to_string()))
}

fn run(args: Args) -> Result<(), Box<dyn std::error::Error>> {
    let Args::Run { kernel, filter_type, folder } = args else {
        let Machine { slug, description, rustc, commit, date } = Machine::read();
        println!("{slug}\n{description}\n{rustc}\n{commit}\n{date}");
        return Ok(());
    };
    if kernel == "portable" {
        Kernel::Portable.force();
    }
    let file = File::open(folder.join(filter_type + ".petal"))?;
    let (filter, _) = AnyFilter::read_from(BufReader::new(file))?;
    for name in ["present", "absent"] {
        measure(name, &filter, &fs::read(folder.join(format!("{name}.txt")))?);
    }
    Ok(())
}

/// Prints the median time of a query, and the number of keys found. The keys are one after the other, as in C.
fn measure(name: &str, filter: &AnyFilter, lines: &[u8]) {
    let (mut bytes, mut starts) = (Vec::new(), vec![0]);
    for line in lines.trim_ascii_end().split(|byte| *byte == b'\n') {
        bytes.extend_from_slice(line);
        starts.push(bytes.len());
    }
    let ask = || {
        let start = cpu_ns();
        let mut found = 0;
        for ends in starts.windows(2) {
            found += u64::from(filter.contains(&bytes[ends[0]..ends[1]]));
        }
        ((cpu_ns() - start) / (starts.len() - 1) as f64, found)
    };
    let (_, found) = ask();
    let mut times: Vec<f64> = (0..ROUNDS).map(|_| ask().0).collect();
    times.sort_by(f64::total_cmp);
    println!("{name} {:.3} {found}", times[ROUNDS / 2]);
}

/// Returns the CPU time of this process.
fn cpu_ns() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}
