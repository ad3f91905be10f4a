//! Every strategy compared with the naive models, with budgets so small that inputs of a few
//! kilobytes spill, split and overflow.

mod progress;

use std::sync::atomic::{AtomicU64, Ordering};

use super::approximate::ApproximateJob;
use super::exact::{ExactJob, Journal};
use super::planning::Strategy;
use super::report::Report;
use super::set_semantics::SetOp;
use crate::fingerprint::LineHasher;
use crate::input::{Input, Source};
use crate::memory::Budget;
use crate::output::{Outputs, Printer};
use crate::progress::Progress;
use crate::temp::TempDir;
use petal_testkit::line_files::{FileSpec, overlapping_files};
use petal_testkit::model;
use petal_testkit::rng::Rng;
use petal_testkit::scratch::Scratch;

const OPS: [SetOp; 9] = [
    SetOp::SymDiff,
    SetOp::Common,
    SetOp::AtLeast(1),
    SetOp::AtLeast(2),
    SetOp::Diff,
    SetOp::Dedup,
    SetOp::DedupLast,
    SetOp::Duplicates,
    SetOp::Unique,
];

/// Returns the answer of the naive model.
fn expect(op: SetOp, files: &[Vec<u8>], delimiter: u8) -> Vec<u8> {
    let all: Vec<&[u8]> = files.iter().map(Vec::as_slice).collect();
    match op {
        SetOp::Common => model::common(all[0], &all[1..], delimiter),
        SetOp::AtLeast(number) => model::at_least(number.into(), all[0], &all[1..], delimiter),
        SetOp::SymDiff => model::symdiff(all[0], &joined(&all[1..], delimiter), delimiter),
        SetOp::Diff => model::diff(all[0], &all[1..], delimiter),
        SetOp::Dedup => model::dedup(&all, delimiter),
        SetOp::DedupLast => model::dedup_last(&all, delimiter),
        SetOp::Duplicates => model::duplicates(&all, delimiter),
        SetOp::Unique => model::unique(&all, delimiter),
    }
}

/// Returns whether the other files are inputs of their own.
fn separate(op: SetOp) -> bool {
    op.takes_others() && !op.prints_others()
}

/// Returns the lines of several files as one.
fn joined(files: &[&[u8]], delimiter: u8) -> Vec<u8> {
    let lines = files.iter().flat_map(|file| model::lines(file, delimiter));
    model::join(lines, delimiter)
}

fn budget(work: u64, workers: usize, chunk: usize) -> Budget {
    Budget { limit: 4 * work, work, longest_line: 6000, workers, chunk, decoder: 1 << 20, rows: 0 }
}

/// Returns inputs: files, or streams where `streams` has a bit set.
fn inputs(scratch: &Scratch, files: &[Vec<u8>], streams: u32) -> Vec<Input> {
    let input = |(i, bytes): (usize, &Vec<u8>)| {
        if streams >> i & 1 == 1 {
            return crate::input::trickle(bytes.clone());
        }
        let path = scratch.write(&format!("{i}"), bytes);
        Input::open_unchecked(&[Source::from_arg(path)], 0).unwrap().swap_remove(0)
    };
    files.iter().enumerate().map(input).collect()
}

struct Setting {
    op: SetOp,
    budget: Budget,
    strategy: Option<Strategy>,
    delimiter: u8,
    streams: u32,
    print: bool,
}

fn run(files: &[Vec<u8>], setting: &Setting) -> (Vec<u8>, Report) {
    run_with(files, setting, &())
}

fn run_with(files: &[Vec<u8>], setting: &Setting, progress: &dyn Progress) -> (Vec<u8>, Report) {
    let scratch = Scratch::new();
    let Setting { op, budget, strategy, delimiter, streams, print } = *setting;
    let mut first = inputs(&scratch, files, streams);
    let others = if separate(op) { first.split_off(1) } else { vec![] };
    let op = op.with_others(others.len());
    let temp = TempDir::new(scratch.path());
    let hasher = LineHasher::random().unwrap();
    let job = ExactJob {
        op,
        budget,
        delimiter,
        temp,
        progress,
        strategy,
        hasher,
        journal: None,
        boundary: 1,
    };
    let mut out = Vec::new();
    let sinks = if print { Outputs::to(&mut out) } else { Outputs::default() };
    let mut printer = Printer::new(sinks, delimiter, budget.chunk);
    let report = job.run(first, others, &mut printer).unwrap();
    (out, report)
}

