//! Counters for the module's section of `INFO`, since the module was loaded.
//!
//! The server runs commands on one thread, so a counter is incremented by a load and a store, not
//! by a locked instruction.

#![deny(unsafe_code)]

use std::ffi::CStr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::error::FilterError;

pub(crate) struct Counter {
    pub(crate) name: &'static CStr,
    value: AtomicU64,
}

impl Counter {
    const fn new(name: &'static CStr) -> Self {
        Self { name, value: AtomicU64::new(0) }
    }

    #[inline]
    pub(crate) fn add(&self, more: u64) {
        self.value.store(self.value.load(Relaxed).wrapping_add(more), Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.value.load(Relaxed)
    }
}

static ITEMS_ADDED: Counter = Counter::new(c"items_added");
static ITEMS_PRESENT: Counter = Counter::new(c"items_already_present");
static ITEMS_DELETED: Counter = Counter::new(c"items_deleted");
static QUERIES: Counter = Counter::new(c"queries");
static QUERIES_POSITIVE: Counter = Counter::new(c"queries_positive");
/// Items and commands rejected because a filter was full.
pub(crate) static REJECTED_FULL: Counter = Counter::new(c"rejected_full");
/// Items and commands rejected because of `petal.memory-limit`.
static REJECTED_LIMIT: Counter = Counter::new(c"rejected_memory_limit");
/// Items and commands rejected because an allocation failed.
static REJECTED_MEMORY: Counter = Counter::new(c"rejected_out_of_memory");

/// All counters, in the order of `INFO`.
pub(crate) static ALL: [&Counter; 8] = [
    &ITEMS_ADDED,
    &ITEMS_PRESENT,
    &ITEMS_DELETED,
    &QUERIES,
    &QUERIES_POSITIVE,
    &REJECTED_FULL,
    &REJECTED_LIMIT,
    &REJECTED_MEMORY,
];

/// Counts inserted items: `new` of `all` were added, the others were present.
#[inline]
pub(crate) fn added(new: u64, all: u64) {
    ITEMS_ADDED.add(new);
    ITEMS_PRESENT.add(all.saturating_sub(new));
}

/// Counts an error for lack of capacity or memory.
pub(crate) fn rejected(error: &FilterError) {
    match error {
        FilterError::Full | FilterError::MaxLayers | FilterError::TooManyCopies => {
            REJECTED_FULL.add(1);
        }
        FilterError::MemoryLimit | FilterError::OverLimit { .. } => REJECTED_LIMIT.add(1),
        FilterError::OutOfMemory | FilterError::TooLarge => REJECTED_MEMORY.add(1),
        _ => {}
    }
}

pub(crate) fn deleted(count: u64) {
    ITEMS_DELETED.add(count);
}

/// Counts queried items; `positive` of `all` were found.
#[inline]
pub(crate) fn queried(positive: u64, all: u64) {
    QUERIES.add(all);
    QUERIES_POSITIVE.add(positive);
}
