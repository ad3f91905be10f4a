//! Queries of a filter in a file elsewhere, of which only the parts that the keys need are read.
//!
//! A query goes through the stages of the filter: one, or both filters of a cascade. In each round all
//! queries name the bytes that they need next, which are read together. Most end after one round for
//! each stage; a key of a static filter that is bumped needs one more.
//!
//! Invariant: no byte of a source causes a panic, and no length in a header an allocation.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
use core::ops::Range;

use crate::cascade;
use crate::error::{Error, Result};

use crate::filter::layout::sealed::{Fields, LayoutImpl as _};
use crate::format::header::{FilterInfo, HEADER, Header, MAX_METADATA, PAGE};
use crate::format::kind::FilterType;
use crate::format::read::{metadata_of, too_short};
use crate::hash::{HashSpec, Secret};
use crate::kernel::ribbon::{Layer, remix};
use crate::layout::{BlockedLayout, ClassicLayout};
use crate::results::BatchResults;
use crate::static_filter::{RibbonLayout, ribbon_layout};
use crate::store::{CacheLine, Owned, StoreMut as _, lines_as_bytes_mut};

/// A file of which any part can be read, such as an object of a web server.
pub trait RangeSource {
    /// Returns the length of the file in bytes.
    fn length(&self) -> u64;

    /// Returns the number of bytes that cost less than another range: ranges with at most this number between them are
    /// read as one.
    fn gap(&self) -> u64 {
        256
    }

    /// Reads ranges of bytes, which are not empty, ascending, and inside the file; returns their bytes,
    /// one range after the other.
    ///
    /// # Errors
    /// If they cannot be read, or the file is no longer the same.
    fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<u8>>;
}

/// A filter in a file elsewhere: a Bloom filter, a static filter in the ribbon layout, or a cascade.
///
/// The checksum of the data is not checked, because they are never read as a whole.
#[derive(Debug)]
pub struct RemoteFilter {
    header: Header,
    metadata: String,
    stages: Vec<Stage>,
}

/// A filter that a query asks.
#[derive(Debug)]
enum Stage {
    Blocked { layout: BlockedLayout, bits_at: u64 },
    Classic { layout: ClassicLayout, bits_at: u64 },
    Ribbon { layers: Vec<Layer>, cuts_at: u64, rows_at: u64 },
}

/// A query that has no result yet.
#[derive(Debug)]
struct Query {
    /// The number of the hash.
    index: usize,
    hash: u64,
    stage: usize,
    /// The layer of a ribbon; its hash is `hash`.
    layer: usize,
}

/// What a query finds in a round.
enum Found {
    Present,
    Absent,
    /// The key is bumped to the next layer.
    Bumped,
}

/// The bytes that are read first: the header, nearly always all metadata, and the directory of layers.
const FIRST: u64 = 4 * PAGE;

impl RemoteFilter {
    /// Reads header and metadata, and what describes layers. Cost: one read, or two.
    ///
    /// # Errors
    /// If the file cannot be read, is no filter, is damaged in these parts, or has a type that is not
    /// queried in parts; if its secret is apart and not this one.
    pub fn open(source: &dyn RangeSource, secret: Option<&Secret>) -> Result<Self> {
        let length = source.length();
        let mut head = read_one(source, 0..length.min(FIRST))?;
        let Some(fixed) = head.first_chunk::<HEADER>().copied() else {
            return Err(too_short(&head, HEADER as u64));
        };
        let header = Header::from_bytes(&fixed)?;
        if header.data_length > u64::MAX / 2 || length != header.file_length() {
            return Err(Error::truncated(header.file_length(), length));
        }
        // At most a megabyte and a page: checked by `from_bytes`.
        let data_at = header.data_at();
        debug_assert!(data_at <= MAX_METADATA + 2 * PAGE);
        if data_at > head.len() as u64 {
            head.extend(read_one(source, head.len() as u64..data_at)?);
        }
        let metadata = metadata_of(&header, &fixed, &head[HEADER..data_at as usize])?;
        let header = header.unlocked(secret)?;
        let lines = |at: u64, lines: u64| -> Result<Owned> {
            let range = at..at + lines * CacheLine::BYTES as u64;
            if range.end > length {
                return Err(Error::truncated(range.end, length));
            }
            let mut store = Owned::zeroed(lines)?;
            let known = head.get(range.start as usize..range.end as usize);
            let read = if known.is_none() { read_one(source, range)? } else { Vec::new() };
            lines_as_bytes_mut(store.lines_mut()).copy_from_slice(known.unwrap_or(&read));
            Ok(store)
        };
        let stages = stages_of(&header, lines)?;
        Ok(Self { header, metadata, stages })
    }

    /// Returns the hash of keys.
    #[must_use]
    pub fn hash_spec(&self) -> HashSpec {
        self.header.hash
    }

