//! Queries: which lines of inputs a filter may contain.

use std::io::Write;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use petal::BatchResults;

use super::allow_list::AllowList;
use super::hashing::{hashing, refuse_bad_line};
use super::line_filter::{LineFilter, LineHash as _};
use crate::error::{Error, Result};
use crate::input::{Input, Source};
use crate::job_context::JobContext;
use crate::keys::Fields;
use crate::output::Outputs;
use crate::scan::{Batch, Scratch};
use crate::settings::Settings;

/// The result of a query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckCounts {
    /// Lines read.
    pub lines: u64,
    /// Lines printed or counted: those that may be present, or with [`CheckOptions::invert`] those
    /// that are absent.
    pub found: u64,
}

/// The answers of filters about the lines of a batch.
struct Answers<'a> {
    results: &'a BatchResults,
    lines: usize,
    filters: usize,
}

impl Answers<'_> {
    /// Returns the numbers of the filters that contain a line.
    fn of(&self, line: usize) -> impl Iterator<Item = usize> {
        (0..self.filters).filter(move |filter| self.results.get(filter * self.lines + line))
    }
}

/// Options of a query.
#[derive(Clone, Copy, Default)]
pub struct CheckOptions<'a> {
    /// Print the lines that are certainly absent instead.
    pub invert: bool,
    /// Lines that are reported as absent in any case.
    pub allow: Option<&'a AllowList>,
    /// Print each line once for each filter that contains it, after the filter's name and a tab. The
    /// names are those of all filters in order.
    pub names: Option<&'a [String]>,
}

/// Prints the lines that a filter, or one of a [`FilterGroup`](super::FilterGroup), may contain; with
/// [`CheckOptions::invert`] those that none contains. Without `output` they are only counted.
pub fn check<F: LineFilter + ?Sized>(
    settings: &Settings<'_>,
    filter: &F,
    inputs: &[Source],
    options: CheckOptions<'_>,
    output: Option<&mut (dyn Write + Send)>,
) -> Result<CheckCounts> {
    let (context, inputs) = JobContext::open_for_filters(settings, inputs)?;
    check_inputs(&context, filter, &inputs, options, output)
}

/// [`check`] of open inputs.
pub(crate) fn check_inputs<F: LineFilter + ?Sized>(
    context: &JobContext<'_>,
    filter: &F,
    inputs: &[Input],
    options: CheckOptions<'_>,
    output: Option<&mut (dyn Write + Send)>,
) -> Result<CheckCounts> {
    if options.names.is_some()
        && let Some(table) = inputs.iter().find(|input| input.is_table())
    {
        let problem = "its rows are binary data, which cannot follow a name";
        return Err(Error::input(table.name(), problem).advise("ask one filter at a time"));
    }
    let live = !inputs.iter().all(Input::is_repeatable);
    let hash = filter.line_hash();
    let pass = context.pass().with_words(hash.words());
    let outputs = Outputs { kept: output, rest: None };
    let mut rows = context.row_outputs(outputs, inputs)?;
    let mut printer = context.started_printer(rows.outputs(), inputs)?;
    let inputs: Vec<_> = inputs.iter().collect();
    let (hash, filters) = (hashing(hash), filter.filters());
    let mut named = Vec::new();
    let failed = Mutex::new(None);
    let map = |batch: &Batch<'_>, scratch: &mut Scratch| {
        hash(batch, scratch);
        scratch.selected.clear();
        if scratch.bad_line.is_some() {
            return;
        }
        if let Err(error) = filter.contains_hashes(&scratch.hashes, &mut scratch.results) {
            failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            return;
        }
        let answers = Answers { results: &scratch.results, lines: batch.len(), filters };
        let allowed = |line| options.allow.is_some_and(|list| list.contains(batch.key(line)));
        let found = |line| answers.of(line).next().is_some() && !allowed(line);
        // A comment of a checksum file is neither present nor absent.
        let sums = matches!(inputs[batch.input].keys().fields, Fields::Checksum(_));
        let is_key = |line: &usize| !sums || !batch.key(*line).is_empty();
        let lines = (0..batch.len()).filter(is_key);
        scratch.selected.extend(lines.filter(|&line| found(line) != options.invert));
    };
    let fold = |batch: &Batch<'_>, scratch: &mut Scratch| {
        refuse_bad_line(&inputs, batch, scratch)?;
        // Batches that failed print nothing.
        if let Some(error) = failed.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(error);
        }
        let answers = Answers { results: &scratch.results, lines: batch.len(), filters };
        for &line in &scratch.selected {
            match options.names {
                None => printer.line(batch.line(line))?,
                Some(names) => {
                    for filter in answers.of(line) {
                        named.clear();
                        named.extend_from_slice(names.get(filter).map_or(&[], String::as_bytes));
                        named.push(b'\t');
                        named.extend_from_slice(batch.line(line));
                        printer.line(&named)?;
                    }
                }
            }
        }
        if live && !batch.more {
            printer.flush()?;
        }
        Ok(ControlFlow::Continue(()))
    };
    let stats = pass.run("checking", &inputs, map, fold)?;
    printer.flush()?;
    let found = printer.lines;
    drop(printer);
    rows.finish()?;
    Ok(CheckCounts { lines: stats.lines, found })
}
