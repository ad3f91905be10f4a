//! What a job works with: its settings, and the division of its memory. It opens the inputs, and makes
//! the passes over them and the outputs.

use std::collections::HashMap;
use std::io::IsTerminal as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Advice, Error, Result, Setting};
use crate::input::{
    ContentChecks, Input, Source, open_all, open_followed, open_table, read_keys, select,
};
use crate::keys::{
    Alike, Columns, Dialect, Fields, KeySpec, Quoting, Spelling, SpellingDifference, field_values,
};
use crate::memory::Budget;
use crate::output::{KeyLine, OutputStart, Outputs, Printer, RowFormat, RowOutputs};
use crate::progress::{Note, Progress};
use crate::scan::Pass;
use crate::settings::Settings;
use crate::tables::{Shares, TableShares};
use crate::temp::TempDir;

/// Returns how the keys that a job has read differ from those of a filter, with the name of an input;
/// nothing if any contents are accepted. `None`: the filter does not record how its keys are spelled.
/// `found`: the job found some of them in the filter, or looked for none; then it does not matter that the
/// filter has lines that end in both ways.
#[must_use]
pub fn spelling_differences(
    settings: &Settings<'_>,
    filter: Option<Spelling>,
    found: bool,
) -> Vec<(SpellingDifference, String)> {
    if settings.text { Vec::new() } else { settings.spellings.differences(filter, found) }
}

/// The settings of a job, and the division of its memory.
#[derive(Clone, Copy)]
pub(crate) struct JobContext<'a> {
    pub(crate) settings: &'a Settings<'a>,
    pub(crate) budget: Budget,
    /// How keys of several columns of rows are printed.
    key_dialect: Dialect,
}

impl<'a> JobContext<'a> {
    /// Divides the memory limit, without a decoder.
    pub(crate) fn new(settings: &'a Settings<'a>) -> Result<Self> {
        Self::with_keys(settings, &settings.keys)
    }

    /// Divides the memory limit for records with these keys, without a decoder.
    fn with_keys(settings: &'a Settings<'a>, keys: &KeySpec) -> Result<Self> {
        let budget = budget(settings.memory_limit, settings.jobs, keys)?;
        Ok(Self { settings, budget, key_dialect: settings.keys.fields.dialect() })
    }

    /// Opens inputs and divides the memory limit among what they need.
    pub(crate) fn open(
        settings: &'a Settings<'a>,
        sources: &[Source],
    ) -> Result<(Self, Vec<Input>)> {
        let keys = keys_of(settings, sources)?;
        let longest_keys = keys.iter().find(|keys| !keys.is_line()).unwrap_or(&settings.keys);
        let context = Self::with_keys(settings, longest_keys)?;
        let (budget, progress) = (context.budget, settings.progress);
        let checks = content_checks(settings);
        if sources.iter().any(|source| *source.place() == Source::Stdin)
            && std::io::stdin().is_terminal()
        {
            progress.note(Note::Typed);
        }
        let checks_of = |number: usize| match &sources[number] {
            Source::Keyed(..) => {
                let tables = sources[number].may_be_table();
                Arc::new(checks_of(settings, &keys[number].fields, tables))
            }
            _ => Arc::clone(&checks),
        };
        let inputs = open_all(sources, budget.decoder, checks_of)?;
        checks.note(progress);
        let (longest, memory) = (budget.longest_line, budget.decoder);
        let described = Arc::default();
        let shares = table_shares(settings, longest_keys, &described);
        let keyed = |(number, (input, keys)): (u64, (Input, _))| {
            let has_fragment = matches!(sources[number as usize], Source::Keyed(..));
            let input = input.with_number(number).with_fragment(has_fragment);
            let input = read_keys(input, keys, longest, memory, progress);
            let opened = input.and_then(|input| {
                open_table(input, number, longest, budget.limit, memory, &shares)
            });
            opened.map_err(|error| if has_fragment { error.of_fragment() } else { error })
        };
        let inputs =
            (0..).zip(inputs.into_iter().zip(&keys)).map(keyed).collect::<Result<Vec<_>>>()?;
        let compressed = inputs.iter().any(Input::may_be_compressed);
        let budget = if compressed { budget.with_decoder() } else { budget };
        let objects = inputs.iter().any(Input::is_object);
        let budget = if objects { budget.with_objects()? } else { budget };
        note_separators(&inputs, progress);
        note_repeated_names(&inputs, progress);
        note_unused(settings, &keys, &inputs);
        let mut of_tables = keys.iter().zip(&inputs).filter(|(_, input)| input.is_table());
        let key_dialect = of_tables.next().map(|(keys, _)| keys.fields.dialect());
        let context = Self { key_dialect: key_dialect.unwrap_or(context.key_dialect), ..context };
        let Some(first) = inputs.iter().find_map(Input::table) else {
            return Ok((Self { budget, ..context }, inputs));
        };
        let written = !settings.keys_only;
        let tables = inputs.iter().filter_map(Input::table);
        let of_rows = tables.map(|table| table.described(written)).sum::<u64>();
        let needed = of_rows + if written { first.described_by_writer() } else { 0 };
        first.source().check_descriptions(needed)?;
        described.store(needed, Ordering::Relaxed);
        Ok((Self { budget: budget.with_tables(needed), ..context }, inputs))
    }

