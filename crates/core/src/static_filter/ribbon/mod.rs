//! The layout for space: a ribbon, the solution of linear equations.
//!
//! Invariant: cuts and rows have exactly the lines of the layout.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
mod build;
mod file;
mod layout;
mod solve;

pub(super) use build::{build, build_from_ranges, layer_hash, planned_bits};
pub(crate) use file::layout_of;
pub(crate) use layout::RibbonLayout;

use crate::error::Result;
use crate::explanation::{ExplainedPart, Explanation};
use crate::kernel::KernelHandle;
use crate::kernel::ribbon::{BUCKET, Layer, LayerStep, Ribbon, WIDTH};
use crate::math;
use crate::membership::counted;
use crate::store::{CacheLine, Owned, Store, lines_as_half_words};

/// The layers of a ribbon and their bits.
#[derive(Clone, Debug)]
pub(super) struct RibbonTable<S> {
    layout: RibbonLayout,
    cuts: S,
    rows: S,
}

impl<S: Store> RibbonTable<S> {
    fn from_parts(layout: RibbonLayout, cuts: S, rows: S) -> Self {
        debug_assert_eq!(cuts.lines().len() as u64, layout.cut_lines());
        debug_assert_eq!(rows.lines().len() as u64, layout.row_lines());
        Self { layout, cuts, rows }
    }

    #[inline]
    pub(super) fn ribbon(&self) -> Ribbon<'_> {
        Ribbon {
            layers: self.layout.layers(),
            cuts: lines_as_half_words(self.cuts.lines()),
            rows: lines_as_half_words(self.rows.lines()),
        }
    }

    /// Returns whether the filter contains a hash. Not inlined, so that a query of the other layout
    /// saves no registers for this one.
    #[inline(never)]
    pub(super) fn contains(&self, kernel: KernelHandle, hash: u64) -> bool {
        kernel.ribbon_contains(self.ribbon(), hash)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.layout.layers().is_empty()
    }

    /// Returns the exact false-positive rate without collisions of hashes.
    pub(super) fn fpr(&self) -> f64 {
        let cuts = lines_as_half_words(self.cuts.lines());
        let (mut reach, mut fpr) = (1.0, 0.0);
        for layer in self.layout.layers() {
            let [narrow, wide] = kept_starts(layer, cuts);
            let starts = layer.shards as f64 * layer.starts() as f64;
            let (narrow, wide) = (narrow as f64 / starts, wide as f64 / starts);
            let columns = layer.columns as u32;
            fpr += reach
                * (narrow * math::static_fpr(columns, 0.0) + wide * math::static_fpr(columns, 1.0));
            reach *= (1.0 - narrow - wide).max(0.0);
        }
        fpr
    }

    /// Returns the rate by the layout alone, without collisions of hashes.
    pub(super) fn expected_fpr(&self) -> f64 {
        let Some(layer) = self.layout.layers().first() else { return 0.0 };
        let share = layer.wide as f64 / (layer.shards * layer.segments) as f64;
        math::static_fpr(layer.columns as u32, share)
    }

    /// Returns the number of rows.
    pub(super) fn rows(&self) -> f64 {
        let rows = |layer: &Layer| layer.shards as f64 * layer.segments as f64 * WIDTH as f64;
        self.layout.layers().iter().map(rows).sum()
    }

    pub(super) fn describe(&self) -> String {
        let columns = self.layout.columns();
        let layers = counted(self.layout.layers().len() as u64, "layer");
        format!("{layers} of {columns} to {} columns", columns + 1)
    }

    pub(super) fn parameters(&self) -> Vec<(&'static str, u64)> {
        let layers = self.layout.layers();
        let first = |number: fn(&Layer) -> u64| layers.first().map_or(0, number);
        vec![
            ("columns", self.layout.columns()),
            ("layers", layers.len() as u64),
            ("shards", first(|layer| layer.shards)),
            ("segments", first(|layer| layer.shards * layer.segments)),
            ("wide segments", first(|layer| layer.wide)),
        ]
    }

    pub(super) fn explain(&self, hash: u64) -> Explanation {
        let layers = self.layout.layers().len();
        let parts = (1..)
            .zip(self.ribbon().steps(hash))
            .map(|(number, step)| explain_step(step).named(format!("layer {number} of {layers}")));
        let parts: Vec<_> = parts.collect();
        Explanation { contains: parts.iter().any(|part| part.contains), parts }
    }

    pub(super) fn size_bytes(&self) -> u64 {
        let layers = self.layout.layers().len() as u64;
        let lines = layers + self.layout.cut_lines() + self.layout.row_lines();
        lines * CacheLine::BYTES as u64
    }

    pub(super) fn memory_usage(&self) -> u64 {
        let stores = self.cuts.memory_usage() + self.rows.memory_usage();
        stores + self.layout.memory_usage()
    }

    pub(super) fn try_clone(&self) -> Result<RibbonTable<Owned>> {
        let (cuts, rows) =
            (Owned::from_lines(self.cuts.lines())?, Owned::from_lines(self.rows.lines())?);
        Ok(RibbonTable { layout: self.layout.clone(), cuts, rows })
    }

    /// Returns true if layers and bits are equal.
    pub(super) fn equals<T: Store>(&self, other: &RibbonTable<T>) -> bool {
        self.layout == other.layout
            && self.cuts.lines() == other.cuts.lines()
            && self.rows.lines() == other.rows.lines()
    }
}

/// Returns the number of starts that are not bumped: those of keys that compare `columns` columns,
/// and those of keys that compare one more.
fn kept_starts(layer: &Layer, cuts: &[u32]) -> [u64; 2] {
    if layer.last {
        // The last layer bumps nothing and has no cuts. Computed, because the number of segments in
        // a file is not bounded by the length of cuts.
        let pairs = layer.wide.saturating_sub(1);
        let wide = (pairs - pairs / layer.segments) * WIDTH;
        return [layer.shards * (layer.segments - 1) * WIDTH - wide, wide];
    }
    let mut kept = [0, 0];
    for shard in 0..layer.shards {
        for segment in 0..layer.segments - 1 {
            let bucket = segment * WIDTH / BUCKET;
            let cut = layer.bumped_in(cuts, shard, bucket);
            let bumped = cut.saturating_sub(segment * WIDTH % BUCKET);
            let columns = layer.columns_of(shard * layer.segments + segment);
            kept[usize::from(columns > layer.columns)] += WIDTH - bumped.min(WIDTH);
        }
    }
    kept
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
