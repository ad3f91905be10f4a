//! What verbs take that know filters of other programs.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use petal_interop::{Format, KeyForm};

/// Which program's filter a file is.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Written {
    /// Whose format the file has [default: petal's own, or another that is recognised]
    #[arg(long, value_name = "FORMAT", value_parser = formats(), hide_possible_values = true)]
    pub(crate) format: Option<Format>,
}

/// Which program's filter a file is, and what its keys are.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Foreign {
    #[command(flatten)]
    pub(crate) written: Written,
    /// What lines are as keys of another program's filter [default: text]
    #[arg(long = "as", value_name = "FORM", value_parser = forms())]
    pub(crate) form: Option<KeyForm>,
}

/// Lines that are known to be in a filter.
#[derive(Args, Clone, Debug)]
pub(crate) struct Known {
    /// Go on only if every line of FILE is in the filter: guards against a wrong --as or --format
    #[arg(long, value_name = "FILE")]
    pub(crate) probe_known: Option<PathBuf>,
}

pub(super) fn formats() -> impl TypedValueParser<Value = Format> {
    let names = Format::ALL.map(Format::name);
    let unknown = "no such format"; // The parser has refused it before.
    PossibleValuesParser::new(names).try_map(move |name| Format::from_name(&name).ok_or(unknown))
}

pub(super) fn forms() -> impl TypedValueParser<Value = KeyForm> {
    let names = KeyForm::ALL.map(KeyForm::name);
    PossibleValuesParser::new(names)
        .try_map(|name| KeyForm::from_name(&name).ok_or("no such form of keys"))
}
