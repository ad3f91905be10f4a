//! Removal, counts, unions and comparisons of filters in petal's layout.

use petal::embed::SerializedView;
use petal::math::Overlap;
use petal::{AnyFilter, BatchResults, BloomFilter, ClassicBloomFilter, Membership as _};

use super::{StoredFilter, hashes};
use crate::error::FilterError;

impl StoredFilter {
    /// Removes keys, one copy each. `removed` has whether a copy of each was removed.
    ///
    /// # Errors
    /// If the type does not support removal.
    pub(crate) fn remove_all<'k>(
        &mut self,
        keys: impl Iterator<Item = &'k [u8]>,
        removed: &mut BatchResults,
    ) -> Result<(), FilterError> {
        let Self::Filter(filter) = self else { return Err(FilterError::Unsupported) };
        let hashes = hashes(filter.as_dyn().hash_spec(), keys);
        let mut kept = BatchResults::new();
        kept.fill_with(hashes.len(), |at| is_saturated(filter, hashes[at]));
        filter.as_dyn_mut()?.remove_mixed_hashes(&hashes, removed)?;
        if kept.count_ones() > 0 {
            let found = std::mem::take(removed);
            removed.fill_with(found.len(), |at| found.get(at) && !kept.get(at));
        }
        Ok(())
    }

    /// Returns the number of copies of each key; an upper bound.
    ///
    /// # Errors
    /// If the type has no counters.
    pub(crate) fn counts<'k>(
        &self,
        keys: impl Iterator<Item = &'k [u8]>,
    ) -> Result<Vec<u64>, FilterError> {
        let Self::Filter(filter) = self else { return Err(FilterError::Unsupported) };
        let hashes = hashes(filter.as_dyn().hash_spec(), keys);
        let count: &dyn Fn(u64) -> u64 = match &**filter {
            AnyFilter::Counting(filter) => &|hash| filter.count_mixed_hash(hash),
            AnyFilter::CountingClassic(filter) => &|hash| filter.count_mixed_hash(hash),
            AnyFilter::Quotient(filter) => &|hash| filter.count_mixed_hash(hash),
            AnyFilter::VectorQuotient(filter) => &|hash| filter.count_mixed_hash(hash),
            _ => return Err(FilterError::Unsupported),
        };
        Ok(hashes.into_iter().map(count).collect())
    }

    /// Replaces the filter by the union with the others. Returns whether it changed; after an error
    /// it did not.
    ///
    /// # Errors
    /// If the filters are incompatible, or the union exceeds the memory limit.
    pub(crate) fn union(
        &mut self,
        others: &[&Self],
        memory_limit: u64,
    ) -> Result<bool, FilterError> {
        let Self::Filter(target) = self else { return Err(FilterError::Unsupported) };
        let mut sources = Vec::with_capacity(others.len());
        for other in others {
            let Self::Filter(other) = other else { return Err(FilterError::Unsupported) };
            target.check_compatible(other)?;
            sources.push(other);
        }
        let mut bytes = target.as_dyn().memory_usage();
        match &**target {
            // A quotient filter is rebuilt, and may have to double until all keys fit.
            AnyFilter::Quotient(table) => {
                let keys = sources.iter().map(|source| source.as_dyn().inserted());
                let keys = keys.fold(table.len(), u64::saturating_add);
                let mut capacity = table.layout().capacity();
                while table.is_growing() && capacity < keys {
                    (capacity, bytes) = (capacity.saturating_mul(2), bytes.saturating_mul(2));
                }
            }
            AnyFilter::VectorQuotient(_) => {}
            // A union of compatible Bloom filters neither grows nor becomes full. It also replaces
            // the number of keys by an estimate, so it is skipped if it would do nothing else.
            _ => {
                sources.retain(|source| !includes(target, source));
                sources.iter().try_for_each(|source| target.union(source))?;
                return Ok(!sources.is_empty());
            }
        }
        if bytes > memory_limit {
            return Err(FilterError::MemoryLimit);
        }
        let mut union = target.try_clone()?;
        for source in sources {
            union.union(source)?;
            if union.as_dyn().memory_usage() > memory_limit {
                return Err(FilterError::MemoryLimit);
            }
        }
        let changed = union != **target;
        if changed {
            **target = union;
        }
        Ok(changed)
    }

    /// Estimates the overlap of two filters.
    ///
    /// # Errors
    /// If they cannot be compared.
    pub(crate) fn compare(&self, other: &Self) -> Result<Overlap, FilterError> {
        match (self.bloom_bits(), other.bloom_bits()) {
            (Some(BloomBits::Blocked(left)), Some(BloomBits::Blocked(right))) => {
                Ok(left.compare(right)?)
            }
            (Some(BloomBits::Classic(left)), Some(BloomBits::Classic(right))) => {
                Ok(left.compare(right)?)
            }
            _ => Err(FilterError::Unsupported),
        }
    }

    /// Returns the Bloom filter, or that of a counting filter.
    fn bloom_bits(&self) -> Option<BloomBits<'_>> {
        let Self::Filter(filter) = self else { return None };
        Some(match &**filter {
            AnyFilter::Bloom(filter) => BloomBits::Blocked(filter),
            AnyFilter::Counting(filter) => BloomBits::Blocked(filter.as_filter()),
            AnyFilter::Classic(filter) => BloomBits::Classic(filter),
            AnyFilter::CountingClassic(filter) => BloomBits::Classic(filter.as_filter()),
            _ => return None,
        })
    }
}

