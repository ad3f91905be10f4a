//! The sets: how each is built, queried, saved and opened.
//!
//! Each is built as its documentation advises for a list that need not be in memory, on one thread. xorf and clubcard
//! leave the hash of a key to the caller, and get the fastest one with enough bits, XXH3.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use clubcard::builder::{ApproximateRibbon, ClubcardBuilder, ExactRibbon};
use clubcard::{AsQuery, Clubcard, Equation, Filterable, Queryable};
use petal::embed::{HashRanges, HashStore};
use petal::{BatchResults, FilterCascade, HashSpec, Mapped, Membership as _, StaticFilter};
use poppy_filters::{OptLevel, Params, v1, v2};
use xorf::{BinaryFuse8, Filter as _};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128_with_seed};

use super::mapped::mapped;
use super::{Feed, Key, Kind, RATE};

/// What answers a query of an opened file.
pub type Opened = Box<dyn Fn(&Key) -> bool>;

/// A set that is built from all its keys.
pub trait KnownSet: Sized {
    /// Builds the set.
    ///
    /// # Errors
    /// If that fails.
    fn build(feed: &mut Feed) -> Result<Self, String>;

    /// Returns true if a key may be in the set.
    fn contains(&self, key: &Key) -> bool;

    /// Looks up many keys. False if the set has no such call.
    fn contains_batch(&self, _keys: &[Key], _found: &mut BatchResults) -> bool {
        false
    }

    /// Returns the size in memory, without its keys.
    fn bytes(&self) -> u64;

    /// Saves the set. False if the library has no file format.
    ///
    /// # Errors
    /// If that fails.
    fn save(&self, _file: &Path) -> Result<bool, String> {
        Ok(false)
    }

    /// Opens a saved file as fast as the library can; `None` if it has no file format.
    ///
    /// # Errors
    /// If that fails.
    fn open(_file: &Path) -> Result<Option<Opened>, String> {
        Ok(None)
    }

    /// Whether [`open`](Self::open) maps the file.
    const MAPS: bool = false;
    /// Whether known non-members are part of the set.
    const TWO_LISTS: bool = false;
    /// Whether the rate can be chosen. That of clubcard follows from the numbers of keys.
    const HAS_RATE: bool = true;
}

fn text(problem: impl std::fmt::Display) -> String {
    problem.to_string()
}

/// petal's static filter; with `FUSE` its binary fuse layout.
pub struct Static<const FUSE: bool>(StaticFilter);

impl<const FUSE: bool> KnownSet for Static<FUSE> {
    const MAPS: bool = true;

    fn build(feed: &mut Feed) -> Result<Self, String> {
        let (spec, mut hashes) = (HashSpec::default(), Vec::new());
        hashes.try_reserve_exact(feed.members as usize).map_err(text)?;
        feed.all(Kind::Member, |keys| {
            spec.hash_all(keys.iter(), &mut hashes);
            Ok(())
        })?;
        let builder = StaticFilter::builder().fpr(RATE).fuse(FUSE);
        builder.from_mixed_hashes(hashes).map(Self).map_err(text)
    }

    #[inline]
    fn contains(&self, key: &Key) -> bool {
        self.0.contains(key)
    }

    fn contains_batch(&self, keys: &[Key], found: &mut BatchResults) -> bool {
        self.0.contains_batch(keys, found);
        true
    }

    fn bytes(&self) -> u64 {
        self.0.memory_usage()
    }

    fn save(&self, file: &Path) -> Result<bool, String> {
        self.0.save(file).map(|()| true).map_err(text)
    }

    fn open(file: &Path) -> Result<Option<Opened>, String> {
        let filter = StaticFilter::<Mapped>::open_mapped(mapped(file)?).map_err(text)?;
        Ok(Some(Box::new(move |key| filter.contains(key))))
    }
}

/// petal's cascade.
pub struct Cascade(FilterCascade);

/// All hashes are in memory.
struct NoStore;

impl HashStore for NoStore {
    fn ranges(&self) -> petal::Result<Box<dyn HashRanges + '_>> {
        Err(std::io::Error::other("the hashes do not fit in memory").into())
    }
}

impl KnownSet for Cascade {
    const MAPS: bool = true;
    const TWO_LISTS: bool = true;

