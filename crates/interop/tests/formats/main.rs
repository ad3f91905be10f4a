//! Tests of the formats of other programs: golden files, hostile bytes, vectors, rates.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod cascade;
#[path = "../common/mod.rs"]
mod common;
mod floor;
mod golden;
mod hostile;
mod limits;
mod parquet_files;
mod parquet_invalid;
mod table;
mod vectors;
