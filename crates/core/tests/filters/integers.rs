//! Integers of any pattern, inserted as keys, keep the target rate in every type.

use petal::{
    AtomicBloomFilter, BatchResults, BloomFilter, ClassicBloomFilter, ClassicCountingBloomFilter,
    CountingBloomFilter, FilterCascade, QuotientFilter, ScalableBloomFilter, StaticFilter,
    TypedBloomFilter, VectorQuotientFilter, WindowedBloomFilter,
};
use petal_testkit::bounds::binomial_range;

const KEYS: u64 = 20_000;
const QUERIES: u64 = 100_000;
const RATE: f64 = 0.01;

/// A 32-bit hash in common use: FNV-1a, whose upper half as a word is zero.
fn fnv(number: u64) -> u64 {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(16_777_619);
    number.to_le_bytes().into_iter().fold(2_166_136_261, step).into()
}

#[test]
fn integers_as_keys_keep_the_rate() {
    type Pattern = fn(u64) -> u64;
    let patterns: [(&str, Pattern); 5] = [
        ("i", |at| at),
        ("i << 32", |at| at << 32),
        ("i << 56 | i >> 8", |at| at.rotate_right(8)),
        ("multiples of 4096", |at| at * 4096),
        ("32-bit hashes", fnv),
    ];
    for (pattern, number) in patterns {
        let keys: Vec<u64> = (0..KEYS).map(number).collect();
        let others: Vec<u64> = (KEYS..KEYS + QUERIES).map(number).collect();
        let judge = |name: &str, contains: &dyn Fn(&u64) -> bool| {
            assert!(keys.iter().all(contains), "{name}, {pattern}");
            let wrong = others.iter().filter(|key| contains(key)).count() as u64;
            // The rates of filters of this size vary by about 2 %.
            let (_, max) = binomial_range(QUERIES, RATE * 1.06, 1.0 - 1e-6);
            assert!(wrong <= max, "{name}, {pattern}: {wrong} of {QUERIES}");
        };
        let mut new = BatchResults::new();
        macro_rules! filled {
            ($($type:ident)*) => {$({
                let mut filter = $type::with_fpr(KEYS, RATE).unwrap();
                // Single keys and batches, which hash words by other code.
                for key in &keys[..KEYS as usize / 2] {
                    let _ = filter.insert(key);
                }
                let _ = filter.insert_batch(&keys[KEYS as usize / 2..], &mut new);
                judge(stringify!($type), &|key| filter.contains(key));
                let mut found = BatchResults::new();
                filter.contains_batch(&keys, &mut found);
                assert_eq!(found.count_ones(), KEYS, "{pattern}");
            })*};
        }
        filled!(BloomFilter ClassicBloomFilter CountingBloomFilter ClassicCountingBloomFilter);
        filled!(QuotientFilter ScalableBloomFilter WindowedBloomFilter);
        filled!(VectorQuotientFilter);
        let shared = AtomicBloomFilter::with_fpr(KEYS, RATE).unwrap();
        shared.insert_batch(&keys, &mut new);
        judge("AtomicBloomFilter", &|key| shared.contains(key));
        let mut typed = TypedBloomFilter::<u64>::with_fpr(KEYS, RATE).unwrap();
        keys.iter().for_each(|key| _ = typed.insert(key));
        judge("TypedBloomFilter", &|key| typed.contains(key));
        let fixed = StaticFilter::builder().fpr(RATE).build(&keys).unwrap();
        judge("StaticFilter", &|key| fixed.contains(key));
        let fuse = StaticFilter::builder().fpr(RATE).fuse(true).build(&keys).unwrap();
        judge("StaticFilter, fuse", &|key| fuse.contains(key));
        for filter in [fixed, fuse] {
            let mut found = BatchResults::new();
            filter.contains_batch(&keys, &mut found);
            assert_eq!(found.count_ones(), KEYS, "{pattern}");
            filter.contains_batch(&others, &mut found);
            let single = |at: usize| filter.contains(&others[at]);
            assert!((0..others.len()).all(|at| found.get(at) == single(at)), "{pattern}");
        }
        let cascade = FilterCascade::builder().fpr(RATE).build(&keys, &others[..1000]).unwrap();
        judge("FilterCascade", &|key| cascade.contains(key));
    }
}
