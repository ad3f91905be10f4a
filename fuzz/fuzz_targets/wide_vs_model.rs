//! Any sequence of operations on wide filters equals two naive filters.
#![no_main]

#[path = "../../crates/core/tests/models/wide.rs"]
mod model;
#[path = "../../crates/core/tests/naive/mod.rs"]
mod naive;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| model::drive(bytes));
