//! The arguments and the result files that all filter benchmarks share.

use super::rows::{Row, table};
use super::{Case, RunPlan, rounds};
use crate::args::number;
use crate::machine::{Fields, Machine, names, values};

/// The fewest keys: with less, a measurement is too short for the clock.
const MIN_KEYS: u64 = 10_000;

/// Arguments of a filter benchmark.
#[derive(Clone, Debug, Default, PartialEq, clap::Args)]
pub struct FilterArgs {
    /// Numbers of keys; all filters of one number are in memory at once
    #[arg(value_name = "N", value_parser = keys)]
    numbers: Vec<u64>,
    /// Few rounds, and 100000 keys unless numbers are given: takes seconds
    #[arg(long)]
    pub quick: bool,
    /// What to do with the result file of today; rows are printed if this is not given
    #[arg(long, hide = true)]
    keep: Option<Keep>,
}

/// What to do with the result file of today.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Keep {
    /// Overwrite it.
    New,
    /// Append to it.
    Add,
}

fn keys(text: &str) -> Result<u64, String> {
    let keys = number(text)?;
    if keys >= MIN_KEYS { Ok(keys) } else { Err(format!("the minimum is {MIN_KEYS}")) }
}

impl FilterArgs {
    /// Returns the numbers of keys, `defaults` if none are given.
    ///
    /// # Errors
    /// If rows are to be kept that are not those of a complete run.
    pub fn numbers(&self, defaults: &[u64]) -> Result<Vec<u64>, String> {
        let numbers = match &self.numbers[..] {
            [] if self.quick => vec![100_000],
            [] => defaults.to_vec(),
            given => given.to_vec(),
        };
        if self.keep.is_some() && (self.quick || numbers != defaults) {
            return Err("only the rows of a complete run are kept".into());
        }
        Ok(numbers)
    }

    /// The arguments as they were given.
    fn shown(&self) -> String {
        let quick = if self.quick { " --quick" } else { "" };
        let numbers = self.numbers.iter().map(|number| format!(" {number}"));
        quick.to_owned() + &numbers.collect::<String>()
    }
}

/// A filter benchmark.
pub struct Program {
    /// The suite in its rows.
    pub suite: &'static str,
    /// The command that starts it, without arguments.
    pub command: &'static str,
    /// Numbers of keys of a complete run.
    pub numbers: &'static [u64],
    /// Makes the cases for a number of keys.
    pub cases: fn(u64) -> Result<Vec<Case>, String>,
}

impl Program {
    /// Measures all cases for each number of keys. Rows of a complete run go to the result file; the returned text has
    /// other rows, and a table for each number.
    ///
    /// # Errors
    /// If arguments are wrong, a filter cannot be made, an answer is wrong, or the file cannot be written.
    pub fn run(&self, args: &FilterArgs, progress: &dyn Fn(&str)) -> Result<String, String> {
        let (mut all, mut tables) = (Vec::new(), String::new());
        for keys in args.numbers(self.numbers)? {
            let mut cases = (self.cases)(keys)?;
            let plan = RunPlan::new(keys, args.quick);
            let rows = rounds::run(self.suite, plan, &mut cases, progress)?;
            tables += &format!("\n{keys} keys\n{}", table(&rows));
            all.extend(rows);
        }
        Ok(save(args, ("", "cargo x bench"), self.command, &all, progress)? + &tables)
    }
}

/// Writes rows as CSV into `results/<arch>-<cpu>/<date><suffix>.csv`, below a comment with the command that makes such
/// a file; or returns them, if they are not to be kept.
///
/// # Errors
/// If the file cannot be written.
pub fn save(
    args: &FilterArgs,
    (suffix, command_of_file): (&str, &str),
    command: &str,
    rows: &[Row],
    progress: &dyn Fn(&str),
) -> Result<String, String> {
    let machine = Machine::read();
    let rows: Vec<Fields> = rows.iter().map(Row::fields).collect();
    let body: String = rows.iter().map(values).collect();
    let columns = rows.first().map_or(String::new(), names);
    let head = |command: &str| format!("# {}\n# {command}\n{columns}", machine.line());
    let Some(keep) = args.keep else {
        return Ok(head(&format!("{command}{}", args.shown())) + &body);
    };
    // After midnight there is no file to append to.
    let file = machine.write(suffix, &head(command_of_file), &body, keep == Keep::Add)?;
    progress(&format!("rows are in {}", file.display()));
    Ok(String::new())
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use petal::Kernel;

    use super::super::library::Model;
    use super::super::{Form, KeyKind};
    use super::*;

    #[derive(Parser)]
    struct Parsed {
        #[command(flatten)]
        args: FilterArgs,
    }

    fn parse(args: &[&str]) -> Result<Vec<u64>, String> {
        let parsed = Parsed::try_parse_from([&["bench"], args].concat());
        parsed.map_err(|e| e.to_string())?.args.numbers(&[1, 2])
    }

    #[test]
    fn arguments() {
        assert_eq!(parse(&["--keep", "add"]).unwrap(), [1, 2]);
        assert_eq!(parse(&["50_000_000"]).unwrap(), [50_000_000]);
        assert_eq!(parse(&["--quick"]).unwrap(), [100_000]);
        assert_eq!(parse(&["--quick", "20000"]).unwrap(), [20_000]);
        for args in [&["9"][..], &["many"], &["--keep"], &["--keep", "new", "--quick"]] {
            assert!(parse(args).is_err(), "{args:?}");
        }
    }

    #[test]
    fn printed_rows_have_a_header_and_the_command() {
        let program = Program {
            suite: "test",
            command: "cargo x bench test",
            numbers: &[1_000_000],
            cases: |keys| {
                let model = Model::Rate(0.01);
                Ok(vec![model.case(keys, KeyKind::Hash, Form::Batch, Kernel::Portable)?])
            },
        };
        let args = FilterArgs { numbers: vec![10_000], quick: true, keep: None };
        let text = program.run(&args, &|_| ()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("# "), "{text}");
        assert_eq!(lines[1], "# cargo x bench test --quick 10000");
        assert!(lines[2].starts_with("suite,n,filter,target_rate,bits_per_key,"), "{text}");
        assert!(lines[3].starts_with("test,10000,petal 1 %,0.01,"), "{text}");
    }
}