    fn build(feed: &mut Feed) -> Result<Self, String> {
        /// Enough for every number of keys of this benchmark.
        const MEMORY: u64 = 1 << 40;
        let (spec, mut hashes) = (HashSpec::default(), Vec::new());
        let builder = FilterCascade::builder().fpr(RATE);
        let mut members = builder.collector(&NoStore, MEMORY).map_err(text)?;
        feed.all(Kind::Member, |keys| {
            hashes.clear();
            spec.hash_all(keys.iter(), &mut hashes);
            members.extend(&hashes).map_err(text)
        })?;
        let mut others = members.others(feed.others).map_err(text)?;
        feed.all(Kind::Other, |keys| {
            hashes.clear();
            spec.hash_all(keys.iter(), &mut hashes);
            others.extend(&hashes).map_err(text)
        })?;
        others.finish().map(Self).map_err(text)
    }

    #[inline]
    fn contains(&self, key: &Key) -> bool {
        self.0.contains(key)
    }

    fn contains_batch(&self, keys: &[Key], found: &mut BatchResults) -> bool {
        self.0.contains_batch(keys, found);
        true
    }

    fn bytes(&self) -> u64 {
        self.0.memory_usage()
    }

    fn save(&self, file: &Path) -> Result<bool, String> {
        self.0.save(file).map(|()| true).map_err(text)
    }

    fn open(file: &Path) -> Result<Option<Opened>, String> {
        let filter = FilterCascade::<Mapped>::open_mapped(mapped(file)?).map_err(text)?;
        Ok(Some(Box::new(move |key| filter.contains(key))))
    }
}

/// poppy, version 2, as it is by default or optimised for speed.
pub struct Poppy<const SPEED: bool>(v2::BloomFilter);

impl<const SPEED: bool> KnownSet for Poppy<SPEED> {
    fn build(feed: &mut Feed) -> Result<Self, String> {
        let level = if SPEED { OptLevel::Speed } else { OptLevel::None };
        let params = Params::new(feed.members as usize, RATE).opt(level);
        let mut filter = params.try_into_v2().map_err(text)?;
        feed.all(Kind::Member, |keys| {
            keys.iter().try_for_each(|key| filter.insert_bytes(key).map(|_| ())).map_err(text)
        })?;
        Ok(Self(filter))
    }

    #[inline]
    fn contains(&self, key: &Key) -> bool {
        self.0.contains_bytes(key)
    }

    fn bytes(&self) -> u64 {
        self.0.size_in_bytes() as u64
    }

    fn save(&self, file: &Path) -> Result<bool, String> {
        self.0.write(&mut File::create(file).map_err(text)?).map(|()| true).map_err(text)
    }

    fn open(file: &Path) -> Result<Option<Opened>, String> {
        let file = BufReader::new(File::open(file).map_err(text)?);
        let filter = v2::BloomFilter::from_reader(file).map_err(text)?;
        Ok(Some(Box::new(move |key| filter.contains_bytes(key))))
    }
}

/// poppy, version 1: the filter of DCSO.
pub struct Dcso(v1::BloomFilter);

impl KnownSet for Dcso {
    fn build(feed: &mut Feed) -> Result<Self, String> {
        let mut filter = v1::BloomFilter::with_capacity(feed.members, RATE).map_err(text)?;
        feed.all(Kind::Member, |keys| {
            keys.iter().try_for_each(|key| filter.insert_bytes(key).map(|_| ())).map_err(text)
        })?;
        Ok(Self(filter))
    }

    #[inline]
    fn contains(&self, key: &Key) -> bool {
        self.0.contains_bytes(key)
    }

    fn bytes(&self) -> u64 {
        // `size_in_bytes` has the number of bits, times 8.
        self.0.n_bits().div_ceil(64) * 8
    }

    fn save(&self, file: &Path) -> Result<bool, String> {
        self.0.write(&mut File::create(file).map_err(text)?).map(|()| true).map_err(text)
    }

    fn open(file: &Path) -> Result<Option<Opened>, String> {
        let file = BufReader::new(File::open(file).map_err(text)?);
        let filter = v1::BloomFilter::from_reader(file).map_err(text)?;
        Ok(Some(Box::new(move |key| filter.contains_bytes(key))))
    }
}

