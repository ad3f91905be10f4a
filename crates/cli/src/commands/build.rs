//! `build`: a filter file of all lines.

use petal::{
    AnyFilter, BloomFilter, ClassicBloomFilter, ClassicShape, HashSpec, Membership, Shape,
};
use petal_lines::{Settings, Source, count_lines, fill};

use super::bytes;
use crate::args::{BuildArgs, Kind, Memory, Read};
use crate::exit::{Failure, Outcome, Result};
use crate::output::Output;
use crate::progress::Teller;
use crate::text;

/// The rate when nothing is said of it.
pub(super) const RATE: f64 = 0.01;

pub(super) fn run(args: &BuildArgs) -> Result<Outcome> {
    let teller = Teller::new(&args.read.talk, false);
    let settings = reading(&args.read, &teller);
    let inputs = args.inputs.sources();
    // Refused before any work is done.
    let mut output = Output::open(Some(&args.output), &inputs)?;
    let keys = match args.expected {
        Some(keys) => keys,
        None => counted(&settings, &inputs)?,
    };
    let mut filter = sized(args, keys)?;
    let filled = fill(&settings, filter.face_mut()?, &inputs);
    teller.finish();
    let filled = filled?;
    warn_if_overfull(filter.face(), &teller);
    filter.write_to(output.file(), METADATA).map_err(Failure::of_output(&args.output))?;
    output.finish()?;
    if filled.lines == 0 {
        teller.say("note: no lines came in; the filter is empty");
    }
    Ok(Outcome::Done)
}

/// A better rate than anybody asks for: with -m alone, the filter stops growing there.
const BEST_RATE: f64 = 1e-9;

/// What filters built from lines say of themselves. No time and no names: the same lines give
/// the same file.
pub(super) const METADATA: &str = concat!(
    r#"{"producer":"petal "#,
    env!("CARGO_PKG_VERSION"),
    r#"","keys":"lines as bytes, without their delimiter"}"#
);

/// Settings where memory is not the matter: the filter is what takes it.
fn reading<'a>(read: &Read, teller: &'a Teller) -> Settings<'a> {
    let mut settings = Settings::new(bytes(Memory::Percent(50.0)).max(petal_lines::LEAST_MEMORY));
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

/// The filter that was asked for, by rate or by memory.
fn sized(args: &BuildArgs, keys: u64) -> Result<AnyFilter> {
    let cap = bytes(args.memory.unwrap_or(Memory::Percent(50.0)));
    let hash = if args.keyed {
        HashSpec::keyed(random_key()?)
    } else {
        HashSpec::rapid(args.seed.unwrap_or(0))
    };
    // Only -m: the best rate that fits. Else the rate decides, and -m is a limit.
    let by_memory = args.memory.is_some() && args.fpr.is_none();
    // More than this rate takes would be memory for nothing.
    let most = match args.kind {
        Kind::Bloom => Shape::for_rate(keys, BEST_RATE).map(|shape| shape.size_bytes()),
        Kind::Classic => ClassicShape::for_rate(keys, BEST_RATE).map(|shape| shape.size_bytes()),
    };
    let memory = cap.min(most.unwrap_or(cap));
    let rate = args.fpr.unwrap_or(RATE);
    if !by_memory {
        let needed = match args.kind {
            Kind::Bloom => Shape::for_rate(keys, rate)?.size_bytes(),
            Kind::Classic => ClassicShape::for_rate(keys, rate)?.size_bytes(),
        };
        if needed > cap {
            return Err(too_large(args, keys, rate, needed, cap));
        }
    }
    Ok(match args.kind {
        Kind::Bloom => {
            let builder = BloomFilter::builder().hash(hash).keys(keys);
            let builder = if by_memory { builder.memory(memory) } else { builder.rate(rate) };
            AnyFilter::from(builder.build()?)
        }
        Kind::Classic => {
            let builder = ClassicBloomFilter::builder().hash(hash).keys(keys);
            let builder = if by_memory { builder.memory(memory) } else { builder.rate(rate) };
            AnyFilter::from(builder.build()?)
        }
    })
}

fn too_large(args: &BuildArgs, keys: u64, rate: f64, needed: u64, cap: u64) -> Failure {
    let best = match args.kind {
        Kind::Bloom => Shape::for_memory(cap, keys).map(|shape| shape.rate(keys)),
        Kind::Classic => ClassicShape::for_memory(cap, keys).map(|shape| shape.rate(keys)),
    };
    let cap_is = if args.memory.is_some() { "-m" } else { "half of the memory there is" };
    // A filter that says yes to most things is no way out.
    let or = match best {
        Ok(best) if best < 0.5 && args.memory.is_some() => {
            format!(", or leave out -p to get {}", text::rate(best))
        }
        Ok(best) if best < 0.5 => format!(", or accept {} with -p", text::rate(best * 1.001)),
        _ => ", or plan for fewer keys with -n".to_owned(),
    };
    Failure::Plain(format!(
        "{} keys at {} take {}, more than {}, {cap_is}; raise -m{or}",
        text::count(keys),
        text::rate(rate),
        text::size(needed),
        text::size(cap),
    ))
}

fn random_key() -> Result<[u8; 16]> {
    let mut key = [0; 16];
    getrandom::fill(&mut key)
        .map_err(|_| Failure::Plain("the system gave no random bytes; try again".to_owned()))?;
    Ok(key)
}

/// Says so when a filter holds more than it was planned for, and what that costs.
pub(super) fn warn_if_overfull(filter: &dyn Membership, teller: &Teller) {
    let planned = filter.planned_keys();
    let held = filter.inserted();
    // Counted, and after a merge estimated, to a small part of a percent.
    if planned > 0 && held as f64 > planned as f64 * 1.01 {
        teller.say(&format!(
            "warning: the filter was planned for {} keys and holds about {}; its false-positive \
             rate is {} now; build a larger one with -n",
            text::count(planned),
            text::count(held),
            text::rate(filter.estimated_rate()),
        ));
    }
}
