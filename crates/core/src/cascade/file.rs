//! The file format of cascades.
//!
//! The data are a line with the fields that the headers of both filters alone would have, then the
//! filters. Fields that follow from the header of the cascade are not repeated.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
use alloc::borrow::Cow;

use super::{CascadeInfo, FilterCascade};
use crate::embed::Relocator;
use crate::error::{Error, Result};
use crate::format::data::DataSource;
use crate::format::header::{FilterInfo, Header, MAX_INSERTED};
use crate::format::kind::FilterType;
use crate::format::persist::{CheckState, Load, Save};
use crate::membership::Membership as _;
use crate::static_filter::{SECOND_COLUMNS, SECOND_RATE, StaticFilter};
use crate::store::{CacheLine, Store};

/// The length of the line before the filters.
pub(super) const FIRST_LINE_BYTES: u64 = CacheLine::BYTES as u64;
/// The number of filters.
const FILTERS: u64 = 2;

impl<S: Store> Save for FilterCascade<S> {
    fn info(&self) -> FilterInfo {
        let CascadeInfo { members, target_fpr, .. } = self.info;
        FilterInfo { capacity: members, target_fpr, inserted: members }
    }

    fn parts(&self) -> (Header, Vec<Cow<'_, [CacheLine]>>) {
        let mut header = Header::new(FilterType::Cascade, FILTERS, self.hash, self.info());
        header.parameters[0] = self.info.non_members;
        let ((first, mut data), (second, rest)) = (self.first.parts(), self.second.parts());
        let lines = data.iter().map(|part| part.len() as u64).sum();
        let [columns, layers, ..] = first.parameters;
        let line = [
            lines,
            first.extent,
            first.info.target_fpr.to_bits(),
            columns,
            layers,
            second.extent,
            second.parameters[1],
            second.info.inserted,
        ];
        data.insert(0, Cow::Owned(vec![CacheLine(line.map(u64::to_le))]));
        data.extend(rest);
        (header, data)
    }
}

/// Returns the headers that both filters would have alone, and where the first begins. `take` returns
/// the line before them.
pub(crate) fn filters_of<S: Store>(
    header: &Header,
    take: impl FnOnce() -> Result<S>,
) -> Result<([Header; 2], u64)> {
    header.check_kind(FilterType::Cascade)?;
    header.check_no_probes()?;
    header.check_parameters(1)?;
    if header.extent != FILTERS {
        return Err(Error::invalid("filters of a cascade", "2", header.extent));
    }
    let FilterInfo { capacity, inserted: members, .. } = header.info;
    if capacity != members {
        return Err(Error::invalid("capacity", "the number of members", capacity));
    }
    let line = take()?.lines().first().map_or([0; 8], |line| line.0.map(u64::from_le));
    let [lines, extent, rate, columns, layers, second_extent, second_layers, keys] = line;
    let bytes = header.data_length.saturating_sub(FIRST_LINE_BYTES);
    let first_bytes = lines.checked_mul(CacheLine::BYTES as u64).filter(|first| *first <= bytes);
    let Some(first_bytes) = first_bytes else {
        return Err(Error::invalid("lines of a filter", "no more than the file has", lines));
    };
    let rate = f64::from_bits(rate);
    if !(rate > 0.0 && rate < 1.0 && (members..=MAX_INSERTED).contains(&keys)) {
        return Err(Error::invalid("filters of a cascade", "valid fields", "others"));
    }
    let alone = |extent, parameters: [u64; 2], target_fpr, inserted, data_length| {
        let info = FilterInfo { capacity: inserted, target_fpr, inserted };
        let mut alone = Header::new(FilterType::Static, extent, header.hash, info);
        alone.parameters[..2].copy_from_slice(&parameters);
        alone.data_length = data_length;
        alone
    };
    let first = alone(extent, [columns, layers], rate, members, first_bytes);
    let parameters = [SECOND_COLUMNS, second_layers];
    let second = alone(second_extent, parameters, SECOND_RATE, keys, bytes - first_bytes);
    Ok(([first, second], header.data_at() + FIRST_LINE_BYTES))
}

impl<S: Store> Load for FilterCascade<S> {
    type Store = S;

    fn load(header: &Header, data: &mut impl DataSource<Store = S>) -> Result<Self> {
        let ([first, second], _) = filters_of(header, || data.take(1))?;
        let (first, second) =
            (StaticFilter::load(&first, data)?, StaticFilter::load(&second, data)?);
        let members = header.info.inserted;
        let target_fpr = header.info.target_fpr;
        let info = CascadeInfo { members, non_members: header.parameters[0], target_fpr };
        Ok(Self { hash: header.hash, first, second, info })
    }

    fn check(&self, data_at: u64, state: CheckState) -> Result<()> {
        let first_at = data_at + FIRST_LINE_BYTES;
        self.first.check(first_at, state)?;
        self.second.check(first_at + self.first.size_bytes(), state)
    }

    fn any_store(&self) -> Option<&S> {
        self.first.any_store()
    }
}

impl FilterCascade {
    pub(crate) fn relocate(&mut self, relocator: &mut Relocator<'_>) {
        self.first.relocate(relocator);
        self.second.relocate(relocator);
    }
}
