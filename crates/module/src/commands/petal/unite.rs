//! `PETAL.MERGE` and `PETAL.COMPARE`: filters put together, and what they have in common.

use petal::rate::Estimate;

use super::{KEY, NOT_FOUND, PETAL};
use crate::about::{ASKED, About, Arg, ArgKind, Keys, PUT, key};
use crate::commands::limit;
use crate::config::Settings;
use crate::ffi::{Call, Command, Failure, Loses, Read};
use crate::object::{Kind, Object, Refusal};

pub(in crate::commands) struct Merge;

impl Command for Merge {
    const LOSES: Loses = Loses::Sources;

    const ABOUT: About = About {
        name: c"PETAL.MERGE",
        summary: c"Makes a filter that of all items in it and in others; a copy of the first of \
            them if it is not there. All must have been reserved alike, and with one SEED; bloom \
            NONSCALING and counting can be merged. If any cannot, nothing is changed",
        complexity: c"O(bytes of all sources)",
        since: c"0.1.0",
        arity: -3,
        flags: c"write deny-oom",
        keys: &[key(PUT), Keys { first: 2, last: -1, flags: ASKED }],
        args: &[
            Arg::new(c"destination", ArgKind::Key),
            Arg::new(c"source", ArgKind::Key).or_more(),
        ],
        categories: PETAL,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() < 3 {
            return Err(Failure::Arity);
        }
        let limit = limit(call, Settings::now().memory_limit);
        let mut destination = call.write(1);
        let there = destination.object().known()?.is_some();
        // A key that is open to be changed is never opened again. Its own items are in it.
        let others = (2..call.len()).filter(|at| !there || call.word(*at) != call.word(1));
        let sources: Vec<Read<'_>> = others.map(|at| call.read(at)).collect();
        let mut objects = Vec::with_capacity(sources.len());
        for source in &sources {
            objects.push(source.object().known()?.ok_or(NOT_FOUND)?);
        }
        let theirs = |object: &Object| object.kind() != Kind::Petal;
        if objects.iter().any(|object| theirs(object))
            || destination.object().known()?.is_some_and(theirs)
        {
            return Err(NO_UNION);
        }
        match destination.object_mut().known()? {
            Some(object) => object.unite(&objects, limit).map_err(merging)?,
            None => {
                let [first, others @ ..] = &*objects else { return Err(NOT_FOUND) };
                if first.memory_usage() > limit {
                    return Err(Refusal::Limit.into());
                }
                // What can only be copied need not be of a type that can be merged.
                let mut copy = first.copy().ok_or(Refusal::Memory)?;
                if !others.is_empty() {
                    copy.unite(others, limit).map_err(merging)?;
                }
                destination.set(copy)?;
            }
        }
        if !objects.is_empty() {
            call.replicate_same();
            call.notify(c"petal.merge", 1);
        }
        call.ok();
        Ok(())
    }
}

/// Why filters in RedisBloom's layout are neither merged nor compared.
const NO_UNION: Failure = Failure::Says(
    "ERR filters in RedisBloom's layout are neither merged nor compared: create them with \
     PETAL.RESERVE, NONSCALING and one SEED",
);

/// Why filters are not put together.
fn merging(refusal: Refusal) -> Failure {
    match refusal {
        Refusal::Type => Failure::Says(
            "ERR only filters that neither grow nor forget are merged: reserve them with \
             NONSCALING, or of TYPE counting, with one SEED",
        ),
        Refusal::Full => Failure::Says("ERR not all items fit"),
        Refusal::Other(what) => Failure::Told(format!("ERR {what} (PETAL.RESERVE with SEED)")),
        refusal => refusal.into(),
    }
}

pub(in crate::commands) struct Compare;

impl Command for Compare {
    const ABOUT: About = About {
        name: c"PETAL.COMPARE",
        summary: c"How many items two filters hold, either, and both, and their Jaccard index: \
            each an estimate and the bounds within which the truth is 19 times out of 20; nulls \
            where a filter is too full to tell. For filters that PETAL.MERGE merges",
        complexity: c"O(bytes of both)",
        since: c"0.1.0",
        arity: 3,
        flags: c"readonly",
        keys: &[Keys { first: 1, last: 1, flags: ASKED }],
        args: &[Arg { name: c"left", ..KEY }, Arg { name: c"right", ..KEY }],
        categories: PETAL,
    };

    fn run(call: &Call<'_>) -> Result<(), Failure> {
        if call.len() != 3 {
            return Err(Failure::Arity);
        }
        let (left, right) = (call.read(1), call.read(2));
        let left = left.object().known()?.ok_or(NOT_FOUND)?;
        let right = right.object().known()?.ok_or(NOT_FOUND)?;
        if left.kind() != Kind::Petal || right.kind() != Kind::Petal {
            return Err(NO_UNION);
        }
        let overlap = left.compare(right).map_err(|refusal| match refusal {
            Refusal::Type => Failure::Says(
                "ERR only two filters of one type that neither grow nor forget are compared: \
                 reserve them with NONSCALING, or of TYPE counting, with one SEED",
            ),
            refusal => merging(refusal),
        })?;
        let fields = [
            (c"left", overlap.left, f64::INFINITY),
            (c"right", overlap.right, f64::INFINITY),
            (c"union", overlap.union, f64::INFINITY),
            (c"intersection", overlap.intersection, f64::INFINITY),
            (c"jaccard", overlap.jaccard, 1.0),
        ];
        call.map(fields.len() + 1);
        for (name, estimate, most) in fields {
            call.simple(name);
            call.array(3);
            for number in bounds(estimate, most) {
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

/// An estimate, the least and the most that it may be; nothing if nothing is known.
fn bounds(Estimate { value, error }: Estimate, most: f64) -> [Option<f64>; 3] {
    if !value.is_finite() || !error.is_finite() {
        return [None; 3];
    }
    [value, (value - 2.0 * error).max(0.0), (value + 2.0 * error).min(most)].map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_stay_within_what_there_is() {
        let of = |value, error, most| bounds(Estimate { value, error }, most);
        assert_eq!(of(10.0, 2.0, f64::INFINITY), [10.0, 6.0, 14.0].map(Some));
        assert_eq!(of(3.0, 2.0, f64::INFINITY), [3.0, 0.0, 7.0].map(Some));
        assert_eq!(of(0.5, 0.5, 1.0), [0.5, 0.0, 1.0].map(Some));
        assert_eq!(of(f64::INFINITY, f64::INFINITY, 1.0), [None; 3]);
        assert_eq!(of(0.0, f64::INFINITY, 1.0), [None; 3]);
    }
}
