//! Which filter to make, of what was asked for.

use std::num::NonZeroUsize;

use petal::{
    AnyFilter, BloomFilter, ClassicBloomFilter, ClassicCountingBloomFilter, ClassicShape,
    CountingBloomFilter, FilterCascade, HashSpec, QuotientFilter, QuotientShape,
    ScalableBloomFilter, Shape, StaticFilter, WideBloomFilter, WindowedBloomFilter,
};
use petal_lines::{Settings, Source, hashes};

use crate::args::{BuildArgs, Clock, Kind, Memory};
use crate::exit::{Failure, Result};
use crate::text;

/// The rate when nothing is said of it.
pub(super) const RATE: f64 = 0.01;

/// A better rate than anybody asks for: with -m alone, the filter stops growing there.
const BEST_RATE: f64 = 1e-9;

/// Bits of a counter when nothing is said of them.
pub(super) const WIDTH: u32 = 4;

/// The lowest rate of a static filter, whose equations have at most 32 bits for a line.
pub(super) const LEAST_STATIC: f64 = 2.5e-10;

/// How many times its keys a growing quotient filter is made for when nothing is said of it: four
/// bits a key that others do not take.
const GROWTH: u64 = 16;

/// The type that was named, or that the other words ask for. Words that do not go with it are
/// refused before any work is done.
pub(super) fn kind(args: &BuildArgs) -> Result<Kind> {
    use Kind::{Cascade, Counting, CountingClassic, Quotient, Scalable, Static, Windowed};
    let asked = |wanted: bool, kind: Kind| wanted.then_some(kind);
    let kind = args.kind.or(asked(args.not_in.is_some(), Cascade));
    let kind = kind.or(asked(args.up_to.is_some(), Quotient));
    let forgets = args.window.is_some() || args.last.is_some();
    let kind = kind.or(asked(forgets, Windowed));
    let kind = kind.or(asked(args.growing, Scalable)).unwrap_or(Kind::Bloom);
    let once = matches!(kind, Static | Cascade);
    let by_memory = args.memory.is_some() && args.fpr.is_none();
    let rules = [
        (args.width.is_some(), "--width", &[Counting, CountingClassic][..], "has no counters"),
        (args.growing, "--growing", &[Scalable, Quotient], "does not grow"),
        (args.up_to.is_some(), "--up-to", &[Quotient], "has no such end"),
        (args.window.is_some(), "--window", &[Windowed], "forgets nothing"),
        (args.last.is_some(), "--last", &[Windowed], "forgets nothing"),
        (args.not_in.is_some(), "--not-in", &[Cascade], "knows no exceptions"),
    ];
    for (said, word, kinds, why) in rules {
        if said && !kinds.contains(&kind) {
            let kinds: Vec<_> = kinds.iter().map(|kind| kind.filter_type().name()).collect();
            return Err(Failure::Plain(format!(
                "{word}: a {} filter {why}; leave it out, or use --type {}",
                kind.filter_type(),
                kinds.join(" or "),
            )));
        }
    }
    let trouble = |text: &str| Err(Failure::Plain(text.replace("{}", kind.filter_type().name())));
    if kind == Cascade && args.not_in.is_none() {
        return trouble("--type {}: say with --not-in which lines it must not hold");
    }
    if kind == Windowed && !forgets {
        return trouble("--type {}: say with --window 7d or --last 1e6 when it forgets");
    }
    if once && args.expected.is_some() {
        return trouble("-n: a {} filter is made of the lines that come; leave it out");
    }
    if once && args.fpr.is_some_and(|rate| rate < LEAST_STATIC) {
        return trouble(
            "-p: a {} filter has at most 32 bits for a line, and 2.5e-10 is the lowest rate of \
             that; accept it, or take --type bloom or wide",
        );
    }
    if by_memory && (once || matches!(kind, Scalable | Quotient | Windowed)) {
        return trouble(
            "-m: alone it does not tell the rate of a {} filter; say that with -p, and -m is a \
             limit",
        );
    }
    Ok(kind)
}

