//! A static filter of any set has the documented layout and contains every key.
#![no_main]

#[path = "../../crates/core/tests/models/static_filter.rs"]
mod static_filter;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| static_filter::drive(bytes));
