//! The file format of windowed filters.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
use alloc::borrow::Cow;

use super::WindowedBloomFilter;
use super::counts::GenerationCounts;
use super::plan::{MAX_GENERATIONS, MAX_ROTATIONS, WindowPlan};
use crate::embed::{Relocator, SerializedView};
use crate::error::{Error, Result};
use crate::filter::FilterInfo;
use crate::format::data::DataSource;
use crate::format::header::{Header, MAX_INSERTED};
use crate::format::kind::FilterType;
use crate::format::persist::{CheckState, Load, Save};
use crate::layout::BlockedLayout;
use crate::store::{CacheLine, Store};

// Indexes of the parameters.
const GENERATIONS: usize = 0;
const TICKS: usize = 1;
const CLOCK: usize = 2;
const COUNTS: usize = 3;

impl<S: Store> WindowedBloomFilter<S> {
    /// Checks the counts of a window by count: generations before the first have no keys, the
    /// newest has at most its share, the others have exactly their share.
    fn check_counts(&self, header: &Header) -> Result<()> {
        if self.plan().ticks.is_some() {
            return Ok(());
        }
        if self.clock > MAX_ROTATIONS {
            return Err(header.bad_parameter(CLOCK, "at most 2^62 rotations"));
        }
        let share = self.generation_capacity();
        for age in 0..u64::from(self.generations()) {
            let epoch = self.clock.checked_sub(age);
            let slot = epoch.map_or_else(
                || self.plan().slot(self.clock + u64::from(self.generations()) - age),
                |epoch| self.plan().slot(epoch),
            );
            let (min, max) = match (epoch, age) {
                (None, _) => (0, 0),
                (_, 0) => (0, share),
                _ => (share, share),
            };
            if !(min..=max).contains(&self.counts.get(slot)) {
                return Err(header.bad_parameter(COUNTS + slot, format!("{min} to {max}")));
            }
        }
        Ok(())
    }
}

impl<S: Store> Save for WindowedBloomFilter<S> {
    fn info(&self) -> FilterInfo {
        let inserted = self.counts.all().into_iter().fold(0, u64::saturating_add);
        FilterInfo { capacity: self.plan().keys, target_fpr: self.plan().fpr, inserted }
    }

    fn parts(&self) -> (Header, Vec<Cow<'_, [CacheLine]>>) {
        let layout = self.layout();
        let header =
            Header::new(FilterType::Windowed, layout.blocks(), self.params.hash, self.info());
        let mut header =
            Header { probes: layout.probes() as u16, lanes: layout.lanes() as u16, ..header };
        header.parameters[GENERATIONS] = self.generations().into();
        header.parameters[TICKS] = self.plan().ticks.unwrap_or(0);
        header.parameters[CLOCK] = self.clock;
        header.parameters[COUNTS..COUNTS + MAX_GENERATIONS].copy_from_slice(&self.counts.all());
        (header, vec![Cow::Borrowed(self.store.lines())])
    }
}

impl<S: Store> Load for WindowedBloomFilter<S> {
    type Store = S;

    fn load(header: &Header, data: &mut impl DataSource<Store = S>) -> Result<Self> {
        header.check_kind(FilterType::Windowed)?;
        let Header { info, parameters, .. } = *header;
        let generations = u32::try_from(parameters[GENERATIONS]).unwrap_or(u32::MAX);
        let ticks = Some(parameters[TICKS]).filter(|ticks| *ticks > 0);
        if info.capacity == 0 {
            return Err(Error::invalid("keys of the window", "1 or more", 0));
        }
        let plan = WindowPlan::new(info.capacity, info.target_fpr, ticks, generations)?;
        header.check_parameters(COUNTS + generations as usize)?;
        let layout = BlockedLayout::new(header.extent, header.lanes.into(), header.probes.into())?;
        let lines = layout.lines().saturating_mul(generations.into());
        header.check_lines(lines)?;
        let mut filter = Self::from_parts(plan, layout, header.hash, data.take(lines)?);
        filter.clock = parameters[CLOCK];
        filter.counts = GenerationCounts::new(
            generations,
            core::array::from_fn(|slot| parameters[COUNTS + slot]),
        );
        filter.check_counts(header)?;
        let inserted = filter.info().inserted.min(MAX_INSERTED);
        if inserted != info.inserted {
            return Err(Error::corrupt("keys inserted", 88, inserted, info.inserted));
        }
        Ok(filter)
    }

    /// Checks that exactly the generations with a count have bits.
    fn check(&self, data_at: u64, mut state: CheckState) -> Result<()> {
        self.check_early(data_at, usize::MAX, &mut state)?;
        for (generation, count) in self.counts.all().into_iter().enumerate() {
            let used = state.seen[0] >> generation & 1 != 0;
            if used != (count > 0) {
                let found = if used { "some" } else { "none" };
                let expected = format!("those of {count} keys");
                return Err(Error::corrupt("bits", data_at as usize, expected, found));
            }
        }
        Ok(())
    }

    /// Finds the generations with bits, one bit for each in `seen[0]`.
    fn check_early(&self, _: u64, lines: usize, state: &mut CheckState) -> Result<()> {
        let block = (self.layout().lanes() / 8) as usize;
        let run = block * self.generations() as usize;
        let end = lines.min(self.store.lines().len()) / run;
        let start = state.done.min(end);
        state.done = end.max(start);
        for run in self.store.lines()[start * run..end * run].chunks_exact(run) {
            for (generation, block) in run.chunks_exact(block).enumerate() {
                let used = block.iter().any(|line| *line != CacheLine::ZERO);
                state.seen[0] |= u64::from(used) << generation;
            }
        }
        Ok(())
    }

    fn any_store(&self) -> Option<&S> {
        Some(&self.store)
    }
}

impl<S: Store> WindowedBloomFilter<S> {
    /// Returns a view of the filter as the bytes of a file, for sending it in pieces: see
    /// [`AnyFilter::serialized`](crate::AnyFilter::serialized).
    #[must_use]
    #[doc(hidden)] // For the crates of this repository.
    pub fn serialized(&self) -> SerializedView<'_> {
        Save::serialized(self)
    }
}

impl WindowedBloomFilter {
    /// Lets an allocator move the filter's memory: see
    /// [`AnyFilter::relocate`](crate::AnyFilter::relocate).
    #[doc(hidden)] // For the crates of this repository.
    pub fn relocate(&mut self, relocator: &mut Relocator<'_>) {
        self.store.relocate(relocator);
    }
}
