//! Samples of inputs: estimates of their lines and distinct lines, and of what they share.

use std::ops::ControlFlow;

use super::block_reader::{BlockReader, LONGEST, SampledLine};
use crate::error::Result;
use crate::fingerprint::LineHasher;
use crate::input::{DecompressedLength, Input, Open, decompressed_sample};
use crate::memory::Budget;
use crate::progress::Progress;
use crate::scan::RecordEnds;

/// Estimates from a sample of one or more inputs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample {
    pub(crate) bytes: u64,
    /// Estimated lines.
    pub(crate) lines: u64,
    /// Estimated distinct lines.
    pub(crate) distinct: u64,
    /// Hashes of the sampled lines, sorted.
    pub(crate) keys: Vec<u64>,
    /// Sampled lines, and distinct lines among them.
    pub(crate) sampled: u64,
    pub(crate) sampled_distinct: u64,
    /// Share of the sample that is not in the page cache.
    pub(crate) cold: f64,
    /// Whether `bytes` is exact: no compressed input is longer than the part that was sampled.
    pub(crate) has_exact_bytes: bool,
}

/// Lines shared by two samples of equal inputs: enough to estimate an overlap of a tenth to a few per
/// cent.
const PAIRS: f64 = 4000.0;
/// Bytes read at each position.
const SPOT: u64 = 16 << 10;
/// Number of positions for the first estimate of the line length, and maximum number.
const FEW: u64 = 16;
const MAX_SPOTS: u64 = 16384;
/// The same for objects of a store, where each place is a request.
const MAX_REQUESTS: u64 = 64;
/// Minimum number of hashes of all samples of a job: 8 MiB, while nothing else is in memory.
const MIN_KEYS: u64 = 1 << 20;
/// Inputs up to this size are read completely.
const SMALL: u64 = 4 << 20;
/// Decompressed bytes that are sampled of all compressed inputs together.
pub(crate) const MAX_DECOMPRESSED: u64 = 64 << 20;
/// Maximum number of compressed inputs that are sampled. The sizes of the others are extrapolated.
const MAX_COMPRESSED: usize = 16;

impl Sample {
    /// Samples inputs evenly. Two samples of √(PAIRS·N) lines each share about PAIRS lines for an
    /// overlap of 1 (the birthday bound). `among` samples share the memory.
    ///
    /// The positions are deterministic, so an estimate and the job itself choose the same strategy.
    /// Samples of different `number`s are at different positions: equal positions would find far too
    /// many common lines in files that have them at equal positions.
    ///
    /// Cost: reads at most 256 MiB of files, and decompresses at most 64 MiB of compressed ones.
    pub(crate) fn of(
        inputs: &[&Input],
        hasher: &LineHasher,
        delimiter: u8,
        budget: &Budget,
        [number, among]: [usize; 2],
        progress: &dyn Progress,
    ) -> Result<Self> {
        // Bounds the memory if lines are short.
        let max = ((budget.work / 4 / 8).max(MIN_KEYS) / among as u64).max(FEW);
        let (files, compressed): (Vec<&Input>, Vec<&Input>) =
            inputs.iter().partition(|input| input.has_positions());
        let mut sampler = Sampler::new(hasher, delimiter, progress);
        sampler.salt = scattered(number as u64);
        let mut bytes: u64 = files.iter().filter_map(|input| input.length()).sum();
        if bytes <= SMALL {
            for input in &files {
                let left = max - max.min(sampler.keys.len() as u64);
                sampler.take(input, &input.open_sample(progress)?, [0, SMALL, left])?;
            }
        } else {
            sampler.spots(&files, bytes, FEW, max / FEW)?;
            // The line length determines how many positions are needed.
            let (sampled, taken) = (sampler.keys.len().max(1) as u64, sampler.bytes);
            let lines = bytes as f64 / taken.max(1) as f64 * sampled as f64;
            let wanted = ((PAIRS * lines).sqrt() as u64).min(max);
            let requests = files.iter().any(|input| input.is_object());
            let max_spots = if requests { MAX_REQUESTS } else { MAX_SPOTS };
            let spots = (wanted / (sampled / FEW).max(1)).min(max_spots).min(bytes / SPOT);
            if spots > FEW {
                (sampler.keys, sampler.bytes) = (vec![], 0);
                sampler.spots(&files, bytes, spots, (max / spots).max(1))?;
            }
        }
        bytes += sampler.all_compressed(&compressed, max, budget.decoder)?;
        Ok(sampler.estimates(bytes))
    }

