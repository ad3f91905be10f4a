//! What operators set: `petal.NAME` in redis.conf, `CONFIG SET petal.NAME`, or words behind
//! `loadmodule`.
//!
//! The values are atomics that the server's own configuration writes; commands take a
//! [`Settings`], a copy of them all, and know nothing of where it came from.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

/// How new filters of `BF.*` and `CF.*` are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// petal's own.
    Petal,
    /// RedisBloom's, bit by bit.
    RedisBloom,
}

/// A number and what it may be.
pub(crate) struct Number {
    pub(crate) name: &'static std::ffi::CStr,
    pub(crate) default: i64,
    pub(crate) range: std::ops::RangeInclusive<i64>,
    /// Whether it is bytes, and may be written as `64mb`.
    pub(crate) bytes: bool,
    pub(crate) value: AtomicI64,
}

impl Number {
    const fn new(
        name: &'static std::ffi::CStr,
        default: i64,
        range: std::ops::RangeInclusive<i64>,
    ) -> Self {
        Self { name, default, range, bytes: false, value: AtomicI64::new(default) }
    }

    fn get(&self) -> u64 {
        self.value.load(Relaxed).unsigned_abs()
    }
}

/// A false-positive rate, as text.
pub(crate) struct Rate {
    pub(crate) name: &'static std::ffi::CStr,
    pub(crate) default: &'static std::ffi::CStr,
    bits: AtomicU64,
}

impl Rate {
    const fn new(
        name: &'static std::ffi::CStr,
        default: &'static std::ffi::CStr,
        rate: f64,
    ) -> Self {
        Self { name, default, bits: AtomicU64::new(rate.to_bits()) }
    }

    fn get(&self) -> f64 {
        f64::from_bits(self.bits.load(Relaxed))
    }

    /// Takes a value as people write it; what is wrong with it otherwise.
    pub(crate) fn set(&self, text: &[u8]) -> Result<(), &'static str> {
        let rate = std::str::from_utf8(text).ok().and_then(|text| text.parse::<f64>().ok());
        match rate {
            Some(rate) if rate > 0.0 && rate < 1.0 => {
                self.bits.store(rate.to_bits(), Relaxed);
                Ok(())
            }
            _ => Err("a false-positive rate is a number above 0 and below 1"),
        }
    }

    /// As people write it.
    pub(crate) fn text(&self) -> String {
        self.get().to_string()
    }
}

/// One of some words.
pub(crate) struct Choice {
    pub(crate) name: &'static std::ffi::CStr,
    pub(crate) words: [&'static std::ffi::CStr; 2],
    pub(crate) value: AtomicI64,
}

/// What a key's filter may be at most: RedisBloom's own limit of keys.
const MOST_KEYS: i64 = 1 << 30;

pub(crate) static BF_ERROR_RATE: Rate = Rate::new(c"bf-error-rate", c"0.01", 0.01);
pub(crate) static CF_ERROR_RATE: Rate = Rate::new(c"cf-error-rate", c"0.01", 0.01);
pub(crate) static RATES: [&Rate; 2] = [&BF_ERROR_RATE, &CF_ERROR_RATE];

pub(crate) static BF_INITIAL_SIZE: Number = Number::new(c"bf-initial-size", 100, 1..=MOST_KEYS);
static BF_EXPANSION: Number = Number::new(c"bf-expansion-factor", 2, 0..=32768);
static CF_INITIAL_SIZE: Number = Number::new(c"cf-initial-size", 1024, 2..=MOST_KEYS);
static CF_BUCKET_SIZE: Number = Number::new(c"cf-bucket-size", 2, 1..=255);
static CF_MAX_ITERATIONS: Number = Number::new(c"cf-max-iterations", 20, 1..=65535);
static CF_EXPANSION: Number = Number::new(c"cf-expansion-factor", 1, 0..=32768);
pub(crate) static CF_MAX_EXPANSIONS: Number = Number::new(c"cf-max-expansions", 32, 1..=65536);
static MEMORY_LIMIT: Number =
    Number { bytes: true, ..Number::new(c"memory-limit", 1 << 32, 0..=i64::MAX) };
pub(crate) static NUMBERS: [&Number; 8] = [
    &BF_INITIAL_SIZE,
    &BF_EXPANSION,
    &CF_INITIAL_SIZE,
    &CF_BUCKET_SIZE,
    &CF_MAX_ITERATIONS,
    &CF_EXPANSION,
    &CF_MAX_EXPANSIONS,
    &MEMORY_LIMIT,
];

pub(crate) static LAYOUT: Choice =
    Choice { name: c"layout", words: [c"petal", c"redisbloom"], value: AtomicI64::new(0) };

/// All that is set, at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// The rate of a Bloom filter for which none is said.
    pub(crate) bf_error_rate: f64,
    /// Keys that a Bloom filter is made for if nothing is said.
    pub(crate) bf_initial_size: u64,
    /// How many times the keys of the layer before it a layer has; 0 for filters that do not grow.
    pub(crate) bf_expansion: u64,
    /// The rate of the filters of `CF.*` in petal's own layout.
    pub(crate) cf_error_rate: f64,
    /// Keys that a cuckoo filter is made for if nothing is said.
    pub(crate) cf_initial_size: u64,
    /// Slots of a bucket.
    pub(crate) cf_bucket_size: u64,
    /// How often an insert moves others before it gives up.
    pub(crate) cf_max_iterations: u64,
    /// As of Bloom filters.
    pub(crate) cf_expansion: u64,
    /// Layers that a cuckoo filter may come to have.
    pub(crate) cf_max_expansions: u64,
    /// Bytes that the filter of a key may take.
    pub(crate) memory_limit: u64,
    /// How new filters are laid out.
    pub(crate) layout: Layout,
}

