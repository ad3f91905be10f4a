//! Choosing a scalable filter's first size, rate, growth, hash and seed.

use super::ScalableBloomFilter;
use super::plan::{HeadStart, Plan};
use crate::error::{Error, Result};
use crate::hash::HashSpec;

/// Keys of the first layer where nobody guessed: 110 kB at a rate of 1 %, which lies in a core's
/// own cache, and little enough to be wasted.
const FIRST: u64 = 1 << 16;
/// Layers twice as large as the last one: of 2 to 4 the one with the least memory to spare
/// (docs/design.md, "Scalable filters").
const GROWTH: u64 = 2;

/// Makes a [`ScalableBloomFilter`]. Only the rate must be given.
///
/// ```
/// use petal::ScalableBloomFilter;
///
/// let filter = ScalableBloomFilter::builder().rate(0.01).keys(1_000_000).growth(4).build()?;
/// assert_eq!(filter.layers(), 1);
/// # Ok::<_, petal::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ScalableBuilder {
    keys: u64,
    rate: Option<f64>,
    growth: u64,
    head: HeadStart,
    growth_share: u64,
    hash: HashSpec,
}

impl ScalableBuilder {
    pub(super) fn new() -> Self {
        let (head, hash) = (HeadStart::default(), HashSpec::default());
        Self { keys: FIRST, rate: None, growth: GROWTH, head, growth_share: 0, hash }
    }

    /// Distinct keys that are expected, and that the first layer is made for; 65,536 if this is
    /// not said. A guess: a wrong one costs space or time, never the rate.
    #[must_use]
    pub fn keys(mut self, keys: u64) -> Self {
        self.keys = keys;
        self
    }

    /// The false-positive rate to keep, however many keys there will be: with 64-bit hashes more
    /// than 10¹⁰ from a small beginning at a rate of 10⁻⁶, and some 10⁹ at 10⁻⁸, as the parts of
    /// the later layers are small. Beyond that inserts are refused; a first layer for most of the
    /// keys reaches further.
    #[must_use]
    pub fn rate(mut self, rate: f64) -> Self {
        self.rate = Some(rate);
        self
    }

    /// How many times the keys of the layer before it a layer holds: 1 to 32768; 2 if this is not
    /// said. More is faster to ask and leaves more memory idle. There are 64 layers at most: with
    /// a growth of 1 inserts are refused beyond 64 times the keys of the first.
    #[must_use]
    pub fn growth(mut self, growth: u64) -> Self {
        self.growth = growth;
        self
    }

    /// A layer that comes after one for fewer keys than `below` holds `factor` times (2 to 32768)
    /// as many as that one, if it is more than the [`growth`](Self::growth) says: for filters that
    /// begin with few keys and may have many. From 100 keys to 500,000 they have 13 layers
    /// without, 6 with a factor of 8 below 65,536, 8 with a factor of 4; and less memory from some
    /// 10⁵ keys on, more before (docs/design.md, "Scalable filters").
    #[must_use]
    pub fn head_start(mut self, factor: u64, below: u64) -> Self {
        self.head = HeadStart { factor, below };
        self
    }

    /// Keeps 1 / `parts` of the rate (2 to 65536 parts) for the layers after the first, and gives
    /// the first layer the rest. Without it the first layer has a quarter of the rate.
    ///
    /// For filters whose number of keys is known: at a rate of 1 % and `growth_share(4)` the first
    /// layer takes 10.7 bits a key instead of 13.3, at 0.1 % and `growth_share(64)` 15.8 instead of
    /// 20.1. Layers after it have smaller parts of the rate and take more bits. The promised rate
    /// holds either way (docs/design.md, "Scalable filters").
    #[must_use]
    pub fn growth_share(mut self, parts: u64) -> Self {
        self.growth_share = parts;
        self
    }

    /// The default hash with this seed: filters with different seeds err on different keys.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        self.hash(HashSpec::rapid(seed))
    }

    /// The hash.
    #[must_use]
    pub fn hash(mut self, hash: HashSpec) -> Self {
        self.hash = hash;
        self
    }

    /// Makes the filter, with its first layer, empty.
    ///
    /// # Errors
    /// If the rate is not given, not between 0 and 1 or cannot be reached, the growth is not 1 to
    /// 32768, the head start is none, the growth share is not one of 2 to 65536 parts, or the memory
    /// is refused.
    pub fn build(self) -> Result<ScalableBloomFilter> {
        self.hash.check_words(1)?;
        ScalableBloomFilter::empty(self.plan()?, self.hash)
    }

    /// What is to be made.
    pub(crate) fn plan(&self) -> Result<Plan> {
        let rate = self.rate.ok_or_else(|| Error::invalid("rate", "one to be given", "none"))?;
        Plan::new(self.keys, rate, self.growth, self.head)?.with_growth_share(self.growth_share)
    }
}
