//! Any sequence of operations on a quotient filter equals a sorted list of fingerprints, in memory and from its file.
#![no_main]

#[path = "../../crates/core/tests/models/quotient.rs"]
mod quotient;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| quotient::drive(bytes));
