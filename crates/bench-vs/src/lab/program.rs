//! The command `cargo x lab`: each way in a process of its own, so that its memory is its own, then the claims.

use std::path::PathBuf;
use std::process::Command;

use petal_bench::args::number;
use petal_bench::machine::Machine;
use petal_bench::paths::root;

use super::databases::postgres_programs;
use super::measure::{Measured, measure};
use super::rows::{HEADER, Row};
use super::ways::{Places, WAYS, Way};
use super::{claims, page};

/// The numbers of URLs if none is given.
static DEFAULT_KEYS: [u64; 1] = [1_000_000];
/// Rows of fewer URLs are not kept.
const KEPT_FROM: u64 = 1_000_000;
/// The number of URLs of the claims, unless fewer are given.
const CLAIMS: u64 = 1_000_000;
/// Selects the claims.
const CLAIMS_NAME: &str = "claims";

/// Arguments of the command.
#[derive(Clone, Debug, clap::Args)]
pub struct LabArgs {
    /// Number of URLs, for example 1e7; what does not fit in memory is left out [default: 1e6]
    #[arg(long, value_name = "N", value_parser = number, action = clap::ArgAction::Append)]
    keys: Vec<u64>,
    /// Measure only the ways whose name contains this text, or `claims`; may be repeated
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// Measure nothing; write the tables of docs/uses/lab.md from the newest rows
    #[arg(long)]
    page: bool,
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
/// A sentence.
pub fn run(args: &LabArgs, progress: &dyn Fn(&str)) -> Result<String, String> {
    if args.page {
        return Ok(format!("wrote {}\n", page::write(&root())?.display()));
    }
    let temp = args.temp_dir.clone().unwrap_or_else(|| root().join("target/lab"));
    std::fs::create_dir_all(&temp).map_err(|e| format!("{}: {e}", temp.display()))?;
    let peers = std::env::var_os("PETAL_PEERS").map_or(root().join("target/peers"), PathBuf::from);
    let places = Places { temp, postgres: postgres_programs(&peers) };
    let sizes = if args.keys.is_empty() { &DEFAULT_KEYS[..] } else { &args.keys[..] };
    if let Some(&few) = sizes.iter().find(|&&keys| keys < 10_000) {
        return Err(format!("--keys {few}: the minimum is 10000"));
    }
    if let Some(name) = &args.way {
        let way = Way::named(name).ok_or_else(|| format!("no way {name:?}"))?;
        return Ok(written(&measure(way, sizes[0], &places)?));
    }
    let machine = Machine::read();
    let mut text = format!("{}\n", machine.line());
    for &keys in sizes {
        let rows = all_ways(args, keys, &places, progress)?;
        text += &keep(args, &machine, keys, &rows)?;
        text += &page::plain(keys, &rows);
    }
    if args.only.is_empty() || args.only.iter().any(|name| name == CLAIMS_NAME) {
        let keys = sizes[0].min(CLAIMS);
        progress(&format!("{keys} URLs: claims"));
        let rows = claims::measure(keys)?;
        text += &keep(args, &machine, keys, &rows)?;
        text += &page::plain_claims(keys, &rows);
    }
    Ok(text)
}

/// Measures the selected ways.
fn all_ways(
    args: &LabArgs,
    keys: u64,
    places: &Places,
    progress: &dyn Fn(&str),
) -> Result<Vec<Row>, String> {
    let is_selected =
        |way: &Way| args.only.is_empty() || args.only.iter().any(|text| way.name.contains(text));
    let mut rows = Vec::new();
    for way in WAYS.into_iter().filter(is_selected) {
        if let Some(reason) = way.left_out(keys, places) {
            progress(&format!("{keys} URLs: {}: left out: {reason}", way.name));
            continue;
        }
        progress(&format!("{keys} URLs: {}", way.name));
        rows.extend(Row::of_way(way.name, keys, &in_own_process(way, keys, places)?));
    }
    Ok(rows)
}

/// Starts this program again for one way.
fn in_own_process(way: Way, keys: u64, places: &Places) -> Result<Measured, String> {
    let failed = |e: std::io::Error| format!("cannot measure {}: {e}", way.name);
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    command.args(["--way", way.name, "--keys", &keys.to_string()]);
    command.arg("--temp-dir").arg(&places.temp);
    // A fixed threshold: freed buffers are unmapped, and are not counted as memory of the set.
    command.env("MALLOC_MMAP_THRESHOLD_", "131072");
    let output = command.stderr(std::process::Stdio::inherit()).output().map_err(failed)?;
    if !output.status.success() {
        return Err(format!("cannot measure {} ({})", way.name, output.status));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    read(text.trim()).ok_or_else(|| format!("cannot measure {}: no figures in {text:?}", way.name))
}

/// The figures as a line of text.
fn written(measured: &Measured) -> String {
    let Measured { insert_ns, query_ns, memory_bytes, peak_bytes, disk_bytes, .. } = measured;
    let (positives, negatives) = (measured.false_positives, measured.false_negatives);
    let Measured { survives_restart, deletes, .. } = measured;
    format!(
        "{insert_ns} {query_ns} {memory_bytes} {peak_bytes} {disk_bytes} {} {} {} {} {survives_restart} {deletes}\n",
        positives.0, positives.1, negatives.0, negatives.1
    )
}

fn read(line: &str) -> Option<Measured> {
    let fields: Vec<&str> = line.split(' ').collect();
    let [insert, query, memory, peak, disk, wrong, new, lost, seen, survives, deletes] = fields[..]
    else {
        return None;
    };
    Some(Measured {
        insert_ns: insert.parse().ok()?,
        query_ns: query.parse().ok()?,
        memory_bytes: memory.parse().ok()?,
        peak_bytes: peak.parse().ok()?,
        disk_bytes: disk.parse().ok()?,
        false_positives: (wrong.parse().ok()?, new.parse().ok()?),
        false_negatives: (lost.parse().ok()?, seen.parse().ok()?),
        survives_restart: survives.parse().ok()?,
        deletes: deletes.parse().ok()?,
    })
}

/// Appends rows to today's result file, and returns a line about it.
fn keep(args: &LabArgs, machine: &Machine, keys: u64, rows: &[Row]) -> Result<String, String> {
    if keys < KEPT_FROM || rows.is_empty() {
        return Ok(String::new());
    }
    let only: String = args.only.iter().map(|text| format!(" --only {text:?}")).collect();
    let command = format!("cargo x lab --keys {keys}{only}");
    let fields: Vec<_> = rows.iter().map(|row| row.fields(machine, &command)).collect();
    let file = machine.save("lab", &HEADER, &fields)?;
    Ok(format!("rows are in {}\n", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_back_as_they_were_written() {
        let measured = Measured {
            insert_ns: 12.5,
            query_ns: 0.25,
            memory_bytes: 1,
            peak_bytes: 7,
            disk_bytes: 2,
            false_positives: (3, 4),
            false_negatives: (0, 6),
            survives_restart: true,
            deletes: false,
        };
        assert_eq!(read(written(&measured).trim()), Some(measured));
        assert_eq!(read("1 2 3"), None);
    }
}
