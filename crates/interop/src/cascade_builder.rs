//! Building a filter cascade: levels are added until one has no false positives. Each is sized as
//! Mozilla's library sizes it, so the file is the one that library writes for the same sets of
//! keys.
//!
//! Invariant: no key is both a member and a non-member, so levels get smaller. Source: files
//! written by the Python package filtercascade 0.4.1; Larisch et al. 2017.

use crate::error::{Error, Result};
use crate::foreign_filter::ForeignFilter;
use crate::format::Format;
use crate::formats::CascadeHash;
use crate::formats::filter_cascade::{CascadeHashing, LEVEL_HEADER, MAX_PROBES};

/// The rate of all levels after the first.
const LATER: f64 = 0.5;
/// Maximum number of levels that all readers support.
const MAX_LEVELS: u8 = 254;
/// The salt's length is one byte.
const MAX_SALT: usize = 255;

/// Parameters of a filter cascade. The defaults are those of Mozilla's library, except `inverted`.
#[derive(Clone, Debug)]
pub struct CascadeOptions {
    /// The false-positive rate of the first level; that of all others is one half. Keys in neither
    /// list are reported as members at this rate or less, because later levels reject some. The
    /// file is about smallest at r / (√2 · s) for r members and s non-members.
    pub rate: f64,
    /// Minimum capacity of a level.
    pub min_capacity: u64,
    /// The hash.
    pub hash: CascadeHash,
    /// Bytes hashed before every key, at most 255; must be empty with [`CascadeHash::Murmur3`].
    pub salt: Vec<u8>,
    /// If true, the first level holds the non-members, of which there should be fewer. The file is
    /// smaller, but most keys in neither list are reported as members. Mozilla's library chooses
    /// this itself when there are more members than non-members; here the caller chooses.
    pub inverted: bool,
    /// Maximum size of the file in bytes.
    pub limit: u64,
}

impl Default for CascadeOptions {
    fn default() -> Self {
        Self {
            rate: 0.02,
            min_capacity: 1000,
            hash: CascadeHash::default(),
            salt: Vec::new(),
            inverted: false,
            limit: u64::MAX,
        }
    }
}

/// Builds the cascade that contains all `members` and none of `others`: a blocklist with all its
/// exceptions. The order of the keys and repetitions have no effect.
///
/// Cost: 16 to 32 bytes of memory per key beside the key itself, and as much again per false
/// positive of a level; time to sort both lists, and per key about as many hashes as the first
/// level has probes.
///
/// ```
/// use petal_interop::{CascadeOptions, cascade};
///
/// let bad = ["bad.example", "worse.example"].map(str::as_bytes);
/// let good = ["good.example", "fine.example", "best.example"].map(str::as_bytes);
/// let blocked = cascade(bad, good, &CascadeOptions::default())?;
/// assert!(blocked.contains(b"worse.example")? && !blocked.contains(b"best.example")?);
/// # Ok::<_, petal_interop::Error>(())
/// ```
///
/// # Errors
/// If a key is in both lists, the first level has no key, options are out of range, the format's
/// limits are exceeded, or memory allocation fails.
pub fn cascade<'a>(
    members: impl IntoIterator<Item = &'a [u8]>,
    others: impl IntoIterator<Item = &'a [u8]>,
    options: &CascadeOptions,
) -> Result<ForeignFilter> {
    examine(options)?;
    let (members, others) = (distinct(members)?, distinct(others)?);
    no_key_in_both(&members, &others)?;
    let (mut included, mut against) =
        if options.inverted { (others, members) } else { (members, others) };
    if included.is_empty() {
        let what = if options.inverted { "non-members" } else { "members" };
        return Err(Error::invalid(what, "at least 1", 0));
    }
    let mut shape =
        CascadeHashing { hash: options.hash, salt: options.salt.clone(), levels: Vec::new() };
    let mut file = vec![2, 0, u8::from(options.inverted), options.salt.len() as u8];
    file.extend(&options.salt);
    for number in 1..=MAX_LEVELS {
        let fooled = add_level(number, &included, &against, options, &mut shape, &mut file)?;
        if fooled.is_empty() {
            return ForeignFilter::from_bytes(file, Some(Format::FilterCascade));
        }
        against = std::mem::replace(&mut included, fooled);
    }
    let what = format!("{MAX_LEVELS} layers do not separate the keys");
    Err(Error::limit(Format::FilterCascade, what, "take another hash or salt"))
}

