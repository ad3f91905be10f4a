//! Settings of all jobs.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Advice, Error, Result, Setting};
use crate::input::{
    ContentChecks, Input, Source, Spellings, open_all, open_followed, open_table, read_keys,
};
use crate::keys::{Columns, Fields, KeySpec, Quoting, Spelling, SpellingDifference};
use crate::memory::Budget;
use crate::output::{AppendedTo, OutputStart, Outputs, Printer, RowFormat, RowLines, RowOutputs};
use crate::progress::{Note, Progress};
use crate::scan::Pass;
use crate::tables::{Shares, TableShares};
use crate::temp::{DiskUsage, TempDir};

/// The settings of a job.
#[derive(Clone)]
pub struct Settings<'a> {
    /// Memory limit of the whole process in bytes, at least [`MIN_MEMORY`](crate::MIN_MEMORY).
    pub memory_limit: u64,
    /// Number of threads.
    pub jobs: usize,
    /// Directory for temporary files.
    pub temp_dir: PathBuf,
    /// Work directory of an exact job: keeps the results of finished phases, so that the job can
    /// be resumed. `None` keeps nothing. Call [`forget_work`](crate::forget_work) when the output
    /// is complete.
    pub work_dir: Option<PathBuf>,
    /// Resume the job in `work_dir`. If false, an unfinished job there is an error.
    pub resume: bool,
    /// Line delimiter.
    pub delimiter: u8,
    /// How the keys of records are made, by which they are compared. Default: the key of a line is
    /// the line.
    pub keys: Arc<KeySpec>,
    /// The file that the output of [`seen`](crate::seen) is appended to. The header of the inputs is then
    /// not printed, but compared with the first record there, and an incomplete last record there is
    /// ended. Default: `None`, and the output begins with the header of the first CSV input that has
    /// one.
    pub appended_to: Option<AppendedTo>,
    /// Print the keys of rows of Parquet and Arrow files as lines, instead of the rows in the format of
    /// the files. Inputs whose records are printed must then be such files. Default: false.
    pub keys_only: bool,
    /// Whether the outputs take binary data. If not, printing rows is an error. Default: true.
    pub binary_output: bool,
    /// Read inputs as lines even if they look like compressed files, binary files or UTF-16 text,
    /// which otherwise are errors. Inputs in gzip, zstd, xz, bzip2 and lz4 are always decompressed.
    pub text: bool,
    /// Follow the inputs of [`seen`](crate::seen): they are files that grow, read as one input that
    /// never ends. Files that are replaced (rotated logs) are opened again by their names.
    pub follow: bool,
    /// Receives the progress.
    pub progress: &'a dyn Progress,
    /// Counts the bytes on temporary disk.
    pub disk_usage: DiskUsage,
    /// How the keys are spelled that the job has read.
    pub spellings: Spellings,
}

