//! A filter of another program: the bytes of its file, asked and changed as that program would.

use std::fmt;
use std::io::{Read, Write};
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use petal::Answers;

use crate::detect::detect;
use crate::error::{Error, Result};
use crate::facts::Facts;
use crate::format::Format;
use crate::formats;
use crate::keys::KeyForm;
use crate::scheme::{Digest, Plan, Scheme};
use crate::unpack::read_unpacked;

/// A filter in another program's format, over the bytes of a whole file: in memory (`Vec<u8>`),
/// borrowed, or mapped ([`petal::Mapped`]). Nothing is converted; what is written is what that
/// program would have written.
///
/// ```
/// use petal_interop::{Foreign, Format};
///
/// let mut filter = Foreign::with_rate(Format::Guava, 1000, 0.01)?;
/// filter.insert(b"https://example.com/")?;
/// let file = filter.as_bytes().to_vec(); // Guava's BloomFilter.readFrom opens it
///
/// let again = Foreign::from_bytes(&file, None)?;
/// assert_eq!(again.format(), Format::Guava);
/// assert!(again.contains(b"https://example.com/")?);
/// # Ok::<_, petal_interop::Error>(())
/// ```
pub struct Foreign<B = Vec<u8>> {
    format: Format,
    form: KeyForm,
    scheme: Box<dyn Scheme>,
    file: B,
    digest: Digest,
    /// Bytes that it may grow to.
    limit: u64,
}

/// How large a file may grow if nobody said: four times what is there, 1 MiB at least.
fn untold_limit(file: &[u8]) -> u64 {
    (file.len() as u64).saturating_mul(4).max(1 << 20)
}

impl<B> Foreign<B> {
    fn new(format: Format, scheme: Box<dyn Scheme>, file: B, limit: u64) -> Self {
        let digest = scheme.digest();
        Self { format, form: KeyForm::default(), scheme, file, digest, limit }
    }
}

impl<B: AsRef<[u8]>> Foreign<B> {
    /// A filter over the bytes of a file; `None` recognises the format. Only the header and the
    /// length are examined.
    ///
    /// A filter that grows, as RedisBloom's does, may grow to four times its bytes, or 1 MiB;
    /// [`read_from`](Foreign::read_from) is told how large it may become.
    ///
    /// # Errors
    /// If the bytes are no filter of that format, or of no format or several.
    pub fn from_bytes(file: B, format: Option<Format>) -> Result<Self> {
        let (format, scheme) = match format {
            Some(format) => (format, formats::open(format, file.as_ref())?),
            None => detect(file.as_ref())?,
        };
        let limit = untold_limit(file.as_ref());
        Ok(Self::new(format, scheme, file, limit))
    }

    /// The same filter, its keys in another form than text.
    #[must_use]
    pub fn with_keys(self, form: KeyForm) -> Self {
        Self { form, ..self }
    }

    /// Checks that programs write keys of this form into files of this format.
    ///
    /// # Errors
    /// If they do not: every answer would be wrong. The error names the forms that they write.
    pub fn check_key_form(&self, form: KeyForm) -> Result<()> {
        let forms = self.told().forms;
        if forms.contains(&form) {
            return Ok(());
        }
        let names: Vec<_> = forms.iter().map(|form| form.name()).collect();
        let wider = form.wider(forms).map(KeyForm::name);
        Err(Error::key_form(self.format, names.join(" or "), form.name(), wider))
    }

    /// Its format.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// The form of its keys, as the caller said.
    #[must_use]
    pub fn key_form(&self) -> KeyForm {
        self.form
    }

    /// Whether a key may be in it; *no* is certain, if the form of keys is the right one.
    ///
    /// # Errors
    /// If the key does not have that form.
    pub fn contains(&self, key: &[u8]) -> Result<bool> {
        let (mut words, mut found) = (Vec::new(), Answers::new());
        self.hasher().hash(key, &mut words)?;
        self.contains_words(&words, &mut found);
        Ok(found.get(0))
    }