/// Returns whether all counters of a key are saturated, so that neither inserting nor removing it
/// changes the filter.
pub(super) fn is_saturated(filter: &AnyFilter, hash: u64) -> bool {
    match filter {
        AnyFilter::Counting(filter) => filter.count_mixed_hash(hash) == filter.max_count(),
        AnyFilter::CountingClassic(filter) => filter.count_mixed_hash(hash) == filter.max_count(),
        _ => false,
    }
}

/// Returns whether the union with a compatible Bloom filter or counting filter has the bits or
/// counters of `target`: `target` has all bits of the other, and of a counting filter the counters
/// of these bits are saturated.
fn includes(target: &AnyFilter, other: &AnyFilter) -> bool {
    let (max_count, bit_bytes) = match target {
        AnyFilter::Counting(filter) => (filter.max_count(), filter.as_filter().size_bytes()),
        AnyFilter::CountingClassic(filter) => (filter.max_count(), filter.as_filter().size_bytes()),
        filter => (1, filter.as_dyn().size_bytes()),
    };
    // After the bits, a counting filter has the lines of binary digits of each line's counters.
    let digits = u64::from(max_count.ilog2());
    let (ours, theirs) = (target.serialized(), other.serialized());
    let line = |view: &SerializedView<'_>, at: u64| -> [u8; LINE] {
        view.read(at * LINE as u64, LINE).try_into().unwrap_or([0; LINE])
    };
    (0..bit_bytes / LINE as u64).all(|at| {
        let planes = (0..digits).map(|digit| bit_bytes / LINE as u64 + at * digits + digit);
        let full = planes.fold(line(&ours, at), |all, plane| {
            let plane = line(&ours, plane);
            std::array::from_fn(|byte| all[byte] & plane[byte])
        });
        line(&theirs, at).iter().zip(full).all(|(theirs, full)| theirs & !full == 0)
    })
}

/// Bytes of a line of bits.
const LINE: usize = 64;

