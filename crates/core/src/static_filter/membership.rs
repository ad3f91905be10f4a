//! The traits that all types of filters share, for static filters.

use super::StaticFilter;
use crate::explanation::{ExplainedPart, Explanation};
use crate::format::kind::FilterType;
use crate::hash::HashSpec;
use crate::kernel::ribbon::{Layer, LayerStep};
use crate::math;
use crate::membership::{Membership, counted, hash_word};
#[cfg(not(feature = "std"))]
use crate::no_std::*;
use crate::results::BatchResults;
use crate::store::{CacheLine, Store};

impl<S: Store> Membership for StaticFilter<S> {
    fn filter_type(&self) -> FilterType {
        FilterType::Static
    }

    #[inline]
    fn hash_spec(&self) -> HashSpec {
        self.hash
    }

    fn describe(&self) -> String {
        let columns = self.layout.columns();
        let layers = counted(self.layout.layers().len() as u64, "layer");
        format!("{layers} of {columns} to {} columns", columns + 1)
    }

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        let layers = self.layout.layers();
        let first = |number: fn(&Layer) -> u64| layers.first().map_or(0, number);
        vec![
            ("bits", self.size_bytes() * 8),
            ("columns", self.layout.columns()),
            ("layers", layers.len() as u64),
            ("shards", first(|layer| layer.shards)),
            ("segments", first(|layer| layer.shards * layer.segments)),
            ("wide segments", first(|layer| layer.wide)),
        ]
    }

    fn contains_mixed_hashes(&self, hashes: &[u64], found: &mut BatchResults) {
        self.kernel.ribbon_batch(self.ribbon(), hashes, found.reset(hashes.len()));
    }

    fn explain_mixed_hash(&self, hash: &[u64]) -> Explanation {
        let layers = self.layout.layers().len();
        let steps = self.ribbon().steps(hash_word(hash, 0));
        let parts = (1..)
            .zip(steps)
            .map(|(number, step)| explain_step(step).named(format!("layer {number} of {layers}")));
        let parts: Vec<_> = parts.collect();
        Explanation { contains: parts.iter().any(|part| part.contains), parts }
    }

    fn size_bytes(&self) -> u64 {
        let layers = self.layout.layers().len() as u64;
        let lines = layers + self.layout.cut_lines() + self.layout.row_lines();
        lines * CacheLine::BYTES as u64
    }

    fn memory_usage(&self) -> u64 {
        let stores = self.cuts.memory_usage() + self.rows.memory_usage();
        stores + self.layout.memory_usage() + size_of::<Self>() as u64
    }

    /// The exact number, not an estimate.
    fn estimated_len(&self) -> f64 {
        self.info.inserted as f64
    }

    /// Depends on the number of keys only by collisions of hashes.
    fn expected_fpr(&self, keys: u64) -> f64 {
        let Some(layer) = self.layout.layers().first() else { return 0.0 };
        let share = layer.wide as f64 / (layer.shards * layer.segments) as f64;
        math::probability_of_either(
            math::static_fpr(layer.columns as u32, share),
            math::hash_floor(keys),
        )
    }

    /// See [`StaticFilter::fpr`].
    fn estimated_fpr(&self) -> f64 {
        self.fpr()
    }

    /// Returns the share of rows that keys take.
    fn fill_ratio(&self) -> f64 {
        self.row_fill()
    }
}

/// Explains the query of a layer.
fn explain_step(step: LayerStep) -> ExplainedPart {
    let LayerStep { position, bumped, equation, columns, fingerprint, result } = step;
    let mut numbers = vec![("shard", position.shard), ("row", position.start)];
    if bumped {
        numbers.push(("bumped", 1));
    } else {
        numbers.extend([
            ("equation", u64::from(equation)),
            ("bits", u64::from(columns)),
            ("fingerprint", u64::from(fingerprint)),
            ("result", u64::from(result)),
        ]);
    }
    let contains = !bumped && fingerprint == result;
    ExplainedPart { contains, numbers, ..ExplainedPart::default() }
}
