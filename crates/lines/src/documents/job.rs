//! A job on the parts of documents, and its passes.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::time::Instant;

use petal::Membership as _;

use super::rewrite::{DocumentOutputs, DocumentRules, Earlier, Rewriter, text_range};
use crate::error::{Advice, Error, Result, Setting};
use crate::fingerprint::{LineHasher, Table};
use crate::input::{Input, Source, no_key, spool};
use crate::job_context::JobContext;
use crate::keys::{Fields, KeySpec, PartRules, PartUnit, RecordRules, count_parts};
use crate::memory::Budget;
use crate::numbers::format_count;
use crate::progress::{Note, Progress};
use crate::scan::{BadLine, Batch, Scratch};
use crate::setops::{
    FIRST_RECORD, JoinResult, Mode, Partition, PartitionJoin, Polarity, PositionSet, RecordSink,
    Report, Sample, SetOp, Spans, Strategy, expected_losses, filter_within, lost_lines,
    partitioning, positions_of_inputs, write_table,
};
use crate::settings::Settings;
use crate::temp::{SpillFile, SpillWriter};

/// Removes repeated parts of documents: those that occur earlier, in the same document or in another one.
///
/// A document is a record of JSON, and its text the value of the settings' only pointer. Without a pointer a
/// document is a line, and has one part. Two parts are equal if their keys are: without white space around
/// them, and after the transforms of the settings. A document without a text stays as it is.
#[derive(Clone, Debug)]
pub struct DocumentJob {
    /// The inputs, in the order in which parts occur.
    pub inputs: Vec<Source>,
    /// The parts that are compared.
    pub unit: PartUnit,
    /// Drop documents that keep fewer parts.
    pub min_parts: u64,
    /// Drop documents of whose parts at least this share is repeated.
    pub drop_if: Option<f64>,
    /// Exact or approximate. Exact jobs choose their strategy.
    pub mode: Mode,
}

impl DocumentJob {
    /// Returns an error if the settings do not fit the job. [`run`](Self::run) checks it, too.
    ///
    /// # Errors
    /// If the unit needs a text, an input has a key of its own, or a transform refuses keys that would be
    /// left out.
    pub fn check(&self, settings: &Settings<'_>) -> Result<()> {
        self.checked(settings).map(|_| ())
    }

    /// Returns the fields of a document, and whether it is a line.
    fn checked(&self, settings: &Settings<'_>) -> Result<(Fields, bool)> {
        let spec = &settings.keys;
        if let Some(source) = self.inputs.iter().find(|source| matches!(source, Source::Keyed(..)))
        {
            let problem =
                "its name says what its key is, but the texts of all inputs are at one place";
            return Err(Error::input(&source.to_string(), problem)
                .advise("leave out the # and what follows it"));
        }
        let fields = match &spec.fields {
            Fields::Json(values) if values.0.len() == 1 => (Fields::Text(values.clone()), false),
            Fields::Line if self.unit == PartUnit::Line => (Fields::Line, true),
            fields => return Err(no_text(fields)),
        };
        if spec.records.skip_bad && spec.refuses_keys() {
            let problem = "refuses some parts, and documents are not left out for a part";
            return Err(Error::setting_is(Setting::KeyTransform, problem)
                .advise(Advice::Omit(Setting::BadRecords)));
        }
        Ok(fields)
    }

    /// Runs the job and writes the documents. All but the last output are then complete.
    ///
    /// Exact: two parts count as equal if their 128-bit fingerprints under a random key are. The parts of a
    /// dropped document count as their first occurrences. Inputs that can be read only once are copied to
    /// the temporary directory.
    ///
    /// Cost: a pass over the inputs, and 20 bytes of memory per distinct part; if these do not fit the
    /// memory limit, another pass over the rest, and 24 bytes of temporary data per part of it.
    ///
    /// # Errors
    /// If an input cannot be read, changes during the job, or has a record longer than a quarter of the
    /// memory limit, or whose text is none or has more parts than a 512th of that limit; if an output or a temporary file cannot be written; if the
    /// memory limit is too low; if the unit needs a text.
    pub fn run(
        &self,
        settings: &Settings<'_>,
        outputs: &mut dyn DocumentOutputs,
    ) -> Result<Report> {
        self.run_within(settings, outputs, u64::MAX)
    }

