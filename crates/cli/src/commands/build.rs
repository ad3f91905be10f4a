//! `build`: a filter file of all lines.

use petal::{FilterType, Membership};
use petal_interop::Format;
use petal_lines::{Cap, LEAST_MEMORY, METADATA, Recipe, Settings, Source, count_lines};

use super::{counters, foreign, refuse_stdin_twice, refused_by};
use crate::args::{BuildArgs, Kind, Read};
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
    let recipe = recipe(args);
    recipe.kind()?;
    let all = [&inputs[..], &recipe.not_in].concat();
    refuse_stdin_twice(&all)?;
    let mut output = Output::open(Some(&args.output), &all)?;
    let made = recipe.make(&settings, &inputs);
    teller.finish();
    let filter = made.map_err(refused_by(&args.output))?.filter;
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

/// What filter is asked for.
fn recipe(args: &BuildArgs) -> Recipe {
    Recipe {
        kind: args.kind.map(Kind::filter_type),
        keys: args.expected,
        rate: args.fpr,
        memory: args.memory.map(Cap::bytes),
        width: args.width,
        growing: args.growing,
        max_keys: args.up_to,
        window: args.window,
        last: args.last,
        now: args.clock.now(),
        not_in: args.not_in.iter().map(Source::from_arg).collect(),
        seed: args.seed.unwrap_or(0),
        keyed: args.keyed,
    }
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
    let planned = args.fpr.unwrap_or(Recipe::RATE);
    let filter = match &args.not_in {
        Some(others) => {
            let filter = foreign::cascade(args, settings, inputs, others);
            teller.finish();
            filter?
        }
        None => {
            let keys = match args.expected {
                Some(keys) => keys,
                None => count_lines(settings, inputs)?.max(1),
            };
            let filter = foreign::build(args, format, settings, inputs, keys);
            teller.finish();
            let filter = filter?;
            foreign::warn_if_out_of_reach(&filter, keys, planned, teller);
            foreign::warn_if_overfull(&filter, Some(planned), teller);
            filter
        }
    };
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

/// Settings where memory is not the matter: the filter is what takes it.
fn reading<'a>(read: &Read, teller: &'a Teller) -> Settings<'a> {
    let mut settings = Settings::new(Cap::DEFAULT.bytes().max(LEAST_MEMORY));
    if let Some(jobs) = read.jobs {
        settings.jobs = jobs.into();
    }
    if read.null {
        settings.delimiter = 0;
    }
    settings.text = read.text;
    settings.progress = teller;
    settings
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
