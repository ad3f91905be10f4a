//! What the bench programs have in common: their arguments, the contests they hold, and where rows go.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::Contestant;
use super::rounds::{self, Plan};
use super::rows::{HEADER, Row, table};
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
}

/// A bench program.
pub struct Program {
    /// The name of its rows.
    pub suite: &'static str,
    /// What starts it, without arguments.
    pub command: &'static str,
    /// Numbers of keys of a whole run.
    pub numbers: &'static [u64],
    /// Who takes part for a number of keys.
    pub contestants: fn(u64) -> Result<Vec<Contestant>, String>,
}

impl Program {
    /// Holds a contest for each number of keys. Rows of a whole run go to today's file; the text that is returned has all
    /// others, and a table for each number. What the targets come to is `cargo x figures`' business.
    ///
    /// # Errors
    /// A sentence: about arguments, a filter that cannot be, a wrong answer, or the file.
    pub fn run(&self, args: &[String], tell: &dyn Fn(&str)) -> Result<String, String> {
        let options = Options::read(args, self.numbers)?;
        let (mut all, mut tables) = (Vec::new(), String::new());
        for &keys in &options.numbers {
            let mut contestants = (self.contestants)(keys)?;
            let plan = Plan::new(keys, options.quick);
            let rows = rounds::run(self.suite, plan, &mut contestants, tell)?;
            tables += &format!("\n{keys} keys\n{}", table(&rows));
            all.extend(rows);
        }
        let rows =
            put(options.keep, ("", "cargo x bench"), &command(self.command, args), &all, tell)?;
        Ok(rows + &tables)
    }
}

/// The command that was given, without what cargo adds to it.
pub fn command(program: &str, args: &[String]) -> String {
    let said = args.iter().map(String::as_str).filter(|&arg| arg != "--bench");
    [program].into_iter().chain(said).collect::<Vec<_>>().join(" ")
}

/// Rows as CSV: into `results/<arch>-<cpu>/<date><suffix>.csv` if they are kept, with the command that makes such a file at
/// its head; else returned.
///
/// # Errors
/// A sentence, if the file cannot be written.
pub fn put(
    keep: Option<Keep>,
    (suffix, whole): (&str, &str),
    command: &str,
    rows: &[Row],
    tell: &dyn Fn(&str),
) -> Result<String, String> {
    let machine = Machine::read();
    let body: String = rows.iter().map(Row::csv).collect();
    let head = |command: &str| {
        let Machine { description, rustc, commit, date, .. } = &machine;
        let facts = format!("# {description}; rustc {rustc}; commit {commit}; {date}");
        format!("{facts}\n# {command}\n{}", csv_row(&HEADER))
    };
    let Some(keep) = keep else {
        return Ok(head(command) + &body);
    };
    let file = format!("{}{suffix}.csv", machine.date);
    let file = PathBuf::from("results").join(&machine.slug).join(file);
    write(keep, &root().join(&file), &head(whole), &body)
        .map_err(|e| format!("cannot write {}: {e}", file.display()))?;
    tell(&format!("rows are in {}", file.display()));
    Ok(String::new())
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

#[cfg(test)]
mod tests {
    use petal::Kernel;

    use super::super::petal::Model;
    use super::super::{Form, Kind};
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
    fn printed_rows_have_a_head_and_the_command() {
        let program = Program {
            suite: "test",
            command: "cargo x bench test",
            numbers: &[1_000_000],
            contestants: |keys| {
                let model = Model::Rate(0.01);
                Ok(vec![model.contestant(keys, Kind::Hash, Form::Batch, Kernel::Portable)?])
            },
        };
        let args = ["--quick", "10000", "--bench"].map(str::to_owned);
        let text = program.run(&args, &|_| ()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("# "), "{text}");
        assert_eq!(lines[1], "# cargo x bench test --quick 10000");
        assert!(lines[2].starts_with("suite,n,filter,target_rate,bits_per_key,"), "{text}");
        assert!(lines[3].starts_with("test,10000,petal 1 %,0.01,"), "{text}");
    }
}