    /// Opens the inputs of a job on filters, which have no keys that differ from all others.
    pub(crate) fn open_for_filters(
        settings: &'a Settings<'a>,
        sources: &[Source],
    ) -> Result<(Self, Vec<Input>)> {
        refuse_distinct(settings)?;
        Self::open(settings, sources)
    }

    /// Opens the inputs of [`seen`](crate::seen), which may be followed.
    pub(crate) fn open_or_follow(
        settings: &'a Settings<'a>,
        sources: &[Source],
    ) -> Result<(Self, Vec<Input>)> {
        if !settings.follow {
            return Self::open_for_filters(settings, sources);
        }
        refuse_distinct(settings)?;
        let keys = keys_of(settings, sources)?;
        let own = keys.first().unwrap_or(&settings.keys);
        if let Some(other) = keys.iter().position(|keys| keys != own) {
            let problem = format!("its keys are others than those of {}", sources[0]);
            let error = Error::input(&sources[other].to_string(), problem);
            return Err(error.advise("follow it on its own"));
        }
        let context = Self::with_keys(settings, own)?;
        let rules = &own.records;
        let has_header = matches!(&own.fields, Fields::Columns(columns) if columns.has_header());
        if rules.skip_lines > 0 || rules.comment.is_some() && has_header {
            let setting = if rules.skip_lines > 0 { Setting::SkipLines } else { Setting::Comment };
            let problem =
                "a file that is followed may be replaced by one without lines before its header";
            return Err(Error::setting_is(setting, problem).advise(Advice::Omit(setting)));
        }
        let checks = checks_of(settings, &own.fields, true);
        let input = open_followed(sources, &Arc::new(checks), own)?;
        let input = match own.fields {
            // Waits until the header is written.
            Fields::Columns(ref columns) => {
                let dialect =
                    sources.iter().find_map(|path| columns.dialect_of(&path.place().to_string()));
                let columns = dialect.map_or(columns.clone(), |found| columns.in_dialect(found));
                let keys = KeySpec { fields: Fields::Columns(columns), ..KeySpec::clone(own) };
                let (longest, memory) = (context.budget.longest_line, context.budget.decoder);
                read_keys(input, &Arc::new(keys), longest, memory, settings.progress)?
            }
            _ => select(input.with_keys(own), false, context.budget.longest_line)?,
        };
        note_separators(std::slice::from_ref(&input), settings.progress);
        Ok((context, vec![input]))
    }

