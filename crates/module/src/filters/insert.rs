//! Inserts keys within a memory limit.

use petal::{AnyFilter, BatchResults, Membership as _, ScalableBloomFilter, WindowedBloomFilter};

use super::set_ops::is_saturated;
use super::{StoredFilter, hashes};
use crate::error::FilterError;
use crate::redisbloom;

/// The effect of inserting a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Insertion {
    /// The key was new.
    New,
    /// The key was present; it has another copy or count, or is younger now.
    Renewed,
    /// The key was present, and the filter is unchanged.
    Unchanged,
}

impl Insertion {
    pub(crate) fn is_new(self) -> bool {
        self == Self::New
    }

    fn of(new: bool, changed: bool) -> Self {
        match (new, changed) {
            (true, _) => Self::New,
            (false, true) => Self::Renewed,
            (false, false) => Self::Unchanged,
        }
    }
}

/// The result of inserting several keys.
#[derive(Debug, Default)]
pub(crate) struct InsertOutcome {
    /// For each inserted key, whether it was new.
    pub(crate) new: BatchResults,
    /// Whether the filter changed.
    pub(crate) changed: bool,
    /// Number of inserted keys: all, or those before the error.
    pub(crate) inserted: usize,
    /// Why the next key was rejected.
    pub(crate) error: Option<FilterError>,
}

impl StoredFilter {
    /// Returns whether inserting one key may allocate memory.
    pub(crate) fn may_grow(&self) -> bool {
        match self {
            Self::Scalable(filter) => filter.layer_capacity_left() == 0,
            Self::Filter(filter) => match &**filter {
                AnyFilter::Quotient(filter) => filter.is_growing(),
                _ => false,
            },
            Self::RedisBloom(filter) => filter.is_full(),
            Self::Window(_) | Self::QuotientChain(_) | Self::Partial(_) | Self::RedisCuckoo(_) => {
                false
            }
        }
    }

    /// Inserts a key.
    #[inline]
    pub(crate) fn insert(
        &mut self,
        key: &[u8],
        memory_limit: u64,
    ) -> Result<Insertion, FilterError> {
        match self {
            Self::Window(filter) => {
                let before = generations(filter);
                let new = filter.insert_mixed_hash(filter.hash_spec().hash(key));
                return Ok(Insertion::of(new, generations(filter) != before));
            }
            Self::Scalable(filter) if filter.layer_capacity_left() > 0 => {
                let new = filter.insert_mixed_hash(filter.hash_spec().hash(key))?;
                return Ok(Insertion::of(new, new));
            }
            Self::Filter(filter) => match &mut **filter {
                AnyFilter::Bloom(filter) if left(filter.capacity(), filter.inserted()) > 0 => {
                    let new = filter.insert_mixed_hash(filter.hash_spec().hash(key));
                    return Ok(Insertion::of(new, new));
                }
                _ => {}
            },
            _ => {}
        }
        let InsertOutcome { new, changed, error, .. } =
            self.insert_all(std::iter::once(key), memory_limit);
        // After an error `new` is empty.
        error.map_or_else(|| Ok(Insertion::of(new.get(0), changed)), Err)
    }

    /// Inserts keys, up to the first that does not fit within the memory limit.
    pub(crate) fn insert_all<'k>(
        &mut self,
        keys: impl Iterator<Item = &'k [u8]>,
        memory_limit: u64,
    ) -> InsertOutcome {
        match self {
            Self::Window(filter) => {
                let (hashes, before) = (hashes(filter.hash_spec(), keys), generations(filter));
                let mut outcome =
                    InsertOutcome { inserted: hashes.len(), ..InsertOutcome::default() };
                filter.insert_mixed_hashes(&hashes, &mut outcome.new);
                outcome.changed = generations(filter) != before;
                outcome
            }
            Self::Scalable(filter) => {
                let hashes = hashes(filter.hash_spec(), keys);
                let outcome = insert_into_scalable(filter, &hashes, memory_limit);
                InsertOutcome { changed: outcome.new.count_ones() > 0, ..outcome }
            }
            Self::Filter(filter) => {
                let hashes = hashes(filter.as_dyn().hash_spec(), keys);
                let saturated = hashes.iter().all(|hash| is_saturated(filter, *hash));
                let outcome = insert_into_petal(filter, &hashes, memory_limit);
                let changed = match **filter {
                    AnyFilter::Counting(_) | AnyFilter::CountingClassic(_) => !saturated,
                    // A copy of a present key takes a slot.
                    AnyFilter::Quotient(_) | AnyFilter::VectorQuotient(_) => outcome.inserted > 0,
                    _ => outcome.new.count_ones() > 0,
                };
                InsertOutcome { changed, ..outcome }
            }
            Self::RedisBloom(filter) => insert_into_redisbloom(filter, keys, memory_limit),
            Self::QuotientChain(_) | Self::Partial(_) | Self::RedisCuckoo(_) => {
                InsertOutcome { error: Some(FilterError::Unsupported), ..InsertOutcome::default() }
            }
        }
    }
}

