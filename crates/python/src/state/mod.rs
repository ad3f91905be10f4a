//! A filter of any type, in memory or in a mapped file, petal's own or another program's: the state
//! of every Python filter object.
//!
//! A key comes as bytes, or many keys come as the hashes that a [`KeyHasher`] computed without a
//! lock.

mod clocked;
mod filter;
pub(crate) mod fork;
pub(crate) mod open;
pub(crate) mod transforms;

pub(crate) use filter::Filter;

use std::time::{SystemTime, UNIX_EPOCH};

use petal::{AnyFilter, BatchResults, Explanation, Mapped, Membership};
use petal_interop::{FilterStats, ForeignFilter, Format, KeyType};
use pyo3::PyResult;

use crate::error::{Exception, IntoPyErr};
use crate::keys::{Key, KeyBuf, KeyHasher};
use crate::memory;

/// A filter, the metadata of its file, and its clock.
pub(crate) struct FilterState {
    pub(crate) storage: Storage,
    metadata: String,
    /// Whether keys were added since the metadata was set.
    has_more_keys: bool,
    pub(crate) clock: Clock,
}

/// A filter, and where its bits are.
pub(crate) enum Storage {
    /// petal's own, in memory.
    Memory(AnyFilter),
    /// petal's own, in a mapped file, which is never changed.
    Mapped(AnyFilter<Mapped>),
    /// Another program's, in memory.
    Foreign(ForeignFilter),
    /// Another program's, in a mapped file, which is never changed.
    ForeignMapped(ForeignFilter<Mapped>),
}

/// Evaluates the first expression for petal's own filters and the second for those of other
/// programs, wherever their bits are.
macro_rules! each_storage {
    ($storage:expr, $native:pat => $of_native:expr, $foreign:pat => $of_foreign:expr $(,)?) => {
        match $storage {
            $crate::state::Storage::Memory($native) => $of_native,
            $crate::state::Storage::Mapped($native) => $of_native,
            $crate::state::Storage::Foreign($foreign) => $of_foreign,
            $crate::state::Storage::ForeignMapped($foreign) => $of_foreign,
        }
    };
}
pub(crate) use each_storage;

/// The clock of a filter with a window of time, in seconds since the Unix epoch.
#[derive(Clone, Copy)]
pub(crate) enum Clock {
    /// The clock of the system.
    System,
    /// The time that the caller set last.
    Manual(u64),
}

impl Clock {
    pub(crate) fn now(self) -> u64 {
        match self {
            Self::System => {
                // A system clock before the epoch counts as the epoch.
                SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
            }
            Self::Manual(now) => now,
        }
    }
}

impl FilterState {
    /// The state of a new filter in memory.
    pub(crate) fn new(filter: impl Into<AnyFilter>) -> Self {
        Self::from_storage(Storage::Memory(filter.into()), String::new())
    }

    pub(crate) fn from_storage(storage: Storage, metadata: String) -> Self {
        Self { storage, metadata, has_more_keys: false, clock: Clock::System }
    }

    /// Returns the metadata of the filter's file.
    pub(crate) fn metadata(&self) -> &str {
        &self.metadata
    }

    /// Returns what all types of petal's own filters have in common; `None` for filters of other
    /// programs.
    pub(crate) fn as_dyn(&self) -> Option<&dyn Membership> {
        each_storage!(&self.storage, filter => Some(filter.as_dyn()), _ => None)
    }

    pub(crate) fn is_mapped(&self) -> bool {
        matches!(self.storage, Storage::Mapped(_) | Storage::ForeignMapped(_))
    }

    /// Returns true if an `int` is hashed as its decimal digits, which the other program converts.
    #[inline]
    fn ints_as_digits(&self) -> bool {
        each_storage!(
            &self.storage,
            _ => false,
            filter => filter.key_type() != KeyType::Text,
        )
    }

    /// Returns the hash function for keys that are looked up.
    pub(crate) fn key_hasher(&self) -> KeyHasher {
        each_storage!(
            &self.storage,
            filter => KeyHasher::Native(filter.as_dyn().hash_spec()),
            filter => KeyHasher::Foreign(filter.hasher(), self.ints_as_digits()),
        )
    }

