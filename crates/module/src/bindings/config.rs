//! Settings: `petal.NAME` in `redis.conf`, `CONFIG SET petal.NAME`, or arguments of `loadmodule`.
//! Redis 8 also has those of RedisBloom as `NAME`, as RedisBloom has there.
//!
//! The values are atomics that the server's configuration callbacks write. Commands take a
//! [`Settings`], a copy of all values.

#![deny(unsafe_code)]

use std::ffi::CStr;
use std::io::ErrorKind;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use petal::Secret;

use crate::filters::{MAX_EXPANSION, secret};

/// Layout of new `BF.*` and `CF.*` filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// petal's own.
    Petal,
    /// RedisBloom's, bit for bit.
    RedisBloom,
}

/// An integer setting.
pub(crate) struct IntSetting {
    pub(crate) name: &'static CStr,
    pub(crate) default: i64,
    pub(crate) range: RangeInclusive<i64>,
    /// Whether the value is a number of bytes, which can be written as `64mb`.
    pub(crate) is_bytes: bool,
    /// Whether RedisBloom has this setting.
    pub(crate) in_redisbloom: bool,
    pub(crate) value: AtomicI64,
}

impl IntSetting {
    const fn new(name: &'static CStr, default: i64, range: RangeInclusive<i64>) -> Self {
        let value = AtomicI64::new(default);
        Self { name, default, range, is_bytes: false, in_redisbloom: true, value }
    }

    fn get(&self) -> u64 {
        self.value.load(Relaxed).unsigned_abs()
    }
}

/// A false-positive rate, which the server stores as text.
pub(crate) struct FprSetting {
    pub(crate) name: &'static CStr,
    pub(crate) default: &'static CStr,
    /// Whether RedisBloom has this setting.
    pub(crate) in_redisbloom: bool,
    bits: AtomicU64,
}

/// The default of both rates.
const DEFAULT_FPR: (&CStr, f64) = (c"0.01", 0.01);

impl FprSetting {
    const fn new(name: &'static CStr, in_redisbloom: bool) -> Self {
        let (default, bits) = (DEFAULT_FPR.0, AtomicU64::new(DEFAULT_FPR.1.to_bits()));
        Self { name, default, in_redisbloom, bits }
    }

    fn get(&self) -> f64 {
        f64::from_bits(self.bits.load(Relaxed))
    }

    /// Parses and sets the value.
    ///
    /// # Errors
    /// The message for the user if the text is not a number between 0 and 1.
    pub(crate) fn set(&self, text: &[u8]) -> Result<(), &'static str> {
        let fpr = std::str::from_utf8(text).ok().and_then(|text| text.parse::<f64>().ok());
        match fpr {
            Some(fpr) if fpr > 0.0 && fpr < 1.0 => {
                self.bits.store(fpr.to_bits(), Relaxed);
                Ok(())
            }
            _ => Err("a false-positive rate is a number above 0 and below 1"),
        }
    }

    /// Returns the value as text.
    pub(crate) fn text(&self) -> String {
        self.get().to_string()
    }
}

/// The path of the file with the secret of imported filters.
pub(crate) struct SecretFile {
    pub(crate) name: &'static CStr,
    path: Mutex<String>,
}

impl SecretFile {
    /// Reads the file. No path: there is no secret.
    ///
    /// # Errors
    /// The message for the user if the file cannot be read or is no secret.
    pub(crate) fn set(&self, path: &[u8]) -> Result<(), String> {
        let path = String::from_utf8_lossy(path).into_owned();
        let secret = match &path[..] {
            "" => None,
            path => {
                Some(Secret::read_from(Path::new(path)).map_err(|error| match error.kind() {
                    ErrorKind::InvalidData => format!("{path}: {error}"),
                    _ => format!("{path}: cannot read: {error}"),
                })?)
            }
        };
        secret::set(secret);
        *self.path.lock().unwrap_or_else(PoisonError::into_inner) = path;
        Ok(())
    }

