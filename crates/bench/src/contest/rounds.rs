//! Turns and rounds; every answer is judged.
//!
//! **How long a turn is.** Up to [`WHOLE_TO`] keys a turn works through all of them, after a pass that nobody times. Above,
//! a turn is [`CHUNK`] keys: neighbouring chunks for neighbouring turns, other ones for each contestant, no pass before.
//!
//! **What an insert is.** Into a filter that was emptied just before, outside of the time, in memory that has been written
//! to: emptying writes all of it. So the stores are those of a new filter and no page is faulted in on anybody's time,
//! but for what a filter that is made of all keys at once asks for on the way: that is its work.
//! The filter is then full; above [`WHOLE_TO`] the first turns of the filling are timed and the rest of it is not.
//!
//! A [`Plan::whole_fill`] times all of it instead, in as many parts as there are rounds: a part is every so many-th chunk,
//! so that each goes from empty to full. There are filters that a key goes into the slower the fuller they are.
//!
//! **What a removal is.** Of a part of the keys from a full filter: of a tenth of them, or of a chunk. They go back in
//! when time is no longer taken, so that the next turn finds the filter as full; at the end every key must be there.
//!
//! **What is judged.** Every answer of a turn: no inserted key may be missing. Then the rate, by `super::judge`.

use std::time::Instant;

use super::judge::judge;
use super::keys::{Keys, Which};
use super::rows::Row;
use super::{Contestant, Kind, Operation};

/// Filters of up to so many keys are worked through as a whole.
pub const WHOLE_TO: u64 = 10_000_000;
/// Keys of a turn above that, and of a step of the judging.
pub const CHUNK: u64 = 1_000_000;
/// A turn removes one of so many parts of the keys, where it is not a chunk.
const PARTS: u64 = 10;

/// ns per key, round by round, of each of [`Operation::TURNS`].
type Times = [Vec<f64>; Operation::TURNS.len()];

/// How many keys, rounds, and absent keys to judge by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Keys in every filter.
    pub keys: u64,
    /// Turns of each contestant at each operation.
    pub rounds: u64,
    /// Absent keys that the measured rate is the share of; a tenth of them for texts.
    pub judged: u64,
    /// Keys of a turn where it is not all of them.
    pub chunk: u64,
    /// Whether a filling that goes by chunks is timed as a whole, and not its first turns only.
    pub whole_fill: bool,
}

impl Plan {
    /// The plan of a whole run, or of one that is only to be seen at work.
    pub fn new(keys: u64, quick: bool) -> Self {
        let rounds = match keys {
            _ if quick => 3,
            0..=200_000 => 61,
            200_001..=2_000_000 => 31,
            _ => 15,
        };
        let judged = if quick { CHUNK } else { 10 * CHUNK };
        Self { keys, rounds, judged, chunk: CHUNK, whole_fill: false }
    }
}

/// Runs a contest: a row for each contestant and each of its operations. `tell` hears how far it is.
///
/// # Errors
/// A sentence about the first wrong answer.
pub fn run(
    suite: &str,
    plan: Plan,
    contestants: &mut [Contestant],
    tell: &dyn Fn(&str),
) -> Result<Vec<Row>, String> {
    let mut times = vec![Times::default(); contestants.len()];
    let start = Instant::now();
    let told = |what: &str| {
        tell(&format!(
            "{suite}, {} keys, {:.0} s: {what}",
            plan.keys,
            start.elapsed().as_secs_f64()
        ));
    };
    // Emptying a filter writes to all of its memory. Some are made anew by that, and keep the kernel of that moment.
    for contestant in &mut *contestants {
        ready(contestant);
        contestant.subject.clear();
    }
    if plan.keys <= WHOLE_TO {
        whole(plan, contestants, &mut times, &told)?;
    } else {
        in_chunks(plan, contestants, &mut times, &told)?;
    }
    told("judging");
    all_there(plan, contestants)?;
    let rates = judge(plan, contestants)?;
    let mut rows = Vec::new();
    for ((contestant, times), rate) in contestants.iter().zip(times).zip(rates) {
        for (operation, ns) in Operation::TURNS.into_iter().zip(times) {
            if let Some(done) = contestant.does(operation) {
                rows.push(Row::new(suite, plan.keys, contestant, rate, done, ns));
            }
        }
    }
    Ok(rows)
}