    /// Returns the hash function for keys that are added. Unlike [`key_hasher`](Self::key_hasher)
    /// it returns an error for keys that the other program does not store.
    pub(crate) fn insert_key_hasher(&self) -> KeyHasher {
        match &self.storage {
            Storage::Foreign(filter) => {
                KeyHasher::Foreign(filter.insert_hasher(), self.ints_as_digits())
            }
            _ => self.key_hasher(),
        }
    }

    /// Returns the number of 64-bit words in the hash of a key.
    pub(crate) fn words_per_hash(&self) -> usize {
        each_storage!(
            &self.storage,
            _ => 1,
            filter => filter.words(),
        )
    }

    /// Returns the hash of a key, for types whose hashes are one word.
    pub(crate) fn hash(&self, key: Key<'_>) -> PyResult<u64> {
        let mut hashes = Vec::new();
        self.key_hasher().hash_key(key, &mut hashes)?;
        Ok(hashes.first().copied().unwrap_or(0))
    }

    /// Returns true if the key may be in the filter.
    #[inline]
    pub(crate) fn contains(&self, key: Key<'_>) -> PyResult<bool> {
        let mut buffer = KeyBuf::default();
        let key = buffer.encode(key, self.ints_as_digits());
        each_storage!(
            &self.storage,
            filter => Ok(clocked::contains(filter, self.clock, key)),
            filter => filter.contains(key).map_err(IntoPyErr::into_py_err),
        )
    }

    /// Returns the hash of a key, and how the filter answers its query; `None` for filters of other programs.
    pub(crate) fn explain(&self, key: &[u8]) -> Option<(u64, Explanation)> {
        each_storage!(
            &self.storage,
            filter => Some(clocked::explain(filter, self.clock, key)),
            _ => None,
        )
    }

    /// Looks up keys by their hashes.
    pub(crate) fn contains_hashes(&self, hashes: &[u64], found: &mut BatchResults) {
        each_storage!(
            &self.storage,
            filter => clocked::contains_hashes(filter, self.clock, hashes, found),
            filter => filter.contains_words(hashes, found),
        );
    }

    /// Adds a key. Returns true if it certainly was not in the filter.
    #[inline]
    pub(crate) fn insert(&mut self, key: Key<'_>) -> PyResult<bool> {
        let mut buffer = KeyBuf::default();
        let key = buffer.encode(key, self.ints_as_digits());
        self.expect_keys();
        match &mut self.storage {
            Storage::Memory(filter) => {
                clocked::insert(filter, self.clock, key).map_err(IntoPyErr::into_py_err)
            }
            Storage::Foreign(filter) => filter.insert(key).map_err(IntoPyErr::into_py_err),
            Storage::Mapped(_) | Storage::ForeignMapped(_) => Err(read_only()),
        }
    }

    /// Adds keys by their hashes. `new` gets the keys that certainly were not in the filter.
    pub(crate) fn insert_hashes(&mut self, hashes: &[u64], new: &mut BatchResults) -> PyResult<()> {
        if !hashes.is_empty() {
            self.expect_keys();
        }
        match &mut self.storage {
            Storage::Memory(filter) => {
                clocked::advance(filter, self.clock);
                let filter = filter.as_dyn_mut().map_err(IntoPyErr::into_py_err)?;
                filter.insert_mixed_hashes(hashes, new).map_err(IntoPyErr::into_py_err)
            }
            Storage::Foreign(filter) => {
                filter.insert_words(hashes, new).map_err(IntoPyErr::into_py_err)
            }
            Storage::Mapped(_) | Storage::ForeignMapped(_) => Err(read_only()),
        }
    }

    /// Returns an error if the filter takes no keys. Called before keys are hashed.
    pub(crate) fn check_mutable(&mut self) -> PyResult<()> {
        match &mut self.storage {
            Storage::Memory(filter) => {
                filter.as_dyn_mut().map(drop).map_err(IntoPyErr::into_py_err)
            }
            Storage::Foreign(_) => Ok(()),
            Storage::Mapped(_) | Storage::ForeignMapped(_) => Err(read_only()),
        }
    }

