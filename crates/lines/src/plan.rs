//! Choosing how to do a job exactly: sampled sizes, and what each way would cost.
//!
//! The ways and their costs are written down in docs/design.md ("The exact set verbs"). Nothing
//! here can make an answer wrong; a bad guess costs time.

use std::fs::File;
use std::io::IoSliceMut;

use petal::{BloomFilter, Shape};
use rustix::io::{ReadWriteFlags, preadv2};
use serde::{Deserialize, Serialize};

use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::fingerprint::Hashes;
use crate::input::{Input, Open, read_at};
use crate::judge::Verb;
use crate::progress::Progress;
use crate::table::Table;

/// How the exact set verbs do their work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Strategy {
    /// Fingerprints of one side in memory; lines are printed as they are read.
    Memory,
    /// Filters rule most lines out; only the rest is decided by fingerprints.
    Narrow,
    /// All fingerprints, dealt to partitions that fit in memory.
    Partition,
}

impl Strategy {
    /// The name used in reports and options.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Narrow => "narrow",
            Self::Partition => "partition",
        }
    }
}

/// Most bits a filter spends on a key here: the rate is then 0.15 %. A larger filter costs more,
/// in cache misses of every line, than the records of those few lines.
const MOST_BITS: u64 = 14;

/// How large a filter to use for so many keys in so much memory.
pub(crate) fn filter_bytes(keys: u64, memory: u64) -> u64 {
    memory.min(keys.saturating_mul(MOST_BITS) / 8).max(128)
}

/// How many keys a filter of so many bytes is for, if memory is not the matter.
pub(crate) fn keys_for(bytes: u64) -> u64 {
    (bytes * 8 / MOST_BITS).max(1)
}

/// How many distinct keys a filter has been given that was given `keys` and then took `new` more
/// for new: at a rate p it takes a share 1 - p for new, the others it seems to know already. The
/// rate rises meanwhile: integrated by the midpoint rule.
pub(crate) fn given(filter: &BloomFilter, keys: f64, new: u64) -> f64 {
    const STEPS: u32 = 128;
    let step = new as f64 / f64::from(STEPS);
    let each = |keys: f64| (1.0 - filter.expected_rate(keys as u64)).max(f64::EPSILON).recip();
    (0..STEPS).fold(keys, |keys, _| keys + step * each(keys + step / 2.0 * each(keys)))
}

/// What a sample says of an input, or of several taken as one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample {
    pub(crate) bytes: u64,
    /// Estimated lines.
    pub(crate) lines: u64,
    /// Estimated distinct lines.
    pub(crate) distinct: u64,
    /// The least and the most distinct lines that there can be: those of the sample, and all lines
    /// that are not in it beside them. Equal if the sample is the whole.
    pub(crate) distinct_range: [u64; 2],
    /// Filter keys of the sampled lines, sorted.
    keys: Vec<u64>,
    sampled: u64,
    /// The share of it that the system does not hold in memory, as far as it tells.
    pub(crate) cold: f64,
}

/// Lines that two samples of equal inputs share: enough to tell a tenth to a few per cent.
const PAIRS: f64 = 4000.0;
/// Bytes read at each place.
const SPOT: u64 = 16 << 10;
/// Places that tell how long lines are, and the most there are.
const FEW: u64 = 16;
const MOST_SPOTS: u64 = 16384;
/// The least that all samples of a job may hold together: 8 MiB, while nothing else is held.
const LEAST_KEYS: u64 = 1 << 20;
/// Inputs up to this size are "sampled" whole.
const SMALL: u64 = 4 << 20;
/// What is looked at of packed inputs, unpacked, all of them together; what lies behind can only be
/// guessed at.
const BEGIN: u64 = 64 << 20;
/// The most packed inputs that are looked into; of others the size is told by these.
const FEW_PACKED: usize = 16;
/// How far the number of lines may be above its estimate, for bounds that shall hold.
const LINES_MARGIN: f64 = 1.25;
/// The longest line that a sample of it holds.
const LONG: usize = 1 << 20;

