//! What the bench programs have in common: their arguments, and where their rows go.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::rounds::Plan;
use super::rows::{HEADER, Row};
use crate::machine::Machine;
use crate::place::root;
use crate::summary::csv_row;

/// What a program is told.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Numbers of keys.
    pub numbers: Vec<u64>,
    /// Few rounds, and few keys unless numbers are given.
    pub quick: bool,
    /// Whether rows are kept, and how. Without, they are printed.
    pub keep: Option<Keep>,
}

/// What happens to today's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// It is begun anew.
    New,
    /// Rows go to its end.
    Add,
}

/// The least number of keys: below, a turn is too short for a clock.
const LEAST: u64 = 10_000;

impl Options {
    /// Reads arguments: numbers of keys, `--quick`, and `--keep new` or `--keep add`, which `cargo x bench` says.
    ///
    /// # Errors
    /// A sentence.
    pub fn read(args: &[String], numbers: &[u64]) -> Result<Self, String> {
        let mut options = Self { numbers: Vec::new(), quick: false, keep: None };
        let mut args = args.iter().map(String::as_str);
        while let Some(arg) = args.next() {
            match arg {
                // What `cargo bench` adds to what it is given.
                "--bench" => {}
                "--quick" => options.quick = true,
                "--keep" => {
                    options.keep = match args.next() {
                        Some("new") => Some(Keep::New),
                        Some("add") => Some(Keep::Add),
                        _ => return Err("--keep wants new or add".into()),
                    }
                }
                _ => {
                    let number = arg.replace('_', "").parse().ok().filter(|&keys| keys >= LEAST);
                    options.numbers.push(number.ok_or_else(|| {
                        format!("not a number of keys from {LEAST} up: {arg} (see --help)")
                    })?);
                }
            }
        }
        if options.numbers.is_empty() {
            options.numbers = if options.quick { vec![100_000] } else { numbers.to_vec() };
        }
        if options.keep.is_some() && (options.quick || options.numbers != numbers) {
            return Err("only a whole run is kept".into());
        }
        Ok(options)
    }

    /// What is to be done for each number of keys.
    pub fn plans(&self) -> impl Iterator<Item = Plan> {
        self.numbers.iter().map(|&keys| Plan::new(keys, self.quick))
    }

    /// Rows as CSV: the text of a new file or the end of today's, `results/<arch>-<cpu>/<date>.csv`, or the text to be
    /// printed. Returns the file's path below the root, or the text.
    ///
    /// # Errors
    /// A sentence, if the file cannot be written.
    pub fn put(&self, command: &str, rows: &[Row]) -> Result<Kept, String> {
        let machine = Machine::read();
        let body: String = rows.iter().map(Row::csv).collect();
        let head = format!(
            "# {}; rustc {}; commit {}; {}\n# {command}\n{}",
            machine.description,
            machine.rustc,
            machine.commit,
            machine.date,
            csv_row(&HEADER)
        );
        let Some(keep) = self.keep else {
            return Ok(Kept::Text(head + &body));
        };
        let file =
            PathBuf::from("results").join(&machine.slug).join(format!("{}.csv", machine.date));
        write(keep, &root().join(&file), &head, &body)
            .map_err(|e| format!("cannot write {}: {e}", file.display()))?;
        Ok(Kept::File(file))
    }
}

/// A file with a head has one, whatever comes first: after midnight there is none to add to.
fn write(keep: Keep, file: &Path, head: &str, body: &str) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    if keep == Keep::Add && file.exists() {
        File::options().append(true).open(file)?.write_all(body.as_bytes())
    } else {
        fs::write(file, head.to_owned() + body)
    }
}

/// Where rows went.
#[derive(Clone, Debug)]
pub enum Kept {
    /// Into this file, below the root.
    File(PathBuf),
    /// Nowhere yet: this is to be printed.
    Text(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(args: &[&str]) -> Result<Options, String> {
        let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
        Options::read(&args, &[100_000, 1_000_000])
    }

    #[test]
    fn arguments() {
        let whole = read(&["--bench", "--keep", "add"]).unwrap();
        assert_eq!((whole.numbers.len(), whole.keep), (2, Some(Keep::Add)));
        assert_eq!(read(&["50_000_000", "--bench"]).unwrap().numbers, [50_000_000]);
        assert_eq!(read(&["--quick"]).unwrap().numbers, [100_000]);
        assert_eq!(read(&["--quick", "20000"]).unwrap().numbers, [20_000]);
    }

    #[test]
    fn what_is_not_understood_is_said() {
        for args in [&["9"][..], &["many"], &["--keep"], &["--keep", "new", "--quick"]] {
            assert!(read(args).is_err(), "{args:?}");
        }
    }

    #[test]
    fn a_file_is_begun_anew_or_added_to_and_always_has_one_head() {
        let scratch = petal_testkit::scratch::Scratch::new();
        let file = scratch.file("slug/2000-01-01.csv");
        let text = || fs::read_to_string(&file).unwrap();
        write(Keep::Add, &file, "head\n", "1\n").unwrap();
        assert_eq!(text(), "head\n1\n");
        write(Keep::New, &file, "head\n", "2\n").unwrap();
        write(Keep::Add, &file, "head\n", "3\n").unwrap();
        assert_eq!(text(), "head\n2\n3\n");
    }

    #[test]
    fn printed_rows_have_a_head() {
        let Kept::Text(text) = read(&[]).unwrap().put("cargo x bench", &[]).unwrap() else {
            panic!("kept");
        };
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("# ") && lines[1] == "# cargo x bench", "{text}");
        assert!(lines[2].starts_with("suite,n,filter,target_rate,bits_per_key,"), "{text}");
    }
}
