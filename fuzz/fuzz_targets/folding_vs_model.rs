//! Folds, unions of folds and overlaps equal those of filters that were built small.
#![no_main]

#[path = "../../crates/core/tests/models/folding.rs"]
mod model;
#[path = "../../crates/core/tests/naive/mod.rs"]
mod naive;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| model::drive(bytes));