/// Inserts keys into a Bloom filter in RedisBloom's layout.
fn insert_into_redisbloom<'k>(
    filter: &mut redisbloom::Bloom,
    keys: impl Iterator<Item = &'k [u8]>,
    memory_limit: u64,
) -> InsertOutcome {
    let hashes: Vec<_> = keys.map(|key| filter.hash(key)).collect();
    let outcome = insert_one_by_one(hashes.len(), |at| filter.add(hashes[at], memory_limit));
    InsertOutcome { changed: outcome.new.count_ones() > 0, ..outcome }
}

/// Returns what inserts change in a window: the newest generation and the number of keys. A key
/// that the newest generation contains changes nothing.
fn generations(filter: &WindowedBloomFilter) -> (u64, u64) {
    (filter.now(), filter.inserted())
}

/// Inserts keys in order, up to the first error.
fn insert_one_by_one(
    count: usize,
    mut insert: impl FnMut(usize) -> Result<bool, FilterError>,
) -> InsertOutcome {
    let mut outcome = InsertOutcome::default();
    let (mut inserted, mut error) = (0, None);
    outcome.new.fill_with(count, |at| {
        if error.is_some() {
            return false;
        }
        match insert(at) {
            Ok(new) => {
                inserted += 1;
                new
            }
            Err(reason) => {
                error = Some(reason);
                false
            }
        }
    });
    InsertOutcome { inserted, error, ..outcome }
}

/// Inserts keys into a Bloom filter that grows, in batches that fit into its newest layer.
fn insert_into_scalable(
    filter: &mut ScalableBloomFilter,
    hashes: &[u64],
    memory_limit: u64,
) -> InsertOutcome {
    let (mut outcome, mut batch) = (InsertOutcome::default(), BatchResults::new());
    let mut new = Vec::with_capacity(hashes.len());
    while new.len() < hashes.len() {
        let rest = &hashes[new.len()..];
        let left = filter.layer_capacity_left();
        if left == 0
            && !filter.contains_mixed_hash(rest[0])
            && let Err(error) = check_growth(filter, memory_limit)
        {
            outcome.error = Some(error);
            break;
        }
        let count = rest.len().min(usize::try_from(left).unwrap_or(usize::MAX).max(1));
        if let Err(error) = filter.insert_mixed_hashes(&rest[..count], &mut batch) {
            outcome.error = Some(error.into());
            break;
        }
        new.extend((0..count).map(|at| batch.get(at)));
    }
    outcome.inserted = new.len();
    outcome.new.fill_with(hashes.len(), |at| new.get(at).copied().unwrap_or(false));
    outcome
}

/// Returns an error if another layer exceeds the memory limit or the number of layers.
fn check_growth(filter: &ScalableBloomFilter, memory_limit: u64) -> Result<(), FilterError> {
    let more = filter
        .next_layer_bytes()
        .map_err(|error| if error.is_full() { FilterError::MaxLayers } else { error.into() })?;
    if filter.memory_usage().saturating_add(more) > memory_limit {
        return Err(FilterError::MemoryLimit);
    }
    Ok(())
}

/// Inserts keys into a filter in petal's layout, in batches that fit into its free capacity.
fn insert_into_petal(filter: &mut AnyFilter, hashes: &[u64], memory_limit: u64) -> InsertOutcome {
    if hashes.len() as u64 <= free(filter) {
        return insert_batch(filter, hashes);
    }
    let (mut outcome, mut result) = (InsertOutcome::default(), BatchResults::new());
    let mut new = Vec::with_capacity(hashes.len());
    while outcome.error.is_none() && new.len() < hashes.len() {
        let rest = &hashes[new.len()..];
        let count = rest.len().min(usize::try_from(free(filter)).unwrap_or(usize::MAX));
        if count > 0 {
            let batch = insert_batch(filter, &rest[..count]);
            new.extend((0..batch.inserted).map(|at| batch.new.get(at)));
            outcome.error = batch.error;
            continue;
        }
        match insert_one(filter, &rest[..1], memory_limit, &mut result) {
            Ok(is_new) => new.push(is_new),
            Err(error) => outcome.error = Some(error),
        }
    }
    outcome.inserted = new.len();
    outcome.new.fill_with(hashes.len(), |at| new.get(at).copied().unwrap_or(false));
    outcome
}

/// Returns how many new keys the filter takes before it grows or is full.
fn free(filter: &AnyFilter) -> u64 {
    match filter {
        AnyFilter::Bloom(filter) => left(filter.capacity(), filter.inserted()),
        AnyFilter::Classic(filter) => left(filter.capacity(), filter.inserted()),
        AnyFilter::Quotient(filter) => filter.layout().capacity().saturating_sub(filter.len()),
        _ => u64::MAX,
    }
}

