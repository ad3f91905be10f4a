//! `CF.*`: filters that delete, as clients of RedisBloom's cuckoo filters know them.

mod add;
mod ask;
mod chunks;
mod create;
mod mdel;

pub(super) use add::{Add, AddNx, Compact, Del, Insert, InsertNx};
pub(super) use ask::{Count, Exists, Info, Mexists};
pub(super) use chunks::{LoadChunk, ScanDump};
pub(super) use create::Reserve;
pub(super) use mdel::Mdel;

use std::ops::RangeInclusive;

use super::words::integer;
use super::{count_rejection, limit};
use crate::about::Arg;
use crate::config::Settings;
use crate::ffi::{Call, Failure, Found};
use crate::object::{Deleting, Object, Refusal, Room};

const KEY: Arg = Arg::key();
const ITEM: Arg = Arg::item();
const ITEMS: Arg = Arg::item().or_more();
const CUCKOO: &std::ffi::CStr = c"cuckoo";

/// The greatest expansion.
pub(super) const MOST_EXPANSION: u16 = 32768;

/// A whole number of this range.
pub(super) fn number(word: &[u8], range: RangeInclusive<u16>) -> Option<u16> {
    let number = integer(word).and_then(|number| u16::try_from(number).ok());
    number.filter(|number| range.contains(number))
}

/// What a key holds, if it is for `CF.*`.
#[inline]
pub(super) fn filter(found: Found<&Object>) -> Result<Option<&dyn Deleting>, Failure> {
    match found.known()? {
        Some(object) => object.deleting().map(Some).ok_or(Failure::WrongType),
        None => Ok(None),
    }
}

/// The same, to be changed.
#[inline]
fn filter_mut(found: Found<&mut Object>) -> Result<Option<&mut dyn Deleting>, Failure> {
    match found.known()? {
        Some(object) => object.deleting_mut().map(Some).ok_or(Failure::WrongType),
        None => Ok(None),
    }
}

/// How far a filter may grow: what a master says has been put in fits.
fn room(call: &Call<'_>) -> Room {
    let settings = Settings::now();
    let bytes = limit(call, settings.memory_limit);
    Room { layers: if call.is_replayed() { u64::MAX } else { settings.cf_max_expansions }, bytes }
}

/// Why an item was not put in, in RedisBloom's words.
fn adding(refusal: Refusal) -> Failure {
    match refusal {
        Refusal::Full => {
            count_rejection(&refusal);
            Failure::Says("Filter is full")
        }
        refusal => refusal.into(),
    }
}
