//! `cargo x bench files`: every verb on two files of 20 million lines, compared with rivals and with performance targets.

use std::fs;

use petal_bench::args::number;
use petal_bench::corpus::{Corpus, Order};
use petal_testkit::bounds::binomial_range;

use crate::Common;
use crate::check::Answer;
use crate::columns;
use crate::runs::Comparison;
use crate::tools::Tools;
use crate::works::{
    DUCKDB_LARGE, DUCKDB_SMALL, Entry, Work, default, duckdb, engines, entry, limited,
};

const SEED: u64 = 1;

/// Every verb on two files, compared with `wc -l` and rivals
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Works to measure
    #[arg(long, value_delimiter = ',', default_values = ["build", "check", "common", "columns", "dedup", "count", "jobs"])]
    only: Vec<Work>,
    /// Lines of each file; 20 million are 2.7 GB, and as much again for answers
    #[arg(long, default_value = "20_000_000", value_parser = number)]
    lines: u64,
    /// Share of the lines that are in both files
    #[arg(long, value_name = "PERCENT", default_value = "25", value_parser = clap::value_parser!(u64).range(0..=100))]
    in_common: u64,
    /// Bytes of a line, without its line end
    #[arg(long, value_name = "BYTES", default_value = "66")]
    width: usize,
    /// Small memory limit of petal, DuckDB and `sort`, in MiB
    #[arg(long, value_name = "MIB", default_value = "128")]
    memory: u64,
    /// Rounds for petal, wc, DuckDB, and ClickHouse and polars in memory
    #[arg(long, default_value = "5")]
    runs: usize,
    /// Rounds for the slow rivals
    #[arg(long, default_value = "1")]
    rival_runs: usize,
    /// Measure petal and wc only
    #[arg(long)]
    no_rivals: bool,
    #[command(flatten)]
    common: Common,
}

pub(crate) fn run(args: &Args) -> Result<(), String> {
    let common = args.lines / 100 * args.in_common;
    let entries = Entries { lines: args.lines, common, memory_mib: args.memory };
    let corpus = Corpus::new(SEED, entries.lines, entries.common, Order::Shuffled)
        .and_then(|corpus| corpus.with_url_bytes(args.width))
        .ok_or_else(|| format!("no corpus of {} lines of {} bytes", args.lines, args.width))?;
    let name = format!("files-{}-{}-{}", entries.lines, entries.common, args.width);
    let folder = args.common.folder(&name, &corpus)?;
    // It may be of another version of petal.
    let _ = fs::remove_file(folder.join("a.petal"));
    let mut tools = Tools::find(&args.common.petal())?;
    if !args.no_rivals {
        tools.install_libraries(&args.common.dir(), &["duckdb", "clickhouse", "polars"]);
        tools.install_others(&args.common.dir())?;
    }
    let mut comparison = Comparison::new(&corpus, &folder, &tools);
    for &work in &args.only {
        if work == Work::Columns {
            columns::make_files(&folder)?;
        }
        if matches!(work, Work::Check | Work::Jobs) {
            let builds = entries.of(Work::Build);
            comparison.make_missing(&builds, [("petal", "a.petal"), ("bloom", "a.bloom")])?;
        }
        comparison.run(work, entries.of(work), args.runs, args.rival_runs)?;
    }
    comparison.finish("files")
}

/// The target false-positive rate of filters.
const FPR: f64 = 0.01;
/// The probability that the false positives of a correct filter are within the bounds.
const CONFIDENCE: f64 = 0.999;

/// The commands, for files of these sizes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entries {
    pub(crate) lines: u64,
    pub(crate) common: u64,
    /// The memory limit of petal, which DuckDB and `sort` get too.
    pub(crate) memory_mib: u64,
}

