//! The file format of cascades.
//!
//! The data are a directory with one line for each level, then the levels. A directory entry has
//! the fields that the header of a file with that level alone would have.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
use alloc::borrow::Cow;

use super::build::MAX_LEVELS;
use super::{CascadeInfo, FilterCascade};
use crate::embed::Relocator;
use crate::error::{Error, Result};
use crate::format::data::DataSource;
use crate::format::header::{FilterInfo, Header, MAX_INSERTED};
use crate::format::kind::FilterType;
use crate::format::persist::{CheckState, Load, Save};
use crate::hash::HashSpec;
use crate::membership::Membership as _;
use crate::static_filter::StaticFilter;
use crate::store::{CacheLine, Store};

/// The length of a directory entry: one line.
pub(super) const ENTRY_BYTES: u64 = CacheLine::BYTES as u64;

/// Returns the directory entry of a level of `lines` lines.
fn entry(header: &Header, lines: u64) -> CacheLine {
    let [columns, layers, ..] = header.parameters;
    let FilterInfo { target_fpr, inserted, .. } = header.info;
    let target_fpr = target_fpr.to_bits();
    CacheLine([lines, header.extent, target_fpr, inserted, columns, layers, 0, 0].map(u64::to_le))
}

/// Returns the header that a level would have alone, and subtracts its length from `left`, the
/// remaining length of the data.
fn level_header(entry: &CacheLine, hash: HashSpec, left: &mut u64) -> Result<Header> {
    let [lines, extent, target_fpr, inserted, columns, layers, rest @ ..] =
        entry.0.map(u64::from_le);
    let length = lines.checked_mul(CacheLine::BYTES as u64).filter(|length| length <= left);
    let Some(length) = length else {
        return Err(Error::invalid("lines of a level", "no more than the file has", lines));
    };
    *left -= length;
    let target_fpr = f64::from_bits(target_fpr);
    if rest != [0; 2] || !(target_fpr > 0.0 && target_fpr < 1.0) || inserted > MAX_INSERTED {
        return Err(Error::invalid("level", "valid fields", "others"));
    }
    let info = FilterInfo { capacity: inserted, target_fpr, inserted };
    let mut header = Header::new(FilterType::Static, extent, hash, info);
    header.parameters[..2].copy_from_slice(&[columns, layers]);
    header.data_length = length;
    Ok(header)
}

impl<S: Store> Save for FilterCascade<S> {
    fn info(&self) -> FilterInfo {
        let CascadeInfo { members, target_fpr, .. } = self.info;
        FilterInfo { capacity: members, target_fpr, inserted: members }
    }

    fn parts(&self) -> (Header, Vec<Cow<'_, [CacheLine]>>) {
        let extent = self.levels.len() as u64;
        let mut header = Header::new(FilterType::Cascade, extent, self.hash, self.info());
        header.parameters[0] = self.info.non_members;
        let (mut directory, mut data) = (Vec::new(), vec![Cow::default()]);
        for level in &self.levels {
            let (alone, parts) = level.parts();
            let lines = parts.iter().map(|part| part.len() as u64).sum();
            directory.push(entry(&alone, lines));
            data.extend(parts);
        }
        data[0] = Cow::Owned(directory);
        (header, data)
    }
}

impl<S: Store> Load for FilterCascade<S> {
    type Store = S;

    fn load(header: &Header, data: &mut impl DataSource<Store = S>) -> Result<Self> {
        header.check_kind(FilterType::Cascade)?;
        header.check_no_probes()?;
        header.check_parameters(1)?;
        if !(1..=MAX_LEVELS).contains(&header.extent) {
            return Err(Error::invalid("levels", "1 to 96", header.extent));
        }
        let FilterInfo { capacity, target_fpr, inserted: members } = header.info;
        if capacity != members {
            return Err(Error::invalid("capacity", "the number of members", capacity));
        }
        let directory = data.take(header.extent)?;
        let mut left = header.data_length.saturating_sub(header.extent * ENTRY_BYTES);
        let mut levels = Vec::with_capacity(header.extent as usize);
        for entry in directory.lines() {
            let alone = level_header(entry, header.hash, &mut left)?;
            levels.push(StaticFilter::load(&alone, data)?);
        }
        let info = CascadeInfo { members, non_members: header.parameters[0], target_fpr };
        Ok(Self { hash: header.hash, levels, info })
    }

    fn check(&self, data_at: u64, state: CheckState) -> Result<()> {
        let mut level_at = data_at + self.levels.len() as u64 * ENTRY_BYTES;
        for level in &self.levels {
            level.check(level_at, state)?;
            level_at += level.size_bytes();
        }
        Ok(())
    }

    fn any_store(&self) -> Option<&S> {
        self.levels.first().and_then(StaticFilter::any_store)
    }
}

impl FilterCascade {
    pub(crate) fn relocate(&mut self, relocator: &mut Relocator<'_>) {
        self.levels.iter_mut().for_each(|level| level.relocate(relocator));
    }
}
