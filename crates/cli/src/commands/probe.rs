//! `probe`: which Parquet files, or which of their row groups, may hold any of some keys.
//!
//! Files are examined by several threads and told in the order given. One that is in trouble does
//! not keep the others from being examined.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use petal_interop::{ParquetAnswer, ParquetFile, ParquetProbe};
use petal_lines::{Listed, Progress as _, Settings, Source};

use super::{print, prints, refuse_stdin_twice, settings};
use crate::args::ProbeArgs;
use crate::exit::{Failure, Outcome, Result, say, words};
use crate::output::Output;
use crate::progress::Teller;
use crate::text;

pub(super) fn run(args: &ProbeArgs) -> Result<Outcome> {
    let teller = Teller::new(&args.engine.talk, prints(args.count, args.output.as_deref()));
    let settings = settings(&args.engine, &teller);
    let (keys, list) = (args.keys(), args.list());
    let mut inputs = vec![keys.clone()];
    inputs.extend(list.clone());
    refuse_stdin_twice(&inputs)?;
    let files = files(args, list.as_ref(), &settings)?;
    inputs.extend(files.iter().cloned().map(Source::Path));
    // Refused before any key is read.
    let mut output =
        (!args.count).then(|| Output::open(args.output.as_deref(), &inputs)).transpose()?;
    let mut probe = ParquetProbe::new();
    lines(&settings, &keys)?.iter().for_each(|key| probe.push(key));
    let job = Job {
        args,
        keys: &keys,
        probe,
        footer: (settings.memory / 4 / settings.jobs as u64).min(ParquetFile::<File>::MOST_FOOTER),
    };
    teller.files("probing", files.len() as u64);
    let told = Told {
        output: output.as_mut(),
        waiting: BTreeMap::new(),
        next: 0,
        printed: 0,
        untold: Untold::default(),
        trouble: Vec::new(),
        ended: None,
    };
    let told = job.run(&files, settings.jobs, told, &teller);
    teller.finish();
    told.untold.note(&args.column, &teller);
    let printed = told.printed;
    let mut trouble = told.trouble;
    trouble.extend(told.ended);
    if let Some(last) = trouble.pop() {
        for failure in trouble {
            say(&format!("petal: {failure}"));
        }
        return Err(last);
    }
    match output {
        Some(output) => output.finish()?,
        None => print(&format!("{printed}\n"))?,
    }
    Ok(if printed > 0 { Outcome::Done } else { Outcome::NoneFound })
}

/// The files that are named, in order: the words, then what a list has.
fn files(args: &ProbeArgs, list: Option<&Source>, settings: &Settings<'_>) -> Result<Vec<PathBuf>> {
    let mut files = args.files.clone();
    if let Some(list) = list {
        let named = lines(settings, list)?;
        if let Some(line) = named.iter().position(<[u8]>::is_empty) {
            return Err(Failure::Plain(format!(
                "{list}: line {}: expected the name of a file, found an empty line; take it out",
                line + 1
            )));
        }
        files.extend(named.iter().map(|name| std::ffi::OsString::from_vec(name.to_vec()).into()));
    }
    Ok(files)
}

/// Reads all lines of an input, packed or not.
fn lines(settings: &Settings<'_>, input: &Source) -> Result<Listed> {
    /// Bytes that are made of a key.
    const EACH: u64 = 24;
    let inputs = std::slice::from_ref(input);
    Listed::read(settings, inputs, settings.memory / 4, EACH).map_err(|error| {
        if !error.is_list_too_large() {
            return error.into();
        }
        Failure::Plain(format!(
            "{input}: its lines take more than a quarter of the {} of -m; raise -m, or ask for \
             fewer at a time",
            text::size(settings.memory),
        ))
    })
}

/// What is asked of every file.
struct Job<'a> {
    args: &'a ProbeArgs,
    keys: &'a Source,
    probe: ParquetProbe,
    /// Bytes that a footer may take.
    footer: u64,
}

/// What a file answered.
struct Answered {
    /// What is to be printed.
    lines: Vec<u8>,
    /// How many lines that is.
    count: u64,
    row_groups: u64,
    /// Row groups without a filter.
    untold: u64,
}

/// Why a file did not answer.
enum Trouble {
    /// It cannot be asked.
    File(Failure),
    /// A key is none: no file needs to be asked.
    Key(Failure),
}

