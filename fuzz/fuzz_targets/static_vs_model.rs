//! Static filters of any set equal the document's layout and never lose a key.
#![no_main]

#[path = "../../crates/core/tests/models/static_filter.rs"]
mod static_filter;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| static_filter::drive(bytes));
