//! What the benches share: inputs that know their own answer, and the arithmetic of results.
//!
//! A number counts only with its raw data, its machine and its command: see `results/`. A bench checks every answer
//! that it times.

pub mod corpus;
pub mod permutation;
pub mod summary;