    /// Returns the share of equal pairs among all pairs of a line of each sample.
    pub(crate) fn matches(&self, other: &Self) -> f64 {
        let (mut matches, mut i, mut j) = (0u64, 0, 0);
        while let (Some(a), Some(b)) = (self.keys.get(i), other.keys.get(j)) {
            matches += u64::from(a == b);
            i += usize::from(a <= b);
            j += usize::from(b <= a);
        }
        matches as f64 / (self.sampled as f64 * other.sampled as f64).max(1.0)
    }

    pub(crate) fn line_length(&self) -> f64 {
        self.bytes as f64 / self.lines.max(1) as f64
    }
}

/// Takes sampled lines out of inputs.
struct Sampler<'a> {
    reader: BlockReader<'a>,
    keys: Vec<u64>,
    /// Bytes of the sampled lines.
    bytes: u64,
    /// Determines the positions.
    salt: u64,
    has_exact_bytes: bool,
}

impl<'a> Sampler<'a> {
    fn new(hasher: &'a LineHasher, delimiter: u8, progress: &'a dyn Progress) -> Self {
        Self {
            reader: BlockReader::new(hasher, delimiter, progress),
            keys: vec![],
            bytes: 0,
            salt: 0,
            has_exact_bytes: true,
        }
    }

    /// Samples up to `max` lines at each of `spots` positions, evenly spread over `bytes` of input.
    fn spots(&mut self, inputs: &[&Input], bytes: u64, spots: u64, max: u64) -> Result<()> {
        let (mut inputs, mut begin) = (inputs.iter().peekable(), 0);
        let mut open = None;
        for spot in 0..spots {
            // A pseudorandom position within its part, so that copies of lines at a fixed distance
            // are not missed systematically. No line is sampled twice.
            let part = bytes / spots;
            let room = part.saturating_sub(SPOT);
            let within = (u128::from(scattered(spot ^ self.salt)) * u128::from(room)) >> 64;
            let at = spot * part + within as u64;
            while let Some(length) = inputs.peek().map(|input| input.length().unwrap_or(0))
                && begin + length <= at
            {
                begin += length;
                open = None;
                inputs.next();
            }
            if let Some(input) = inputs.peek() {
                let open = match &mut open {
                    Some(open) => open,
                    none => none.insert(input.open_sample(self.reader.progress)?),
                };
                self.take(input, open, [at - begin, SPOT, max])?;
            }
        }
        Ok(())
    }

    /// Samples the lines that start within `size` bytes of a position, at most `max`.
    fn take(&mut self, input: &Input, open: &Open, [start, size, max]: [u64; 3]) -> Result<()> {
        let Self { reader, keys, bytes, .. } = self;
        let limit = keys.len() + max as usize;
        reader.read(input, open, [start, size], |line: SampledLine| {
            if keys.len() >= limit {
                return ControlFlow::Break(());
            }
            keys.push(line.hash);
            *bytes += line.bytes;
            ControlFlow::Continue(())
        })
    }

    /// Samples up to `max` lines of a few compressed inputs, and returns the estimated decompressed
    /// length of all: the others are assumed to have the same compression ratio.
    fn all_compressed(&mut self, inputs: &[&Input], max: u64, memory: u64) -> Result<u64> {
        let few = inputs.len().min(MAX_COMPRESSED);
        let size = |input: &Input| input.file_length().map_or(0, |(length, _)| length);
        let (mut decompressed, mut compressed) = (0, 0);
        for nth in 0..few {
            self.reader.check_cancelled()?;
            let input = inputs[nth * inputs.len() / few];
            let left = max.saturating_sub(self.keys.len() as u64) / (few - nth) as u64;
            decompressed += self.compressed(input, MAX_DECOMPRESSED / few as u64, left, memory)?;
            compressed += size(input);
        }
        if few == inputs.len() {
            return Ok(decompressed);
        }
        self.has_exact_bytes = false;
        let all: u64 = inputs.iter().map(|input| size(input)).sum();
        Ok((decompressed as f64 * all as f64 / compressed.max(1) as f64) as u64)
    }

