//! The strip of bits: a small classic filter whose bits or counters are visible.
//!
//! The bits of a key are those that the library's filter sets: they are read from its file.

use petal::{ClassicBloomFilter, ClassicCountingBloomFilter, Membership, math};
use serde_json::{Value, json};

use crate::Result;

/// The largest strip, one cache line.
const MAX_BITS: u64 = 512;

/// The offset of the data in a file with little metadata, by docs/reference/format.md.
const DATA: usize = 4096;

/// Bits of a counter.
const WIDTH: u32 = 4;

/// A strip before its operations.
struct Strip {
    bits: u64,
    probes: u32,
    counters: bool,
}

/// Applies operations to an empty strip and queries a key.
///
/// The request has `bits`, `probes`, `counters`, `operations` (pairs of `add` or `remove` and a key), and `query`. The
/// answer has the `cells`, bits or counters; of the queried key the `positions`, its `hash`, and whether it is
/// `contained`; and the expected `fpr` with `keys` distinct keys.
pub(crate) fn strip(request: &Value) -> Result<Value> {
    let number = |name: &str, most: u64| match request[name].as_u64() {
        Some(number) if (1..=most).contains(&number) => Ok(number),
        found => Err(format!("{name}: expected 1 to {most}, found {found:?}")),
    };
    let strip = Strip {
        bits: number("bits", MAX_BITS)?,
        probes: number("probes", 16)? as u32,
        counters: request["counters"].as_bool().unwrap_or(false),
    };
    let operations = request["operations"].as_array().map_or(&[][..], Vec::as_slice);
    let operations: Vec<(bool, &str)> = operations.iter().filter_map(operation).collect();
    let query = request["query"].as_str().unwrap_or_default();
    let (cells, contained) = if strip.counters {
        strip.counters(&operations, query)?
    } else {
        strip.bits(&operations, query)?
    };
    Ok(json!({
        "cells": cells,
        "positions": strip.positions(query)?,
        "hash": format!("{:016x}", petal::HashSpec::default().hash(query.as_bytes())),
        "contained": contained,
        "fpr": math::classic_fpr(request["keys"].as_u64().unwrap_or(0), strip.bits, strip.probes),
    }))
}

/// Returns whether an operation adds its key, and the key.
fn operation(pair: &Value) -> Option<(bool, &str)> {
    Some((pair[0].as_str()? == "add", pair[1].as_str()?))
}

impl Strip {
    /// Returns the bits of a key, ascending; fewer than the probes if two of them coincide.
    fn positions(&self, key: &str) -> Result<Vec<usize>> {
        let mut filter = ClassicBloomFilter::with_bits(self.bits, self.probes).map_err(text)?;
        filter.insert(key);
        let data = data(&filter)?;
        Ok((0..self.bits as usize).filter(|&at| is_set(&data, at)).collect())
    }

    /// A plain filter. Its keys cannot be removed; the strip shows what happens if their bits are cleared.
    fn bits(&self, operations: &[(bool, &str)], query: &str) -> Result<(Vec<u8>, bool)> {
        let mut cells = vec![0; self.bits as usize];
        for (add, key) in operations {
            self.positions(key)?.into_iter().for_each(|at| cells[at] = u8::from(*add));
        }
        let contained = self.positions(query)?.into_iter().all(|at| cells[at] == 1);
        Ok((cells, contained))
    }

    /// The library's counting filter.
    fn counters(&self, operations: &[(bool, &str)], query: &str) -> Result<(Vec<u8>, bool)> {
        let builder = ClassicCountingBloomFilter::builder().bits(self.bits).probes(self.probes);
        let mut filter = builder.counter_width(WIDTH).build().map_err(text)?;
        for (add, key) in operations {
            if *add {
                filter.insert(*key)
            } else {
                filter.remove(*key)
            };
        }
        let data = data(&filter)?;
        let line = 64;
        // The first line has the bits, the others the digits of the counts above them.
        let digit = |plane: usize, at: usize| u8::from(is_set(&data[plane * line..], at));
        let cell = |at| match digit(0, at) {
            0 => 0,
            _ => 1 + (1..WIDTH as usize).map(|plane| digit(plane, at) << (plane - 1)).sum::<u8>(),
        };
        Ok(((0..self.bits as usize).map(cell).collect(), filter.contains(query)))
    }
}

/// Returns the data of a filter's file.
fn data(filter: &impl Membership) -> Result<Vec<u8>> {
    let mut file = Vec::new();
    filter.write_to(&mut file, "").map_err(text)?;
    Ok(file.split_off(DATA))
}

fn is_set(data: &[u8], at: usize) -> bool {
    data[at / 8] >> (at % 8) & 1 == 1
}

fn text(error: petal::Error) -> String {
    error.to_string()
}
