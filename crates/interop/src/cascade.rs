//! Making a filter cascade: layers, until one errs on nobody, each sized as Mozilla's library
//! sizes it, so that the file is the one that library writes for the same sets of keys.
//!
//! Invariant: no key is a member and a non-member, so that layers get smaller. Source: the files
//! that the Python package filtercascade 0.4.1 writes; Larisch et al. 2017.

use crate::error::{Error, Result};
use crate::foreign::Foreign;
use crate::format::Format;
use crate::formats::CascadeHash;
use crate::formats::filter_cascade::{LAYER_HEADER, MOST_PROBES, Shape};

/// The rate of all layers but the first.
const LATER: f64 = 0.5;
/// Layers that all readers can number.
const MOST_LAYERS: u8 = 254;
/// The salt's length is one byte.
const MOST_SALT: usize = 255;

/// How a filter cascade is made. The default is that of Mozilla's library, but for `inverted`.
#[derive(Clone, Debug)]
pub struct CascadeOptions {
    /// The false-positive rate of the first layer; that of all others is one half. Keys in neither
    /// list are taken for members at about that rate, mostly less: later layers undo some. The file
    /// is about smallest at r / (√2 · s) for r members and s others.
    pub rate: f64,
    /// Every layer is sized for this many keys at least.
    pub least_keys: u64,
    /// The hash.
    pub hash: CascadeHash,
    /// What is hashed before every key, at most 255 bytes; nothing with
    /// [`CascadeHash::Murmur3`], which takes no salt.
    pub salt: Vec<u8>,
    /// Whether the first layer holds the others, of which there should be fewer then. The file is
    /// smaller, but to keys in neither list it mostly says yes. Mozilla's library decides for it
    /// by itself when there are more members than others; here the caller does.
    pub inverted: bool,
    /// Bytes that the file may have.
    pub limit: u64,
}

impl Default for CascadeOptions {
    fn default() -> Self {
        Self {
            rate: 0.02,
            least_keys: 1000,
            hash: CascadeHash::default(),
            salt: Vec::new(),
            inverted: false,
            limit: u64::MAX,
        }
    }
}

/// The cascade that says yes to all `members` and no to all `others`: a blocklist with all its
/// exceptions. The order of the keys does not matter, nor do repetitions.
///
/// Cost: 16 to 32 bytes of memory for each key beside the key itself, and as much again for each
/// that a layer errs on; time to sort both lists, and for each key about as many hashes as the
/// first layer has probes.
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
/// If a key is in both lists, the first layer has no key to hold, options make no sense, the
/// format has no room for the keys, or memory is refused.
pub fn cascade<'a>(
    members: impl IntoIterator<Item = &'a [u8]>,
    others: impl IntoIterator<Item = &'a [u8]>,
    options: &CascadeOptions,
) -> Result<Foreign> {
    examine(options)?;
    let (members, others) = (distinct(members)?, distinct(others)?);
    no_key_in_both(&members, &others)?;
    let (mut held, mut against) =
        if options.inverted { (others, members) } else { (members, others) };
    if held.is_empty() {
        let what = if options.inverted { "non-members" } else { "members" };
        return Err(Error::invalid(what, "at least 1", 0));
    }
    let mut shape = Shape { hash: options.hash, salt: options.salt.clone(), layers: Vec::new() };
    let mut file = vec![2, 0, u8::from(options.inverted), options.salt.len() as u8];
    file.extend(&options.salt);
    for number in 1..=MOST_LAYERS {
        let fooled = add_layer(number, &held, &against, options, &mut shape, &mut file)?;
        if fooled.is_empty() {
            return Foreign::from_bytes(file, Some(Format::FilterCascade));
        }
        against = std::mem::replace(&mut held, fooled);
    }
    let what = format!("{MOST_LAYERS} layers do not tell the keys apart");
    Err(Error::limit(Format::FilterCascade, what, "take another hash or salt"))
}

fn examine(options: &CascadeOptions) -> Result<()> {
    if !(options.rate > 0.0 && options.rate < 1.0) {
        return Err(Error::invalid("rate", "above 0 and below 1", options.rate));
    }
    let most = if options.hash == CascadeHash::Murmur3 { 0 } else { MOST_SALT };
    if options.salt.len() > most {
        let expected = "at most 255 bytes, and none with murmur3";
        return Err(Error::invalid("salt", expected, format!("{} bytes", options.salt.len())));
    }
    Ok(())
}

/// Appends a layer that holds some keys; those of the other keys that it takes for its own.
fn add_layer<'a>(
    number: u8,
    held: &[&[u8]],
    against: &[&'a [u8]],
    options: &CascadeOptions,
    shape: &mut Shape,
    file: &mut Vec<u8>,
) -> Result<Vec<&'a [u8]>> {
    let (bits, probes) = size(held.len() as u64, number, options)?;
    let at = file.len() + LAYER_HEADER;
    let length = at as u64 + u64::from(bits / 8);
    if length > options.limit {
        return Err(Error::too_large(length, options.limit));
    }
    let refused = |_| Error::alloc(length);
    file.try_reserve_exact(LAYER_HEADER + bits as usize / 8).map_err(refused)?;
    file.push(shape.hash.number());
    file.extend(bits.to_le_bytes());
    file.extend(probes.to_le_bytes());
    file.push(number);
    file.resize(length as usize, 0);
    let layer = shape.push(number, at, bits, probes);
    let mut words = Vec::new();
    for key in held {
        words.clear();
        shape.positions(&layer, key, &mut words);
        words.iter().for_each(|bit| _ = layer.row().set(file, *bit));
    }
    let mut fooled = Vec::new();
    for key in against {
        words.clear();
        shape.positions(&layer, key, &mut words);
        if layer.holds(file, &words) {
            append(&mut fooled, key)?;
        }
    }
    Ok(fooled)
}

/// Bits and probes of a layer for so many keys, as the library has them: room for a tenth more
/// keys, 1.44 · log2(1/rate) bits for each, and whole bytes.
fn size(keys: u64, layer: u8, options: &CascadeOptions) -> Result<(u32, u32)> {
    let limit =
        |what| Err(Error::limit(Format::FilterCascade, what, "take fewer keys or a higher rate"));
    let rate = if layer == 1 { options.rate } else { LATER };
    let per_key = (1.0 / rate).log2();
    let probes = per_key.ceil();
    if probes > (MOST_PROBES / 2) as f64 {
        return limit(format!("{probes} probes are needed, {} are the most", MOST_PROBES / 2));
    }
    let keys = ((keys as f64 * 1.1) as u64).max(options.least_keys);
    let bytes = ((1.44 * keys as f64 * per_key).ceil() / 8.0).ceil();
    let most = f64::from(u32::MAX / 8);
    if bytes > most {
        return limit(format!("a layer needs {bytes} bytes, {most} are the most"));
    }
    Ok((bytes as u32 * 8, probes as u32))
}

/// The different keys of a list, in order.
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

/// A key in both lists would be in all layers, and there would be no end to them.
fn no_key_in_both(members: &[&[u8]], others: &[&[u8]]) -> Result<()> {
    let (short, long) =
        if members.len() < others.len() { (members, others) } else { (others, members) };
    let mut both = short.iter().filter(|key| long.binary_search(key).is_ok());
    let Some(example) = both.next() else { return Ok(()) };
    Err(Error::in_both(1 + both.count() as u64, example))
}
