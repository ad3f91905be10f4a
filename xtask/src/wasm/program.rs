//! Runs on wasm32: a filter of 1 MiB, as large as those that have pages of their own elsewhere.
//! Exits with 42 if all is well, which no failure does.

use std::process::ExitCode;

use petal::{Answers, BloomFilter, CountingBloomFilter};

fn main() -> ExitCode {
    let found = filled().unwrap_or(0);
    ExitCode::from(if found == 20_000 { 42 } else { 1 })
}

/// How many of 20,000 inserted keys are found.
fn filled() -> petal::Result<u64> {
    let mut filter = BloomFilter::with_memory(1 << 20, 500_000)?;
    let keys: Vec<u64> = (0..10_000).collect();
    let mut found = Answers::new();
    filter.insert_batch(&keys, &mut found);
    let texts = (0..10_000).map(|at| format!("key {at}"));
    texts.clone().for_each(|key| _ = filter.insert(&key));
    filter.contains_batch(&keys, &mut found);
    let absent = (1u64 << 40..).take(10_000).filter(|key| filter.contains(key)).count();
    let mut counts = CountingBloomFilter::with_rate(1_000_000, 0.01)?;
    let removed = counts.insert("one") && counts.remove("one") && !counts.contains("one");
    if absent > 10 || !removed || filter.size_bytes() != 1 << 20 {
        return Ok(0);
    }
    Ok(found.count_ones() + texts.filter(|key| filter.contains(key)).count() as u64)
}
