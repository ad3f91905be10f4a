//! Arguments of the commands that read filters of other programs.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use petal_interop::{Format, KeyType};

/// The format of a filter file.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct FormatArg {
    /// Format of the file [default: detected from its bytes]
    #[arg(
        id = "format", long = "format", value_name = "FORMAT", value_parser = formats(),
        hide_possible_values = true,
    )]
    pub(crate) name: Option<Format>,
}

/// The format of a filter file and the type of its keys.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct ForeignArgs {
    #[command(flatten)]
    pub(crate) format: FormatArg,
    /// How the other program encodes a line as a key [default: text]
    #[arg(long, alias = "as", value_name = "TYPE", value_parser = key_types())]
    pub(crate) key_type: Option<KeyType>,
}

/// Lines that must be in a filter.
#[derive(Args, Clone, Debug)]
pub(crate) struct AssertMembers {
    /// Stop unless all lines of FILE are in the filter, to detect a wrong
    /// --key-type or --format
    #[arg(
        id = "assert_members",
        long = "assert-members",
        alias = "probe-known",
        value_name = "FILE"
    )]
    pub(crate) file: Option<PathBuf>,
}

pub(super) fn formats() -> impl TypedValueParser<Value = Format> {
    let names = Format::ALL.map(Format::name);
    let unknown = "no such format"; // The parser has refused it before.
    PossibleValuesParser::new(names).try_map(move |name| Format::from_name(&name).ok_or(unknown))
}

pub(super) fn key_types() -> impl TypedValueParser<Value = KeyType> {
    let names = KeyType::ALL.map(KeyType::name);
    PossibleValuesParser::new(names)
        .try_map(|name| KeyType::from_name(&name).ok_or("no such key type"))
}
