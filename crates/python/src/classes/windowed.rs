//! `WindowedBloomFilter`, which drops old keys.

use petal::{AnyFilter, FilterType};
use pyo3::prelude::*;

use super::options::{build, spec};
use super::{Filter, with_state};
use crate::state::{Clock, Storage};

/// A Bloom filter that drops old keys. Without `window` it contains the last `capacity` keys; with
/// it, the keys of the last `window` seconds, planned for `capacity` of them. It drops one of its
/// `generations` at a time, so a key stays for at most generations / (generations - 1) windows.
/// Other arguments as for `BloomFilter`.
///
/// With `window` a generation takes the keys of window / (generations - 1) seconds. The rate holds
/// while at most capacity / (generations - 1) of them are new. If keys come in bursts, multiply the
/// largest number for a generation by generations - 1, for `capacity`. It was too small if
/// `info()["is_overfull"]` is true.
///
/// The time is that of the system's clock, in whole seconds since the Unix epoch as in files of the
/// command line, until `advance_to` or `restart_at` sets it.
#[pyclass(frozen, extends = Filter, module = "petal")]
pub(crate) struct WindowedBloomFilter;

#[pymethods]
impl WindowedBloomFilter {
    #[new]
    #[pyo3(signature = (
        capacity, fpr = 0.01, *, window = None, generations = 4, seed = 0, secret = None, secret_apart = false
    ))]
    #[expect(clippy::too_many_arguments, reason = "the arguments of Python")]
    fn new(
        py: Python<'_>,
        capacity: u64,
        fpr: f64,
        window: Option<u64>,
        generations: u32,
        seed: u64,
        secret: Option<&[u8]>,
        secret_apart: bool,
    ) -> PyResult<PyClassInitializer<Self>> {
        let mut spec = spec(FilterType::Windowed, seed, secret, secret_apart)?;
        (spec.capacity, spec.fpr) = (Some(capacity), Some(fpr));
        (spec.window, spec.generations) = (window, generations);
        Ok(with_state(build(py, &spec)?, Self))
    }

    /// The window in seconds; `None` if the window is a number of keys.
    #[getter]
    fn window(slf: &Bound<'_, Self>) -> PyResult<Option<u64>> {
        Ok(match &slf.as_super().get().read(slf.py())?.storage {
            Storage::Memory(AnyFilter::Windowed(filter)) => filter.window_ticks(),
            Storage::Mapped(AnyFilter::Windowed(filter)) => filter.window_ticks(),
            _ => None,
        })
    }

    /// The number of generations.
    #[getter]
    fn generations(slf: &Bound<'_, Self>) -> PyResult<u32> {
        Ok(match &slf.as_super().get().read(slf.py())?.storage {
            Storage::Memory(AnyFilter::Windowed(filter)) => filter.generations(),
            Storage::Mapped(AnyFilter::Windowed(filter)) => filter.generations(),
            _ => 0,
        })
    }

    /// Sets the clock to `now`, in seconds, and drops keys that are older than the window. From
    /// then on the filter does not use the system's clock: for keys with timestamps, and for
    /// tests. An earlier time has no effect; if the window is a number of keys, no time has.
    ///
    /// A filter that is loaded or unpickled uses the system's clock again.
    fn advance_to(slf: &Bound<'_, Self>, now: u64) -> PyResult<()> {
        let filter = slf.as_super().get();
        slf.py().detach(|| {
            let mut state = filter.write_detached()?;
            state.clock = match state.clock {
                Clock::Manual(before) => Clock::Manual(now.max(before)),
                Clock::System => Clock::Manual(now),
            };
            if let Storage::Memory(AnyFilter::Windowed(filter)) = &mut state.storage {
                filter.advance_to(now);
            }
            Ok(())
        })
    }

    /// Removes all keys and sets the clock, forward or back. Use it after a wrong `advance_to`.
    fn restart_at(slf: &Bound<'_, Self>, now: u64) -> PyResult<()> {
        let filter = slf.as_super().get();
        slf.py().detach(|| {
            let mut state = filter.write_detached()?;
            if let AnyFilter::Windowed(filter) = state.filter_mut()? {
                filter.restart_at(now);
            }
            state.clock = Clock::Manual(now);
            Ok(())
        })
    }
}