impl Sample {
    /// Samples inputs evenly. Two samples of √(PAIRS·N) lines each share about PAIRS lines for an
    /// overlap of 1 (the birthday bound). So many samples share the memory `among` them.
    ///
    /// The places are always the same: what is foretold from a sample is what will be chosen.
    ///
    /// Cost: reads 256 MiB of files at most, and unpacks 64 MiB of packed ones.
    pub(crate) fn of(
        inputs: &[&Input],
        hashes: &Hashes,
        delimiter: u8,
        budget: &Budget,
        among: usize,
        progress: &dyn Progress,
    ) -> Result<Self> {
        // So that short lines cost no more memory than long ones.
        let most = ((budget.work / 4 / 8).max(LEAST_KEYS) / among as u64).max(FEW);
        let (files, packed): (Vec<&Input>, Vec<&Input>) =
            inputs.iter().partition(|input| input.is_file());
        let mut taker = Taker::new(hashes, delimiter, progress);
        let mut bytes: u64 = files.iter().filter_map(|input| input.length()).sum();
        if bytes <= SMALL {
            for input in &files {
                let left = most - most.min(taker.keys.len() as u64);
                taker.take(input.name(), &input.open(0, progress)?, [0, SMALL, left])?;
            }
        } else {
            taker.spots(&files, bytes, FEW, most / FEW)?;
            // Those tell how long lines are, hence how many places are worth their time.
            let (sampled, taken) = (taker.keys.len().max(1) as u64, taker.bytes);
            let lines = bytes as f64 / taken.max(1) as f64 * sampled as f64;
            let wanted = ((PAIRS * lines).sqrt() as u64).min(most);
            let spots = (wanted / (sampled / FEW).max(1)).min(MOST_SPOTS).min(bytes / SPOT);
            if spots > FEW {
                (taker.keys, taker.bytes) = (vec![], 0);
                taker.spots(&files, bytes, spots, (most / spots).max(1))?;
            }
        }
        bytes += taker.all_packed(&packed, most, budget.decoder)?;
        Ok(taker.estimates(bytes))
    }

    /// The share of pairs, a line of this sample and one of the other, that are equal.
    fn matches(&self, other: &Self) -> f64 {
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
struct Taker<'a> {
    hashes: &'a Hashes,
    delimiter: u8,
    keys: Vec<u64>,
    /// What the sampled lines cover.
    bytes: u64,
    buffer: Vec<u8>,
    /// Places looked at, and those that were not in memory.
    places: u64,
    cold: u64,
    progress: &'a dyn Progress,
}

impl<'a> Taker<'a> {
    fn new(hashes: &'a Hashes, delimiter: u8, progress: &'a dyn Progress) -> Self {
        let (keys, buffer) = (Vec::new(), Vec::new());
        Self { hashes, delimiter, keys, bytes: 0, buffer, places: 0, cold: 0, progress }
    }

    fn check_cancelled(&self) -> Result<()> {
        if self.progress.cancelled() { Err(Error::cancelled()) } else { Ok(()) }
    }

