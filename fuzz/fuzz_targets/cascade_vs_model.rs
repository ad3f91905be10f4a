//! A cascade is correct for every key of its universe, in memory and from its file.
#![no_main]

#[path = "../../crates/core/tests/models/cascade.rs"]
mod cascade;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| cascade::drive(bytes));
