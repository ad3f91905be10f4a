//! What all types of filters have in common: the traits for code that does not depend on the type,
//! and the methods that need no import of a trait.
//!
//! Both traits are sealed and object-safe. A call handles a batch of hashes, so that dynamic
//! dispatch costs nothing per key. The results have one bit for each key.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
use core::fmt;
#[cfg(feature = "std")]
use std::io::Write;

use crate::error::{Error, Result};
use crate::explanation::Explanation;
use crate::format::header::FilterInfo;
use crate::format::kind::FilterType;
use crate::hash::HashSpec;
use crate::key::Key;
use crate::math;
use crate::results::BatchResults;
use crate::stats::Stats;

/// A filter of any type, for code that does not depend on the type. Sealed.
///
/// Each type has `contains`, `stats`, `to_bytes` and `write_to` under its own name, too.
///
/// ```
/// use petal::{BatchResults, BloomFilter, Membership};
///
/// let mut bloom = BloomFilter::with_fpr(1000, 0.01)?;
/// bloom.insert("one");
/// let filter: &dyn Membership = &bloom;
/// let hashes = [filter.hash_spec().hash(b"one")];
/// let mut found = BatchResults::new();
/// filter.contains_mixed_hashes(&hashes, &mut found);
/// assert!(found.get(0));
/// # Ok::<_, petal::Error>(())
/// ```
pub trait Membership: crate::format::persist::Save + fmt::Debug + Send + Sync {
    /// Returns the type of the filter.
    fn filter_type(&self) -> FilterType;

    /// Returns how keys are hashed.
    fn hash_spec(&self) -> HashSpec;

    /// Describes the layout in words: "16 blocks of 512 bits, 8 probes".
    fn describe(&self) -> String;

