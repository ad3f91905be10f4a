//! `common` by a column of CSV files, beside whole lines on the same bytes and DuckDB.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, BufWriter, Write as _};
use std::path::Path;

use crate::check::Answer;
use crate::works::{DUCKDB_LARGE, DUCKDB_SMALL, Entry, Work, default, duckdb, entry, limited};

/// Writes `a.csv` and `b.csv`: a header, then for each line of `a.txt` and `b.txt` a record of three fields, the second
/// in quotes with a comma, the last one the line. Equal lines make equal records.
pub(crate) fn make_files(folder: &Path) -> Result<(), String> {
    for name in ["a", "b"] {
        let csv = folder.join(name).with_extension("csv");
        if !csv.exists() {
            let lines = folder.join(name).with_extension("txt");
            make_file(&lines, &csv).map_err(|e| format!("cannot make {}: {e}", csv.display()))?;
        }
    }
    Ok(())
}

fn make_file(lines: &Path, csv: &Path) -> io::Result<()> {
    let part = csv.with_extension("part");
    let mut lines = BufReader::with_capacity(1 << 20, File::open(lines)?);
    let mut out = BufWriter::with_capacity(1 << 20, File::create(&part)?);
    out.write_all(b"lang,title,url\n")?;
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 {
        let number = line.len().saturating_sub(9);
        out.write_all(b"en,\"Page ")?;
        out.write_all(&line[number..line.len() - 1])?;
        out.write_all(b", archived\",")?;
        out.write_all(&line)?;
        line.clear();
    }
    out.flush()?;
    fs::rename(&part, csv)
}

/// Returns the commands, with a memory limit for petal that DuckDB gets too.
pub(crate) fn entries(mib: u64) -> Vec<Entry> {
    let files = "a.csv b.csv";
    let whole = |entry: Entry| Entry { config: format!("lines {}", entry.config), ..entry };
    let column = |entry: Entry| Entry { config: format!("column {}", entry.config), ..entry };
    let default = |verb| default(Work::Columns, verb, files, Answer::CommonRecords);
    let limited = |mib, verb| limited(Work::Columns, mib, verb, files, Answer::CommonRecords);
    let duckdb = |limit: &str| duckdb(Work::Columns, limit, files, Answer::CommonRecords);
    vec![
        entry(Work::Columns, "wc", "-l", &format!("wc -l {files}"), Answer::Count(1, u64::MAX)),
        whole(default(LINES)),
        column(default(COLUMN)),
        whole(limited(1024, LINES)),
        column(limited(1024, COLUMN)),
        whole(limited(mib, LINES)),
        column(limited(mib, COLUMN)),
        duckdb(DUCKDB_LARGE),
        duckdb(DUCKDB_SMALL),
        duckdb(&format!("{mib}MiB")),
    ]
}

const LINES: &str = "common";
const COLUMN: &str = "common --column url";
