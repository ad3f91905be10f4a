//! The command `cargo x lab`: each way in a process of its own, so that its memory is its own, then the claims.

use std::path::PathBuf;

use petal_bench::args::number;
use petal_bench::machine::Machine;
use petal_bench::paths::root;

use super::claims;
use super::databases::postgres_programs;
use super::measure::measure;
use super::ways::{Places, WAYS, Way};
use crate::rows::{Row, lines, of_own_process};

/// The numbers of URLs if none is given.
static DEFAULT_KEYS: [u64; 1] = [1_000_000];
/// Rows of fewer URLs are not kept.
const KEPT_FROM: u64 = 1_000_000;
/// The number of URLs of the claims, unless fewer are given.
const CLAIMS_KEYS: u64 = 1_000_000;
/// The figures in the printed table, in the order of their rows.
const SHOWN: [&str; 7] =
    ["insert", "query", "memory", "disk", "false positives", "survives a restart", "deletes"];
/// What `--only` selects the claims with.
const ONLY_CLAIMS: &str = "claims";

/// Measures ways to remember which URLs were seen: databases, sets, bitmaps, filters. About two minutes by default
#[derive(Clone, Debug, clap::Parser)]
#[command(name = "cargo x lab", bin_name = "cargo x lab")]
#[command(after_help = "Example: cargo x lab --keys 1e6 --keys 1e7")]
pub struct Args {
    /// Number of URLs, for example 1e7; what does not fit in memory is left out [default: 1e6]
    #[arg(long, value_name = "N", value_parser = number, action = clap::ArgAction::Append)]
    keys: Vec<u64>,
    /// Measure only the ways whose name contains this text, or `claims`; may be repeated
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// Folder for databases [default: target/lab]
    #[arg(long, value_name = "DIR")]
    temp_dir: Option<PathBuf>,
    /// Measure one way in this process and print its figures.
    #[arg(long, hide = true)]
    way: Option<String>,
}

/// Runs the command and returns the text to print.
///
/// # Errors
/// If a way cannot be measured, or rows cannot be written.
pub fn run(args: &Args, progress: &dyn Fn(&str)) -> Result<String, String> {
    let temp = args.temp_dir.clone().unwrap_or_else(|| root().join("target/lab"));
    std::fs::create_dir_all(&temp).map_err(|e| format!("{}: {e}", temp.display()))?;
    let peers = std::env::var_os("PETAL_PEERS").map_or(root().join("target/peers"), PathBuf::from);
    let places = Places { temp, postgres: postgres_programs(&peers) };
    let sizes = if args.keys.is_empty() { &DEFAULT_KEYS[..] } else { &args.keys[..] };
    if let Some(&few) = sizes.iter().find(|&&keys| keys < 10_000) {
        return Err(format!("--keys {few}: the minimum is 10000"));
    }
    if let Some(name) = &args.way {
        let way = Way::named(name)
            .ok_or_else(|| format!("--way {name:?}: no such way to remember URLs"))?;
        return Ok(lines(&measure(way, sizes[0], &places)?.rows(way, sizes[0])));
    }
    let machine = Machine::read();
    let mut text = format!("{}\n", machine.line());
    for &keys in sizes {
        let rows = measure_ways(args, keys, &places, progress)?;
        text += &save_rows(args, &machine, keys, &rows)?;
        text += &table(keys, &rows);
    }
    if args.only.is_empty() || args.only.iter().any(|name| name == ONLY_CLAIMS) {
        let keys = sizes[0].min(CLAIMS_KEYS);
        progress(&format!("{keys} URLs: claims"));
        let rows = claims::measure(keys)?;
        text += &save_rows(args, &machine, keys, &rows)?;
        for row in rows.iter().filter(|row| row.unit == "of new URLs") {
            let Row { case, size, figure, value, .. } = row;
            text += &format!("{size:>8} URLs, {case:<48} {figure:<20} {value:.7}\n");
        }
    }
    Ok(text)
}

/// Measures the selected ways.
fn measure_ways(
    args: &Args,
    keys: u64,
    places: &Places,
    progress: &dyn Fn(&str),
) -> Result<Vec<Row>, String> {
    let is_selected =
        |way: &Way| args.only.is_empty() || args.only.iter().any(|text| way.name.contains(text));
    let mut rows = Vec::new();
    for way in WAYS.into_iter().filter(is_selected) {
        if let Some(reason) = way.skip_reason(keys, places) {
            progress(&format!("{keys} URLs: {}: left out: {reason}", way.name));
            continue;
        }
        progress(&format!("{keys} URLs: {}", way.name));
        let args = ["--way", way.name];
        rows.extend(of_own_process(way.name, keys, &args, &places.temp)?);
    }
    Ok(rows)
}

/// Returns the figures of the ways as text for a terminal.
fn table(keys: u64, rows: &[Row]) -> String {
    let mut text = format!("\n{:<36}", format!("{keys} URLs"));
    for figure in SHOWN {
        text += &format!(" {figure:>18}");
    }
    for way in WAYS {
        let figures = rows.iter().filter(|row| row.case == way.name);
        for (number, row) in figures.filter(|row| SHOWN.contains(&&*row.figure)).enumerate() {
            if number == 0 {
                text += &format!("\n{:<36}", way.name);
            }
            text += &format!(" {:>18.2}", row.value);
        }
    }
    text + "\n"
}

/// Appends rows to today's result file, and returns a line about it.
fn save_rows(args: &Args, machine: &Machine, keys: u64, rows: &[Row]) -> Result<String, String> {
    if keys < KEPT_FROM || rows.is_empty() {
        return Ok(String::new());
    }
    let only: String = args.only.iter().map(|text| format!(" --only {text:?}")).collect();
    let command = format!("cargo x lab --keys {keys}{only}");
    let fields: Vec<_> = rows.iter().map(|row| row.fields(&command)).collect();
    let file = machine.save("lab", &fields)?;
    Ok(format!("rows are in {}\n", file.display()))
}
