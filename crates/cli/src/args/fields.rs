//! Options that select the fields of records.

use clap::Args;
use petal_lines::{Column, Columns, Fields, JsonPointer, JsonValues};

/// The fields that are compared, inserted or looked up.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct FieldArgs {
    /// Compare only these columns of CSV, Parquet or Arrow: names or numbers, e.g.
    /// url,lang
    #[arg(long, value_name = "LIST", value_parser = parse_columns, conflicts_with = "null")]
    column: Option<ColumnList>,
    /// The byte between columns, e.g. ';' or tab [default: tab in .tsv, else ',']
    #[arg(long, value_name = "CHAR", value_parser = parse_separator, requires = "column")]
    separator: Option<u8>,
    /// The first record of each input is a header [default: if --column has a name]
    #[arg(long, requires = "column")]
    header: bool,
    /// Compare lines of JSON by the value at this place, e.g. /url; repeat for several
    #[arg(
        long, value_name = "POINTER",
        conflicts_with_all = ["column", "separator", "header", "null"],
    )]
    json_key: Vec<JsonPointer>,
}

/// How rows of Parquet and Arrow files are printed.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct RowArgs {
    /// Print only the columns of --column of Parquet or Arrow rows, one line for each
    #[arg(long, requires = "column")]
    pub(crate) keys_only: bool,
}

/// The columns of `--column`.
#[derive(Clone, Debug)]
struct ColumnList(Vec<Column>);

fn parse_columns(list: &str) -> Result<ColumnList, String> {
    Columns::parse_list(list).map(ColumnList)
}

fn parse_separator(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        b"\"" | b"\n" | b"\r" => Err("a quote or a line end cannot separate columns".to_owned()),
        [byte] => Ok(*byte),
        _ => Err("expected one byte, e.g. ';' or tab".to_owned()),
    }
}

impl FieldArgs {
    /// Returns the fields.
    pub(crate) fn fields(&self) -> Fields {
        let Self { column, separator, header, json_key } = self;
        match column {
            None if !json_key.is_empty() => Fields::Json(JsonValues(json_key.clone())),
            None => Fields::Line,
            Some(ColumnList(columns)) => Fields::Columns(Columns {
                columns: columns.clone(),
                separator: *separator,
                header: *header,
            }),
        }
    }
}