    /// Returns petal's own filter in memory, for changes that only its type supports.
    pub(crate) fn filter_mut(&mut self) -> PyResult<&mut AnyFilter> {
        match &mut self.storage {
            Storage::Memory(filter) => Ok(filter),
            Storage::Mapped(_) | Storage::ForeignMapped(_) => Err(read_only()),
            Storage::Foreign(_) => {
                Err(Exception::Unsupported.new_err("filters of other programs do not support this"))
            }
        }
    }

    /// Removes all keys.
    pub(crate) fn clear(&mut self) -> PyResult<()> {
        match &mut self.storage {
            Storage::Memory(filter) => filter.clear().map_err(IntoPyErr::into_py_err),
            Storage::Foreign(_) => Err(Exception::Unsupported.new_err(
                "filters of other programs cannot be cleared; make a new one: \
                 ForeignFilter(format, capacity, fpr)",
            )),
            Storage::Mapped(_) | Storage::ForeignMapped(_) => Err(read_only()),
        }
    }

    /// Sets the metadata of the filter's file.
    pub(crate) fn set_metadata(&mut self, metadata: String) -> PyResult<()> {
        match &self.storage {
            Storage::Memory(_) => self.replace_metadata(metadata),
            Storage::Mapped(_) | Storage::ForeignMapped(_) => return Err(read_only()),
            Storage::Foreign(_) => {
                return Err(
                    Exception::Unsupported.new_err("files of other programs have no metadata")
                );
            }
        }
        Ok(())
    }

    /// Returns the numbers of another program's filter. Cost: one pass over its bits.
    pub(crate) fn foreign_stats(&self) -> PyResult<FilterStats> {
        each_storage!(&self.storage, _ => Err(not_foreign()), filter => Ok(filter.stats()))
    }

    /// Returns the numbers in the header of another program's filter.
    pub(crate) fn foreign_header(&self) -> PyResult<FilterStats> {
        each_storage!(&self.storage, _ => Err(not_foreign()), filter => Ok(filter.header()))
    }

    /// Returns the names of another program's format and key type.
    pub(crate) fn format_and_key_type(&self) -> Option<(&'static str, &'static str)> {
        self.foreign_file().map(|(format, key_type, _)| (format.name(), key_type.name()))
    }

    /// Returns the size of the filter's bits or counters, or of another program's file, in bytes.
    pub(crate) fn size_bytes(&self) -> u64 {
        match self.as_dyn() {
            Some(filter) => filter.size_bytes(),
            None => self.foreign_file().map_or(0, |(_, _, file)| file.len() as u64),
        }
    }

    /// Returns a copy in memory.
    pub(crate) fn copy(&self) -> PyResult<Self> {
        let storage = each_storage!(
            &self.storage,
            filter => {
                Storage::Memory(filter.try_clone().map_err(IntoPyErr::into_py_err)?)
            },
            filter => {
                let file = memory::copy(filter.as_bytes())?;
                let copy = ForeignFilter::from_bytes(file, Some(filter.format()));
                let copy = copy.map_err(IntoPyErr::into_py_err)?;
                Storage::Foreign(copy.with_key_type(filter.key_type()))
            },
        );
        Ok(Self { storage, metadata: self.metadata.clone(), ..*self })
    }

    /// Returns whether the file of the filter has the secret key of its hash.
    pub(crate) fn file_has_secret(&self) -> bool {
        let is_keyed = self.as_dyn().is_some_and(|filter| filter.hash_spec().is_keyed());
        is_keyed && !self.is_secret_apart()
    }

    /// Returns whether the hash has a secret that is not in the file of the filter.
    pub(crate) fn is_secret_apart(&self) -> bool {
        self.as_dyn().is_some_and(|filter| filter.hash_spec().is_secret_apart())
    }

    /// Writes the filter's file.
    pub(crate) fn write_to(&self, out: &mut dyn std::io::Write) -> PyResult<()> {
        each_storage!(
            &self.storage,
            filter => {
                filter.as_dyn().write_to(out, &self.metadata).map_err(IntoPyErr::into_py_err)
            },
            filter => filter.write_to(out, false).map_err(IntoPyErr::into_py_err),
        )
    }

