//! The file format of vector quotient filters.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
use alloc::borrow::Cow;

use super::layout::VectorQuotientLayout;
use super::{VectorQuotientFilter, unsound};
use crate::embed::{Relocator, SerializedView};
use crate::error::Result;
use crate::format::data::DataSource;
use crate::format::header::{FilterInfo, Header};
use crate::format::kind::FilterType;
use crate::format::persist::{CheckState, Load, Save};
use crate::store::{CacheLine, Store};

// Indexes of the parameters.
const TAG_BITS: usize = 0;
const PARAMETERS: usize = 1;

/// The index in [`CheckState::seen`] of the number of fingerprints in the blocks checked.
const TOTAL: usize = 0;

impl<S: Store> Save for VectorQuotientFilter<S> {
    fn info(&self) -> FilterInfo {
        self.info
    }

    fn parts(&self) -> (Header, Vec<Cow<'_, [CacheLine]>>) {
        let mut header =
            Header::new(FilterType::VectorQuotient, self.layout.blocks(), self.hash, self.info);
        header.parameters[TAG_BITS] = self.layout.tag_bits().into();
        (header, vec![Cow::Borrowed(self.store.lines())])
    }
}

impl<S: Store> Load for VectorQuotientFilter<S> {
    type Store = S;

    fn load(header: &Header, data: &mut impl DataSource<Store = S>) -> Result<Self> {
        header.check_kind(FilterType::VectorQuotient)?;
        header.check_parameters(PARAMETERS)?;
        header.check_no_probes()?;
        let bits = u32::try_from(header.parameters[TAG_BITS]).unwrap_or(u32::MAX);
        let layout = VectorQuotientLayout::new(header.extent, bits)?;
        header.check_lines(layout.blocks())?;
        if header.info.inserted > layout.slots() {
            return Err(header.bad_inserted(layout.slots()));
        }
        let store = data.take(layout.blocks())?;
        Ok(Self::from_parts(layout, header.hash, header.info, store))
    }

    fn check(&self, data_at: u64, state: CheckState) -> Result<()> {
        let rest = self.store.lines().get(state.done..).unwrap_or_default();
        let found = self.table.check(rest).map_err(|fault| unsound(fault, state.done, data_at))?;
        self.check_total(state.seen[TOTAL].saturating_add(found), data_at)
    }

    fn check_early(&self, data_at: u64, lines: usize, state: &mut CheckState) -> Result<()> {
        let arrived = self.store.lines().get(state.done..lines).unwrap_or_default();
        let found =
            self.table.check(arrived).map_err(|fault| unsound(fault, state.done, data_at))?;
        state.done += arrived.len();
        state.seen[TOTAL] += found;
        Ok(())
    }

    fn any_store(&self) -> Option<&S> {
        Some(&self.store)
    }
}

impl<S: Store> VectorQuotientFilter<S> {
    /// Returns a view of the filter as the bytes of a file, for sending it in pieces: see
    /// [`AnyFilter::serialized`](crate::AnyFilter::serialized).
    #[must_use]
    #[doc(hidden)] // For the crates of this repository.
    pub fn serialized(&self) -> SerializedView<'_> {
        Save::serialized(self)
    }
}

impl VectorQuotientFilter {
    /// Lets an allocator move the filter's memory: see
    /// [`AnyFilter::relocate`](crate::AnyFilter::relocate).
    #[doc(hidden)] // For the crates of this repository.
    pub fn relocate(&mut self, relocator: &mut Relocator<'_>) {
        self.store.relocate(relocator);
    }
}
