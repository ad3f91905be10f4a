//! Filter files and lines: filling a filter, asking it, and taking lines out again.
//!
//! A filter says how lines are hashed, and whether a hash has one word or two; answers are one a
//! line in either case.

use std::io::Write;

use petal::{HashSpec, MembershipMut};

use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::exceptions::Exceptions;
use crate::input::{Input, Source};
use crate::line_filter::{LineFilter, LineFilterMut, LineHash};
use crate::pass::{Batch, Flow, Scratch};
use crate::print::{Printer, Sinks};
use crate::settings::Settings;

/// What went into a filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filled {
    /// Lines read.
    pub lines: u64,
    /// Lines the filter had not seen, as far as it can tell.
    pub new: u64,
}

/// What was asked of a filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Lines read.
    pub lines: u64,
    /// Lines printed, or counted: held, or with [`Check::invert`] not.
    pub found: u64,
}

/// What was taken out of a filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Lines read.
    pub lines: u64,
    /// Lines that were certainly not in the filter.
    pub missing: u64,
}

/// What to ask of a filter.
#[derive(Clone, Copy, Default)]
pub struct Check<'a> {
    /// Print the lines that the filter certainly does not hold instead.
    pub invert: bool,
    /// Lines that count as not held, whatever the filter says.
    pub allow: Option<&'a Exceptions>,
}

/// Counts the lines of inputs, to plan for them.
///
/// Cost: one pass, as fast as they can be read.
///
/// # Errors
/// When an input cannot be read, or not again.
pub fn count_lines(settings: &Settings<'_>, inputs: &[Source]) -> Result<u64> {
    let (budget, inputs) = settings.open(inputs)?;
    if !inputs.iter().all(Input::is_repeatable) {
        return Err(Error::uncountable());
    }
    let inputs: Vec<_> = inputs.iter().collect();
    let fold = |_: &Batch<'_>, _: &mut Scratch| Ok(Flow::Go);
    let seen = settings.pass(budget).run("counting", &inputs, |_, _| {}, fold)?;
    Ok(seen.lines)
}

/// Puts every line of the inputs into a filter, which may grow to `most` bytes.
///
/// A table is full when 97 % of its slots are taken, be it some lines later: for the last slots of
/// a large one takes longer than for all others.
///
/// # Errors
/// When an input cannot be read, the filter is full, or it has grown to more than `most`.
pub fn fill<F: LineFilterMut + ?Sized>(
    settings: &Settings<'_>,
    filter: &mut F,
    inputs: &[Source],
    most: u64,
) -> Result<Filled> {
    let (budget, inputs) = settings.open(inputs)?;
    let inputs: Vec<_> = inputs.iter().collect();
    let hash = filter.member_hash();
    let mut new = 0;
    let begun = filter.bytes();
    let fold = |batch: &Batch<'_>, scratch: &mut Scratch| {
        refuse_bad_line(&inputs, batch, scratch)?;
        if filter.is_crammed() {
            return Err(Error::full());
        }
        filter.put(&scratch.keys, &mut scratch.answers)?;
        new += scratch.answers.count_ones();
        let size = filter.bytes();
        if size > begun && size > most {
            return Err(Error::outgrown(size, most));
        }
        Ok(Flow::Go)
    };
    let pass = settings.pass(budget).with_words(hash.words());
    let seen = pass.run("filling", &inputs, hashing(hash), fold)?;
    Ok(Filled { lines: seen.lines, new })
}

/// The hashes of all lines of the inputs, in order: for filters that are made at once. `held` are
/// those that the caller holds already.
///
/// Cost: one pass, and 8 bytes a line; as much again is left free for what is made of them.
///
/// # Errors
/// When an input cannot be read, or hashes take more than the cap leaves for work.
pub fn hashes(
    settings: &Settings<'_>,
    hash: &HashSpec,
    inputs: &[Source],
    held: u64,
) -> Result<Vec<u64>> {
    let names: Vec<_> = inputs.iter().map(ToString::to_string).collect();
    let (budget, inputs) = settings.open(inputs)?;
    let inputs: Vec<_> = inputs.iter().collect();
    let most = (budget.work / 16).saturating_sub(held);
    let mut hashes = Vec::new();
    let fold = |_: &Batch<'_>, scratch: &mut Scratch| {
        let more = scratch.keys.len();
        let count = (hashes.len() + more) as u64;
        if count > most {
            return Err(Error::too_many_lines(&names.join(" "), settings.memory));
        }
        hashes.try_reserve(more).map_err(|_| Error::alloc(count * 8))?;
        hashes.extend_from_slice(&scratch.keys);
        Ok(Flow::Go)
    };
    settings.pass(budget).run("hashing", &inputs, hashing(*hash), fold)?;
    Ok(hashes)
}

/// Takes every line of the inputs out of a filter, once for each time it comes; those that were
/// certainly not in it go to the sink.
///
/// A line that is taken out must have been put in: one that the filter only seems to hold is taken
/// out as well, and with it what other lines rely on.
///
/// # Errors
/// When an input cannot be read, the sink cannot be written, or the type of filter deletes nothing.
pub fn remove(
    settings: &Settings<'_>,
    filter: &mut dyn MembershipMut,
    inputs: &[Source],
    missing: Option<&mut (dyn Write + Send)>,
) -> Result<Removed> {
    let (budget, inputs) = settings.open(inputs)?;
    let inputs: Vec<_> = inputs.iter().collect();
    let pass = settings.pass(budget);
    let sinks = Sinks { kept: missing, rest: None };
    let mut printer = Printer::new(sinks, settings.delimiter, pass.budget.chunk);
    let hash = filter.hash_spec();
    let fold = |batch: &Batch<'_>, scratch: &mut Scratch| {
        filter.remove_mixed_hashes(&scratch.keys, &mut scratch.answers)?;
        for line in (0..batch.len()).filter(|&line| !scratch.answers.get(line)) {
            printer.line(batch.line(line))?;
        }
        Ok(Flow::Go)
    };
    let seen = pass.run("removing", &inputs, hashing(hash), fold)?;
    printer.flush()?;
    Ok(Removed { lines: seen.lines, missing: printer.lines })
}