    /// Returns a pass over inputs.
    pub(crate) fn pass(&self) -> Pass<'a> {
        let Settings { delimiter, progress, .. } = *self.settings;
        Pass { budget: self.budget, delimiter, progress, words: 1 }
    }

    /// Returns the directory for temporary files.
    pub(crate) fn temp_dir(&self) -> TempDir {
        TempDir::new(&self.settings.temp_dir).counted_in(&self.settings.disk_usage)
    }

    /// Returns a printer to these outputs.
    pub(crate) fn printer<'o>(&self, outputs: Outputs<'o>) -> Printer<'o> {
        Printer::new(outputs, self.settings.delimiter, self.budget.chunk)
    }

    /// Returns a printer that has printed what precedes the records of these inputs, unless lines are
    /// only counted.
    pub(crate) fn started_printer<'o>(
        &self,
        outputs: Outputs<'o>,
        inputs: &[Input],
    ) -> Result<Printer<'o>> {
        let mut printer = self.printer(outputs);
        if !printer.counts_only() {
            printer.print_start(&self.output_start(inputs)?)?;
        }
        Ok(printer)
    }

    /// Returns outputs for the records of these inputs, which are the first of the job.
    pub(crate) fn row_outputs<'o>(
        &self,
        outputs: Outputs<'o>,
        inputs: &[Input],
    ) -> Result<RowOutputs<'o>> {
        let Settings { keys_only, binary_output: binary, delimiter, .. } = *self.settings;
        let (dialect, memory) = (self.key_dialect, self.budget.rows);
        let format = RowFormat { keys_only, binary, dialect, delimiter, memory };
        RowOutputs::new(outputs, inputs, format)
    }

    /// Returns how keys are printed where only lines can be; `None`: the records are lines.
    ///
    /// # Errors
    /// If whole rows would be printed, or keys at different places.
    pub(crate) fn key_line(&self, inputs: &[Input]) -> Result<Option<KeyLine>> {
        if self.settings.keys_only {
            return KeyLine::of(inputs, self.key_dialect, self.settings.delimiter);
        }
        match inputs.iter().find(|input| input.is_table()) {
            Some(table) => Err(Error::input(
                table.name(),
                "its rows are binary data, which cannot follow a count",
            )
            .advise(Advice::Enable(Setting::KeysOnly))),
            None => Ok(None),
        }
    }

    /// Returns what precedes the records of these inputs in the output; nothing if that is left out.
    /// Reports inputs whose records have other fields.
    ///
    /// # Errors
    /// If records of different kinds would follow one another.
    pub(crate) fn output_start(&self, inputs: &[Input]) -> Result<OutputStart> {
        refuse_mixed(inputs)?;
        if self.settings.keys_only {
            // Keys are lines without a header.
            return Ok(OutputStart::default());
        }
        let Some(before) = &self.settings.appended_to else {
            return Ok(OutputStart::of(inputs, None, self.settings.progress));
        };
        let first = before.first_bytes().map_err(Error::write)?;
        OutputStart::of(inputs, Some(&first), self.settings.progress);
        Ok(OutputStart::default())
    }

    /// Returns the bytes that end the last record of the file that the records of these inputs are
    /// appended to.
    pub(crate) fn missing_end(&self, inputs: &[Input]) -> Result<Vec<u8>> {
        let Some(before) = &self.settings.appended_to else { return Ok(Vec::new()) };
        let dialect_of = |input: &Input| match self.settings.keys_only {
            true if input.keys().fields.count() == 1 => None,
            true => Some(input.csv_dialect().unwrap_or(self.key_dialect)),
            false => input.csv_dialect(),
        };
        // The file may have records of any input, so it has quotes if one does.
        let dialects = inputs.iter().rev().filter_map(dialect_of);
        let dialect = dialects.max_by_key(|dialect| !dialect.is_lines());
        let end = before.missing_end(dialect, self.settings.delimiter).map_err(Error::write)?;
        if end.len() > 1 {
            self.settings.progress.note(Note::ClosedQuote);
        }
        Ok(end)
    }
}

/// Returns how the keys of each source are made.
///
/// # Errors
/// If the keys of a source contradict a setting, or never equal those of another.
fn keys_of(settings: &Settings<'_>, sources: &[Source]) -> Result<Vec<Arc<KeySpec>>> {
    let keys: Vec<_> = sources.iter().map(|source| source.keys(&settings.keys)).collect();
    for (source, own) in sources.iter().zip(&keys) {
        let refused = |problem: &str, advice: Advice| {
            Err(Error::input(&source.to_string(), problem).advise(advice))
        };
        match &own.fields {
            // The front end has checked the settings.
            _ if !matches!(source, Source::Keyed(..)) => {}
            _ if matches!(settings.keys.fields, Fields::Checksum(_)) => {
                let problem =
                    "its name says what its keys are, but they are hashes in checksum files";
                return refused(problem, Advice::Omit(Setting::Sums));
            }
            Fields::Columns(_) | Fields::Json(_) if settings.delimiter != b'\n' => {
                let problem = "its keys are parts of records, which end with LF";
                return refused(problem, Advice::Omit(Setting::NullDelimiter));
            }
            Fields::Columns(columns) => {
                columns.check().map_err(|problem| Error::input(&source.to_string(), problem))?;
            }
            _ => {}
        }
        let (count, of_first) = (own.fields.count(), keys[0].fields.count());
        if count != of_first {
            let problem = format!(
                "its keys have {count} {}, which never equal those of {} with {of_first}",
                if count == 1 { "field" } else { "fields" },
                sources[0]
            );
            return refused(&problem, "name as many fields".into());
        }
    }
    Ok(keys)
}

/// Returns an error if records of different kinds would follow one another in an output.
fn refuse_mixed(inputs: &[Input]) -> Result<()> {
    let Some(first) = inputs.first() else { return Ok(()) };
    let Some(other) = inputs.iter().find(|input| input.record_kind() != first.record_kind()) else {
        return Ok(());
    };
    let problem = format!(
        "has {}, which cannot follow the {} of {} in one output",
        other.record_kind(),
        first.record_kind(),
        first.name()
    );
    Err(Error::input(other.name(), problem).advise("run one job for each"))
}

