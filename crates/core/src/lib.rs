//! Approximate set membership: Bloom filters at any size.
//!
//! "Have I seen this before?", asked of more items than memory holds. A Bloom filter answers with
//! an array of bits: *no* is certain, *yes* is almost certain, and how almost is chosen
//! beforehand.
//!
//! ```
//! use petal::BloomFilter;
//!
//! // A million keys, one false alarm in a hundred: 1.25 MB.
//! let mut seen = BloomFilter::with_rate(1_000_000, 0.01)?;
//! for url in ["https://a.example/", "https://b.example/", "https://a.example/"] {
//!     if seen.insert(url) {
//!         // First time.
//!     }
//! }
//! assert!(seen.contains("https://b.example/"));
//!
//! // Into a file and back; `open_mapped` would query it where it lies.
//! let mut file = Vec::new();
//! seen.write_to(&mut file, r#"{"what":"urls"}"#)?;
//! let (again, metadata) = BloomFilter::read_from(&file[..])?;
//! assert!(again == seen && metadata.contains("urls"));
//! # Ok::<_, petal::Error>(())
//! ```
//!
//! # What is where
//!
//! | type | for |
//! |---|---|
//! | [`BloomFilter`] | the default: one cache line a key |
//! | [`ClassicBloomFilter`] | the textbook's, a little smaller |
//! | [`AtomicBloomFilter`] | the default, filled and asked by many threads at once |
//! | [`CountingBloomFilter`], [`ClassicCountingBloomFilter`] | deleting, with a counter for each bit |
//! | [`QuotientFilter`] | deleting, counting, growing and uniting without the keys |
//! | [`ScalableBloomFilter`] | nobody knows how many keys will come |
//! | [`WindowedBloomFilter`] | forgetting what is old |
//! | [`StaticFilter`] | made once of all keys, in near the least space there can be |
//! | [`FilterCascade`] | made once, without error on a universe of known non-members |
//! | [`WideBloomFilter`] | rates below what 64-bit hashes can promise |
//! | [`TypedBloomFilter`] | any `T: Hash`, in memory only |
//!
//! * [`AnyFilter`]: whatever a file holds; [`Membership`]: what every filter can be asked.
//! * [`Image`] and [`Receiver`]: filters carried elsewhere in pieces; [`use_allocator_only`] and
//!   [`Mover`]: for servers that keep accounts of their memory.
//! * [`Sizing`], [`Shape`] and [`ClassicShape`]: sizing without building; [`rate`]: the mathematics.
//! * [`Key`]: what may be a key; [`HashSpec`]: how it becomes 64 bits, or 128; [`Answers`]: what batches
//!   return.
//!
//! # Integers are keys
//!
//! Insert a `u64`, also one that is a hash of 32 bits or of your own, as a key: `insert(&number)`.
//! It is hashed, and the promised rate holds for any pattern of numbers. The methods named
//! `..._mixed_hash` take hashes whose every bit is random, and nothing checks that: with plain
//! integers in their place a filter finds everything.
//!
//! # What it promises
//!
//! * No false negatives, ever: a key that was inserted is contained.
//! * The false-positive rate that was asked for holds for the planned number of keys, by an exact
//!   calculation for the layout, and is measured in the tests.
//! * Constructors return `Result`, memory that is refused included; bytes from outside give an
//!   error or a valid filter, never a panic.
//! * A file means the same on every machine and in every later version.

mod answers;
mod any;
mod cascade;
mod counting;
mod error;
mod filter;
mod format;
mod hash;
mod kernel;
mod key;
mod membership;
mod quotient;
pub mod rate;
mod ribbon;
mod scalable;
mod shape;
mod store;
mod sync;
mod wide;
mod windowed;

pub use answers::Answers;
pub use any::{AnyFilter, Receiver, Sizing, verify_bytes};
pub use cascade::{CascadeBuilder, FilterCascade};
pub use counting::{
    ClassicCountingBloomFilter, CountingBloomFilter, CountingBuilder, CountingFilter,
};
pub use error::{Error, Result};
#[cfg(not(all(loom, test)))]
pub use filter::atomic::AtomicBloomFilter;
pub use filter::builder::Builder;
pub use filter::geometry::Geometry;
pub use filter::typed::TypedBloomFilter;
pub use filter::{BloomFilter, ClassicBloomFilter, Filter};
pub use format::image::Image;
pub use format::kind::FilterType;
pub use hash::HashSpec;
#[doc(hidden)] // For tests and benches; no promise is made about it.
pub use kernel::Kernel;
pub use key::Key;
pub use membership::{Membership, MembershipMut};
pub use quotient::{QuotientBuilder, QuotientFilter, QuotientShape};
pub use rate::{Estimate, Overlap};
pub use ribbon::{StaticBuilder, StaticFilter};
pub use scalable::{ScalableBloomFilter, ScalableBuilder};
pub use shape::{ClassicShape, Shape};
pub use store::{Lent, Mapped, Mover, Owned, Store, StoreMut, use_allocator_only};
pub use wide::{WideBloomFilter, WideBuilder};
pub use windowed::{WindowedBloomFilter, WindowedBuilder};

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