    /// Samples up to `max` lines in the first `begin` bytes of a compressed input, and returns its
    /// decompressed length, which may be an estimate.
    fn compressed(&mut self, input: &Input, begin: u64, max: u64, memory: u64) -> Result<u64> {
        // At most one in four: sampling a line costs as much as decompressing it.
        let share = (u64::MAX / 4).min((u64::MAX / (begin / 16)).saturating_mul(max));
        let salt = self.salt ^ scattered(self.bytes ^ self.keys.len() as u64);
        let (mut carry, mut count, mut taken, mut covered) = (Vec::new(), 0, 0, 0);
        let kind = RecordEnds::of(input, self.reader.delimiter);
        let mut ends = Vec::new();
        self.reader.set_input(input);
        let show = |text: &[u8]| {
            carry.extend_from_slice(text);
            ends.clear();
            kind.find(&carry, usize::MAX, &mut ends);
            let mut start = 0;
            for &end in &ends {
                count += 1;
                if scattered(salt ^ count) <= share && taken < max {
                    taken += 1;
                    covered += (end + 1 - start) as u64;
                    self.keys.push(self.reader.hash(&carry[start..end]));
                }
                start = end + 1;
            }
            carry.drain(..start);
            if kind != RecordEnds::Frame {
                carry.truncate(LONGEST);
            }
        };
        let length = decompressed_sample(input, begin, memory, show)?;
        self.bytes += covered;
        Ok(match length {
            Some(DecompressedLength::Exact(bytes)) => bytes,
            Some(DecompressedLength::Estimate(bytes)) => {
                self.has_exact_bytes = false;
                bytes
            }
            None => 0,
        })
    }

    /// Returns the estimates for `bytes` of input.
    fn estimates(mut self, bytes: u64) -> Sample {
        self.keys.sort_unstable();
        let sampled = self.keys.len() as u64;
        let lines = match sampled {
            // Lines longer than a position's bytes, or an empty input.
            0 => bytes / SPOT + u64::from(bytes > 0),
            _ if self.bytes >= bytes => sampled,
            _ => (bytes as f64 * sampled as f64 / self.bytes as f64).ceil() as u64,
        };
        let pairs = self.keys.windows(2).filter(|pair| pair[0] == pair[1]).count() as u64;
        let distinct = if sampled >= lines {
            sampled - pairs
        } else {
            // A sampled line with m copies meets another copy with probability (m-1)·s/N.
            let square = (sampled as f64).powi(2).max(1.0);
            (lines as f64 / (1.0 + 2.0 * pairs as f64 * lines as f64 / square)).ceil() as u64
        };
        let sampled_distinct = sampled - pairs;
        let cold = self.reader.cold();
        let Self { keys, has_exact_bytes, .. } = self;
        Sample { bytes, lines, distinct, keys, sampled, sampled_distinct, cold, has_exact_bytes }
    }
}

