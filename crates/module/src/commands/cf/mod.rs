//! `CF.*`: filters that delete and count, as RedisBloom's clients know them.

mod ask;
mod dump;
mod put;

pub(super) use ask::{Compact, Count, Del, Exists, Info, Mexists};
pub(super) use dump::{LoadChunk, ScanDump};
pub(super) use put::{Add, AddNx, Insert, InsertNx};

use super::words::{integer, is};
use super::{limit, replicate_creation};
use crate::about::{About, Arg, ArgKind, PUT, key};
use crate::config::{Layout, Settings};
use crate::ffi::{Call, Command, Failure, Opened};
use crate::plan::{Buckets, Form, Plan};

const KEY: Arg = Arg::key();
const ITEM: Arg = Arg::item();
const CAPACITY: Arg = Arg::new(c"capacity", ArgKind::Integer);
const CUCKOO: &std::ffi::CStr = c"cuckoo";

const EXISTS: Failure = Failure::Says("ERR item exists");
const NOT_FOUND: Failure = Failure::Says("ERR not found");

/// What is asked for when a filter is made.
struct Wanted {
    keys: i64,
    buckets: Buckets,
}

impl Wanted {
    fn usual(settings: &Settings) -> Self {
        let small = |number: u64| u16::try_from(number).unwrap_or(u16::MAX);
        let buckets = Buckets {
            size: small(settings.cf_bucket_size),
            iterations: small(settings.cf_max_iterations),
            expansion: small(settings.cf_expansion),
        };
        Self { keys: settings.cf_initial_size.try_into().unwrap_or(i64::MAX), buckets }
    }

    /// RedisBloom wants two buckets.
    fn check(&self) -> Result<(), Failure> {
        if self.keys < 2 * i64::from(self.buckets.size) {
            return Err(Failure::Says("Capacity must be at least (BucketSize * 2)"));
        }
        Ok(())
    }

    /// Makes it, and tells replicas.
    fn make(
        &self,
        call: &Call<'_>,
        settings: &Settings,
        key: &mut Opened<'_>,
    ) -> Result<(), Failure> {
        let (form, seed) = match settings.layout {
            Layout::Petal => (Form::Row(self.buckets), call.random_key()),
            Layout::RedisBloom => (Form::RedisCuckoo(self.buckets), [0; 16]),
        };
        let keys = self.keys.unsigned_abs();
        let plan = Plan { form, rate: settings.cf_error_rate, keys, seed };
        key.set(plan.make(limit(call, settings.memory_limit))?)?;
        replicate_creation(call, &plan);
        call.notify(c"cuckoo.reserve", 1);
        Ok(())
    }
}

fn keys(word: &[u8]) -> Result<i64, Failure> {
    integer(word).ok_or(Failure::Says("Bad capacity"))
}

/// A number in a range, or one of two errors.
fn number(
    word: &[u8],
    range: std::ops::RangeInclusive<u16>,
    [unreadable, outside]: [&'static str; 2],
) -> Result<u16, Failure> {
    let number = integer(word).ok_or(Failure::Says(unreadable))?;
    let number = u16::try_from(number).ok().filter(|number| range.contains(number));
    number.ok_or(Failure::Says(outside))
}

pub(in crate::commands) fn bucket_size(word: &[u8]) -> Result<u16, Failure> {
    let outside = "BUCKETSIZE: value must be an integer between 1 and 255, inclusive.";
    number(word, 1..=255, ["Couldn't parse BUCKETSIZE", outside])
}

pub(in crate::commands) fn iterations(word: &[u8]) -> Result<u16, Failure> {
    let outside = "MAXITERATIONS: value must be an integer between 1 and 65535, inclusive.";
    number(word, 1..=65535, ["Couldn't parse MAXITERATIONS", outside])
}

fn expansion(word: &[u8]) -> Result<u16, Failure> {
    let outside = "EXPANSION: value must be an integer between 0 and 32768, inclusive.";
    number(word, 0..=32768, ["Couldn't parse EXPANSION", outside])
}

pub(super) struct Reserve;

impl Command for Reserve {
    const ABOUT: About = About {
        name: c"CF.RESERVE",
        summary: c"Creates an empty filter that deletes",
        complexity: c"O(1)",
        since: c"0.1.0",
        arity: -3,
        flags: c"write deny-oom fast",
        keys: &[key(PUT)],
        args: &[
            KEY,
            CAPACITY,
            Arg::new(c"bucketsize", ArgKind::Integer).after(c"BUCKETSIZE"),
            Arg::new(c"maxiterations", ArgKind::Integer).after(c"MAXITERATIONS"),
            Arg::new(c"expansion", ArgKind::Integer).after(c"EXPANSION"),
        ],
        categories: CUCKOO,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        // Options are pairs.
        if call.len() < 3 || call.len().is_multiple_of(2) {
            return Err(Failure::Arity);
        }
        let settings = Settings::now();
        let usual = Wanted::usual(&settings).buckets;
        let keys = keys(call.word(2))?;
        let (mut size, mut moves, mut growth) = (None, None, None);
        for at in (3..call.len()).step_by(2) {
            let (word, value) = (call.word(at), call.word(at + 1));
            // Of two the first counts.
            if is(word, "BUCKETSIZE") {
                size = size.or(Some(bucket_size(value)?));
            } else if is(word, "MAXITERATIONS") {
                moves = moves.or(Some(iterations(value)?));
            } else if is(word, "EXPANSION") {
                growth = growth.or(Some(expansion(value)?));
            } else {
                return Err(Failure::Says("ERR unknown argument received"));
            }
        }
        let buckets = Buckets {
            size: size.unwrap_or(usual.size),
            iterations: moves.unwrap_or(usual.iterations),
            expansion: growth.unwrap_or(usual.expansion),
        };
        let wanted = Wanted { keys, buckets };
        wanted.check()?;
        let mut key = call.write(1);
        if key.object().cuckoo()?.is_some() {
            return Err(EXISTS);
        }
        wanted.make(call, &settings, &mut key)?;
        call.ok();
        Ok(())
    }
}
