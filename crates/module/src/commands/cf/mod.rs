//! `CF.*`: filters that support deletion, compatible with RedisBloom's cuckoo filters.

mod add;
mod chunks;
mod delete;
mod query;
mod reserve;

pub(super) use add::{Add, AddNx, Insert, InsertNx};
pub(super) use chunks::{LoadChunk, ScanDump};
pub(super) use delete::{Compact, Del, Mdel};
pub(super) use query::{Count, Exists, Info, Mexists};
pub(super) use reserve::Reserve;

use super::memory_limit;
use crate::bindings::config::Settings;
use crate::bindings::{Call, KeyContent, ReplyError, metrics};
use crate::error::FilterError;
use crate::filters::{CuckooOps, GrowthLimits, MAX_COPIES, StoredFilter};

/// Returns the `CF.*` filter of a key; an error for other filters.
#[inline]
pub(super) fn filter(
    content: KeyContent<&StoredFilter>,
) -> Result<Option<&dyn CuckooOps>, ReplyError> {
    match content.complete()? {
        Some(stored) => stored.as_cuckoo().map(Some).ok_or(ReplyError::WrongType),
        None => Ok(None),
    }
}

/// Returns the `CF.*` filter of a key for changes.
#[inline]
fn filter_mut(
    content: KeyContent<&mut StoredFilter>,
) -> Result<Option<&mut dyn CuckooOps>, ReplyError> {
    match content.complete()? {
        Some(stored) => stored.as_cuckoo_mut().map(Some).ok_or(ReplyError::WrongType),
        None => Ok(None),
    }
}

/// Returns the limits for growth; replayed commands have none.
fn growth_limits(call: &Call<'_>) -> GrowthLimits {
    let settings = Settings::current();
    let bytes = memory_limit(call, settings.memory_limit);
    let (layers, copies) = match call.is_replay() {
        true => (u64::MAX, u64::MAX),
        false => (settings.cf_max_expansions, MAX_COPIES),
    };
    GrowthLimits { layers, bytes, copies }
}

/// Returns the reply for an item that was not added.
fn insert_error(error: FilterError) -> ReplyError {
    match error {
        FilterError::Full => {
            metrics::rejected(&error);
            ReplyError::Static("Filter is full")
        }
        error => error.into(),
    }
}
