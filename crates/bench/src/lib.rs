//! Shared code of the benchmarks: the filter harness, generated inputs with known answers, and result files.
//!
//! Every benchmark checks the answers of what it times, and records machine, commit and command with its rows in
//! `results/`.

pub mod args;
pub mod corpus;
pub mod harness;
pub mod machine;
pub mod paths;
pub mod permutation;
pub mod rivals;
pub mod stats;
