//! Builds a set and queries it.

use std::hint::black_box;
use std::path::Path;

use petal::BatchResults;

use super::cold;
use super::sets::KnownSet;
use super::{BATCH, Feed, Key, Kind, RATE, key};
use crate::process::{cpu_time, peak_memory, reset_peak_memory};
use crate::rows::Row;

/// Keys of a timed loop, at most.
const QUERIED: u64 = 1_000_000;
/// Timed loops of each kind; the fastest counts.
const ROUNDS: usize = 5;
/// Absent keys of the measured rate, at most, and for each member.
const ABSENT: (u64, u64) = (4_000_000, 40);

/// Measures a set of `members` keys, with `others` known non-members if it takes any.
///
/// # Errors
/// If it cannot be built, saved or opened, if a member or a known non-member is answered wrongly, or if the rate is far
/// above the target.
pub fn measure<S: KnownSet>(
    name: &str,
    members: u64,
    others: u64,
    temp: &Path,
) -> Result<Vec<Row>, String> {
    let mut feed = Feed::new(members, if S::TWO_LISTS { others } else { 0 });
    let before = reset_peak_memory();
    let start = cpu_time();
    let set = S::build(&mut feed)?;
    let build = cpu_time() - start - feed.generation;
    let peak = peak_memory().saturating_sub(before);

    check(&set, &mut feed)?;
    let rate = measured_fpr(&set, ABSENT.0.min(ABSENT.1 * members));
    // More than six standard deviations above.
    if S::HAS_RATE && rate > 1.1 * RATE {
        return Err(format!("{name}: a false-positive rate of {rate}"));
    }
    let per_key = |value: f64| value / members as f64;
    let mut rows = Vec::new();
    let mut add = |figure: &str, value: f64, unit: &str| {
        rows.push(Row::new(name, members, figure, value, unit));
    };
    add("known non-members", feed.others as f64, "keys");
    add("size", per_key(8.0 * set.bytes() as f64), "bits per key");
    add("build", per_key(build.as_nanos() as f64), "ns of CPU time per key");
    add("peak memory of the build", per_key(peak as f64), "bytes per key");
    add("false positives", rate, "of absent keys");
    let queries = [("present", Kind::Member), ("absent", Kind::Absent)];
    let queried = members.min(QUERIED);
    for (figure, kind) in queries {
        // Not in the order in which they were added.
        let spread = |at: u64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15) % members;
        let keys: Vec<Key> = (0..queried).map(|at| key(kind, spread(at))).collect();
        let single = fastest(&keys, |keys| {
            keys.iter().map(|key| u64::from(set.contains(black_box(key)))).sum()
        });
        add(figure, single, "ns per query");
        let mut results = BatchResults::new();
        if set.contains_batch(&keys[..1], &mut results) {
            let batch = fastest(&keys, |keys| {
                let batches = keys.chunks(BATCH).map(|keys| {
                    set.contains_batch(black_box(keys), &mut results);
                    results.count_ones()
                });
                batches.sum()
            });
            add(&format!("{figure}, in batches"), batch, "ns per query");
        }
    }
    let file = temp.join(format!("known-{}", std::process::id()));
    if let Some(cold) = cold::measure(&set, &file, members)? {
        add("cold: open and first query", cold.first.as_secs_f64() * 1e3, "ms");
        if let Some(further) = cold.further {
            add("cold: further query", further.time.as_secs_f64() * 1e6, "µs");
            add("cold: page faults", further.faults, "of a further query");
            add("cold: page faults that read", further.reads, "of a further query");
        }
    }
    Ok(rows)
}

/// Checks that all members are found, and no known non-member.
fn check<S: KnownSet>(set: &S, feed: &mut Feed) -> Result<(), String> {
    for (kind, expected) in [(Kind::Member, true), (Kind::Other, false)] {
        feed.all(kind, |keys| match keys.iter().find(|key| set.contains(key) != expected) {
            None => Ok(()),
            Some(key) => {
                let key = String::from_utf8_lossy(key);
                Err(format!("{kind:?} {key}: the answer is {}", !expected))
            }
        })?;
    }
    Ok(())
}

/// Returns the share of absent keys that are found.
fn measured_fpr<S: KnownSet>(set: &S, absent: u64) -> f64 {
    let found = (0..absent).filter(|&number| set.contains(&key(Kind::Absent, number))).count();
    found as f64 / absent as f64
}

/// Returns the CPU time per key, in ns, of the fastest of some rounds.
fn fastest(keys: &[Key], mut query: impl FnMut(&[Key]) -> u64) -> f64 {
    let rounds = (0..ROUNDS).map(|_| {
        let start = cpu_time();
        black_box(query(keys));
        (cpu_time() - start).as_nanos() as f64 / keys.len() as f64
    });
    rounds.fold(f64::INFINITY, f64::min)
}