    /// Takes up to `most` lines at each of so many places, evenly spread over `bytes` of input.
    fn spots(&mut self, inputs: &[&Input], bytes: u64, spots: u64, most: u64) -> Result<()> {
        let (mut inputs, mut begin) = (inputs.iter().peekable(), 0);
        let mut open = None;
        for spot in 0..spots {
            // Somewhere in its part of the input, and no line twice: copies at a fixed distance
            // must not all lie between the places.
            let part = bytes / spots;
            let room = part.saturating_sub(SPOT);
            let within = (u128::from(scattered(spot)) * u128::from(room)) >> 64;
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
                    none => none.insert(input.open(0, self.progress)?),
                };
                self.take(input.name(), open, [at - begin, SPOT, most])?;
            }
        }
        Ok(())
    }

    /// Takes the whole lines within `size` bytes from a position on, `most` of them at the most.
    fn take(&mut self, name: &str, open: &Open, [start, size, most]: [u64; 3]) -> Result<()> {
        self.check_cancelled()?;
        let Open::File { file, range, whole } = open else { return Ok(()) };
        let end = (start + size).min(range.end - range.start);
        self.places += 1;
        self.cold += u64::from(!is_in_memory(file, range.start + start));
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize((end - start) as usize, 0);
        read_at(file, name, &mut buffer, range.start + start)?;
        let (begins, ends) = (range.start + start == whole.start, range.start + end == whole.end);
        self.lines(&buffer, begins, ends, most);
        self.buffer = buffer;
        Ok(())
    }

    /// Takes lines of a few packed inputs, evenly spread, until there are `most`. How long all of
    /// them are, about: the others are taken to be packed as well as these.
    fn all_packed(&mut self, inputs: &[&Input], most: u64, memory: u64) -> Result<u64> {
        let few = inputs.len().min(FEW_PACKED);
        let size = |input: &Input| input.file_length().map_or(0, |(length, _)| length);
        let (mut unpacked, mut packed) = (0, 0);
        for nth in 0..few {
            self.check_cancelled()?;
            let input = inputs[nth * inputs.len() / few];
            let left = most.saturating_sub(self.keys.len() as u64) / (few - nth) as u64;
            unpacked += self.packed(input, BEGIN / few as u64, left, memory)?;
            packed += size(input);
        }
        if few == inputs.len() {
            return Ok(unpacked);
        }
        let all: u64 = inputs.iter().map(|input| size(input)).sum();
        Ok((unpacked as f64 * all as f64 / packed.max(1) as f64) as u64)
    }

    /// Takes lines here and there in the first `begin` bytes of a packed input, `most` of them at
    /// the most. How long it is, about.
    fn packed(&mut self, input: &Input, begin: u64, most: u64, memory: u64) -> Result<u64> {
        // Not more than one of four: to take a line costs as much as to decompress it.
        let share = (u64::MAX / 4).min((u64::MAX / (begin / 16)).saturating_mul(most));
        let salt = scattered(self.bytes ^ self.keys.len() as u64);
        let (mut carry, mut count, mut taken, mut covered) = (Vec::new(), 0, 0, 0);
        let show = |text: &[u8]| {
            carry.extend_from_slice(text);
            let end = memchr::memrchr(self.delimiter, &carry).map_or(0, |at| at + 1);
            for line in carry[..end].split_inclusive(|byte| *byte == self.delimiter) {
                count += 1;
                if scattered(salt ^ count) <= share && taken < most {
                    taken += 1;
                    covered += line.len() as u64;
                    self.keys.push(self.hashes.key(&line[..line.len() - 1]));
                }
            }
            carry.drain(..end);
            carry.truncate(LONG);
        };
        let length = input.unpacked_sample(begin, memory, show)?.unwrap_or(0);
        self.bytes += covered;
        Ok(length)
    }

    /// Takes the whole lines of a text, `most` of them at the most.
    fn lines(&mut self, text: &[u8], from_start: bool, to_end: bool, most: u64) {
        let mut lines = text;
        if !from_start {
            let first = memchr::memchr(self.delimiter, lines).map_or(lines.len(), |at| at + 1);
            lines = &lines[first..];
        }
        if !to_end {
            let last = memchr::memrchr(self.delimiter, lines).map_or(0, |at| at + 1);
            lines = &lines[..last];
        }
        if lines.is_empty() {
            return;
        }
        let text = lines.strip_suffix(&[self.delimiter]).unwrap_or(lines);
        let mut covered = 0;
        for line in text.split(|byte| *byte == self.delimiter).take(most as usize) {
            self.keys.push(self.hashes.key(line));
            covered += line.len() + 1;
        }
        self.bytes += covered.min(lines.len()) as u64;
    }

    /// What that says of `bytes` of input.
    fn estimates(mut self, bytes: u64) -> Sample {
        self.keys.sort_unstable();
        let sampled = self.keys.len() as u64;
        let lines = match sampled {
            // Lines longer than a spot, or nothing at all.
            0 => bytes / SPOT + u64::from(bytes > 0),
            _ if self.bytes >= bytes => sampled,
            _ => (bytes as f64 * sampled as f64 / self.bytes as f64).ceil() as u64,
        };
        let pairs = self.keys.windows(2).filter(|pair| pair[0] == pair[1]).count() as u64;
        let distinct = if sampled >= lines {
            sampled - pairs
        } else {
            // A line with m copies meets another of them with probability (m-1)·s/N.
            let square = (sampled as f64).powi(2).max(1.0);
            (lines as f64 / (1.0 + 2.0 * pairs as f64 * lines as f64 / square)).ceil() as u64
        };
        let least = sampled - pairs;
        let distinct_range = if sampled >= lines {
            [least; 2]
        } else {
            // The number of lines is an estimate itself.
            [least, least + ((lines - sampled) as f64 * LINES_MARGIN).ceil() as u64]
        };
        let cold = self.cold as f64 / self.places.max(1) as f64;
        Sample { bytes, lines, distinct, distinct_range, keys: self.keys, sampled, cold }
    }
}

