//! Turns, rounds, and the judging of every answer.
//!
//! **How long a turn is.** Up to [`WHOLE_TO`] keys a turn works through all of them, after a pass that nobody times. Above,
//! a turn is [`CHUNK`] keys: neighbouring chunks for neighbouring turns, other ones for each contestant, no pass before.
//!
//! **What an insert is.** Into a filter that was emptied just before, outside of the time, in memory that has been written
//! to: emptying writes all of it. So the stores are those of a new filter and no page is faulted in on anybody's time,
//! but for what a filter that is made of all keys at once asks for on the way: that is its work.
//! The filter is then full; above [`WHOLE_TO`] the first turns of the filling are timed and the rest of it is not.
//!
//! **What is judged.** Every answer of a turn: no inserted key may be missing. Then absent keys that no turn has seen give
//! the measured rate. Two small filters of one shape differ in their rates, by some 2 % of it at 10⁵ keys: so a small one
//! is filled anew, with other keys each time, until as many keys have gone in as are asked for. At 1 % and 10⁷ of both
//! that leaves a standard deviation of 0.004 %. Batches must answer as single keys do; and where a filter can tell from
//! its bits what share of absent keys it will take for present, the count may be six standard deviations off and
//! no more.

use std::ops::Range;
use std::time::Instant;

use super::keys::{Keys, Which};
use super::rows::Row;
use super::{Contestant, Kind, Operation};