    /// How its keys become words; for threads of their own.
    #[must_use]
    pub fn hasher(&self) -> Hasher {
        let (form, digest) = (self.form, Arc::clone(&self.digest));
        Hasher { form, digest, space: Vec::new(), empty: true }
    }

    /// The same for keys that are to be put in: refuses an empty key where the program that the
    /// format belongs to does.
    #[must_use]
    pub fn member_hasher(&self) -> Hasher {
        let empty = self.scheme.takes_empty_keys() || self.form.fills_empty_keys();
        Hasher { empty, ..self.hasher() }
    }

    /// Words that a key comes to.
    #[must_use]
    pub fn words(&self) -> usize {
        self.scheme.words()
    }

    /// Whether keys may be in it, by what [`Hasher::hash`] gave for them; `found` gets an answer
    /// for each.
    pub fn contains_words(&self, words: &[u64], found: &mut Answers) {
        self.scheme.contains(self.file.as_ref(), words, found);
    }

    /// What its header says; nothing of what only its bits tell.
    #[must_use]
    pub fn told(&self) -> Facts {
        self.scheme.told(self.file.as_ref())
    }

    /// What its header says and its bits tell. Cost: one pass over the bits.
    #[must_use]
    pub fn facts(&self) -> Facts {
        self.scheme.facts(self.file.as_ref())
    }

    /// The false-positive rate with so many distinct keys, by calculation, and what of it comes from
    /// the format's double hashing; `None` if the format has none, where the rate is that of the
    /// plan.
    #[must_use]
    pub fn expected_rate(&self, keys: u64) -> Option<(f64, f64)> {
        self.scheme.expected_rate(keys).map(|rate| (rate.all, rate.floor))
    }

    /// Examines all that the format lets one examine. Most have no checksum: bits that were
    /// flipped cannot be found.
    ///
    /// # Errors
    /// If anything contradicts the header.
    pub fn verify(&self) -> Result<()> {
        self.scheme.check(self.file.as_ref())
    }

    /// The file.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.file.as_ref()
    }

    /// The bytes it was made of.
    #[must_use]
    pub fn into_bytes(self) -> B {
        self.file
    }

    /// A RedisBloom filter in the chunks that restore it: `BF.LOADCHUNK key number bytes` for
    /// each, in order, to a key that does not exist.
    ///
    /// # Errors
    /// If it is of another format.
    pub fn redisbloom_chunks(&self) -> Result<impl Iterator<Item = (u64, &[u8])>> {
        if self.format != Format::RedisBloom {
            return Err(Error::unsupported(self.format, "has no chunks; only redisbloom's have"));
        }
        formats::redisbloom_chunks(self.as_bytes())
    }

    /// Writes the file; packed with gzip if asked, as DCSO's `bloom --gzip` does.
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

impl Foreign {
    /// An empty filter of a format, sized as the program it belongs to would for so many keys at
    /// this false-positive rate.
    ///
    /// # Errors
    /// If keys or rate make no sense, the format has no room for them, or memory is refused.
    pub fn with_rate(format: Format, keys: u64, rate: f64) -> Result<Self> {
        Self::with_limit(format, keys, rate, u64::MAX)
    }

    /// The same, refused if it takes more than `limit` bytes.
    ///
    /// # Errors
    /// As [`with_rate`](Self::with_rate); also if it is larger than that.
    pub fn with_limit(format: Format, keys: u64, rate: f64, limit: u64) -> Result<Self> {
        let (scheme, file) = formats::plan(format, &Plan::new(keys, rate, limit)?)?;
        Ok(Self::new(format, scheme, file, limit))
    }