impl Settings {
    /// As they are now.
    pub(crate) fn now() -> Self {
        Self {
            bf_error_rate: BF_ERROR_RATE.get(),
            bf_initial_size: BF_INITIAL_SIZE.get(),
            bf_expansion: BF_EXPANSION.get(),
            cf_error_rate: CF_ERROR_RATE.get(),
            cf_initial_size: CF_INITIAL_SIZE.get(),
            cf_bucket_size: CF_BUCKET_SIZE.get(),
            cf_max_iterations: CF_MAX_ITERATIONS.get(),
            cf_expansion: CF_EXPANSION.get(),
            cf_max_expansions: CF_MAX_EXPANSIONS.get(),
            memory_limit: match MEMORY_LIMIT.get() {
                0 => u64::MAX,
                limit => limit,
            },
            layout: if LAYOUT.value.load(Relaxed) == 0 {
                Layout::Petal
            } else {
                Layout::RedisBloom
            },
        }
    }
}

/// Whether the words behind `loadmodule` have `NAME bf`: the module is then registered under the
/// name of RedisBloom, for clients that look for it in `MODULE LIST`.
///
/// # Errors
/// If the name is another one.
pub(crate) fn is_named_bf(words: &[&[u8]]) -> Result<bool, String> {
    let pair = words.chunks(2).find(|pair| pair[0].eq_ignore_ascii_case(b"NAME"));
    match pair.map(|pair| pair.get(1).copied().unwrap_or_default()) {
        None | Some(b"petal") => Ok(false),
        Some(b"bf") => Ok(true),
        Some(_) => Err("NAME is petal or bf".to_owned()),
    }
}

/// Takes the words behind `loadmodule`: pairs of a name and a value, as RedisBloom takes them.
///
/// # Errors
/// What is wrong with which word.
pub(crate) fn arguments(words: &[&[u8]]) -> Result<(), String> {
    for pair in words.chunks(2) {
        let name = String::from_utf8_lossy(pair[0]).to_ascii_uppercase();
        let Some(value) = pair.get(1) else {
            return Err(format!("{name} needs a value"));
        };
        let number = |number: &Number| {
            let value = std::str::from_utf8(value).ok().and_then(|text| text.parse::<i64>().ok());
            match value.filter(|value| number.range.contains(value)) {
                Some(value) => {
                    number.value.store(value, Relaxed);
                    Ok(())
                }
                None => Err(format!("{name} must be in {:?}", number.range)),
            }
        };
        match name.as_str() {
            "ERROR_RATE" => BF_ERROR_RATE.set(value).map_err(|what| format!("{name}: {what}"))?,
            "INITIAL_SIZE" => number(&BF_INITIAL_SIZE)?,
            "CF_MAX_EXPANSIONS" => number(&CF_MAX_EXPANSIONS)?,
            // Read before: see `is_named_bf`.
            "NAME" => {}
            _ => return Err(format!("{name} is not an argument of this module")),
        }
    }
    Ok(())
}