    /// Returns the type of the filter.
    #[must_use]
    pub fn filter_type(&self) -> FilterType {
        self.header.kind
    }

    /// Returns the metadata.
    #[must_use]
    pub fn metadata(&self) -> &str {
        &self.metadata
    }

    /// Returns the number of keys in the filter.
    #[must_use]
    pub fn inserted(&self) -> u64 {
        let FilterInfo { inserted, .. } = self.header.info;
        inserted
    }

    /// Returns the maximum number of ranges that are read for a hash at a time.
    #[must_use]
    pub fn ranges_per_hash(&self) -> usize {
        let of = |stage: usize| self.stages[stage].reads(&self.query(0, 0, stage)).len();
        // Those of a static filter are two, or one for some hashes.
        (0..self.stages.len()).map(of).max().unwrap_or(0).max(2)
    }

    /// Looks up hashes made with [`hash_spec`](Self::hash_spec); `found` gets a result for each.
    ///
    /// Cost: one read for each filter of the file, and one more for each layer of bumped keys; 64 to 256
    /// bytes for each key, or as many pieces as a classic Bloom filter has probes.
    ///
    /// # Errors
    /// If the source fails.
    pub fn contains_mixed_hashes(
        &self,
        source: &dyn RangeSource,
        hashes: &[u64],
        found: &mut BatchResults,
    ) -> Result<()> {
        let found = found.reset(hashes.len());
        let query = |(index, &hash)| self.query(index, hash, 0);
        let mut queries: Vec<Query> = hashes.iter().enumerate().map(query).collect();
        while !queries.is_empty() {
            let reads: Vec<Vec<Range<u64>>> =
                queries.iter().map(|query| self.stages[query.stage].reads(query)).collect();
            let bytes = Bytes::read(source, reads.iter().flatten())?;
            let mut next = Vec::new();
            for (query, reads) in queries.into_iter().zip(&reads) {
                let pieces: Vec<&[u8]> = reads.iter().map(|range| bytes.get(range)).collect();
                match self.stages[query.stage].look(&query, reads, &pieces) {
                    Found::Absent => {}
                    Found::Present if query.stage + 1 < self.stages.len() => {
                        next.push(self.query(query.index, hashes[query.index], query.stage + 1));
                    }
                    Found::Present => found[query.index / 64] |= 1 << (query.index % 64),
                    Found::Bumped => {
                        let layer = query.layer + 1;
                        if let Stage::Ribbon { layers, .. } = &self.stages[query.stage]
                            && let Some(seed) = layers.get(layer).map(|layer| layer.seed)
                        {
                            next.push(Query { hash: remix(query.hash, seed), layer, ..query });
                        }
                    }
                }
            }
            queries = next;
        }
        Ok(())
    }

    fn query(&self, index: usize, hash: u64, stage: usize) -> Query {
        let hash = match &self.stages[stage] {
            Stage::Ribbon { layers, .. } => {
                layers.first().map_or(0, |layer| remix(hash, layer.seed))
            }
            _ => hash,
        };
        Query { index, hash, stage, layer: 0 }
    }
}

impl Stage {
    /// Returns the ranges of the file that a query needs in this round.
    fn reads(&self, query: &Query) -> Vec<Range<u64>> {
        let bits = |positions: Vec<u64>, at: u64| {
            positions.into_iter().map(|bit| at + bit / 8..at + bit / 8 + 1).collect()
        };
        match self {
            Self::Blocked { layout, bits_at } => bits(layout.positions(query.hash), *bits_at),
            Self::Classic { layout, bits_at } => bits(layout.positions(query.hash), *bits_at),
            Self::Ribbon { layers, cuts_at, rows_at } => {
                let Some(layer) = layers.get(query.layer) else { return Vec::new() };
                let (cut, rows) = layer.half_words_of(query.hash);
                let cut = cut.map(|cut| cuts_at + cut * HALF..cuts_at + (cut + 1) * HALF);
                let rows = rows_at + rows.start * HALF..rows_at + rows.end * HALF;
                cut.into_iter().chain([rows]).filter(|range| !range.is_empty()).collect()
            }
        }
    }

    /// Looks at the bytes of the ranges.
    fn look(&self, query: &Query, reads: &[Range<u64>], pieces: &[&[u8]]) -> Found {
        let all = |positions: Vec<u64>| {
            let set = |(bit, byte): (u64, &&[u8])| byte[0] >> (bit % 8) & 1 == 1;
            match positions.into_iter().zip(pieces).all(set) {
                true => Found::Present,
                false => Found::Absent,
            }
        };
        match self {
            Self::Blocked { layout, .. } => all(layout.positions(query.hash)),
            Self::Classic { layout, .. } => all(layout.positions(query.hash)),
            Self::Ribbon { layers, rows_at, .. } => {
                let Some(layer) = layers.get(query.layer) else { return Found::Absent };
                let (mut cut, mut rows) = (0, Vec::new());
                for (range, piece) in reads.iter().zip(pieces) {
                    // Little-endian, as in memory: the layer converts them.
                    let (halves, _) = piece.as_chunks::<4>();
                    let mut halves = halves.iter().map(|half| u32::from_le_bytes(*half).to_le());
                    if range.start < *rows_at {
                        cut = halves.next_back().unwrap_or(0);
                    } else {
                        rows = halves.collect();
                    }
                }
                match layer.result_of(query.hash, cut, &rows) {
                    None => Found::Bumped,
                    Some(true) => Found::Present,
                    Some(false) => Found::Absent,
                }
            }
        }
    }
}

