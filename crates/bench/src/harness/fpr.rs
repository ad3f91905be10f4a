//! The measured false-positive rate: the share of absent keys that a filter reports as present.
//!
//! The absent keys are ones that no timed operation uses. The rates of two small filters of the same layout differ, by
//! about 2 % of the rate at 10⁵ keys. So a small filter is filled several times with other keys, until the number of
//! inserted keys equals the number of absent keys. At 1 % and 10⁷ absent keys the standard deviation is 0.004 %.
//! Batches must agree with single keys. If a filter can compute its rate from its bits, the count may deviate from it
//! by six standard deviations at most.

use std::ops::Range;

use super::keys::{KeySet, Keys};
use super::{CHUNK, Case, KeyKind, RunPlan};

/// The largest accepted deviation, in standard deviations. A correct count exceeds it once in five hundred million.
const SIGMAS: f64 = 6.0;
/// Number of the first absent key for the measured rate; timed operations use smaller numbers.
const FIRST_KEY: u64 = 1 << 40;

/// Counted false positives, with their expected number and variance by the filter's own estimate.
#[derive(Clone, Copy, Default)]
pub(super) struct Count {
    pub(super) absent_keys: f64,
    pub(super) found: f64,
    pub(super) mean: f64,
    pub(super) variance: f64,
}

/// The rate and the number of absent keys it was measured with. `None` if the case is not a filter.
pub(super) type MeasuredFpr = Option<(f64, u64)>;

/// Returns the measured rate of each case.
pub(super) fn measure(plan: RunPlan, cases: &mut [Case]) -> Result<Vec<MeasuredFpr>, String> {
    let mut counts = vec![Count::default(); cases.len()];
    for texts in [false, true] {
        let absent_keys = if texts { plan.absent_keys / 10 } else { plan.absent_keys };
        let mut of_kind: Vec<(&mut Case, &mut Count)> = cases
            .iter_mut()
            .zip(&mut counts)
            .filter(|(case, _)| case.is_filter && (case.kind == KeyKind::Bytes) == texts)
            .collect();
        if of_kind.is_empty() {
            continue;
        }
        let fillings = (absent_keys / plan.keys).max(1);
        for filling in 0..fillings {
            if filling > 0 {
                let range = filling * plan.keys..(filling + 1) * plan.keys;
                let keys = Keys::new(KeySet::Present, range, texts);
                for (case, _) in &mut of_kind {
                    case.use_kernel();
                    case.tested.clear();
                    case.tested.insert(&keys);
                }
            }
            let first = FIRST_KEY + filling * absent_keys / fillings;
            let range = first..FIRST_KEY + (filling + 1) * absent_keys / fillings;
            count(range, texts, &mut of_kind)?;
        }
    }
    let counted = cases.iter().zip(counts);
    counted.map(|(case, count)| rate(case, count)).collect()
}

/// Looks up absent keys in every case.
fn count(
    range: Range<u64>,
    texts: bool,
    cases: &mut [(&mut Case, &mut Count)],
) -> Result<(), String> {
    for (case, count) in &mut *cases {
        let keys = (range.end - range.start) as f64;
        count.absent_keys += keys;
        if let Some(rate) = case.tested.estimated_fpr() {
            count.mean += keys * rate;
            count.variance += keys * rate * (1.0 - rate);
        }
    }
    for from in range.clone().step_by(CHUNK as usize) {
        let keys = Keys::new(KeySet::Absent, from..(from + CHUNK).min(range.end), texts);
        for (case, count) in &mut *cases {
            case.use_kernel();
            let hits = case.tested.checked_query(&keys);
            let hits = hits.ok_or_else(|| {
                format!("{}: batches and single keys have different answers", case.title())
            })?;
            count.found += hits as f64;
        }
    }
    Ok(())
}

/// Returns the measured rate; an error if it is too far from the filter's own estimate.
pub(super) fn rate(case: &Case, count: Count) -> Result<MeasuredFpr, String> {
    let Count { absent_keys, found, mean, variance } = count;
    let deviates = (found - mean).abs() > SIGMAS * variance.sqrt() + 1.0;
    if case.tested.estimated_fpr().is_some() && deviates {
        let title = case.title();
        return Err(format!("{title}: {found} false positives, estimated {mean:.0}"));
    }
    Ok((absent_keys > 0.0).then(|| (found / absent_keys, absent_keys as u64)))
}
