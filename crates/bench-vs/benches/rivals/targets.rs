//! What petal is held to beside its rivals and the limit.

use petal_bench::contest::verdict::{Pick, Target, Wants};
use petal_bench::contest::{Form, Kind, Operation};

const ALL: &[Operation] = &Operation::ALL;
const QUERIES: &[Operation] = &[Operation::Absent, Operation::Present, Operation::Mixed];
const ABSENT_PRESENT: &[Operation] = &[Operation::Absent, Operation::Present];
const INSERT: &[Operation] = &[Operation::Insert];

const BATCH: Pick = Pick::new("petal", 0.01, Kind::Hash, Form::Batch);
const SINGLE: Pick = Pick::new("petal", 0.01, Kind::Hash, Form::Single);
const NUMBERS: Pick = Pick::new("petal", 0.01, Kind::Number, Form::Batch);
const CLASSIC: Pick = Pick::new("petal classic", 0.01, Kind::Number, Form::Batch);
const SPLIT_BLOCK: Pick = Pick::new("sbbf-rs-safe", 0.01, Kind::Hash, Form::Single);
const FASTBLOOM: Pick = Pick::new("fastbloom foldhash", 0.01, Kind::Number, Form::Single);
const LINE_READS: Pick =
    Pick { filter: "line reads*", target: None, kind: Kind::Hash, form: Form::Batch };

const IN_CACHE: &[u64] = &[100_000, 1_000_000];
const MOST_BITS: Option<f64> = Some(10.1);

pub(crate) const TARGETS: [Target; 6] = [
    Target {
        ours: BATCH,
        theirs: SPLIT_BLOCK,
        numbers: IN_CACHE,
        operations: ALL,
        wants: Wants::AtMost(0.75),
        bits: MOST_BITS,
    },
    Target {
        ours: SINGLE,
        theirs: SPLIT_BLOCK,
        numbers: IN_CACHE,
        operations: ALL,
        wants: Wants::AtMost(1.0),
        bits: MOST_BITS,
    },
    Target {
        ours: NUMBERS,
        theirs: FASTBLOOM,
        numbers: &[1_000_000, 50_000_000],
        operations: ABSENT_PRESENT,
        wants: Wants::TimesFaster(4.5),
        bits: None,
    },
    Target {
        ours: NUMBERS,
        theirs: FASTBLOOM,
        numbers: &[1_000_000, 50_000_000],
        operations: INSERT,
        wants: Wants::TimesFaster(6.0),
        bits: None,
    },
    Target {
        ours: BATCH,
        theirs: LINE_READS,
        numbers: &[50_000_000, 400_000_000],
        operations: QUERIES,
        wants: Wants::AtMost(1.05),
        bits: None,
    },
    Target {
        ours: CLASSIC,
        theirs: FASTBLOOM,
        numbers: &[50_000_000],
        operations: ALL,
        wants: Wants::TimesFaster(2.0),
        bits: None,
    },
];
