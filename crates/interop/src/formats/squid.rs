//! The digest that Squid caches exchange (`/squid-internal-periodic/store_digest`): 128 bytes of
//! header, the high byte first, and a mask of bits.
//!
//! A key is MD5 over one byte for the method and the URL; its four words, with the high byte
//! first, are the four positions. The method is taken to be GET.
//!
//! A header holds two versions of 2 bytes, four counters (capacity, entries, removed ones, bytes
//! of the mask) of 4, the bits of an entry, and the number of positions, which must be 4. Squid
//! itself makes digests of 5 bits per entry; of a peer it takes others, as long as the mask has
//! the bytes that capacity and bits per entry come to. So a rate is kept by choosing that number,
//! within what Squid bears: it throws a digest away of which more than 65 % is set ("useless
//! digest"), as fewer than 4 bits per entry make it, and dies of one with 128 or more.
//!
//! Source: Squid 5.7, the digests that it serves and takes.

use std::sync::Arc;

use md5::{Digest as _, Md5};

use crate::bits::Bits;
use crate::bytes::{at, be16, be32, put, to_be32};
use crate::error::{Error, Result};
use crate::facts::Facts;
use crate::format::Format;
use crate::scheme::{Digest, Empty, Plan, Positional};

const HEADER: usize = 128;
/// The version and the least version that can read it.
const VERSIONS: [u16; 2] = [5, 3];
const COUNT: usize = 8;
const REMOVED: usize = 12;
/// What is behind is nothing, so far.
const RESERVED: usize = 22;
const PROBES: u8 = 4;
/// Bits of an entry that Squid chooses: with these, 55 % of a full mask is set.
const BITS_PER_ENTRY: f64 = 5.0;
/// With more, Squid reads a negative number and dies.
const MOST_BITS_PER_ENTRY: u8 = 127;
/// With more of its bits set, a digest is thrown away.
const USELESS: f64 = 0.65;
/// GET, as Squid numbers methods.
const METHOD: u8 = 1;
/// Bytes of the longest mask: a position has 32 bits.
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
        let (Some(version), Some(least), [Some(capacity), Some(count), Some(removed), Some(mask)]) =
            (be16(file, 0), be16(file, 2), numbers)
        else {
            return bad("length", "128 bytes or more", format!("{} bytes", file.len()));
        };
        if [version, least] != VERSIONS {
            return bad("versions", "5 and 3", format!("{version} and {least}"));
        }
        let Some([bits_per_entry, probes]) = at(file, 20) else {
            return bad("length", "128 bytes or more", format!("{} bytes", file.len()));
        };
        if probes != PROBES {
            return bad("positions of a key", "4", probes.to_string());
        }
        if !(1..=MOST_BITS_PER_ENTRY).contains(&bits_per_entry) {
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

    /// Room for the keys, as Squid has room for what its cache holds, and the fewest bits for an
    /// entry that keep the rate, but no fewer than Squid's own, which are a rate of 9.2 %.
    pub(crate) fn plan(plan: &Plan) -> Result<Empty<Self>> {
        let no_room = |what: String| {
            Err(Error::limit(Format::SquidDigest, what, "plan for fewer keys or a higher rate"))
        };
        let probes = f64::from(PROBES);
        let bits_per_entry =
            (-probes / (-plan.rate.powf(probes.recip())).ln_1p()).ceil().max(BITS_PER_ENTRY);
        if bits_per_entry > MOST_BITS_PER_ENTRY.into() {
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

/// What Squid holds the length of a mask against.
fn mask_bytes(capacity: u64, bits_per_entry: u8) -> u64 {
    capacity.saturating_mul(bits_per_entry.into()).div_ceil(8)
}

impl Positional for SquidDigest {
    fn format(&self) -> Format {
        Format::SquidDigest
    }

    fn words(&self) -> usize {
        2
    }

    fn digest(&self) -> Digest {
        Arc::new(|url, words| {
            let sum: [u8; 16] =
                Md5::new().chain_update([METHOD]).chain_update(url).finalize().into();
            words.extend([0, 8].map(|at| crate::bytes::be64(&sum, at).unwrap_or_default()));
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

    /// Squid counts every entry that it puts in.
    fn note(&mut self, file: &mut [u8], _changed: u64) {
        let count = Self::count(file, COUNT).saturating_add(1).min(i32::MAX as u32);
        put(file, COUNT, &to_be32(count));
    }

    fn note_union(&mut self, file: &mut [u8], theirs: &Facts) {
        let theirs = u32::try_from(theirs.counted.unwrap_or(0)).unwrap_or(u32::MAX);
        let count = Self::count(file, COUNT).saturating_add(theirs).min(i32::MAX as u32);
        put(file, COUNT, &to_be32(count));
    }

    fn tell(&self, file: &[u8], facts: &mut Facts) {
        facts.planned_keys = Some(self.capacity.into());
        facts.counted = Some(Self::count(file, COUNT).into());
        facts.choice("bits per entry", self.bits_per_entry);
        let removed = Self::count(file, REMOVED);
        if removed > 0 {
            facts.choice("removed entries", removed);
        }
        if facts.set as f64 > USELESS * facts.bits as f64 {
            facts.warnings.push("Squid takes no digest of which more than 65 % is set, as here");
        }
        facts.untold.push("the method: taken to be GET; keys are whole URLs, as Squid stores them");
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