#[test]
fn every_strategy_budget_and_thread_count_equals_the_model() {
    let mut rng = Rng::new(1);
    for seed in 0..150 {
        let delimiter = if seed % 5 == 0 { 0 } else { b'\n' };
        let files = 1 + (seed % 4) as usize;
        let files = overlapping_files(seed, FileSpec { files, delimiter, ..FileSpec::small() });
        for op in OPS {
            let expected = expect(op, &files, delimiter);
            let count = model::lines(&expected, delimiter).len() as u64;
            for strategy in
                [None, Some(Strategy::Memory), Some(Strategy::Narrow), Some(Strategy::Partition)]
            {
                let work = *rng.pick(&[2_000, 6_000, 20_000, 1 << 20]);
                let workers = *rng.pick(&[1, 2, 4]);
                let chunk = *rng.pick(&[64, 500, 4096, 1 << 16]);
                let streams = if rng.one_in(2) { 0 } else { rng.next_u64() as u32 };
                let print = !rng.one_in(4);
                let budget = budget(work, workers, chunk);
                let setting = Setting { op, budget, strategy, delimiter, streams, print };
                let (out, report) = run(&files, &setting);
                let context = format!("seed {seed} {op:?} {strategy:?} {budget:?} {streams:b}");
                assert_eq!(report.kept, count, "{context}");
                if print {
                    assert!(out == expected, "{context}: {report:?}");
                }
            }
        }
    }
}

/// Returns files of `lines` lines of which a share is in both.
fn overlapping(lines: u64, shared: f64) -> Vec<Vec<u8>> {
    let common = (lines as f64 * shared) as u64;
    let text = |side: u64| {
        let line = |i: u64| {
            // A permutation, so that common lines are all over the file.
            let i = (i * 7919 + side * 31) % lines;
            if i < common { format!("c{i}\n") } else { format!("{side}-{i}\n") }
        };
        (0..lines).map(line).collect::<String>().into_bytes()
    };
    vec![text(1), text(2)]
}

