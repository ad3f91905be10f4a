//! Every strategy against the naive models, with budgets so small that everything spills,
//! splits and overflows on inputs of a few kilobytes.

use std::sync::atomic::{AtomicU64, Ordering};

use petal_testkit::model;
use petal_testkit::nasty::{Recipe, related};
use petal_testkit::rng::Rng;
use petal_testkit::scratch::Scratch;

use crate::approx::Approx;
use crate::budget::Budget;
use crate::exact::{Exact, Journal};
use crate::fingerprint::Hashes;
use crate::input::{Input, Source, Temp};
use crate::judge::Verb;
use crate::plan::Strategy;
use crate::print::{Printer, Sinks};
use crate::progress::Progress;
use crate::report::Report;

const VERBS: [Verb; 3] = [Verb::Common, Verb::Diff, Verb::Dedup];

/// The answer of the naive model.
fn expect(verb: Verb, files: &[Vec<u8>], delimiter: u8) -> Vec<u8> {
    let all: Vec<&[u8]> = files.iter().map(Vec::as_slice).collect();
    match verb {
        Verb::Common => model::common(all[0], &all[1..], delimiter),
        Verb::Diff => model::diff(all[0], &all[1..], delimiter),
        Verb::Dedup => model::dedup(&all, delimiter),
    }
}

fn budget(work: u64, workers: usize, chunk: usize) -> Budget {
    Budget { cap: 4 * work, work, longest_line: 6000, workers, chunk, decoder: 1 << 20 }
}

/// Inputs for a verb: files, or streams where `streams` has a bit set.
fn inputs(scratch: &Scratch, files: &[Vec<u8>], streams: u32) -> Vec<Input> {
    let input = |(i, bytes): (usize, &Vec<u8>)| {
        if streams >> i & 1 == 1 {
            return Input::trickle(bytes.clone());
        }
        let path = scratch.write(&format!("{i}"), bytes);
        Input::look_at(&[Source::from_arg(path)], 0).unwrap().swap_remove(0)
    };
    files.iter().enumerate().map(input).collect()
}

struct Setting {
    verb: Verb,
    budget: Budget,
    strategy: Option<Strategy>,
    delimiter: u8,
    streams: u32,
    print: bool,
}

fn run(files: &[Vec<u8>], setting: &Setting) -> (Vec<u8>, Report) {
    let scratch = Scratch::new();
    let Setting { verb, budget, strategy, delimiter, streams, print } = *setting;
    let mut first = inputs(&scratch, files, streams);
    let others = if verb == Verb::Dedup { vec![] } else { first.split_off(1) };
    let verb = verb.with_others(others.len());
    let temp = Temp::new(scratch.path());
    let hashes = Hashes::random().unwrap();
    let job =
        Exact { verb, budget, delimiter, temp, progress: &(), strategy, hashes, journal: None };
    let mut out = Vec::new();
    let sinks = if print { Sinks::to(&mut out) } else { Sinks::default() };
    let mut printer = Printer::new(sinks, delimiter, budget.chunk);
    let report = job.run(first, others, &mut printer).unwrap();
    (out, report)
}

#[test]
fn every_strategy_budget_and_worker_count_equals_the_model() {
    let mut rng = Rng::new(1);
    for seed in 0..400 {
        let delimiter = if seed % 5 == 0 { 0 } else { b'\n' };
        let files = 1 + (seed % 4) as usize;
        let files = related(seed, Recipe { files, delimiter, ..Recipe::small() });
        for verb in VERBS {
            let expected = expect(verb, &files, delimiter);
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
                let setting = Setting { verb, budget, strategy, delimiter, streams, print };
                let (out, report) = run(&files, &setting);
                let told = format!("seed {seed} {verb:?} {strategy:?} {budget:?} {streams:b}");
                assert_eq!(report.kept, count, "{told}");
                if print {
                    assert!(out == expected, "{told}: {report:?}");
                }
            }
        }
    }
}

