//! The strip of bits: a small classic filter whose bits or counters are visible.
//!
//! The bits of a key are those that the library's filter sets: they are read from its file.

use petal::{ClassicBloomFilter, ClassicCountingBloomFilter, Membership, math};
use serde_json::{Value, json};

use crate::Result;

/// Bytes of a cache line.
const LINE_BYTES: usize = 64;
/// The largest strip, one cache line.
const MAX_BITS: u64 = LINE_BYTES as u64 * 8;

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
/// | field of the request | value |
/// |---|---|
/// | `bits`, `probes` | the size of the strip, and the bits that each key sets |
/// | `counters` | whether the cells are counters |
/// | `operations` | pairs of `add` or `remove` and a key |
/// | `query` | the queried key |
/// | `keys` | the number of distinct keys for which `fpr` is expected |
///
/// | field of the answer | value |
/// |---|---|
/// | `cells` | the bits or counters |
/// | `positions`, `hash`, `contained` | of the queried key |
/// | `fpr` | the expected false-positive rate |
pub(crate) fn strip(request: &Value) -> Result<Value> {
    let number = |name: &str, max: u64| match request[name].as_u64() {
        Some(number) if (1..=max).contains(&number) => Ok(number),
        found => Err(format!("{name}: expected 1 to {max}, found {found:?}")),
    };
    let strip = Strip {
        bits: number("bits", MAX_BITS)?,
        probes: number("probes", 16)? as u32,
        counters: request["counters"].as_bool().unwrap_or(false),
    };
    let operations = request["operations"].as_array().map_or(&[][..], Vec::as_slice);
    let operations: Vec<_> = operations.iter().map(operation).collect::<Result<_>>()?;
    let query = request["query"].as_str().unwrap_or_default();
    let (cells, contained) = if strip.counters {
        strip.run_counting(&operations, query)?
    } else {
        strip.run_plain(&operations, query)?
    };
    Ok(json!({
        "cells": cells,
        "positions": strip.positions(query)?,
        "hash": format!("{:016x}", petal::HashSpec::default().hash(query.as_bytes())),
        "contained": contained,
        "fpr": math::classic_fpr(request["keys"].as_u64().unwrap_or(0), strip.bits, strip.probes),
    }))
}

enum Operation<'a> {
    Add(&'a str),
    Remove(&'a str),
}

fn operation(pair: &Value) -> Result<Operation<'_>> {
    match (pair[0].as_str(), pair[1].as_str()) {
        (Some("add"), Some(key)) => Ok(Operation::Add(key)),
        (Some("remove"), Some(key)) => Ok(Operation::Remove(key)),
        _ => Err(format!("operations: expected [\"add\" or \"remove\", key], found {pair}")),
    }
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
    fn run_plain(&self, operations: &[Operation<'_>], query: &str) -> Result<(Vec<u8>, bool)> {
        let mut cells = vec![0; self.bits as usize];
        for operation in operations {
            let (key, bit) = match operation {
                Operation::Add(key) => (key, 1),
                Operation::Remove(key) => (key, 0),
            };
            self.positions(key)?.into_iter().for_each(|at| cells[at] = bit);
        }
        let contained = self.positions(query)?.into_iter().all(|at| cells[at] == 1);
        Ok((cells, contained))
    }

    /// The library's counting filter.
    fn run_counting(&self, operations: &[Operation<'_>], query: &str) -> Result<(Vec<u8>, bool)> {
        let builder = ClassicCountingBloomFilter::builder().bits(self.bits).probes(self.probes);
        let mut filter = builder.width(WIDTH).build().map_err(text)?;
        for operation in operations {
            match operation {
                Operation::Add(key) => filter.insert(*key),
                Operation::Remove(key) => filter.remove(*key),
            };
        }
        let data = data(&filter)?;
        // Line 0 has the bits. Line 1 + i has binary digit i of each counter's value minus 1.
        let digit = |line: usize, at: usize| u8::from(is_set(&data[line * LINE_BYTES..], at));
        let cell = |at| match digit(0, at) {
            0 => 0,
            _ => 1 + (1..WIDTH as usize).map(|line| digit(line, at) << (line - 1)).sum::<u8>(),
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
