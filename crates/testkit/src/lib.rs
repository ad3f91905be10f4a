//! Shared test utilities: reference models, difficult inputs, confidence bounds, corruption, measurement.
//!
//! This crate depends on no other crate of the workspace, so it cannot share a bug with the code under test. Models
//! are deliberately simple: they keep everything in memory and are short enough to verify by reading.
//!
//! | module | contents |
//! |---|---|
//! | [`model`] | the three set operations over lines, by the simplest algorithm |
//! | [`line_files`] | files with difficult lines: empty, CRLF, NUL, 0xFF, long, without a final newline |
//! | [`keys`] | distinct members and non-members |
//! | [`bounds`] | confidence bounds of counts and means |
//! | [`collide`] | distinct keys with equal hashes |
//! | [`corrupt`] | every truncation and every bit flip of a small file |
//! | [`measure`] | a child process with its time and peak memory |
//! | [`scratch`] | a temporary directory |
//! | [`pages`] | the Markdown pages of the repository, and the console blocks in them |
//! | [`size_requests`] | random requests for the size of a filter |
//! | [`rng`] | SplitMix64: the same numbers on every machine for one seed |

pub mod bounds;
pub mod collide;
pub mod corrupt;
pub mod keys;
pub mod line_files;
#[cfg(unix)]
pub mod measure;
pub mod model;
pub mod pages;
pub mod rng;
pub mod scratch;
pub mod size_requests;