/// Inserts keys into a filter that has free capacity for them.
fn insert_batch(filter: &mut AnyFilter, hashes: &[u64]) -> InsertOutcome {
    let before = filter.as_dyn().inserted();
    let mut outcome = InsertOutcome::default();
    let inserted = match filter.as_dyn_mut() {
        Ok(filter) => filter.insert_mixed_hashes(hashes, &mut outcome.new),
        Err(error) => Err(error),
    };
    match inserted {
        Ok(()) => outcome.inserted = hashes.len(),
        Err(error) => {
            // Only filters with a slot for each key become full: the keys before are inserted.
            outcome.inserted = (filter.as_dyn().inserted() - before) as usize;
            outcome.error = Some(error.into());
        }
    }
    outcome
}

/// Inserts a key into a filter that may be full.
fn insert_one(
    filter: &mut AnyFilter,
    hash: &[u64],
    memory_limit: u64,
    result: &mut BatchResults,
) -> Result<bool, FilterError> {
    // A quotient filter stores a copy of a present key.
    if !matches!(filter, AnyFilter::Quotient(_)) {
        filter.as_dyn().contains_mixed_hashes(hash, result);
        if result.get(0) {
            return Ok(false);
        }
    }
    let more = match filter {
        AnyFilter::Bloom(filter) if left(filter.capacity(), filter.inserted()) == 0 => {
            return Err(FilterError::Full);
        }
        AnyFilter::Classic(filter) if left(filter.capacity(), filter.inserted()) == 0 => {
            return Err(FilterError::Full);
        }
        // It doubles its size.
        AnyFilter::Quotient(filter)
            if filter.is_growing() && filter.len() >= filter.layout().capacity() =>
        {
            filter.size_bytes()
        }
        _ => 0,
    };
    if more > 0 && filter.as_dyn().memory_usage().saturating_add(more) > memory_limit {
        return Err(FilterError::MemoryLimit);
    }
    filter.as_dyn_mut()?.insert_mixed_hashes(hash, result)?;
    Ok(result.get(0))
}

/// Returns the free capacity; unlimited if the filter has no capacity (0).
fn left(capacity: u64, inserted: u64) -> u64 {
    if capacity == 0 { u64::MAX } else { capacity.saturating_sub(inserted) }
}

#[cfg(test)]
mod tests {
    use petal_testkit::rng::Rng;

    use super::*;
    use crate::filters::{FilterKind, FilterSpec, Growth};

    /// Batches with repeated keys, in which a filter grows, becomes full or expires generations,
    /// give the same results and the same filter as single inserts.
    #[test]
    fn batches_equal_single_inserts() {
        let window = |milliseconds, generations| FilterKind::Window { milliseconds, generations };
        let kinds = [
            FilterKind::Bloom { growth: None },
            FilterKind::Bloom { growth: Some(Growth::by(2)) },
            FilterKind::RedisBloom { growth: None },
            FilterKind::RedisBloom { growth: Some(2) },
            FilterKind::Counting,
            FilterKind::VectorQuotient,
            window(None, 2),
            window(None, 4),
            window(Some(90), 4),
        ];
        for (kind, seed) in kinds.into_iter().flat_map(|kind| (0..6).map(move |seed| (kind, seed)))
        {
            let mut rng = Rng::new(seed);
            let capacity = 1 + rng.below(300) as u64;
            // The lowest rates of the types.
            let fpr = if kind == FilterKind::VectorQuotient { 1e-6 } else { 1e-9 };
            let spec = FilterSpec { kind, fpr, capacity, seed: [1; 16] };
            let (mut single, mut batched) =
                (spec.build(u64::MAX).unwrap(), spec.build(u64::MAX).unwrap());
            let distinct = 1 + rng.below(400) as u64;
            let stream: Vec<String> =
                (0..5000).map(|_| (rng.next_u64() % distinct).to_string()).collect();
            let mut rest = &stream[..];
            while !rest.is_empty() {
                let batch = &rest[..(1 + rng.below(900)).min(rest.len())];
                let outcome = batched.insert_all(batch.iter().map(String::as_bytes), u64::MAX);
                for (at, key) in batch.iter().take(outcome.inserted).enumerate() {
                    let new = single.insert(key.as_bytes(), u64::MAX);
                    let new = new.map(Insertion::is_new);
                    assert_eq!(Ok(outcome.new.get(at)), new, "{kind:?} {seed}");
                }
                rest = &rest[outcome.inserted..];
                if let Some(error) = outcome.error {
                    assert_eq!(single.insert(rest[0].as_bytes(), u64::MAX), Err(error));
                    rest = &rest[1..];
                }
                let data = |stored: &StoredFilter| {
                    stored.serialized().map(|view| view.read(0, usize::MAX).to_vec())
                };
                assert!(data(&single) == data(&batched), "{kind:?} {seed}");
                assert_eq!(single.info(), batched.info(), "{kind:?} {seed}");
            }
        }
    }
}
