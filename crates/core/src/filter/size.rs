//! The sizes of Bloom filters.

use super::layout::Layout;
use super::{Filter, FilterInfo};
use crate::byte_size::ByteSize;
use crate::error::{Error, Result};
use crate::math;
#[cfg(not(feature = "std"))]
use crate::no_std::*;
use crate::spec::{BuildEmpty, FilterSpec};

impl<L: Layout> BuildEmpty for Filter<L> {
    fn build_empty(spec: &FilterSpec) -> Result<Self> {
        let (layout, info) = dimensions(spec, 1)?;
        Self::empty(layout, spec.hash, info)
    }
}

/// Returns the layout of a filter whose bits take `times` their memory, and its plan.
pub(crate) fn dimensions<L: Layout>(spec: &FilterSpec, times: u64) -> Result<(L, FilterInfo)> {
    if spec.least_space {
        check_least_space(spec)?;
    }
    let part = |memory: ByteSize| ByteSize::bytes(memory.as_u64() / times);
    let in_parts = |memory: ByteSize| move |error: Error| error.in_parts(memory.as_u64(), times);
    let (layout, info) = match *spec {
        FilterSpec { bits: Some(bits), probes: Some(probes), .. } => {
            let layout = L::for_bits(bits, probes)?;
            (layout, info_of(spec, layout)?)
        }
        FilterSpec { bits: Some(bits), capacity, fpr, .. } => {
            let layout = match (capacity, fpr) {
                (Some(keys), _) => best_for_capacity(bits, keys)?,
                (None, Some(rate)) => best_for_fpr(bits, rate)?,
                (None, None) => {
                    let expected = "a number, or a capacity or rate, beside the bits";
                    return Err(Error::invalid("probes", expected, "none"));
                }
            };
            (layout, info_of(spec, layout)?)
        }
        FilterSpec { capacity: Some(keys), fpr: Some(rate), probes, .. } => {
            (smallest(spec, keys, rate, probes)?, FilterInfo::planned(keys, rate))
        }
        FilterSpec { capacity: Some(keys), memory: Some(memory), probes, .. } => {
            let layout = match probes {
                Some(probes) => L::for_memory_with_probes(part(memory), probes),
                None => L::for_memory(keys, part(useful_memory::<L>(spec, keys, memory, times))),
            };
            let layout = layout.map_err(in_parts(memory))?;
            (layout, FilterInfo::of_size(Some(keys), |keys| layout.fpr(keys))?)
        }
        FilterSpec { fpr: Some(rate), memory: Some(memory), probes, .. } => {
            let (layout, keys) = match probes {
                Some(probes) => {
                    let layout = L::for_memory_with_probes(part(memory), probes);
                    let layout = layout.map_err(in_parts(memory))?;
                    (layout, layout.capacity_at_fpr(rate))
                }
                None => {
                    let keys = L::max_capacity(part(memory), rate)?;
                    (smallest(spec, keys.max(1), rate, None)?, keys)
                }
            };
            if keys == 0 {
                let one: L = smallest(spec, 1, rate, probes)?;
                return Err(Error::over_limit(memory.as_u64(), one.lines() * 64 * times));
            }
            (layout, FilterInfo::planned(keys, rate))
        }
        FilterSpec { memory: Some(memory), probes: Some(probes), .. } => {
            let layout = L::for_memory_with_probes(part(memory), probes);
            let layout = layout.map_err(in_parts(memory))?;
            let keys = math::half_full_capacity(layout.bits(), probes);
            (layout, FilterInfo::of_size(Some(keys), |keys| layout.fpr(keys))?)
        }
        FilterSpec { capacity: Some(keys), probes: Some(probes), .. } => {
            let layout = L::for_bits(math::half_full_bits(keys.max(1), probes), probes)?;
            (layout, FilterInfo::of_size(Some(keys), |keys| layout.fpr(keys))?)
        }
        _ => return Err(unsized_filter()),
    };
    if let Some(limit) = spec.memory {
        check_memory(limit, layout.lines().saturating_mul(64 * times))?;
    }
    Ok((layout, info))
}

/// Returns the smallest layout for a capacity and a rate.
fn smallest<L: Layout>(spec: &FilterSpec, keys: u64, rate: f64, probes: Option<u32>) -> Result<L> {
    match probes {
        Some(probes) => L::for_fpr_with_probes(keys, rate, probes),
        None if spec.least_space => L::for_least_space(keys, rate),
        None => L::for_fpr(keys, rate),
    }
}