impl Settings<'_> {
    /// Settings with a memory limit in bytes and defaults: all processors, the temporary directory
    /// of the system, lines that end in LF, no progress.
    #[must_use]
    pub fn new(memory_limit: u64) -> Self {
        Self {
            memory_limit,
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
            temp_dir: std::env::temp_dir(),
            work_dir: None,
            resume: false,
            delimiter: b'\n',
            keys: Arc::default(),
            appended_to: None,
            keys_only: false,
            binary_output: true,
            text: false,
            follow: false,
            progress: &(),
            disk_usage: DiskUsage::default(),
            spellings: Spellings::default(),
        }
    }

    /// Returns how the keys that the job has read differ from those of a filter, with the name of an
    /// input; nothing if any contents are accepted. `None`: the filter does not record how
    /// its keys are spelled. `found`: the job found some of them in the filter, or looked for none; then
    /// it does not matter that the filter has lines that end in both ways.
    #[must_use]
    pub fn spelling_differences(
        &self,
        filter: Option<Spelling>,
        found: bool,
    ) -> Vec<(SpellingDifference, String)> {
        let input = self.spellings.first_input().filter(|_| !self.text);
        let Some(input) = input else { return Vec::new() };
        let mut differences = self.spellings.all().differences(filter);
        differences.retain(|difference| difference.matters(found));
        differences.into_iter().map(|difference| (difference, input.clone())).collect()
    }

    /// Checks that files can be created in the temporary directory.
    ///
    /// # Errors
    /// If they cannot.
    pub fn check_temp_dir(&self) -> Result<()> {
        TempDir::new(&self.temp_dir).file().map(drop)
    }

    /// Divides the memory limit, without a decoder.
    pub(crate) fn budget(&self) -> Result<Budget> {
        budget(self.memory_limit, self.jobs, &self.keys)
    }

    /// Returns the function that divides a memory limit for a table. `described`: bytes of what describes
    /// all tables.
    fn table_shares(&self, described: &Arc<AtomicU64>) -> Shares {
        let (jobs, keys, described) = (self.jobs, self.keys.clone(), described.clone());
        // Nothing is left of a limit that is too low.
        let none = TableShares { keys: 0, rows: 0, descriptions: 0 };
        Arc::new(move |limit| {
            budget(limit, jobs, &keys).map(Budget::with_decoder).map_or(none, |budget| {
                TableShares {
                    keys: budget.decoder,
                    rows: budget.with_tables(described.load(Ordering::Relaxed)).rows,
                    descriptions: budget.descriptions(),
                }
            })
        })
    }

    /// Opens inputs and divides the memory limit.
    pub(crate) fn open(&self, sources: &[Source]) -> Result<(Budget, Vec<Input>)> {
        let budget = self.budget()?;
        let checks = self.content_checks();
        let inputs = open_all(sources, budget.decoder, &checks)?;
        checks.note(self.progress);
        let (longest, memory) = (budget.longest_line, budget.decoder);
        let described = Arc::default();
        let shares = self.table_shares(&described);
        let keyed = |(number, input): (u64, Input)| {
            let input = read_keys(input, &self.keys, longest, memory, self.progress)?;
            open_table(input, number, longest, budget.limit, memory, &shares)
        };
        let inputs = (0..).zip(inputs).map(keyed).collect::<Result<Vec<_>>>()?;
        let compressed = inputs.iter().any(Input::may_be_compressed);
        let budget = if compressed { budget.with_decoder() } else { budget };
        let objects = inputs.iter().any(Input::is_object);
        let budget = if objects { budget.with_objects()? } else { budget };
        self.note_separators(&inputs);
        self.note_unused(&inputs);
        let Some(first) = inputs.iter().find_map(Input::table) else { return Ok((budget, inputs)) };
        let written = !self.keys_only;
        let tables = inputs.iter().filter_map(Input::table);
        let of_rows = tables.map(|table| table.described(written)).sum::<u64>();
        let needed = of_rows + if written { first.described_by_writer() } else { 0 };
        first.source().check_descriptions(needed)?;
        described.store(needed, Ordering::Relaxed);
        Ok((budget.with_tables(needed), inputs))
    }

    /// Reports separators that follow from the first records.
    fn note_separators(&self, inputs: &[Input]) {
        let mut found: Vec<(u8, &str, u64)> = Vec::new();
        for input in inputs {
            let Some(separator) = input.guessed_separator() else { continue };
            match found.iter_mut().find(|(other, ..)| *other == separator) {
                Some((_, _, more)) => *more += 1,
                None => found.push((separator, input.name(), 0)),
            }
        }
        for (separator, input, more) in found {
            self.progress.note(Note::Separator { input, more, separator });
        }
    }

    /// Reports settings for CSV that have no effect, because all inputs are tables.
    fn note_unused(&self, inputs: &[Input]) {
        let (Fields::Columns(columns), Some(first)) = (&self.keys.fields, inputs.first()) else {
            return;
        };
        let Columns { separator, quoting, escape, header, .. } = columns;
        // Keys of several columns are printed as CSV.
        let unused = *header
            || !self.keys_only
                && (separator.is_some() || *quoting != Quoting::default() || escape.is_some());
        if unused && inputs.iter().all(Input::is_table) {
            self.progress.note(Note::CsvSettings { input: first.name() });
        }
    }

    /// Returns how rows are printed where only lines can be; `None`: the records are lines.
    ///
    /// # Errors
    /// If the inputs are tables, but whole rows would be printed, or the other way round.
    pub(crate) fn rows_as_lines(&self, inputs: &[Input]) -> Result<Option<RowLines>> {
        let table = inputs.iter().find_map(Input::table);
        let lines = inputs.iter().find(|input| !input.is_table());
        match (self.keys_only, table, lines) {
            (true, _, Some(lines)) => Err(Error::not_a_table(lines.name())),
            (false, Some(_), _) => {
                let input = inputs.iter().find(|input| input.is_table()).map_or("", Input::name);
                Err(Error::input(input, "its rows are binary data, which cannot follow a count")
                    .advise(Advice::Enable(Setting::KeysOnly)))
            }
            (true, Some(table), None) => {
                let dialect = (table.key_columns() > 1).then(|| self.keys.fields.dialect());
                Ok(Some(RowLines { dialect, delimiter: self.delimiter }))
            }
            (_, None, _) => Ok(None),
        }
    }

    /// Returns outputs for the records of these inputs, which are the first of the job.
    pub(crate) fn row_outputs<'a>(
        &self,
        outputs: Outputs<'a>,
        inputs: &[Input],
        budget: &Budget,
    ) -> Result<RowOutputs<'a>> {
        let names: Vec<_> = inputs.iter().map(Input::name).collect();
        let tables: Vec<_> = inputs.iter().map(Input::table).collect();
        let format = RowFormat {
            keys_only: self.keys_only,
            binary: self.binary_output,
            dialect: self.keys.fields.dialect(),
            delimiter: self.delimiter,
            memory: budget.rows,
        };
        RowOutputs::new(outputs, &names, &tables, format)
    }

    /// Prints what precedes the records of these inputs, unless lines are only counted.
    pub(crate) fn print_start(&self, printer: &mut Printer<'_>, inputs: &[Input]) -> Result<()> {
        match printer.counts_only() {
            true => Ok(()),
            false => printer.begin(&self.output_start(inputs)?),
        }
    }

    /// Returns what precedes the records of these inputs in the output; nothing if that is left out.
    /// Reports inputs whose records have other fields.
    pub(crate) fn output_start(&self, inputs: &[Input]) -> Result<OutputStart> {
        let Some(before) = &self.appended_to else {
            return Ok(OutputStart::of(inputs, None, self.progress));
        };
        let first = before.first_bytes().map_err(Error::write)?;
        OutputStart::of(inputs, Some(&first), self.progress);
        Ok(OutputStart::default())
    }

    /// Returns the bytes that end the last record of the file that the records of these inputs are
    /// appended to.
    pub(crate) fn missing_end(&self, inputs: &[Input]) -> Result<Vec<u8>> {
        let Some(before) = &self.appended_to else { return Ok(Vec::new()) };
        let dialect_of = |input: &Input| {
            let of_keys = input.table().filter(|table| table.key_columns() > 1);
            input.csv_dialect().or(of_keys.map(|_| self.keys.fields.dialect()))
        };
        // The file may have records of any input, so it has quotes if one does.
        let dialects = inputs.iter().rev().filter_map(dialect_of);
        let dialect = dialects.max_by_key(|dialect| !dialect.is_lines());
        let end = before.missing_end(dialect, self.delimiter).map_err(Error::write)?;
        if end.len() > 1 {
            self.progress.note(Note::ClosedQuote);
        }
        Ok(end)
    }

    /// Opens the inputs of [`seen`](crate::seen), which may be followed.
    pub(crate) fn open_or_follow(&self, sources: &[Source]) -> Result<(Budget, Vec<Input>)> {
        if !self.follow {
            return self.open(sources);
        }
        let budget = self.budget()?;
        let input = open_followed(sources, &self.content_checks(), &self.keys)?;
        let input = match self.keys.fields {
            // Waits until the header is written.
            Fields::Columns(ref columns) => {
                let dialect = sources.iter().find_map(|path| columns.dialect_of(&path.to_string()));
                let columns = dialect.map_or(columns.clone(), |found| columns.in_dialect(found));
                let keys = KeySpec { fields: Fields::Columns(columns), ..(*self.keys).clone() };
                let (longest, memory) = (budget.longest_line, budget.decoder);
                read_keys(input, &Arc::new(keys), longest, memory, self.progress)?
            }
            Fields::Line | Fields::Json(_) | Fields::Rows(_) => input.with_keys(&self.keys),
        };
        self.note_separators(std::slice::from_ref(&input));
        Ok((budget, vec![input]))
    }

    /// Returns the checks of the inputs' first bytes.
    pub(crate) fn content_checks(&self) -> Arc<ContentChecks> {
        let checks = ContentChecks::new(self.delimiter, self.text).with_spellings(&self.spellings);
        Arc::new(match self.keys.fields {
            Fields::Line if self.keys.transforms.is_empty() => checks.with_line_ends(),
            Fields::Line => checks,
            Fields::Columns(_) => checks.quiet().with_tables(),
            Fields::Json(_) | Fields::Rows(_) => checks.quiet(),
        })
    }

    /// Returns a pass over inputs with these settings.
    pub(crate) fn pass(&self, budget: Budget) -> Pass<'_> {
        Pass { budget, delimiter: self.delimiter, progress: self.progress, words: 1 }
    }
}

/// Divides a memory limit, without a decoder.
fn budget(limit: u64, jobs: usize, keys: &KeySpec) -> Result<Budget> {
    let budget = Budget::new(limit, jobs)?;
    Ok(if keys.is_line() { budget } else { budget.with_keys(keys.max_growth()) })
}