    /// Checks every byte of the filter.
    pub(crate) fn verify(&self) -> PyResult<()> {
        match &self.storage {
            // Checked when it was read.
            Storage::Memory(_) => Ok(()),
            Storage::Mapped(filter) => filter.verify().map_err(IntoPyErr::into_py_err),
            Storage::Foreign(filter) => filter.verify().map_err(IntoPyErr::into_py_err),
            Storage::ForeignMapped(filter) => filter.verify().map_err(IntoPyErr::into_py_err),
        }
    }

    /// Returns true if two filters have the same type, layout, hash and bits.
    pub(crate) fn equals(&self, other: &Self) -> bool {
        match (&self.storage, &other.storage) {
            (Storage::Memory(a), Storage::Memory(b)) => a == b,
            (Storage::Memory(a), Storage::Mapped(b)) => a == b,
            (Storage::Mapped(a), Storage::Memory(b)) => a == b,
            (Storage::Mapped(a), Storage::Mapped(b)) => a == b,
            _ => match (self.foreign_file(), other.foreign_file()) {
                (Some(a), Some(b)) => a == b,
                _ => false,
            },
        }
    }

    /// Returns whether the other filter has all bits of this one, which must have the same type,
    /// layout and hash. Copies the other one.
    pub(crate) fn is_subset(&self, other: &Self) -> PyResult<bool> {
        let mut both = other.copy()?;
        both.union(self)?;
        Ok(both.equals(other))
    }

    /// Returns whether the filter is of a type that [`is_subset`](Self::is_subset) compares.
    pub(crate) fn is_bloom(&self) -> bool {
        each_storage!(
            &self.storage,
            filter => matches!(filter, AnyFilter::Bloom(_) | AnyFilter::Classic(_)),
            _ => false,
        )
    }

    /// Returns the format, the key type and the file of another program's filter.
    fn foreign_file(&self) -> Option<(Format, KeyType, &[u8])> {
        each_storage!(
            &self.storage,
            _ => None,
            filter => Some((filter.format(), filter.key_type(), filter.as_bytes())),
        )
    }

    /// Adds all keys of another filter.
    pub(crate) fn union(&mut self, other: &Self) -> PyResult<()> {
        self.check_same_transforms(other)?;
        let before = self.inserted();
        self.add_keys_of(other)?;
        self.add_metadata_of(other, before);
        Ok(())
    }

    fn add_keys_of(&mut self, other: &Self) -> PyResult<()> {
        match (&mut self.storage, &other.storage) {
            (Storage::Memory(ours), Storage::Memory(theirs)) => {
                ours.union(theirs).map_err(IntoPyErr::into_py_err)
            }
            (Storage::Memory(ours), Storage::Mapped(theirs)) => {
                ours.union(theirs).map_err(IntoPyErr::into_py_err)
            }
            (Storage::Foreign(ours), Storage::Foreign(theirs)) => {
                ours.union(theirs).map_err(IntoPyErr::into_py_err)
            }
            (Storage::Foreign(ours), Storage::ForeignMapped(theirs)) => {
                ours.union(theirs).map_err(IntoPyErr::into_py_err)
            }
            (Storage::Mapped(_) | Storage::ForeignMapped(_), _) => Err(read_only()),
            _ => Err(Exception::Incompatible.new_err(
                "a petal filter and a filter of another program have no union; fill both from \
                 the same keys",
            )),
        }
    }

    /// Adds all keys of another filter with all their copies, as `petal merge` does.
    pub(crate) fn merge(&mut self, other: &Self) -> PyResult<()> {
        self.check_same_transforms(other)?;
        let before = self.inserted();
        match (&mut self.storage, &other.storage) {
            (Storage::Memory(ours), Storage::Memory(theirs)) => {
                ours.merge(theirs).map_err(IntoPyErr::into_py_err)
            }
            (Storage::Memory(ours), Storage::Mapped(theirs)) => {
                ours.merge(theirs).map_err(IntoPyErr::into_py_err)
            }
            _ => self.add_keys_of(other),
        }?;
        self.add_metadata_of(other, before);
        Ok(())
    }
}

fn read_only() -> pyo3::PyErr {
    Exception::Unsupported.new_err(
        "the filter is in a mapped file, which is read only; change its copy(), or load the file \
         with petal.load(path)",
    )
}

fn not_foreign() -> pyo3::PyErr {
    Exception::Unsupported.new_err("the filter is petal's own, not another program's")
}
