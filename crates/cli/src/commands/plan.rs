//! `plan`: sizes a filter.

use petal::{ByteSize, ErrorKind, FilterType, Plan};
use petal_lines::FilterSpec;
use serde_json::{Value, json};

use super::{print, write_page};
use crate::args::{FilterTypeArg, PlanArgs};
use crate::error::{Failure, Outcome, Result};
use crate::html::{RateCurve, plan::page};
use crate::text;

pub(super) fn run(args: &PlanArgs) -> Result<Outcome> {
    let op = args.op().map_err(|text| Failure::Message(text.to_owned()))?;
    if let Some(op) = op {
        return super::estimate::run(op, args);
    }
    if args.memory.is_some() {
        let problem = "-m is the memory of a command; specify the size of a filter with --size";
        return Err(Failure::Message(problem.to_owned()));
    }
    let is_alone = args.size.is_none() && args.bits.is_none() && args.probes.is_none();
    let default_fpr = args.capacity.filter(|_| is_alone).map(|_| FilterSpec::DEFAULT_FPR);
    let spec = |filter_type| petal::FilterSpec {
        capacity: args.capacity,
        fpr: args.fpr.or(default_fpr),
        memory: args.size.map(|limit| ByteSize::bytes(limit.bytes())),
        bits: args.bits,
        probes: args.probes,
        least_space: args.least_space,
        ..petal::FilterSpec::new(filter_type)
    };
    let plans = match args.filter_type.map(FilterTypeArg::filter_type) {
        // Only the classic layout can have more than 16 probes.
        None if args.probes.is_some_and(|probes| probes > 16) => {
            vec![plan(spec(FilterType::Classic))?]
        }
        // The blocked layout must be possible; the classic one is shown if it is.
        None => {
            let bloom = plan(spec(FilterType::Bloom))?;
            [Some(bloom), plan(spec(FilterType::Classic)).ok()].into_iter().flatten().collect()
        }
        Some(filter_type) => {
            let settings = FilterSpec {
                bits: args.bits,
                probes: args.probes,
                least_space: args.least_space,
                ..FilterSpec::default()
            };
            settings.check_settings_of_type(filter_type)?;
            vec![plan(spec(filter_type))?]
        }
    };
    if let Some(path) = &args.html {
        let curves: Vec<_> = plans.iter().filter_map(curve).collect();
        let capacity = plans.iter().map(Plan::best_capacity).max().unwrap_or(0);
        write_page(path, &[], &page(&rows(&plans), &curves, capacity)?)?;
        return Ok(Outcome::Done);
    }
    let text = if args.json {
        let plans: Vec<_> = plans.iter().map(to_json).collect();
        format!("{:#}\n", json!({ "plans": plans }))
    } else {
        table(&plans)
    };
    print(&text)?;
    Ok(Outcome::Done)
}

/// Returns the plan of a filter of this type from two or three of capacity, rate, memory or bits, and
/// probes.
fn plan(spec: petal::FilterSpec) -> Result<Plan> {
    let petal::FilterSpec { filter_type, capacity, fpr, memory, bits, probes, .. } = spec;
    let failed = |text: &str| Failure::Message(format!("--type {}: {text}", filter_type.name()));
    if !is_bloom(filter_type) {
        let (Some(_), Some(rate)) = (capacity, fpr) else {
            return Err(failed("needs -n and -p; specify both"));
        };
        match filter_type {
            FilterType::Cascade => {
                let text = "its size depends on both lists; build it, or use --type static";
                return Err(failed(text));
            }
            FilterType::Static | FilterType::StaticFuse
                if rate < petal::FilterSpec::MIN_STATIC_FPR =>
            {
                let lowest = petal::FilterSpec::MIN_STATIC_FPR;
                return Err(failed(&format!("its lowest rate is {lowest:e}; raise -p")));
            }
            _ => {}
        }
    }
    if bits.is_some() && capacity.or(fpr.and(Some(0))).or(probes.map(u64::from)).is_none() {
        return Err(not_enough());
    }
    let is_sized = bits.is_some() || (capacity.is_some() && fpr.is_some());
    let sized = petal::FilterSpec {
        // Memory beside them is a limit, compared below.
        memory: memory.filter(|_| !is_sized),
        // As `build` does.
        lowest_fpr: is_bloom(filter_type).then_some(petal::FilterSpec::USEFUL_FPR),
        ..spec
    };
    let plan = sized.plan().map_err(|error| match (error.kind(), memory, fpr) {
        (ErrorKind::NoSize { .. }, ..) => not_enough(),
        (ErrorKind::NoMemory { .. }, Some(max), Some(rate)) if capacity.is_none() => {
            Failure::Message(format!(
                "no key fits {} at {}; raise --size or -p",
                text::size(max.as_u64()),
                text::rate(rate),
            ))
        }
        _ => error.into(),
    })?;
    match memory.filter(|max| is_sized && plan.size_bytes() > max.as_u64()) {
        None => Ok(plan),
        Some(max) => Err(too_large(&plan, max)),
    }
}

/// The error of a filter for a capacity and a rate that is larger than the limit.
fn too_large(plan: &Plan, max: ByteSize) -> Failure {
    let (capacity, rate) = (plan.capacity(), text::rate(plan.target_fpr()));
    let (size, limit) = (text::size(plan.size_bytes()), text::size(max.as_u64()));
    let fitting = petal::FilterSpec {
        fpr: None,
        probes: None,
        least_space: false,
        memory: Some(max),
        ..*plan.spec()
    };
    let best = is_bloom(plan.filter_type()).then(|| fitting.plan().map(|best| best.target_fpr()));
    Failure::Message(match best {
        Some(Ok(best)) => format!(
            "{} keys at {rate} take {size}, more than {limit}; with that memory the rate is {}",
            text::count(capacity),
            text::rate(best),
        ),
        _ => format!(
            "{} at {rate} take {size}, more than {limit}; raise --size or -p",
            text::keys(capacity)
        ),
    })
}

