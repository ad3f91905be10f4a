//! The measurements of a run, in rounds. Every answer is checked.
//!
//! **Measurement.** In a filter of up to [`WHOLE_UP_TO`] keys a measurement takes all keys, after a warm-up pass. In a
//! larger one it takes a chunk of keys, without warm-up, and each case takes other chunks.
//!
//! **Inserts** go into a filter that was just cleared, outside of the measured time. Clearing writes all of its memory, so
//! no page fault is measured, except in filters that allocate when they are built. After the inserts the filter is
//! full. In a larger filter the first chunks are measured and the others are not, unless
//! [`RunPlan::time_whole_fill`] is set. In that case all chunks are measured; a round is the mean of every n-th
//! chunk, from the empty to the full filter, because some filters get slower as they fill.
//!
//! **Removals** are of a tenth of the keys, or of a chunk, from a full filter. The keys are inserted again outside of
//! the measured time. At the end every key must be present.
//!
//! **Checks.** No inserted key may be missing. After that `super::fpr` measures the false-positive rate.

use std::time::Instant;

use super::fpr;
use super::keys::{KeySet, Keys};
use super::rows::Row;
use super::{Case, KeyKind, Operation, RunPlan};

/// The largest number of keys for which filters are measured with all keys at once.
pub const WHOLE_UP_TO: u64 = 10_000_000;
/// The number of parts of the keys, of which a removal takes one; of larger filters it takes a chunk.
const PARTS: u64 = 10;

/// ns per key in each round, for each of [`Operation::ORDER`].
type Times = [Vec<f64>; Operation::ORDER.len()];

/// Measures all cases and returns a row for each case and operation. `progress` is called with a line of text.
///
/// # Errors
/// If an answer is wrong.
pub fn run(
    suite: &str,
    plan: RunPlan,
    cases: &mut [Case],
    progress: &dyn Fn(&str),
) -> Result<Vec<Row>, String> {
    let mut times = vec![Times::default(); cases.len()];
    let start = Instant::now();
    let progress = |what: &str| {
        let seconds = start.elapsed().as_secs_f64();
        progress(&format!("{suite}, {} keys, {seconds:.0} s: {what}", plan.keys));
    };
    // Clearing a filter writes all of its memory. Some filters are made again by that, with the kernel of the process.
    for case in &mut *cases {
        case.use_kernel();
        case.tested.clear();
    }
    if plan.keys <= WHOLE_UP_TO {
        measure_whole(plan, cases, &mut times, &progress)?;
    } else {
        measure_chunks(plan, cases, &mut times, &progress)?;
    }
    progress("checking");
    check_all_present(plan, cases)?;
    let rates = fpr::measure(plan, cases)?;
    let mut rows = Vec::new();
    for ((case, times), rate) in cases.iter().zip(times).zip(rates) {
        for (operation, ns) in Operation::ORDER.into_iter().zip(times) {
            if let Some(timed) = case.timed(operation) {
                rows.push(Row::new(suite, plan.keys, case, rate, timed, ns));
            }
        }
    }
    Ok(rows)
}

/// Measurements with all keys.
fn measure_whole(
    plan: RunPlan,
    cases: &mut [Case],
    times: &mut [Times],
    progress: &dyn Fn(&str),
) -> Result<(), String> {
    let texts = cases.iter().any(|case| case.kind == KeyKind::Bytes);
    for (number, operation) in Operation::ORDER.into_iter().enumerate() {
        if !cases.iter().any(|case| case.timed(operation).is_some()) {
            continue;
        }
        progress(operation.name());
        let mut keys = Keys::new(key_set(operation), 0..plan.keys, texts);
        for round in 0..plan.rounds {
            if operation == Operation::Remove {
                let part = |part: u64| plan.keys * part / PARTS;
                let range = part(round % PARTS)..part(round % PARTS + 1);
                keys = Keys::new(KeySet::Present, range, texts);
            }
            for at in order(round, cases.len()) {
                let case = &mut cases[at];
                if case.timed(operation).is_some() {
                    times[at][number].push(measure(case, operation, &keys, true)?);
                }
            }
        }
    }
    Ok(())
}

