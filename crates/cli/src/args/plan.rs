//! What `plan` takes.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use petal_lines::{Source, Verb};

use super::sets::Way;
use super::{Kind, Memory, sources};
use crate::text::{parse_count, parse_rate};

#[derive(Args, Debug)]
pub(crate) struct PlanArgs {
    /// Foretell this job on INPUTS instead of sizing a filter
    #[arg(value_name = "VERB", requires = "inputs")]
    pub(crate) verb: Option<SetVerb>,
    /// The inputs of the job, as the verb takes them; they are sampled
    #[arg(value_name = "INPUTS")]
    inputs: Vec<PathBuf>,
    /// Keys
    #[arg(short = 'n', long, value_name = "N", value_parser = parse_count, conflicts_with = "verb")]
    pub(crate) expected: Option<u64>,
    /// False-positive rate
    #[arg(short = 'p', long, value_name = "RATE", value_parser = parse_rate, conflicts_with = "verb")]
    pub(crate) fpr: Option<f64>,
    /// Memory of the filter, or cap of the job: 4G, 512M, 50%
    #[arg(short, long, value_name = "SIZE", value_parser = Memory::parse)]
    pub(crate) memory: Option<Memory>,
    /// Probes: bits set for a key
    #[arg(
        short = 'k', long, value_name = "K", conflicts_with = "verb",
        value_parser = clap::value_parser!(u32).range(1..=16),
    )]
    pub(crate) probes: Option<u32>,
    /// The type of filter, of so many keys at that rate [default: bloom, and classic beside it]
    #[arg(long = "type", value_name = "TYPE", conflicts_with_all = ["verb", "probes"])]
    pub(crate) kind: Option<Kind>,
    /// Of a job: threads to work with [default: all processors]
    #[arg(
        short, long, value_name = "N", requires = "verb",
        value_parser = clap::value_parser!(u16).range(1..),
    )]
    pub(crate) jobs: Option<u16>,
    /// Of a job: lines end in NUL instead of LF
    #[arg(short = 'z', long, requires = "verb")]
    pub(crate) null: bool,
    /// Of a job: read inputs as lines even if they look like binary files or UTF-16
    #[arg(long, requires = "verb")]
    pub(crate) text: bool,
    /// Of a job: lines are only to be counted
    #[arg(short, long, requires = "verb")]
    pub(crate) count: bool,
    #[arg(long, hide = true, value_name = "NAME", requires = "verb")]
    pub(crate) strategy: Option<Way>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl PlanArgs {
    /// The first input of the job, or all of them, and what it is compared with.
    pub(crate) fn inputs(&self) -> (Vec<Source>, Vec<Source>) {
        let first = if self.verb == Some(SetVerb::Dedup) { self.inputs.len() } else { 1 };
        let (first, others) = self.inputs.split_at(first.min(self.inputs.len()));
        (sources(first), sources(others))
    }
}

/// The verbs that are sets' own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SetVerb {
    Common,
    Diff,
    Dedup,
}

impl From<SetVerb> for Verb {
    fn from(verb: SetVerb) -> Self {
        match verb {
            SetVerb::Common => Self::Common,
            SetVerb::Diff => Self::Diff,
            SetVerb::Dedup => Self::Dedup,
        }
    }
}
