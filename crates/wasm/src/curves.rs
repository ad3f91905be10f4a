//! The curves of the calculator: rate against keys, rate against probes, bits per key against rate.

use petal::embed::{BlockedLayout, ClassicLayout};
use petal::{FilterSpec, FilterType, Plan, math};
use serde_json::{Value, json};

use crate::plan::{has_probes, most_keys};

/// Points of the curve over keys, and of that over rates for each power of ten.
const POINTS: u32 = 60;
const POINTS_PER_DECADE: u32 = 2;

/// Returns the curves of a plan.
pub(crate) fn curves(plan: &Plan) -> Value {
    json!({
        "keys": by_keys(plan),
        "probes": by_probes(plan),
        "rates": by_rate(plan),
    })
}

/// The rate up to four times the capacity, or up to the last key that the filter takes.
fn by_keys(plan: &Plan) -> Value {
    let most = most_keys(plan).unwrap_or(plan.best_capacity().saturating_mul(4));
    let keys: Vec<u64> = (1..=POINTS)
        .map(|at| (most as f64 * f64::from(at) / f64::from(POINTS)).round().max(1.0) as u64)
        .collect();
    let fpr: Vec<f64> = keys.iter().map(|keys| plan.expected_fpr(*keys)).collect();
    json!({ "keys": keys, "fpr": fpr })
}

/// The rate of a filter of the same size with other numbers of probes, and the textbook's; null for types whose builder
/// takes no number of probes.
fn by_probes(plan: &Plan) -> Value {
    let Some(probes) = plan.probes().filter(|_| has_probes(plan.filter_type())) else {
        return Value::Null;
    };
    let (filter_type, capacity) = (plan.filter_type(), plan.best_capacity());
    let counters = matches!(filter_type, FilterType::Counting | FilterType::CountingClassic);
    let bits = plan.bits() / if counters { u64::from(plan.spec().counter_width) } else { 1 };
    let classic = matches!(filter_type, FilterType::Classic | FilterType::CountingClassic);
    let most = if classic { (2 * probes).clamp(12, 64) } else { 16 };
    let rate = |probes: u32| {
        if classic {
            return ClassicLayout::for_bits(bits, probes).ok().map(|layout| layout.fpr(capacity));
        }
        let lanes = if probes > 8 { 16 } else { 8 };
        let layout = BlockedLayout::new(bits / u64::from(lanes * 64), lanes, probes).ok()?;
        Some(layout.fpr(capacity))
    };
    let probes: Vec<u32> = (1..=most).collect();
    let fpr: Vec<_> = probes.iter().map(|probes| rate(*probes)).collect();
    let textbook: Vec<_> =
        probes.iter().map(|probes| math::textbook_fpr(capacity, bits, *probes)).collect();
    json!({ "probes": probes, "fpr": fpr, "textbook": textbook })
}

/// Bits per key of this type, of a classic and of a static filter at rates from 0.3 down to 1e-9 or lower, beside the
/// information limit.
fn by_rate(plan: &Plan) -> Value {
    let decades = (-plan.expected_fpr(plan.best_capacity()).log10()).ceil().clamp(9.0, 30.0) as u32;
    let rates: Vec<f64> = (1..=decades * POINTS_PER_DECADE)
        .map(|at| 10f64.powf(-f64::from(at) / f64::from(POINTS_PER_DECADE)))
        .collect();
    let bits = |filter_type: FilterType| -> Vec<Option<f64>> {
        let bits = |fpr: &f64| {
            let (capacity, fpr) = (Some(plan.best_capacity()), Some(*fpr));
            let plan = FilterSpec { capacity, fpr, ..FilterSpec::new(filter_type) }.plan().ok()?;
            Some(plan.bits() as f64 / plan.best_capacity() as f64)
        };
        rates.iter().map(bits).collect()
    };
    let limit: Vec<f64> = rates.iter().map(|fpr| math::information_bits(*fpr)).collect();
    json!({
        "fpr": rates,
        "limit": limit,
        "static": bits(FilterType::Static),
        "classic": bits(FilterType::Classic),
        "selected": bits(plan.filter_type()),
    })
}