/// Bytes of a half word.
const HALF: u64 = 4;

/// The bytes of a round.
struct Bytes {
    /// The ranges that were read, and where their bytes begin.
    ranges: Vec<(Range<u64>, usize)>,
    bytes: Vec<u8>,
}

impl Bytes {
    /// Reads ranges in any order, those that are near each other as one.
    fn read<'a>(
        source: &dyn RangeSource,
        reads: impl Iterator<Item = &'a Range<u64>>,
    ) -> Result<Self> {
        let mut sorted: Vec<Range<u64>> = reads.cloned().collect();
        sorted.sort_unstable_by_key(|range| (range.start, range.end));
        let (gap, mut joined): (_, Vec<Range<u64>>) = (source.gap(), Vec::new());
        for range in sorted {
            match joined.last_mut().filter(|last| range.start <= last.end.saturating_add(gap)) {
                Some(last) => last.end = last.end.max(range.end),
                None => joined.push(range),
            }
        }
        let bytes = if joined.is_empty() { Vec::new() } else { source.read(&joined)? };
        let mut at = 0;
        let place = |range: Range<u64>| {
            let begin = at;
            at += (range.end - range.start) as usize;
            (range, begin)
        };
        let ranges: Vec<_> = joined.into_iter().map(place).collect();
        check_read(bytes.len(), at)?;
        Ok(Self { ranges, bytes })
    }

    /// Returns the bytes of a range that was read.
    fn get(&self, range: &Range<u64>) -> &[u8] {
        let after = self.ranges.partition_point(|(read, _)| read.start <= range.start);
        let (read, begin) = &self.ranges[after - 1];
        let from = begin + (range.start - read.start) as usize;
        &self.bytes[from..from + (range.end - range.start) as usize]
    }
}

fn read_one(source: &dyn RangeSource, range: Range<u64>) -> Result<Vec<u8>> {
    let expected = (range.end - range.start) as usize;
    if expected == 0 {
        return Ok(Vec::new());
    }
    let bytes = source.read(&[range])?;
    check_read(bytes.len(), expected)?;
    Ok(bytes)
}

fn check_read(found: usize, expected: usize) -> Result<()> {
    if found != expected {
        return Err(Error::truncated(expected as u64, found as u64));
    }
    Ok(())
}

/// Returns the filters of a file. `lines` returns lines at a place of the file.
fn stages_of(header: &Header, lines: impl Fn(u64, u64) -> Result<Owned>) -> Result<Vec<Stage>> {
    let Header { probes, lanes, extent, .. } = *header;
    let (fields, bits_at) = (Fields { probes, lanes, extent }, header.data_at());
    let ribbon = |header: &Header, at: u64| -> Result<Stage> {
        let layout: RibbonLayout = ribbon_layout(header, |layers| lines(at, layers))?;
        let cuts_at = at + layout.layers().len() as u64 * CacheLine::BYTES as u64;
        let rows_at = cuts_at + layout.cut_lines() * CacheLine::BYTES as u64;
        Ok(Stage::Ribbon { layers: layout.layers().to_vec(), cuts_at, rows_at })
    };
    match header.kind {
        FilterType::Bloom => {
            header.check_parameters(0)?;
            let layout = BlockedLayout::from_fields(fields)?;
            header.check_lines(layout.lines())?;
            Ok(vec![Stage::Blocked { layout, bits_at }])
        }
        FilterType::Classic => {
            header.check_parameters(0)?;
            let layout = ClassicLayout::from_fields(fields)?;
            header.check_lines(layout.lines())?;
            Ok(vec![Stage::Classic { layout, bits_at }])
        }
        FilterType::Static => {
            header.check_no_probes()?;
            Ok(vec![ribbon(header, bits_at)?])
        }
        FilterType::Cascade => {
            let (filters, first_at) = cascade::filters_of(header, || lines(bits_at, 1))?;
            let [first, second] = &filters;
            let second_at = first_at + first.data_length;
            Ok(vec![ribbon(first, first_at)?, ribbon(second, second_at)?])
        }
        kind => Err(Error::unsupported(
            kind.name(),
            "is not queried in parts",
            "read the whole file, or use a Bloom filter, a static filter or a cascade",
        )),
    }
}
