//! The size and rates of a filter before it is built.
//!
//! Each builder returns a [`Sizing`], computed by the function that `build` calls, too. No memory is
//! allocated for the filter, so that any size can be planned.

#[cfg(not(feature = "std"))]
use crate::no_std::*;
use alloc::sync::Arc;
use core::fmt;

use crate::counting::CountingBuilder;
use crate::error::Result;
use crate::filter::FilterInfo;
use crate::filter::builder::Builder;
use crate::filter::layout::Layout;
use crate::format::kind::FilterType;
use crate::quotient::QuotientBuilder;
use crate::scalable::ScalableBuilder;
use crate::store::CacheLine;
use crate::vector_quotient::VectorQuotientBuilder;
use crate::windowed::WindowedBuilder;

/// The size and the rates of a filter that is not built yet.
///
/// ```
/// use petal::QuotientFilter;
///
/// let sizing = QuotientFilter::builder().capacity(100_000_000_000).fpr(1e-3).sizing()?;
/// assert!(sizing.size_bytes() > 100 << 30 && sizing.expected_fpr(1_000) < 1e-3);
/// # Ok::<_, petal::Error>(())
/// ```
#[derive(Clone)]
pub struct Sizing {
    filter_type: FilterType,
    info: FilterInfo,
    size_bytes: u64,
    describe: String,
    probes: Option<u32>,
    rate: Rate,
}

/// The false-positive rate as a function of the number of keys.
type Rate = Arc<dyn Fn(u64) -> f64 + Send + Sync>;

impl fmt::Debug for Sizing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sizing")
            .field("filter_type", &self.filter_type)
            .field("info", &self.info)
            .field("size_bytes", &self.size_bytes)
            .field("describe", &self.describe)
            .finish_non_exhaustive()
    }
}

impl Sizing {
    /// Returns the type of the filter.
    #[must_use]
    pub fn filter_type(&self) -> FilterType {
        self.filter_type
    }

    /// Returns the size of the empty filter in bytes, as
    /// [`Membership::size_bytes`](crate::Membership::size_bytes).
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Returns the capacity; 0 without a plan.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.info.capacity
    }

    /// Returns the target false-positive rate; 0 without a plan.
    #[must_use]
    pub fn target_fpr(&self) -> f64 {
        self.info.target_fpr
    }

    /// Returns the number of bits of a key; `None` for types without such a number, or with several.
    #[must_use]
    pub fn probes(&self) -> Option<u32> {
        self.probes
    }

    /// Describes the layout in words, as [`Membership::describe`](crate::Membership::describe).
    #[must_use]
    pub fn describe(&self) -> &str {
        &self.describe
    }

    /// Returns the false-positive rate with `keys` distinct keys, by calculation.
    #[must_use]
    pub fn expected_fpr(&self, keys: u64) -> f64 {
        (self.rate)(keys)
    }
}

/// Returns the sizing of a Bloom filter with counters of `width` bits; 1 without counters.
fn bloom<L: Layout>(layout: L, info: FilterInfo, width: u32) -> Sizing {
    let fields = layout.fields();
    let classic = L::KIND == FilterType::Classic;
    let (filter_type, counters) = match (classic, width) {
        (_, 1) => (L::KIND, String::new()),
        (true, _) => (FilterType::CountingClassic, format!(", counters of {width} bits")),
        (false, _) => (FilterType::Counting, format!(", counters of {width} bits")),
    };
    Sizing {
        filter_type,
        info,
        size_bytes: bytes(layout.lines(), width.into()),
        describe: layout.describe() + &counters,
        probes: Some(fields.probes.into()),
        rate: Arc::new(move |keys| layout.fpr(keys)),
    }
}

/// Returns the bytes of `times` · `lines` lines.
fn bytes(lines: u64, times: u64) -> u64 {
    lines.saturating_mul(times).saturating_mul(CacheLine::BYTES as u64)
}

impl<L: Layout> Builder<L> {
    /// Returns the size and rates of the filter, without allocating its memory.
    ///
    /// # Errors
    /// As `build`, except for memory allocation.
    pub fn sizing(&self) -> Result<Sizing> {
        let (layout, info) = self.plan(1)?;
        Ok(bloom(layout, info, 1))
    }
}

impl<L: Layout> CountingBuilder<L> {
    /// Returns the size and rates of the filter, without allocating its memory.
    ///
    /// # Errors
    /// As `build`, except for memory allocation.
    pub fn sizing(&self) -> Result<Sizing> {
        let (layout, info, width) = self.plan()?;
        Ok(bloom(layout, info, width))
    }
}

impl QuotientBuilder {
    /// Returns the size and rates of the filter, without allocating its memory.
    ///
    /// # Errors
    /// As `build`, except for memory allocation.
    pub fn sizing(&self) -> Result<Sizing> {
        let (layout, info) = self.plan()?;
        Ok(Sizing {
            filter_type: FilterType::Quotient,
            info,
            size_bytes: layout.size_bytes(),
            describe: layout.describe(),
            probes: None,
            rate: Arc::new(move |keys| layout.fpr(keys)),
        })
    }
}

impl VectorQuotientBuilder {
    /// Returns the size and rates of the filter, without allocating its memory.
    ///
    /// # Errors
    /// As `build`, except for memory allocation.
    pub fn sizing(&self) -> Result<Sizing> {
        let (layout, info) = self.plan()?;
        Ok(Sizing {
            filter_type: FilterType::VectorQuotient,
            info,
            size_bytes: layout.size_bytes(),
            describe: layout.describe(),
            probes: None,
            rate: Arc::new(move |keys| layout.fpr(keys)),
        })
    }
}

impl ScalableBuilder {
    /// Returns the size and rates of the filter with one layer, without allocating its memory.
    ///
    /// # Errors
    /// As `build`, except for memory allocation.
    pub fn sizing(&self) -> Result<Sizing> {
        let plan = self.plan()?;
        let layout = plan.layout(0)?;
        let info = FilterInfo::planned(plan.first(), plan.fpr());
        Ok(Sizing {
            filter_type: FilterType::Scalable,
            info,
            // One line for each layer.
            size_bytes: layout.size_bytes() + CacheLine::BYTES as u64,
            describe: format!("1 layer, the newest of {}", bloom(layout, info, 1).describe),
            probes: None,
            rate: Arc::new(move |keys| plan.expected_fpr(keys, |_| None)),
        })
    }
}

impl WindowedBuilder {
    /// Returns the size and rates of the filter, without allocating its memory.
    ///
    /// # Errors
    /// As `build`, except for memory allocation.
    pub fn sizing(&self) -> Result<Sizing> {
        let plan = self.plan()?;
        let layout = plan.layout()?;
        let info = FilterInfo::planned(plan.keys, plan.fpr);
        Ok(Sizing {
            filter_type: FilterType::Windowed,
            info,
            size_bytes: bytes(layout.lines(), plan.generations.into()),
            describe: format!(
                "{} generations of {}",
                plan.generations,
                bloom(layout, info, 1).describe
            ),
            probes: Some(layout.probes()),
            rate: Arc::new(move |keys| plan.expected_fpr(layout, keys)),
        })
    }
}