#[test]
fn every_overlap_and_strategy_equals_the_model() {
    for shared in [0.0, 0.01, 0.1, 0.9, 1.0] {
        let files = overlapping(20_011, shared);
        for op in OPS {
            let expected = expect(op, &files, b'\n');
            for strategy in
                [None, Some(Strategy::Memory), Some(Strategy::Narrow), Some(Strategy::Partition)]
            {
                for (work, workers) in [(30_000, 2), (100_000, 1), (4 << 20, 4)] {
                    let budget = budget(work, workers, 4096);
                    let (delimiter, streams, print) = (b'\n', 0, true);
                    let setting = Setting { op, budget, strategy, delimiter, streams, print };
                    let (out, report) = run(&files, &setting);
                    assert!(out == expected, "{shared} {op:?} {strategy:?} {work}: {report:?}");
                    if work < 1 << 20 && strategy == Some(Strategy::Partition) {
                        assert!(report.spilled > 0, "{report:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn the_cost_model_narrows_at_low_overlap_and_partitions_at_high() {
    let chosen = |lines: u64, shared: f64, work: u64| {
        let (op, budget) = (SetOp::Common, budget(work, 2, 1 << 16));
        let files = overlapping(lines, shared);
        let (delimiter, strategy, streams, print) = (b'\n', None, 0, false);
        run(&files, &Setting { op, budget, strategy, delimiter, streams, print }).1.strategy
    };
    assert_eq!(chosen(400_009, 0.0, 400_000), "narrow");
    assert_eq!(chosen(400_009, 0.05, 400_000), "narrow");
    assert_eq!(chosen(400_009, 1.0, 400_000), "partition");
    let bits = "a filter of 0.2 bits a key narrows nothing";
    assert_eq!(chosen(400_009, 0.05, 10_000), "partition", "{bits}");
    assert_eq!(chosen(400_009, 0.05, 64 << 20), "narrow");
    assert_eq!(chosen(4001, 0.05, 64 << 20), "memory");
}

/// `common` and `diff` read the first input twice and the other once; `dedup` and `symdiff` read
/// everything twice.
#[test]
fn narrow_decides_while_it_reads_where_the_candidates_fit() {
    let files = overlapping(20_011, 0.25);
    let both = files.iter().map(|file| file.len() as u64).sum::<u64>();
    let first = files[0].len() as u64;
    for (op, bytes) in [
        (SetOp::Common, both + first),
        (SetOp::Diff, both + first),
        (SetOp::Dedup, 2 * both),
        (SetOp::SymDiff, 2 * both),
    ] {
        for print in [false, true] {
            let (delimiter, streams, strategy) = (b'\n', 0, Some(Strategy::Narrow));
            let budget = budget(4 << 20, 2, 4096);
            let setting = Setting { op, budget, strategy, delimiter, streams, print };
            let report = run(&files, &setting).1;
            assert_eq!((report.bytes_read, &*report.strategy), (bytes, "narrow"), "{op:?}");
            assert!(report.false_found != Some(0), "{report:?}");
        }
    }
}

/// Work is counted in bytes and records, which do not depend on the machine.
#[test]
fn more_memory_is_never_more_work() {
    let files = overlapping(200_003, 0.25);
    for op in [SetOp::Common, SetOp::Diff, SetOp::SymDiff, SetOp::Dedup] {
        let mut before = f64::INFINITY;
        for doubled in 0..8 {
            let (delimiter, streams, print, strategy) = (b'\n', 0, true, None);
            let budget = budget(640_000 << doubled, 2, 1 << 15);
            let setting = Setting { op, budget, strategy, delimiter, streams, print };
            let report = run(&files, &setting).1;
            // The cost model's nanoseconds of a byte of a short line, and of a record.
            let work = report.bytes_read as f64 * 1.5 + report.records as f64 * 65.0;
            assert!(work <= before * 1.02, "{op:?} {doubled}: {work} {before} {report:?}");
            before = work;
        }
    }
}

#[test]
fn copies_of_one_line_need_no_memory() {
    // Many copies of few lines: partitions that cannot be split further.
    let many = "same\n".repeat(300_000) + "other\n";
    let files = vec![many.clone().into_bytes(), many.into_bytes()];
    for op in OPS {
        let expected = expect(op, &files, b'\n');
        for strategy in [None, Some(Strategy::Narrow), Some(Strategy::Partition)] {
            let budget = budget(20_000, 2, 4096);
            let (delimiter, streams, print) = (b'\n', 0, true);
            let setting = Setting { op, budget, strategy, delimiter, streams, print };
            assert!(run(&files, &setting).0 == expected, "{op:?} {strategy:?}");
        }
    }
}

#[test]
fn line_longer_than_the_limit_is_an_error() {
    let scratch = Scratch::new();
    for (over, streams) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        for (before, chunk, workers) in [(0, 4096, 1), (9000, 500, 4), (9000, 1 << 16, 2)] {
            let long = [b"x".repeat(6000 + over), b"\nb\n".to_vec()].concat();
            let file = [b"some line\n".repeat(before), long].concat();
            let first = inputs(&scratch, &[file], streams);
            let job = ExactJob {
                op: SetOp::Dedup,
                budget: budget(1 << 20, workers, chunk),
                delimiter: b'\n',
                temp: TempDir::new(scratch.path()),
                progress: &(),
                strategy: None,
                hasher: LineHasher::random().unwrap(),
                journal: None,
                boundary: 1,
            };
            let result = job.run(first, vec![], &mut Printer::new(Outputs::default(), b'\n', 4096));
            match result {
                Ok(report) => assert!(over == 0 && report.kept == 2 + u64::from(before > 0)),
                Err(error) => {
                    assert!(over == 1 && error.to_string().contains("is longer than"), "{error}");
                    assert!(error.to_string().contains(&format!("byte {}", before * 10)));
                }
            }
        }
    }
}

#[test]
fn approximate_common_misses_no_line_and_diff_prints_no_wrong_line() {
    let scratch = Scratch::new();
    for seed in 0..200 {
        let files = overlapping_files(seed, FileSpec::small());
        for op in [SetOp::Common, SetOp::Diff, SetOp::Dedup] {
            let streams = if seed % 3 == 0 { seed as u32 / 3 } else { 0 };
            let mut first = inputs(&scratch, &files, streams);
            let others = if separate(op) { first.split_off(1) } else { vec![] };
            let budget = budget(*Rng::new(seed).pick(&[600, 4000, 1 << 18]), 2, 4096);
            let (delimiter, hasher) = (b'\n', LineHasher::random().unwrap());
            let (keys, rate) = (Some(300), None);
            let job = ApproximateJob {
                op,
                budget,
                delimiter,
                progress: &(),
                hasher,
                capacity: keys,
                fpr: rate,
            };
            let mut out = Vec::new();
            let mut printer = Printer::new(Outputs::to(&mut out), delimiter, 4096);
            let report = job.run(&first, &others, &mut printer).unwrap();
            let expected = expect(op, &files, delimiter);
            let expected: Vec<_> = model::lines(&expected, delimiter);
            let lines: Vec<_> = model::lines(&out, delimiter);
            let within = |few: &[&[u8]], many: &[&[u8]]| {
                let mut many = many.iter();
                few.iter().all(|line| many.any(|other| other == line))
            };
            if op == SetOp::Common {
                assert!(report.repeats_possible || within(&expected, &lines), "{seed}");
            } else {
                assert!(within(&lines, &expected), "{seed} {op:?}");
            }
            assert_eq!(report.kept, lines.len() as u64);
        }
    }
}

/// Every filter of the chain adds wrong lines; the estimate must include those of the first filter,
/// which the second contains.
#[test]
fn estimate_of_wrong_lines_covers_the_whole_chain() {
    let scratch = Scratch::new();
    let lines = |from: u32, to: u32| {
        (from..to).map(|i| format!("line {i}\n")).collect::<String>().into_bytes()
    };
    // A = B2; B1 has only a tenth of its lines, and others.
    let files =
        [lines(0, 10_000), [lines(0, 1000), lines(20_000, 29_000)].concat(), lines(0, 10_000)];
    let (mut wrong, mut context) = (0.0, 0.0);
    let runs = 10;
    for _ in 0..runs {
        let mut first = inputs(&scratch, &files, 0);
        let others = first.split_off(1);
        let (budget, delimiter) = (budget(20_000, 1, 4096), b'\n');
        let (hasher, keys, rate) = (LineHasher::random().unwrap(), Some(10_000), None);
        let op = SetOp::Common;
        let job = ApproximateJob {
            op,
            budget,
            delimiter,
            progress: &(),
            hasher,
            capacity: keys,
            fpr: rate,
        };
        let report = job
            .run(&first, &others, &mut Printer::new(Outputs::default(), delimiter, 4096))
            .unwrap();
        wrong += report.kept as f64 - 1000.0;
        context += report.wrong;
    }
    // The number of wrong lines is a sum of independent rare events: its standard deviation is its
    // root.
    assert!(wrong > 1000.0, "the filters are too good to show anything: {wrong}");
    assert!((wrong - context).abs() < 5.0 * wrong.sqrt(), "{wrong} wrong, {context} context");
}

/// The estimate of wrong lines is right within its standard error, for any overlap and any
/// repetition of lines.
#[test]
fn estimate_of_wrong_lines_is_within_its_standard_error() {
    type Ranges = &'static [(u32, u32)];
    // For each input the ranges of numbers of its lines, the first input first.
    let shapes: [(&str, &[Ranges]); 8] = [
        ("two, half of A in B", &[&[(0, 10_000)], &[(5000, 15_000)]]),
        (
            "two, misses repeat",
            &[&[(0, 3000), (0, 3000), (0, 3000), (4000, 9000)], &[(4000, 14_000)]],
        ),
        (
            "two, common lines repeat",
            &[&[(0, 5000), (5000, 6000), (5000, 6000)], &[(5000, 15_000)]],
        ),
        ("A has the strays", &[&[(0, 10_000)], &[(0, 1000), (20_000, 29_000)], &[(0, 10_000)]]),
        ("A has none of them", &[&[(0, 10_000)], &[(0, 9000)], &[(5000, 9000), (30_000, 36_000)]]),
        ("A has a fifth of them", &[&[(0, 9000)], &[(0, 5000)], &[(0, 7000), (30_000, 38_000)]]),
        (
            "strays repeat",
            &[&[(0, 8000)], &[(0, 2000)], &[(0, 2000), (4000, 6000), (4000, 6000), (4000, 6000)]],
        ),
        (
            "four",
            &[&[(0, 9000)], &[(0, 6000)], &[(0, 3000), (5000, 9000)], &[(0, 2000), (4000, 9000)]],
        ),
    ];
    let scratch = Scratch::new();
    for (shape, ranges) in shapes {
        let numbers = |ranges: Ranges| ranges.iter().flat_map(|&(from, to)| from..to);
        let text = |ranges: &Ranges| {
            numbers(ranges).map(|i| format!("line {i}\n")).collect::<String>().into_bytes()
        };
        let files: Vec<_> = ranges.iter().map(text).collect();
        let mut right: std::collections::HashSet<_> = numbers(ranges[0]).collect();
        for other in &ranges[1..] {
            right.retain(|line| numbers(other).any(|other| other == *line));
        }
        let runs = 12;
        let mut squares = 0.0;
        for _ in 0..runs {
            let mut first = inputs(&scratch, &files, 0);
            let others = first.split_off(1);
            // Samples of 1024 hashes, filters with a rate of one tenth.
            let (budget, delimiter, op) = (budget(400_000, 1, 4096), b'\n', SetOp::Common);
            let (hasher, keys, rate) = (LineHasher::random().unwrap(), None, Some(0.1));
            let job = ApproximateJob {
                op,
                budget,
                delimiter,
                progress: &(),
                hasher,
                capacity: keys,
                fpr: rate,
            };
            let mut printer = Printer::new(Outputs::default(), delimiter, 4096);
            let report = job.run(&first, &others, &mut printer).unwrap();
            assert!(!report.repeats_possible, "{shape}");
            let (context, error) = (report.wrong, report.wrong_error);
            let wrong = report.kept as f64 - right.len() as f64;
            // The error is not trivially large.
            assert!(
                context > 50.0 && error < 2.0 * context.sqrt() + context / 8.0,
                "{shape}: {context} {error}"
            );
            squares += ((wrong - context) / error).powi(2);
        }
        // Each square is at most 1 on average, with a variance of 2.
        let runs = f64::from(runs);
        assert!(squares < runs + 5.0 * (2.0 * runs).sqrt(), "{shape}: {squares} in {runs} runs");
    }
}

/// Ends a job, as a kill would, at the start of the phase with this number.
struct KillAt(AtomicU64);

impl Progress for KillAt {
    fn phase(&self, _: &'static str, _: Option<u64>) {
        if self.0.fetch_sub(1, Ordering::Relaxed) == 0 {
            panic!("killed");
        }
    }
}

#[test]
fn job_killed_in_any_phase_resumes_with_the_same_output() {
    std::panic::set_hook(Box::new(|info| {
        if info.payload_as_str() != Some("killed") {
            eprintln!("{info}");
        }
    }));
    let mut rng = Rng::new(11);
    let mut max = 0;
    for seed in 0..60 {
        let files = overlapping_files(
            seed,
            FileSpec { files: 1 + (seed % 4) as usize, ..FileSpec::small() },
        );
        for op in OPS {
            let expected = expect(op, &files, b'\n');
            let strategy = *rng.pick(&[Strategy::Narrow, Strategy::Partition]);
            let budget = budget(*rng.pick(&[2_000, 20_000, 1 << 20]), 2, 500);
            let scratch = Scratch::new();
            let dir = scratch.path().join("work");
            let sources: Vec<_> = (0..files.len())
                .map(|i| Source::from_arg(scratch.write(&i.to_string(), &files[i])))
                .collect();
            let attempt = |kill: u64, resume: bool| {
                let mut all = Input::open_unchecked(&sources, 0)?;
                let journal = Journal::open(
                    &dir,
                    resume,
                    1 << 20,
                    op,
                    b'\n',
                    "line".to_owned(),
                    &mut all,
                    1,
                    &(),
                )?;
                let mut first = all;
                let others = first.split_off(1);
                let others = if separate(op) {
                    others
                } else {
                    first.extend(others);
                    vec![]
                };
                let job = ExactJob {
                    op: op.with_others(others.len()),
                    budget,
                    delimiter: b'\n',
                    temp: TempDir::new(scratch.path()),
                    progress: &KillAt(AtomicU64::new(kill)),
                    strategy: Some(strategy),
                    hasher: journal.hasher().map_or_else(LineHasher::random, Ok)?,
                    journal: Some(&journal),
                    boundary: 1,
                };
                let mut out = Vec::new();
                let mut printer = Printer::new(Outputs::to(&mut out), b'\n', budget.chunk);
                let report = job.run(first, others, &mut printer)?;
                Ok::<_, crate::Error>((out, report))
            };
            let context = format!("seed {seed} {op:?} {strategy:?} {budget:?}");
            // Each attempt gets one phase further than the previous one.
            let mut resumed = 0;
            for kill in 0..40 {
                let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    attempt(kill % 2, kill > 0)
                }));
                if let Ok(result) = ended {
                    let (out, report) = result.unwrap_or_else(|e| panic!("{context}: {e}"));
                    assert!(out == expected, "{context} after {kill} kills: {report:?}");
                    assert!(report.resumed >= resumed, "{context}");
                    resumed = report.resumed;
                    break;
                }
                assert!(kill < 39, "{context}: it never ends");
            }
            if resumed > 0 {
                let error = attempt(99, false).unwrap_err();
                assert!(error.to_string().contains("an unfinished job; set resume"), "{error}");
                scratch.write("0", b"another\nfile\n");
                match attempt(99, true) {
                    Err(error) => assert!(error.to_string().contains("changed since"), "{error}"),
                    // An empty file can only have grown.
                    Ok((out, _)) => assert!(files[0].is_empty() && out == expected, "{context}"),
                }
            }
            max = max.max(resumed);
            crate::forget_work(&dir);
            assert!(!dir.exists());
        }
    }
    assert!(max >= 5, "{max}");
}
