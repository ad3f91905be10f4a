//! What a filter is to be: everything that its master must tell its replicas, for them to make the
//! same to the bit.

use petal::{
    AnyFilter, BloomFilter, CountingBloomFilter, HashSpec, ScalableBloomFilter, Shape,
    WindowedBloomFilter,
};

use crate::chain::{Chain, ChainPlan};
use crate::compat::{Bloom, Cuckoo, CuckooPlan};
use crate::object::{Object, Refusal};

/// While the layers of a filter that grows are for fewer keys than this, the next is so many times
/// as large: filters that begin for a hundred keys and get millions have few layers.
const HEAD_START: (u64, u64) = (4, 1 << 14);
/// The part of the rate that the first layer of a filter that grows has.
const FIRST_SHARE: f64 = 0.25;

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
    /// petal's Bloom filter: growing by this factor, or never.
    Bloom { growth: Option<u64> },
    /// petal's Bloom filter with counters.
    Counting,
    /// petal's Bloom filter of the last keys, or of the last milliseconds.
    Window { milliseconds: Option<u64>, generations: u32 },
    /// petal's quotient filters in a row.
    Row(Buckets),
    /// RedisBloom's Bloom filter: growing by this factor, or never.
    RedisBloom { growth: Option<u32> },
    /// RedisBloom's cuckoo filter.
    RedisCuckoo(Buckets),
}

/// What filters of `CF.*` are made with besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Buckets {
    /// Slots of a bucket.
    pub(crate) size: u16,
    /// How many others an insert moves before it gives up.
    pub(crate) iterations: u16,
    /// How many times the buckets of a layer the next has; 0 for filters that do not grow.
    pub(crate) expansion: u16,
}

impl Plan {
    /// Makes the filter, if it takes no more than so many bytes.
    pub(crate) fn make(&self, limit: u64) -> Result<Object, Refusal> {
        self.check_least(limit)?;
        let hash = HashSpec::keyed(self.seed);
        let object = match self.form {
            Form::Bloom { growth: None } => {
                let builder = BloomFilter::builder().keys(self.keys).rate(self.rate);
                AnyFilter::Bloom(builder.hash(hash).build()?).into()
            }
            Form::Bloom { growth: Some(growth) } => {
                let builder = ScalableBloomFilter::builder().keys(self.keys).rate(self.rate);
                let (factor, below) = HEAD_START;
                let builder = builder.growth(growth).head_start(factor, below);
                AnyFilter::Scalable(builder.hash(hash).build()?).into()
            }
            Form::Counting => {
                let builder = CountingBloomFilter::builder().keys(self.keys).rate(self.rate);
                AnyFilter::Counting(builder.width(COUNTER_BITS as u32).hash(hash).build()?).into()
            }
            Form::Window { milliseconds, generations } => {
                let mut builder = WindowedBloomFilter::builder().keys(self.keys).rate(self.rate);
                if let Some(time) = milliseconds {
                    builder = builder.time(time);
                }
                AnyFilter::Windowed(builder.generations(generations).hash(hash).build()?).into()
            }
            Form::Row(Buckets { size, iterations, expansion }) => {
                let (rate, bucket_size) = (self.rate, size);
                let plan = ChainPlan { rate, expansion, bucket_size, iterations };
                Object::Row(Box::new(Chain::new(plan, self.keys, hash, limit)?))
            }
            Form::RedisBloom { growth } => {
                let filter = Bloom::reserve(self.keys, self.rate, growth, limit)?;
                Object::RedisBloom(Box::new(filter))
            }
            Form::RedisCuckoo(Buckets { size, iterations, expansion }) => {
                let plan = CuckooPlan::new(self.keys, size, iterations, expansion)?;
                Object::RedisCuckoo(Box::new(Cuckoo::new(plan, limit)?))
            }
        };
        if object.memory_usage() > limit {
            return Err(Refusal::Limit);
        }
        Ok(object)
    }

    /// What is certainly too large is not even asked for.
    fn check_least(&self, limit: u64) -> Result<(), Refusal> {
        let (rate, times) = match self.form {
            Form::Bloom { growth: Some(_) } => (self.rate * FIRST_SHARE, 1),
            Form::Counting => (self.rate, COUNTER_BITS),
            Form::Bloom { growth: None } | Form::Window { .. } => (self.rate, 1),
            // They look themselves.
            Form::Row(_) | Form::RedisBloom { .. } | Form::RedisCuckoo(_) => return Ok(()),
        };
        let bits = Shape::for_rate(self.keys, rate).map_err(Refusal::from)?.size_bytes();
        if bits.saturating_mul(times) > limit { Err(Refusal::Limit) } else { Ok(()) }
    }
}
