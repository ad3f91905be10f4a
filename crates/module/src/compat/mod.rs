//! RedisBloom's two layouts, bit by bit: what it would have in memory after the same commands is
//! here too. How its keys are hashed and its links sized is in `petal_interop::redisbloom`.
//!
//! Rows of bytes grow by a row, never in place, and are asked for before anything is changed: a
//! command that is refused has changed nothing.
//!
//! Source: captures of RedisBloom 2.8.20, and answers of the running program.

mod bloom;
mod cuckoo;
#[cfg(test)]
mod golden;
mod rows;

pub(crate) use bloom::Bloom;
pub(crate) use cuckoo::{Cuckoo, CuckooPlan};

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It does not grow, and is full.
    Full,
    /// It has as many layers as it may have, and is full.
    Layers,
    /// It would take more memory than it may.
    Limit,
    /// The memory is not there.
    Memory,
    /// RedisBloom writes no such bytes: what is wrong with them.
    Malformed(String),
    /// A chunk is for no place that there is.
    NoRow,
    /// A chunk is longer than the row it is for.
    TooLong,
}

impl From<petal_interop::Error> for Refused {
    fn from(error: petal_interop::Error) -> Self {
        Self::Malformed(error.to_string())
    }
}

fn malformed<T>(what: &str) -> Result<T, Refused> {
    Err(Refused::Malformed(what.to_owned()))
}