    /// Runs with a table of at most `table` bytes.
    pub(super) fn run_within(
        &self,
        settings: &Settings<'_>,
        outputs: &mut dyn DocumentOutputs,
        table: u64,
    ) -> Result<Report> {
        let begun = Instant::now();
        let spec = &settings.keys;
        let (fields, lines) = self.checked(settings)?;
        let keys = KeySpec { fields, records: spec.records.clone(), ..KeySpec::default() };
        let progress = &DocumentNotes(settings.progress);
        let own = Settings { keys: Arc::new(keys), progress, ..settings.clone() };
        let (mut context, inputs) = JobContext::open(&own, &self.inputs)?;
        let temp = context.temp_dir();
        let spool = |input: Input| spool(input, &temp, progress);
        let inputs = inputs.into_iter().map(spool).collect::<Result<Vec<_>>>()?;
        let budget = budget(context.budget);
        context.budget = budget;
        let job = Job {
            context,
            hasher: LineHasher::random()?,
            rules: PartRules {
                unit: self.unit,
                keys: KeySpec {
                    transforms: spec.transforms.clone(),
                    records: RecordRules::default(),
                    ..KeySpec::default()
                },
                max: max_parts(&budget),
            },
            hashes: matches!(self.mode, Mode::Approx { .. }),
        };
        let rules = DocumentRules { min_parts: self.min_parts, drop_if: self.drop_if, lines };
        let mut rewriter = Rewriter::new(rules, outputs, settings.delimiter);
        let mut report = Report::new(begun);
        let count = inputs.len();
        match self.mode {
            Mode::Exact { .. } => job.exact(inputs, table, &mut rewriter, &mut report)?,
            Mode::Approx { capacity, fpr } => {
                job.approximate(&inputs, capacity, fpr, &mut rewriter, &mut report)?;
            }
        }
        if count > 0 {
            rewriter.begin(count - 1)?;
        }
        rewriter.flush()?;
        (report.first_lines, report.kept) = (rewriter.documents, rewriter.kept);
        report.parts = Some(rewriter.parts);
        report.seconds = begun.elapsed().as_secs_f64();
        Ok(report)
    }
}

/// Returns the error of keys that are no text.
fn no_text(fields: &Fields) -> Error {
    match fields {
        Fields::Json(_) => {
            Error::setting_is(Setting::JsonKey, "names several values, expected that of the text")
                .advise("leave out the others")
        }
        _ => Error::setting_is(Setting::Unit, "expected a text in JSON; only lines need none")
            .advise(Advice::Specify(Setting::JsonKey)),
    }
}

/// Bytes of memory of a part: its place, and a fingerprint or a hash; twice that while a buffer grows.
const PART_MEMORY: u64 = 64;

/// Takes the memory of parts from the work share, and makes chunks so short that theirs fits beside them.
fn budget(budget: Budget) -> Budget {
    let work = budget.work - (budget.limit / 8).min(budget.work / 2);
    let longest_line = budget.longest_line.min(u32::MAX.into());
    Budget { chunk: (budget.chunk / 4).max(4 << 10), work, longest_line, ..budget }
}

/// Returns the number of parts that a document may have, for any number of threads.
fn max_parts(budget: &Budget) -> usize {
    (budget.limit / 8 / PART_MEMORY) as usize
}

/// Maximum number of inputs of which parts are counted to estimate their number, and bytes of each.
const SAMPLED_INPUTS: usize = 16;
const SAMPLED_BYTES: usize = 4 << 20;

/// The notes of a job on documents: parts are compared without white space at their ends, and a document
/// without a text equals no other.
struct DocumentNotes<'a>(&'a dyn Progress);