/// Measurements with a chunk of keys.
fn measure_chunks(
    plan: RunPlan,
    cases: &mut [Case],
    times: &mut [Times],
    progress: &dyn Fn(&str),
) -> Result<(), String> {
    let chunks = plan.keys.div_ceil(plan.chunk);
    let range = |chunk: u64| chunk * plan.chunk..((chunk + 1) * plan.chunk).min(plan.keys);
    if cases.iter().any(|case| case.kind == KeyKind::Bytes) {
        return Err(format!("byte keys are supported for up to {WHOLE_UP_TO} keys"));
    }
    progress("insert");
    let inserts = |case: &Case, at_once: bool| {
        case.timed(Operation::Insert).is_some() && case.fills_at_once == at_once
    };
    // Each case goes through all chunks, from a different first one.
    let rounds = if plan.time_whole_fill { chunks } else { plan.rounds.min(chunks) };
    for round in 0..rounds {
        for at in order(round, cases.len()) {
            let case = &mut cases[at];
            if inserts(case, false) {
                let chunk = (at as u64 * rounds + round) % chunks;
                let keys = Keys::new(KeySet::Present, range(chunk), false);
                times[at][0].push(measure(case, Operation::Insert, &keys, false)?);
            }
        }
    }
    if plan.time_whole_fill {
        for times in &mut *times {
            times[0] = means_of_parts(&times[0], plan.rounds as usize);
        }
    }
    progress("filling");
    for (at, case) in cases.iter_mut().enumerate() {
        if inserts(case, false) {
            case.use_kernel();
            for step in rounds..chunks {
                let chunk = (at as u64 * rounds + step) % chunks;
                case.tested.insert(&Keys::new(KeySet::Present, range(chunk), false));
            }
        }
    }
    if cases.iter().any(|case| inserts(case, true)) {
        progress("inserting all keys at once");
        let keys = Keys::new(KeySet::Present, 0..plan.keys, false);
        for round in 0..plan.rounds {
            for at in order(round, cases.len()) {
                let case = &mut cases[at];
                if inserts(case, true) {
                    case.use_kernel();
                    case.tested.clear();
                    times[at][0].push(measure(case, Operation::Insert, &keys, false)?);
                }
            }
        }
    }
    let mut next = 0;
    for (number, operation) in Operation::ORDER.into_iter().enumerate().skip(1) {
        if !cases.iter().any(|case| case.timed(operation).is_some()) {
            continue;
        }
        progress(operation.name());
        for round in 0..plan.rounds {
            for at in order(round, cases.len()) {
                let case = &mut cases[at];
                if case.timed(operation).is_some() {
                    let keys = Keys::new(key_set(operation), range(next % chunks), false);
                    next += 1;
                    times[at][number].push(measure(case, operation, &keys, false)?);
                }
            }
        }
    }
    Ok(())
}

/// Returns the mean of every `rounds`-th time, for each first time.
fn means_of_parts(times: &[f64], rounds: usize) -> Vec<f64> {
    let parts = rounds.min(times.len());
    let mean = |part: usize| {
        let times = times.iter().skip(part).step_by(parts);
        times.clone().sum::<f64>() / times.count() as f64
    };
    (0..parts).map(mean).collect()
}

/// Looks up every key in the filters from which keys were removed: no other key may have been removed with them.
fn check_all_present(plan: RunPlan, cases: &mut [Case]) -> Result<(), String> {
    let removes = |case: &Case| case.is_filter && case.timed(Operation::Remove).is_some();
    if !cases.iter().any(removes) {
        return Ok(());
    }
    let texts = cases.iter().any(|case| case.kind == KeyKind::Bytes);
    for from in (0..plan.keys).step_by(plan.chunk as usize) {
        let to = (from + plan.chunk).min(plan.keys);
        let keys = Keys::new(KeySet::Present, from..to, texts);
        for case in cases.iter_mut().filter(|case| removes(case)) {
            case.use_kernel();
            case.tested.query(&keys);
            check_found_all(case, &keys)?;
        }
    }
    Ok(())
}

fn check_found_all(case: &Case, keys: &Keys) -> Result<(), String> {
    let all = !case.is_filter || case.tested.hits() == keys.len();
    if all { Ok(()) } else { Err(format!("{} lost a key", case.title())) }
}

