//! Options that select the fields of records.

use clap::{ArgMatches, Args, FromArgMatches as _};
use petal_lines::{Column, Columns, Fields, JsonPointer, JsonValues, Quoting};

/// The fields that are compared, inserted or looked up.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct FieldArgs {
    /// Compare only these columns of CSV, Parquet or Arrow: names or numbers, e.g.
    /// url,lang
    #[arg(long, value_name = "LIST", value_parser = parse_columns, conflicts_with = "null")]
    column: Option<ColumnList>,
    /// The byte between columns, e.g. ';' or tab [default: from file name or first records]
    #[arg(long, value_name = "CHAR", value_parser = Columns::parse_byte)]
    separator: Option<u8>,
    /// The byte around columns, or none [default: '"', but none if tabs separate them]
    #[arg(long, value_name = "none|CHAR", value_parser = parse_quote)]
    quote: Option<Quoting>,
    /// The byte after this one has no special meaning, e.g. '\\' [default: none]
    #[arg(long, value_name = "CHAR", value_parser = Columns::parse_byte)]
    escape: Option<u8>,
    /// The first record of each input is a header [default: yes if columns have names]
    #[arg(long)]
    header: bool,
    /// Compare lines of JSON by the value at this place, e.g. /url; repeat for several
    #[arg(long, value_name = "POINTER", conflicts_with_all = ["column", "null"])]
    json_key: Vec<JsonPointer>,
}

/// How records are printed.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct RowArgs {
    /// Print only the key of each record: one field as it is, several as CSV, without
    /// a header
    #[arg(long)]
    pub(crate) keys_only: bool,
}

/// The columns of `--column`. A type of its own: clap takes a `Vec` for a repeated option.
#[derive(Clone, Debug)]
struct ColumnList(Vec<Column>);

fn parse_columns(list: &str) -> Result<ColumnList, String> {
    Columns::parse_list(list).map(ColumnList)
}

fn parse_quote(text: &str) -> Result<Quoting, String> {
    if text == "none" { Ok(Quoting::None) } else { Columns::parse_byte(text).map(Quoting::Byte) }
}

/// Returns what is wrong with the fields that a command was given.
pub(super) fn problem(matches: &ArgMatches) -> Option<String> {
    // `probe` has an option `column` of its own, whose value is text: then this lookup fails.
    matches.try_get_one::<ColumnList>("column").ok()?;
    FieldArgs::from_arg_matches(matches).ok()?.csv().check().err()
}

impl FieldArgs {
    /// Returns the fields.
    pub(crate) fn fields(&self) -> Fields {
        match &self.column {
            None if !self.json_key.is_empty() => Fields::Json(JsonValues(self.json_key.clone())),
            None => Fields::Line,
            Some(ColumnList(columns)) => {
                Fields::Columns(Columns { columns: columns.clone(), ..self.csv() })
            }
        }
    }

    /// Returns how columns are read, without their names.
    pub(crate) fn csv(&self) -> Columns {
        Columns {
            columns: Vec::new(),
            separator: self.separator,
            quoting: self.quote.unwrap_or_default(),
            escape: self.escape,
            header: self.header,
        }
    }
}