/// Turns of all keys.
fn whole(
    plan: Plan,
    contestants: &mut [Contestant],
    times: &mut [Times],
    told: &dyn Fn(&str),
) -> Result<(), String> {
    let texts = contestants.iter().any(|contestant| contestant.kind == Kind::Bytes);
    for (number, operation) in Operation::TURNS.into_iter().enumerate() {
        if !contestants.iter().any(|contestant| contestant.does(operation).is_some()) {
            continue;
        }
        told(operation.name());
        let mut keys = Keys::new(which(operation), 0..plan.keys, texts);
        for round in 0..plan.rounds {
            if operation == Operation::Remove {
                let part = |part: u64| plan.keys * part / PARTS;
                keys =
                    Keys::new(Which::Present, part(round % PARTS)..part(round % PARTS + 1), texts);
            }
            for at in order(round, contestants.len()) {
                let contestant = &mut contestants[at];
                if contestant.does(operation).is_some() {
                    times[at][number].push(turn(contestant, operation, &keys, true)?);
                }
            }
        }
    }
    Ok(())
}

/// Turns of a chunk of keys.
fn in_chunks(
    plan: Plan,
    contestants: &mut [Contestant],
    times: &mut [Times],
    told: &dyn Fn(&str),
) -> Result<(), String> {
    let chunks = plan.keys.div_ceil(plan.chunk);
    let range = |chunk: u64| chunk * plan.chunk..((chunk + 1) * plan.chunk).min(plan.keys);
    if contestants.iter().any(|contestant| contestant.kind == Kind::Bytes) {
        return Err(format!("texts are for up to {WHOLE_TO} keys"));
    }
    told("insert");
    let fills = |contestant: &Contestant, at_once: bool| {
        contestant.does(Operation::Insert).is_some() && contestant.at_once == at_once
    };
    // Each contestant goes round all chunks from a start of its own.
    let turns = if plan.whole_fill { chunks } else { plan.rounds.min(chunks) };
    for round in 0..turns {
        for at in order(round, contestants.len()) {
            let contestant = &mut contestants[at];
            if fills(contestant, false) {
                let chunk = (at as u64 * turns + round) % chunks;
                let keys = Keys::new(Which::Present, range(chunk), false);
                times[at][0].push(turn(contestant, Operation::Insert, &keys, false)?);
            }
        }
    }
    if plan.whole_fill {
        for times in &mut *times {
            times[0] = parts(&times[0], plan.rounds as usize);
        }
    }
    told("filling");
    for (at, contestant) in contestants.iter_mut().enumerate() {
        if fills(contestant, false) {
            ready(contestant);
            for step in turns..chunks {
                let chunk = (at as u64 * turns + step) % chunks;
                contestant.subject.insert(&Keys::new(Which::Present, range(chunk), false));
            }
        }
    }
    if contestants.iter().any(|contestant| fills(contestant, true)) {
        told("at once");
        let keys = Keys::new(Which::Present, 0..plan.keys, false);
        for round in 0..plan.rounds {
            for at in order(round, contestants.len()) {
                let contestant = &mut contestants[at];
                if fills(contestant, true) {
                    ready(contestant);
                    contestant.subject.clear();
                    times[at][0].push(turn(contestant, Operation::Insert, &keys, false)?);
                }
            }
        }
    }
    let mut next = 0;
    for (number, operation) in Operation::TURNS.into_iter().enumerate().skip(1) {
        if !contestants.iter().any(|contestant| contestant.does(operation).is_some()) {
            continue;
        }
        told(operation.name());
        for round in 0..plan.rounds {
            for at in order(round, contestants.len()) {
                let contestant = &mut contestants[at];
                if contestant.does(operation).is_some() {
                    let keys = Keys::new(which(operation), range(next % chunks), false);
                    next += 1;
                    times[at][number].push(turn(contestant, operation, &keys, false)?);
                }
            }
        }
    }
    Ok(())
}

/// The means of as many parts of some times as there are rounds: of every so many-th.
fn parts(times: &[f64], rounds: usize) -> Vec<f64> {
    let parts = rounds.min(times.len());
    let mean = |part: usize| {
        let of = times.iter().skip(part).step_by(parts);
        of.clone().sum::<f64>() / of.count() as f64
    };
    (0..parts).map(mean).collect()
}

/// Asks for every key where some were taken out: nobody else's may have gone with them.
fn all_there(plan: Plan, contestants: &mut [Contestant]) -> Result<(), String> {
    let removes = |one: &Contestant| one.judged && one.does(Operation::Remove).is_some();
    if !contestants.iter().any(removes) {
        return Ok(());
    }
    let texts = contestants.iter().any(|contestant| contestant.kind == Kind::Bytes);
    for from in (0..plan.keys).step_by(plan.chunk as usize) {
        let to = (from + plan.chunk).min(plan.keys);
        let keys = Keys::new(Which::Present, from..to, texts);
        for contestant in contestants.iter_mut().filter(|one| removes(one)) {
            ready(contestant);
            contestant.subject.ask(&keys);
            found_all(contestant, &keys)?;
        }
    }
    Ok(())
}