impl Progress for DocumentNotes<'_> {
    fn phase(&self, what: &'static str, bytes: Option<u64>) {
        self.0.phase(what, bytes);
    }

    fn expect_total(&self, bytes: u64) {
        self.0.expect_total(bytes);
    }

    fn advance(&self, bytes: u64) {
        self.0.advance(bytes);
    }

    fn stopped(&self) -> bool {
        self.0.stopped()
    }

    fn cancelled(&self) -> bool {
        self.0.cancelled()
    }

    fn note(&self, note: Note<'_>) {
        match note {
            Note::MixedLineEnds { .. } => {}
            Note::MissingValue { input, more, pointer } => {
                self.0.note(Note::MissingText { input, more, pointer });
            }
            note => self.0.note(note),
        }
    }
}

/// A running job.
struct Job<'a> {
    context: JobContext<'a>,
    hasher: LineHasher,
    rules: PartRules,
    /// Whether parts have hashes for filters, not fingerprints.
    hashes: bool,
}

impl Job<'_> {
    /// Divides the texts of a batch.
    fn divide(&self, batch: &Batch<'_>, scratch: &mut Scratch) {
        let Scratch { hashes, fingerprints, parts, bad_line, .. } = scratch;
        parts.clear(self.context.budget.chunk);
        hashes.clear();
        fingerprints.clear();
        hashes.shrink_to(self.context.budget.chunk / 8);
        fingerprints.shrink_to(self.context.budget.chunk / 8);
        *bad_line = None;
        for line in 0..batch.len() {
            let record = batch.line(line);
            let (Some(text), escaped) = self.text_of(batch, line) else {
                parts.add_none();
                continue;
            };
            let each = |key: &[u8]| match self.hashes {
                true => hashes.push(self.hasher.filter_hash(key)),
                false => fingerprints.push(self.hasher.fingerprint(key)),
            };
            if let Err(why) = parts.add(&self.rules, record, text, escaped, each) {
                *bad_line = Some(BadLine { line, why });
                return;
            }
        }
    }

    /// Returns an error if a document of a batch cannot be divided.
    fn refuse_bad(&self, input: &Input, batch: &Batch<'_>, scratch: &mut Scratch) -> Result<()> {
        let Some(BadLine { line, why }) = scratch.bad_line.take() else { return Ok(()) };
        let at = input.byte(batch.offset(line));
        let error =
            |text: String| no_key(input.name(), &input.keys().fields, text.into(), at, None);
        let (record, max) = (batch.line(line), self.rules.max);
        let (text, escaped) = self.text_of(batch, line);
        let parts = text.map_or(0, |text| count_parts(record, text, escaped, self.rules.unit));
        if parts > max {
            let [parts, max] = [parts, max].map(|count| format_count(count as u64));
            let problem = format!(
                "has {parts} parts, but the memory limit has space for {max} of a document"
            );
            return Err(error(problem).advise(Advice::Raise(Setting::MemoryLimit)));
        }
        Err(error(why))
    }

    /// Returns where the text of a document is, and whether it has the escapes of JSON.
    fn text_of(&self, batch: &Batch<'_>, document: usize) -> (Option<Range<usize>>, bool) {
        match self.context.settings.keys.fields {
            Fields::Text(_) => (text_range(batch.key(document)), true),
            _ => (Some(0..batch.line(document).len()), false),
        }
    }

    /// Estimates the number of parts from the beginnings of some inputs.
    fn estimate_parts(&self, inputs: &[Input]) -> Result<u64> {
        let map = |batch: &Batch<'_>, scratch: &mut Scratch| self.divide(batch, scratch);
        let (mut bytes, mut parts) = (0, 0);
        for input in inputs.iter().step_by(inputs.len().div_ceil(SAMPLED_INPUTS).max(1)) {
            let mut of_input = 0;
            let fold = |batch: &Batch<'_>, scratch: &mut Scratch| {
                parts += scratch.hashes.len() as u64;
                of_input += batch.tail(0).len();
                Ok(match of_input < SAMPLED_BYTES {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(batch.len()),
                })
            };
            self.context.pass().run("sampling", &[input], map, fold)?;
            bytes += of_input as u64;
        }
        let all = match inputs.iter().map(Input::length).sum::<Option<u64>>() {
            Some(all) => all,
            None => {
                let JobContext { settings, budget, .. } = &self.context;
                let refs: Vec<_> = inputs.iter().collect();
                let (hasher, progress) = (&self.hasher, settings.progress);
                Sample::of(&refs, hasher, settings.delimiter, budget, [0, 1], progress)?.bytes
            }
        };
        let share = parts as f64 / bytes.max(1) as f64;
        Ok(((all as f64 * share) as u64).max(parts).max(1))
    }

    fn exact(
        &self,
        inputs: Vec<Input>,
        table: u64,
        rewriter: &mut Rewriter<'_>,
        report: &mut Report,
    ) -> Result<()> {
        let Settings { progress, .. } = *self.context.settings;
        report.strategy = Strategy::Memory.name().into();
        let bytes = |inputs: &[Input]| inputs.iter().map(Input::length).sum::<Option<u64>>();
        let all = bytes(&inputs).unwrap_or(0);
        progress.expect_total(all);
        let mut earlier = Earlier::Table(Table::new(self.context.budget.work.min(table), 0)?);
        let full = self.write(0, &inputs, &mut earlier, rewriter, "comparing", report)?;
        let (Some((input, position)), Earlier::Table(table)) = (full, earlier) else {
            return Ok(());
        };
        report.strategy = Strategy::Memory.name_then_partition().into();
        let mut rest: Vec<_> = inputs.into_iter().skip(input).collect();
        if !rest.is_empty() {
            let first = rest.remove(0).from(position);
            rest.insert(0, first);
        }
        let left = bytes(&rest).unwrap_or(0);
        // The rest has as many parts in its bytes as what was read, or the file is compressed.
        let read = all.saturating_sub(left).max(1);
        let parts = (rewriter.parts.read as f64 * left as f64 / read as f64) as u64;
        let parts = if left == 0 { 8 * table.len() } else { parts };
        progress.expect_total(if left == 0 { 0 } else { 2 * left + parts * FIRST_RECORD as u64 });
        self.by_partition(input, &rest, parts, table, rewriter, report)
    }

    fn approximate(
        &self,
        inputs: &[Input],
        capacity: Option<u64>,
        fpr: Option<f64>,
        rewriter: &mut Rewriter<'_>,
        report: &mut Report,
    ) -> Result<()> {
        report.strategy = "approximate".into();
        let budget = &self.context.budget;
        let keys = capacity.map_or_else(|| self.estimate_parts(inputs), Ok)?;
        let filter = filter_within(budget, budget.work, Some(keys), fpr)?;
        let wrong_lines = Some(expected_losses(&filter, keys, keys));
        let fpr = filter.expected_fpr(filter.capacity());
        self.context.settings.progress.note(Note::Expecting { wrong_lines, fpr });
        let mut earlier = Earlier::Filter(filter);
        self.write(0, inputs, &mut earlier, rewriter, "matching", report)?;
        if let Earlier::Filter(filter) = earlier {
            (report.wrong, report.wrong_error) = lost_lines(&filter, 0);
        }
        Ok(())
    }

    /// Writes the documents of inputs, of which the first has the number `number`. Returns the input and the
    /// position in it at which the table was full.
    fn write(
        &self,
        number: usize,
        inputs: &[Input],
        earlier: &mut Earlier<'_>,
        rewriter: &mut Rewriter<'_>,
        what: &'static str,
        report: &mut Report,
    ) -> Result<Option<(usize, u64)>> {
        let refs: Vec<_> = inputs.iter().collect();
        let starts = match earlier {
            Earlier::Positions(_) => positions_of_inputs(inputs, 0)?,
            _ => vec![0; inputs.len()],
        };
        let mut full = None;
        let map = |batch: &Batch<'_>, scratch: &mut Scratch| self.divide(batch, scratch);
        let fold = |batch: &Batch<'_>, scratch: &mut Scratch| {
            self.refuse_bad(refs[batch.input], batch, scratch)?;
            rewriter.begin(number + batch.input)?;
            let written = rewriter.write(batch, scratch, starts[batch.input], earlier)?;
            if written == batch.len() {
                return Ok(ControlFlow::Continue(()));
            }
            full = Some((batch.input, batch.offset(written)));
            Ok(ControlFlow::Break(written))
        };
        report.add_pass(self.context.pass().run(what, &refs, map, fold)?);
        report.set_survivors(rewriter.kept);
        Ok(full)
    }

    /// Writes the documents from those on whose parts do not fit: `table` has the parts before. About
    /// `parts` parts follow.
    fn by_partition(
        &self,
        number: usize,
        inputs: &[Input],
        parts: u64,
        table: Table,
        rewriter: &mut Rewriter<'_>,
        report: &mut Report,
    ) -> Result<()> {
        let Settings { progress, .. } = *self.context.settings;
        let budget = &self.context.budget;
        let (half, workers) = (budget.work / 2, budget.workers);
        let spill_file = SpillFile::new(&self.context.temp_dir())?;
        let partitioning = partitioning(budget, parts + table.len(), 1);
        let prior = write_table(&table, &partitioning, &spill_file)?;
        drop(table);
        let spill = SpillWriter::new(&spill_file, partitioning.partitions(), half);
        let mut records = RecordSink::new(&partitioning, spill);
        let refs: Vec<_> = inputs.iter().collect();
        let mut count = 0;
        // Where the input begins if all are taken as one.
        let (mut at, mut start) = (0, 0);
        let map = |batch: &Batch<'_>, scratch: &mut Scratch| self.divide(batch, scratch);
        let fold = |batch: &Batch<'_>, scratch: &mut Scratch| {
            self.refuse_bad(refs[batch.input], batch, scratch)?;
            while at < batch.input {
                start += refs[at].known_length()?;
                at += 1;
            }
            for document in 0..batch.len() {
                let first = start + batch.offset(document);
                let fingerprints = &scratch.fingerprints[scratch.parts.range(document)];
                for (&fingerprint, position) in fingerprints.iter().zip(first..) {
                    records.add_first(fingerprint, position)?;
                }
            }
            count += scratch.fingerprints.len() as u64;
            Ok(ControlFlow::Continue(()))
        };
        report.add_pass(self.context.pass().run("reading", &refs, map, fold)?);
        report.records += count;
        let begun = Instant::now();
        let firsts = records.into_records();
        let parts = firsts.into_iter().zip(prior);
        let parts: Vec<_> =
            parts.map(|(first, prior)| Partition { first, others: vec![prior] }).collect();
        progress.phase("deciding", Some(parts.iter().map(Partition::bytes).sum()));
        let length = inputs.iter().map(Input::known_length).sum::<Result<u64>>()?;
        let spans = Spans::new(length, SpillWriter::max_streams(half / 8 / workers as u64));
        let join = PartitionJoin {
            op: SetOp::Dedup,
            polarity: Polarity::Dropped,
            boundary: 0,
            spans: Some(spans),
            spill_file: &spill_file,
            memory: half,
            workers,
            progress,
        };
        let JoinResult { positions, .. } = join.join(parts, &partitioning)?;
        report.add_phase("deciding", begun.elapsed().as_secs_f64());
        let positions = PositionSet::new(spans, positions, &spill_file, half, workers);
        let mut earlier = Earlier::Positions(&positions);
        self.write(number, inputs, &mut earlier, rewriter, "printing", report)?;
        report.spilled += spill_file.written();
        Ok(())
    }
}
