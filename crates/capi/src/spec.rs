//! Specifications of filters as text: `bloom capacity=1e6 fpr=0.001`.

use petal::{FilterSpec, FilterType, HashSpec, Secret};

use crate::error::{Failure, PetalCode};

/// Parses a specification: a type, then fields with values, separated by spaces.
pub(crate) fn parse(text: &str, secret: Option<&Secret>) -> Result<FilterSpec, Failure> {
    let mut words = text.split_ascii_whitespace();
    let name = words.next().unwrap_or_default();
    let filter_type: FilterType = name.parse().map_err(|_| {
        let known = FilterType::ALL.map(|known| known.name()).join(", ");
        invalid(format_args!("{name:?} is not a type of filter: expected one of {known}"))
    })?;
    let mut spec = FilterSpec::new(filter_type);
    for word in words {
        let (field, value) = word
            .split_once('=')
            .ok_or_else(|| invalid(format_args!("{word:?}: expected FIELD=VALUE")))?;
        let bad = |expected: &str| invalid(format_args!("{field}: {value:?} is not {expected}"));
        let number = || whole(value).ok_or_else(|| bad("a whole number"));
        let small = || number()?.try_into().map_err(|_| bad("a small whole number"));
        match field {
            "capacity" => spec.capacity = Some(number()?),
            "fpr" => spec.fpr = Some(value.parse().map_err(|_| bad("a rate such as 0.01"))?),
            "memory" => {
                spec.memory = Some(value.parse().map_err(|_| bad("a size such as 64M"))?);
            }
            "bits" => spec.bits = Some(number()?),
            "probes" => spec.probes = Some(small()?),
            "counter_width" => spec.counter_width = small()?,
            "growth" => spec.growth.factor = number()?,
            "max_capacity" => spec.max_capacity = Some(number()?),
            "table_size" => spec.table_size = Some(number()?),
            "slot_bits" => spec.slot_bits = Some(small()?),
            "window" => spec.window = Some(number()?),
            "generations" => spec.generations = small()?,
            "seed" => spec.hash = HashSpec::rapid(number()?),
            _ => {
                return Err(invalid(format_args!(
                    "{field:?} is not a field: expected one of capacity, fpr, memory, bits, probes, counter_width, \
                     growth, max_capacity, table_size, slot_bits, window, generations, seed"
                )));
            }
        }
    }
    if let Some(secret) = secret {
        if spec.hash != HashSpec::default() {
            return Err(invalid("seed: a filter with a secret has no seed; leave one out"));
        }
        spec.hash = HashSpec::keyed_apart(secret);
    }
    Ok(spec)
}

fn invalid(text: impl std::fmt::Display) -> Failure {
    Failure::new(PetalCode::PetalInvalid, text)
}

/// Parses a whole number, also in the form `1e6`.
fn whole(text: &str) -> Option<u64> {
    text.parse().ok().or_else(|| {
        let number: f64 = text.parse().ok()?;
        let fits = number.fract() == 0.0 && (0.0..9.0e15).contains(&number);
        fits.then_some(number as u64)
    })
}