/// Files of `lines` lines of which a share is in both.
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
fn every_overlap_with_every_strategy() {
    for shared in [0.0, 0.01, 0.1, 0.9, 1.0] {
        let files = overlapping(20_011, shared);
        for verb in VERBS {
            let expected = expect(verb, &files, b'\n');
            for strategy in
                [None, Some(Strategy::Memory), Some(Strategy::Narrow), Some(Strategy::Partition)]
            {
                for (work, workers) in [(30_000, 2), (100_000, 1), (4 << 20, 4)] {
                    let budget = budget(work, workers, 4096);
                    let (delimiter, streams, print) = (b'\n', 0, true);
                    let setting = Setting { verb, budget, strategy, delimiter, streams, print };
                    let (out, report) = run(&files, &setting);
                    assert!(out == expected, "{shared} {verb:?} {strategy:?} {work}: {report:?}");
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
        let (verb, budget) = (Verb::Common, budget(work, 2, 1 << 16));
        let files = overlapping(lines, shared);
        let (delimiter, strategy, streams, print) = (b'\n', None, 0, false);
        run(&files, &Setting { verb, budget, strategy, delimiter, streams, print }).1.strategy
    };
    assert_eq!(chosen(400_009, 0.0, 400_000), "narrow");
    assert_eq!(chosen(400_009, 0.05, 400_000), "narrow");
    assert_eq!(chosen(400_009, 1.0, 400_000), "partition");
    let bits = "a filter of 0.2 bits a key narrows nothing";
    assert_eq!(chosen(400_009, 0.05, 10_000), "partition", "{bits}");
    assert_eq!(chosen(400_009, 0.05, 64 << 20), "narrow");
    assert_eq!(chosen(4001, 0.05, 64 << 20), "memory");
}

#[test]
fn copies_of_one_line_need_no_room() {
    // Far more lines than fit, few distinct: partitions that cannot be split further.
    let many = "same\n".repeat(300_000) + "other\n";
    let files = vec![many.clone().into_bytes(), many.into_bytes()];
    for verb in VERBS {
        let expected = expect(verb, &files, b'\n');
        for strategy in [None, Some(Strategy::Narrow), Some(Strategy::Partition)] {
            let budget = budget(20_000, 2, 4096);
            let (delimiter, streams, print) = (b'\n', 0, true);
            let setting = Setting { verb, budget, strategy, delimiter, streams, print };
            assert!(run(&files, &setting).0 == expected, "{verb:?} {strategy:?}");
        }
    }
}

#[test]
fn a_line_over_the_limit_is_an_error_and_one_at_it_is_not() {
    let scratch = Scratch::new();
    for (over, streams) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        for (before, chunk, workers) in [(0, 4096, 1), (9000, 500, 4), (9000, 1 << 16, 2)] {
            let long = [b"x".repeat(6000 + over), b"\nb\n".to_vec()].concat();
            let file = [b"some line\n".repeat(before), long].concat();
            let first = inputs(&scratch, &[file], streams);
            let job = Exact {
                verb: Verb::Dedup,
                budget: budget(1 << 20, workers, chunk),
                delimiter: b'\n',
                temp: Temp::new(scratch.path()),
                progress: &(),
                strategy: None,
                hashes: Hashes::random().unwrap(),
                journal: None,
            };
            let result = job.run(first, vec![], &mut Printer::new(Sinks::default(), b'\n', 4096));
            match result {
                Ok(report) => assert!(over == 0 && report.kept == 2 + u64::from(before > 0)),
                Err(error) => {
                    assert!(over == 1 && error.is_line_too_long(), "{error}");
                    assert!(error.to_string().contains(&format!("byte {}", before * 10)));
                }
            }
        }
    }
}

#[test]
fn approximate_common_loses_nothing_and_diff_invents_nothing() {
    let scratch = Scratch::new();
    for seed in 0..200 {
        let files = related(seed, Recipe::small());
        for verb in VERBS {
            let streams = if seed % 3 == 0 { seed as u32 / 3 } else { 0 };
            let mut first = inputs(&scratch, &files, streams);
            let others = if verb == Verb::Dedup { vec![] } else { first.split_off(1) };
            let budget = budget(*Rng::new(seed).pick(&[600, 4000, 1 << 18]), 2, 4096);
            let (delimiter, hashes) = (b'\n', Hashes::random().unwrap());
            let (keys, rate) = (Some(300), None);
            let job = Approx { verb, budget, delimiter, progress: &(), hashes, keys, rate };
            let mut out = Vec::new();
            let mut printer = Printer::new(Sinks::to(&mut out), delimiter, 4096);
            let report = job.run(&first, &others, &mut printer).unwrap();
            let expected = expect(verb, &files, delimiter);
            let expected: Vec<_> = model::lines(&expected, delimiter);
            let lines: Vec<_> = model::lines(&out, delimiter);
            let within = |few: &[&[u8]], many: &[&[u8]]| {
                let mut many = many.iter();
                few.iter().all(|line| many.any(|other| other == line))
            };
            if verb == Verb::Common {
                assert!(report.repeats_possible || within(&expected, &lines), "{seed}");
            } else {
                assert!(within(&lines, &expected), "{seed} {verb:?}");
            }
            assert_eq!(report.kept, lines.len() as u64);
        }
    }
}

/// Wrong lines come of every filter in the chain; the estimate must count those of the first,
/// which the second takes for right.
#[test]
fn the_estimate_of_wrong_lines_knows_the_whole_chain() {
    let scratch = Scratch::new();
    let lines = |from: u32, to: u32| {
        (from..to).map(|i| format!("line {i}\n")).collect::<String>().into_bytes()
    };
    // A = B2; B1 has only a tenth of them, and others.
    let files =
        [lines(0, 10_000), [lines(0, 1000), lines(20_000, 29_000)].concat(), lines(0, 10_000)];
    let (mut wrong, mut told) = (0.0, 0.0);
    let runs = 10;
    for _ in 0..runs {
        let mut first = inputs(&scratch, &files, 0);
        let others = first.split_off(1);
        let (budget, delimiter) = (budget(20_000, 1, 4096), b'\n');
        let (hashes, keys, rate) = (Hashes::random().unwrap(), Some(10_000), None);
        let verb = Verb::Common;
        let job = Approx { verb, budget, delimiter, progress: &(), hashes, keys, rate };
        let report =
            job.run(&first, &others, &mut Printer::new(Sinks::default(), delimiter, 4096)).unwrap();
        wrong += report.kept as f64 - 1000.0;
        told += report.wrong;
    }
    // The count of wrong lines is a sum of independent rare events: its spread is its root.
    assert!(wrong > 1000.0, "the filters are too good to show anything: {wrong}");
    assert!((wrong - told).abs() < 5.0 * wrong.sqrt(), "{wrong} wrong, {told} told");
}

/// The estimate of wrong lines holds within its standard error, whichever lines inputs share and
/// however often they repeat.
#[test]
fn the_estimate_of_wrong_lines_holds_within_its_error() {
    type Ranges = &'static [(u32, u32)];
    // Of each input the ranges of numbers whose lines it has, the first input first.
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
            // Samples of 1024 keys, filters that err on a line in ten.
            let (budget, delimiter, verb) = (budget(400_000, 1, 4096), b'\n', Verb::Common);
            let (hashes, keys, rate) = (Hashes::random().unwrap(), None, Some(0.1));
            let job = Approx { verb, budget, delimiter, progress: &(), hashes, keys, rate };
            let mut printer = Printer::new(Sinks::default(), delimiter, 4096);
            let report = job.run(&first, &others, &mut printer).unwrap();
            assert!(!report.repeats_possible, "{shape}");
            let (told, error) = (report.wrong, report.wrong_error);
            let wrong = report.kept as f64 - right.len() as f64;
            // The error says something.
            assert!(
                told > 50.0 && error < 2.0 * told.sqrt() + told / 8.0,
                "{shape}: {told} {error}"
            );
            squares += ((wrong - told) / error).powi(2);
        }
        // Each of the squares is 1 on average at most, with a variance of 2.
        let runs = f64::from(runs);
        assert!(squares < runs + 5.0 * (2.0 * runs).sqrt(), "{shape}: {squares} in {runs} runs");
    }
}

