//! Tests of all types of filters: operations compared with models, rates, sizes, files.
//!
//! One program for many files: each program compiles the filters again.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod adversary;
mod cascade;
mod chain;
mod counting;
mod explain;
mod extremes;
mod family;
mod folding;
mod integers;
mod quotient;
mod rates;
mod remote;
mod scalable;
mod serde;
mod sizing;
mod static_filter;
mod static_fuse;
mod static_ranges;
mod std_traits;
mod transfer;
mod vector_quotient;
mod windowed;

#[path = "../models/layers_kit.rs"]
mod kit;
#[path = "../models"]
mod models {
    pub(crate) mod cascade;
    pub(crate) mod counting;
    pub(crate) mod folding;
    pub(crate) mod quotient;
    pub(crate) mod scalable;
    pub(crate) mod static_filter;
    pub(crate) mod vector_quotient;
    pub(crate) mod windowed;
}

#[path = "../naive/mod.rs"]
mod naive;
