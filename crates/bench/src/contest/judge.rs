//! The measured rate: what share of absent keys a filter takes for present, and whether that is what its bits foretold.
//!
//! Absent keys that no turn has seen are asked for. Two small filters of one shape differ in their rates, by some 2 % of it
//! at 10⁵ keys: so a small one is filled anew, with other keys each time, until as many keys have gone in as are asked
//! for. At 1 % and 10⁷ of both that leaves a standard deviation of 0.004 %. Batches must answer as single keys do; and
//! where a filter can tell from its bits what share of absent keys it will take for present, the count may be six standard
//! deviations off and no more.

use std::ops::Range;

use super::keys::{Keys, Which};
use super::rounds::{CHUNK, Plan, ready};
use super::{Contestant, Kind};

/// Chance alone goes so far once in five hundred million counts.
const SIGMAS: f64 = 6.0;
/// Absent keys for the measured rate begin here: no turn comes so far.
const JUDGED_FROM: u64 = 1 << 40;

/// What was found when absent keys were asked for, and what the bits foretold.
#[derive(Clone, Copy, Default)]
pub(super) struct Count {
    pub(super) of: f64,
    pub(super) found: f64,
    pub(super) mean: f64,
    pub(super) variance: f64,
}

/// A rate, and the absent keys that it is the share of; nothing, if the contestant is no filter.
pub(super) type Measured = Option<(f64, u64)>;

/// The measured rate of each contestant.
pub(super) fn judge(plan: Plan, contestants: &mut [Contestant]) -> Result<Vec<Measured>, String> {
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
pub(super) fn rate(contestant: &Contestant, count: Count) -> Result<Measured, String> {
    let Count { of, found, mean, variance } = count;
    // One count more or less is no deviation.
    let far = (found - mean).abs() > SIGMAS * variance.sqrt() + 1.0;
    if contestant.subject.foretold().is_some() && far {
        let title = contestant.title();
        return Err(format!("{title}: {found} false positives where {mean:.0} are foretold"));
    }
    Ok((of > 0.0).then(|| (found / of, of as u64)))
}
