//! A filter of another program: the bytes of its file, queried and changed in place.

use std::fmt;
use std::io::{Read, Write};
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use petal::BatchResults;

use crate::error::{Error, Result};
use crate::format::Format;
use crate::formats;
use crate::formats::detect::detect;
use crate::formats::format_impl::{FormatImpl, HashFn, Plan};
use crate::gzip::read_decompressed;
use crate::key_type::KeyType;
use crate::stats::FilterStats;

/// A filter in another program's format, over the bytes of a whole file: in memory (`Vec<u8>`),
/// borrowed, or mapped ([`petal::Mapped`]). Nothing is converted; the bytes are those that the
/// program itself would write.
///
/// ```
/// use petal_interop::{ForeignFilter, Format};
///
/// let mut filter = ForeignFilter::with_fpr(Format::Guava, 1000, 0.01)?;
/// filter.insert(b"https://example.com/")?;
/// let file = filter.as_bytes().to_vec(); // Guava's BloomFilter.readFrom opens it
///
/// let again = ForeignFilter::from_bytes(&file, None)?;
/// assert_eq!(again.format(), Format::Guava);
/// assert!(again.contains(b"https://example.com/")?);
/// # Ok::<_, petal_interop::Error>(())
/// ```
pub struct ForeignFilter<B = Vec<u8>> {
    format: Format,
    key_type: KeyType,
    layout: Box<dyn FormatImpl>,
    file: B,
    hash_fn: HashFn,
    /// Maximum size of the file in bytes.
    limit: u64,
}

/// Returns the default maximum size: four times the current size, at least 1 MiB.
fn default_limit(file: &[u8]) -> u64 {
    (file.len() as u64).saturating_mul(4).max(1 << 20)
}

impl<B> ForeignFilter<B> {
    fn new(format: Format, layout: Box<dyn FormatImpl>, file: B, limit: u64) -> Self {
        let hash_fn = layout.hash_fn();
        Self { format, key_type: KeyType::default(), layout, file, hash_fn, limit }
    }
}

impl<B: AsRef<[u8]>> ForeignFilter<B> {
    /// Opens a filter over the bytes of a file. `None` detects the format. Only the header and the
    /// length are checked.
    ///
    /// A filter that grows, such as RedisBloom's, may grow to four times its size, at least 1 MiB;
    /// see [`with_limit`](ForeignFilter::with_limit).
    ///
    /// # Errors
    /// If the bytes are not a filter of that format, or, with `None`, of no format or of several.
    pub fn from_bytes(file: B, format: Option<Format>) -> Result<Self> {
        let (format, layout) = match format {
            Some(format) => (format, formats::open(format, file.as_ref())?),
            None => detect(file.as_ref())?,
        };
        let limit = default_limit(file.as_ref());
        Ok(Self::new(format, layout, file, limit))
    }

    /// Sets the key type; the default is text.
    #[must_use]
    pub fn with_key_type(self, key_type: KeyType) -> Self {
        Self { key_type, ..self }
    }

    /// Checks that programs write keys of this type into files of this format.
    ///
    /// # Errors
    /// If they do not, because every result would be wrong. The error has the key types of the
    /// format.
    pub fn check_key_type(&self, key_type: KeyType) -> Result<()> {
        let key_types = self.header().key_types;
        if key_types.contains(&key_type) {
            return Ok(());
        }
        let names: Vec<_> = key_types.iter().map(|key_type| key_type.name()).collect();
        let wider = key_type.wider(key_types).map(KeyType::name);
        Err(Error::key_type(self.format, names.join(" or "), key_type.name(), wider))
    }

    /// Returns the format.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// Returns the key type.
    #[must_use]
    pub fn key_type(&self) -> KeyType {
        self.key_type
    }

    /// Returns true if a key may be in the filter. *False* is certain if the key type is right.
    ///
    /// # Errors
    /// If the key cannot be encoded as the key type.
    pub fn contains(&self, key: &[u8]) -> Result<bool> {
        let (mut words, mut found) = (Vec::new(), BatchResults::new());
        self.hasher().hash(key, &mut words)?;
        self.contains_words(&words, &mut found);
        Ok(found.get(0))
    }