impl Entries {
    /// Returns the commands of a work. Ratios in the report are to petal's first command.
    pub(crate) fn of(self, work: Work) -> Vec<Entry> {
        let Self { lines: n, common, memory_mib: mib } = self;
        let entry =
            |tool, config: &str, command: &str, answer| entry(work, tool, config, command, answer);
        let wc = |files: &str| entry("wc", "-l", &format!("wc -l {files}"), Answer::Count(n, n));
        let (low, high) = self.hits();
        match work {
            Work::Build => {
                let build = |config, command: &str| entry("petal", config, command, Answer::Empty);
                vec![
                    wc("a.txt"),
                    build("-n", &format!("petal build -n {n} -p {FPR} -o a.petal a.txt")),
                    build("counts first", &format!("petal build -p {FPR} -o counted.petal a.txt")),
                    entry(
                        "bloom",
                        "create",
                        &format!("bloom create -n {n} -p {FPR} a.bloom < a.txt"),
                        Answer::Empty,
                    ),
                ]
            }
            Work::Check => vec![
                wc("b.txt"),
                entry("petal", "-c", "petal check -c a.petal b.txt", Answer::Count(low, high)),
                entry("petal", "prints", "petal check a.petal b.txt", Answer::Lines(low, high)),
                entry("bloom", "check", "bloom check a.bloom < b.txt", Answer::Lines(low, high)),
            ],
            Work::Common => {
                let mut entries = vec![
                    wc(BOTH),
                    default(work, "common", BOTH, Answer::Common),
                    self.petal_common(1024),
                    self.petal_common(mib),
                    self.duckdb_common(DUCKDB_LARGE),
                    self.duckdb_common(DUCKDB_SMALL),
                    self.duckdb_common(&format!("{mib}MiB")),
                ];
                entries.extend(engines(work, BOTH, &Answer::Common));
                entries.push(entry(
                    "zet",
                    "intersect",
                    "zet intersect a.txt b.txt",
                    Answer::Common,
                ));
                for memory in ["4G", &format!("{mib}M")] {
                    let config = format!("-S {memory}");
                    entries.push(entry("sort+comm", &config, &sort_comm(memory), Answer::Common));
                }
                entries
            }
            Work::Columns => columns::entries(mib),
            Work::Dedup => {
                let dedup = |mib| limited(work, mib, "dedup", "a.txt", Answer::Distinct);
                let mut entries = vec![
                    wc("a.txt"),
                    default(work, "dedup", "a.txt", Answer::Distinct),
                    dedup(1024),
                    dedup(mib),
                    duckdb(work, DUCKDB_LARGE, "a.txt", Answer::Distinct),
                    duckdb(work, DUCKDB_SMALL, "a.txt", Answer::Distinct),
                ];
                entries.extend(engines(work, "a.txt", &Answer::Distinct));
                entries.extend([
                    entry("qsv", "extdedup", "qsv extdedup a.txt out.txt", Answer::Distinct),
                    entry("zet", "union", "zet union a.txt", Answer::Distinct),
                    entry("huniq", "", "huniq < a.txt", Answer::Distinct),
                    entry("runiq", "", "runiq a.txt", Answer::Distinct),
                    entry("sort", "-u -S 4G", SORT_UNIQUE, Answer::Distinct),
                ]);
                entries
            }
            Work::Count => {
                let count = |mib| limited(work, mib, "count", BOTH, Answer::Counted);
                let mut entries = vec![
                    wc(BOTH),
                    default(work, "count", BOTH, Answer::Counted),
                    count(1024),
                    count(mib),
                    duckdb(work, DUCKDB_LARGE, BOTH, Answer::Counted),
                    duckdb(work, DUCKDB_SMALL, BOTH, Answer::Counted),
                ];
                entries.extend(engines(work, BOTH, &Answer::Counted));
                for memory in ["4G", &format!("{mib}M")] {
                    let config = format!("-S {memory}");
                    entries.push(entry("sort+uniq", &config, &sort_count(memory), Answer::Counted));
                }
                entries
            }
            Work::Jobs => {
                let build = format!("build -n {n} -p {FPR} -o jobs.petal a.txt");
                let works = [
                    ("build", build.as_str(), Answer::Empty),
                    ("check", "check -c a.petal b.txt", Answer::Count(low, high)),
                    (
                        "common",
                        "common -c -m 128M -T tmp a.txt b.txt",
                        Answer::Count(common, common),
                    ),
                    ("dedup", "dedup -c -m 1024M -T tmp a.txt", Answer::Count(n, n)),
                ];
                let both = works.iter().flat_map(|(name, command, answer)| {
                    [1, 2].map(|jobs| {
                        let command = format!("petal {command} -j {jobs}");
                        entry("petal", &format!("{name} -j {jobs}"), &command, answer.clone())
                    })
                });
                both.collect()
            }
        }
    }

    pub(crate) fn petal_common(self, memory_mib: u64) -> Entry {
        limited(Work::Common, memory_mib, "common", BOTH, Answer::Common)
    }

    pub(crate) fn duckdb_common(self, limit: &str) -> Entry {
        duckdb(Work::Common, limit, BOTH, Answer::Common)
    }

    /// The bounds of the number of lines of B that a filter of A reports: the common ones and false positives.
    fn hits(self) -> (u64, u64) {
        let (_, most) = binomial_range(self.lines - self.common, FPR, CONFIDENCE);
        (self.common, self.common + most)
    }
}

/// The second `sort` writes to `comm` directly, which saves a file.
fn sort_comm(memory: &str) -> String {
    format!(
        "export LC_ALL=C; sort -S {memory} --parallel=2 -T tmp a.txt > a.sorted && \
         sort -S {memory} --parallel=2 -T tmp b.txt | comm -12 a.sorted -"
    )
}

fn sort_count(memory: &str) -> String {
    format!("export LC_ALL=C; sort -S {memory} --parallel=2 -T tmp {BOTH} | uniq -c")
}

const BOTH: &str = "a.txt b.txt";
const SORT_UNIQUE: &str = "export LC_ALL=C; sort -u -S 4G --parallel=2 -T tmp a.txt";
