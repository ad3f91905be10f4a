//! `PETAL.MERGE` and `PETAL.COMPARE`: unions and overlaps of filters.

use petal::math::Estimate;

use crate::bindings::command_spec::{
    Arg, ArgKind, CommandSpec, KeySpec, RO_ACCESS, RW_INSERT, first_key,
};
use crate::bindings::config::Settings;
use crate::bindings::{Call, Command, ReadKey, ReplayLoss, ReplyError};
use crate::commands::memory_limit;
use crate::error::FilterError;
use crate::filters::{StoredFilter, StoredType};

pub(in crate::commands) struct Merge;

impl Command for Merge {
    const REPLAY_LOSS: ReplayLoss = ReplayLoss::Sources;

    const SPEC: CommandSpec = CommandSpec {
        name: c"PETAL.MERGE",
        summary:
            c"Stores the union of filters in the destination; creates it if the key is missing. \
            All must have the same error rate, capacity and SEED. Filters of TYPE bloom \
            NONSCALING, counting and vector-quotient can be merged. After an error nothing is \
            changed",
        complexity: c"O(bytes of all sources)",
        flags: c"write deny-oom",
        keys: &[first_key(RW_INSERT), KeySpec { first: 2, last: -1, flags: RO_ACCESS }],
        args: &[
            Arg::new(c"destination", ArgKind::Key),
            Arg::new(c"source", ArgKind::Key).multiple(),
        ],
    };

    fn run(call: &Call<'_>) -> Result<(), ReplyError> {
        let limit = memory_limit(call, Settings::current().memory_limit);
        let mut destination = call.open_write(1);
        let exists = destination.filter().complete()?.is_some();
        // The destination is open for writing and must not be opened again; it has its own items.
        let others = (2..call.len()).filter(|at| !exists || call.arg(*at) != call.arg(1));
        let sources: Vec<ReadKey<'_>> = others.map(|at| call.open_read(at)).collect();
        let mut filters = Vec::with_capacity(sources.len());
        for source in &sources {
            filters.push(source.filter().complete()?.ok_or(ReplyError::NOT_FOUND)?);
        }
        let is_redisbloom = |stored: &StoredFilter| stored.stored_type() != StoredType::Petal;
        if filters.iter().any(|stored| is_redisbloom(stored))
            || destination.filter().complete()?.is_some_and(is_redisbloom)
        {
            return Err(NO_UNION);
        }
        let changed = match destination.filter_mut().complete()? {
            Some(stored) => stored.union(&filters, limit).map_err(merge_error)?,
            None => {
                let [first, others @ ..] = &*filters else { return Err(ReplyError::NOT_FOUND) };
                if first.memory_usage() > limit {
                    return Err(FilterError::MemoryLimit.into());
                }
                // With one source any type can be copied.
                let mut copy = first.copy().ok_or(FilterError::OutOfMemory)?;
                if !others.is_empty() {
                    copy.union(others, limit).map_err(merge_error)?;
                }
                destination.set(copy)?;
                true
            }
        };
        if changed {
            call.replicate_verbatim();
            call.notify(c"petal.merge", 1);
        }
        call.ok();
        Ok(())
    }
}

/// The error for filters in RedisBloom's layout.
const NO_UNION: ReplyError = ReplyError::Static(
    "ERR filters in RedisBloom's layout cannot be merged or compared: create them with \
     PETAL.RESERVE, NONSCALING and the same SEED",
);

/// Returns the reply for filters that cannot be merged.
fn merge_error(error: FilterError) -> ReplyError {
    match error {
        FilterError::Unsupported => ReplyError::Static(
            "ERR only filters of TYPE bloom NONSCALING, counting and vector-quotient with the same \
             SEED can be merged",
        ),
        FilterError::Full => ReplyError::Static("ERR the filter is too small for all items"),
        FilterError::Other(message) => {
            ReplyError::Message(format!("ERR {message} (PETAL.RESERVE with SEED)"))
        }
        error => error.into(),
    }
}

pub(in crate::commands) struct Compare;

impl Command for Compare {
    const SPEC: CommandSpec = CommandSpec {
        name: c"PETAL.COMPARE",
        summary: c"Estimates the number of items of two filters, of their union and intersection, \
            and the Jaccard index: each with the bounds of a 95 % interval; null if a filter is \
            too full. For filters of TYPE bloom NONSCALING and TYPE counting",
        complexity: c"O(bytes of both)",
        flags: c"readonly",
        keys: &[KeySpec { first: 1, last: 1, flags: RO_ACCESS }],
        args: &[Arg { name: c"left", ..Arg::KEY }, Arg { name: c"right", ..Arg::KEY }],
    };

    fn run(call: &Call<'_>) -> Result<(), ReplyError> {
        let (left, right) = (call.open_read(1), call.open_read(2));
        let left = left.filter().complete()?.ok_or(ReplyError::NOT_FOUND)?;
        let right = right.filter().complete()?.ok_or(ReplyError::NOT_FOUND)?;
        if left.stored_type() != StoredType::Petal || right.stored_type() != StoredType::Petal {
            return Err(NO_UNION);
        }
        let overlap = left.compare(right).map_err(|error| match error {
            FilterError::Unsupported => ReplyError::Static(
                "ERR only two filters of TYPE bloom NONSCALING or TYPE counting with the same SEED \
                 can be compared",
            ),
            error => merge_error(error),
        })?;
        let fields = [
            (c"left", overlap.left, f64::INFINITY),
            (c"right", overlap.right, f64::INFINITY),
            (c"union", overlap.union, f64::INFINITY),
            (c"intersection", overlap.intersection, f64::INFINITY),
            (c"jaccard", overlap.jaccard, 1.0),
        ];
        call.map(fields.len() + 1);
        for (name, estimate, max) in fields {
            call.simple(name);
            call.array(3);
            for number in bounds(estimate, max) {
                number.map_or_else(|| call.null(), |number| call.double(number));
            }
        }
        call.simple(c"folded");
        call.boolean(
            left.layers().first().map(|layer| layer.bits)
                != right.layers().first().map(|layer| layer.bits),
        );
        Ok(())
    }
}

/// Returns an estimate and the bounds of its 95 % interval; `None` if it is unknown.
fn bounds(Estimate { value, error }: Estimate, max: f64) -> [Option<f64>; 3] {
    if !value.is_finite() || !error.is_finite() {
        return [None; 3];
    }
    [value, (value - 2.0 * error).max(0.0), (value + 2.0 * error).min(max)].map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_stay_in_the_valid_range() {
        let of = |value, error, max| bounds(Estimate { value, error }, max);
        assert_eq!(of(10.0, 2.0, f64::INFINITY), [10.0, 6.0, 14.0].map(Some));
        assert_eq!(of(3.0, 2.0, f64::INFINITY), [3.0, 0.0, 7.0].map(Some));
        assert_eq!(of(0.5, 0.5, 1.0), [0.5, 0.0, 1.0].map(Some));
        assert_eq!(of(f64::INFINITY, f64::INFINITY, 1.0), [None; 3]);
        assert_eq!(of(0.0, f64::INFINITY, 1.0), [None; 3]);
    }
}