/// Returns a pseudorandom number that depends only on `number`. Source: the finalizer of splitmix64
/// (Steele, Lea & Flood 2014).
pub(super) fn scattered(number: u64) -> u64 {
    let mix = |x: u64, shift: u32, by: u64| (x ^ x >> shift).wrapping_mul(by);
    let x = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let x = mix(mix(x, 30, 0xbf58_476d_1ce4_e5b9), 27, 0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::input::Source;

    #[test]
    fn sample_of_short_lines_stays_within_its_memory() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ends");
        for bytes in [SMALL as usize, 3 * SMALL as usize] {
            std::fs::write(&path, vec![b'\n'; bytes]).unwrap();
            let inputs = Input::open_unchecked(&[Source::from_arg(&path)], 0).unwrap();
            let hasher = LineHasher::random().unwrap();
            let budget = Budget::new(8 << 20, 1).unwrap();
            let sample = Sample::of(&[&inputs[0]], &hasher, b'\n', &budget, [0, 4], &()).unwrap();
            assert!(sample.keys.len() * 8 <= 2 << 20, "{}", sample.keys.len());
            let exact = bytes as f64;
            assert!((sample.lines as f64 - exact).abs() < exact / 100.0, "{}", sample.lines);
        }
    }

    /// The estimates cover all files although only a few are decompressed.
    #[test]
    fn only_a_few_of_many_compressed_files_are_sampled() {
        let dir = tempfile::tempdir().unwrap();
        let (each, files) = (2 << 20, 48);
        let line = |number: usize| format!("{:015}\n", number * 7919 % 1_000_003);
        let paths = (0..files).map(|file| {
            let text: String = (0..each / 16).map(|at| line(file * each + at)).collect();
            let path = dir.path().join(format!("{file}.zst"));
            std::fs::write(&path, zstd::encode_all(text.as_bytes(), 1).unwrap()).unwrap();
            Source::from_arg(path)
        });
        let inputs = Input::open_unchecked(&paths.collect::<Vec<_>>(), 0).unwrap();
        let refs: Vec<_> = inputs.iter().collect();
        let (hasher, budget) = (LineHasher::random().unwrap(), Budget::new(64 << 20, 1).unwrap());
        let mut sampler = Sampler::new(&hasher, b'\n', &());
        let bytes = sampler.all_compressed(&refs, 1 << 20, budget.decoder).unwrap();
        let exact = (each * files) as f64;
        assert!((bytes as f64 - exact).abs() < exact / 100.0, "{bytes} of {exact}");
        // At most a quarter of the lines of each sampled file.
        assert!(sampler.bytes <= (each * MAX_COMPRESSED) as u64 / 3, "{}", sampler.bytes);
        let sample = Sample::of(&refs, &hasher, b'\n', &budget, [0, 1], &()).unwrap();
        let lines = exact / 16.0;
        assert!((sample.lines as f64 - lines).abs() < lines / 100.0, "{}", sample.lines);
        let mut sampler = Sampler::new(&hasher, b'\n', &Cancel);
        assert!(
            sampler.all_compressed(&refs, 1, budget.decoder).unwrap_err().kind()
                == ErrorKind::Cancelled
        );
    }

    struct Cancel;

    impl Progress for Cancel {
        fn cancelled(&self) -> bool {
            true
        }
    }

    #[test]
    fn cancelled_sample_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lines");
        for bytes in [1, 3 * SMALL as usize] {
            std::fs::write(&path, vec![b'\n'; bytes]).unwrap();
            let inputs = Input::open_unchecked(&[Source::from_arg(&path)], 0).unwrap();
            let (hasher, budget) =
                (LineHasher::random().unwrap(), Budget::new(8 << 20, 1).unwrap());
            let sample = Sample::of(&[&inputs[0]], &hasher, b'\n', &budget, [0, 1], &Cancel);
            assert!(sample.unwrap_err().kind() == ErrorKind::Cancelled, "{bytes}");
        }
    }

    /// The first positions have long lines; all lines between them are empty.
    #[test]
    fn sample_is_bounded_if_the_first_lines_are_long() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("fool");
        let step = 3 << 20;
        let mut file = vec![b'\n'; 16 * step];
        for place in 0..16 {
            file[place * step..][..70_000].fill(b'x');
        }
        std::fs::write(&path, file).unwrap();
        let inputs = Input::open_unchecked(&[Source::from_arg(&path)], 0).unwrap();
        let hasher = LineHasher::random().unwrap();
        let budget = Budget::new(8 << 20, 1).unwrap();
        let sample = Sample::of(&[&inputs[0]], &hasher, b'\n', &budget, [0, 1], &()).unwrap();
        assert!(sample.keys.len() as u64 <= MIN_KEYS, "{}", sample.keys.len());
    }
}
