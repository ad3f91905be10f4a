//! `BF.RESERVE`, and what is asked for when a filter is made that is not there yet.

use super::{BLOOM, EXPANSION, KEY, NONSCALING};
use crate::about::{About, Arg, ArgKind, PUT, key};
use crate::commands::words::{Reading, integer, is};
use crate::commands::{bloom, limit, replicate_creation};
use crate::config::{Layout, Settings};
use crate::ffi::{Call, Command, Failure, Loses};
use crate::object::Refusal;
use crate::plan::{Form, Growth, Plan};

/// What is asked for when a filter is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) rate: f64,
    pub(super) keys: u64,
    /// Whether the capacity was stated, or is the default.
    pub(super) is_stated: bool,
    pub(super) growth: Option<u64>,
    /// The key of the hash, if not any.
    pub(super) seed: Option<[u8; 16]>,
    /// Keys that it must be able to grow to.
    pub(super) scale_to: Option<u64>,
}

impl Wanted {
    pub(super) fn usual(settings: &Settings) -> Self {
        Self {
            rate: settings.bf_error_rate,
            keys: settings.bf_initial_size,
            is_stated: false,
            growth: Some(settings.bf_expansion).filter(|growth| *growth > 0),
            seed: None,
            scale_to: None,
        }
    }

    pub(super) fn plan(&self, call: &Call<'_>, settings: &Settings) -> Plan {
        let (growth, rate, keys) = (self.growth, self.rate, self.keys);
        // A master of petal's tells the seed of what is in petal's layout, by another command: this
        // is one of RedisBloom's.
        if settings.layout == Layout::RedisBloom || call.is_replayed() {
            return Plan { form: Form::RedisBloom { growth }, rate, keys, seed: [0; 16] };
        }
        let seed = self.seed.unwrap_or_else(|| call.random_key());
        let growth = growth.map(|factor| match self.is_stated {
            true => Growth::from_stated(factor, rate),
            false => Growth::by(factor),
        });
        Plan { form: Form::Bloom { growth }, rate, keys, seed }
    }
}

pub(in crate::commands) struct Reserve;

impl Command for Reserve {
    const LOSES: Loses = Loses::Filter;

    const ABOUT: About = About {
        name: c"BF.RESERVE",
        summary: c"Creates an empty Bloom filter",
        complexity: c"O(1)",
        since: c"0.1.0",
        arity: -4,
        flags: c"write deny-oom fast",
        keys: &[key(PUT)],
        args: &[
            KEY,
            Arg::new(c"error_rate", ArgKind::Double),
            Arg::new(c"capacity", ArgKind::Integer),
            EXPANSION,
            NONSCALING,
        ],
        categories: BLOOM,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if !(4..=7).contains(&call.len()) {
            return Err(Failure::Arity);
        }
        let reading = Reading::of(call);
        let rate = rate(reading, call.word(2))?;
        let keys = capacity(call.word(3))?;
        let (mut growth, mut nonscaling) = (None, false);
        let mut at = 4;
        while at < call.len() {
            let word = call.word(at);
            if is(word, "NONSCALING") {
                nonscaling = true;
            } else if is(word, "EXPANSION") {
                at += 1;
                if at == call.len() {
                    return Err(Failure::Says("ERR no expansion"));
                }
                growth = Some(expansion(call.word(at))?);
            } else if !reading.passes_over() {
                return Err(Failure::Says("ERR unknown argument received"));
            }
            at += 1;
        }
        if nonscaling && growth.is_some() {
            return Err(Failure::Says("Nonscaling filters cannot expand"));
        }
        let settings = Settings::now();
        let usual = Wanted::usual(&settings).growth;
        let growth = if nonscaling { None } else { growth.or(usual) };
        let mut key = call.write(1);
        if bloom(key.object())?.is_some() {
            return Err(Failure::Says("ERR item exists"));
        }
        let wanted = Wanted { rate, keys, growth, is_stated: true, ..Wanted::usual(&settings) };
        let plan = wanted.plan(call, &settings);
        let made = match plan.make(limit(call, settings.memory_limit)) {
            // RedisBloom replicates BF.RESERVE even if it has no memory for the filter: its master
            // has no such key either, and creates one with default settings on the next BF.ADD.
            Err(Refusal::TooLarge) if call.is_replayed() => {
                let failure = Refusal::TooLarge.into();
                call.keep_key(&failure);
                call.failure(&failure);
                return Ok(());
            }
            made => made?,
        };
        key.set(made)?;
        replicate_creation(call, &plan);
        call.notify(c"bloom.reserve", 1);
        call.ok();
        Ok(())
    }
}

pub(in crate::commands) fn rate(reading: Reading, word: &[u8]) -> Result<f64, Failure> {
    let rate = reading.number(word).ok_or(Failure::Says("ERR bad error rate"))?;
    if rate > 0.0 && rate < 1.0 {
        Ok(rate)
    } else {
        Err(Failure::Says("ERR (0 < error rate range < 1) "))
    }
}

pub(in crate::commands) fn capacity(word: &[u8]) -> Result<u64, Failure> {
    let keys = integer(word).ok_or(Failure::Says("ERR bad capacity"))?;
    u64::try_from(keys)
        .ok()
        .filter(|keys| *keys > 0)
        .ok_or(Failure::Says("ERR (capacity should be larger than 0)"))
}

pub(in crate::commands) fn expansion(word: &[u8]) -> Result<u64, Failure> {
    let growth = integer(word).ok_or(Failure::Says("ERR bad expansion"))?;
    u64::try_from(growth)
        .ok()
        .filter(|growth| *growth > 0)
        .ok_or(Failure::Says("ERR expansion should be greater or equal to 1"))
}
