//! The file format of quotient filters.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
use alloc::borrow::Cow;

use super::layout::QuotientLayout;
use super::{QuotientFilter, unsound};
use crate::embed::{Relocator, SerializedView};
use crate::error::Result;
use crate::format::data::DataSource;
use crate::format::header::{FilterInfo, Header};
use crate::format::kind::FilterType;
use crate::format::persist::{CheckState, Load, Save};
use crate::kernel::quotient::{CheckProgress, TableCounts};
use crate::store::{CacheLine, Store};

// Indexes of the parameters.
const REMAINDER_BITS: usize = 0;
const DISTINCT: usize = 1;
const GROWING: usize = 2;
const PARAMETERS: usize = 3;

/// The index in [`CheckState::seen`] of the number of lines that the next early check needs.
const NEXT_CHECK: usize = 3;

/// Converts the progress of a check to that of the kernel.
fn progress(state: &CheckState) -> CheckProgress {
    let [slot, total, distinct, _] = state.seen;
    CheckProgress {
        blocks: state.done,
        slot: slot as usize,
        counts: TableCounts { total, distinct },
    }
}

impl<S: Store> Save for QuotientFilter<S> {
    fn info(&self) -> FilterInfo {
        self.info
    }

    fn parts(&self) -> (Header, Vec<Cow<'_, [CacheLine]>>) {
        let mut header =
            Header::new(FilterType::Quotient, self.layout.slots(), self.hash, self.info);
        header.parameters[REMAINDER_BITS] = self.layout.remainder_bits().into();
        header.parameters[DISTINCT] = self.distinct;
        header.parameters[GROWING] = self.growing.into();
        (header, vec![Cow::Borrowed(self.store.lines())])
    }
}

impl<S: Store> Load for QuotientFilter<S> {
    type Store = S;

    fn load(header: &Header, data: &mut impl DataSource<Store = S>) -> Result<Self> {
        header.check_kind(FilterType::Quotient)?;
        header.check_parameters(PARAMETERS)?;
        header.check_no_probes()?;
        let parameters = header.parameters;
        let bits = u32::try_from(parameters[REMAINDER_BITS]).unwrap_or(u32::MAX);
        let layout = QuotientLayout::new(header.extent, bits)?;
        header.check_lines(layout.lines())?;
        let (len, distinct) = (header.info.inserted, parameters[DISTINCT]);
        let slots = layout.params().slots() as u64;
        if distinct > len || (distinct == 0 && len > 0) || len > slots {
            return Err(header.bad_parameter(DISTINCT, format!("up to {}", len.min(slots))));
        }
        if parameters[GROWING] > 1 {
            return Err(header.bad_parameter(GROWING, "0 or 1"));
        }
        let store = data.take(layout.lines())?;
        let growing = parameters[GROWING] == 1;
        Ok(Self::from_parts(layout, header.hash, header.info, distinct, growing, store))
    }

    fn check(&self, data_at: u64, state: CheckState) -> Result<()> {
        self.check_table(data_at, progress(&state))
    }

    /// Checks the data that have arrived. A run whose end has not arrived is checked again when twice
    /// as much of it is there, so that a long run does not take many passes.
    fn check_early(&self, data_at: u64, lines: usize, state: &mut CheckState) -> Result<()> {
        let mut progress = progress(state);
        if lines < state.seen[NEXT_CHECK] as usize {
            return Ok(());
        }
        self.table
            .check_early(self.store.lines(), lines, self.layout.slots(), &mut progress)
            .map_err(|fault| unsound(&fault, data_at))?;
        let start = self.table.line_of(progress.blocks);
        let next_check = lines.saturating_add(lines.saturating_sub(start));
        let TableCounts { total, distinct } = progress.counts;
        *state = CheckState {
            done: progress.blocks,
            seen: [progress.slot as u64, total, distinct, next_check as u64],
        };
        Ok(())
    }

    fn any_store(&self) -> Option<&S> {
        Some(&self.store)
    }
}

impl<S: Store> QuotientFilter<S> {
    /// Returns a view of the filter as the bytes of a file, for sending it in pieces: see
    /// [`AnyFilter::serialized`](crate::AnyFilter::serialized).
    #[must_use]
    #[doc(hidden)] // For the crates of this repository.
    pub fn serialized(&self) -> SerializedView<'_> {
        Save::serialized(self)
    }
}

impl QuotientFilter {
    /// Lets an allocator move the filter's memory: see
    /// [`AnyFilter::relocate`](crate::AnyFilter::relocate).
    #[doc(hidden)] // For the crates of this repository.
    pub fn relocate(&mut self, relocator: &mut Relocator<'_>) {
        self.store.relocate(relocator);
    }
}
