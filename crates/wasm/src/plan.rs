//! Plans: the size and rate of a filter from two or three of capacity, rate, memory and probes.

use petal::{ByteSize, ErrorKind, FilterSpec, FilterType, Plan, math};
use serde_json::{Value, json};

use crate::Result;

/// Returns the plan of the filter that a request describes.
pub(crate) fn plan(request: &Value) -> Result<Plan> {
    let spec = spec(request)?;
    if spec.filter_type == FilterType::Cascade {
        return Err("the size of a cascade depends on both of its lists".to_owned());
    }
    // Memory beside capacity and rate is a limit.
    let limit = spec.memory.filter(|_| spec.capacity.is_some() && spec.fpr.is_some());
    let sized = FilterSpec { memory: spec.memory.filter(|_| limit.is_none()), ..spec };
    let plan = sized.plan().map_err(|error| match error.kind() {
        ErrorKind::NoSize { .. } => TOO_FEW.to_owned(),
        ErrorKind::NoMemory { .. } if spec.capacity.is_none() => {
            "no key fits this memory".to_owned()
        }
        ErrorKind::NoMemory { .. } if spec.fpr.is_none() => {
            "the memory is too small for this number of keys".to_owned()
        }
        _ => error.to_string(),
    })?;
    match limit.filter(|memory| plan.size_bytes() > memory.as_u64()) {
        None => Ok(plan),
        Some(memory) => Err(format!(
            "this filter takes {} bytes, more than {}: leave one of the four values empty",
            plan.size_bytes(),
            memory.as_u64(),
        )),
    }
}

fn spec(request: &Value) -> Result<FilterSpec> {
    let name = request["type"].as_str().unwrap_or("bloom");
    let filter_type: FilterType =
        name.parse().map_err(|_| format!("type: no filter type {name}"))?;
    Ok(FilterSpec {
        capacity: whole(request, "capacity", 1e18)?,
        fpr: request["fpr"].as_f64(),
        memory: whole(request, "memory", 1e18)?.map(ByteSize::bytes),
        probes: whole(request, "probes", 64.0)?.map(|probes| probes as u32),
        // As `petal build` and `petal plan`.
        lowest_fpr: has_probes(filter_type).then_some(FilterSpec::USEFUL_FPR),
        ..FilterSpec::new(filter_type)
    })
}

/// Whether a builder of this type takes a number of probes.
pub(crate) fn has_probes(filter_type: FilterType) -> bool {
    matches!(
        filter_type,
        FilterType::Bloom
            | FilterType::Classic
            | FilterType::Counting
            | FilterType::CountingClassic
    )
}

/// Returns the number of keys that the filter can hold; `None` if it takes any number.
pub(crate) fn most_keys(plan: &Plan) -> Option<u64> {
    matches!(
        plan.filter_type(),
        FilterType::Static
            | FilterType::StaticFuse
            | FilterType::Quotient
            | FilterType::VectorQuotient
    )
    .then(|| plan.best_capacity())
}

pub(crate) fn to_json(plan: &Plan) -> Value {
    let capacity = plan.best_capacity();
    let fpr = plan.expected_fpr(capacity);
    let double = capacity.saturating_mul(2);
    json!({
        "type": plan.filter_type().name(),
        "capacity": capacity,
        "fpr": fpr,
        "fpr_at_double_capacity": most_keys(plan).is_none().then(|| plan.expected_fpr(double)),
        "size_bytes": plan.size_bytes(),
        "bits": plan.bits(),
        "bits_per_key": plan.bits() as f64 / capacity as f64,
        // A window keeps its keys at the rate that older generations still add to.
        "information_bits_per_key": math::information_bits(fpr),
        "probes": plan.probes(),
        "layout": plan.describe(),
    })
}

const TOO_FEW: &str =
    "give two or three of the four values, the number of keys or the memory among them";

/// Reads a whole number from 1 to `most`, which may be written as a float.
fn whole(request: &Value, name: &str, most: f64) -> Result<Option<u64>> {
    match request[name].as_f64() {
        None => Ok(None),
        Some(number) if (1.0..=most).contains(&number) => Ok(Some(number.round() as u64)),
        Some(number) => Err(format!("{name}: expected 1 to {most:e}, found {number}")),
    }
}