/// One measurement, in ns per key.
fn measure(
    case: &mut Case,
    operation: Operation,
    keys: &Keys,
    warm_up: bool,
) -> Result<f64, String> {
    case.use_kernel();
    let builds = case.timed(operation) == Some(Operation::Build);
    let tested = &mut case.tested;
    let ns = match operation {
        Operation::Insert | Operation::Build => {
            if warm_up {
                tested.clear();
                tested.insert(keys);
                tested.clear();
            }
            ns_per_key(keys, || tested.insert(keys))
        }
        Operation::Remove => {
            if warm_up {
                tested.remove(keys);
                tested.insert(keys);
            }
            let mut removed = 0;
            let ns = ns_per_key(keys, || removed = tested.remove(keys));
            if removed != keys.len() {
                return Err(format!("{} could not remove a key", case.title()));
            }
            tested.insert(keys);
            ns
        }
        Operation::Absent | Operation::Present | Operation::Mixed => {
            if warm_up {
                tested.query(keys);
            }
            ns_per_key(keys, || tested.query(keys))
        }
    };
    if builds || operation == Operation::Remove {
        case.tested.query(keys);
    }
    if builds || matches!(operation, Operation::Present | Operation::Remove) {
        check_found_all(case, keys)?;
    }
    Ok(ns)
}

fn ns_per_key(keys: &Keys, action: impl FnOnce()) -> f64 {
    let start = Instant::now();
    action();
    start.elapsed().as_nanos() as f64 / keys.len() as f64
}

fn key_set(operation: Operation) -> KeySet {
    match operation {
        Operation::Insert | Operation::Build | Operation::Present | Operation::Remove => {
            KeySet::Present
        }
        Operation::Absent => KeySet::Absent,
        Operation::Mixed => KeySet::Mixed,
    }
}

