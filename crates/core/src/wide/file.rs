//! The file format of wide filters.
//!
//! The data are two parts of equal length: the blocks of the filter on the low words, then those
//! of the filter on the high words.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
use alloc::borrow::Cow;

use super::WideBloomFilter;
use crate::embed::Relocator;
use crate::error::Result;
use crate::filter::{BloomFilter, Filter, FilterInfo};
use crate::format::data::DataSource;
use crate::format::header::Header;
use crate::format::kind::FilterType;
use crate::format::persist::{Load, Save};
use crate::layout::BlockedLayout;
use crate::membership::Membership as _;
use crate::store::{CacheLine, Store};

impl<S: Store> Save for WideBloomFilter<S> {
    fn info(&self) -> FilterInfo {
        self.info
    }

    fn save(&self) -> (Header, Vec<Cow<'_, [CacheLine]>>) {
        let layout = self.layout();
        let header = Header {
            probes: layout.probes() as u16,
            lanes: layout.lanes() as u16,
            ..Header::new(FilterType::Wide, layout.blocks(), self.hash_spec(), self.info)
        };
        let ((_, low), (_, high)) = (self.low.save(), self.high.save());
        (header, [low, high].concat())
    }
}

impl<S: Store> Load for WideBloomFilter<S> {
    type Store = S;

    fn load(header: &Header, data: &mut impl DataSource<Store = S>) -> Result<Self> {
        header.check_kind(FilterType::Wide)?;
        header.check_parameters(0)?;
        header.hash.check_words(2)?;
        let layout = BlockedLayout::new(header.extent, header.lanes.into(), header.probes.into())?;
        header.check_lines(2 * layout.lines())?;
        let mut half = || -> Result<BloomFilter<S>> {
            let lines = data.take(layout.lines())?;
            Ok(Filter::from_parts(layout, header.hash, FilterInfo::default(), lines))
        };
        Ok(Self { low: half()?, high: half()?, info: header.info })
    }

    fn any_store(&self) -> Option<&S> {
        self.low.any_store()
    }
}

impl WideBloomFilter {
    pub(crate) fn relocate(&mut self, relocator: &mut Relocator<'_>) {
        self.low.relocate(relocator);
        self.high.relocate(relocator);
    }
}
