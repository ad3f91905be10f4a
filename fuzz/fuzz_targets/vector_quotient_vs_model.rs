//! Any sequence of operations on a vector quotient filter equals a multiset of fingerprints, in memory and from its file.
#![no_main]

#[path = "../../crates/core/tests/models/vector_quotient.rs"]
mod vector_quotient;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| vector_quotient::drive(bytes));
