//! `CF.RESERVE`, and the parameters of filters that `CF.*` creates.

use super::filter;
use crate::bindings::command_spec::{Arg, ArgKind, CommandSpec, RW_INSERT, first_key};
use crate::bindings::config::{Layout, Settings};
use crate::bindings::{Call, Command, ReplayLoss, ReplyError, WriteKey};
use crate::commands::args::{Strictness, integer, integer_within, is_option, is_token};
use crate::commands::{memory_limit, replicate_creation};
use crate::filters::{FilterKind, FilterSpec, MAX_EXPANSION};

/// The parameters of a new filter.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewCuckoo {
    capacity: u64,
    bucket_size: u16,
    iterations: u16,
    expansion: u16,
}

impl NewCuckoo {
    pub(super) fn defaults(settings: &Settings) -> Self {
        // The ranges of the settings fit in 16 bits.
        let small = |number: u64| u16::try_from(number).unwrap_or(u16::MAX);
        Self {
            // The settings are independent; together they must be valid for `CF.RESERVE`.
            capacity: settings.cf_initial_size.max(2 * settings.cf_bucket_size),
            bucket_size: small(settings.cf_bucket_size),
            iterations: small(settings.cf_max_iterations),
            expansion: small(settings.cf_expansion),
        }
    }

    /// Sets the capacity, of at least two buckets as in RedisBloom. Replayed commands may have
    /// less.
    pub(super) fn with_capacity(
        self,
        strictness: Strictness,
        capacity: i64,
    ) -> Result<Self, ReplyError> {
        let min = match strictness {
            Strictness::Strict => 2 * u64::from(self.bucket_size),
            Strictness::Lenient => 1,
        };
        let capacity = u64::try_from(capacity).ok().filter(|capacity| *capacity >= min);
        let capacity =
            capacity.ok_or(ReplyError::Static("Capacity must be at least (BucketSize * 2)"))?;
        Ok(Self { capacity, ..self })
    }

    /// Creates the filter in a missing key and replicates it.
    pub(super) fn create(self, call: &Call<'_>, key: &mut WriteKey<'_>) -> Result<(), ReplyError> {
        let settings = Settings::current();
        let Self { capacity, bucket_size, iterations, expansion } = self;
        // As for `BF.*`: a replayed command without a seed is from RedisBloom.
        let is_redisbloom = settings.layout == Layout::RedisBloom || call.is_replay();
        let (kind, seed) = if is_redisbloom {
            (FilterKind::RedisCuckoo { expansion, bucket_size, iterations }, [0; 16])
        } else {
            (FilterKind::Cuckoo { expansion, bucket_size, iterations }, call.random_key())
        };
        let spec = FilterSpec { kind, fpr: settings.cf_error_rate, capacity, seed };
        key.set(spec.build(memory_limit(call, settings.memory_limit))?)?;
        replicate_creation(call, &spec);
        call.notify(c"cuckoo.reserve", 1);
        Ok(())
    }
}

pub(in crate::commands) struct Reserve;

impl Command for Reserve {
    const REPLAY_LOSS: ReplayLoss = ReplayLoss::Filter;

    const SPEC: CommandSpec = CommandSpec {
        name: c"CF.RESERVE",
        summary: c"Creates an empty cuckoo filter",
        complexity: c"O(1)",
        flags: c"write deny-oom fast",
        keys: &[first_key(RW_INSERT)],
        args: &[
            Arg::KEY,
            Arg::new(c"capacity", ArgKind::Integer),
            Arg::new(c"bucketsize", ArgKind::Integer).option(c"BUCKETSIZE"),
            Arg::new(c"maxiterations", ArgKind::Integer).option(c"MAXITERATIONS"),
            Arg::new(c"expansion", ArgKind::Integer).option(c"EXPANSION"),
        ],
    };

    fn run(call: &Call<'_>) -> Result<(), ReplyError> {
        // Options come in pairs.
        if call.len() < 3 || call.len().is_multiple_of(2) {
            return Err(ReplyError::WrongArity);
        }
        let capacity = integer(call.arg(2)).ok_or(ReplyError::Static("Bad capacity"))?;
        let mut new = NewCuckoo::defaults(&Settings::current());
        let strictness = Strictness::of(call);
        // RedisBloom finds options at any position.
        let step = if strictness.ignores_unknown() { 1 } else { 2 };
        let positions = || (3..call.len()).step_by(step);
        if !strictness.ignores_unknown()
            && !positions().all(|at| is_token(Self::SPEC.args, call.arg(at)))
        {
            return Err(ReplyError::Static("ERR unknown argument received"));
        }
        for (name, range, value) in [
            ("MAXITERATIONS", 1..=u16::MAX, &mut new.iterations),
            ("BUCKETSIZE", 1..=255, &mut new.bucket_size),
            ("EXPANSION", 0..=MAX_EXPANSION, &mut new.expansion),
        ] {
            // The first of repeated options counts.
            let Some(at) = positions().find(|at| is_option(call.arg(*at), name)) else { continue };
            let arg = call.arg(at + 1);
            *value = integer_within(arg, &range).ok_or_else(|| {
                ReplyError::Message(match integer(arg) {
                    None => format!("Couldn't parse {name}"),
                    Some(_) => format!(
                        "{name}: value must be an integer between {} and {}, inclusive.",
                        range.start(),
                        range.end()
                    ),
                })
            })?;
        }
        let new = new.with_capacity(strictness, capacity)?;
        let mut key = call.open_write(1);
        if filter(key.filter())?.is_some() {
            return Err(ReplyError::Static("ERR item exists"));
        }
        new.create(call, &mut key)?;
        call.ok();
        Ok(())
    }
}
