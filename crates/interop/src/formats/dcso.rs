//! The files of DCSO's program `bloom`, version 1: 48 bytes of header, words, and user data, all
//! little-endian.
//!
//! A key is hashed with FNV-1 modulo the largest prime below 2⁶⁴. A multiplicative generator
//! continues from there; each of its numbers modulo the number of bits is a position.
//!
//! The program counts an insert only if it changed a bit. Source: files written by version 0.2.4 of
//! Debian's package `golang-github-dcso-bloom-cli`.

use std::sync::Arc;

use crate::encoding::bits::Bits;
use crate::encoding::bytes::{le64, lef64, put};
use crate::error::{Error, Result};
use crate::format::Format;
use crate::formats::format_impl::{BitArrayFormat, HashFn, MAX_PROBES, NewFilter, Plan};
use crate::hashes::fnv::fnv1;
use crate::key_type::KeyType;
use crate::stats::FilterStats;

const HEADER: usize = 48;
/// Offset of the number of inserted keys.
const COUNTED: usize = 40;
/// The largest prime below 2⁶⁴.
const MODULUS: u64 = 18_446_744_073_709_551_557;
const MULTIPLIER: u64 = 18_446_744_073_709_550_147;

#[derive(Clone, Debug)]
pub(crate) struct Dcso {
    keys: u64,
    rate: f64,
    probes: u64,
    bits: u64,
}

impl Dcso {
    pub(crate) fn parse(file: &[u8]) -> Result<Self> {
        let bad = |what, expected: &str, found: String| {
            Err(Error::malformed(Format::Dcso.name(), what, expected, found))
        };
        let words = [0, 8, 24, 32, COUNTED].map(|at| le64(file, at));
        let ([Some(flags), Some(keys), Some(probes), Some(bits), Some(_)], Some(rate)) =
            (words, lef64(file, 16))
        else {
            return bad("length", "48 bytes or more", format!("{} bytes", file.len()));
        };
        if flags != 1 {
            return bad("flags", "1", flags.to_string());
        }
        if !(1..=MAX_PROBES).contains(&probes) {
            return bad("probes", "1 to 4096", probes.to_string());
        }
        if !(rate > 0.0 && rate < 1.0) {
            return bad("rate", "above 0 and below 1", rate.to_string());
        }
        if bits == 0 {
            return bad("bits", "1 or more", bits.to_string());
        }
        // User data may follow.
        let expected = bits.div_ceil(64).saturating_mul(8).saturating_add(HEADER as u64);
        if (file.len() as u64) < expected {
            return Err(Error::cut(Format::Dcso, expected, file));
        }
        Ok(Self { keys, rate, probes, bits })
    }

    /// Sizes a filter as `bloom create` does: rounded down, because it rounds a negative number up.
    pub(crate) fn plan(plan: &Plan) -> Result<NewFilter<Self>> {
        let ln2 = std::f64::consts::LN_2;
        let bits = (plan.keys as f64 * plan.rate.ln().abs() / (ln2 * ln2)).floor();
        if bits < 1.0 {
            let what = "bloom would make a filter of no bits".to_owned();
            return Err(Error::limit(Format::Dcso, what, "plan for more keys or a lower rate"));
        }
        let probes = (ln2 * bits / plan.keys as f64).ceil() as u64;
        let bits = bits as u64;
        let layout = Self { keys: plan.keys, rate: plan.rate, probes, bits };
        let header: Vec<u8> = [1, plan.keys, plan.rate.to_bits(), probes, bits, 0]
            .into_iter()
            .flat_map(u64::to_le_bytes)
            .collect();
        let length = (HEADER as u64).saturating_add(bits.div_ceil(64).saturating_mul(8));
        let file = plan.file(&header, length)?;
        Ok((layout, file))
    }

    fn counted(file: &[u8]) -> u64 {
        le64(file, COUNTED).unwrap_or(0)
    }
}

/// Returns the offset where the filter ends and user data may follow.
pub(crate) fn end(file: &[u8]) -> Result<u64> {
    let bits = Dcso::parse(file)?.bits;
    Ok(bits.div_ceil(64).saturating_mul(8).saturating_add(HEADER as u64))
}

impl BitArrayFormat for Dcso {
    fn format(&self) -> Format {
        Format::Dcso
    }

    fn words(&self) -> usize {
        1
    }

    fn hash_fn(&self) -> HashFn {
        Arc::new(|key, words| words.push(fnv1(key) % MODULUS))
    }

    #[inline]
    fn positions(&self, words: &[u64]) -> impl Iterator<Item = u64> {
        let (mut state, bits) = (words[0], self.bits);
        (0..self.probes).map(move |_| {
            state = state.wrapping_mul(MULTIPLIER) % MODULUS;
            state % bits
        })
    }

    fn bits(&self) -> Bits {
        Bits::low_first(HEADER, self.bits)
    }

    fn probes(&self) -> u32 {
        self.probes as u32
    }

    fn note(&mut self, file: &mut [u8], changed: u64) {
        if changed > 0 {
            put(file, COUNTED, &Self::counted(file).saturating_add(1).to_le_bytes());
        }
    }

    fn note_union(&mut self, file: &mut [u8], theirs: &FilterStats) {
        let both = Self::counted(file).saturating_add(theirs.counted.unwrap_or(0));
        put(file, COUNTED, &both.to_le_bytes());
    }

    fn describe(&self, file: &[u8], stats: &mut FilterStats) {
        stats.key_types = &[KeyType::Text, KeyType::TextCrlf];
        stats.capacity = Some(self.keys);
        stats.target_fpr = Some(self.rate);
        stats.counted = Some(Self::counted(file));
        let words = self.bits.div_ceil(64) as usize * 8;
        let data = file.len().saturating_sub(HEADER + words);
        if data > 0 {
            stats.choice("data behind the filter", format!("{data} bytes"));
        }
        stats.not_recorded.push(
            "how keys were written: published lists hold hexadecimal digests, in capitals or not",
        );
        stats.not_recorded.push(
            "the ends of lines: the program bloom drops a CR before the LF, petal does not; text-crlf for lines that end in CR LF",
        );
    }
}