    /// Returns the parameters of the layout, by name.
    ///
    /// Cost: reads the whole filter if it has counters, for the number of saturated ones.
    fn parameters(&self) -> Vec<(&'static str, u64)>;

    /// Returns true if the key of this hash may have been inserted, false if it certainly was not.
    ///
    /// A hash is made with [`hash_spec`](Self::hash_spec), or with another hash function whose
    /// every output bit is random. Plain integers are not such hashes: insert them as keys.
    fn contains_mixed_hash(&self, hash: u64) -> bool;

    /// [`contains_mixed_hash`](Self::contains_mixed_hash) for many hashes; `found` has one result for
    /// each.
    fn contains_mixed_hashes(&self, hashes: &[u64], found: &mut BatchResults);

    /// Returns true if the key may have been inserted, false if it certainly was not.
    #[inline]
    fn contains<K: Key + ?Sized>(&self, key: &K) -> bool
    where
        Self: Sized,
    {
        self.contains_mixed_hash(key.hash_with(&self.hash_spec()))
    }

    /// Explains the answer to a query of one key: what the filter reads, and what it finds.
    ///
    /// For people and teaching: a query with [`contains_mixed_hashes`](Self::contains_mixed_hashes)
    /// is much faster.
    fn explain_mixed_hash(&self, hash: u64) -> Explanation;

    /// Returns the size of the filter's data in bytes, in memory or in a file.
    fn size_bytes(&self) -> u64;

    /// Returns the total memory of the filter in bytes. Pages of a mapped file do not count.
    fn memory_usage(&self) -> u64;

    /// Returns the capacity: the number of distinct keys that the filter was planned for; 0 if it
    /// was made without a plan, from bits and probes.
    fn capacity(&self) -> u64 {
        self.info().capacity
    }

    /// Returns the false-positive rate that the filter was planned for; 0 if it was made without
    /// a plan.
    fn target_fpr(&self) -> f64 {
        self.info().target_fpr
    }

    /// Returns how many inserts were new; in quotient and vector quotient filters, the number of keys
    /// with all their copies.
    ///
    /// After a union or intersection it is an estimate of the number of distinct keys, always
    /// finite, with the standard errors of [`Filter::compare`](crate::Filter::compare). So it is
    /// after inserts without a result ([`put`](crate::Filter::put)); it then reads the whole filter.
    fn inserted(&self) -> u64 {
        self.info().inserted
    }

    /// Returns the false-positive rate with `keys` distinct keys, by calculation.
    fn expected_fpr(&self, keys: u64) -> f64;

    /// Returns the numbers of the filter as it is now.
    ///
    /// Cost: reads the whole filter.
    fn stats(&self) -> Stats;

    /// Returns a histogram of the blocks by fill ratio, with `steps` equal steps from empty to
    /// full; empty for types without blocks.
    fn block_fills(&self, steps: usize) -> Vec<u64> {
        let _ = steps;
        Vec::new()
    }

    /// Returns the filter as the bytes of a `.petal` file without metadata.
    ///
    /// # Errors
    /// If memory allocation fails.
    #[cfg(feature = "std")]
    fn to_bytes(&self) -> Result<Vec<u8>> {
        crate::format::write::to_bytes(&self.serialized())
    }

    /// Writes the filter as a `.petal` file with `metadata`, free text such as JSON.
    ///
    /// The same filter gives the same bytes on every machine; docs/reference/format.md describes them.
    ///
    /// # Errors
    /// If the metadata is longer than 1 MiB, or writing fails.
    #[cfg(feature = "std")]
    fn write_to(&self, out: &mut dyn Write, metadata: &str) -> Result<()> {
        crate::format::write::write(out, &self.serialized(), metadata)
    }
}

/// Returns the numbers of a filter that follow from others. The caller replaces those that do not: the
/// number of keys is that of inserts, all of the data are in use, and the filter takes no more keys.
pub(crate) fn basic_stats(filter: &impl Membership, estimated_fpr: f64) -> Stats {
    stats_with(filter, filter.info(), estimated_fpr)
}

/// [`basic_stats`], if the values for the file are known.
pub(crate) fn stats_with(filter: &impl Membership, info: FilterInfo, estimated_fpr: f64) -> Stats {
    let FilterInfo { capacity, target_fpr, inserted } = info;
    let size_bytes = filter.size_bytes();
    Stats {
        filter_type: filter.filter_type(),
        layout: filter.describe(),
        parameters: filter.parameters(),
        size_bytes,
        memory_usage: filter.memory_usage(),
        capacity,
        target_fpr,
        inserted,
        estimated_len: inserted as f64,
        estimated_fpr,
        fill_ratio: 1.0,
        capacity_left: None,
        is_overfull: math::is_overfull(target_fpr, estimated_fpr, size_bytes * 8),
    }
}

/// Formats a number with its noun: "1 layer", "2 layers".
pub(crate) fn counted(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// A filter of any type that can be changed. Sealed.
pub trait MembershipMut: Membership {
    /// Inserts a key by its hash and returns true if it was new.
    ///
    /// Types that support deletion count a key that is inserted twice, and contain it until it is
    /// removed twice.
    ///
    /// # Errors
    /// If the filter takes no more keys.
    fn insert_mixed_hash(&mut self, hash: u64) -> Result<bool>;

    /// Inserts a key and returns true if it was new: see
    /// [`insert_mixed_hash`](Self::insert_mixed_hash).
    ///
    /// # Errors
    /// If the filter takes no more keys.
    #[inline]
    fn insert<K: Key + ?Sized>(&mut self, key: &K) -> Result<bool>
    where
        Self: Sized,
    {
        let hash = key.hash_with(&self.hash_spec());
        self.insert_mixed_hash(hash)
    }

    /// [`insert_mixed_hash`](Self::insert_mixed_hash) for many hashes in order; `new` has one result
    /// for each.
    ///
    /// # Errors
    /// If the filter takes no more keys. The keys before the one that failed are in the filter,
    /// and no key is lost.
    fn insert_mixed_hashes(&mut self, hashes: &[u64], new: &mut BatchResults) -> Result<()>;

    /// Removes keys by their hashes, in order; `removed` is false for each key that was certainly
    /// not in the filter.
    ///
    /// # Errors
    /// If this type of filter does not support deletion.
    fn remove_mixed_hashes(&mut self, hashes: &[u64], removed: &mut BatchResults) -> Result<()> {
        let _ = (hashes, removed);
        Err(Error::unsupported(
            self.filter_type().name(),
            "deletes no keys",
            "use counting, counting-classic, quotient or vector-quotient",
        ))
    }
}

/// Gives a type of filter the methods that all types have in common, so that no trait needs to be
/// imported.
macro_rules! common_methods {
    ($filter:ident $(<$layout:ident: $bound:path>)?) => {
        impl<$($layout: $bound,)? S: $crate::store::Store> $filter<$($layout,)? S> {
            /// [`contains_batch`](Self::contains_batch) for hashes.
            #[doc(hidden)] // The trait documents it.
            pub fn contains_mixed_hashes(&self, hashes: &[u64], found: &mut $crate::BatchResults) {
                $crate::Membership::contains_mixed_hashes(self, hashes, found);
            }

            /// Returns the numbers of the filter as it is now.
            ///
            /// Cost: reads the whole filter.
            #[must_use]
            pub fn stats(&self) -> $crate::Stats {
                $crate::Membership::stats(self)
            }
        }

        $crate::membership::file_methods!($filter $(<$layout: $bound>)?);
    };
}

/// Gives a type of filter the methods that write it to files and read it from them.
macro_rules! file_methods {
    ($filter:ident $(<$layout:ident: $bound:path>)?) => {
        impl<$($layout: $bound,)? S: $crate::store::Store> $filter<$($layout,)? S> {
            /// Writes the filter as a `.petal` file with `metadata`, free text such as JSON. The same
            /// filter gives the same bytes on every machine.
            ///
            /// # Errors
            /// If the metadata is longer than 1 MiB, or writing fails.
            #[cfg(feature = "std")]
            pub fn write_to(
                &self,
                mut out: impl std::io::Write,
                metadata: &str,
            ) -> $crate::Result<()> {
                $crate::Membership::write_to(self, &mut out, metadata)
            }

            /// Returns the filter as the bytes of a `.petal` file without metadata.
            ///
            /// # Errors
            /// If memory allocation fails.
            #[cfg(feature = "std")]
            pub fn to_bytes(&self) -> $crate::Result<Vec<u8>> {
                $crate::Membership::to_bytes(self)
            }

            /// Writes the filter to a file, which replaces an earlier one only when it is complete.
            ///
            /// # Errors
            /// If writing fails.
            #[cfg(feature = "std")]
            pub fn save(&self, path: impl AsRef<std::path::Path>) -> $crate::Result<()> {
                $crate::format::write::save(self, path.as_ref())
            }
        }

        impl<$($layout: $bound)?> $filter<$($layout)?> {
            /// Reads a filter that [`save`](Self::save) has written, and checks every byte.
            ///
            /// # Errors
            /// If reading fails, or the file is not a petal file of this type or is damaged.
            #[cfg(feature = "std")]
            pub fn open(path: impl AsRef<std::path::Path>) -> $crate::Result<Self> {
                Self::open_with(path, None)
            }

            /// [`open`](Self::open) with the secret of a filter of
            /// [`HashSpec::keyed_apart`]($crate::HashSpec::keyed_apart); other filters ignore it.
            ///
            /// # Errors
            /// As [`open`](Self::open), and if the secret is missing or wrong.
            #[cfg(feature = "std")]
            pub fn open_with(
                path: impl AsRef<std::path::Path>,
                secret: Option<&$crate::Secret>,
            ) -> $crate::Result<Self> {
                let file = std::fs::File::open(path)?;
                Self::read_from_with(file, secret).map(|(filter, _)| filter)
            }

            /// Reads a filter and its metadata from a stream and checks every byte. Memory grows
            /// with the bytes that arrive, not with the sizes in the header.
            ///
            /// # Errors
            /// If reading fails, or the bytes are not a petal file of this type or are damaged.
            #[cfg(feature = "std")]
            pub fn read_from(stream: impl std::io::Read) -> $crate::Result<(Self, String)> {
                Self::read_from_with(stream, None)
            }

            /// [`read_from`](Self::read_from) with the secret: see [`open_with`](Self::open_with).
            ///
            /// # Errors
            /// As [`read_from`](Self::read_from), and if the secret is missing or wrong.
            #[cfg(feature = "std")]
            pub fn read_from_with(
                stream: impl std::io::Read,
                secret: Option<&$crate::Secret>,
            ) -> $crate::Result<(Self, String)> {
                let purpose = $crate::format::persist::Purpose::Queries(secret);
                $crate::format::persist::read_from(stream, purpose)
            }
        }

        #[cfg(feature = "mmap")]
        impl<$($layout: $bound)?> $filter<$($layout,)? $crate::Mapped> {
            /// Opens a filter in a mapped file, which is queried in place. Reads only the header and
            /// the lengths of the parts. [`Mapped`]($crate::Mapped) has `metadata` and `verify`, which
            /// checks every byte: call them before, or keep a clone of the map.
            ///
            /// # Errors
            /// If the file is not a petal file of this type, is truncated, or its header is damaged.
            pub fn open_mapped(file: $crate::Mapped) -> $crate::Result<Self> {
                Self::open_mapped_with(file, None)
            }

            /// [`open_mapped`](Self::open_mapped) with the secret of a filter of
            /// [`HashSpec::keyed_apart`]($crate::HashSpec::keyed_apart); other filters ignore it.
            ///
            /// # Errors
            /// As [`open_mapped`](Self::open_mapped), and if the secret is missing or wrong.
            pub fn open_mapped_with(
                file: $crate::Mapped,
                secret: Option<&$crate::Secret>,
            ) -> $crate::Result<Self> {
                let purpose = $crate::format::persist::Purpose::Queries(secret);
                $crate::format::persist::open_mapped(file, purpose)
            }
        }

        impl<'a $(, $layout: $bound)?> $filter<$($layout,)? $crate::Borrowed<'a>> {
            /// Opens a filter over the bytes of a whole file, which is queried in place. The bytes
            /// must begin at a multiple of 64 in memory; data are not checked.
            ///
            /// # Errors
            /// If the bytes are not a petal file of this type, are truncated or not aligned, or the
            /// header is damaged.
            pub fn from_bytes(file: &'a [u8]) -> $crate::Result<Self> {
                Self::from_bytes_with(file, None)
            }

            /// [`from_bytes`](Self::from_bytes) with the secret of a filter of
            /// [`HashSpec::keyed_apart`]($crate::HashSpec::keyed_apart); other filters ignore it.
            ///
            /// # Errors
            /// As [`from_bytes`](Self::from_bytes), and if the secret is missing or wrong.
            pub fn from_bytes_with(
                file: &'a [u8],
                secret: Option<&$crate::Secret>,
            ) -> $crate::Result<Self> {
                let purpose = $crate::format::persist::Purpose::Queries(secret);
                $crate::format::persist::from_bytes(file, purpose)
            }
        }

        #[cfg(feature = "std")]
        impl<$($layout: $bound)?> TryFrom<&[u8]> for $filter<$($layout)?> {
            type Error = $crate::Error;

            /// Copies the filter of a whole `.petal` file and checks every byte.
            fn try_from(file: &[u8]) -> $crate::Result<Self> {
                Self::read_from(file).map(|(filter, _)| filter)
            }
        }
    };
}
pub(crate) use {common_methods, file_methods};