    /// Returns a hasher for the filter's keys, for use on another thread.
    #[must_use]
    pub fn hasher(&self) -> Hasher {
        let (key_type, hash_fn) = (self.key_type, Arc::clone(&self.hash_fn));
        Hasher { key_type, hash_fn, space: Vec::new(), empty: true }
    }

    /// Returns a hasher for keys to insert. It refuses an empty key if the format's program does.
    #[must_use]
    pub fn insert_hasher(&self) -> Hasher {
        let empty = self.layout.takes_empty_keys() || self.key_type.fills_empty_keys();
        Hasher { empty, ..self.hasher() }
    }

    /// Returns the number of hash words per key.
    #[must_use]
    pub fn words(&self) -> usize {
        self.layout.words()
    }

    /// Looks up keys by the words from [`Hasher::hash`]; `found` gets one result per key.
    pub fn contains_words(&self, words: &[u64], found: &mut BatchResults) {
        self.layout.contains(self.file.as_ref(), words, found);
    }

    /// Returns the values of the header, without statistics of the bits.
    #[must_use]
    pub fn header(&self) -> FilterStats {
        self.layout.header_stats(self.file.as_ref())
    }

    /// Returns the values of the header and statistics of the bits. Cost: one pass over the bits.
    #[must_use]
    pub fn stats(&self) -> FilterStats {
        self.layout.stats(self.file.as_ref())
    }

    /// Returns the false-positive rate with `keys` distinct keys, by calculation, and the part of
    /// it due to the format's double hashing; `None` if the format has none, and the rate is the
    /// target.
    #[must_use]
    pub fn expected_fpr(&self, keys: u64) -> Option<(f64, f64)> {
        self.layout.expected_fpr(keys).map(|rate| (rate.all, rate.floor))
    }

    /// Checks everything that the format allows to check. Most formats have no checksum: flipped
    /// bits cannot be detected.
    ///
    /// # Errors
    /// If anything contradicts the header.
    pub fn verify(&self) -> Result<()> {
        self.layout.check(self.file.as_ref())
    }

    /// Returns the bytes of the file.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.file.as_ref()
    }

    /// Returns the bytes it was opened from.
    #[must_use]
    pub fn into_bytes(self) -> B {
        self.file
    }

    /// Returns the chunks that restore a RedisBloom filter: `BF.LOADCHUNK key number bytes` for
    /// each, in order, to a key that does not exist.
    ///
    /// # Errors
    /// If the filter has another format.
    pub fn redisbloom_chunks(&self) -> Result<impl Iterator<Item = (u64, &[u8])>> {
        if self.format != Format::RedisBloom {
            return Err(Error::unsupported(self.format, "has no chunks; only redisbloom's have"));
        }
        formats::redisbloom_chunks(self.as_bytes())
    }

    /// Writes the file, compressed with gzip if `gzip` is true, as DCSO's `bloom --gzip` does.
    ///
    /// # Errors
    /// If writing fails.
    pub fn write_to(&self, mut out: impl Write, gzip: bool) -> Result<()> {
        if !gzip {
            return Ok(out.write_all(self.as_bytes())?);
        }
        let mut packer = GzEncoder::new(out, Compression::default());
        packer.write_all(self.as_bytes())?;
        packer.finish()?.flush()?;
        Ok(())
    }
}

impl ForeignFilter {
    /// Makes an empty filter of a format, sized as its program would size it.
    ///
    /// # Errors
    /// If capacity or rate is out of range, the filter would exceed the format's limits, or memory
    /// allocation fails.
    pub fn with_fpr(format: Format, keys: u64, rate: f64) -> Result<Self> {
        Self::with_fpr_within(format, keys, rate, u64::MAX)
    }

    /// Makes an empty filter like [`with_fpr`](Self::with_fpr), of at most `limit` bytes.
    ///
    /// # Errors
    /// As [`with_fpr`](Self::with_fpr), and if the filter is larger than the limit.
    pub fn with_fpr_within(format: Format, keys: u64, rate: f64, limit: u64) -> Result<Self> {
        let (layout, file) = formats::plan(format, &Plan::new(keys, rate, limit)?)?;
        Ok(Self::new(format, layout, file, limit))
    }

