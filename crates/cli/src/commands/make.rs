//! Which filter to make, of what was asked for.

use petal::{
    AnyFilter, BloomFilter, ClassicBloomFilter, ClassicCountingBloomFilter, ClassicShape,
    CountingBloomFilter, HashSpec, Shape,
};

use super::bytes;
use crate::args::{BuildArgs, Kind, Memory};
use crate::exit::{Failure, Result};
use crate::text;

/// The rate when nothing is said of it.
pub(super) const RATE: f64 = 0.01;

/// A better rate than anybody asks for: with -m alone, the filter stops growing there.
const BEST_RATE: f64 = 1e-9;

/// Bits of a counter when nothing is said of them.
const WIDTH: u32 = 4;

/// Words that do not go together are refused before any work is done.
pub(super) fn check_words(args: &BuildArgs) -> Result<()> {
    let kind = args.kind.filter_type();
    if args.width.is_some() && !matches!(args.kind, Kind::Counting | Kind::CountingClassic) {
        return Err(Failure::Plain(format!(
            "--width: a {kind} filter has no counters; leave it out, or use --type counting"
        )));
    }
    Ok(())
}

/// The empty filter that was asked for, by rate or by memory.
pub(super) fn filter(args: &BuildArgs, keys: u64) -> Result<AnyFilter> {
    let cap = bytes(args.memory.unwrap_or(Memory::Percent(50.0)));
    let layout = Layout::of(args);
    // Only -m: the best rate that fits. Else the rate decides, and -m is a limit.
    let size = if args.memory.is_some() && args.fpr.is_none() {
        // More than the best rate takes would be memory for nothing.
        Size::Memory(layout.needed(keys, BEST_RATE).map_or(cap, |most| cap.min(most)))
    } else {
        let rate = args.fpr.unwrap_or(RATE);
        let needed = layout.needed(keys, rate)?;
        if needed > cap {
            return Err(too_large(args, &layout, keys, rate, needed, cap));
        }
        Size::Rate(rate)
    };
    let (hash, width) = (hash(args)?, args.width.unwrap_or(WIDTH));
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
    Ok(match args.kind {
        Kind::Bloom => built!(BloomFilter::builder()),
        Kind::Classic => built!(ClassicBloomFilter::builder()),
        Kind::Counting => built!(CountingBloomFilter::builder().width(width)),
        Kind::CountingClassic => built!(ClassicCountingBloomFilter::builder().width(width)),
    })
}

/// What decides how large a filter is.
#[derive(Clone, Copy)]
enum Size {
    Memory(u64),
    Rate(f64),
}

/// How the size of a Bloom filter follows from keys and rate.
struct Layout {
    for_rate: fn(u64, f64) -> petal::Result<u64>,
    rate_in: fn(u64, u64) -> petal::Result<f64>,
    /// How many times the memory of a plain filter it takes.
    times: u64,
}

impl Layout {
    fn of(args: &BuildArgs) -> Self {
        let width = args.width.unwrap_or(WIDTH).into();
        let times = match args.kind {
            Kind::Bloom | Kind::Classic => 1,
            Kind::Counting | Kind::CountingClassic => width,
        };
        match args.kind {
            Kind::Bloom | Kind::Counting => Self {
                for_rate: |keys, rate| Ok(Shape::for_rate(keys, rate)?.size_bytes()),
                rate_in: |bytes, keys| Ok(Shape::for_memory(bytes, keys)?.rate(keys)),
                times,
            },
            Kind::Classic | Kind::CountingClassic => Self {
                for_rate: |keys, rate| Ok(ClassicShape::for_rate(keys, rate)?.size_bytes()),
                rate_in: |bytes, keys| Ok(ClassicShape::for_memory(bytes, keys)?.rate(keys)),
                times,
            },
        }
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

fn too_large(
    args: &BuildArgs,
    layout: &Layout,
    keys: u64,
    rate: f64,
    needed: u64,
    cap: u64,
) -> Failure {
    let cap_is = if args.memory.is_some() { "-m" } else { "half of the memory there is" };
    // A filter that says yes to most things is no way out.
    let or = match layout.best(cap, keys) {
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

fn hash(args: &BuildArgs) -> Result<HashSpec> {
    if !args.keyed {
        return Ok(HashSpec::rapid(args.seed.unwrap_or(0)));
    }
    let mut key = [0; 16];
    getrandom::fill(&mut key)
        .map_err(|_| Failure::Plain("the system gave no random bytes; try again".to_owned()))?;
    Ok(HashSpec::keyed(key))
}
