//! The layout of a static filter: its layers, and the half words of their parts.
//!
//! A [`RibbonLayout`] is validated: every position of every layer is within its half words of cuts
//! and rows.

use crate::error::{Error, Result};
use crate::kernel::ribbon::{BUCKET, CUTS_IN_HALF, Layer, WIDTH};
#[cfg(not(feature = "std"))]
use crate::no_std::*;
use crate::store::CacheLine;

/// The largest number of columns of all rows. One more must fit into a half word.
pub(super) const MAX_COLUMNS: u64 = 31;
/// The largest number of layers. A layer bumps 5 % of its keys, so that 10¹² keys need nine.
pub(super) const MAX_LAYERS: u64 = 16;
/// The largest number of segments of a shard.
pub(super) const MAX_SEGMENTS: u64 = 1 << 20;
/// The largest number of segments of a layer, so that no size overflows.
const MAX_IN_LAYER: u64 = 1 << 50;
/// The number of half words in a line.
pub(super) const HALVES: u64 = CacheLine::BYTES as u64 / 4;

/// The layers of a static filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RibbonLayout {
    columns: u64,
    layers: Vec<Layer>,
    /// The number of half words of the rows of all layers.
    rows: u64,
    /// The number of half words of the cuts of all layers.
    cuts: u64,
}

/// The parameters of a layer in a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct LayerParams {
    pub(super) seed: u64,
    pub(super) shards: u64,
    pub(super) segments: u64,
    pub(super) wide: u64,
}

impl RibbonLayout {
    /// Creates a layout without layers, whose rows have `columns` columns or one more.
    pub(super) fn new(columns: u64) -> Result<Self> {
        if columns > MAX_COLUMNS {
            return Err(Error::invalid("columns", "0 to 31", columns));
        }
        Ok(Self { columns, layers: Vec::new(), rows: 0, cuts: 0 })
    }

    /// Appends a layer; none may follow the last.
    pub(super) fn push(&mut self, numbers: LayerParams, last: bool) -> Result<Layer> {
        let LayerParams { seed, shards, segments, wide } = numbers;
        if !(2..=MAX_SEGMENTS).contains(&segments) {
            return Err(Error::invalid("segments of a shard", "2 to 2^20", segments));
        }
        if !(1..=MAX_IN_LAYER / segments).contains(&shards) {
            return Err(Error::invalid("shards", "1 to 2^50 / segments", shards));
        }
        if wide > shards * segments {
            return Err(Error::invalid("wide segments", "at most all", wide));
        }
        if self.layers.len() as u64 >= MAX_LAYERS || self.layers.last().is_some_and(|l| l.last) {
            return Err(Error::invalid("layers", "at most 16, and the last at the end", "more"));
        }
        let (columns, rows_at, cuts_at) = (self.columns, self.rows, self.cuts);
        let buckets = ((segments - 1) * WIDTH).div_ceil(BUCKET);
        let cuts_each = if last { 0 } else { buckets.div_ceil(CUTS_IN_HALF) };
        let layer =
            Layer { seed, shards, segments, wide, columns, last, rows_at, cuts_at, cuts_each };
        self.rows = layer.rows_of(shards * segments);
        self.cuts += shards * cuts_each;
        self.layers.push(layer);
        Ok(layer)
    }

    pub(super) fn columns(&self) -> u64 {
        self.columns
    }

    pub(crate) fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Returns the number of half words of rows.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the number of half words of cuts.
    pub(super) fn cuts(&self) -> u64 {
        self.cuts
    }

    /// Returns the number of lines of rows.
    pub(super) fn row_lines(&self) -> u64 {
        self.rows.div_ceil(HALVES)
    }

    /// Returns the number of lines of cuts.
    pub(crate) fn cut_lines(&self) -> u64 {
        self.cuts.div_ceil(HALVES)
    }

    /// Returns the memory on the heap in bytes.
    pub(super) fn memory_usage(&self) -> u64 {
        (self.layers.capacity() * size_of::<Layer>()) as u64
    }
}
