//! Filters on both sides of the size from which memory is mapped pages (256 KiB): the allocator
//! serves targets without pages, such as WebAssembly, where this file runs too (`cargo x wasm`).

use petal::{
    AnyFilter, BatchResults, BloomFilter, ClassicBloomFilter, CountingBloomFilter, HashSpec,
    QuotientFilter, Result, ScalableBloomFilter, StaticFilter, VectorQuotientFilter,
    WindowedBloomFilter,
};

/// Keys of the smaller and of the larger filters: about 100 KiB and 1 MiB at 1 %.
const SIZES: [u64; 2] = [80_000, 800_000];

/// An empty filter of every type that takes keys, for this number of them.
fn filters(keys: u64) -> Result<Vec<AnyFilter>> {
    Ok(vec![
        AnyFilter::Bloom(BloomFilter::with_fpr(keys, 0.01)?),
        AnyFilter::Classic(ClassicBloomFilter::with_fpr(keys, 0.01)?),
        AnyFilter::Counting(CountingBloomFilter::with_fpr(keys, 0.01)?),
        AnyFilter::Quotient(QuotientFilter::with_fpr(keys, 0.01)?),
        AnyFilter::VectorQuotient(VectorQuotientFilter::with_fpr(keys, 0.01)?),
        AnyFilter::Scalable(ScalableBloomFilter::with_fpr(keys, 0.01)?),
        AnyFilter::Windowed(WindowedBloomFilter::with_fpr(keys, 0.01)?),
    ])
}

/// Hashes of the keys from `first` on, in the words of the filter.
fn hashes(spec: &HashSpec, first: u64, keys: u64) -> Vec<u64> {
    let mut hashes = Vec::new();
    spec.hash_all((first..first + keys).map(u64::to_le_bytes), &mut hashes);
    hashes
}

#[test]
fn filters_of_every_type_work_below_and_above_a_mapped_size() {
    for keys in SIZES {
        for mut filter in filters(keys).unwrap() {
            let (spec, name) = (filter.as_dyn().hash_spec(), filter.as_dyn().filter_type());
            let members = hashes(&spec, 0, keys);
            let mut found = BatchResults::new();
            filter.as_dyn_mut().unwrap().insert_mixed_hashes(&members, &mut found).unwrap();
            filter.as_dyn().contains_mixed_hashes(&members, &mut found);
            assert_eq!(found.count_ones(), keys, "{name:?} for {keys} keys");
            filter.as_dyn().contains_mixed_hashes(&hashes(&spec, keys, keys), &mut found);
            assert!(found.count_ones() < keys / 50, "{name:?} for {keys} keys");
        }
    }
}

#[test]
fn static_filters_work_below_and_above_a_mapped_size() {
    for keys in SIZES {
        let members: Vec<u64> = (0..keys).collect();
        let filter = StaticFilter::build(&members, 0.01).unwrap();
        let mut found = BatchResults::new();
        filter.contains_batch(&members, &mut found);
        assert_eq!(found.count_ones(), keys);
        filter.contains_batch(&(keys..2 * keys).collect::<Vec<_>>(), &mut found);
        assert!(found.count_ones() < keys / 50);
    }
}
