//! Rivals, one function each: how it is made, sized, emptied, filled and asked.
//!
//! None of them has batches, so each is asked key by key, its call inlined. Those that take hashes get the very hashes
//! that petal gets; those that hash get numbers, and hash them as they like. bits per key is what is allocated for
//! the filter.

use std::hash::BuildHasher;

use bloomfilter::Bloom;
use fastbloom::BloomFilter as FastBloom;
use growable_bloom_filter::GrowableBloom;
use petal_bench::contest::keys::{Keys, Which};
use petal_bench::contest::subject::{OneByOne, Subject, Tested};
use petal_bench::contest::{Contestant, Kind};
use xorf::{BinaryFuse8, Filter as _};

/// Bits per key with which split blocks keep 1 % (`docs/design.md`, "Space").
const SPLIT_BLOCK: f64 = 10.53;

fn tested<F>(filter: F, clear: fn(&mut F)) -> Tested<F, u64> {
    Tested::new(filter, Keys::numbers, clear)
}

/// sbbf-rs-safe: split blocks of Parquet, with AVX2. It sizes by whole bits a key, of which 11 would be more than 1 %
/// needs and 10 fewer: asked for one bit a "key", it takes exactly the bits that are wanted.
pub fn split_block(keys: u64) -> Contestant {
    let bits = (SPLIT_BLOCK * keys as f64).ceil() as usize;
    let filter = sbbf_rs_safe::Filter::new(1, bits);
    let size = (filter.as_bytes().len() as u64 * 8, keys);
    let subject = OneByOne::new(
        tested(filter, sbbf_rs_safe::Filter::reset),
        |filter, &hash| filter.insert_hash(hash),
        |filter, &hash| filter.contains_hash(hash),
    );
    Contestant::single("sbbf-rs-safe", 0.01, size, Kind::Hash, subject)
}

/// fastbloom with hashes that are given.
pub fn fastbloom_hashes(keys: u64, rate: f64) -> Contestant {
    let filter = FastBloom::with_false_pos(rate).seed(&1).expected_items(keys as usize);
    let size = (filter.num_bits() as u64, keys);
    let subject = OneByOne::new(
        tested(filter, FastBloom::clear),
        |filter, &hash| filter.insert_hash(hash),
        |filter, &hash| filter.contains_hash(hash),
    );
    Contestant::single("fastbloom", rate, size, Kind::Hash, subject)
}

/// fastbloom with foldhash, which its page recommends for speed.
pub fn fastbloom_foldhash(keys: u64, rate: f64) -> Contestant {
    let hasher = foldhash::fast::FixedState::with_seed(1);
    let filter = FastBloom::with_false_pos(rate).hasher(hasher).expected_items(keys as usize);
    fastbloom("fastbloom foldhash", filter, rate, keys)
}

/// fastbloom with its default hash, SipHash-1-3.
pub fn fastbloom_default(keys: u64, rate: f64) -> Contestant {
    let filter = FastBloom::with_false_pos(rate).seed(&1).expected_items(keys as usize);
    fastbloom("fastbloom default", filter, rate, keys)
}

fn fastbloom<S: BuildHasher + 'static>(
    name: &str,
    filter: FastBloom<S>,
    rate: f64,
    keys: u64,
) -> Contestant {
    let size = (filter.num_bits() as u64, keys);
    let subject = OneByOne::new(
        tested(filter, FastBloom::clear),
        |filter, key| filter.insert(key),
        |filter, key| filter.contains(key),
    );
    Contestant::single(name, rate, size, Kind::Number, subject)
}

/// bloomfilter. Its `set` is used, which tells nothing: it does less than `check_and_set`.
///
/// # Errors
/// A sentence, if there cannot be such a filter.
pub fn bloomfilter(keys: u64, rate: f64) -> Result<Contestant, String> {
    // Both halves of the seed alike would make both of its hashes alike.
    let seed = std::array::from_fn(|at| at as u8);
    let filter: Bloom<u64> = Bloom::new_for_fp_rate_with_seed(keys as usize, rate, &seed)?;
    let size = (filter.len(), keys);
    let subject = OneByOne::new(
        tested(filter, Bloom::clear),
        |filter, key| {
            filter.set(key);
            true
        },
        |filter, key| filter.check(key),
    );
    Ok(Contestant::single("bloomfilter", rate, size, Kind::Number, subject))
}

/// growable-bloom-filter, told how many keys will come, so that it need not grow. It does not say what it allocates:
/// by its source that is one bit array for each of the probes, of keys / ln 2 bits. It forgets by giving its memory
/// back, so an emptied one is a new one with a key that is never asked for: that makes it allocate.
pub fn growable(keys: u64, rate: f64) -> Contestant {
    let probes = (1.0 / rate).log2().ceil() as u64;
    let bits = probes * (keys as f64 / std::f64::consts::LN_2).ceil() as u64;
    let filter = GrowableBloom::new(rate, keys as usize + 1);
    let clear = |filter: &mut GrowableBloom| {
        filter.clear();
        filter.insert("nobody's key");
    };
    let subject = OneByOne::new(
        tested(filter, clear),
        |filter, &key| filter.insert(key),
        |filter, &key| filter.contains(key),
    );
    Contestant::single("growable-bloom-filter", rate, (bits, keys), Kind::Number, subject)
}

