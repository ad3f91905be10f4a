//! Inserting the lines of inputs into filters, removing them, and counting them.

use std::io::Write;
use std::ops::ControlFlow;

use petal::MembershipMut;

use super::hashing::{hashing, refuse_bad_line};
use super::line_filter::{LineFilterMut, LineHash};
use crate::error::{Advice, Error, ErrorKind, Result, Setting};
use crate::input::{Input, Source};
use crate::job_context::JobContext;
use crate::numbers::format_size;
use crate::output::Outputs;
use crate::scan::{Batch, Scratch};
use crate::settings::Settings;

/// The result of filling a filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FillCounts {
    /// Lines read.
    pub lines: u64,
    /// Lines that were absent, according to the filter.
    pub new: u64,
}

/// The result of removing lines from a filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemoveCounts {
    /// Lines read.
    pub lines: u64,
    /// Lines that were certainly absent.
    pub missing: u64,
}

/// Counts the lines of inputs.
///
/// Cost: one pass at reading speed.
///
/// # Errors
/// If an input cannot be read, or only once.
pub fn count_lines(settings: &Settings<'_>, sources: &[Source]) -> Result<u64> {
    let (context, inputs) = JobContext::open_for_filters(settings, sources)?;
    let opens_again = |(source, input): (&Source, &Input)| match source.place() {
        Source::Counted(lists) => lists.is_repeatable(),
        _ => input.is_repeatable(),
    };
    if !sources.iter().zip(&inputs).all(opens_again) {
        let problem = "an input that can be read only once cannot be counted first";
        return Err(Error::setting_is(Setting::Capacity, problem)
            .advise(Advice::Specify(Setting::Capacity)));
    }
    let inputs: Vec<_> = inputs.iter().collect();
    let fold = |_: &Batch<'_>, _: &mut Scratch| Ok(ControlFlow::Continue(()));
    let stats = context.pass().run("counting", &inputs, |_, _| {}, fold)?;
    Ok(stats.lines)
}

/// Inserts every line of the inputs into a filter, which may grow to `max_bytes`.
///
/// A quotient filter counts as full at a load of 97 %: filling the remaining slots would take longer
/// than all others.
///
/// # Errors
/// If an input cannot be read, the filter is full, or it grows beyond `max_bytes`.
pub fn fill<F: LineFilterMut + ?Sized>(
    settings: &Settings<'_>,
    filter: &mut F,
    inputs: &[Source],
    max_bytes: u64,
) -> Result<FillCounts> {
    let (context, inputs) = JobContext::open_for_filters(settings, inputs)?;
    let inputs: Vec<_> = inputs.iter().collect();
    let hash = filter.member_hash();
    let mut new = 0;
    let initial = filter.size_bytes();
    let fold = |batch: &Batch<'_>, scratch: &mut Scratch| {
        refuse_bad_line(&inputs, batch, scratch)?;
        if filter.is_nearly_full() {
            return Err(
                Error::new(ErrorKind::Full, "the filter is full").advise("build a larger one")
            );
        }
        filter.insert_hashes(&scratch.hashes, &mut scratch.results)?;
        new += scratch.results.count_ones();
        let size = filter.size_bytes();
        if size > initial && size > max_bytes {
            let problem = format!(
                "the filter has grown to {}, more than the limit of {}",
                format_size(size),
                format_size(max_bytes)
            );
            return Err(Error::new(ErrorKind::Memory, problem)
                .advise(Advice::Raise(Setting::MemoryLimit))
                .advise(Advice::RebuildWithHigher(Setting::Fpr)));
        }
        Ok(ControlFlow::Continue(()))
    };
    let pass = context.pass().with_words(hash.words());
    let stats = pass.run("filling", &inputs, hashing(hash), fold)?;
    Ok(FillCounts { lines: stats.lines, new })
}