/// Nanoseconds of one core for one line, measured on lines of 12 and 67 bytes (docs/design.md).
/// Only their proportions matter, but for the time that is foretold.
pub(crate) mod cost {
    /// To read a line, find its end and take its filter key.
    pub(crate) fn key(length: f64) -> f64 {
        12.0 + 0.28 * length
    }
    /// To fingerprint it.
    pub(crate) fn fingerprint(length: f64) -> f64 {
        10.0 + 0.18 * length
    }
    /// To put a key into a filter, or ask for it.
    pub(crate) const FILTER: f64 = 6.0;
    /// To write a record, read it and judge it.
    pub(crate) const RECORD: f64 = 65.0;
    /// To look a fingerprint up in a table of so many entries: in a core's own cache, in the
    /// shared one, or out of it.
    pub(crate) fn table(entries: f64) -> f64 {
        match entries {
            ..60e3 => 10.0,
            ..500e3 => 30.0,
            _ => 110.0,
        }
    }
    /// To begin a pass, or a phase with a file of records.
    pub(crate) const PASS: f64 = 300e3;
    /// To print a line: find its end again, and copy it out.
    pub(crate) fn print(length: f64) -> f64 {
        15.0 + 0.5 * length
    }
}

/// What is known of a job before it begins.
pub(crate) struct Sizes {
    pub(crate) verb: Verb,
    pub(crate) first: Sample,
    pub(crate) others: Vec<Sample>,
    /// Of each other, the share of pairs with a line of the first input that are equal.
    matches: Vec<f64>,
}

/// A strategy, and on which side to begin.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) strategy: Strategy,
    /// `Narrow` for `common`: the first filter holds the first input, not the smallest other.
    pub(crate) first_begins: bool,
    /// The other input with the fewest lines: a resumed job must not choose again.
    pub(crate) smallest: usize,
    /// Estimated entries of all tables together, when records are decided by partition.
    pub(crate) entries: u64,
    /// `Narrow` for `common`: bytes of the filter of the candidates, if it fits beside the first
    /// one and is filled while they are found; 0 if their keys must wait for the first to go.
    pub(crate) beside: u64,
}

impl Sizes {
    /// Compares the samples, and gives back their memory.
    pub(crate) fn new(verb: Verb, mut first: Sample, mut others: Vec<Sample>) -> Self {
        let matches = others.iter().map(|other| first.matches(other)).collect();
        for sample in others.iter_mut().chain([&mut first]) {
            sample.keys = Vec::new();
        }
        Self { verb, first, others, matches }
    }

    /// Estimated share of the lines of the first input that an other has too.
    pub(crate) fn of_first_in(&self, other: usize) -> f64 {
        (self.matches[other] * self.others[other].distinct as f64).min(1.0)
    }

    /// Estimated share of the lines of an other that the first input has too.
    pub(crate) fn in_first(&self, other: usize) -> f64 {
        (self.matches[other] * self.first.distinct as f64).min(1.0)
    }

