//! Verbs on filters of other programs: making, filling, uniting.

use std::path::Path;

use petal_interop::{CascadeOptions, Foreign, Format, KeyForm};
use petal_lines::{Cap, LEAST_MEMORY, LineFilterMut as _, Listed, Recipe, Settings, Source, fill};

use super::{known, refused_by};
use crate::args::{self, AddArgs, BuildArgs, MergeArgs};
use crate::exit::{Failure, Outcome, Result};
use crate::foreign_file::{self, AnyFile, ForeignFilter};
use crate::output::Output;
use crate::progress::Teller;
use crate::text;

/// A filter of petal's own holds lines as they are.
pub(super) fn refuse_form(path: &Path, told: args::Foreign) -> Result<()> {
    match told.form {
        None => Ok(()),
        Some(_) => Err(Failure::Plain(format!(
            "--as: {} is petal's own and holds lines as they are; leave it out",
            path.display()
        ))),
    }
}

/// Refuses words that do not go with a format, before any work is done.
pub(super) fn examine(args: &BuildArgs, format: Format) -> Result<()> {
    let trouble = |text: &str| Err(Failure::Plain(text.replace("{}", format.name())));
    let cascade = format == Format::FilterCascade;
    if args.gzip && format != Format::Dcso {
        return trouble("--gzip: who reads {} files does not unpack them; leave it out");
    }
    if cascade && args.not_in.is_none() {
        return trouble("--format {}: say with --not-in which lines it must not hold");
    }
    if !cascade && args.not_in.is_some() {
        return trouble("--not-in: a {} filter knows no exceptions; use --format filter-cascade");
    }
    if cascade && args.expected.is_some() {
        return trouble("-n: a {} is made of the lines that come; leave it out");
    }
    if cascade && args.form.is_some_and(|form| form != KeyForm::Text) {
        return trouble("--as: keys of a {} are lines as they are; leave it out");
    }
    Ok(())
}

/// How large the filter may be.
fn cap(args: &BuildArgs) -> u64 {
    args.memory.unwrap_or(Cap::DEFAULT).bytes()
}

/// Mozilla's cascade of all lines, and of the lines of `others` that it is never to say yes to.
pub(super) fn cascade(
    args: &BuildArgs,
    settings: &Settings<'_>,
    inputs: &[Source],
    others: &Path,
) -> Result<ForeignFilter<Vec<u8>>> {
    /// Bytes that making it takes for a key beside the key itself, and for those it errs on.
    const EACH: u64 = 64;
    let room = settings.memory;
    let members = Listed::read(settings, inputs, room, EACH)?;
    let room = room.saturating_sub(members.memory_usage() + EACH * members.len() as u64);
    let others = Listed::read(settings, &[Source::from_arg(others)], room, EACH)?;
    let defaults = CascadeOptions::default();
    let rate = args.fpr.unwrap_or(defaults.rate);
    let options = CascadeOptions { rate, limit: cap(args), ..defaults };
    Ok(ForeignFilter(petal_interop::cascade(members.iter(), others.iter(), &options)?))
}

/// A filter of all lines in another program's format.
pub(super) fn build(
    args: &BuildArgs,
    format: Format,
    settings: &Settings<'_>,
    inputs: &[Source],
    keys: u64,
) -> Result<ForeignFilter<Vec<u8>>> {
    let (rate, cap) = (args.fpr.unwrap_or(Recipe::RATE), cap(args));
    let filter = Foreign::with_limit(format, keys, rate, cap).map_err(|error| {
        if !error.is_too_large() {
            return error.into();
        }
        Failure::Plain(format!(
            "{} keys at {} take more than {}; raise -m, or accept a higher rate with -p",
            text::count(keys),
            text::rate(rate),
            text::size(cap),
        ))
    })?;
    let mut filter = ForeignFilter(filter).with_keys(args.form)?;
    fill(settings, &mut filter, inputs, cap).map_err(refused_by(&args.output))?;
    Ok(filter)
}

/// Says that a format cannot keep the planned rate: its double hashing sends some keys to few bits.
pub(super) fn warn_if_out_of_reach(
    filter: &ForeignFilter<Vec<u8>>,
    keys: u64,
    planned: f64,
    teller: &Teller,
) {
    let Some((rate, floor)) = filter.0.expected_rate(keys) else { return };
    if rate > planned * 1.5 && floor > planned / 2.0 {
        teller.say(&format!(
            "warning: the false-positive rate will be about {}, not {}: the double hashing of {} \
             cannot keep it with {}; plan for a higher rate, or take a format without that floor \
             (dcso, rbloom, hadoop-murmur, petal's own)",
            text::rate(rate),
            text::rate(planned),
            filter.0.format(),
            text::keys(keys),
        ));
    }
}