/// xorf's binary fuse filter of 8 bits, with a rate of 1/256.
pub struct Fuse8(BinaryFuse8);

impl KnownSet for Fuse8 {
    fn build(feed: &mut Feed) -> Result<Self, String> {
        let mut hashes = Vec::with_capacity(feed.members as usize);
        feed.all(Kind::Member, |keys| {
            hashes.extend(keys.iter().map(|key| xxh3_64(key)));
            Ok(())
        })?;
        BinaryFuse8::try_from(&hashes).map(Self).map_err(text)
    }

    #[inline]
    fn contains(&self, key: &Key) -> bool {
        self.0.contains(&xxh3_64(key))
    }

    fn bytes(&self) -> u64 {
        self.0.fingerprints.len() as u64
    }
}

/// Words of an equation of clubcard; Mozilla's CRLite has as many.
const WORDS: usize = 4;

/// A key of clubcard: 256 bits of hash.
struct Hashed {
    words: [u64; WORDS],
    bytes: [u8; 8 * WORDS],
    included: bool,
}

impl Hashed {
    #[inline]
    fn new(key: &Key, included: bool) -> Self {
        let mut bytes = [0; 8 * WORDS];
        let mut words = [0; WORDS];
        for (seed, (bytes, words)) in
            bytes.chunks_exact_mut(16).zip(words.chunks_exact_mut(2)).enumerate()
        {
            let hash = xxh3_128_with_seed(key, seed as u64);
            bytes.copy_from_slice(&hash.to_le_bytes());
            words.copy_from_slice(&[hash as u64, (hash >> 64) as u64]);
        }
        Self { words, bytes, included }
    }
}

impl AsQuery<WORDS> for Hashed {
    #[inline]
    fn as_query(&self, rows: usize) -> Equation<WORDS> {
        let mut columns = self.words;
        let row = columns[WORDS - 1] as usize % rows.max(1);
        columns[0] |= 1;
        Equation::inhomogeneous(row, columns, u8::from(!self.included))
    }

    fn block(&self) -> &[u8] {
        &[]
    }

    fn discriminant(&self) -> &[u8] {
        &self.bytes
    }
}

impl Filterable<WORDS> for Hashed {
    fn included(&self) -> bool {
        self.included
    }
}

impl Queryable<WORDS> for Hashed {
    type UniverseMetadata = ();
    type PartitionMetadata = ();

    fn in_universe(&self, (): &()) -> bool {
        true
    }
}

/// Clubcard, the successor of filter cascades in CRLite, as one block.
pub struct Club(Clubcard<WORDS, (), ()>);

impl KnownSet for Club {
    const TWO_LISTS: bool = true;
    const HAS_RATE: bool = false;

    fn build(feed: &mut Feed) -> Result<Self, String> {
        let mut builder = ClubcardBuilder::new();
        let mut members = builder.new_approx_builder(&[]);
        feed.all(Kind::Member, |keys| {
            keys.iter().for_each(|key| members.insert(Hashed::new(key, true)));
            Ok(())
        })?;
        members.set_universe_size((feed.members + feed.others) as usize);
        builder.collect_approx_ribbons(vec![ApproximateRibbon::from(members)]);
        let mut all = builder.new_exact_builder(&[]);
        for (kind, included) in [(Kind::Member, true), (Kind::Other, false)] {
            feed.all(kind, |keys| {
                keys.iter().for_each(|key| all.insert(Hashed::new(key, included)));
                Ok(())
            })?;
        }
        let exact = ExactRibbon::from(all);
        builder.collect_exact_ribbons(vec![exact]);
        Ok(Self(builder.build::<Hashed>((), ())))
    }

    #[inline]
    fn contains(&self, key: &Key) -> bool {
        self.0.unchecked_contains(&Hashed::new(key, false))
    }

    fn bytes(&self) -> u64 {
        let words: usize = self.0.approx_filter.iter().map(Vec::len).sum();
        let index = self.0.index().values();
        let exceptions: usize = index.map(|entry| entry.exceptions.len() * 8 * WORDS).sum();
        (8 * (words + self.0.exact_filter.len()) + exceptions) as u64
    }
}