/// Whether a type is sized by memory, bits and probes, too.
fn is_bloom(filter_type: FilterType) -> bool {
    matches!(
        filter_type,
        FilterType::Bloom
            | FilterType::Classic
            | FilterType::Counting
            | FilterType::CountingClassic
    )
}

fn not_enough() -> Failure {
    Failure::Message(
        "not enough to size a filter: specify -n, or two or three of -n, -p, -k and --size or \
         --bits"
            .to_owned(),
    )
}

fn layout(plan: &Plan) -> String {
    let described = plan.describe();
    match plan.filter_type() {
        FilterType::Counting | FilterType::CountingClassic => {
            format!("counters of {} bits", plan.spec().counter_width)
        }
        FilterType::Classic => "positions anywhere".to_owned(),
        FilterType::Static | FilterType::StaticFuse => format!("{described}; immutable"),
        // The number of probes has a row.
        FilterType::Bloom => {
            text::grouped(described.split_once(", ").map_or(&*described, |(blocks, _)| blocks))
        }
        _ => text::grouped(&described),
    }
}

fn curve(plan: &Plan) -> Option<RateCurve<'_>> {
    let name = plan.filter_type().name().to_owned();
    let takes_keys = !plan.filter_type().is_fixed();
    takes_keys.then(|| RateCurve { name, rate: Box::new(|keys| plan.expected_fpr(keys)) })
}

fn to_json(plan: &Plan) -> Value {
    json!({
        "type": plan.filter_type().name(),
        "capacity": plan.best_capacity(),
        "fpr": plan.expected_fpr(plan.best_capacity()),
        "fpr_at_double_capacity": plan.fpr_at_double_capacity(),
        "size_bytes": plan.size_bytes(),
        "file_bytes": plan.file_bytes(),
        "bits": plan.bits(),
        "bits_per_key": plan.bits_per_key(),
        "probes": plan.probes(),
    })
}

/// Returns a row for each value: its name, and its text for each layout.
fn rows(plans: &[Plan]) -> Vec<(&'static str, Vec<String>)> {
    type Value = fn(&Plan) -> String;
    let rows: [(&str, Value); 9] = [
        ("type", |plan| plan.filter_type().name().to_owned()),
        ("capacity", |plan| text::count(plan.best_capacity())),
        ("fpr", |plan| text::rate(plan.expected_fpr(plan.best_capacity()))),
        ("fpr at 2x capacity", |plan| {
            plan.fpr_at_double_capacity().map_or("-".to_owned(), text::rate)
        }),
        ("memory", |plan| text::size(plan.size_bytes())),
        ("file on disk", |plan| text::size(plan.file_bytes())),
        ("bits per key", |plan| text::significant(plan.bits_per_key())),
        ("probes", |plan| plan.probes().map_or("-".to_owned(), |probes| probes.to_string())),
        ("layout", layout),
    ];
    rows.into_iter().map(|(name, value)| (name, plans.iter().map(value).collect())).collect()
}

/// The least width of a column of the table.
const COLUMN: usize = 32;

/// Formats a row for each value, and a column for each layout.
fn table(plans: &[Plan]) -> String {
    let rows = rows(plans);
    let longest = rows.iter().flat_map(|(_, values)| values).map(String::len).max().unwrap_or(0);
    let width = COLUMN.max(longest + 2);
    let row = |(name, values): &(&str, Vec<String>)| {
        let cells = values.iter().map(|value| format!("{value:<width$}"));
        let line = format!("{name:<20}{}", cells.collect::<String>());
        format!("{}\n", line.trim_end())
    };
    rows.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use petal_testkit::size_requests::size_requests;

    use super::*;

    /// The command, the file engine and the library give the same numbers.
    #[test]
    fn plans_equal_those_of_the_library_and_of_build() {
        let mut compared = [0; 2];
        for request in size_requests(300) {
            let filter_type: FilterType = request.name.parse().unwrap();
            let spec = petal::FilterSpec {
                capacity: request.capacity,
                fpr: request.fpr,
                memory: request.memory.map(ByteSize::bytes),
                probes: request.probes,
                ..petal::FilterSpec::new(filter_type)
            };
            let lowest_fpr = is_bloom(filter_type).then_some(petal::FilterSpec::USEFUL_FPR);
            let expected = petal::FilterSpec { lowest_fpr, ..spec }.plan();
            match plan(spec) {
                Ok(found) => {
                    assert_eq!(found, expected.unwrap(), "{request:?}");
                    compared[0] += 1;
                }
                Err(error) => {
                    let by_rate = !is_bloom(filter_type) && request.memory.is_some();
                    assert!(by_rate || expected.is_err(), "{request:?}: {error}");
                }
            }
            let Some(keys) = request.capacity.filter(|_| !filter_type.is_fixed()) else { continue };
            let windowed = filter_type == FilterType::Windowed;
            let settings = FilterSpec {
                filter_type: Some(filter_type),
                capacity: Some(keys).filter(|_| !windowed),
                last: Some(keys).filter(|_| windowed),
                fpr: request.fpr,
                size: request.memory,
                probes: request.probes,
                ..FilterSpec::default()
            };
            // `build` has a default rate where the command needs two values.
            if request.fpr.is_none() && request.memory.is_none() {
                continue;
            }
            if let (Ok(built), Ok(found)) = (settings.plan(keys), plan(spec)) {
                assert_eq!(built, found, "{request:?}");
                compared[1] += 1;
            }
        }
        assert!(compared[0] > 150 && compared[1] > 80, "{compared:?}");
    }
}