/// The empty filter that was asked for, by rate or by memory.
pub(super) fn filter(args: &BuildArgs, kind: Kind, keys: u64) -> Result<AnyFilter> {
    let cap = cap(args);
    let (hash, width) = (hash(args, kind)?, args.width.unwrap_or(WIDTH));
    let most = args.up_to.or(args.growing.then(|| keys.saturating_mul(GROWTH)));
    let size = size(args, kind, keys, cap)?;
    /// Tells a builder of any type what was asked for.
    macro_rules! built {
        ($builder:expr) => {{
            let builder = $builder.hash(hash).keys(keys);
            let builder = match size {
                Size::Memory(bytes) => builder.memory(bytes),
                Size::Rate(rate) => builder.rate(rate),
            };
            AnyFilter::from(builder.build()?)
        }};
    }
    let rate = args.fpr.unwrap_or(RATE);
    let filter = match kind {
        Kind::Bloom => built!(BloomFilter::builder()),
        Kind::Classic => built!(ClassicBloomFilter::builder()),
        Kind::Counting => built!(CountingBloomFilter::builder().width(width)),
        Kind::CountingClassic => built!(ClassicCountingBloomFilter::builder().width(width)),
        Kind::Wide => built!(WideBloomFilter::builder()),
        Kind::Quotient => {
            if let Some(most) = args.up_to.filter(|most| *most < keys) {
                return Err(Failure::Plain(format!(
                    "--up-to: {} is less than the {} that the filter begins with; raise it",
                    text::keys(most),
                    text::count(keys),
                )));
            }
            let builder = QuotientFilter::builder().hash(hash).keys(keys).rate(rate);
            let builder = most.map_or(builder, |most| builder.max_keys(most));
            AnyFilter::from(builder.build()?)
        }
        Kind::Scalable => {
            let builder = ScalableBloomFilter::builder().hash(hash).rate(rate);
            // Without a guess its own is as good as any.
            let builder = args.expected.map_or(builder, |keys| builder.keys(keys));
            AnyFilter::from(builder.build().map_err(|error| out_of_reach(kind, rate, error))?)
        }
        Kind::Windowed => {
            let builder = WindowedBloomFilter::builder().hash(hash).rate(rate);
            let builder = builder.keys(args.last.unwrap_or(keys));
            let builder = args.window.map_or(builder, |seconds| builder.time(seconds));
            let windowed = builder.build().map_err(|error| out_of_reach(kind, rate, error))?;
            let mut filter = AnyFilter::from(windowed);
            advance(&mut filter, &args.clock);
            filter
        }
        Kind::Static | Kind::Cascade => {
            let kind = kind.filter_type();
            return Err(Failure::Plain(format!("a {kind} filter cannot be filled line by line")));
        }
    };
    within(args, &filter, cap)?;
    Ok(filter)
}

/// Of a type in parts, each of which keeps less than the whole, the library would name the rate
/// of a part.
fn out_of_reach(kind: Kind, rate: f64, error: petal::Error) -> Failure {
    if !error.is_unattainable() {
        return error.into();
    }
    Failure::Plain(format!(
        "-p: a {} filter has 64-bit hashes, which collide too often for {}; accept a higher rate, \
         or say with -n how many lines will come and take --type wide",
        kind.filter_type(),
        text::rate(rate),
    ))
}

/// The filter of all lines that come, of a type that is made once and never changes.
pub(super) fn at_once(
    args: &BuildArgs,
    kind: Kind,
    settings: &Settings<'_>,
    inputs: &[Source],
) -> Result<AnyFilter> {
    let (hash, rate) = (hash(args, kind)?, args.fpr.unwrap_or(RATE));
    let threads = NonZeroUsize::new(settings.jobs).unwrap_or(NonZeroUsize::MIN);
    let members = hashes(settings, &hash, inputs, 0)?;
    let filter = match &args.not_in {
        None => {
            let builder = StaticFilter::builder().hash(hash).rate(rate).threads(threads);
            AnyFilter::from(builder.from_hashes(members)?)
        }
        Some(path) => {
            let held = members.len() as u64;
            let others = hashes(settings, &hash, &[Source::from_arg(path)], held)?;
            let builder = FilterCascade::builder(rate).hash(hash).threads(threads);
            let cascade = builder.from_hashes(members, others);
            AnyFilter::from(cascade.map_err(|error| match error.contradictions().len() {
                0 => error.into(),
                both => Failure::Plain(format!(
                    "{}: {} of its lines are in the other inputs too; take them out of one of \
                     both (petal common prints them)",
                    path.display(),
                    text::count(both as u64),
                )),
            })?)
        }
    };
    within(args, &filter, cap(args))?;
    Ok(filter)
}

/// Tells a filter that forgets by the clock what time it is.
pub(super) fn advance(filter: &mut AnyFilter, clock: &Clock) {
    if let AnyFilter::Windowed(filter) = filter {
        filter.advance_to(clock.now());
    }
}

/// How large the filter may be.
pub(super) fn cap(args: &BuildArgs) -> u64 {
    args.memory.unwrap_or(Memory::Percent(50.0)).bytes()
}

