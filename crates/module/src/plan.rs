//! What a filter is to be: everything that its master must tell its replicas, for them to make the
//! same to the bit.

use petal::{
    AnyFilter, BloomFilter, CountingBloomFilter, HashSpec, ScalableBloomFilter, Shape,
    WindowedBloomFilter,
};

use crate::chain::{Chain, ChainPlan};
use crate::compat::{self, CuckooPlan};
use crate::object::{MOST_BYTES, Object, Refusal};

/// While the layers of a filter that grows are for fewer keys than this, the next is so many times
/// as large: filters that begin for a hundred keys and get millions have few layers.
const HEAD_START: (u64, u64) = (4, 1 << 14);
/// Of a filter with `EXPANSION 1` each layer is twice as large as the last: a head start without end.
const DOUBLING: (u64, u64) = (2, u64::MAX);
/// Filters that grow from a stated capacity keep 1 / the second of their rate for the layers after
/// the first, from the rate in the first place on; lower rates keep 1 / [`LITTLE_FOR_GROWTH`]. At
/// these numbers the first layer takes no more than RedisBloom's as far as that can be (docs/server.md,
/// "Sizes").
const MUCH_FOR_GROWTH: (f64, u64) = (0.004, 4);
const LITTLE_FOR_GROWTH: u64 = 64;

/// What a counting filter has instead of each bit.
const COUNTER_BITS: u64 = 4;

/// A filter to be made.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    /// Its type, in which layout.
    pub(crate) form: Form,
    /// The false-positive rate to keep.
    pub(crate) rate: f64,
    /// Keys to keep it with; of those that grow, keys to begin with.
    pub(crate) keys: u64,
    /// The key of the hash, of petal's own layout.
    pub(crate) seed: [u8; 16],
}

/// A type of filter in a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// petal's Bloom filter: growing, or never.
    Bloom { growth: Option<Growth> },
    /// petal's Bloom filter of one size that accepts items beyond its capacity.
    Saturating,
    /// RedisBloom's Bloom filter, likewise.
    RedisBloom { growth: Option<u64> },
    /// petal's Bloom filter with counters.
    Counting,
    /// petal's Bloom filter of the last keys, or of the last milliseconds.
    Window { milliseconds: Option<u64>, generations: u32 },
    /// petal's filter of `CF.*`: growing by this factor, or never if it is 0, and what it shall tell
    /// of buckets.
    Cuckoo { expansion: u16, bucket_size: u16, iterations: u16 },
    /// RedisBloom's cuckoo filter, likewise.
    RedisCuckoo { expansion: u16, bucket_size: u16, iterations: u16 },
}

/// How petal's Bloom filter grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Growth {
    /// The capacity of a layer divided by that of the one before it.
    pub(crate) factor: u64,
    /// The layers after the first share 1 / this of the rate; 0: the usual series, in which the
    /// first has a quarter.
    pub(crate) share: u64,
}

impl Growth {
    /// Growth by a factor from a default capacity.
    pub(crate) fn by(factor: u64) -> Self {
        Self { factor, share: 0 }
    }

    /// Growth by a factor from a stated capacity, which gets most of the rate.
    pub(crate) fn from_stated(factor: u64, rate: f64) -> Self {
        let (least, much) = MUCH_FOR_GROWTH;
        Self { factor, share: if rate >= least { much } else { LITTLE_FOR_GROWTH } }
    }

    /// The part of the rate that the first layer has.
    fn first_share(self) -> f64 {
        match self.share {
            0 => petal::rate::layer_share(0),
            parts => petal::rate::growth_layer_share(0, parts),
        }
    }
}

impl Plan {
    /// Whether `BF.*` and `PETAL.SEEN` add items to it.
    pub(crate) fn takes_items(&self) -> bool {
        !matches!(self.form, Form::Cuckoo { .. } | Form::RedisCuckoo { .. })
    }

    /// Bytes that it certainly takes: what is too large is not even asked for.
    fn least_bytes(&self) -> Result<u64, Refusal> {
        let (rate, times) = match self.form {
            // They look themselves.
            Form::RedisBloom { .. } | Form::RedisCuckoo { .. } | Form::Cuckoo { .. } => {
                return Ok(0);
            }
            Form::Bloom { growth: Some(growth) } => (self.rate * growth.first_share(), 1),
            Form::Counting => (self.rate, COUNTER_BITS),
            Form::Bloom { growth: None } | Form::Saturating | Form::Window { .. } => (self.rate, 1),
        };
        Ok(Shape::for_rate(self.keys, rate)?.size_bytes().saturating_mul(times))
    }

    /// Makes the filter, if it takes no more than so many bytes.
    pub(crate) fn make(&self, limit: u64) -> Result<Object, Refusal> {
        // A filter has at least a bit for each key at all rates below one half, and no use above.
        if self.keys / 8 > MOST_BYTES {
            return Err(Refusal::TooLarge);
        }
        let least = self.least_bytes()?;
        if least > MOST_BYTES {
            return Err(Refusal::TooLarge);
        }
        if least > limit {
            return Err(Refusal::Limit);
        }
        let hash = HashSpec::keyed(self.seed);
        let filter = match self.form {
            Form::RedisBloom { growth } => {
                let growth = growth.map(|growth| u32::try_from(growth).unwrap_or(u32::MAX));
                return Ok(compat::Bloom::reserve(self.keys, self.rate, growth, limit)?.into());
            }
            Form::Bloom { growth: None } => {
                let builder = BloomFilter::builder().keys(self.keys).rate(self.rate);
                AnyFilter::Bloom(builder.hash(hash).build()?)
            }
            Form::Saturating => {
                let builder = BloomFilter::builder().keys(self.keys).rate(self.rate);
                let mut filter = builder.hash(hash).build()?;
                filter.drop_planned_keys();
                AnyFilter::Bloom(filter)
            }
            Form::Bloom { growth: Some(growth) } => {
                let builder = ScalableBloomFilter::builder().keys(self.keys).rate(self.rate);
                // Of layers of one size there would soon be more than a filter can have.
                let (factor, below) = if growth.factor == 1 { DOUBLING } else { HEAD_START };
                let builder = builder.growth(growth.factor).growth_share(growth.share);
                let builder = builder.head_start(factor, below);
                AnyFilter::Scalable(builder.hash(hash).build()?)
            }
            Form::Counting => {
                let builder = CountingBloomFilter::builder().keys(self.keys).rate(self.rate);
                AnyFilter::Counting(builder.width(COUNTER_BITS as u32).hash(hash).build()?)
            }
            Form::Window { milliseconds, generations } => {
                let mut builder = WindowedBloomFilter::builder().keys(self.keys).rate(self.rate);
                if let Some(time) = milliseconds {
                    builder = builder.time(time);
                }
                AnyFilter::Windowed(builder.generations(generations).hash(hash).build()?)
            }
            Form::RedisCuckoo { expansion, bucket_size, iterations } => {
                let plan = CuckooPlan::new(self.keys, bucket_size, iterations, expansion)?;
                return Ok(compat::Cuckoo::new(plan, limit)?.into());
            }
            Form::Cuckoo { expansion, bucket_size, iterations } => {
                let plan = ChainPlan { rate: self.rate, expansion, bucket_size, iterations };
                let chain = Chain::new(plan, self.keys, hash, limit)?;
                return Ok(Object::Chain(Box::new(chain)));
            }
        };
        let object = Object::from(filter);
        if object.memory_usage() > limit {
            return Err(Refusal::Limit);
        }
        Ok(object)
    }
}
