//! The file format of Bloom filters.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
use alloc::borrow::Cow;

use super::layout::Layout;
use super::layout::sealed::Fields;
use super::{Filter, FilterInfo};
use crate::embed::Relocator;
use crate::error::Result;
use crate::format::data::DataSource;
use crate::format::header::Header;
use crate::format::persist::{CheckState, Load, Save};
use crate::store::{CacheLine, Store};

impl<L: Layout, S: Store> Save for Filter<L, S> {
    fn info(&self) -> FilterInfo {
        self.current_info()
    }

    fn parts(&self) -> (Header, Vec<Cow<'_, [CacheLine]>>) {
        let Fields { probes, lanes, extent } = self.layout.fields();
        let header = Header::new(L::KIND, extent, self.hash, self.current_info());
        (Header { probes, lanes, ..header }, vec![Cow::Borrowed(self.store.lines())])
    }
}

impl<L: Layout, S: Store> Load for Filter<L, S> {
    type Store = S;

    fn load(header: &Header, data: &mut impl DataSource<Store = S>) -> Result<Self> {
        header.check_kind(L::KIND)?;
        header.check_parameters(0)?;
        let Header { probes, lanes, extent, .. } = *header;
        let layout = L::from_fields(Fields { probes, lanes, extent })?;
        header.check_lines(layout.lines())?;
        Ok(Self::from_parts(layout, header.hash, header.info, data.take(layout.lines())?))
    }

    fn check(&self, data_at: u64, _: CheckState) -> Result<()> {
        self.layout.check_tail(self.store.lines(), data_at)
    }

    fn any_store(&self) -> Option<&S> {
        Some(&self.store)
    }
}

impl<L: Layout> Filter<L> {
    pub(crate) fn relocate(&mut self, relocator: &mut Relocator<'_>) {
        self.store.relocate(relocator);
    }
}