/// Refuses a filter that is larger than it may be.
fn within(args: &BuildArgs, filter: &AnyFilter, cap: u64) -> Result<()> {
    let (face, needed) = (filter.face(), filter.face().size_bytes());
    if needed <= cap {
        return Ok(());
    }
    let rate = args.fpr.unwrap_or(RATE);
    Err(too_large(args, face.planned_keys(), rate, needed, cap, "accept a higher rate with -p"))
}

/// What decides how large a filter is.
#[derive(Clone, Copy)]
enum Size {
    Memory(u64),
    Rate(f64),
}

/// Only -m: the best rate that fits. Else the rate decides, and -m is a limit.
fn size(args: &BuildArgs, kind: Kind, keys: u64, cap: u64) -> Result<Size> {
    let by_memory = args.memory.is_some() && args.fpr.is_none();
    let rate = args.fpr.unwrap_or(RATE);
    let Some(layout) = Layout::of(args, kind) else {
        // A table's size is known before memory is asked for, too.
        if kind == Kind::Quotient {
            let needed = QuotientShape::for_rate(keys, rate)?.size_bytes();
            if needed > cap {
                return Err(too_large(args, keys, rate, needed, cap, "plan for fewer with -n"));
            }
        }
        return Ok(if by_memory { Size::Memory(cap) } else { Size::Rate(rate) });
    };
    if by_memory {
        // More than the best rate takes would be memory for nothing.
        let most = layout.needed(keys, BEST_RATE);
        return Ok(Size::Memory(most.map_or(cap, |most| cap.min(most))));
    }
    let needed = layout.needed(keys, rate)?;
    if needed <= cap {
        return Ok(Size::Rate(rate));
    }
    // A filter that says yes to most things is no way out.
    let or = match layout.best(cap, keys) {
        Ok(best) if best < 0.5 && args.memory.is_some() => {
            format!("leave out -p to get {}", text::rate(best))
        }
        Ok(best) if best < 0.5 => format!("accept {} with -p", text::rate(best * 1.001)),
        _ => "plan for fewer keys with -n".to_owned(),
    };
    Err(too_large(args, keys, rate, needed, cap, &or))
}

/// How the size of a Bloom filter follows from keys and rate.
struct Layout {
    for_rate: fn(u64, f64) -> petal::Result<u64>,
    rate_in: fn(u64, u64) -> petal::Result<f64>,
    /// How many times the memory of a plain filter it takes.
    times: u64,
}

impl Layout {
    /// `None` for types that are no Bloom filters of one size.
    fn of(args: &BuildArgs, kind: Kind) -> Option<Self> {
        let times = match kind {
            Kind::Bloom | Kind::Classic => 1,
            Kind::Counting | Kind::CountingClassic => args.width.unwrap_or(WIDTH).into(),
            _ => return None,
        };
        Some(match kind {
            Kind::Classic | Kind::CountingClassic => Self {
                for_rate: |keys, rate| Ok(ClassicShape::for_rate(keys, rate)?.size_bytes()),
                rate_in: |bytes, keys| Ok(ClassicShape::for_memory(bytes, keys)?.rate(keys)),
                times,
            },
            _ => Self {
                for_rate: |keys, rate| Ok(Shape::for_rate(keys, rate)?.size_bytes()),
                rate_in: |bytes, keys| Ok(Shape::for_memory(bytes, keys)?.rate(keys)),
                times,
            },
        })
    }

    /// Bytes that so many keys take at a rate.
    fn needed(&self, keys: u64, rate: f64) -> petal::Result<u64> {
        (self.for_rate)(keys, rate).map(|bytes| bytes.saturating_mul(self.times))
    }

    /// The best rate of so many keys in so much memory.
    fn best(&self, memory: u64, keys: u64) -> petal::Result<f64> {
        (self.rate_in)(memory / self.times, keys)
    }
}

fn too_large(args: &BuildArgs, keys: u64, rate: f64, needed: u64, cap: u64, or: &str) -> Failure {
    let cap_is = if args.memory.is_some() { "-m" } else { "half of the memory there is" };
    Failure::Plain(format!(
        "{} keys at {} take {}, more than {}, {cap_is}; raise -m, or {or}",
        text::count(keys),
        text::rate(rate),
        text::size(needed),
        text::size(cap),
    ))
}

fn hash(args: &BuildArgs, kind: Kind) -> Result<HashSpec> {
    let wide = kind == Kind::Wide;
    if !args.keyed {
        let seed = args.seed.unwrap_or(0);
        return Ok(if wide { HashSpec::wide(seed) } else { HashSpec::rapid(seed) });
    }
    let mut key = [0; 16];
    getrandom::fill(&mut key)
        .map_err(|_| Failure::Plain("the system gave no random bytes; try again".to_owned()))?;
    Ok(if wide { HashSpec::wide_keyed(key) } else { HashSpec::keyed(key) })
}