    /// The other input with the fewest lines.
    pub(crate) fn smallest_other(&self) -> usize {
        let by_lines = |j: &usize| self.others[*j].lines;
        (0..self.others.len()).min_by_key(by_lines).unwrap_or(0)
    }

    /// Lines of all inputs.
    pub(crate) fn lines(&self) -> u64 {
        self.first.lines + self.others.iter().map(|other| other.lines).sum::<u64>()
    }

    /// Whether the fingerprints that must be held would fit.
    fn fits(&self, budget: &Budget) -> bool {
        let capacity = Table::capacity(budget.work) / 10 * 9;
        let others = self.others.iter().map(|other| other.distinct);
        match self.verb {
            Verb::Common => others.chain([self.first.distinct]).min() <= Some(capacity),
            Verb::Diff | Verb::Dedup => self.first.distinct <= capacity,
        }
    }

    /// The plan to do it this way.
    pub(crate) fn plan(&self, strategy: Strategy, first_begins: bool, budget: &Budget) -> Plan {
        let smallest = self.smallest_other();
        let mut plan = Plan { strategy, first_begins, smallest, entries: 0, beside: 0 };
        plan.entries = self.entries(plan, budget);
        plan.beside = self.beside(plan, budget);
        plan
    }

    /// The cheapest way that fits the memory.
    pub(crate) fn choose(&self, budget: &Budget) -> Plan {
        let plan = |strategy, first_begins| self.plan(strategy, first_begins, budget);
        let memory = self.fits(budget).then_some(plan(Strategy::Memory, false));
        let partition = plan(Strategy::Partition, false);
        let narrow = match self.verb {
            Verb::Common => vec![plan(Strategy::Narrow, false), plan(Strategy::Narrow, true)],
            Verb::Diff | Verb::Dedup => vec![plan(Strategy::Narrow, false)],
        };
        let cost = |plan: &Plan| self.cost(*plan, budget);
        let cheaper = |a: &Plan, b: &Plan| cost(a).total_cmp(&cost(b));
        memory.into_iter().chain([partition]).chain(narrow).min_by(cheaper).unwrap_or(partition)
    }

    fn entries(&self, plan: Plan, budget: &Budget) -> u64 {
        match (plan.strategy, self.verb) {
            (Strategy::Narrow, Verb::Common) => self.candidates(plan, budget) as u64,
            (Strategy::Narrow, _) => self.questions(budget) as u64,
            (_, Verb::Common) => {
                let others = self.others.iter().map(|other| other.lines);
                others.chain([self.first.lines]).min().unwrap_or(0)
            }
            (_, Verb::Diff | Verb::Dedup) => self.lines(),
        }
    }

    /// Of `Narrow` for `common`, the side that fills the first filter, the one that is asked, and
    /// the share of the lines of that one that are in the first.
    pub(crate) fn sides(&self, plan: Plan) -> Option<(&Sample, &Sample, f64)> {
        let other = self.others.get(plan.smallest)?;
        Some(if plan.first_begins {
            (&self.first, other, self.in_first(plan.smallest))
        } else {
            (other, &self.first, self.of_first_in(plan.smallest))
        })
    }

    /// Lines that the first filter cannot rule out.
    fn candidates(&self, plan: Plan, budget: &Budget) -> f64 {
        let Some((begin, next, overlap)) = self.sides(plan) else { return 0.0 };
        next.lines as f64 * (overlap + rate(begin.lines, budget.work) * (1.0 - overlap))
    }

    fn beside(&self, plan: Plan, budget: &Budget) -> u64 {
        let Some((begin, next, _)) = self.sides(plan) else { return 0 };
        // Twice as many as foreseen, and a quarter of all: a sample may be wrong.
        let most = next.lines.max(1);
        let candidates = (self.candidates(plan, budget) as u64 * 2).clamp(most.div_ceil(4), most);
        let (first, second) =
            (filter_bytes(begin.lines, u64::MAX), filter_bytes(candidates, u64::MAX));
        // An eighth is left for records.
        if first.saturating_add(second) <= budget.work / 8 * 7 { second } else { 0 }
    }