    /// Reads a filter of at most `limit` bytes from a stream, unpacked if it is packed with gzip;
    /// `None` recognises the format.
    ///
    /// Memory is taken as bytes come: neither a claimed length nor a small packed file takes more
    /// than the limit. A packed file is unpacked only as far as its header needs.
    ///
    /// # Errors
    /// If reading fails, there are more bytes, or they are no filter of that format.
    pub fn read_from(stream: impl Read, format: Option<Format>, limit: u64) -> Result<Self> {
        Ok(Self::from_bytes(read_unpacked(stream, format, limit)?, format)?.within(limit))
    }

    /// The same filter, which may grow to so many bytes.
    #[must_use]
    pub fn within(self, limit: u64) -> Self {
        Self { limit, ..self }
    }

    /// Puts a key in; whether it certainly was not there.
    ///
    /// # Errors
    /// If the key does not have the form of the filter's keys, or the filter takes no more.
    pub fn insert(&mut self, key: &[u8]) -> Result<bool> {
        let (mut words, mut new) = (Vec::new(), Answers::new());
        self.member_hasher().hash(key, &mut words)?;
        self.insert_words(&words, &mut new)?;
        Ok(new.get(0))
    }

    /// Puts keys in by what [`member_hasher`](Self::member_hasher) gave for them; `new` gets an
    /// answer for each.
    ///
    /// # Errors
    /// If the filter takes no more.
    pub fn insert_words(&mut self, words: &[u64], new: &mut Answers) -> Result<()> {
        if !words.is_empty() {
            self.scheme.unfold(&mut self.file, self.limit)?;
        }
        self.scheme.insert(&mut self.file, words, self.limit, new)
    }

    /// Takes in all keys of another filter of the same format, shape and choices.
    ///
    /// # Errors
    /// If they differ, or the format's filters cannot be united; nothing has changed then.
    pub fn union<B: AsRef<[u8]>>(&mut self, other: &Foreign<B>) -> Result<()> {
        if self.format != other.format {
            return Err(Error::different("format", self.format, other.format));
        }
        let (form, other_form) = (self.key_form(), other.key_form());
        if form != other_form {
            return Err(Error::different("form of keys", form.name(), other_form.name()));
        }
        let (Some((ours, _)), Some((theirs, bits))) = (self.scheme.row(), other.scheme.row())
        else {
            return Err(Error::unsupported(self.format, "is united with no other"));
        };
        if ours != theirs {
            return Err(Error::different("shape", ours, theirs));
        }
        // One in a short form has no bits: what it is united with may be as empty.
        if self.file.len() < other.file.as_ref().len() && bits.count_ones(other.file.as_ref()) > 0 {
            self.scheme.unfold(&mut self.file, self.limit)?;
        }
        self.scheme.unite(&mut self.file, &*other.scheme, other.file.as_ref());
        Ok(())
    }
}

impl<B: AsRef<[u8]>> fmt::Debug for Foreign<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Foreign({:?}, {} bytes)", self.scheme, self.file.as_ref().len())
    }
}

/// How the keys of a filter become words.
#[derive(Clone)]
pub struct Hasher {
    form: KeyForm,
    digest: Digest,
    space: Vec<u8>,
    /// Whether an empty key is a key.
    empty: bool,
}

impl Hasher {
    /// What the function `xxhash64` gives in Spark's SQL, one word: what its `might_contain` and
    /// `bloom_filter_agg` are given for keys that are no whole numbers of 64 bits.
    #[must_use]
    pub fn of_spark_sql() -> Self {
        Self { form: KeyForm::Text, digest: formats::sql_digest(), space: Vec::new(), empty: true }
    }

    /// Appends the words of a key.
    ///
    /// # Errors
    /// If the key does not have the form that the filter's keys have; nothing is appended then.
    #[inline]
    pub fn hash(&mut self, key: &[u8], words: &mut Vec<u64>) -> Result<()> {
        if key.is_empty() && !self.empty {
            return Err(Error::key("a key that is not empty, for the format holds none", key));
        }
        let digest = &self.digest;
        self.form.with_bytes(key, &mut self.space, |bytes| digest(bytes, words))
    }
}

impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hasher({:?})", self.form)
    }
}
