//! What the benches share: inputs that know their own answer, rivals, and what a result is made of.
//!
//! A number counts only with its raw data, its machine and its command: see `results/`. A bench checks every answer
//! that it times.

pub mod contest;
pub mod corpus;
pub mod figures;
pub mod machine;
pub mod permutation;
pub mod place;
pub mod rivals;
pub mod summary;