enum BloomBits<'a> {
    Blocked(&'a BloomFilter),
    Classic(&'a ClassicBloomFilter),
}

#[cfg(test)]
mod tests {
    use petal::{HashSpec, QuotientFilter, WindowedBloomFilter};

    use super::*;
    use crate::filters::{Clock, FilterKind, FilterSpec, Growth, Insertion};

    const ANY: u64 = u64::MAX;
    const SLOTS: u64 = 1024;
    const KEYS: [&[u8]; 3] = [b"a", b"b", b"c"];

    fn filter(kind: FilterKind, seed: u8) -> StoredFilter {
        FilterSpec { kind, fpr: 0.0001, capacity: 1000, seed: [seed; 16] }.build(ANY).unwrap()
    }

    /// A quotient filter with a capacity below 1000 keys.
    fn quotient(keys: std::ops::Range<u64>) -> StoredFilter {
        let hash = HashSpec::keyed([7; 16]);
        let builder = QuotientFilter::builder().table_size(SLOTS).slot_bits(20);
        let mut filter = builder.hash(hash).build().unwrap();
        keys.for_each(|key| _ = filter.insert(key.to_string().as_bytes()).unwrap());
        AnyFilter::Quotient(filter).into()
    }

    fn data(stored: &StoredFilter) -> (Vec<u8>, Vec<u8>) {
        let view = stored.serialized().unwrap();
        (view.header().to_vec(), view.read(0, usize::MAX).to_vec())
    }

    struct At(u64);

    impl Clock for At {
        fn now(&self) -> u64 {
            self.0
        }
    }

    /// A clock that moves only between generations gives the same results as one that always moves.
    #[test]
    fn window_clock_moves_between_generations() {
        for generations in [2, 3, 12] {
            let kind = FilterKind::Window { milliseconds: Some(100), generations };
            let mut left = filter(kind, 1);
            let mut model = WindowedBloomFilter::builder().window(100).generations(generations);
            model = model.capacity(1000).fpr(0.0001).hash(HashSpec::keyed([1; 16]));
            let mut model = model.build().unwrap();
            let mut moves = 0;
            for step in 0..2000u64 {
                let (now, key) = (5000 + step * step / 900, (step % 37).to_string());
                moves += u64::from(left.advance(now));
                model.advance_to(now);
                let new = left.insert(key.as_bytes(), ANY).unwrap().is_new();
                assert_eq!(new, model.insert(key.as_bytes()), "{step}");
                let query = (step * 7 % 40).to_string();
                let later = now + step % 150;
                assert_eq!(
                    left.contains(query.as_bytes(), &At(later)),
                    model.contains_at(later, query.as_bytes()),
                    "{step}"
                );
            }
            assert!(moves < 1000 && !left.advance(5) && left.advance(u64::MAX));
        }
        let mut endless = filter(FilterKind::Window { milliseconds: Some(ANY), generations: 2 }, 1);
        assert!(!endless.advance(1 << 60) && endless.insert(b"a", ANY) == Ok(Insertion::New));
        assert!(endless.contains(b"a", &At(1 << 62)));
    }

    #[test]
    fn only_filters_with_copies_support_removal() {
        let mut removed = BatchResults::new();
        let keys: [&[u8]; 3] = [b"a", b"a", b"x"];
        for kind in [FilterKind::Counting, FilterKind::VectorQuotient] {
            let mut stored = filter(kind, 1);
            stored.insert_all(KEYS.into_iter(), ANY);
            assert_eq!(stored.remove_all(keys.into_iter(), &mut removed), Ok(()));
            assert_eq!(removed.iter().collect::<Vec<_>>(), [0], "{kind:?}");
            assert_eq!(stored.counts(KEYS.into_iter()), Ok(vec![0, 1, 1]), "{kind:?}");
        }
        let window = FilterKind::Window { milliseconds: None, generations: 3 };
        for kind in [
            FilterKind::Bloom { growth: None },
            FilterKind::Bloom { growth: Some(Growth::by(2)) },
            window,
        ] {
            let mut stored = filter(kind, 1);
            assert_eq!(
                stored.remove_all(KEYS.into_iter(), &mut removed),
                Err(FilterError::Unsupported)
            );
            assert_eq!(stored.counts(KEYS.into_iter()), Err(FilterError::Unsupported));
        }
    }

    #[test]
    fn failed_union_changes_nothing() {
        let mut left = filter(FilterKind::Bloom { growth: None }, 1);
        let (right, other_seed) =
            (left.copy().unwrap(), filter(FilterKind::Bloom { growth: None }, 2));
        let before = data(&left);
        assert!(matches!(left.union(&[&right, &other_seed], ANY), Err(FilterError::Other(_))));
        assert_eq!(data(&left), before);
        // If not all keys of the sources fit into a quotient filter, none is inserted.
        let mut left = quotient(0..500);
        let (fits, many) = (quotient(500..600), quotient(600..1500));
        let before = data(&left);
        assert_eq!(left.union(&[&fits, &many], ANY), Err(FilterError::Full));
        assert_eq!(left.union(&[&fits], 100), Err(FilterError::MemoryLimit));
        assert_eq!(data(&left), before);
        assert_eq!(left.union(&[&fits], ANY), Ok(true));
        assert_eq!(left.info().items, 600);
        // One that fits leaves no trace if a later one does not.
        let spec =
            |seed| FilterSpec { kind: FilterKind::VectorQuotient, fpr: 0.01, capacity: 100, seed };
        let mut of = [(); 3].map(|()| spec([1; 16]).build(ANY).unwrap());
        for (stored, keys) in of.iter_mut().zip([0..30, 30..60, 60..300]) {
            keys.for_each(|key: u32| _ = stored.insert(&key.to_le_bytes(), ANY));
        }
        let [mut left, fits, many] = of;
        let before = data(&left);
        assert_eq!(left.union(&[&fits, &many], ANY), Err(FilterError::Full));
        assert_eq!(left.union(&[&fits], 100), Err(FilterError::MemoryLimit));
        assert_eq!(data(&left), before);
        assert_eq!((left.union(&[&fits], ANY), left.info().items), (Ok(true), 60));
        assert!(left.union(&[&filter(FilterKind::Counting, 1)], ANY).is_err());
    }

    /// A batch that does not fit is inserted up to the first key that is rejected.
    #[test]
    fn full_quotient_filter_inserts_a_part_of_a_batch() {
        let mut table = quotient(0..500);
        let keys: Vec<String> = (500..2 * SLOTS).map(|key| key.to_string()).collect();
        let keys = keys.iter().map(|key| key.as_bytes());
        let outcome = table.insert_all(keys.clone(), ANY);
        assert_eq!(outcome.error, Some(FilterError::Full));
        assert_eq!(table.info().items, 500 + outcome.inserted as u64);
        let mut again = quotient(0..500);
        assert_eq!(again.insert_all(keys.take(outcome.inserted), ANY).error, None);
        assert_eq!(data(&again), data(&table));
    }

    /// Copies of a key fit into two blocks only, also in a filter that is nearly empty.
    #[test]
    fn too_many_copies_insert_a_part_of_a_batch() {
        let mut stored = filter(FilterKind::VectorQuotient, 1);
        stored.insert(b"b", ANY).unwrap();
        let copies = |count| std::iter::repeat_n(&b"a"[..], count);
        let outcome = stored.insert_all(copies(900), ANY);
        assert_eq!(outcome.error, Some(FilterError::Full));
        assert!((24..=128).contains(&outcome.inserted) && outcome.new.count_ones() == 1);
        assert_eq!(stored.info().items, 1 + outcome.inserted as u64);
        let mut again = filter(FilterKind::VectorQuotient, 1);
        again.insert(b"b", ANY).unwrap();
        assert_eq!(again.insert_all(copies(outcome.inserted), ANY).error, None);
        assert_eq!(data(&again), data(&stored));
    }

    #[test]
    fn compare_estimates_overlap_from_bits() {
        let (mut left, mut right) =
            (filter(FilterKind::Counting, 1), filter(FilterKind::Bloom { growth: None }, 1));
        left.insert_all(KEYS.into_iter(), ANY);
        right.insert(b"a", ANY).unwrap();
        let overlap = left.compare(&right).unwrap();
        assert!((overlap.intersection.value - 1.0).abs() < 0.1, "{overlap:?}");
        assert!((overlap.union.value - 3.0).abs() < 0.1, "{overlap:?}");
        let grows = filter(FilterKind::Bloom { growth: Some(Growth::by(2)) }, 1);
        assert_eq!(left.compare(&grows), Err(FilterError::Unsupported));
    }
}
