//! Tests that also run on other architectures (`cargo x cross`), and some of them as WebAssembly (`cargo x wasm`).
//!
//! One program for many files: each program compiles the filters again.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod algebra;
mod atomic;
mod conformance;
mod golden;
mod hostile;
mod large;
mod parallel;
mod put;

#[path = "../models"]
mod models {
    pub(crate) mod static_filter;
}

#[path = "../naive/mod.rs"]
mod naive;
#[path = "../naive/reader.rs"]
mod reader;
