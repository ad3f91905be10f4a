//! The data of layout 12: slots, then multipliers.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
use alloc::borrow::Cow;

use super::{FuseTable, lines_of};
use crate::embed::Relocator;
use crate::error::{Error, Result};
use crate::format::data::DataSource;
use crate::format::header::{FilterInfo, Header};
use crate::format::kind::FilterType;
use crate::hash::HashSpec;
use crate::kernel::fuse::FuseParams;
use crate::store::{CacheLine, Owned, Store, lines_as_words};

/// The number of parameters: bits, logarithm of a segment, shards, segments, wide segments, seed.
const PARAMETERS: usize = 6;

impl<S: Store> FuseTable<S> {
    pub(in super::super) fn save(
        &self,
        hash: HashSpec,
        info: FilterInfo,
    ) -> (Header, Vec<Cow<'_, [CacheLine]>>) {
        let params = &self.params;
        let slots = params.shards() * params.stride();
        let mut header = Header::new(FilterType::StaticFuse, slots, hash, info);
        header.parameters[..PARAMETERS].copy_from_slice(&[
            params.bits(),
            params.log_segment(),
            params.shards(),
            params.segments(),
            params.wide(),
            params.seed(),
        ]);
        (header, vec![Cow::Borrowed(self.data.lines())])
    }

    /// Takes the data of a header, whose probes are already checked.
    pub(in super::super) fn load(
        header: &Header,
        data: &mut impl DataSource<Store = S>,
    ) -> Result<Self> {
        header.check_parameters(PARAMETERS)?;
        let [bits, log_segment, shards, segments, wide, seed, ..] = header.parameters;
        let params = FuseParams::new(shards, segments, log_segment, bits, wide, seed)?;
        if header.extent != params.shards() * params.stride() {
            return Err(Error::invalid("extent", "the number of slots", header.extent));
        }
        header.check_lines(lines_of(&params))?;
        Ok(Self::from_parts(params, data.take(lines_of(&params))?))
    }

    /// Checks that the bits after the last slot and the last multiplier are zero.
    pub(in super::super) fn check(&self, data_at: u64) -> Result<()> {
        let params = &self.params;
        let corrupt = |word: u64| {
            let at = data_at + 8 * word;
            Err(Error::corrupt("bits after the last one", at as usize, 0, "a set bit"))
        };
        let words = lines_as_words(self.data.lines());
        let used = params.bit_of(params.shards() * params.stride()) % 64;
        let last = params.slot_words();
        if used > 0 && u64::from_le(words[last as usize - 1]) >> used != 0 {
            return corrupt(last - 1);
        }
        let unused = &words[params.words() as usize..];
        match unused.iter().position(|word| *word != 0) {
            None => Ok(()),
            Some(at) => corrupt(params.words() + at as u64),
        }
    }

    pub(in super::super) fn any_store(&self) -> &S {
        &self.data
    }
}

impl FuseTable<Owned> {
    pub(in super::super) fn relocate(&mut self, relocator: &mut Relocator<'_>) {
        self.data.relocate(relocator);
    }
}
