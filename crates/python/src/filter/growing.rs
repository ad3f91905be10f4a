//! `ScalableBloomFilter`, which grows in layers, and `WindowedBloomFilter`, which forgets.

use petal::AnyFilter;
use pyo3::prelude::*;

use super::size::hash;
use super::{Filter, parts};
use crate::error::Raise;
use crate::held::{Clock, Held, Place};

/// Grows: when its newest layer is full it adds one, `growth` times as large, and keeps
/// the rate over all of them. `capacity` is that of the first layer.
#[pyclass(frozen, extends = Filter, module = "petal")]
pub(crate) struct ScalableBloomFilter;

/// Forgets what is old. Without `window` it holds the last `capacity` keys; with it, the keys of
/// the last `window` seconds, planned for `capacity` of them. It forgets in steps: at the latest
/// after generations / (generations - 1) of the window.
///
/// The time is the system's, in whole seconds since the epoch of Unix, as in files of the command
/// line; or the caller's, once he said it with advance_to().
#[pyclass(frozen, extends = Filter, module = "petal")]
pub(crate) struct WindowedBloomFilter;

#[pymethods]
impl ScalableBloomFilter {
    #[new]
    #[pyo3(signature = (capacity, rate = 0.01, *, growth = 2, seed = 0, secret = None))]
    fn new(
        py: Python<'_>,
        capacity: u64,
        rate: f64,
        growth: u64,
        seed: u64,
        secret: Option<&[u8]>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let builder = petal::ScalableBloomFilter::builder().hash(hash(seed, secret, false)?);
        let builder = builder.keys(capacity).rate(rate).growth(growth);
        let made = py.detach(|| builder.build()).map_err(Raise::raise)?;
        Ok(parts(Held::new(made), Self))
    }

    /// How many layers there are.
    #[getter]
    fn layers(slf: &Bound<'_, Self>) -> PyResult<u32> {
        Ok(match &slf.as_super().get().read(slf.py())?.place {
            Place::Memory(AnyFilter::Scalable(filter)) => filter.layers(),
            Place::File(AnyFilter::Scalable(filter)) => filter.layers(),
            _ => 0,
        })
    }

    /// How many times larger than the layer before each layer is.
    #[getter]
    fn growth(slf: &Bound<'_, Self>) -> PyResult<u64> {
        Ok(match &slf.as_super().get().read(slf.py())?.place {
            Place::Memory(AnyFilter::Scalable(filter)) => filter.growth(),
            Place::File(AnyFilter::Scalable(filter)) => filter.growth(),
            _ => 0,
        })
    }
}

#[pymethods]
impl WindowedBloomFilter {
    #[new]
    #[pyo3(signature = (
        capacity, rate = 0.01, *, window = None, generations = 4, seed = 0, secret = None
    ))]
    fn new(
        py: Python<'_>,
        capacity: u64,
        rate: f64,
        window: Option<u64>,
        generations: u32,
        seed: u64,
        secret: Option<&[u8]>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let builder = petal::WindowedBloomFilter::builder().hash(hash(seed, secret, false)?);
        let builder = builder.keys(capacity).rate(rate).generations(generations);
        let builder = window.map_or(builder, |seconds| builder.time(seconds));
        let made = py.detach(|| builder.build()).map_err(Raise::raise)?;
        Ok(parts(Held::new(made), Self))
    }

    /// The window in seconds; None if it is a number of keys.
    #[getter]
    fn window(slf: &Bound<'_, Self>) -> PyResult<Option<u64>> {
        Ok(match &slf.as_super().get().read(slf.py())?.place {
            Place::Memory(AnyFilter::Windowed(filter)) => filter.window_ticks(),
            Place::File(AnyFilter::Windowed(filter)) => filter.window_ticks(),
            _ => None,
        })
    }

    /// In how many parts it forgets.
    #[getter]
    fn generations(slf: &Bound<'_, Self>) -> PyResult<u32> {
        Ok(match &slf.as_super().get().read(slf.py())?.place {
            Place::Memory(AnyFilter::Windowed(filter)) => filter.generations(),
            Place::File(AnyFilter::Windowed(filter)) => filter.generations(),
            _ => 0,
        })
    }

    /// Tells the time, in seconds, and from then on the system's clock is not asked: for keys with
    /// times of their own, and for tests. What has grown too old is forgotten; a time before the
    /// latest one changes nothing. Without effect if the window is a number of keys.
    ///
    /// A filter that is loaded or unpickled goes by the system's clock again.
    fn advance_to(slf: &Bound<'_, Self>, now: u64) -> PyResult<()> {
        let filter = slf.as_super().get();
        slf.py().detach(|| {
            let mut held = filter.write_detached()?;
            held.clock = match held.clock {
                Clock::Told(before) => Clock::Told(now.max(before)),
                Clock::System => Clock::Told(now),
            };
            if let Place::Memory(AnyFilter::Windowed(filter)) = &mut held.place {
                filter.advance_to(now);
            }
            Ok(())
        })
    }

    /// Forgets all keys and sets the clock, forward or back: the way out after a wrong time.
    fn restart_at(slf: &Bound<'_, Self>, now: u64) -> PyResult<()> {
        let filter = slf.as_super().get();
        slf.py().detach(|| {
            let mut held = filter.write_detached()?;
            if let AnyFilter::Windowed(filter) = held.memory()? {
                filter.restart_at(now);
            }
            held.clock = Clock::Told(now);
            Ok(())
        })
    }
}
