//! The geometry of a static filter: its layers, and how many half words their parts take.
//!
//! A [`Layout`] is a proof: every place of every layer lies in so many half words of cuts and
//! rows. It comes of a plan, or of numbers in a file, checked.

use crate::error::{Error, Result};
use crate::kernel::ribbon::{BUCKET, CUTS_IN_HALF, Layer, WIDTH};
use crate::store::Line;

/// Columns that all rows have, at most: one more must fit a half word of fingerprint.
pub(super) const MOST_COLUMNS: u64 = 31;
/// Layers. A layer bumps 5 % of its keys, so the ninth of 10¹² keys is the last.
pub(super) const MOST_LAYERS: u64 = 16;
/// Segments of a shard.
pub(super) const MOST_SEGMENTS: u64 = 1 << 20;
/// Segments of a layer: with the most columns and layers no size overflows.
const MOST_IN_LAYER: u64 = 1 << 50;
/// Half words in a line.
pub(super) const HALVES: u64 = Line::BYTES as u64 / 4;

/// The layers of a static filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    columns: u64,
    layers: Vec<Layer>,
    /// Half words of all layers' rows.
    rows: u64,
    /// Half words of all layers' cuts.
    cuts: u64,
}

/// The numbers of a layer, as a file has them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    pub(super) seed: u64,
    pub(super) shards: u64,
    pub(super) segments: u64,
    pub(super) wide: u64,
}

impl Layout {
    /// No layers yet; rows have so many columns, or one more.
    pub(super) fn new(columns: u64) -> Result<Self> {
        if columns > MOST_COLUMNS {
            return Err(Error::invalid("columns", "0 to 31", columns));
        }
        Ok(Self { columns, layers: Vec::new(), rows: 0, cuts: 0 })
    }

    /// Puts a layer behind the others; none may follow the last.
    pub(super) fn push(&mut self, numbers: Numbers, last: bool) -> Result<Layer> {
        let Numbers { seed, shards, segments, wide } = numbers;
        if !(2..=MOST_SEGMENTS).contains(&segments) {
            return Err(Error::invalid("segments of a shard", "2 to 2^20", segments));
        }
        if !(1..=MOST_IN_LAYER / segments).contains(&shards) {
            return Err(Error::invalid("shards", "1 to 2^50 / segments", shards));
        }
        if wide > shards * segments {
            return Err(Error::invalid("wide segments", "at most all", wide));
        }
        if self.layers.len() as u64 >= MOST_LAYERS || self.layers.last().is_some_and(|l| l.last) {
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

    pub(super) fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Half words of rows.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Half words of cuts.
    pub(super) fn cuts(&self) -> u64 {
        self.cuts
    }

    /// Lines of rows.
    pub(super) fn row_lines(&self) -> u64 {
        self.rows.div_ceil(HALVES)
    }

    /// Lines of cuts.
    pub(super) fn cut_lines(&self) -> u64 {
        self.cuts.div_ceil(HALVES)
    }

    /// Bytes that its memory takes.
    pub(super) fn memory_usage(&self) -> u64 {
        (self.layers.capacity() * size_of::<Layer>()) as u64
    }
}
