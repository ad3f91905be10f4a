//! `Bloom.save` of the Python package rbloom: the probes in 8 bytes, little-endian, and the bits,
//! to the end of the file.
//!
//! The package's user provides the hash function. petal uses the one of the package's guide: the
//! first 16 bytes of SHA-256 as a signed big-endian number. A generator modulo 2¹²⁸ continues from
//! there, and its bits 32 to 95, modulo the number of bits, are a position. Nothing in the file
//! identifies the function or the format.
//!
//! The package rounds the probes down: 6 for 1 %, and 0 above one half, where every key is present;
//! such filters are refused. Source: files written by version 1.5.4.

use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use crate::encoding::bits::Bits;
use crate::encoding::bytes::le64;
use crate::error::{Error, Result};
use crate::format::Format;
use crate::formats::format_impl::{BitArrayFormat, HashFn, MAX_PROBES, NewFilter, Plan};
use crate::stats::FilterStats;

const HEADER: usize = 8;
const MULTIPLIER: u128 = 47_026_247_687_942_121_848_144_207_491_837_418_733;

#[derive(Clone, Debug)]
pub(crate) struct Rbloom {
    probes: u64,
    bytes: u64,
}

impl Rbloom {
    pub(crate) fn parse(file: &[u8]) -> Result<Self> {
        let bad = |what, expected, found: String| {
            Err(Error::malformed(Format::Rbloom.name(), what, expected, found))
        };
        let Some(probes) = le64(file, 0).filter(|_| file.len() > HEADER) else {
            return bad("length", "9 bytes or more", format!("{} bytes", file.len()));
        };
        if !(1..=MAX_PROBES).contains(&probes) {
            return bad("probes", "1 to 4096", probes.to_string());
        }
        Ok(Self { probes, bytes: (file.len() - HEADER) as u64 })
    }

    /// Sizes a filter as `Bloom` does.
    pub(crate) fn plan(plan: &Plan) -> Result<NewFilter<Self>> {
        let ln2 = std::f64::consts::LN_2;
        let bits = -(plan.keys as f64) * plan.rate.ln() / (ln2 * ln2);
        let probes = (bits / plan.keys as f64 * ln2) as u64;
        let layout = Self { probes, bytes: (bits as u64).div_ceil(8) };
        if probes == 0 || layout.bytes == 0 {
            return Err(Error::limit(
                Format::Rbloom,
                format!("a rate of {} leaves no probes", plan.rate),
                "use a rate of 0.5 or less",
            ));
        }
        let length = layout.bytes.saturating_add(HEADER as u64);
        let file = plan.file(&probes.to_le_bytes(), length)?;
        Ok((layout, file))
    }
}

/// Returns the hash of the guide as two words, the low one first.
fn words_of(key: &[u8]) -> [u64; 2] {
    let sum: [u8; 32] = Sha256::digest(key).into();
    let word = |at| crate::encoding::bytes::be64(&sum, at).unwrap_or_default();
    [word(8), word(0)]
}

impl BitArrayFormat for Rbloom {
    fn format(&self) -> Format {
        Format::Rbloom
    }

    fn words(&self) -> usize {
        2
    }

    fn hash_fn(&self) -> HashFn {
        Arc::new(|key, words| words.extend(words_of(key)))
    }

    #[inline]
    fn positions(&self, words: &[u64]) -> impl Iterator<Item = u64> {
        let bits = self.bits().count;
        let mut state = u128::from(words[1]) << 64 | u128::from(words[0]);
        (0..self.probes).map(move |_| {
            state = state.wrapping_mul(MULTIPLIER).wrapping_add(1);
            (state >> 32) as u64 % bits
        })
    }

    fn bits(&self) -> Bits {
        Bits::low_first(HEADER, self.bytes * 8)
    }

    fn probes(&self) -> u32 {
        self.probes as u32
    }

    fn describe(&self, _file: &[u8], stats: &mut FilterStats) {
        stats.not_recorded.push(
            "the hash: taken to be that of rbloom's guide, int.from_bytes(sha256(key).digest()\
             [:16], \"big\", signed=True); with any other, every answer is wrong",
        );
    }
}
