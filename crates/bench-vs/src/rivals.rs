//! Rivals, one function for each: how it is made, cleared, filled and queried.
//!
//! None has batches, so each is used key by key, with inlined calls. Filters that take hashes get the same hashes as
//! petal; the others get numbers and hash them. Bits per key are those allocated for the filter.

use std::hash::BuildHasher;

use bloomfilter::Bloom;
use fastbloom::BloomFilter as FastBloom;
use foldhash::fast::FixedState;
use growable_bloom_filter::GrowableBloom;
use petal_bench::harness::adapters::{FilterOps, PerKey, StaticBuild};
use petal_bench::harness::keys::Keys;
use petal_bench::harness::{Case, KeyKind};
use xorf::{BinaryFuse8, Filter as _};

/// Bits per key with which split blocks keep 1 % (`docs/design/filters.md`, "Space").
const SPLIT_BLOCK: f64 = 10.53;

fn ops<F>(filter: F, clear: fn(&mut F)) -> FilterOps<F, u64> {
    FilterOps::new(filter, Keys::numbers, clear)
}

/// sbbf-rs-safe: split blocks of Parquet, with AVX2. It takes a whole number of bits per key; for 1 % that would be 10,
/// too few, or 11, too many. With one bit per "key" its size is exact.
pub fn split_block(keys: u64) -> Case {
    let bits = (SPLIT_BLOCK * keys as f64).ceil() as usize;
    let filter = sbbf_rs_safe::Filter::new(1, bits);
    let size = (filter.as_bytes().len() as u64 * 8, keys);
    let tested = PerKey::new(
        ops(filter, sbbf_rs_safe::Filter::reset),
        |filter, &hash| filter.insert_hash(hash),
        |filter, &hash| filter.contains_hash(hash),
    );
    Case::single("sbbf-rs-safe", 0.01, size, KeyKind::Hash, tested)
}

/// fastbloom with mixed hashes.
pub fn fastbloom_hashes(keys: u64, rate: f64) -> Case {
    let filter = FastBloom::with_false_pos(rate).seed(&1).expected_items(keys as usize);
    let size = (filter.num_bits() as u64, keys);
    let tested = PerKey::new(
        ops(filter, FastBloom::clear),
        |filter, &hash| filter.insert_hash(hash),
        |filter, &hash| filter.contains_hash(hash),
    );
    Case::single("fastbloom", rate, size, KeyKind::Hash, tested)
}

/// fastbloom with foldhash, which its documentation recommends for speed.
pub fn fastbloom_foldhash(keys: u64, rate: f64) -> Case {
    fastbloom("fastbloom foldhash", foldhash_filter(keys, rate), rate, keys)
}

/// fastbloom with foldhash and byte keys.
pub fn fastbloom_foldhash_bytes(keys: u64, rate: f64) -> Case {
    let filter = foldhash_filter(keys, rate);
    let size = (filter.num_bits() as u64, keys);
    let tested = PerKey::new(
        FilterOps::new(filter, Keys::texts, FastBloom::clear),
        |filter, key: &Vec<u8>| filter.insert(key.as_slice()),
        |filter, key: &Vec<u8>| filter.contains(key.as_slice()),
    );
    Case::single("fastbloom foldhash", rate, size, KeyKind::Bytes, tested)
}

fn foldhash_filter(keys: u64, rate: f64) -> FastBloom<FixedState> {
    let hasher = FixedState::with_seed(1);
    FastBloom::with_false_pos(rate).hasher(hasher).expected_items(keys as usize)
}

/// fastbloom with its default hash, SipHash-1-3.
pub fn fastbloom_default(keys: u64, rate: f64) -> Case {
    let filter = FastBloom::with_false_pos(rate).seed(&1).expected_items(keys as usize);
    fastbloom("fastbloom default", filter, rate, keys)
}

fn fastbloom<S: BuildHasher + 'static>(
    name: &str,
    filter: FastBloom<S>,
    rate: f64,
    keys: u64,
) -> Case {
    let size = (filter.num_bits() as u64, keys);
    let tested = PerKey::new(
        ops(filter, FastBloom::clear),
        |filter, key| filter.insert(key),
        |filter, key| filter.contains(key),
    );
    Case::single(name, rate, size, KeyKind::Number, tested)
}

/// bloomfilter, filled with `set`, which does less than `check_and_set`.
///
/// # Errors
/// If the filter cannot be made.
pub fn bloomfilter(keys: u64, rate: f64) -> Result<Case, String> {
    // Equal halves of the seed would give equal hashes.
    let seed = std::array::from_fn(|at| at as u8);
    let filter: Bloom<u64> = Bloom::new_for_fp_rate_with_seed(keys as usize, rate, &seed)?;
    let size = (filter.len(), keys);
    let tested = PerKey::new(
        ops(filter, Bloom::clear),
        |filter, key| {
            filter.set(key);
            true
        },
        |filter, key| filter.check(key),
    );
    Ok(Case::single("bloomfilter", rate, size, KeyKind::Number, tested))
}

