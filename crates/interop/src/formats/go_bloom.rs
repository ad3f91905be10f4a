//! `BloomFilter.WriteTo` of the Go package bits-and-blooms/bloom, version 3: the number of bits,
//! the probes, and a bit set, which is its length again and the words. Numbers are big-endian
//! 64-bit; after `bitset.LittleEndian()` only the bit set is little-endian, which its length
//! reveals.
//!
//! A key is hashed with 128-bit MurmurHash3, and again followed by a byte 1; the four halves are
//! added in a pattern that repeats after four probes.
//!
//! With a file whose two lengths differ the package grows its bits or reads out of bounds. Such
//! files are refused here. Keys are not counted.
//!
//! Source: files written by version 3.3.1 as packaged by Debian.

use std::sync::Arc;

use crate::encoding::bits::{Bits, Order};
use crate::encoding::bytes::{be64, le64, to_be64};
use crate::error::{Error, Result};
use crate::format::Format;
use crate::formats::format_impl::{BitArrayFormat, HashFn, MAX_PROBES, NewFilter, Plan};
use crate::formats::fpr_floor::Stepping;
use crate::hashes::murmur3;
use crate::stats::FilterStats;

const HEADER: usize = 24;

#[derive(Clone, Debug)]
pub(crate) struct GoBloom {
    bits: u64,
    probes: u64,
    order: Order,
}

impl GoBloom {
    pub(crate) fn parse(file: &[u8]) -> Result<Self> {
        let bad = |what, expected: &str, found: String| {
            Err(Error::malformed(Format::GoBloom.name(), what, expected, found))
        };
        let (Some(bits), Some(probes), Some(big), Some(little)) =
            (be64(file, 0), be64(file, 8), be64(file, 16), le64(file, 16))
        else {
            return bad("length", "24 bytes or more", format!("{} bytes", file.len()));
        };
        if !(1..=MAX_PROBES).contains(&probes) {
            return bad("probes", "1 to 4096", probes.to_string());
        }
        let order = match (big == bits, little == bits) {
            (true, _) => Order::HighByteWords,
            (false, true) => Order::LowFirst,
            (false, false) => {
                return bad("length of the bit set", &bits.to_string(), big.to_string());
            }
        };
        if bits == 0 {
            return bad("bits", "1 or more", bits.to_string());
        }
        let expected = bits.div_ceil(64).saturating_mul(8).saturating_add(HEADER as u64);
        if file.len() as u64 != expected {
            return Err(Error::cut(Format::GoBloom, expected, file));
        }
        Ok(Self { bits, probes, order })
    }

    /// Sizes a filter as `NewWithEstimates` does.
    pub(crate) fn plan(plan: &Plan) -> Result<NewFilter<Self>> {
        let ln2 = std::f64::consts::LN_2;
        let bits = (plan.keys as f64 * -plan.rate.ln() / (ln2 * ln2)).ceil();
        let probes = (ln2 * bits / plan.keys as f64).ceil() as u64;
        let layout = Self { bits: bits as u64, probes, order: Order::HighByteWords };
        let header: Vec<u8> =
            [layout.bits, probes, layout.bits].into_iter().flat_map(to_be64).collect();
        let length = layout.bits.div_ceil(64).saturating_mul(8).saturating_add(HEADER as u64);
        let file = plan.file(&header, length)?;
        Ok((layout, file))
    }
}

impl BitArrayFormat for GoBloom {
    fn format(&self) -> Format {
        Format::GoBloom
    }

    fn words(&self) -> usize {
        4
    }

    fn hash_fn(&self) -> HashFn {
        Arc::new(|key, words| words.extend(murmur3::x64_128_twice(key)))
    }

    #[inline]
    fn positions(&self, words: &[u64]) -> impl Iterator<Item = u64> {
        let bits = self.bits;
        let [even, odd, slow, fast] = [words[0], words[1], words[2], words[3]];
        (0..self.probes).map(move |probe| {
            let start = if probe % 2 == 0 { even } else { odd };
            let step = if matches!(probe % 4, 1 | 2) { fast } else { slow };
            start.wrapping_add(probe.wrapping_mul(step)) % bits
        })
    }

    fn bits(&self) -> Bits {
        Bits { at: HEADER, count: self.bits, order: self.order }
    }

    fn probes(&self) -> u32 {
        self.probes as u32
    }

    /// Half of the probes have one step, the others another; a step that returns affects half of
    /// them.
    fn stepping(&self) -> Option<Stepping> {
        let put: &'static [fn(&mut [u64; 4], u64)] =
            &[|words, step| words[2] = step, |words, step| words[3] = step];
        Some(Stepping { modulus: self.bits, width: 64, shift: 0, signed: false, put })
    }

    fn describe(&self, _file: &[u8], stats: &mut FilterStats) {
        let little = self.order == Order::LowFirst;
        stats.choice("bit set", if little { "little-endian" } else { "big-endian" });
    }

    fn check(&self, file: &[u8]) -> Result<()> {
        self.bits().check_padding(file, self.bits.div_ceil(64) * 64, Format::GoBloom)
    }
}
