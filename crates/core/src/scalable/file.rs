//! The file format of scalable filters.
//!
//! The data are a directory with one line for each layer, then the lines of the layers, oldest
//! first.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
use alloc::borrow::Cow;

use super::layer::Layer;
use super::plan::{LayerPlan, MAX_LAYERS};
use super::{ScalableBloomFilter, reserved};
use crate::embed::{Relocator, SerializedView};
use crate::error::{Error, Result};
use crate::filter::FilterInfo;
use crate::format::data::DataSource;
use crate::format::header::{Header, MAX_INSERTED};
use crate::format::kind::FilterType;
use crate::format::persist::{Load, Save};
use crate::layout::BlockedLayout;
use crate::spec::Growth;
use crate::store::{CacheLine, Store};

/// Returns the directory entry of a layer: blocks, lanes, probes, inserts that were new, zeros.
fn entry<S: Store>(layer: &Layer<S>, inserted: u64) -> CacheLine {
    let layout = layer.layout();
    let (lanes, probes) = (layout.lanes().into(), layout.probes().into());
    CacheLine([layout.blocks(), lanes, probes, inserted, 0, 0, 0, 0].map(u64::to_le))
}

/// Parses a directory entry: the layout and the number of inserts that were new.
fn parse_entry(entry: &CacheLine, data_at: u64, layer: u64) -> Result<(BlockedLayout, u64)> {
    let [blocks, lanes, probes, inserted, rest @ ..] = entry.0.map(u64::from_le);
    if rest != [0; 4] {
        let at = data_at + layer * CacheLine::BYTES as u64;
        return Err(Error::corrupt("directory", at as usize, "zeros behind four words", "others"));
    }
    // Numbers that do not fit are too large for a layout.
    let short = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    Ok((BlockedLayout::new(blocks, short(lanes), short(probes))?, inserted))
}

impl<S: Store> Save for ScalableBloomFilter<S> {
    fn info(&self) -> FilterInfo {
        FilterInfo {
            capacity: self.plan.first(),
            target_fpr: self.plan.fpr(),
            inserted: self.layer_lens().fold(0, u64::saturating_add),
        }
    }

    fn parts(&self) -> (Header, Vec<Cow<'_, [CacheLine]>>) {
        let layers = self.layers().into();
        let mut header = Header::new(FilterType::Scalable, layers, self.plan.hash(), self.info());
        let Growth { factor: growth, head_start, share } = self.plan.growth();
        let (factor, below) = head_start.unwrap_or_default();
        let parameters = [growth, factor, below, share.unwrap_or(0)];
        header.parameters[..4].copy_from_slice(&parameters);
        let directory = self
            .oldest_first()
            .zip(self.layer_lens())
            .map(|(layer, len)| entry(layer, len))
            .collect();
        let lines = self.oldest_first().map(|layer| Cow::Borrowed(layer.store().lines()));
        (header, [Cow::Owned(directory)].into_iter().chain(lines).collect())
    }
}

impl<S: Store> Load for ScalableBloomFilter<S> {
    type Store = S;

    fn load(header: &Header, data: &mut impl DataSource<Store = S>) -> Result<Self> {
        header.check_kind(FilterType::Scalable)?;
        let Header { extent: layers, hash, info, parameters, .. } = *header;
        header.check_parameters(4)?;
        header.check_no_probes()?;
        if !(1..=MAX_LAYERS).contains(&layers) {
            return Err(Error::invalid("layers", "1 to 64", layers));
        }
        if info.capacity == 0 {
            return Err(Error::invalid("keys of the first layer", "1 or more", 0));
        }
        let [growth, factor, below, growth_share, ..] = parameters;
        let head_start = Some((factor, below)).filter(|head_start| *head_start != (0, 0));
        let share = Some(growth_share).filter(|parts| *parts > 0);
        let growth = Growth { factor: growth, head_start, share };
        let plan = LayerPlan::new(info.capacity, info.target_fpr, growth, hash)?;
        let directory = data.take(layers)?;
        let mut closed = reserved(layers as usize - 1)?;
        let (mut newest, mut left) = (None, 0);
        let mut inserted = 0u64;
        for (at, entry) in (0..).zip(directory.lines()) {
            let (layout, len) = parse_entry(entry, header.data_at(), at)?;
            let capacity = plan.info(at as u32)?.capacity;
            // All layers but the newest are full.
            let not_full = at + 1 < layers && len != capacity;
            if not_full || len > capacity {
                let place = (header.data_at() + at * CacheLine::BYTES as u64) as usize;
                return Err(Error::corrupt("keys of a layer", place, capacity, len));
            }
            inserted = inserted.saturating_add(len);
            let layer = Layer::new(layout, data.take(layout.lines())?);
            closed.extend(newest.replace(layer));
            left = capacity - len;
        }
        let inserted = inserted.min(MAX_INSERTED);
        if inserted != info.inserted {
            return Err(Error::corrupt("keys inserted", 88, inserted, info.inserted));
        }
        let newest = newest.ok_or_else(|| Error::invalid("layers", "1 to 64", 0))?;
        Ok(Self { plan, left, closed: closed.into(), newest })
    }

    fn any_store(&self) -> Option<&S> {
        Some(self.newest.store())
    }
}

impl ScalableBloomFilter {
    /// Returns a view of the filter as the bytes of a file: see
    /// [`AnyFilter::serialized`](crate::AnyFilter::serialized).
    #[must_use]
    #[doc(hidden)] // For the crates of this repository.
    pub fn serialized(&self) -> SerializedView<'_> {
        Save::serialized(self)
    }

    /// Moves the memory: see [`AnyFilter::relocate`](crate::AnyFilter::relocate).
    #[doc(hidden)] // For the crates of this repository.
    pub fn relocate(&mut self, relocator: &mut Relocator<'_>) {
        let layers = self.closed.iter_mut().chain([&mut self.newest]);
        layers.for_each(|layer| layer.store_mut().relocate(relocator));
    }
}
