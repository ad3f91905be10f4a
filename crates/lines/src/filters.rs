//! Filter files and lines: filling a filter, and asking it.
//!
//! A filter says how lines are hashed, and whether a hash has one word or two; answers are one a
//! line in either case.

use std::io::Write;

use petal::{HashSpec, Membership, MembershipMut};

use crate::error::Result;
use crate::input::{Input, Source};
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
    /// Lines the filter says it may hold.
    pub hits: u64,
}

/// Counts the lines of inputs that can be read again; `None` if one cannot.
///
/// Cost: one pass, as fast as they can be read.
pub fn count_lines(settings: &Settings<'_>, inputs: &[Source]) -> Result<Option<u64>> {
    let (budget, inputs) = settings.open(inputs)?;
    if !inputs.iter().all(Input::is_repeatable) {
        return Ok(None);
    }
    let inputs: Vec<_> = inputs.iter().collect();
    let fold = |_: &Batch<'_>, _: &mut Scratch| Ok(Flow::Go);
    let seen = settings.pass(budget).run("counting", &inputs, |_, _| {}, fold)?;
    Ok(Some(seen.lines))
}

/// Puts every line of the inputs into a filter.
pub fn fill(
    settings: &Settings<'_>,
    filter: &mut dyn MembershipMut,
    inputs: &[Source],
) -> Result<Filled> {
    let (budget, inputs) = settings.open(inputs)?;
    let inputs: Vec<_> = inputs.iter().collect();
    let hash = filter.hash_spec();
    let before = filter.inserted();
    let fold = |_: &Batch<'_>, scratch: &mut Scratch| {
        filter.insert_hashes(&scratch.keys, &mut scratch.answers)?;
        Ok(Flow::Go)
    };
    let seen = settings.pass(budget).run("filling", &inputs, hashing(hash), fold)?;
    Ok(Filled { lines: seen.lines, new: filter.inserted() - before })
}

/// Prints the lines that a filter may hold, or, inverted, those that it certainly does not.
/// Without a sink they are only counted.
pub fn check(
    settings: &Settings<'_>,
    filter: &dyn Membership,
    inputs: &[Source],
    invert: bool,
    sink: Option<&mut (dyn Write + Send)>,
) -> Result<Checked> {
    let (budget, inputs) = settings.open(inputs)?;
    let live = !inputs.iter().all(Input::is_repeatable);
    let inputs: Vec<_> = inputs.iter().collect();
    let pass = settings.pass(budget);
    let mut printer =
        Printer::new(Sinks { kept: sink, rest: None }, settings.delimiter, pass.budget.chunk);
    let hash = hashing(filter.hash_spec());
    let map = |batch: &Batch<'_>, scratch: &mut Scratch| {
        hash(batch, scratch);
        filter.contains_hashes(&scratch.keys, &mut scratch.answers);
    };
    let mut hits = 0;
    let fold = |batch: &Batch<'_>, scratch: &mut Scratch| {
        hits += scratch.answers.count_ones();
        if !printer.counts_only() {
            for line in 0..batch.len() {
                if scratch.answers.get(line) != invert {
                    printer.line(batch.line(line))?;
                }
            }
            if live && !batch.more {
                printer.flush()?;
            }
        }
        Ok(Flow::Go)
    };
    let seen = pass.run("checking", &inputs, map, fold)?;
    printer.flush()?;
    Ok(Checked { lines: seen.lines, hits })
}

/// Hashes every line of a batch the way the filter's file says.
fn hashing(hash: HashSpec) -> impl Fn(&Batch<'_>, &mut Scratch) + Sync {
    move |batch, scratch| {
        scratch.take_keys(batch, &hash);
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
            let filled = fill(&settings, &mut **filter, &members).unwrap();
            assert_eq!(filled, Filled { lines: 30_000, new: 30_000 }, "{filter:?}");
            let mut out = Vec::new();
            let checked = check(&settings, &**filter, &others, false, Some(&mut out)).unwrap();
            assert_eq!(checked, Checked { lines: 30_000, hits: 10_000 }, "{filter:?}");
            let expect: String =
                text(20_000).lines().take(10_000).map(|l| format!("{l}\n")).collect();
            assert!(out == expect.as_bytes(), "{filter:?}");
            out.clear();
            check(&settings, &**filter, &others, true, Some(&mut out)).unwrap();
            assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 20_000);
            assert_eq!(fill(&settings, &mut **filter, &members).unwrap().new, 0);
        }
    }
}
