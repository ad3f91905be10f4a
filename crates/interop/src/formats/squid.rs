//! The digest that Squid caches exchange (`/squid-internal-periodic/store_digest`): 128 bytes of
//! header, big-endian, and a bit mask.
//!
//! A key is MD5 of one byte for the method and the URL; its four big-endian words are the four
//! positions. The method is assumed to be GET.
//!
//! The header has two versions of 2 bytes, four counters of 4 (capacity, entries, removed entries,
//! bytes of the mask), the bits per entry, and the number of positions, which must be 4. Squid
//! makes digests of 5 bits per entry; it accepts others from a peer if the size of the mask matches
//! capacity and bits per entry. So petal meets a rate by choosing that number, within Squid's
//! limits: Squid discards a digest with more than 65 % of its bits set ("useless digest"), which
//! fewer than 4 bits per entry give, and crashes on 128 or more.
//!
//! Source: Squid 5.7, the digests that it serves and accepts.

use std::sync::Arc;

use md5::{Digest as _, Md5};

use crate::encoding::bits::Bits;
use crate::encoding::bytes::{at, be16, be32, put, to_be32};
use crate::error::{Error, Result};
use crate::format::Format;
use crate::formats::format_impl::{BitArrayFormat, HashFn, NewFilter, Plan};
use crate::stats::FilterStats;

const HEADER: usize = 128;
/// The version, and the oldest version that can read it.
const VERSIONS: [u16; 2] = [5, 3];
const COUNT: usize = 8;
const REMOVED: usize = 12;
/// The rest of the header is unused.
const RESERVED: usize = 22;
const PROBES: u8 = 4;
/// Squid's bits per entry: a full mask has 55 % of its bits set.
const BITS_PER_ENTRY: f64 = 5.0;
/// Above this, Squid reads a negative number and crashes.
const MAX_BITS_PER_ENTRY: u8 = 127;
/// Squid discards a digest with a larger share of bits set.
const USELESS: f64 = 0.65;
/// Squid's number for GET.
const METHOD: u8 = 1;
/// Maximum size of a mask: a position has 32 bits.
const LONGEST: u64 = 1 << 29;

#[derive(Clone, Debug)]
pub(crate) struct SquidDigest {
    capacity: u32,
    bits_per_entry: u8,
    mask: u32,
}

impl SquidDigest {
    pub(crate) fn parse(file: &[u8]) -> Result<Self> {
        let bad = |what, expected: &str, found: String| {
            Err(Error::malformed(Format::SquidDigest.name(), what, expected, found))
        };
        let numbers = [4, COUNT, REMOVED, 16].map(|place| be32(file, place));
        let (Some(version), Some(min), [Some(capacity), Some(count), Some(removed), Some(mask)]) =
            (be16(file, 0), be16(file, 2), numbers)
        else {
            return bad("length", "128 bytes or more", format!("{} bytes", file.len()));
        };
        if [version, min] != VERSIONS {
            return bad("versions", "5 and 3", format!("{version} and {min}"));
        }
        let Some([bits_per_entry, probes]) = at(file, 20) else {
            return bad("length", "128 bytes or more", format!("{} bytes", file.len()));
        };
        if probes != PROBES {
            return bad("positions of a key", "4", probes.to_string());
        }
        if !(1..=MAX_BITS_PER_ENTRY).contains(&bits_per_entry) {
            return bad("bits per entry", "1 to 127", bits_per_entry.to_string());
        }
        for (what, number) in [("entries", count), ("removed entries", removed)] {
            if number > i32::MAX as u32 {
                return bad(what, "0 to 2147483647", number.to_string());
            }
        }
        if capacity == 0 || capacity > i32::MAX as u32 {
            return bad("capacity", "1 to 2147483647", capacity.to_string());
        }
        let expected = mask_bytes(capacity.into(), bits_per_entry);
        if mask == 0 || u64::from(mask) != expected || expected >= LONGEST {
            return bad(
                "bytes of the mask",
                &format!("{expected}, below {LONGEST}"),
                mask.to_string(),
            );
        }
        let length = HEADER as u64 + expected;
        if file.len() as u64 != length {
            return Err(Error::cut(Format::SquidDigest, length, file));
        }
        Ok(Self { capacity, bits_per_entry, mask })
    }