fn examine(options: &CascadeOptions) -> Result<()> {
    if !(options.rate > 0.0 && options.rate < 1.0) {
        return Err(Error::invalid("rate", "above 0 and below 1", options.rate));
    }
    let max = if options.hash == CascadeHash::Murmur3 { 0 } else { MAX_SALT };
    if options.salt.len() > max {
        let expected = "at most 255 bytes, and none with murmur3";
        return Err(Error::invalid("salt", expected, format!("{} bytes", options.salt.len())));
    }
    Ok(())
}

/// Appends a level of the keys `included`. Returns its false positives among `against`.
fn add_level<'a>(
    number: u8,
    included: &[&[u8]],
    against: &[&'a [u8]],
    options: &CascadeOptions,
    shape: &mut CascadeHashing,
    file: &mut Vec<u8>,
) -> Result<Vec<&'a [u8]>> {
    let (bits, probes) = size(included.len() as u64, number, options)?;
    let at = file.len() + LEVEL_HEADER;
    let length = at as u64 + u64::from(bits / 8);
    if length > options.limit {
        return Err(Error::too_large(length, options.limit));
    }
    let refused = |_| Error::alloc(length);
    file.try_reserve_exact(LEVEL_HEADER + bits as usize / 8).map_err(refused)?;
    file.push(shape.hash.number());
    file.extend(bits.to_le_bytes());
    file.extend(probes.to_le_bytes());
    file.push(number);
    file.resize(length as usize, 0);
    let level = shape.push(number, at, bits, probes);
    let mut words = Vec::new();
    for key in included {
        words.clear();
        shape.positions(&level, key, &mut words);
        words.iter().for_each(|bit| _ = level.bit_array().set(file, *bit));
    }
    let mut fooled = Vec::new();
    for key in against {
        words.clear();
        shape.positions(&level, key, &mut words);
        if level.holds(file, &words) {
            append(&mut fooled, key)?;
        }
    }
    Ok(fooled)
}

/// Returns bits and probes of a level, as the library sizes it: for a tenth more keys, 1.44 ·
/// log2(1/rate) bits per key, and whole bytes.
fn size(keys: u64, level: u8, options: &CascadeOptions) -> Result<(u32, u32)> {
    let limit =
        |what| Err(Error::limit(Format::FilterCascade, what, "take fewer keys or a higher rate"));
    let rate = if level == 1 { options.rate } else { LATER };
    let per_key = (1.0 / rate).log2();
    let probes = per_key.ceil();
    if probes > (MAX_PROBES / 2) as f64 {
        return limit(format!("{probes} probes are needed, {} are the most", MAX_PROBES / 2));
    }
    let keys = ((keys as f64 * 1.1) as u64).max(options.min_capacity);
    let bytes = ((1.44 * keys as f64 * per_key).ceil() / 8.0).ceil();
    let max = f64::from(u32::MAX / 8);
    if bytes > max {
        return limit(format!("a layer needs {bytes} bytes, {max} are the most"));
    }
    Ok((bytes as u32 * 8, probes as u32))
}

/// Returns the distinct keys of a list, sorted.
fn distinct<'a>(keys: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<&'a [u8]>> {
    let mut list = Vec::new();
    for key in keys {
        append(&mut list, key)?;
    }
    list.sort_unstable();
    list.dedup();
    Ok(list)
}

fn append<'a>(list: &mut Vec<&'a [u8]>, key: &'a [u8]) -> Result<()> {
    let bytes = (list.len() as u64 + 1) * 2 * size_of::<&[u8]>() as u64;
    list.try_reserve(1).map_err(|_| Error::alloc(bytes))?;
    list.push(key);
    Ok(())
}

/// Checks that no key is in both lists: it would be in all levels, and building would not end.
fn no_key_in_both(members: &[&[u8]], others: &[&[u8]]) -> Result<()> {
    let (short, long) =
        if members.len() < others.len() { (members, others) } else { (others, members) };
    let mut both = short.iter().filter(|key| long.binary_search(key).is_ok());
    let Some(example) = both.next() else { return Ok(()) };
    Err(Error::in_both(1 + both.count() as u64, example))
}