    /// Lines of the first input that a filter of everything before them seems to know.
    fn questions(&self, budget: &Budget) -> f64 {
        // The filter fills up as it goes; its mean rate is about half the last.
        let rate = rate(self.lines(), budget.work) / 2.0;
        let copies = 1.0 - self.first.distinct as f64 / self.first.lines.max(1) as f64;
        let shared = (0..self.others.len()).map(|other| self.of_first_in(other)).sum::<f64>();
        self.first.lines as f64 * (copies + shared.min(1.0) + rate).min(1.0)
    }

    /// Estimated nanoseconds of one core.
    pub(crate) fn cost(&self, plan: Plan, budget: &Budget) -> f64 {
        let all = || self.others.iter().chain([&self.first]);
        let length = |sample: &Sample| sample.line_length();
        let read =
            |sample: &Sample| sample.lines as f64 * (cost::key(length(sample)) + cost::FILTER);
        let decide = |sample: &Sample, lines: f64| {
            lines * (cost::fingerprint(length(sample)) + cost::RECORD)
        };
        let inputs = self.others.len() as f64 + 1.0;
        let passes = match plan.strategy {
            Strategy::Memory => inputs,
            Strategy::Partition => inputs + 2.0,
            Strategy::Narrow => inputs + 4.0,
        };
        let lines = match (plan.strategy, self.verb) {
            (Strategy::Memory, verb) => {
                let entries = match verb {
                    Verb::Common => all().map(|sample| sample.distinct).min().unwrap_or(0),
                    Verb::Diff | Verb::Dedup => all().map(|sample| sample.distinct).sum(),
                } as f64;
                let judged = |s: &Sample| cost::fingerprint(length(s)) + cost::table(entries);
                all().map(|s| s.lines as f64 * (cost::key(length(s)) + judged(s))).sum()
            }
            (Strategy::Partition, _) => all()
                .map(|s| s.lines as f64 * cost::key(length(s)) + decide(s, s.lines as f64))
                .sum(),
            (Strategy::Narrow, Verb::Common) => {
                let Some((begin, next, overlap)) = self.sides(plan) else { return f64::INFINITY };
                let candidates = self.candidates(plan, budget);
                let back_rate = rate(candidates as u64, budget.work);
                let shared = (next.lines as f64 * overlap).min(begin.lines as f64);
                let back = shared + (begin.lines as f64 - shared) * back_rate;
                all().map(read).sum::<f64>()
                    + read(begin)
                    + decide(next, candidates)
                    + (self.others.len() as f64) * decide(begin, back)
            }
            (Strategy::Narrow, _) => {
                let lines = self.questions(budget);
                2.0 * all().map(read).sum::<f64>() + 2.0 * decide(&self.first, lines)
            }
        };
        lines + passes * cost::PASS
    }
}

