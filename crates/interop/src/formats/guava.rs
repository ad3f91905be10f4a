//! Guava's `BloomFilter.writeTo` (com.google.common.hash): one byte for the strategy, one for the
//! probes, the number of 64-bit words in four bytes, and the words, all big-endian.
//!
//! The bytes of a key are hashed with 128-bit MurmurHash3. Strategy 1, `MURMUR128_MITZ_64`, adds
//! the second half of the hash to the first for each probe. Strategy 0, `MURMUR128_MITZ_32`, does
//! so with two 32-bit quarters, and so addresses at most 2³¹ bits. The file does not record the
//! funnel that encoded the keys.
//!
//! Source: files written by Guava 31.1 and 33.4; Kirsch & Mitzenmacher 2006 for the probes.

use std::sync::Arc;

use crate::encoding::bits::Bits;
use crate::encoding::bytes::{be32, to_be32};
use crate::error::{Error, Result};
use crate::format::Format;
use crate::formats::format_impl::{BitArrayFormat, HashFn, NewFilter, Plan, REACH};
use crate::formats::fpr_floor::Stepping;
use crate::hashes::murmur3;
use crate::key_type::KeyType;
use crate::stats::FilterStats;

/// Bytes before the words.
const HEADER: usize = 6;

#[derive(Clone, Debug)]
pub(crate) struct Guava {
    wide: bool,
    probes: u8,
    words: u32,
}

impl Guava {
    /// Parses the header and checks the length of a file.
    pub(crate) fn parse(file: &[u8], wide: bool) -> Result<Self> {
        let name = format(wide).name();
        let bad = |what, expected: &str, found: String| {
            Err(Error::malformed(name, what, expected, found))
        };
        let (Some(&strategy), Some(&probes), Some(words)) =
            (file.first(), file.get(1), be32(file, 2))
        else {
            return bad("length", "6 bytes or more", format!("{} bytes", file.len()));
        };
        if strategy != u8::from(wide) {
            return bad("strategy", if wide { "1" } else { "0" }, strategy.to_string());
        }
        if probes == 0 {
            return bad("probes", "1 to 255", "0".to_owned());
        }
        if words == 0 || words > i32::MAX as u32 {
            return bad("words", "1 to 2147483647", words.to_string());
        }
        let expected = HEADER as u64 + u64::from(words) * 8;
        if file.len() as u64 != expected {
            return Err(Error::cut(format(wide), expected, file));
        }
        Ok(Self { wide, probes, words })
    }

    /// Sizes a filter as `BloomFilter.create` does, but refuses strategy 0 beyond the bits it can
    /// address.
    pub(crate) fn plan(plan: &Plan, wide: bool) -> Result<NewFilter<Self>> {
        let ln2 = std::f64::consts::LN_2;
        let bits = (-(plan.keys as f64) * plan.rate.ln() / (ln2 * ln2)) as u64;
        let limit = |what, do_this| Err(Error::limit(format(wide), what, do_this));
        if bits == 0 {
            let what = "Guava makes no filter of 0 bits".to_owned();
            return limit(what, "plan for more keys or a lower rate");
        }
        if !wide && bits > REACH {
            let what = format!("{bits} bits are needed, strategy 0 reaches {REACH}");
            return limit(what, "make it guava, or plan for fewer keys or a higher rate");
        }
        let Ok(words) = i32::try_from(bits.div_ceil(64)) else {
            let what = format!("{bits} bits are needed, 137438953408 are the most");
            return limit(what, "plan for fewer keys or a higher rate");
        };
        let probes = (-plan.rate.log2()).round().max(1.0);
        if probes > f64::from(u8::MAX) {
            let what = format!("{probes} probes are needed, 255 are the most");
            return limit(what, "use a higher rate");
        }
        let probes = probes as u8;
        let layout = Self { wide, probes, words: words.cast_unsigned() };
        let mut header = vec![u8::from(wide), probes];
        header.extend(to_be32(layout.words));
        let file = plan.file(&header, HEADER as u64 + u64::from(layout.words) * 8)?;
        Ok((layout, file))
    }
}

fn format(wide: bool) -> Format {
    if wide { Format::Guava } else { Format::Guava32 }
}

impl BitArrayFormat for Guava {
    fn format(&self) -> Format {
        format(self.wide)
    }

    fn words(&self) -> usize {
        2
    }

    fn hash_fn(&self) -> HashFn {
        Arc::new(|key, words| words.extend(murmur3::x64_128(key, 0)))
    }

    #[inline]
    fn positions(&self, words: &[u64]) -> impl Iterator<Item = u64> {
        let (wide, bits) = (self.wide, u64::from(self.words) * 64);
        let (h1, h2) = (words[0], words[1]);
        let (mut sum, step) = if wide { (h1, h2) } else { (h1 as u32 as u64, h1 >> 32) };
        (0..self.probes).map(move |_| {
            if wide {
                let bit = (sum & (i64::MAX as u64)) % bits;
                sum = sum.wrapping_add(step);
                bit
            } else {
                sum = sum.wrapping_add(step);
                let signed = sum as u32 as i32;
                (if signed < 0 { !signed } else { signed }) as u64 % bits
            }
        })
    }

    fn bits(&self) -> Bits {
        Bits::high_byte_words(HEADER, self.words.into())
    }

    fn probes(&self) -> u32 {
        self.probes.into()
    }

    fn reach(&self) -> u64 {
        if self.wide { u64::MAX } else { REACH }
    }

    /// Strategy 1 clears the highest bit of a sum, which leaves 63 bits. Strategy 0 has 32.
    fn stepping(&self) -> Option<Stepping> {
        let put: &'static [fn(&mut [u64; 4], u64)] = if self.wide {
            &[|words, step| words[1] = step]
        } else {
            &[|words, step| words[0] = words[0] & 0xffff_ffff | step << 32]
        };
        let width = if self.wide { 63 } else { 32 };
        Some(Stepping { modulus: self.bits().count, width, shift: 0, signed: false, put })
    }

    fn describe(&self, _file: &[u8], stats: &mut FilterStats) {
        let strategy = if self.wide { "MURMUR128_MITZ_64" } else { "MURMUR128_MITZ_32" };
        stats.choice("strategy", strategy);
        if !self.wide && self.bits().count > REACH {
            stats.warnings.push(
                "strategy 0 sets none of the bits from 2^31 on: such a filter is worse than it looks",
            );
        }
        stats.key_types = &[KeyType::Text, KeyType::Utf16, KeyType::Int64, KeyType::Int32];
        stats.not_recorded.push(
            "the funnel: text for stringFunnel(UTF_8) and byteArrayFunnel, \
             utf16 for unencodedCharsFunnel, int64 for longFunnel, int32 for integerFunnel",
        );
    }
}
