//! What is measured: the kinds of work, and the commands that do them.

use crate::check::Answer;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Work {
    Build,
    Check,
    Common,
    Columns,
    Dedup,
    Count,
    Jobs,
}

impl Work {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Build => "build",
            Self::Check => "check",
            Self::Common => "common",
            Self::Columns => "columns",
            Self::Dedup => "dedup",
            Self::Count => "count",
            Self::Jobs => "jobs",
        }
    }
}

/// A command to measure.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) work: Work,
    pub(crate) tool: &'static str,
    /// Distinguishes the commands of a tool.
    pub(crate) config: String,
    /// As typed in the folder of the files; `< FILE` at the end is the standard input.
    pub(crate) command: String,
    pub(crate) answer: Answer,
    /// The memory limit that the whole process must keep.
    pub(crate) memory_mib: Option<u64>,
    /// Whether it is so slow that it has fewer rounds.
    pub(crate) slow: bool,
}

/// The memory limits of DuckDB, besides that of petal.
pub(crate) const DUCKDB_LARGE: &str = "16GB";
pub(crate) const DUCKDB_SMALL: &str = "256MB";

pub(crate) fn entry(
    work: Work,
    tool: &'static str,
    config: &str,
    command: &str,
    answer: Answer,
) -> Entry {
    Entry {
        work,
        tool,
        config: config.to_owned(),
        command: command.to_owned(),
        answer,
        memory_mib: None,
        slow: !matches!(tool, "wc" | "petal" | "duckdb"),
    }
}

/// A command of petal without options.
pub(crate) fn default(work: Work, verb: &str, files: &str, answer: Answer) -> Entry {
    entry(work, "petal", "default", &format!("petal {verb} {files}"), answer)
}

/// A command of petal with a memory limit.
pub(crate) fn limited(work: Work, mib: u64, verb: &str, files: &str, answer: Answer) -> Entry {
    let command = format!("petal {verb} -m {mib}M -T tmp {files}");
    let entry = entry(work, "petal", &format!("-m {mib}M"), &command, answer);
    Entry { memory_mib: Some(mib), ..entry }
}

pub(crate) fn duckdb(work: Work, limit: &str, files: &str, answer: Answer) -> Entry {
    scripted(work, "duckdb", limit, files, answer)
}

/// ClickHouse and polars, each in memory, and on disk as far as it can. The first is measured as often as petal.
pub(crate) fn engines(work: Work, files: &str, answer: &Answer) -> Vec<Entry> {
    let configs = [
        ("clickhouse", "memory"),
        // Half of DuckDB's limit: only the tables of its operators are counted.
        ("clickhouse", "128MB"),
        ("polars", "memory"),
        ("polars", DUCKDB_SMALL),
    ];
    let entries = configs.map(|(tool, limit)| Entry {
        slow: limit != "memory",
        ..scripted(work, tool, limit, files, answer.clone())
    });
    entries.into()
}

/// A program in Python that has the library of this name.
fn scripted(work: Work, tool: &'static str, limit: &str, files: &str, answer: Answer) -> Entry {
    let command = format!("{tool} {} {limit} 2 tmp out.txt {files}", work.name());
    entry(work, tool, limit, &command, answer)
}