/// Filters of up to so many keys are worked through as a whole.
pub const WHOLE_TO: u64 = 10_000_000;
/// Keys of a turn above that, and of a step of the judging.
pub const CHUNK: u64 = 1_000_000;
/// Chance alone goes so far once in five hundred million counts.
const SIGMAS: f64 = 6.0;
/// Absent keys for the measured rate begin here: no turn comes so far.
const JUDGED_FROM: u64 = 1 << 40;

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
        Self { keys, rounds, judged: if quick { CHUNK } else { 10 * CHUNK }, chunk: CHUNK }
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
    let mut times = vec![<[Vec<f64>; 4]>::default(); contestants.len()];
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
    let rates = judge(plan, contestants)?;
    let mut rows = Vec::new();
    for ((contestant, times), rate) in contestants.iter().zip(times).zip(rates) {
        for (operation, ns) in Operation::ALL.into_iter().zip(times) {
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
    times: &mut [[Vec<f64>; 4]],
    told: &dyn Fn(&str),
) -> Result<(), String> {
    let texts = contestants.iter().any(|contestant| contestant.kind == Kind::Bytes);
    for (number, operation) in Operation::ALL.into_iter().enumerate() {
        told(operation.name());
        let keys = Keys::new(which(operation), 0..plan.keys, texts);
        for round in 0..plan.rounds {
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
    times: &mut [[Vec<f64>; 4]],
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
    let turns = plan.rounds.min(chunks);
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
    for (number, operation) in Operation::ALL.into_iter().enumerate().skip(1) {
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
    let time = if operation == Operation::Insert {
        if warm {
            subject.clear();
            subject.insert(keys);
            subject.clear();
        }
        timed(keys, || subject.insert(keys))
    } else {
        if warm {
            subject.ask(keys);
        }
        timed(keys, || subject.ask(keys))
    };
    if built {
        // Nobody else asks for what it inserted.
        subject.ask(keys);
    }
    let asked = built || operation == Operation::Present;
    if asked && contestant.judged && subject.yes() != keys.len() {
        return Err(format!("{} lost a key", contestant.title()));
    }
    Ok(time)
}

fn timed(keys: &Keys, act: impl FnOnce()) -> f64 {
    let start = Instant::now();
    act();
    start.elapsed().as_nanos() as f64 / keys.len() as f64
}

/// What was found when absent keys were asked for, and what the bits foretold.
#[derive(Clone, Copy, Default)]
struct Count {
    of: f64,
    found: f64,
    mean: f64,
    variance: f64,
}

/// A rate, and the absent keys that it is the share of; nothing, if the contestant is no filter.
type Measured = Option<(f64, u64)>;

/// The measured rate of each contestant.
fn judge(plan: Plan, contestants: &mut [Contestant]) -> Result<Vec<Measured>, String> {
    let mut counts = vec![Count::default(); contestants.len()];
    for texts in [false, true] {
        let judged = if texts { plan.judged / 10 } else { plan.judged };
        let mut of_kind: Vec<(&mut Contestant, &mut Count)> = contestants
            .iter_mut()
            .zip(&mut counts)
            .filter(|(one, _)| one.judged && (one.kind == Kind::Bytes) == texts)
            .collect();
        if of_kind.is_empty() {
            continue;
        }
        // Small filters differ among themselves by more than the count would: several are asked, of other keys each.
        let fillings = (judged / plan.keys).max(1);
        for filling in 0..fillings {
            if filling > 0 {
                let range = filling * plan.keys..(filling + 1) * plan.keys;
                let keys = Keys::new(Which::Present, range, texts);
                for (contestant, _) in &mut of_kind {
                    ready(contestant);
                    contestant.subject.clear();
                    contestant.subject.insert(&keys);
                }
            }
            let from = JUDGED_FROM + filling * judged / fillings;
            let range = from..JUDGED_FROM + (filling + 1) * judged / fillings;
            count(range, texts, &mut of_kind)?;
        }
    }
    let counted = contestants.iter().zip(counts);
    counted.map(|(contestant, count)| rate(contestant, count)).collect()
}

/// Asks for absent keys.
fn count(
    range: Range<u64>,
    texts: bool,
    contestants: &mut [(&mut Contestant, &mut Count)],
) -> Result<(), String> {
    for (contestant, count) in &mut *contestants {
        let of = (range.end - range.start) as f64;
        count.of += of;
        if let Some(rate) = contestant.subject.foretold() {
            count.mean += of * rate;
            count.variance += of * rate * (1.0 - rate);
        }
    }
    for from in range.clone().step_by(CHUNK as usize) {
        let keys = Keys::new(Which::Absent, from..(from + CHUNK).min(range.end), texts);
        for (contestant, count) in &mut *contestants {
            ready(contestant);
            let yes = contestant.subject.judge(&keys);
            let yes = yes.ok_or_else(|| format!("{} contradicts itself", contestant.title()))?;
            count.found += yes as f64;
        }
    }
    Ok(())
}

/// The measured rate, if it is what the bits foretold.
fn rate(contestant: &Contestant, count: Count) -> Result<Measured, String> {
    let Count { of, found, mean, variance } = count;
    // One count more or less is no deviation.
    let far = (found - mean).abs() > SIGMAS * variance.sqrt() + 1.0;
    if contestant.subject.foretold().is_some() && far {
        let title = contestant.title();
        return Err(format!("{title}: {found} false positives where {mean:.0} are foretold"));
    }
    Ok((of > 0.0).then(|| (found / of, of as u64)))
}

fn which(operation: Operation) -> Which {
    match operation {
        Operation::Insert | Operation::Build | Operation::Present => Which::Present,
        Operation::Absent => Which::Absent,
        Operation::Mixed => Which::Mixed,
    }
}

/// The kernel of a contestant is that of the process, until the next one's turn.
fn ready(contestant: &Contestant) {
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
    use super::super::petal::{Model, atomic};
    use super::super::subject::Subject;
    use super::*;

    /// An exact set that writes down what it is asked to do, and can be told to forget a key.
    struct Honest {
        name: char,
        keys: HashSet<u64>,
        forgetful: bool,
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
        let subject = Honest { name, keys, forgetful, yes: 0, log };
        Contestant::single(&name.to_string(), 0.5, (64, 1), Kind::Hash, subject)
    }

    #[test]
    fn everybody_has_a_turn_in_every_round_and_nobody_always_the_same_place() {
        let log = Rc::default();
        let mut contestants = ['a', 'b', 'c'].map(|name| honest(name, false, &log));
        let plan = Plan { keys: 100, rounds: 6, judged: 1_000, chunk: CHUNK };
        let rows = run("test", plan, &mut contestants, &|_| ()).unwrap();
        assert_eq!(rows.len(), 3 * 4);
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
        let plan = Plan { keys: 100, rounds: 2, judged: 1_000, chunk: CHUNK };
        let problem = run("test", plan, &mut [honest('a', true, &log)], &|_| ()).unwrap_err();
        assert!(problem.contains("lost a key"), "{problem}");
    }

    #[test]
    fn in_chunks_every_key_goes_in_once() {
        let log = Rc::default();
        let mut contestants = ['a', 'b', 'c'].map(|name| honest(name, false, &log));
        contestants[2].at_once = true;
        let plan = Plan { keys: 3_995, rounds: 3, judged: 1_000, chunk: 1_000 };
        let mut times = vec![<[Vec<f64>; 4]>::default(); 3];
        in_chunks(plan, &mut contestants, &mut times, &|_| ()).unwrap();
        assert!(times.iter().flatten().all(|times| times.len() == 3));
        for contestant in &mut contestants {
            contestant.subject.ask(&Keys::new(Which::Present, 0..plan.keys, false));
            assert_eq!(contestant.subject.yes(), plan.keys);
        }
        // Four chunks, or all of them three times; three operations of three rounds; then the question above.
        assert_eq!(log.borrow().len(), 2 * (4 + 9 + 1) + (3 + 9 + 1));
    }

    #[test]
    fn filters_of_ours_pass_and_a_wrong_forecast_does_not() {
        let plan = Plan { keys: 20_000, rounds: 2, judged: 200_000, chunk: CHUNK };
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
