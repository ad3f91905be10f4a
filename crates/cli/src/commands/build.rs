//! `build`: a filter file of all lines.

use std::path::Path;

use petal::{AnyFilter, FilterType, Membership};
use petal_interop::Format;
use petal_lines::{Settings, Source, count_lines, fill};

use super::{counters, foreign, make, refuse_stdin_twice};
use crate::args::{BuildArgs, Kind, Memory, Read};
use crate::exit::{Failure, Outcome, Result};
use crate::output::Output;
use crate::progress::Teller;
use crate::text;

pub(super) fn run(args: &BuildArgs) -> Result<Outcome> {
    let teller = Teller::new(&args.read.talk, false);
    let settings = reading(&args.read, &teller);
    let inputs = args.inputs.sources();
    if let Some(format) = args.format {
        return build_foreign(args, format, &settings, &inputs, &teller);
    }
    // Refused before any work is done.
    let kind = make::kind(args)?;
    let mut all = inputs.clone();
    all.extend(args.not_in.as_ref().map(Source::from_arg));
    refuse_stdin_twice(&all)?;
    let mut output = Output::open(Some(&args.output), &all)?;
    let filter = match kind {
        Kind::Static | Kind::Cascade => make::at_once(args, kind, &settings, &inputs),
        _ => filled(args, kind, &settings, &inputs),
    };
    teller.finish();
    let filter = filter?;
    warn_if_overfull(filter.face(), &teller);
    warn_if_useless(args, filter.face(), &teller);
    counters::note_if_stuck(&filter, &teller);
    filter.write_to(output.file(), METADATA).map_err(Failure::of_output(&args.output))?;
    output.finish()?;
    if filter.face().inserted() == 0 {
        teller.say("note: no lines came in; the filter is empty");
    }
    Ok(Outcome::Done)
}

/// Another program's filter.
fn build_foreign(
    args: &BuildArgs,
    format: Format,
    settings: &Settings<'_>,
    inputs: &[Source],
    teller: &Teller,
) -> Result<Outcome> {
    foreign::examine(args, format)?;
    let mut all = inputs.to_vec();
    all.extend(args.not_in.as_ref().map(Source::from_arg));
    refuse_stdin_twice(&all)?;
    let output = Output::open(Some(&args.output), &all)?;
    let planned = args.fpr.unwrap_or(make::RATE);
    let filter = match &args.not_in {
        Some(others) => foreign::cascade(args, settings, inputs, others),
        None => {
            let keys = args.expected.map_or_else(|| counted(settings, inputs), Ok)?;
            foreign::build(args, format, settings, inputs, keys)
        }
    };
    teller.finish();
    let filter = filter?;
    if args.not_in.is_none() {
        foreign::warn_if_overfull(&filter, Some(planned), teller);
    }
    foreign::write(&filter, args.gzip, output, &args.output)?;
    Ok(Outcome::Done)
}

/// Says so when the best rate that fits -m is no good one.
fn warn_if_useless(args: &BuildArgs, filter: &dyn Membership, teller: &Teller) {
    let planned = filter.target_rate();
    if args.fpr.is_none() && planned > POOR {
        teller.say(&format!(
            "warning: {} in {} have a false-positive rate of {}; raise -m",
            text::keys(filter.planned_keys()),
            text::size(filter.size_bytes()),
            text::rate(planned),
        ));
    }
}

/// Who wants a rate above this will say so.
const POOR: f64 = 0.1;

/// A filter that takes line after line.
fn filled(
    args: &BuildArgs,
    kind: Kind,
    settings: &Settings<'_>,
    inputs: &[Source],
) -> Result<AnyFilter> {
    let keys = match args.expected {
        Some(keys) => keys,
        // It grows with what comes, or was told how many it is to hold.
        None if kind == Kind::Scalable || args.last.is_some() => 0,
        // All of them come at once, and that may be no more than a part of the window.
        None if kind == Kind::Windowed => counted(settings, inputs)?.saturating_mul(PARTS),
        None => counted(settings, inputs)?,
    };
    let mut filter = make::filter(args, kind, keys)?;
    let filled = fill(settings, filter.face_mut()?, inputs, make::cap(args));
    filled.map_err(|error| full(error, &args.output, filter.face()))?;
    Ok(filter)
}

/// A filter that takes no more lines, in words of this program.
pub(super) fn full(error: petal_lines::Error, path: &Path, filter: &dyn Membership) -> Failure {
    if !error.is_full() {
        return error.into();
    }
    let grew = filter.geometry().contains(&("growing", 1));
    let way_out = match (filter.fill_ratio() < CROWDED, grew) {
        (true, _) => "a line came so often that its place is; take --type counting",
        (_, true) => "build it anew with a larger --up-to",
        _ => "build it anew with a larger -n, or with --growing",
    };
    Failure::Plain(format!(
        "{}: full at {}, planned for {}; {way_out}",
        path.display(),
        text::keys(filter.inserted()),
        text::count(filter.planned_keys()),
    ))
}

/// A table that is full with less than this of its slots taken has a place that is crowded.
const CROWDED: f64 = 0.9;

/// Parts that a window is planned in: one generation less than there are.
const PARTS: u64 = 3;

/// What filters built from lines say of themselves. No time and no names: the same lines give
/// the same file.
pub(super) const METADATA: &str = concat!(
    r#"{"producer":"petal "#,
    env!("CARGO_PKG_VERSION"),
    r#"","keys":"lines as bytes, without their delimiter"}"#
);

/// Settings where memory is not the matter: the filter is what takes it.
fn reading<'a>(read: &Read, teller: &'a Teller) -> Settings<'a> {
    let mut settings = Settings::new(Memory::Percent(50.0).bytes().max(petal_lines::LEAST_MEMORY));
    if let Some(jobs) = read.jobs {
        settings.jobs = jobs.into();
    }
    if read.null {
        settings.delimiter = 0;
    }
    settings.progress = teller;
    settings
}

fn counted(settings: &Settings<'_>, inputs: &[Source]) -> Result<u64> {
    let lines = count_lines(settings, inputs)?.ok_or_else(|| {
        Failure::Plain(
            "an input that can be read only once cannot be counted first; say how many keys to \
             plan for with -n"
                .to_owned(),
        )
    })?;
    Ok(lines.max(1))
}

/// Says so when a filter holds more than it was planned for, and what that costs.
pub(super) fn warn_if_overfull(filter: &dyn Membership, teller: &Teller) {
    if filter.filter_type() == FilterType::Windowed {
        if filter.is_overfull() {
            teller.say(&format!(
                "warning: more lines came within a part of the window than are planned for; the \
                 false-positive rate is {} now; build a larger one with -n",
                text::rate(filter.estimated_rate()),
            ));
        }
        return;
    }
    let planned = filter.planned_keys();
    let held = filter.inserted();
    // Counted, and after a merge estimated, to a small part of a percent. What grows may hold
    // more than it was planned for and be none the worse.
    if planned > 0 && held as f64 > planned as f64 * 1.01 && filter.is_overfull() {
        // Where most keys seem to be there already, few are counted as new.
        let about = if filter.estimated_rate() < 0.5 { "about" } else { "more than" };
        teller.say(&format!(
            "warning: the filter was planned for {} and holds {about} {}; its false-positive \
             rate is {} now; build a larger one with -n",
            text::keys(planned),
            text::count(held),
            text::rate(filter.estimated_rate()),
        ));
    }
}