    /// Uses the capacity as Squid uses the number of cached objects, and the fewest bits per entry
    /// that meet the rate, but at least Squid's own, which give a rate of 9.2 %.
    pub(crate) fn plan(plan: &Plan) -> Result<NewFilter<Self>> {
        let no_room = |what: String| {
            Err(Error::limit(Format::SquidDigest, what, "plan for fewer keys or a higher rate"))
        };
        let probes = f64::from(PROBES);
        let bits_per_entry =
            (-probes / (-plan.rate.powf(probes.recip())).ln_1p()).ceil().max(BITS_PER_ENTRY);
        if bits_per_entry > MAX_BITS_PER_ENTRY.into() {
            return no_room(format!(
                "{bits_per_entry:.3e} bits per entry are needed, 127 are the most"
            ));
        }
        let bits_per_entry = bits_per_entry as u8;
        let mask = mask_bytes(plan.keys, bits_per_entry);
        let (Ok(capacity), true) = (i32::try_from(plan.keys), mask < LONGEST) else {
            return no_room(format!("{mask} bytes are needed, {} are the most", LONGEST - 1));
        };
        let (capacity, mask) = (capacity.cast_unsigned(), mask as u32);
        let mut header = vec![0, VERSIONS[0] as u8, 0, VERSIONS[1] as u8];
        header.extend([capacity, 0, 0, mask].into_iter().flat_map(to_be32));
        header.extend([bits_per_entry, PROBES]);
        let file = plan.file(&header, HEADER as u64 + u64::from(mask))?;
        Ok((Self { capacity, bits_per_entry, mask }, file))
    }

    fn count(file: &[u8], place: usize) -> u32 {
        be32(file, place).unwrap_or(0)
    }
}

/// Returns the size of a mask that Squid expects.
fn mask_bytes(capacity: u64, bits_per_entry: u8) -> u64 {
    capacity.saturating_mul(bits_per_entry.into()).div_ceil(8)
}

impl BitArrayFormat for SquidDigest {
    fn format(&self) -> Format {
        Format::SquidDigest
    }

    fn words(&self) -> usize {
        2
    }

    fn hash_fn(&self) -> HashFn {
        Arc::new(|url, words| {
            let sum: [u8; 16] =
                Md5::new().chain_update([METHOD]).chain_update(url).finalize().into();
            words.extend(
                [0, 8].map(|at| crate::encoding::bytes::be64(&sum, at).unwrap_or_default()),
            );
        })
    }

    #[inline]
    fn positions(&self, words: &[u64]) -> impl Iterator<Item = u64> {
        let bits = self.bits().count;
        let (first, second) = (words[0], words[1]);
        [first >> 32, first as u32 as u64, second >> 32, second as u32 as u64]
            .into_iter()
            .map(move |word| word % bits)
    }

    fn bits(&self) -> Bits {
        Bits::low_first(HEADER, u64::from(self.mask) * 8)
    }

    fn probes(&self) -> u32 {
        PROBES.into()
    }

    /// Squid counts every inserted entry.
    fn note(&mut self, file: &mut [u8], _changed: u64) {
        let count = Self::count(file, COUNT).saturating_add(1).min(i32::MAX as u32);
        put(file, COUNT, &to_be32(count));
    }

    fn note_union(&mut self, file: &mut [u8], theirs: &FilterStats) {
        let theirs = u32::try_from(theirs.counted.unwrap_or(0)).unwrap_or(u32::MAX);
        let count = Self::count(file, COUNT).saturating_add(theirs).min(i32::MAX as u32);
        put(file, COUNT, &to_be32(count));
    }

    fn describe(&self, file: &[u8], stats: &mut FilterStats) {
        stats.capacity = Some(self.capacity.into());
        stats.counted = Some(Self::count(file, COUNT).into());
        stats.choice("bits per entry", self.bits_per_entry);
        let removed = Self::count(file, REMOVED);
        if removed > 0 {
            stats.choice("removed entries", removed);
        }
        if stats.set as f64 > USELESS * stats.bits as f64 {
            stats.warnings.push("Squid takes no digest of which more than 65 % is set, as here");
        }
        stats
            .not_recorded
            .push("the method: taken to be GET; keys are whole URLs, as Squid stores them");
    }

    fn check(&self, file: &[u8]) -> Result<()> {
        let reserved = file.get(RESERVED..HEADER).unwrap_or_default();
        match reserved.iter().find(|byte| **byte != 0) {
            None => Ok(()),
            Some(byte) => {
                Err(Error::malformed(Format::SquidDigest.name(), "reserved bytes", 0, byte))
            }
        }
    }
}