/// Returns the memory, or what the lowest rate of the specification needs, if that is less.
fn useful_memory<L: Layout>(
    spec: &FilterSpec,
    keys: u64,
    memory: ByteSize,
    times: u64,
) -> ByteSize {
    let lowest = spec.lowest_fpr.and_then(|rate| L::for_fpr(keys, rate).ok());
    let needed = lowest.map(|layout| layout.lines().saturating_mul(64 * times));
    needed.map_or(memory, |needed| memory.min(ByteSize::bytes(needed)))
}

/// Returns an error if a filter of `needed` bytes is larger than the limit.
pub(crate) fn check_memory(limit: ByteSize, needed: u64) -> Result<()> {
    let limit = limit.as_u64();
    if needed <= limit {
        return Ok(());
    }
    let found = format!("{limit} bytes where {needed} are needed");
    Err(Error::invalid("memory", "enough for keys and rate", found))
}

/// Checks that nothing else determines the size or the probes.
fn check_least_space(spec: &FilterSpec) -> Result<()> {
    let FilterSpec { capacity, fpr, bits, probes, .. } = spec;
    let excluded = [
        ("bits", bits.map(|bits| bits.to_string())),
        ("probes", probes.map(|probes| probes.to_string())),
        ("capacity", capacity.is_none().then(|| "none".into())),
        ("false-positive rate", fpr.is_none().then(|| "none".into())),
    ];
    for (name, found) in excluded {
        let needed = matches!(name, "capacity" | "false-positive rate");
        let expected =
            if needed { "a number, for the least space" } else { "none beside the least space" };
        if let Some(found) = found {
            return Err(Error::invalid(name, expected, found));
        }
    }
    Ok(())
}

/// Returns the plan of a layout that bits determine. With a rate and no capacity, the capacity is the
/// number of keys at the rate.
fn info_of<L: Layout>(spec: &FilterSpec, layout: L) -> Result<FilterInfo> {
    match (spec.capacity, spec.fpr) {
        (Some(keys), Some(rate)) => {
            check_kept(rate, layout.fpr(keys))?;
            Ok(FilterInfo::planned(keys, rate))
        }
        (None, Some(rate)) => {
            let keys = layout.capacity_at_fpr(rate);
            check_kept(rate, layout.fpr(keys.max(1)))?;
            Ok(FilterInfo::planned(keys, rate))
        }
        (keys, None) => FilterInfo::of_size(keys, |keys| layout.fpr(keys)),
    }
}

fn unsized_filter() -> Error {
    let needed = "capacity and false-positive rate, capacity and memory, or bits and probes";
    Error::unsized_filter(needed)
}

/// Returns the layout of these bits with the lowest rate at `keys` keys.
fn best_for_capacity<L: Layout>(bits: u64, keys: u64) -> Result<L> {
    let ideal = math::optimal_probes(bits as f64 / keys.max(1) as f64);
    let by_fpr = |a: &L, b: &L| a.fpr(keys).total_cmp(&b.fpr(keys));
    layouts_near(bits, ideal)?.into_iter().min_by(by_fpr).ok_or_else(unsized_filter)
}

/// Returns the layout of these bits with the largest capacity at a rate.
fn best_for_fpr<L: Layout>(bits: u64, rate: f64) -> Result<L> {
    if !(rate > 0.0 && rate < 1.0) {
        return Err(Error::fpr(rate));
    }
    let ideal = (-rate.log2()).round().max(1.0) as u32;
    // Fewer probes are better at an equal capacity, and `max_by_key` returns the last maximum.
    let layouts = layouts_near(bits, ideal)?.into_iter().rev();
    layouts.max_by_key(|layout: &L| layout.capacity_at_fpr(rate)).ok_or_else(unsized_filter)
}

/// Returns the layouts of these bits whose probes are near the ideal number; not empty.
fn layouts_near<L: Layout>(bits: u64, ideal: u32) -> Result<Vec<L>> {
    let ideal = ideal.clamp(1, L::MAX_PROBES);
    let near = ideal.saturating_sub(4).max(1)..=(ideal + 2).min(L::MAX_PROBES);
    near.map(|probes| L::for_bits(bits, probes)).collect()
}

/// Checks a target rate for a given layout.
fn check_kept(rate: f64, kept: f64) -> Result<()> {
    if !(rate > 0.0 && rate < 1.0) {
        return Err(Error::fpr(rate));
    }
    if kept > rate {
        let found = format!("{rate:e}, where bits and probes give {kept:.1e}");
        return Err(Error::invalid(
            "false-positive rate",
            "one that the bits and probes keep",
            found,
        ));
    }
    Ok(())
}
