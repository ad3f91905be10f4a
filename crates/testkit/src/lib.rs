//! What tests of every crate share: reference models, nasty inputs, confidence bounds, corrupters, measurement.
//!
//! The kit depends on no crate of ours, so that nothing here can be wrong in the same way as the code it judges.
//! Models are naive on purpose: they hold everything in memory and are short enough to be checked by eye.
//!
//! | module | what it is for |
//! |---|---|
//! | [`model`] | the three set verbs over byte lines, done the obvious way |
//! | [`nasty`] | line files that break careless readers: empties, CRLF, NUL, 0xFF, long lines, no last newline |
//! | [`keys`] | keys that are members by construction, and keys that are not |
//! | [`bounds`] | how far a count or a mean may stray before a test may say "wrong" |
//! | [`collide`] | distinct keys that an adversary prepares to have one hash |
//! | [`corrupt`] | every truncation and every bit flip of a small file |
//! | [`measure`] | a child process with its peak memory |
//! | [`scratch`] | a folder that vanishes |
//! | [`rng`] | SplitMix64: the same numbers on every machine, from one seed |

pub mod bounds;
pub mod collide;
pub mod corrupt;
pub mod keys;
#[cfg(unix)]
pub mod measure;
pub mod model;
pub mod nasty;
pub mod rng;
pub mod scratch;