/// A number as if at random, always the same for the same one. Source: the finisher of splitmix64
/// (Steele, Lea & Flood 2014).
fn scattered(number: u64) -> u64 {
    let mix = |x: u64, shift: u32, by: u64| (x ^ x >> shift).wrapping_mul(by);
    let x = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let x = mix(mix(x, 30, 0xbf58_476d_1ce4_e5b9), 27, 0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// Whether the system holds this byte of a file in memory; where it does not tell, no.
fn is_in_memory(file: &File, at: u64) -> bool {
    let mut byte = [0];
    let mut buffers = [IoSliceMut::new(&mut byte)];
    preadv2(file, &mut buffers, at, ReadWriteFlags::NOWAIT).is_ok()
}

/// The false-positive rate of the filter that fits so many keys into so much memory.
fn rate(keys: u64, memory: u64) -> f64 {
    let keys = keys.max(1);
    Shape::for_memory(filter_bytes(keys, memory), keys).map_or(1.0, |shape| shape.rate(keys))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::Source;

    #[test]
    fn a_sample_of_short_lines_takes_no_more_memory_than_its_share() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ends");
        for bytes in [SMALL as usize, 3 * SMALL as usize] {
            std::fs::write(&path, vec![b'\n'; bytes]).unwrap();
            let inputs = Input::look_at(&[Source::from_arg(&path)], 0).unwrap();
            let hashes = Hashes::random().unwrap();
            let budget = Budget::new(8 << 20, 1).unwrap();
            let sample = Sample::of(&[&inputs[0]], &hashes, b'\n', &budget, 4, &()).unwrap();
            assert!(sample.keys.len() * 8 <= 2 << 20, "{}", sample.keys.len());
            let exact = bytes as f64;
            assert!((sample.lines as f64 - exact).abs() < exact / 100.0, "{}", sample.lines);
        }
    }

    /// Many packed files take no more time than one, and are not taken for those looked into.
    #[test]
    fn of_many_packed_files_a_few_are_looked_into() {
        let dir = tempfile::tempdir().unwrap();
        let (each, files) = (2 << 20, 48);
        let line = |number: usize| format!("{:015}\n", number * 7919 % 1_000_003);
        let paths = (0..files).map(|file| {
            let text: String = (0..each / 16).map(|at| line(file * each + at)).collect();
            let path = dir.path().join(format!("{file}.zst"));
            std::fs::write(&path, zstd::encode_all(text.as_bytes(), 1).unwrap()).unwrap();
            Source::from_arg(path)
        });
        let inputs = Input::look_at(&paths.collect::<Vec<_>>(), 0).unwrap();
        let refs: Vec<_> = inputs.iter().collect();
        let (hashes, budget) = (Hashes::random().unwrap(), Budget::new(64 << 20, 1).unwrap());
        let mut taker = Taker::new(&hashes, b'\n', &());
        let bytes = taker.all_packed(&refs, 1 << 20, budget.decoder).unwrap();
        let exact = (each * files) as f64;
        assert!((bytes as f64 - exact).abs() < exact / 100.0, "{bytes} of {exact}");
        // Of each that was looked into, a quarter of the lines at most.
        assert!(taker.bytes <= (each * FEW_PACKED) as u64 / 3, "{}", taker.bytes);
        let sample = Sample::of(&refs, &hashes, b'\n', &budget, 1, &()).unwrap();
        let lines = exact / 16.0;
        assert!((sample.lines as f64 - lines).abs() < lines / 100.0, "{}", sample.lines);
        let mut taker = Taker::new(&hashes, b'\n', &Cancel);
        assert!(taker.all_packed(&refs, 1, budget.decoder).unwrap_err().is_cancelled());
    }

    struct Cancel;

    impl Progress for Cancel {
        fn cancelled(&self) -> bool {
            true
        }
    }

    #[test]
    fn a_sample_hears_that_it_is_cancelled() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lines");
        for bytes in [1, 3 * SMALL as usize] {
            std::fs::write(&path, vec![b'\n'; bytes]).unwrap();
            let inputs = Input::look_at(&[Source::from_arg(&path)], 0).unwrap();
            let (hashes, budget) = (Hashes::random().unwrap(), Budget::new(8 << 20, 1).unwrap());
            let sample = Sample::of(&[&inputs[0]], &hashes, b'\n', &budget, 1, &Cancel);
            assert!(sample.unwrap_err().is_cancelled(), "{bytes}");
        }
    }

    /// The first places show long lines, and hide how many short ones lie between them.
    #[test]
    fn a_sample_is_not_fooled_into_taking_more() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("fool");
        let step = 3 << 20;
        let mut file = vec![b'\n'; 16 * step];
        for place in 0..16 {
            file[place * step..][..70_000].fill(b'x');
        }
        std::fs::write(&path, file).unwrap();
        let inputs = Input::look_at(&[Source::from_arg(&path)], 0).unwrap();
        let hashes = Hashes::random().unwrap();
        let budget = Budget::new(8 << 20, 1).unwrap();
        let sample = Sample::of(&[&inputs[0]], &hashes, b'\n', &budget, 1, &()).unwrap();
        assert!(sample.keys.len() as u64 <= LEAST_KEYS, "{}", sample.keys.len());
    }
}
