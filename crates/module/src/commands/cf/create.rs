//! `CF.RESERVE`, and how a filter is made that is not there yet.

use super::{CUCKOO, KEY, MOST_EXPANSION, filter};
use crate::about::{About, Arg, ArgKind, PUT, key};
use crate::commands::words::{Reading, integer, is};
use crate::commands::{limit, replicate_creation};
use crate::config::{Layout, Settings};
use crate::ffi::{Call, Command, Failure, Loses, Opened};
use crate::plan::{Form, Plan};

/// What is asked for when a filter is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    capacity: u64,
    bucket_size: u16,
    iterations: u16,
    expansion: u16,
}

impl Wanted {
    pub(super) fn usual(settings: &Settings) -> Self {
        // The settings have ranges of their own.
        let small = |number: u64| u16::try_from(number).unwrap_or(u16::MAX);
        Self {
            // Two numbers that are set apart: together they must be what `CF.RESERVE` takes.
            capacity: settings.cf_initial_size.max(2 * settings.cf_bucket_size),
            bucket_size: small(settings.cf_bucket_size),
            iterations: small(settings.cf_max_iterations),
            expansion: small(settings.cf_expansion),
        }
    }

    /// For so many items: RedisBloom has two buckets at least. What has been accepted is enough.
    pub(super) fn of(self, reading: Reading, capacity: i64) -> Result<Self, Failure> {
        let enough = match reading {
            Reading::Strict => 2 * u64::from(self.bucket_size),
            Reading::Accepted => 1,
        };
        let capacity = u64::try_from(capacity).ok().filter(|capacity| *capacity >= enough);
        let capacity =
            capacity.ok_or(Failure::Says("Capacity must be at least (BucketSize * 2)"))?;
        Ok(Self { capacity, ..self })
    }

    /// Makes it in a key that holds nothing, and tells of it.
    pub(super) fn make(self, call: &Call<'_>, key: &mut Opened<'_>) -> Result<(), Failure> {
        let settings = Settings::now();
        let Self { capacity, bucket_size, iterations, expansion } = self;
        // As of Bloom filters: what comes from a master without a seed is one of RedisBloom's.
        let theirs = settings.layout == Layout::RedisBloom || call.is_replayed();
        let (form, seed) = if theirs {
            (Form::RedisCuckoo { expansion, bucket_size, iterations }, [0; 16])
        } else {
            (Form::Cuckoo { expansion, bucket_size, iterations }, call.random_key())
        };
        let plan = Plan { form, rate: settings.cf_error_rate, keys: capacity, seed };
        key.set(plan.make(limit(call, settings.memory_limit))?)?;
        replicate_creation(call, &plan);
        call.notify(c"cuckoo.reserve", 1);
        Ok(())
    }
}

pub(in crate::commands) struct Reserve;

impl Command for Reserve {
    const LOSES: Loses = Loses::Filter;

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
            Arg::new(c"capacity", ArgKind::Integer),
            Arg::new(c"bucketsize", ArgKind::Integer).after(c"BUCKETSIZE"),
            Arg::new(c"maxiterations", ArgKind::Integer).after(c"MAXITERATIONS"),
            Arg::new(c"expansion", ArgKind::Integer).after(c"EXPANSION"),
        ],
        categories: CUCKOO,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        // Options come in pairs.
        if call.len() < 3 || call.len().is_multiple_of(2) {
            return Err(Failure::Arity);
        }
        let capacity = integer(call.word(2)).ok_or(Failure::Says("Bad capacity"))?;
        let mut wanted = Wanted::usual(&Settings::now());
        let options = [
            Number {
                name: "MAXITERATIONS",
                most: u16::MAX,
                unreadable: "Couldn't parse MAXITERATIONS",
                beyond: "MAXITERATIONS: value must be an integer between 1 and 65535, inclusive.",
                value: &mut wanted.iterations,
            },
            Number {
                name: "BUCKETSIZE",
                most: 255,
                unreadable: "Couldn't parse BUCKETSIZE",
                beyond: "BUCKETSIZE: value must be an integer between 1 and 255, inclusive.",
                value: &mut wanted.bucket_size,
            },
            Number {
                name: "EXPANSION",
                most: MOST_EXPANSION,
                unreadable: "Couldn't parse EXPANSION",
                beyond: "EXPANSION: value must be an integer between 0 and 32768, inclusive.",
                value: &mut wanted.expansion,
            },
        ];
        let reading = Reading::of(call);
        // RedisBloom finds options wherever they stand.
        let step = if reading.passes_over() { 1 } else { 2 };
        let places = || (3..call.len()).step_by(step);
        let is_option = |at: usize| options.iter().any(|option| is(call.word(at), option.name));
        if !reading.passes_over() && !places().all(is_option) {
            return Err(Failure::Says("ERR unknown argument received"));
        }
        // Of an option that comes twice the first counts.
        for option in options {
            if let Some(at) = places().find(|at| is(call.word(*at), option.name)) {
                option.read(call.word(at + 1))?;
            }
        }
        let wanted = wanted.of(reading, capacity)?;
        let mut key = call.write(1);
        if filter(key.object())?.is_some() {
            return Err(Failure::Says("ERR item exists"));
        }
        wanted.make(call, &mut key)?;
        call.ok();
        Ok(())
    }
}

/// An option with a number, and RedisBloom's words for what is wrong with it.
struct Number<'w> {
    name: &'static str,
    most: u16,
    unreadable: &'static str,
    beyond: &'static str,
    value: &'w mut u16,
}

impl Number<'_> {
    fn read(self, word: &[u8]) -> Result<(), Failure> {
        let number = integer(word).ok_or(Failure::Says(self.unreadable))?;
        let least = if self.name == "EXPANSION" { 0 } else { 1 };
        let number = u16::try_from(number).ok();
        let number = number.filter(|number| (least..=self.most).contains(number));
        *self.value = number.ok_or(Failure::Says(self.beyond))?;
        Ok(())
    }
}