fn found_all(contestant: &Contestant, keys: &Keys) -> Result<(), String> {
    let all = !contestant.judged || contestant.subject.yes() == keys.len();
    if all { Ok(()) } else { Err(format!("{} lost a key", contestant.title())) }
}

/// One turn, in ns a key.
fn turn(
    contestant: &mut Contestant,
    operation: Operation,
    keys: &Keys,
    warm: bool,
) -> Result<f64, String> {
    ready(contestant);
    let built = contestant.does(operation) == Some(Operation::Build);
    let subject = &mut contestant.subject;
    let time = match operation {
        Operation::Insert | Operation::Build => {
            if warm {
                subject.clear();
                subject.insert(keys);
                subject.clear();
            }
            timed(keys, || subject.insert(keys))
        }
        Operation::Remove => {
            if warm {
                subject.remove(keys);
                subject.insert(keys);
            }
            let mut removed = 0;
            let time = timed(keys, || removed = subject.remove(keys));
            if removed != keys.len() {
                return Err(format!("{} could not remove a key", contestant.title()));
            }
            subject.insert(keys);
            time
        }
        Operation::Absent | Operation::Present | Operation::Mixed => {
            if warm {
                subject.ask(keys);
            }
            timed(keys, || subject.ask(keys))
        }
    };
    if built || operation == Operation::Remove {
        // Nobody else asks for what it inserted.
        contestant.subject.ask(keys);
    }
    if built || matches!(operation, Operation::Present | Operation::Remove) {
        found_all(contestant, keys)?;
    }
    Ok(time)
}

fn timed(keys: &Keys, act: impl FnOnce()) -> f64 {
    let start = Instant::now();
    act();
    start.elapsed().as_nanos() as f64 / keys.len() as f64
}

fn which(operation: Operation) -> Which {
    match operation {
        Operation::Insert | Operation::Build | Operation::Present | Operation::Remove => {
            Which::Present
        }
        Operation::Absent => Which::Absent,
        Operation::Mixed => Which::Mixed,
    }
}

/// The kernel of a contestant is that of the process, until the next one's turn.
pub(super) fn ready(contestant: &Contestant) {
    if let Some(kernel) = contestant.kernel {
        kernel.force();
    }
}

