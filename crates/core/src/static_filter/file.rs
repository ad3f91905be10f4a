//! The file format of static filters: layout 8 or 12.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
use alloc::borrow::Cow;

use super::fuse::FuseTable;
use super::ribbon::RibbonTable;
use super::{StaticFilter, Table, with_table};
use crate::embed::Relocator;
use crate::error::Result;
use crate::format::data::DataSource;
use crate::format::header::{FilterInfo, Header};
use crate::format::kind::FilterType;
use crate::format::persist::{CheckState, Load, Save};
use crate::store::{CacheLine, Store};

impl<S: Store> Save for StaticFilter<S> {
    fn info(&self) -> FilterInfo {
        self.info
    }

    fn parts(&self) -> (Header, Vec<Cow<'_, [CacheLine]>>) {
        with_table!(self, table => table.save(self.hash, self.info))
    }
}

impl<S: Store> Load for StaticFilter<S> {
    type Store = S;

    fn load(header: &Header, data: &mut impl DataSource<Store = S>) -> Result<Self> {
        header.check_no_probes()?;
        let table = if header.kind == FilterType::StaticFuse {
            Table::Fuse(FuseTable::load(header, data)?)
        } else {
            header.check_kind(FilterType::Static)?;
            Table::Ribbon(RibbonTable::load(header, data)?)
        };
        Ok(Self::from_parts(header.hash, header.info, table))
    }

    fn check(&self, data_at: u64, _: CheckState) -> Result<()> {
        with_table!(self, table => table.check(data_at))
    }

    fn any_store(&self) -> Option<&S> {
        Some(with_table!(self, table => table.any_store()))
    }
}

impl StaticFilter {
    pub(crate) fn relocate(&mut self, relocator: &mut Relocator<'_>) {
        match &mut self.table {
            Table::Ribbon(table) => table.relocate(relocator),
            Table::Fuse(table) => table.relocate(relocator),
        }
    }
}