/// Calls a function with the words of the hashes of all lines of the inputs, in order and batch by batch.
/// Returns the number of lines.
pub(super) fn for_each_hashes(
    context: &JobContext<'_>,
    inputs: &[Input],
    hash: impl LineHash,
    mut take: impl FnMut(&[u64]) -> Result<()> + Send,
) -> Result<u64> {
    let inputs: Vec<_> = inputs.iter().collect();
    let fold = |_: &Batch<'_>, scratch: &mut Scratch| {
        take(&scratch.hashes)?;
        Ok(ControlFlow::Continue(()))
    };
    let pass = context.pass().with_words(hash.words());
    Ok(pass.run("hashing", &inputs, hashing(hash), fold)?.lines)
}

/// Removes every line of the inputs from a filter, once for each occurrence, and writes lines that
/// were certainly absent to `missing`.
///
/// Remove only lines that have been inserted: removing a false positive removes bits of other lines,
/// which may then be reported as absent.
///
/// # Errors
/// If an input cannot be read, `missing` cannot be written, or the filter type does not support
/// removal.
pub fn remove(
    settings: &Settings<'_>,
    filter: &mut dyn MembershipMut,
    inputs: &[Source],
    missing: Option<&mut (dyn Write + Send)>,
) -> Result<RemoveCounts> {
    let (context, inputs) = JobContext::open_for_filters(settings, inputs)?;
    let pass = context.pass();
    let outputs = Outputs { kept: missing, rest: None };
    let mut rows = context.row_outputs(outputs, &inputs)?;
    let mut printer = context.started_printer(rows.outputs(), &inputs)?;
    let inputs: Vec<_> = inputs.iter().collect();
    let hash = filter.hash_spec();
    let fold = |batch: &Batch<'_>, scratch: &mut Scratch| {
        filter.remove_mixed_hashes(&scratch.hashes, &mut scratch.results)?;
        for line in (0..batch.len()).filter(|&line| !scratch.results.get(line)) {
            printer.line(batch.line(line))?;
        }
        Ok(ControlFlow::Continue(()))
    };
    let stats = pass.run("removing", &inputs, hashing(hash), fold)?;
    printer.flush()?;
    let missing = printer.lines;
    drop(printer);
    rows.finish()?;
    Ok(RemoveCounts { lines: stats.lines, missing })
}

#[cfg(test)]
mod tests {
    use petal::BloomFilter;
    use petal_testkit::scratch::Scratch;

    use super::*;
    use crate::filters::query::{CheckCounts, CheckOptions, check};
    use crate::memory::MIN_MEMORY;

    #[test]
    fn every_line_of_many_batches_is_found() {
        let scratch = Scratch::new();
        let text =
            |from: u64| (from..from + 30_000).map(|n| format!("line {n}\n")).collect::<String>();
        let members = [Source::from_arg(scratch.write("members", text(0).as_bytes()))];
        let others = [Source::from_arg(scratch.write("others", text(20_000).as_bytes()))];
        let mut settings = Settings::new(MIN_MEMORY);
        settings.jobs = 2;
        let mut filter: Box<dyn MembershipMut> =
            Box::new(BloomFilter::with_fpr(30_000, 1e-9).unwrap());
        let filled = fill(&settings, &mut *filter, &members, u64::MAX).unwrap();
        assert_eq!(filled, FillCounts { lines: 30_000, new: 30_000 });
        let mut out = Vec::new();
        let options = CheckOptions::default();
        let checked = check(&settings, &*filter, &others, options, Some(&mut out)).unwrap();
        assert_eq!(checked, CheckCounts { lines: 30_000, found: 10_000 });
        let expect: String = text(20_000).lines().take(10_000).map(|l| format!("{l}\n")).collect();
        assert!(out == expect.as_bytes());
        out.clear();
        let absent = CheckOptions { invert: true, ..CheckOptions::default() };
        check(&settings, &*filter, &others, absent, Some(&mut out)).unwrap();
        assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 20_000);
        assert_eq!(fill(&settings, &mut *filter, &members, u64::MAX).unwrap().new, 0);
    }
}