/// Returns the checks of the inputs' first bytes.
pub(crate) fn content_checks(settings: &Settings<'_>) -> Arc<ContentChecks> {
    Arc::new(checks_of(settings, &settings.keys.fields, true))
}

/// Returns the checks of the first bytes of inputs with these fields, which may be tables if `tables`.
fn checks_of(settings: &Settings<'_>, fields: &Fields, tables: bool) -> ContentChecks {
    let checks = ContentChecks::new(settings.delimiter, settings.text)
        .with_spellings(&settings.spellings)
        .with_left_out(&settings.left_out);
    match fields {
        Fields::Line if settings.keys.transforms.is_empty() => checks.with_line_ends(),
        Fields::Line | Fields::Checksum(_) => checks,
        Fields::Columns(_) if tables => checks.quiet().with_tables(),
        Fields::Columns(_) | Fields::Json(_) | Fields::Text(_) | Fields::Rows(_) => checks.quiet(),
    }
}

/// Returns an error if some keys differ from all others, which a filter cannot tell from equal ones.
fn refuse_distinct(settings: &Settings<'_>) -> Result<()> {
    let rules = &settings.keys.records;
    if !rules.makes_distinct() {
        return Ok(());
    }
    let setting = if rules.nulls == Alike::Distinct { Setting::Nulls } else { Setting::Empty };
    let problem = "a filter cannot tell a key from equal ones";
    Err(Error::setting_is(setting, problem).advise(Advice::Change(setting)))
}

/// Reports separators that follow from the first records.
fn note_separators(inputs: &[Input], progress: &dyn Progress) {
    let mut found: Vec<(u8, &str, u64)> = Vec::new();
    for input in inputs {
        let Some(separator) = input.guessed_separator() else { continue };
        match found.iter_mut().find(|(other, ..)| *other == separator) {
            Some((_, _, more)) => *more += 1,
            None => found.push((separator, input.name(), 0)),
        }
    }
    for (separator, input, more) in found {
        progress.note(Note::Separator { input, more, separator });
    }
}

/// Reports a header with two equal names.
fn note_repeated_names(inputs: &[Input], progress: &dyn Progress) {
    let mut repeated = inputs.iter().filter_map(|input| {
        let names = field_values(input.header()?, input.csv_dialect()?);
        let mut places = HashMap::new();
        let pairs = names.into_iter().zip(1..).find_map(|(name, place)| {
            let first = *places.entry(name.clone()).or_insert(place);
            (first != place).then_some((name, [first, place]))
        });
        pairs.map(|(name, columns)| (input, name, columns))
    });
    if let Some((input, name, columns)) = repeated.next() {
        let (input, more) = (input.name(), repeated.count() as u64);
        let name = &String::from_utf8_lossy(&name);
        progress.note(Note::RepeatedName { input, more, name, columns });
    }
}

/// Reports settings for CSV that have no effect, because all inputs are tables.
fn note_unused(settings: &Settings<'_>, keys: &[Arc<KeySpec>], inputs: &[Input]) {
    // Keys of several columns are printed as CSV.
    let is_unused = |keys: &Arc<KeySpec>| match &keys.fields {
        Fields::Columns(Columns { separator, quoting, escape, header, .. }) => {
            *header
                || !settings.keys_only
                    && (separator.is_some() || *quoting != Quoting::default() || escape.is_some())
        }
        _ => false,
    };
    if let (true, Some(first)) = (keys.iter().any(is_unused), inputs.first())
        && inputs.iter().all(Input::is_table)
    {
        settings.progress.note(Note::CsvSettings { input: first.name() });
    }
}

/// Returns the function that divides a memory limit for a table. `described`: bytes of what describes
/// all tables.
fn table_shares(
    settings: &Settings<'_>,
    keys: &Arc<KeySpec>,
    described: &Arc<AtomicU64>,
) -> Shares {
    let (jobs, keys, described) = (settings.jobs, keys.clone(), described.clone());
    // Nothing is left of a limit that is too low.
    let none = TableShares { keys: 0, rows: 0, descriptions: 0 };
    Arc::new(move |limit| {
        budget(limit, jobs, &keys).map(Budget::with_decoder).map_or(none, |budget| TableShares {
            keys: budget.decoder,
            rows: budget.with_tables(described.load(Ordering::Relaxed)).rows,
            descriptions: budget.descriptions(),
        })
    })
}

/// Divides a memory limit, without a decoder.
fn budget(limit: u64, jobs: usize, keys: &KeySpec) -> Result<Budget> {
    let budget = Budget::new(limit, jobs)?;
    Ok(if keys.is_line() { budget } else { budget.with_keys(keys.max_growth()) })
}