/// growable-bloom-filter with the final capacity. It does not report its size; by its source it has a bit array of
/// keys / ln 2 bits for each probe. `clear` frees its memory, so another key is inserted to allocate it again.
pub fn growable(keys: u64, rate: f64) -> Case {
    let probes = (1.0 / rate).log2().ceil() as u64;
    let bits = probes * (keys as f64 / std::f64::consts::LN_2).ceil() as u64;
    let filter = GrowableBloom::new(rate, keys as usize + 1);
    let clear = |filter: &mut GrowableBloom| {
        filter.clear();
        filter.insert("another key");
    };
    let tested = PerKey::new(
        ops(filter, clear),
        |filter, &key| filter.insert(key),
        |filter, &key| filter.contains(key),
    );
    Case::single("growable-bloom-filter", rate, (bits, keys), KeyKind::Number, tested)
}

/// qfilter, a quotient filter. Its number of slots is a power of two.
///
/// # Errors
/// If the filter cannot be made.
pub fn qfilter(keys: u64, rate: f64, kind: KeyKind) -> Result<Case, String> {
    let filter = qfilter::Filter::new(keys, rate).map_err(|problem| problem.to_string())?;
    let size = (filter.memory_usage() as u64 * 8, keys);
    let ops = ops(filter, qfilter::Filter::clear);
    // If a full filter refuses a key, the lookups that follow miss it and the run fails.
    Ok(if kind == KeyKind::Hash {
        let tested = PerKey::new(
            ops,
            |filter, &hash| filter.insert_fingerprint(false, hash).unwrap_or(false),
            |filter, &hash| filter.contains_fingerprint(hash),
        );
        Case::single("qfilter", rate, size, kind, tested)
    } else {
        let tested = PerKey::new(
            ops,
            |filter, key| filter.insert(key).unwrap_or(false),
            |filter, key| filter.contains(key),
        );
        Case::single("qfilter", rate, size, KeyKind::Number, tested)
    })
}

/// xorf's binary fuse filter of 8 bits, with a rate of 1/256. An insert is a build from all keys, allocations included.
pub fn binary_fuse() -> Case {
    let tested = StaticBuild::new(
        |keys| BinaryFuse8::try_from(keys).ok(),
        |filter: &BinaryFuse8, keys| keys.iter().map(|key| u64::from(filter.contains(key))).sum(),
        |filter| filter.fingerprints.len() as u64,
    );
    // Its memory is known after the build.
    let case = Case::single("xorf BinaryFuse8", 1.0 / 256.0, (0, 1), KeyKind::Hash, tested);
    Case { fills_at_once: true, ..case }
}

/// The largest number of keys for which rivals that take much time or memory are measured, and byte keys.
pub const SMALL_UP_TO: u64 = 1_000_000;

/// Returns the cases of all rivals at 1 %; above a million keys without those that take too much time or memory.
///
/// # Errors
/// If a filter cannot be made.
pub fn all(keys: u64) -> Result<Vec<Case>, String> {
    const RATE: f64 = 0.01;
    let mut all = vec![
        split_block(keys),
        fastbloom_hashes(keys, RATE),
        fastbloom_foldhash(keys, RATE),
        fastbloom_default(keys, RATE),
        bloomfilter(keys, RATE)?,
    ];
    if keys <= SMALL_UP_TO {
        all.push(fastbloom_foldhash_bytes(keys, RATE));
        all.push(growable(keys, RATE));
        all.push(qfilter(keys, RATE, KeyKind::Hash)?);
        all.push(qfilter(keys, RATE, KeyKind::Number)?);
        all.push(binary_fuse());
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use petal_bench::harness::{RunPlan, rounds::run};

    use super::*;

    #[test]
    fn rivals_keep_their_keys_and_rates() {
        let plan = RunPlan {
            keys: 30_000,
            rounds: 2,
            absent_keys: 200_000,
            chunk: 10_000,
            time_whole_fill: false,
        };
        let mut cases = all(plan.keys).unwrap();
        let rows = run("test", plan, &mut cases, &|_| ()).unwrap();
        assert_eq!(rows.len(), cases.len() * 4);
        for row in rows {
            let (target, measured) = (row.target_rate.unwrap(), row.measured_rate.unwrap());
            // Within a third: this checks that sizes and rates are passed correctly.
            let fair = target / 3.0 < measured && measured < target * 4.0 / 3.0;
            assert!(fair, "{}: {measured} of {target}", row.filter);
            assert!((8.0..25.0).contains(&row.bits_per_key.unwrap()), "{row:?}");
        }
    }
}
