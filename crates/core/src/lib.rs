//! Approximate set membership: Bloom filters and related filters, at any size.
//!
//! A Bloom filter is an array of bits that answers "was this key inserted?". *No* is certain; *yes*
//! is wrong for a small share of absent keys, the false-positive rate, which is chosen in advance.
//!
//! ```
//! # #[cfg(feature = "std")] {
//! use petal::BloomFilter;
//!
//! // A million keys at a false-positive rate of 1 %: 1.26 MB.
//! let mut seen = BloomFilter::with_fpr(1_000_000, 0.01)?;
//! for url in ["https://a.example/", "https://b.example/", "https://a.example/"] {
//!     if seen.insert(url) {
//!         // The first time.
//!     }
//! }
//! assert!(seen.contains("https://b.example/"));
//!
//! // Write and read a file; `open_mapped` would query it in place.
//! let mut file = Vec::new();
//! seen.write_to(&mut file, r#"{"what":"urls"}"#)?;
//! let (copy, metadata) = BloomFilter::read_from(&file[..])?;
//! assert!(copy == seen && metadata.contains("urls"));
//! # }
//! # Ok::<_, petal::Error>(())
//! ```
//!
//! # Types
//!
//! | type | use |
//! |---|---|
//! | [`BloomFilter`] | the default: one cache line per key |
//! | [`ClassicBloomFilter`] | the textbook filter, a little smaller |
//! | [`AtomicBloomFilter`] | the default filter, shared by threads |
//! | [`CountingBloomFilter`], [`ClassicCountingBloomFilter`] | deletion, with a counter for each bit |
//! | [`QuotientFilter`] | deletion, counting, growth, union of different sizes |
//! | [`VectorQuotientFilter`] | fast deletion: one or two cache lines per operation |
//! | [`ScalableBloomFilter`] | an unknown number of keys |
//! | [`WindowedBloomFilter`] | the most recent keys only |
//! | [`StaticFilter`] | built once from all keys, near the minimum space |
//! | [`FilterCascade`] | built once, exact for known non-members |
//! | [`TypedBloomFilter`] | any `T: Hash`, in memory only |
//!
//! * The same work has the same method on every type: `contains`, `insert`, their batches, `save` and
//!   `open`; `stats` returns the numbers of a filter, [`Stats`]. The trait [`Membership`] has what
//!   describes a filter: size, capacity, rate, hash. A [`TypedBloomFilter`] stays in memory; an
//!   [`AtomicBloomFilter`] is saved as the filter that `into_filter` returns.
//! * [`AnyFilter`] holds a filter whose type is known only at run time. Code that is generic over types
//!   uses [`Membership`] and [`MembershipMut`].
//! * [`Key`] lists the types of keys, [`HashSpec`] the hash functions.
//! * [`FilterSpec`] describes a filter before it exists, [`Plan`] is what it will cost, a [`Builder`]
//!   makes a filter of one type; [`math`] has the formulas.
//! * [`BatchResults`] holds the results of a batch. Batches overlap cache misses.
//! * [`embed`] is for servers that contain filters.
//!
//! # Integers as keys
//!
//! Insert an integer as a key, `insert(&number)`, even if it is a hash that you computed: petal
//! hashes it, and the false-positive rate holds for any pattern of numbers. Methods named
//! `..._mixed_hash` take hashes whose every bit is random, and cannot check that: with plain integers
//! instead, a filter reports nearly everything as present. So it does with hashes that have bits in
//! common: to divide keys among filters, use [`HashSpec::shard`], not bits of the hash.
//!
//! # Guarantees
//!
//! * No false negatives: a key that was inserted is contained.
//! * The target rate holds at the capacity, by an exact calculation for the layout. The tests measure
//!   it.
//! * Constructors return an error if memory allocation fails. Bytes from outside give an error or a
//!   valid filter, never a panic.
//! * A file has the same meaning on every machine and in every later version.
//!
//! # Features
//!
//! * `std` (default): streams, threads, and detection of processor features at run time. Without it
//!   the crate is `no_std` with `alloc`, and needs the feature `libm`.
//! * `mmap` (default): filters in mapped files, and anonymous maps for large filters.
//! * `serde`: serialization of filters, as the bytes of a `.petal` file.

#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(
    not(all(feature = "mmap", target_arch = "x86_64")),
    allow(dead_code, unused_imports, reason = "some helpers serve streams, maps and threads only")
)]

extern crate alloc;

#[cfg(not(any(feature = "std", feature = "libm")))]
compile_error!("petal-filters needs the feature `std` or, without it, the feature `libm`");

mod any;
mod batch;
mod byte_size;
mod cascade;
mod counting;
pub mod embed;
mod error;
mod explanation;
mod filter;
mod format;
mod hash;
mod kernel;
mod key;
mod layout;
pub mod math;
mod membership;
#[cfg(not(feature = "std"))]
mod no_std;
mod quotient;
mod remote;
mod results;
mod scalable;
#[cfg(feature = "serde")]
mod serialization;
mod spec;
mod static_filter;
mod stats;
mod store;
#[cfg(feature = "std")]
mod sync;
mod threads;
mod vector_quotient;
mod windowed;

#[cfg(feature = "mmap")]
pub use any::Inspection;
#[cfg(feature = "std")]
pub use any::verify_bytes;
pub use any::{AnyFilter, Plan};
pub use byte_size::ByteSize;
pub use cascade::FilterCascade;
pub use counting::{ClassicCountingBloomFilter, CountingBloomFilter, CountingFilter};
pub use error::{Error, ErrorKind, Result};
pub use explanation::{ExplainedPart, Explanation, Probe};
#[cfg(all(feature = "std", not(all(loom, test))))]
pub use filter::atomic::AtomicBloomFilter;
pub use filter::typed::TypedBloomFilter;
pub use filter::{BloomFilter, ClassicBloomFilter, Filter};
pub use format::header::MAGIC;
pub use format::kind::FilterType;

pub use hash::{HashSpec, Secret};
#[doc(hidden)] // For tests and benches; no promise is made about it.
pub use kernel::Kernel;
pub use key::Key;
pub use math::{Estimate, Overlap};
pub use membership::{Membership, MembershipMut};
pub use quotient::QuotientFilter;
pub use results::{BatchResults, TrueIndices};
pub use scalable::ScalableBloomFilter;
pub use spec::{Builder, FilterSpec, Growth};
pub use static_filter::StaticFilter;
pub use stats::Stats;
#[cfg(feature = "mmap")]
pub use store::Mapped;
pub use store::{Borrowed, Owned, Store, StoreMut};
pub use vector_quotient::VectorQuotientFilter;
pub use windowed::WindowedBloomFilter;

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The examples of docs/guides/rust.md are tests, too.
#[cfg(all(doctest, feature = "mmap"))]
#[doc = include_str!("../guide.md")]
struct Guide;
