//! How a filter answers a query of one key: what it reads, and what it finds.

#[cfg(not(feature = "std"))]
use crate::no_std::*;

/// How a filter answers a query of one key.
///
/// ```
/// use petal::{ClassicBloomFilter, Membership};
///
/// let mut filter = ClassicBloomFilter::with_bits(1000, 4)?;
/// filter.insert("one");
/// let hash = filter.hash_spec().hash(b"one");
/// let explanation = filter.explain_mixed_hash(hash);
/// assert!(explanation.contains);
/// let probes = &explanation.parts[0].probes;
/// assert!(probes.len() == 4 && probes.iter().all(|probe| probe.position < 1000 && probe.value == 1));
/// # Ok::<_, petal::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// Whether the filter contains the key.
    pub contains: bool,
    /// What a query looks into, in this order: the filter, or its layers, generations or
    /// levels. A query may stop before the last one.
    pub parts: Vec<ExplainedPart>,
}

/// A part of a filter that a query looks into.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExplainedPart {
    /// The name of the part: "layer 2 of 3"; empty if it is the whole filter.
    pub name: String,
    /// Whether the part contains the key.
    pub contains: bool,
    /// Numbers of the key in this part, by name: its block, slot, fingerprint.
    pub numbers: Vec<(&'static str, u64)>,
    /// The bits of the key, in the order in which they are computed; empty for types without probes.
    pub probes: Vec<Probe>,
}

/// A bit of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Probe {
    /// The position of the bit in the data of the part: bit p is bit p mod 8 of byte ⌊p/8⌋.
    /// Generations of a windowed filter share their data.
    pub position: u64,
    /// The bit; in counting filters, its counter.
    pub value: u64,
}

impl Explanation {
    /// Explains a filter that consists of one part.
    pub(crate) fn of_one(part: ExplainedPart) -> Self {
        Self { contains: part.contains, parts: [part].into() }
    }
}

impl ExplainedPart {
    /// Sets the name.
    pub(crate) fn named(self, name: String) -> Self {
        Self { name, ..self }
    }
}
