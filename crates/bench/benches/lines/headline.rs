//! `cargo x bench headline`: the exact headline at scale, compared with DuckDB.
//!
//! The full job is two files of 5 billion URLs and 4 GiB of memory. At scale S both are divided by S, which keeps the
//! memory per line: `--scale 100` is two files of 50 million lines and 41 MiB, `--scale 20` two of 250 million and
//! 205 MiB. DuckDB is measured at scales of 100 and more, with two memory limits.

use petal_bench::corpus::{Corpus, Order};

use crate::Common;
use crate::files::Entries;
use crate::runs::Comparison;
use crate::tools::Tools;
use crate::works::Work;

const FULL_LINES: u64 = 5_000_000_000;
const FULL_MEMORY_MIB: u64 = 4_096;
const MIN_MEMORY_MIB: u64 = 8;
const SEED: u64 = 1;
const DUCKDB_LIMITS: [&str; 2] = ["256MB", "512MB"];

/// The lines that two files have in common, at scale, compared with DuckDB
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Divide 5 billion lines and 4 GiB by this; scale 100 needs 12 GB of disk, scale 20 needs 60 GB
    #[arg(long, default_value = "100", value_parser = clap::value_parser!(u64).range(1..))]
    scale: u64,
    /// Rounds [default: 3; 1 below scale 100]
    #[arg(long)]
    runs: Option<usize>,
    /// Leave the rival out
    #[arg(long)]
    no_duckdb: bool,
    #[command(flatten)]
    common: Common,
}

pub(crate) fn run(args: &Args) -> Result<(), String> {
    let lines = FULL_LINES / args.scale;
    let memory = FULL_MEMORY_MIB.div_ceil(args.scale).max(MIN_MEMORY_MIB);
    let corpus =
        Corpus::new(SEED, lines, lines / 10, Order::Shuffled).ok_or("this scale has no lines")?;
    let rivals = !args.no_duckdb && args.scale >= 100;
    let runs = args.runs.unwrap_or(if args.scale >= 100 { 3 } else { 1 });
    let folder = args.common.folder(&format!("scale-{}", args.scale), &corpus)?;
    let mut tools = Tools::find(&args.common.petal())?;
    if rivals {
        tools.install_libraries(&args.common.dir(), &["duckdb"]);
    }
    let entries = Entries { lines, common: lines / 10, memory_mib: memory };
    let limits = DUCKDB_LIMITS.map(|limit| entries.duckdb_common(limit));
    let entries = [entries.petal_common(memory)].into_iter().chain(limits).collect();
    let mut comparison = Comparison::new(&corpus, &folder, &tools);
    comparison.run(Work::Common, entries, runs, runs)?;
    comparison.finish("headline")
}