    /// Returns the path.
    pub(crate) fn text(&self) -> String {
        self.path.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

pub(super) static SECRET_FILE: SecretFile =
    SecretFile { name: c"secret-file", path: Mutex::new(String::new()) };

/// A setting with named values.
pub(crate) struct EnumSetting {
    pub(crate) name: &'static CStr,
    pub(crate) values: [&'static CStr; 2],
    pub(crate) value: AtomicI64,
}

/// The maximum initial capacity, as in RedisBloom.
const MAX_CAPACITY: i64 = 1 << 30;

static BF_ERROR_RATE: FprSetting = FprSetting::new(c"bf-error-rate", true);
static CF_ERROR_RATE: FprSetting = FprSetting::new(c"cf-error-rate", false);
pub(super) static FPRS: [&FprSetting; 2] = [&BF_ERROR_RATE, &CF_ERROR_RATE];

static BF_INITIAL_SIZE: IntSetting = IntSetting::new(c"bf-initial-size", 100, 1..=MAX_CAPACITY);
static BF_EXPANSION: IntSetting =
    IntSetting::new(c"bf-expansion-factor", 2, 0..=MAX_EXPANSION as i64);
static CF_INITIAL_SIZE: IntSetting = IntSetting::new(c"cf-initial-size", 1024, 2..=MAX_CAPACITY);
static CF_BUCKET_SIZE: IntSetting = IntSetting::new(c"cf-bucket-size", 2, 1..=255);
static CF_MAX_ITERATIONS: IntSetting = IntSetting::new(c"cf-max-iterations", 20, 1..=65535);
static CF_EXPANSION: IntSetting =
    IntSetting::new(c"cf-expansion-factor", 1, 0..=MAX_EXPANSION as i64);
static CF_MAX_EXPANSIONS: IntSetting = IntSetting::new(c"cf-max-expansions", 32, 1..=65536);
static MEMORY_LIMIT: IntSetting = IntSetting {
    is_bytes: true,
    in_redisbloom: false,
    ..IntSetting::new(c"memory-limit", 1 << 32, 0..=i64::MAX)
};
pub(super) static INTS: [&IntSetting; 8] = [
    &BF_INITIAL_SIZE,
    &BF_EXPANSION,
    &CF_INITIAL_SIZE,
    &CF_BUCKET_SIZE,
    &CF_MAX_ITERATIONS,
    &CF_EXPANSION,
    &CF_MAX_EXPANSIONS,
    &MEMORY_LIMIT,
];

pub(super) static LAYOUT: EnumSetting =
    EnumSetting { name: c"layout", values: [c"petal", c"redisbloom"], value: AtomicI64::new(0) };

/// The values of all settings at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// Default false-positive rate of Bloom filters.
    pub(crate) bf_error_rate: f64,
    /// Default capacity of Bloom filters.
    pub(crate) bf_initial_size: u64,
    /// Default capacity of a layer divided by that of the layer before; 0: no growth.
    pub(crate) bf_expansion: u64,
    /// False-positive rate of `CF.*` filters in petal's layout.
    pub(crate) cf_error_rate: f64,
    /// Default capacity of `CF.*` filters.
    pub(crate) cf_initial_size: u64,
    /// Default slots per bucket.
    pub(crate) cf_bucket_size: u64,
    /// Default maximum of slots that an insert moves.
    pub(crate) cf_max_iterations: u64,
    /// Like `bf_expansion`, for `CF.*` filters.
    pub(crate) cf_expansion: u64,
    /// Maximum number of layers of a `CF.*` filter.
    pub(crate) cf_max_expansions: u64,
    /// Memory limit of a key in bytes.
    pub(crate) memory_limit: u64,
    /// Layout of new filters.
    pub(crate) layout: Layout,
}

impl Settings {
    /// Returns the current values.
    pub(crate) fn current() -> Self {
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

/// Returns whether the `loadmodule` arguments contain `NAME bf`. The module is then registered
/// under RedisBloom's name, for clients that look for it in `MODULE LIST`.
///
/// # Errors
/// If the name is neither `petal` nor `bf`.
pub(super) fn is_named_bf(args: &[&[u8]]) -> Result<bool, String> {
    let pair = args.chunks(2).find(|pair| pair[0].eq_ignore_ascii_case(b"NAME"));
    match pair.map(|pair| pair.get(1).copied().unwrap_or_default()) {
        None | Some(b"petal") => Ok(false),
        Some(b"bf") => Ok(true),
        Some(_) => Err("NAME must be petal or bf".to_owned()),
    }
}

/// Applies the `loadmodule` arguments: pairs of a name and a value, as in RedisBloom.
///
/// # Errors
/// The message for the log, with the name of the invalid argument.
pub(super) fn apply_arguments(args: &[&[u8]]) -> Result<(), String> {
    for pair in args.chunks(2) {
        let name = String::from_utf8_lossy(pair[0]).to_ascii_uppercase();
        let Some(value) = pair.get(1) else {
            return Err(format!("{name} needs a value"));
        };
        let set_int = |setting: &IntSetting| {
            let value = std::str::from_utf8(value).ok().and_then(|text| text.parse::<i64>().ok());
            match value.filter(|value| setting.range.contains(value)) {
                Some(value) => {
                    setting.value.store(value, Relaxed);
                    Ok(())
                }
                None => Err(format!("{name} must be in {:?}", setting.range)),
            }
        };
        match name.as_str() {
            "ERROR_RATE" => BF_ERROR_RATE.set(value).map_err(|error| format!("{name}: {error}"))?,
            "INITIAL_SIZE" => set_int(&BF_INITIAL_SIZE)?,
            "CF_MAX_EXPANSIONS" => set_int(&CF_MAX_EXPANSIONS)?,
            // See `is_named_bf`.
            "NAME" => {}
            _ => return Err(format!("{name} is not an argument of this module")),
        }
    }
    Ok(())
}