/// qfilter, a quotient filter: its slots are a power of two.
///
/// # Errors
/// A sentence, if there cannot be such a filter.
pub fn qfilter(keys: u64, rate: f64, kind: Kind) -> Result<Contestant, String> {
    let filter = qfilter::Filter::new(keys, rate).map_err(|problem| problem.to_string())?;
    let size = (filter.memory_usage() as u64 * 8, keys);
    let tested = tested(filter, qfilter::Filter::clear);
    // A full filter refuses the key, which is found out when the key is asked for.
    Ok(if kind == Kind::Hash {
        let subject = OneByOne::new(
            tested,
            |filter, &hash| filter.insert_fingerprint(false, hash).unwrap_or(false),
            |filter, &hash| filter.contains_fingerprint(hash),
        );
        Contestant::single("qfilter", rate, size, kind, subject)
    } else {
        let subject = OneByOne::new(
            tested,
            |filter, key| filter.insert(key).unwrap_or(false),
            |filter, key| filter.contains(key),
        );
        Contestant::single("qfilter", rate, size, Kind::Number, subject)
    })
}

/// xorf's binary fuse filter of 8 bits, which is made of all keys at once: an insert is that, the memory it takes on
/// the way included. Its rate is 1/256; there is none of 1 %.
///
/// # Errors
/// A sentence, if there cannot be such a filter.
pub fn binary_fuse(keys: u64) -> Result<Contestant, String> {
    // Its size depends on the number of keys only.
    let sample = Keys::new(Which::Present, 0..keys, false);
    let filter = BinaryFuse8::try_from(sample.numbers())?;
    let size = (filter.fingerprints.len() as u64 * 8, keys);
    let subject = Fuse { filter: None, yes: 0 };
    let made = Contestant::single("xorf BinaryFuse8", 1.0 / 256.0, size, Kind::Hash, subject);
    Ok(Contestant { at_once: true, ..made })
}

struct Fuse {
    filter: Option<BinaryFuse8>,
    yes: u64,
}

impl Subject for Fuse {
    fn clear(&mut self) {
        self.filter = None;
    }

    fn insert(&mut self, keys: &Keys) {
        // One that could not be made has no keys, which is found out when they are asked for.
        self.filter = BinaryFuse8::try_from(keys.numbers()).ok();
    }

    fn ask(&mut self, keys: &Keys) {
        self.yes = self.filter.as_ref().map_or(0, |filter| {
            keys.numbers().iter().map(|key| u64::from(filter.contains(key))).sum()
        });
    }

    fn yes(&self) -> u64 {
        self.yes
    }
}

/// All of them for a number of keys and 1 %, but for those that take too long or too much beyond a million.
///
/// # Errors
/// A sentence, if one of them cannot be made.
pub fn all(keys: u64) -> Result<Vec<Contestant>, String> {
    const RATE: f64 = 0.01;
    const SMALL_TO: u64 = 1_000_000;
    let mut all = vec![
        split_block(keys),
        fastbloom_hashes(keys, RATE),
        fastbloom_foldhash(keys, RATE),
        fastbloom_default(keys, RATE),
        bloomfilter(keys, RATE)?,
    ];
    if keys <= SMALL_TO {
        all.push(growable(keys, RATE));
        all.push(qfilter(keys, RATE, Kind::Hash)?);
        all.push(qfilter(keys, RATE, Kind::Number)?);
        all.push(binary_fuse(keys)?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use petal_bench::contest::rounds::{Plan, run};

    use super::*;

    #[test]
    fn no_rival_loses_a_key_and_all_keep_their_rate() {
        let plan =
            Plan { keys: 30_000, rounds: 2, judged: 200_000, chunk: 10_000, whole_fill: false };
        let mut contestants = all(plan.keys).unwrap();
        let rows = run("test", plan, &mut contestants, &|_| ()).unwrap();
        assert_eq!(rows.len(), contestants.len() * 4);
        for row in rows {
            let (target, measured) = (row.target.unwrap(), row.measured.unwrap());
            // Within a third: this is to see that sizes and answers are understood, not to judge rivals.
            let (measured, _) = measured;
            let fair = target / 3.0 < measured && measured < target * 4.0 / 3.0;
            assert!(fair, "{}: {measured} of {target}", row.filter);
            assert!((8.0..25.0).contains(&row.bits_per_key), "{row:?}");
        }
    }
}