/// Prints the lines that a filter may hold, or, inverted, those that it certainly does not.
/// Without a sink they are only counted.
pub fn check<F: LineFilter + ?Sized>(
    settings: &Settings<'_>,
    filter: &F,
    inputs: &[Source],
    asked: Check<'_>,
    sink: Option<&mut (dyn Write + Send)>,
) -> Result<Checked> {
    let (budget, inputs) = settings.open(inputs)?;
    check_inputs(settings, budget, filter, &inputs, asked, sink)
}

/// The same of inputs that were looked at.
pub(crate) fn check_inputs<F: LineFilter + ?Sized>(
    settings: &Settings<'_>,
    budget: Budget,
    filter: &F,
    inputs: &[Input],
    asked: Check<'_>,
    sink: Option<&mut (dyn Write + Send)>,
) -> Result<Checked> {
    let live = !inputs.iter().all(Input::is_repeatable);
    let inputs: Vec<_> = inputs.iter().collect();
    let hash = filter.line_hash();
    let pass = settings.pass(budget).with_words(hash.words());
    let mut printer =
        Printer::new(Sinks { kept: sink, rest: None }, settings.delimiter, pass.budget.chunk);
    let hash = hashing(hash);
    let map = |batch: &Batch<'_>, scratch: &mut Scratch| {
        hash(batch, scratch);
        scratch.picks.clear();
        if scratch.bad_line.is_some() {
            return;
        }
        filter.holds(&scratch.keys, &mut scratch.answers);
        let answers = &scratch.answers;
        let allowed = |line| asked.allow.is_some_and(|list| list.contains(batch.line(line)));
        let held = |line| answers.get(line) && !allowed(line);
        scratch.picks.extend((0..batch.len()).filter(|&line| held(line) != asked.invert));
    };
    let fold = |batch: &Batch<'_>, scratch: &mut Scratch| {
        refuse_bad_line(&inputs, batch, scratch)?;
        for &line in &scratch.picks {
            printer.line(batch.line(line))?;
        }
        if live && !batch.more {
            printer.flush()?;
        }
        Ok(Flow::Go)
    };
    let seen = pass.run("checking", &inputs, map, fold)?;
    printer.flush()?;
    Ok(Checked { lines: seen.lines, found: printer.lines })
}

/// Hashes every line of a batch the way the filter's file says.
fn hashing(hash: impl LineHash) -> impl Fn(&Batch<'_>, &mut Scratch) + Sync {
    move |batch, scratch| {
        scratch.keys.clear();
        scratch.bad_line = hash.hash_lines(batch.lines(), &mut scratch.keys).err();
    }
}

/// A line that cannot be a key ends the pass, when its turn comes.
fn refuse_bad_line(inputs: &[&Input], batch: &Batch<'_>, scratch: &mut Scratch) -> Result<()> {
    match scratch.bad_line.take() {
        None => Ok(()),
        Some(bad) => {
            let input = inputs[batch.input];
            Err(Error::bad_line(input.name(), input.byte(batch.offset(bad.line)), bad.why))
        }
    }
}

#[cfg(test)]
mod tests {
    use petal::{BloomFilter, WideBloomFilter};
    use petal_testkit::scratch::Scratch;

    use super::*;
    use crate::budget::LEAST_MEMORY;

    /// Hashes of one word and of two: every line is found, in many batches, and told one by one.
    #[test]
    fn lines_go_into_filters_of_either_width() {
        let scratch = Scratch::new();
        let text =
            |from: u64| (from..from + 30_000).map(|n| format!("line {n}\n")).collect::<String>();
        let members = [Source::from_arg(scratch.write("members", text(0).as_bytes()))];
        let others = [Source::from_arg(scratch.write("others", text(20_000).as_bytes()))];
        let mut settings = Settings::new(LEAST_MEMORY);
        settings.jobs = 2;
        let mut filters: [Box<dyn MembershipMut>; 2] = [
            Box::new(BloomFilter::with_rate(30_000, 1e-9).unwrap()),
            Box::new(WideBloomFilter::with_rate(30_000, 1e-18).unwrap()),
        ];
        for filter in &mut filters {
            let filled = fill(&settings, &mut **filter, &members, u64::MAX).unwrap();
            assert_eq!(filled, Filled { lines: 30_000, new: 30_000 }, "{filter:?}");
            let mut out = Vec::new();
            let held = Check::default();
            let checked = check(&settings, &**filter, &others, held, Some(&mut out)).unwrap();
            assert_eq!(checked, Checked { lines: 30_000, found: 10_000 }, "{filter:?}");
            let expect: String =
                text(20_000).lines().take(10_000).map(|l| format!("{l}\n")).collect();
            assert!(out == expect.as_bytes(), "{filter:?}");
            out.clear();
            let absent = Check { invert: true, ..Check::default() };
            check(&settings, &**filter, &others, absent, Some(&mut out)).unwrap();
            assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 20_000);
            assert_eq!(fill(&settings, &mut **filter, &members, u64::MAX).unwrap().new, 0);
        }
    }
}