/// Ends a job, as a kill would, when its phase of this number begins.
struct KillAt(AtomicU64);

impl Progress for KillAt {
    fn phase(&self, _: &'static str, _: Option<u64>) {
        if self.0.fetch_sub(1, Ordering::Relaxed) == 0 {
            panic!("killed");
        }
    }
}

#[test]
fn a_job_killed_in_any_phase_goes_on_from_there_with_the_same_output() {
    std::panic::set_hook(Box::new(|info| {
        if info.payload_as_str() != Some("killed") {
            eprintln!("{info}");
        }
    }));
    let mut rng = Rng::new(11);
    let mut most = 0;
    for seed in 0..60 {
        let files = related(seed, Recipe { files: 1 + (seed % 4) as usize, ..Recipe::small() });
        for verb in VERBS {
            let expected = expect(verb, &files, b'\n');
            let strategy = *rng.pick(&[Strategy::Narrow, Strategy::Partition]);
            let budget = budget(*rng.pick(&[2_000, 20_000, 1 << 20]), 2, 500);
            let scratch = Scratch::new();
            let dir = scratch.path().join("work");
            let sources: Vec<_> = (0..files.len())
                .map(|i| Source::from_arg(scratch.write(&i.to_string(), &files[i])))
                .collect();
            let attempt = |kill: u64, resume: bool| {
                let all = Input::look_at(&sources, 0)?;
                let journal = Journal::open(&dir, resume, 1 << 20, verb, b'\n', &all, 1)?;
                let mut first = all;
                let others = first.split_off(1);
                let others = if verb == Verb::Dedup {
                    first.extend(others);
                    vec![]
                } else {
                    others
                };
                let job = Exact {
                    verb: verb.with_others(others.len()),
                    budget,
                    delimiter: b'\n',
                    temp: Temp::new(scratch.path()),
                    progress: &KillAt(AtomicU64::new(kill)),
                    strategy: Some(strategy),
                    hashes: journal.hashes().map_or_else(Hashes::random, Ok)?,
                    journal: Some(&journal),
                };
                let mut out = Vec::new();
                let mut printer = Printer::new(Sinks::to(&mut out), b'\n', budget.chunk);
                let report = job.run(first, others, &mut printer)?;
                Ok::<_, crate::Error>((out, report))
            };
            let told = format!("seed {seed} {verb:?} {strategy:?} {budget:?}");
            // Each attempt gets one phase further than the one before, and then one more.
            let mut resumed = 0;
            for kill in 0..40 {
                let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    attempt(kill % 2, kill > 0)
                }));
                if let Ok(result) = ended {
                    let (out, report) = result.unwrap_or_else(|e| panic!("{told}: {e}"));
                    assert!(out == expected, "{told} after {kill} kills: {report:?}");
                    assert!(report.resumed >= resumed, "{told}");
                    resumed = report.resumed;
                    break;
                }
                assert!(kill < 39, "{told}: it never ends");
            }
            if resumed > 0 {
                let error = attempt(99, false).unwrap_err();
                assert!(error.to_string().contains("--resume"), "{error}");
                scratch.write("0", b"another\nfile\n");
                let error = attempt(99, true).unwrap_err();
                assert!(error.to_string().contains("changed since"), "{error}");
            }
            most = most.max(resumed);
            crate::forget_work(&dir);
            assert!(!dir.exists());
        }
    }
    assert!(most >= 5, "{most}");
}
