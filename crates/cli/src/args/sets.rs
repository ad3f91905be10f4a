//! What the set verbs take.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use petal_lines::{Source, Strategy};

use super::{Engine, Inputs, sources};
use crate::text::{parse_count, parse_rate};

/// Exact or approximate.
#[derive(Args, Debug)]
pub(crate) struct Answer {
    /// No false line and none lost, whatever the input [default]
    #[arg(long, conflicts_with = "approx")]
    exact: bool,
    /// One pass over each input, filters decide; the wrong lines to expect are told on stderr
    #[arg(long)]
    pub(crate) approx: bool,
    /// With --approx: distinct lines to plan for [default: as many as files seem to have; of a
    /// pipe nothing is known, and all of the memory is used]
    #[arg(short = 'n', long, value_name = "N", value_parser = parse_count, requires = "approx")]
    pub(crate) expected: Option<u64>,
    /// With --approx: false-positive rate to plan for [default: the best the memory allows]
    #[arg(short = 'p', long, value_name = "RATE", value_parser = parse_rate, requires = "approx")]
    pub(crate) fpr: Option<f64>,
    #[arg(long, hide = true, value_name = "NAME", conflicts_with = "approx")]
    pub(crate) strategy: Option<Way>,
    /// Print only the number of lines
    #[arg(short, long, conflicts_with = "output")]
    pub(crate) count: bool,
    /// Write to a file, which appears whole or not at all
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Write what was done as JSON: lines, candidates, passes, bytes, memory, seconds per phase
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Keep what finished phases have brought in DIR until the job is done, so that it can be
    /// resumed; records and filters go there instead of -T
    #[arg(long, value_name = "DIR", conflicts_with = "approx")]
    pub(crate) work_dir: Option<PathBuf>,
    /// Go on from the last finished phase in --work-dir, if there is one
    #[arg(long, requires = "work_dir")]
    pub(crate) resume: bool,
}

/// A strategy by name: for tests and benches.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Way {
    Memory,
    Narrow,
    Partition,
}

impl From<Way> for Strategy {
    fn from(way: Way) -> Self {
        match way {
            Way::Memory => Self::Memory,
            Way::Narrow => Self::Narrow,
            Way::Partition => Self::Partition,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct SetArgs {
    /// The input whose lines are printed, in its order
    #[arg(value_name = "A")]
    first: PathBuf,
    /// What it is compared with
    #[arg(value_name = "B", required = true)]
    others: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) answer: Answer,
    #[command(flatten)]
    pub(crate) engine: Engine,
}

impl SetArgs {
    pub(crate) fn inputs(&self) -> (Vec<Source>, Vec<Source>) {
        (sources(std::slice::from_ref(&self.first)), sources(&self.others))
    }
}

#[derive(Args, Debug)]
pub(crate) struct DedupArgs {
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    /// Write the lines that are not printed, the later appearances, to a file, in order
    #[arg(long, value_name = "FILE")]
    pub(crate) dupes_output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) answer: Answer,
    #[command(flatten)]
    pub(crate) engine: Engine,
}
