//! Random reads of cache lines, one for each hash: the limit of every filter out of cache.
//!
//! The memory has the size of a filter and is allocated in the same way (`crates/core/src/store/owned.rs`): with huge
//! pages from 8 MiB on. The index of a line is the high half of hash times lines, as in the filter. A line is
//! prefetched some hashes before one word of it is read and added to a sum. The best prefetch distance depends on the
//! machine; the fastest of [`DISTANCES`] is the limit.

use memmap2::MmapMut;
use petal_bench::harness::adapters::BenchFilter;
use petal_bench::harness::keys::Keys;
use petal_bench::harness::{Case, Form, KeyKind, Operation, RANDOM_READS};

/// Hashes between the prefetch and the read of a line.
pub const DISTANCES: [usize; 4] = [16, 32, 48, 64];

const LINE: usize = 64;
/// As in the filter's store.
const HUGE_FROM: usize = 8 << 20;

struct Lines {
    memory: MmapMut,
    distance: usize,
    sum: u64,
}

/// A case of random reads at a prefetch distance, in `bytes` bytes of memory.
///
/// # Errors
/// If the memory cannot be allocated.
pub fn case(bytes: u64, keys: u64, distance: usize) -> Result<Case, String> {
    let refused = |e: std::io::Error| format!("{bytes} bytes: {e}");
    let length = usize::try_from(bytes).map_err(|e| format!("{bytes} bytes: {e}"))?;
    let mut memory = MmapMut::map_anon(length).map_err(refused)?;
    #[cfg(target_os = "linux")]
    if length >= HUGE_FROM {
        // Small pages are used if there are no huge ones, as in the filter.
        let _ = memory.advise(memmap2::Advice::HugePage);
    }
    // Writing allocates every page.
    for (at, line) in memory.as_chunks_mut::<LINE>().0.iter_mut().enumerate() {
        *line = [at as u8 | 1; LINE];
    }
    Ok(Case {
        filter: format!("{RANDOM_READS}, {distance} ahead"),
        target: None,
        bits_per_key: bytes as f64 * 8.0 / keys as f64,
        kind: KeyKind::Hash,
        form: Form::Batch,
        kernel: None,
        threads: 1,
        operations: &[Operation::Absent, Operation::Present, Operation::Mixed],
        fills_at_once: false,
        is_filter: false,
        tested: Box::new(Lines { memory, distance, sum: 0 }),
    })
}

impl BenchFilter for Lines {
    fn clear(&mut self) {}

    fn insert(&mut self, _: &Keys) {}

    fn query(&mut self, keys: &Keys) {
        let (lines, _) = self.memory.as_chunks::<LINE>();
        self.sum = sum(lines, keys.numbers(), self.distance);
    }

    fn hits(&self) -> u64 {
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

/// Prefetches a line.
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
    fn every_hash_reads_its_line_once() {
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