/// The order of a round: another one begins, and odd rounds run backwards, so that nobody always follows the same one.
fn order(round: u64, contestants: usize) -> impl Iterator<Item = usize> {
    (0..contestants).map(move |at| {
        let at = if round.is_multiple_of(2) { at } else { contestants - 1 - at };
        (at + (round / 2) as usize) % contestants
    })
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::HashSet;
    use std::rc::Rc;

    use petal::Kernel;

    use super::super::Form;
    use super::super::judge::{Count, rate};
    use super::super::petal::{Model, atomic};
    use super::super::subject::Subject;
    use super::*;

    /// An exact set that writes down what it is asked to do, and can be told to forget a key, or to remove one more than
    /// it is told.
    struct Honest {
        name: char,
        keys: HashSet<u64>,
        forgetful: bool,
        greedy: bool,
        yes: u64,
        log: Rc<RefCell<String>>,
    }

    impl Subject for Honest {
        fn clear(&mut self) {
            self.keys.clear();
        }

        fn insert(&mut self, keys: &Keys) {
            self.log.borrow_mut().push(self.name);
            self.keys.extend(&keys.numbers()[usize::from(self.forgetful)..]);
        }

        fn remove(&mut self, keys: &Keys) -> u64 {
            self.log.borrow_mut().push(self.name);
            if self.greedy {
                self.keys.remove(&Keys::new(Which::Present, 99..100, false).numbers()[0]);
            }
            keys.numbers().iter().filter(|key| self.keys.remove(key)).count() as u64
        }

        fn ask(&mut self, keys: &Keys) {
            self.log.borrow_mut().push(self.name);
            self.yes = keys.numbers().iter().filter(|key| self.keys.contains(key)).count() as u64;
        }

        fn yes(&self) -> u64 {
            self.yes
        }

        fn foretold(&self) -> Option<f64> {
            Some(0.0)
        }
    }

    fn honest(name: char, forgetful: bool, log: &Rc<RefCell<String>>) -> Contestant {
        let (keys, log) = (HashSet::new(), Rc::clone(log));
        let subject = Honest { name, keys, forgetful, greedy: name == 'g', yes: 0, log };
        let made = Contestant::single(&name.to_string(), 0.5, (64, 1), Kind::Hash, subject);
        Contestant { operations: &Operation::TURNS, ..made }
    }

    #[test]
    fn everybody_has_a_turn_in_every_round_and_nobody_always_the_same_place() {
        let log = Rc::default();
        let mut contestants = ['a', 'b', 'c'].map(|name| honest(name, false, &log));
        let plan = Plan { keys: 100, rounds: 6, judged: 1_000, chunk: CHUNK, whole_fill: false };
        let rows = run("test", plan, &mut contestants, &|_| ()).unwrap();
        assert_eq!(rows.len(), 3 * 5);
        assert!(
            rows.iter()
                .all(|row| row.ns.len() == 6 && row.measured.is_some_and(|(rate, _)| rate == 0.0))
        );
        // Two calls make a turn: the one that nobody times and the one that is timed.
        let turns: Vec<char> = log.borrow().chars().step_by(2).take(18).collect();
        let rounds: Vec<String> = turns.chunks(3).map(|round| round.iter().collect()).collect();
        assert_eq!(rounds, ["abc", "cba", "bca", "acb", "cab", "bac"]);
    }

    #[test]
    fn a_lost_key_is_found_out() {
        let log = Rc::default();
        let plan = Plan { keys: 100, rounds: 2, judged: 1_000, chunk: CHUNK, whole_fill: false };
        let problem = run("test", plan, &mut [honest('a', true, &log)], &|_| ()).unwrap_err();
        assert!(problem.contains("lost a key"), "{problem}");
    }

    #[test]
    fn a_removal_that_takes_another_key_along_is_found_out() {
        let log = Rc::default();
        let plan = Plan { keys: 100, rounds: 2, judged: 1_000, chunk: CHUNK, whole_fill: false };
        let problem = run("test", plan, &mut [honest('g', false, &log)], &|_| ()).unwrap_err();
        assert!(problem.contains("lost a key"), "{problem}");
    }

    #[test]
    fn a_filling_timed_as_a_whole_has_parts_that_go_from_empty_to_full() {
        let times = [1.0, 2.0, 3.0, 4.0, 5.0];
        assert_eq!(parts(&times, 2), [3.0, 3.0]);
        assert_eq!(parts(&times, 9), times);
        assert_eq!(parts(&[], 3), [0.0; 0]);
        let log = Rc::default();
        let mut contestants = [honest('a', false, &log)];
        let plan = Plan { keys: 9_500, rounds: 3, judged: 1_000, chunk: 1_000, whole_fill: true };
        let mut times = vec![Times::default()];
        in_chunks(plan, &mut contestants, &mut times, &|_| ()).unwrap();
        assert_eq!(times[0][0].len(), 3);
        all_there(plan, &mut contestants).unwrap();
    }

    #[test]
    fn in_chunks_every_key_goes_in_once() {
        let log = Rc::default();
        let mut contestants = ['a', 'b', 'c'].map(|name| honest(name, false, &log));
        contestants[2].at_once = true;
        let plan = Plan { keys: 3_995, rounds: 3, judged: 1_000, chunk: 1_000, whole_fill: false };
        let mut times = vec![Times::default(); 3];
        in_chunks(plan, &mut contestants, &mut times, &|_| ()).unwrap();
        assert!(times.iter().flatten().all(|times| times.len() == 3));
        for contestant in &mut contestants {
            contestant.subject.ask(&Keys::new(Which::Present, 0..plan.keys, false));
            assert_eq!(contestant.subject.yes(), plan.keys);
        }
        // Four chunks, or all of them three times; three operations of three rounds; as many removals, each with an insert
        // and a question; then the question above.
        assert_eq!(log.borrow().len(), 2 * (4 + 9 + 9 + 1) + (3 + 9 + 9 + 1));
        all_there(plan, &mut contestants).unwrap();
    }

    #[test]
    fn filters_of_ours_pass_and_a_wrong_forecast_does_not() {
        let plan =
            Plan { keys: 20_000, rounds: 2, judged: 200_000, chunk: CHUNK, whole_fill: false };
        let models = [Model::Rate(0.01), Model::Line(6), Model::Pair, Model::Classic(0.01)];
        let mut contestants = Vec::new();
        for model in models {
            for kind in [Kind::Hash, Kind::Number, Kind::Bytes] {
                for form in [Form::Single, Form::Batch] {
                    let made = model.contestant(plan.keys, kind, form, Kernel::Portable);
                    contestants.push(made.unwrap());
                }
            }
        }
        for form in [Form::Single, Form::Batch] {
            contestants.push(atomic(plan.keys, 0.01, form, Kernel::Portable).unwrap());
        }
        let rows = run("test", plan, &mut contestants, &|_| ()).unwrap();
        assert_eq!(rows.len(), (4 * 3 * 2 + 2) * 4);
        assert!(rows.iter().any(|row| row.filter == "petal atomic 1 %"));
        let count = Count { of: 1e5, found: 1_200.0, mean: 1_000.0, variance: 990.0 };
        assert!(rate(&contestants[0], count).unwrap_err().contains("foretold"));
        let count = Count { found: 1_100.0, ..count };
        assert_eq!(rate(&contestants[0], count), Ok(Some((0.011, 100_000))));
    }
}
