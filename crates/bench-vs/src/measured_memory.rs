//! The memory of a rival, measured at the allocator: bytes allocated minus bytes freed while the filter was made and
//! changed.
//!
//! Few rivals report their memory. Cost: two reads of a counter for each batch.

use petal_bench::harness::Case;
use petal_bench::harness::adapters::BenchFilter;
use petal_bench::harness::keys::Keys;

/// Returns the bytes that are allocated now.
pub type Meter = fn() -> usize;

/// Makes a case and measures its memory from then on. That includes about a hundred bytes of the harness.
///
/// # Errors
/// If it cannot be made.
pub fn with_measured_memory(
    meter: Meter,
    make: impl FnOnce() -> Result<Case, String>,
) -> Result<Case, String> {
    let before = meter();
    let case = make()?;
    let bytes = meter() as i64 - before as i64;
    let tested = Box::new(Metered { inner: case.tested, meter, bytes });
    Ok(Case { tested, ..case })
}

struct Metered {
    inner: Box<dyn BenchFilter>,
    meter: Meter,
    bytes: i64,
}

impl Metered {
    fn measure<T>(&mut self, action: impl FnOnce(&mut dyn BenchFilter) -> T) -> T {
        let before = (self.meter)() as i64;
        let done = action(&mut *self.inner);
        self.bytes += (self.meter)() as i64 - before;
        done
    }
}

impl BenchFilter for Metered {
    fn clear(&mut self) {
        self.measure(|filter| filter.clear());
    }

    fn insert(&mut self, keys: &Keys) {
        self.measure(|filter| filter.insert(keys));
    }

    fn remove(&mut self, keys: &Keys) -> u64 {
        self.measure(|filter| filter.remove(keys))
    }

    fn query(&mut self, keys: &Keys) {
        self.inner.query(keys);
    }

    fn hits(&self) -> u64 {
        self.inner.hits()
    }

    fn checked_query(&mut self, keys: &Keys) -> Option<u64> {
        self.inner.checked_query(keys)
    }

    fn estimated_fpr(&self) -> Option<f64> {
        self.inner.estimated_fpr()
    }

    fn memory_bytes(&self) -> Option<u64> {
        u64::try_from(self.bytes).ok()
    }
}
