//! The limit: lines of memory read at random, one for each hash, and nothing else done with them.
//!
//! The memory is as large as a filter's and asked for in the same way (`crates/core/src/store/owned.rs`): pages of its
//! own, huge ones from 8 MiB on. A line is the high half of hash times lines, as in the filter; it is asked for some
//! hashes before one word of it is read and added to a sum. How many hashes before is a matter of the machine: the best
//! of [`DISTANCES`] is the limit.

use memmap2::MmapMut;
use petal_bench::contest::keys::Keys;
use petal_bench::contest::subject::Subject;
use petal_bench::contest::{Contestant, Form, Kind, LIMIT, Operation};

/// Hashes between asking for a line and reading it.
pub const DISTANCES: [usize; 4] = [16, 32, 48, 64];

const LINE: usize = 64;
/// As in the filter's store.
const HUGE_FROM: usize = 8 << 20;

struct Lines {
    memory: MmapMut,
    distance: usize,
    sum: u64,
}

/// The limit at one distance, in memory of so many bytes.
///
/// # Errors
/// A sentence, if the memory is refused.
pub fn contestant(bytes: u64, keys: u64, distance: usize) -> Result<Contestant, String> {
    let refused = |e: std::io::Error| format!("{bytes} bytes: {e}");
    let length = usize::try_from(bytes).map_err(|e| format!("{bytes} bytes: {e}"))?;
    let mut memory = MmapMut::map_anon(length).map_err(refused)?;
    #[cfg(target_os = "linux")]
    if length >= HUGE_FROM {
        // Where there are no huge pages small ones do, as for the filter.
        let _ = memory.advise(memmap2::Advice::HugePage);
    }
    // Written to, so that every page is there and is a page of its own.
    for (at, line) in memory.as_chunks_mut::<LINE>().0.iter_mut().enumerate() {
        *line = [at as u8 | 1; LINE];
    }
    Ok(Contestant {
        filter: format!("{LIMIT}, {distance} ahead"),
        target: None,
        bits_per_key: bytes as f64 * 8.0 / keys as f64,
        kind: Kind::Hash,
        form: Form::Batch,
        kernel: None,
        threads: 1,
        operations: &[Operation::Absent, Operation::Present, Operation::Mixed],
        at_once: false,
        judged: false,
        subject: Box::new(Lines { memory, distance, sum: 0 }),
    })
}

impl Subject for Lines {
    fn clear(&mut self) {}

    fn insert(&mut self, _: &Keys) {}

    fn ask(&mut self, keys: &Keys) {
        let (lines, _) = self.memory.as_chunks::<LINE>();
        self.sum = sum(lines, keys.numbers(), self.distance);
    }

    fn yes(&self) -> u64 {
        self.sum
    }
}

/// The sum of one word of each line.
fn sum(lines: &[[u8; LINE]], hashes: &[u64], distance: usize) -> u64 {
    let at = |hash: u64| ((u128::from(hash) * lines.len() as u128) >> 64) as usize;
    let word =
        |hash: u64| lines[at(hash)].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
    let ahead = hashes.get(distance..).unwrap_or_default();
    hashes.iter().take(distance).for_each(|&hash| prefetch(lines, at(hash)));
    let mut sum = 0_u64;
    for (&hash, &later) in hashes.iter().zip(ahead) {
        prefetch(lines, at(later));
        sum = sum.wrapping_add(word(hash));
    }
    hashes[ahead.len()..].iter().fold(sum, |sum, &hash| sum.wrapping_add(word(hash)))
}

/// Asks for a line that will be read soon.
#[inline(always)]
#[expect(unsafe_code, reason = "std has no safe prefetch")]
fn prefetch(lines: &[[u8; LINE]], at: usize) {
    let line = lines.as_ptr().wrapping_add(at);
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the hint needs SSE, which every x86-64 has; it may be given any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hash_reads_its_own_line_once() {
        let lines: Vec<[u8; LINE]> = (0..8_u8).map(|at| [at; LINE]).collect();
        // The top three bits of a hash choose among eight lines.
        let hashes: Vec<u64> = (0..100_u64).map(|at| (at % 8) << 61).collect();
        let word = |at: u64| u64::from_le_bytes([at as u8; 8]);
        let expect = (0..100).fold(0_u64, |sum, at| sum.wrapping_add(word(at % 8)));
        for distance in [1, 16, 99, 100, 200] {
            assert_eq!(sum(&lines, &hashes, distance), expect, "{distance}");
        }
        assert_eq!(sum(&lines, &[], 16), 0);
    }
}