    /// Reads a filter of at most `limit` bytes from a stream, and decompresses it if it is
    /// compressed with gzip. `None` detects the format.
    ///
    /// Memory grows with the bytes that arrive, up to the limit, whatever length a header claims. A
    /// compressed file is decompressed only as far as its header needs.
    ///
    /// # Errors
    /// If reading fails, the filter is larger, or it is not a filter of that format.
    pub fn read_from(stream: impl Read, format: Option<Format>, limit: u64) -> Result<Self> {
        Ok(Self::from_bytes(read_decompressed(stream, format, limit)?, format)?.with_limit(limit))
    }

    /// Sets the maximum size in bytes to which the filter may grow.
    #[must_use]
    pub fn with_limit(self, limit: u64) -> Self {
        Self { limit, ..self }
    }

    /// Inserts a key. Returns true if it certainly was not present.
    ///
    /// # Errors
    /// If the key cannot be encoded as the key type, or the filter is full.
    pub fn insert(&mut self, key: &[u8]) -> Result<bool> {
        let (mut words, mut new) = (Vec::new(), BatchResults::new());
        self.insert_hasher().hash(key, &mut words)?;
        self.insert_words(&words, &mut new)?;
        Ok(new.get(0))
    }

    /// Inserts keys by the words from [`insert_hasher`](Self::insert_hasher); `new` gets one result
    /// per key.
    ///
    /// # Errors
    /// If the filter is full.
    pub fn insert_words(&mut self, words: &[u64], new: &mut BatchResults) -> Result<()> {
        if !words.is_empty() {
            self.layout.materialize(&mut self.file, self.limit)?;
        }
        self.layout.insert(&mut self.file, words, self.limit, new)
    }

    /// Adds all keys of another filter of the same format, layout and parameters.
    ///
    /// # Errors
    /// If the filters differ, or the format has no union; nothing has changed then.
    pub fn union<B: AsRef<[u8]>>(&mut self, other: &ForeignFilter<B>) -> Result<()> {
        if self.format != other.format {
            return Err(Error::different("format", self.format, other.format));
        }
        let (key_type, other_type) = (self.key_type(), other.key_type());
        if key_type != other_type {
            return Err(Error::different("form of keys", key_type.name(), other_type.name()));
        }
        let (Some((ours, _)), Some((theirs, bits))) =
            (self.layout.bit_array(), other.layout.bit_array())
        else {
            return Err(Error::unsupported(self.format, "has no union"));
        };
        if ours != theirs {
            return Err(Error::different("shape", ours, theirs));
        }
        // A filter in short key_type has no bits, and stays short if the other one has none either.
        if self.file.len() < other.file.as_ref().len() && bits.count_ones(other.file.as_ref()) > 0 {
            self.layout.materialize(&mut self.file, self.limit)?;
        }
        self.layout.union_bits(&mut self.file, &*other.layout, other.file.as_ref());
        Ok(())
    }
}

impl<B: AsRef<[u8]>> fmt::Debug for ForeignFilter<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ForeignFilter({:?}, {} bytes)", self.layout, self.file.as_ref().len())
    }
}

/// Hashes the keys of a filter to words.
#[derive(Clone)]
pub struct Hasher {
    key_type: KeyType,
    hash_fn: HashFn,
    space: Vec<u8>,
    /// True if empty keys are allowed.
    empty: bool,
}

impl Hasher {
    /// Returns a hasher that computes `xxhash64` of Spark SQL, one word: the hash that its
    /// `might_contain` and `bloom_filter_agg` use for keys that are not 64-bit integers.
    #[must_use]
    pub fn of_spark_sql() -> Self {
        Self {
            key_type: KeyType::Text,
            hash_fn: formats::sql_hash_fn(),
            space: Vec::new(),
            empty: true,
        }
    }

    /// Appends the words of a key.
    ///
    /// # Errors
    /// If the key cannot be encoded as the key type; nothing is appended then.
    #[inline]
    pub fn hash(&mut self, key: &[u8], words: &mut Vec<u64>) -> Result<()> {
        if key.is_empty() && !self.empty {
            return Err(Error::key("a key that is not empty, for the format holds none", key));
        }
        let hash_fn = &self.hash_fn;
        self.key_type.with_bytes(key, &mut self.space, |bytes| hash_fn(bytes, words))
    }
}

impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hasher({:?})", self.key_type)
    }
}
