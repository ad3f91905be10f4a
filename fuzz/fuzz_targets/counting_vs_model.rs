//! Any operations on counting filters equal those on an array of counters, files included.
#![no_main]

#[path = "../../crates/core/tests/models/counting.rs"]
mod model;
#[path = "../../crates/core/tests/naive/mod.rs"]
mod naive;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| model::drive(bytes));
