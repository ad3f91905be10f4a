//! Any operations on a windowed filter equal those on a naive one.
#![no_main]

#[path = "../../crates/core/tests/models/layers_kit.rs"]
mod kit;
#[path = "../../crates/core/tests/models/windowed.rs"]
mod model;
#[path = "../../crates/core/tests/naive/mod.rs"]
mod naive;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| model::drive(input));