impl Job<'_> {
    /// Asks every file.
    fn run<'o>(&self, files: &[PathBuf], jobs: usize, told: Told<'o>, teller: &Teller) -> Told<'o> {
        let (next, ended) = (AtomicUsize::new(0), AtomicBool::new(false));
        let told = Mutex::new(told);
        std::thread::scope(|scope| {
            for _ in 0..jobs.min(files.len()) {
                scope.spawn(|| {
                    while !ended.load(Ordering::Relaxed) {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        let Some(path) = files.get(at) else { break };
                        let answer = self.ask(path);
                        teller.advance(1);
                        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
                        if told.ended.is_none()
                            && let Err(failure) = told.take(at, answer)
                        {
                            told.ended = Some(failure);
                            ended.store(true, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        told.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks one file.
    fn ask(&self, path: &Path) -> Result<Answered, Trouble> {
        let failed = |error: petal_interop::Error| match error.key_number() {
            None => Trouble::File(Failure::of_foreign(path)(error)),
            Some(number) => Trouble::Key(Failure::Plain(format!(
                "{}: line {number}: {error} (column '{}' of {})",
                self.keys,
                self.args.column,
                path.display()
            ))),
        };
        let file = open(path).map_err(Trouble::File)?;
        let mut file = ParquetFile::open_within(file, self.footer).map_err(failed)?;
        let groups = file.row_groups(&self.args.column).map_err(failed)?;
        let untold = groups.iter().filter(|group| !group.has_filter()).count() as u64;
        let mut answered =
            Answered { lines: Vec::new(), count: 0, row_groups: groups.len() as u64, untold };
        let mut any = false;
        for (number, group) in groups.iter().enumerate() {
            let may = file.ask(group, &self.probe).map_err(failed)? != ParquetAnswer::No;
            any |= may;
            if self.args.row_groups && may != self.args.invert {
                answered.tell(path, &format!("\t{number}\t{}", group.rows), self.delimiter());
            } else if any && !self.args.row_groups {
                break;
            }
        }
        if !self.args.row_groups && any != self.args.invert {
            answered.tell(path, "", self.delimiter());
        }
        Ok(answered)
    }

    fn delimiter(&self) -> u8 {
        if self.args.engine.null { 0 } else { b'\n' }
    }
}

impl Answered {
    /// A line more.
    fn tell(&mut self, path: &Path, rest: &str, delimiter: u8) {
        self.count += 1;
        self.lines.extend_from_slice(path.as_os_str().as_bytes());
        self.lines.extend_from_slice(rest.as_bytes());
        self.lines.push(delimiter);
    }
}

fn open(path: &Path) -> Result<File> {
    let failed = |error: io::Error| {
        Failure::Plain(format!("{}: cannot read: {}", path.display(), words(&error)))
    };
    // Looked at first: opening a FIFO would wait for its writer.
    let data = std::fs::metadata(path).map_err(failed)?;
    if !data.is_file() {
        let what = if data.is_dir() { "a directory" } else { "no regular file" };
        let path = path.display();
        return Err(Failure::Plain(format!("{path}: is {what}, expected a Parquet file")));
    }
    File::open(path).map_err(failed)
}

/// What was told so far.
struct Told<'a> {
    /// Where lines go, unless they are only counted.
    output: Option<&'a mut Output>,
    /// Answers that others must be told before.
    waiting: BTreeMap<usize, Result<Answered, Trouble>>,
    next: usize,
    printed: u64,
    untold: Untold,
    trouble: Vec<Failure>,
    /// What no other file can help with: a key that is none, an output that cannot be written.
    ended: Option<Failure>,
}

impl Told<'_> {
    /// Takes the answer of one file, and tells whatever is next.
    fn take(&mut self, at: usize, answer: Result<Answered, Trouble>) -> Result<()> {
        self.waiting.insert(at, answer);
        while let Some(answer) = self.waiting.remove(&self.next) {
            self.next += 1;
            match answer {
                Ok(answered) => {
                    self.printed += answered.count;
                    self.untold.add(&answered);
                    if let Some(output) = &mut self.output {
                        output.write_all(&answered.lines).map_err(|error| output.failed(error))?;
                    }
                }
                Err(Trouble::File(failure)) => self.trouble.push(failure),
                Err(Trouble::Key(failure)) => return Err(failure),
            }
        }
        Ok(())
    }
}

/// Row groups without a filter.
#[derive(Default)]
struct Untold {
    files: u64,
    of_files: u64,
    row_groups: u64,
    of_row_groups: u64,
}

impl Untold {
    fn add(&mut self, answered: &Answered) {
        self.files += u64::from(answered.untold > 0);
        self.of_files += 1;
        self.row_groups += answered.untold;
        self.of_row_groups += answered.row_groups;
    }

    fn note(&self, column: &str, teller: &Teller) {
        if self.row_groups > 0 {
            teller.say(&format!(
                "note: {} of {} row groups, in {} of {} files, have no Bloom filter for '{column}' \
                 and may hold anything",
                text::count(self.row_groups),
                text::count(self.of_row_groups),
                text::count(self.files),
                text::count(self.of_files),
            ));
        }
    }
}