/// The order of the cases in a round. It rotates, and odd rounds are reversed, so that no case always follows the same
/// other one.
fn order(round: u64, cases: usize) -> impl Iterator<Item = usize> {
    (0..cases).map(move |at| {
        let at = if round.is_multiple_of(2) { at } else { cases - 1 - at };
        (at + (round / 2) as usize) % cases
    })
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::HashSet;
    use std::rc::Rc;

    use petal::Kernel;

    use super::super::adapters::BenchFilter;
    use super::super::fpr::{Count, rate};
    use super::super::library::{Model, atomic};
    use super::super::{CHUNK, Form};
    use super::*;

    /// An exact set that logs its calls. It can lose a key at inserts, or remove another key with the wanted ones.
    struct ExactSet {
        name: char,
        keys: HashSet<u64>,
        loses_a_key: bool,
        removes_another_key: bool,
        hits: u64,
        log: Rc<RefCell<String>>,
    }

    impl BenchFilter for ExactSet {
        fn clear(&mut self) {
            self.keys.clear();
        }

        fn insert(&mut self, keys: &Keys) {
            self.log.borrow_mut().push(self.name);
            self.keys.extend(&keys.numbers()[usize::from(self.loses_a_key)..]);
        }

        fn remove(&mut self, keys: &Keys) -> u64 {
            self.log.borrow_mut().push(self.name);
            if self.removes_another_key {
                self.keys.remove(&Keys::new(KeySet::Present, 99..100, false).numbers()[0]);
            }
            keys.numbers().iter().filter(|key| self.keys.remove(key)).count() as u64
        }

        fn query(&mut self, keys: &Keys) {
            self.log.borrow_mut().push(self.name);
            self.hits = keys.numbers().iter().filter(|key| self.keys.contains(key)).count() as u64;
        }

        fn hits(&self) -> u64 {
            self.hits
        }

        fn estimated_fpr(&self) -> Option<f64> {
            Some(0.0)
        }
    }

    const PLAN: RunPlan =
        RunPlan { keys: 100, rounds: 2, absent_keys: 1_000, chunk: CHUNK, time_whole_fill: false };

    fn exact(name: char, loses_a_key: bool, log: &Rc<RefCell<String>>) -> Case {
        let (keys, log) = (HashSet::new(), Rc::clone(log));
        let removes_another_key = name == 'r';
        let tested = ExactSet { name, keys, loses_a_key, removes_another_key, hits: 0, log };
        let case = Case::single(&name.to_string(), 0.5, (64, 1), KeyKind::Hash, tested);
        Case { operations: &Operation::ORDER, ..case }
    }

    #[test]
    fn every_case_is_measured_in_every_round_in_changing_order() {
        let log = Rc::default();
        let mut cases = ['a', 'b', 'c'].map(|name| exact(name, false, &log));
        let rows = run("test", RunPlan { rounds: 6, ..PLAN }, &mut cases, &|_| ()).unwrap();
        assert_eq!(rows.len(), 3 * 5);
        assert!(
            rows.iter().all(|row| row.ns_by_round.len() == 6 && row.measured_rate == Some(0.0))
        );
        // A measurement has two calls: the warm-up and the timed one.
        let calls: Vec<char> = log.borrow().chars().step_by(2).take(18).collect();
        let rounds: Vec<String> = calls.chunks(3).map(|round| round.iter().collect()).collect();
        assert_eq!(rounds, ["abc", "cba", "bca", "acb", "cab", "bac"]);
    }

    #[test]
    fn a_lost_key_is_an_error() {
        let log = Rc::default();
        let problem = run("test", PLAN, &mut [exact('a', true, &log)], &|_| ()).unwrap_err();
        assert!(problem.contains("lost a key"), "{problem}");
    }

    #[test]
    fn a_removal_of_another_key_is_an_error() {
        let log = Rc::default();
        let problem = run("test", PLAN, &mut [exact('r', false, &log)], &|_| ()).unwrap_err();
        assert!(problem.contains("lost a key"), "{problem}");
    }

    #[test]
    fn rounds_of_a_whole_fill_go_from_empty_to_full() {
        let times = [1.0, 2.0, 3.0, 4.0, 5.0];
        assert_eq!(means_of_parts(&times, 2), [3.0, 3.0]);
        assert_eq!(means_of_parts(&times, 9), times);
        assert_eq!(means_of_parts(&[], 3), [0.0; 0]);
        let log = Rc::default();
        let mut cases = [exact('a', false, &log)];
        let plan = RunPlan { keys: 9_500, rounds: 3, chunk: 1_000, time_whole_fill: true, ..PLAN };
        let mut times = vec![Times::default()];
        measure_chunks(plan, &mut cases, &mut times, &|_| ()).unwrap();
        assert_eq!(times[0][0].len(), 3);
        check_all_present(plan, &mut cases).unwrap();
    }

    #[test]
    fn every_key_of_a_large_filter_is_inserted_once() {
        let log = Rc::default();
        let mut cases = ['a', 'b', 'c'].map(|name| exact(name, false, &log));
        cases[2].fills_at_once = true;
        let plan = RunPlan { keys: 3_995, rounds: 3, chunk: 1_000, ..PLAN };
        let mut times = vec![Times::default(); 3];
        measure_chunks(plan, &mut cases, &mut times, &|_| ()).unwrap();
        assert!(times.iter().flatten().all(|times| times.len() == 3));
        for case in &mut cases {
            case.tested.query(&Keys::new(KeySet::Present, 0..plan.keys, false));
            assert_eq!(case.tested.hits(), plan.keys);
        }
        // Inserts of four chunks, or of all keys three times; three kinds of lookups in three rounds; three removals,
        // each with an insert and a lookup; and the lookup above.
        assert_eq!(log.borrow().len(), 2 * (4 + 9 + 9 + 1) + (3 + 9 + 9 + 1));
        check_all_present(plan, &mut cases).unwrap();
    }

    #[test]
    fn filters_of_the_library_pass_and_a_wrong_estimate_is_an_error() {
        let plan = RunPlan { keys: 20_000, absent_keys: 200_000, ..PLAN };
        let models = [Model::Rate(0.01), Model::Line(6), Model::Pair, Model::Classic(0.01)];
        let mut cases = Vec::new();
        for model in models {
            for kind in [KeyKind::Hash, KeyKind::Number, KeyKind::Bytes] {
                for form in [Form::Single, Form::Batch] {
                    cases.push(model.case(plan.keys, kind, form, Kernel::Portable).unwrap());
                }
            }
        }
        for form in [Form::Single, Form::Batch] {
            cases.push(atomic(plan.keys, 0.01, form, Kernel::Portable).unwrap());
        }
        let rows = run("test", plan, &mut cases, &|_| ()).unwrap();
        assert_eq!(rows.len(), (4 * 3 * 2 + 2) * 4);
        assert!(rows.iter().any(|row| row.filter == "petal atomic 1 %"));
        let count = Count { absent_keys: 1e5, found: 1_200.0, mean: 1_000.0, variance: 990.0 };
        assert!(rate(&cases[0], count).unwrap_err().contains("estimated 1000"));
        let count = Count { found: 1_100.0, ..count };
        assert_eq!(rate(&cases[0], count), Ok(Some((0.011, 100_000))));
    }
}
