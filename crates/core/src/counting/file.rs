//! The file format of counting filters.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
use alloc::borrow::Cow;

use super::size::check_width;
use super::{CountingFilter, kind, planes, planes_of};
use crate::embed::Relocator;
use crate::error::{Error, Result};
use crate::filter::layout::Layout;
use crate::filter::layout::sealed::Fields;
use crate::filter::{Filter, FilterInfo};
use crate::format::data::DataSource;
use crate::format::header::Header;
use crate::format::persist::{CheckState, Load, Save};
use crate::membership::Membership as _;
use crate::store::{CacheLine, Store};

/// The parameter with the width.
const WIDTH: usize = 0;

impl<L: Layout, S: Store> Save for CountingFilter<L, S> {
    fn info(&self) -> FilterInfo {
        self.bloom.info()
    }

    fn parts(&self) -> (Header, Vec<Cow<'_, [CacheLine]>>) {
        let Fields { probes, lanes, extent } = self.layout().fields();
        let mut header = Header::new(kind::<L>(), extent, self.hash_spec(), self.info());
        header.parameters[WIDTH] = self.width.into();
        let data = vec![Cow::Borrowed(self.bits()), Cow::Borrowed(self.planes.lines())];
        (Header { probes, lanes, ..header }, data)
    }
}

impl<L: Layout, S: Store> Load for CountingFilter<L, S> {
    type Store = S;

    fn load(header: &Header, data: &mut impl DataSource<Store = S>) -> Result<Self> {
        header.check_kind(kind::<L>())?;
        header.check_parameters(1)?;
        let width = check_width(header.parameters[WIDTH])?;
        let Header { probes, lanes, extent, .. } = *header;
        let layout = L::from_fields(Fields { probes, lanes, extent })?;
        header.check_lines(layout.lines().saturating_mul(width.into()))?;
        let bloom =
            Filter::from_parts(layout, header.hash, header.info, data.take(layout.lines())?);
        Ok(Self::from_parts(bloom, width, data.take(planes_of(&layout, width))?))
    }

    fn check(&self, data_at: u64, mut state: CheckState) -> Result<()> {
        self.bloom.check(data_at, state)?;
        self.check_early(data_at, usize::MAX, &mut state)
    }

    /// A line of bits is checked once its counters have arrived.
    fn check_early(&self, data_at: u64, lines: usize, state: &mut CheckState) -> Result<()> {
        let (bits, planes, depth) = (self.bits(), self.planes.lines(), self.depth());
        let end = (lines.saturating_sub(bits.len()) / depth).min(bits.len());
        let start = state.done.min(end);
        state.done = end.max(start);
        let planes = &planes[start * depth..end * depth];
        let Some(line) = planes::first_unsound(&bits[start..end], planes, depth) else {
            return Ok(());
        };
        let lines_before = bits.len() + (start + line) * depth;
        let at = data_at as usize + lines_before * CacheLine::BYTES;
        Err(Error::corrupt("counters of clear bits", at, 0, "a count"))
    }

    fn any_store(&self) -> Option<&S> {
        Some(&self.planes)
    }
}

impl<L: Layout> CountingFilter<L> {
    pub(crate) fn relocate(&mut self, relocator: &mut Relocator<'_>) {
        self.bloom.relocate(relocator);
        self.planes.relocate(relocator);
    }
}
