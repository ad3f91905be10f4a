//! RedisBloom's two layouts, bit by bit: what it would have in memory after the same commands is
//! here too. How its keys are hashed and its links sized is in `petal_interop::redisbloom`.
//!
//! Rows of bytes grow by a row, never in place, and are asked for before anything is changed: a
//! command that is refused has changed nothing.
//!
//! Source: captures of RedisBloom 2.8.20, and answers of the running program.

mod bloom;
mod cuckoo;
#[cfg(any(test, fuzzing))]
pub(crate) mod exercise;
#[cfg(test)]
mod golden;
mod rows;
#[cfg(test)]
mod traces;

pub(crate) use bloom::Bloom;
pub(crate) use cuckoo::{Cuckoo, CuckooPlan, MOST_ANNOUNCED};
