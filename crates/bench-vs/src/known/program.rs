//! The command `cargo x bench known`: each set in a process of its own, so that its memory is its own.

use std::path::{Path, PathBuf};

use petal_bench::args::number;
use petal_bench::machine::Machine;
use petal_bench::paths::root;

use super::measure::measure;
use super::sets::{Cascade, Club, Dcso, Fuse8, Poppy, Static};
use crate::rows::{Row, lines, of_own_process};

/// The numbers of members if none is given. Rows of fewer are not kept.
const DEFAULT_KEYS: u64 = 10_000_000;

/// Measures a set with these numbers of members and of known non-members.
type Measure = fn(&str, u64, u64, &Path) -> Result<Vec<Row>, String>;

/// The sets, by name.
const SETS: [(&str, Measure); 8] = [
    ("petal static", measure::<Static<false>>),
    ("petal static-fuse", measure::<Static<true>>),
    ("poppy v2", measure::<Poppy<false>>),
    ("poppy v2 speed", measure::<Poppy<true>>),
    ("poppy v1 (DCSO)", measure::<Dcso>),
    ("xorf BinaryFuse8", measure::<Fuse8>),
    ("petal cascade", measure::<Cascade>),
    ("clubcard", measure::<Club>),
];

/// Measures sets of known keys at a rate of 0.78 %: petal's static filters, poppy, xorf; and with known non-members
/// petal's cascade and clubcard
#[derive(Clone, Debug, clap::Parser)]
#[command(name = "cargo x bench known", bin_name = "cargo x bench known")]
pub struct Args {
    /// Number of members; rows are kept from 1e7 on, and printed [default: 1e7]
    #[arg(long, value_name = "N", value_parser = number, action = clap::ArgAction::Append)]
    keys: Vec<u64>,
    /// Known non-members of each member
    #[arg(long, value_name = "N", value_parser = number, default_value = "100")]
    others: u64,
    /// Measure only the sets whose name contains this text; may be repeated
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// Folder for filter files [default: target/known]
    #[arg(long, value_name = "DIR")]
    temp_dir: Option<PathBuf>,
    /// Measure one set in this process and print its figures.
    #[arg(long, hide = true)]
    set: Option<String>,
}

/// Runs the command and returns the text to print.
///
/// # Errors
/// If a set cannot be measured, or rows cannot be written.
pub fn run(args: &Args, progress: &dyn Fn(&str)) -> Result<String, String> {
    let temp = args.temp_dir.clone().unwrap_or_else(|| root().join("target/known"));
    std::fs::create_dir_all(&temp).map_err(|e| format!("{}: {e}", temp.display()))?;
    let sizes = if args.keys.is_empty() { &[DEFAULT_KEYS][..] } else { &args.keys };
    if sizes.contains(&0) {
        return Err("--keys 0: the minimum is 1".into());
    }
    if let Some(name) = &args.set {
        let set = SETS.iter().find(|(set, _)| set == name);
        let (name, measure) = set.ok_or_else(|| format!("--set {name:?}: no such set"))?;
        return measure(name, sizes[0], sizes[0].saturating_mul(args.others), &temp)
            .map(|rows| lines(&rows));
    }
    let machine = Machine::read();
    let mut text = format!("{}\n", machine.line());
    let others = args.others.to_string();
    for &keys in sizes {
        let mut rows = Vec::new();
        for (name, _) in SETS {
            if args.only.is_empty() || args.only.iter().any(|text| name.contains(text.as_str())) {
                progress(&format!("{keys} keys: {name}"));
                let set = ["--set", name, "--others", &others];
                rows.extend(of_own_process(name, keys, &set, &temp)?);
            }
        }
        if keys >= DEFAULT_KEYS && !rows.is_empty() {
            let only: String = args.only.iter().map(|text| format!(" --only {text:?}")).collect();
            let command = format!("cargo x bench known --keys {keys} --others {others}{only}");
            let fields: Vec<_> = rows.iter().map(|row| row.fields(&command)).collect();
            text += &format!("rows are in {}\n", machine.save("known", &fields)?.display());
        }
        for Row { case, size, figure, value, unit } in &rows {
            text += &format!("{size:>10} keys, {case:<18} {figure:<28} {value:>14.4} {unit}\n");
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Wrong answers are errors.
    #[test]
    fn every_set_is_measured_and_has_its_size() {
        let temp = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/known-test");
        std::fs::create_dir_all(&temp).unwrap();
        for (name, measure) in SETS {
            let rows = measure(name, 5_000, 320_000, &temp).unwrap();
            let figure = |figure: &str| rows.iter().find(|row| row.figure == figure);
            let value = |name: &str| figure(name).unwrap().value;
            assert!((7.0..20.0).contains(&value("size")), "{name}: {rows:?}");
            assert!(value("build") > 1.0 && value("present") > 1.0, "{name}: {rows:?}");
            let rate = value("false positives");
            assert!((0.001..0.0090).contains(&rate), "{name}: {rate}");
            let is_petal = name.starts_with("petal");
            assert_eq!(figure("present, in batches").is_some(), is_petal, "{name}");
            assert_eq!(figure("cold: page faults").is_some(), is_petal, "{name}");
            let has_file = is_petal || name.starts_with("poppy");
            assert_eq!(figure("cold: open and first query").is_some(), has_file, "{name}");
        }
    }
}
