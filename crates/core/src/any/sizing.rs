//! What a filter of any type will be, before it is made.
//!
//! Each builder returns the [`Sizing`] of the filter that it would make, by the function that
//! `build` itself calls. No memory is allocated for the filter, so that any size can be planned.

use std::fmt;
use std::sync::Arc;

use crate::counting::CountingBuilder;
use crate::error::Result;
use crate::filter::Facts;
use crate::filter::builder::Builder;
use crate::filter::geometry::Geometry;
use crate::format::kind::FilterType;
use crate::quotient::QuotientBuilder;
use crate::rate;
use crate::scalable::ScalableBuilder;
use crate::store::Line;
use crate::wide::WideBuilder;
use crate::windowed::WindowedBuilder;

/// The size and the rates of a filter that has not been made.
///
/// ```
/// use petal::QuotientFilter;
///
/// let sizing = QuotientFilter::builder().keys(100_000_000_000).rate(1e-3).sizing()?;
/// assert!(sizing.size_bytes() > 100 << 30 && sizing.expected_rate(1_000) < 1e-3);
/// # Ok::<_, petal::Error>(())
/// ```
#[derive(Clone)]
pub struct Sizing {
    filter_type: FilterType,
    facts: Facts,
    size_bytes: u64,
    describe: String,
    probes: Option<u32>,
    rate: Rate,
}

/// The rate by the number of keys.
type Rate = Arc<dyn Fn(u64) -> f64 + Send + Sync>;

impl fmt::Debug for Sizing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sizing")
            .field("filter_type", &self.filter_type)
            .field("facts", &self.facts)
            .field("size_bytes", &self.size_bytes)
            .field("describe", &self.describe)
            .finish_non_exhaustive()
    }
}

impl Sizing {
    /// The type of the filter.
    #[must_use]
    pub fn filter_type(&self) -> FilterType {
        self.filter_type
    }

    /// Bytes that its data will take when it is made:
    /// [`Membership::size_bytes`](crate::Membership::size_bytes).
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Keys it will be planned for; 0 if there is no plan.
    #[must_use]
    pub fn planned_keys(&self) -> u64 {
        self.facts.planned
    }

    /// The false-positive rate it will be planned for; 0 if there is no plan.
    #[must_use]
    pub fn target_rate(&self) -> f64 {
        self.facts.target
    }

    /// Bits that a key sets; `None` for types without such a number, or with more than one.
    #[must_use]
    pub fn probes(&self) -> Option<u32> {
        self.probes
    }

    /// The geometry in words: [`Membership::describe`](crate::Membership::describe).
    #[must_use]
    pub fn describe(&self) -> &str {
        &self.describe
    }

    /// The false-positive rate with `keys` distinct keys, by calculation.
    #[must_use]
    pub fn expected_rate(&self, keys: u64) -> f64 {
        (self.rate)(keys)
    }
}

/// Of a Bloom filter with counters of `width` bits; 1 for one without.
fn bloom<G: Geometry>(shape: G, facts: Facts, width: u32) -> Sizing {
    let fields = shape.fields();
    let classic = G::KIND == FilterType::Classic;
    let (filter_type, counters) = match (classic, width) {
        (_, 1) => (G::KIND, String::new()),
        (true, _) => (FilterType::CountingClassic, format!(", counters of {width} bits")),
        (false, _) => (FilterType::Counting, format!(", counters of {width} bits")),
    };
    Sizing {
        filter_type,
        facts,
        size_bytes: bytes(shape.lines(), width.into()),
        describe: shape.describe() + &counters,
        probes: Some(fields.probes.into()),
        rate: Arc::new(move |keys| shape.rate(keys)),
    }
}

/// Bytes of `times` as many lines.
fn bytes(lines: u64, times: u64) -> u64 {
    lines.saturating_mul(times).saturating_mul(Line::BYTES as u64)
}

impl<G: Geometry> Builder<G> {
    /// What [`build`](Self::build) would make, without the memory for it.
    ///
    /// # Errors
    /// As `build`, but for memory that is refused.
    pub fn sizing(&self) -> Result<Sizing> {
        let (shape, facts) = self.plan(1)?;
        Ok(bloom(shape, facts, 1))
    }
}

impl<G: Geometry> CountingBuilder<G> {
    /// What [`build`](Self::build) would make, without the memory for it.
    ///
    /// # Errors
    /// As `build`, but for memory that is refused.
    pub fn sizing(&self) -> Result<Sizing> {
        let (shape, facts, width) = self.plan()?;
        Ok(bloom(shape, facts, width))
    }
}

impl WideBuilder {
    /// What [`build`](Self::build) would make, without the memory for it.
    ///
    /// # Errors
    /// As `build`, but for memory that is refused.
    pub fn sizing(&self) -> Result<Sizing> {
        let (shape, facts) = self.plan()?;
        Ok(Sizing {
            filter_type: FilterType::Wide,
            facts,
            size_bytes: bytes(shape.lines(), 2),
            describe: crate::wide::describe(shape),
            probes: None,
            rate: Arc::new(move |keys| {
                rate::wide(keys, shape.blocks(), shape.lanes(), shape.probes())
            }),
        })
    }
}

impl QuotientBuilder {
    /// What [`build`](Self::build) would make, without the memory for it.
    ///
    /// # Errors
    /// As `build`, but for memory that is refused.
    pub fn sizing(&self) -> Result<Sizing> {
        let (shape, facts) = self.plan()?;
        Ok(Sizing {
            filter_type: FilterType::Quotient,
            facts,
            size_bytes: shape.size_bytes(),
            describe: shape.describe(),
            probes: None,
            rate: Arc::new(move |keys| shape.rate(keys)),
        })
    }
}

impl ScalableBuilder {
    /// What [`build`](Self::build) would make, without the memory for it: the first layer.
    ///
    /// # Errors
    /// As `build`, but for memory that is refused.
    pub fn sizing(&self) -> Result<Sizing> {
        let plan = self.plan()?;
        let shape = plan.shape(0)?;
        let facts = Facts { planned: plan.first(), target: plan.rate(), inserted: 0 };
        Ok(Sizing {
            filter_type: FilterType::Scalable,
            facts,
            // A file has a line for each layer.
            size_bytes: shape.size_bytes() + Line::BYTES as u64,
            describe: format!("1 layers, the newest of {}", bloom(shape, facts, 1).describe),
            probes: None,
            rate: Arc::new(move |keys| plan.expected_rate(keys, |_| None)),
        })
    }
}

impl WindowedBuilder {
    /// What [`build`](Self::build) would make, without the memory for it.
    ///
    /// # Errors
    /// As `build`, but for memory that is refused.
    pub fn sizing(&self) -> Result<Sizing> {
        let plan = self.plan()?;
        let shape = plan.shape()?;
        let facts = Facts { planned: plan.keys, target: plan.rate, inserted: 0 };
        Ok(Sizing {
            filter_type: FilterType::Windowed,
            facts,
            size_bytes: bytes(shape.lines(), plan.generations.into()),
            describe: format!(
                "{} generations of {}",
                plan.generations,
                bloom(shape, facts, 1).describe
            ),
            probes: None,
            rate: Arc::new(move |keys| plan.expected_rate(shape, keys)),
        })
    }
}