/// Writes a filter that was made or changed.
pub(super) fn write(
    filter: &ForeignFilter<Vec<u8>>,
    gzip: bool,
    mut output: Output,
    path: &Path,
) -> Result<()> {
    let written = filter.0.write_to(output.file(), gzip);
    written.map_err(Failure::of_foreign_output(path))?;
    output.finish()
}

/// Says what is wrong with a filter: what its format warns of, and that it errs more often than
/// planned.
pub(super) fn warn_if_overfull(
    filter: &ForeignFilter<Vec<u8>>,
    planned: Option<f64>,
    teller: &Teller,
) {
    let facts = filter.0.facts();
    for warning in &facts.warnings {
        teller.say(&format!("warning: {warning}"));
    }
    let held = facts.estimated_keys.unwrap_or(0.0);
    if facts.target_rate.is_none()
        && let Some(keys) = facts.planned_keys
    {
        if held > keys as f64 * 1.02 {
            let held = if held.is_finite() {
                format!("about {}", text::count(held as u64))
            } else {
                "more than its bits can tell".to_owned()
            };
            teller.say(&format!(
                "warning: planned for {}, and holds {held}; the false-positive rate is {} now; \
                 build a larger one with -n",
                text::keys(keys),
                text::rate(facts.rate_now),
            ));
        }
        return;
    }
    let Some(target) = facts.target_rate.or(planned) else { return };
    // A larger filter would not help against the floor.
    if petal::rate::overfull(target, facts.rate_now - facts.rate_floor, facts.bits) {
        teller.say(&format!(
            "warning: the false-positive rate is {} now, {} was planned; build a larger one with -n",
            text::rate(facts.rate_now),
            text::rate(target),
        ));
    }
}

/// More lines into another program's filter.
pub(super) struct Add<'a> {
    pub(super) args: &'a AddArgs,
    pub(super) filter: ForeignFilter<Vec<u8>>,
    /// Whether the file was packed, and is to be again.
    pub(super) packed: bool,
    pub(super) inputs: Vec<Source>,
    /// Lines that are known to be in it.
    pub(super) list: Option<Source>,
    pub(super) settings: Settings<'a>,
}

impl Add<'_> {
    pub(super) fn run(self, output: Output, teller: &Teller) -> Result<Outcome> {
        let Self { args, filter, packed, inputs, list, mut settings } = self;
        // A damaged file is not written again with a new date.
        filter.0.verify().map_err(Failure::of_foreign(&args.filter))?;
        let filter = filter.with_keys(args.foreign.form)?;
        // What is left is shared by the work and by what the filter grows.
        let size = filter.memory();
        let left = settings.memory.saturating_sub(size);
        let mut filter = filter.growing_to(size + left / 2);
        settings.memory = if filter.grows() { left / 2 } else { left }.max(LEAST_MEMORY);
        if let Some(list) = &list {
            known::of_foreign(&settings, &filter, &args.filter, list)?;
        }
        let filled = fill(&settings, &mut filter, &inputs, args.engine.memory.bytes());
        teller.finish();
        filled.map_err(refused_by(&args.filter))?;
        warn_if_overfull(&filter, None, teller);
        write(&filter, packed, output, &args.filter)?;
        Ok(Outcome::Done)
    }
}

/// The union of other programs' filters; `None` if the first is petal's own.
pub(super) fn merge(args: &MergeArgs) -> Result<Option<Outcome>> {
    let teller = Teller::silent(args.quiet);
    let Some((first, rest)) = args.filters.split_first() else { return Ok(None) };
    let cap = args.memory.bytes();
    let Some((mut filter, packed)) = foreign_file::read(first, args.written, cap / 2)? else {
        return Ok(None);
    };
    if args.fold {
        return Err(Failure::Plain("--fold: only petal's own filters are folded".to_owned()));
    }
    filter.0.verify().map_err(Failure::of_foreign(first))?;
    let inputs: Vec<_> = args.filters.iter().cloned().map(Source::Path).collect();
    let output = Output::open(Some(&args.output), &inputs)?;
    for path in rest {
        let room = cap.saturating_sub(filter.bytes());
        let AnyFile::Foreign(other) = foreign_file::open(path, args.written, room)? else {
            return Err(Failure::Plain(format!(
                "{}: is petal's own and not united with a {} filter; build all in one format",
                path.display(),
                filter.0.format()
            )));
        };
        other.0.verify().map_err(Failure::of_foreign(path))?;
        filter.0.union(&other.0).map_err(Failure::of_foreign(path))?;
    }
    warn_if_overfull(&filter, None, &teller);
    write(&filter, packed, output, &args.output)?;
    Ok(Some(Outcome::Done))
}
