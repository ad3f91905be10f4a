//! Which filter to make of lines: by type, for so many keys, at a rate or in so much memory.
//!
//! The same recipe makes of the same lines the same filter, bit for bit, whoever asks. Words that
//! do not go together are refused before any work is done; so is a filter that is larger than it
//! may be, where the recipe tells how large it will be.
//!
//! Cost: a pass over the inputs, and one more to count their lines where nothing tells how many
//! to plan for.

use std::num::NonZeroUsize;

use petal::FilterType::{
    Bloom, Cascade, Classic, Counting, CountingClassic, Quotient, Scalable, Static, Wide, Windowed,
};
use petal::{
    AnyFilter, BloomFilter, ClassicBloomFilter, ClassicCountingBloomFilter, ClassicShape,
    CountingBloomFilter, CountingBuilder, FilterCascade, FilterType, HashSpec, Membership,
    QuotientBuilder, QuotientFilter, QuotientShape, ScalableBloomFilter, ScalableBuilder, Shape,
    Sizing, StaticFilter, WideBloomFilter, WideBuilder, WindowedBloomFilter, WindowedBuilder,
};

use crate::cap::Cap;
use crate::error::{About, Error, Names, Result};
use crate::filters::{count_lines, fill, hashes};
use crate::input::Source;
use crate::readable::{readable_count, readable_keys, readable_rate, readable_size};
use crate::settings::Settings;

/// What filters made of lines say of themselves. No time and no names: the same lines give the
/// same file.
pub const METADATA: &str = concat!(
    r#"{"producer":"petal "#,
    env!("CARGO_PKG_VERSION"),
    r#"","keys":"lines as bytes, without their delimiter"}"#
);

/// What is asked of a filter of lines; `None` is what nothing is said of.
#[derive(Clone, Debug, Default)]
pub struct Recipe {
    /// Its type; else the one that the other words ask for.
    pub kind: Option<FilterType>,
    /// Lines to plan for; else they are counted first.
    pub keys: Option<u64>,
    /// The false-positive rate to plan for; else [`RATE`](Self::RATE), or with `memory` alone the
    /// best that fits.
    pub rate: Option<f64>,
    /// Bytes that the filter may take; else half of the memory there is.
    pub memory: Option<u64>,
    /// Bits of a counter, of counting types; else [`WIDTH`](Self::WIDTH).
    pub width: Option<u32>,
    /// Whether it shall grow.
    pub growing: bool,
    /// Lines that a quotient filter grows up to.
    pub max_keys: Option<u64>,
    /// Seconds after which it forgets.
    pub window: Option<u64>,
    /// Lines after which it forgets.
    pub last: Option<u64>,
    /// Seconds since some epoch, for a window of seconds.
    pub now: u64,
    /// Lines that a cascade must not hold.
    pub not_in: Vec<Source>,
    /// Seed of the hash. It is no protection against chosen lines.
    pub seed: u64,
    /// Hash with a secret random key instead.
    pub keyed: bool,
}

/// A filter that was made.
#[derive(Debug)]
pub struct Made {
    /// The filter.
    pub filter: AnyFilter,
    /// Lines of the inputs.
    pub lines: u64,
    /// How often the inputs were read.
    pub passes: u64,
}

/// A better rate than anybody asks for: in so much memory alone, the filter stops growing there.
const BEST_RATE: f64 = 1e-9;

/// How many times its keys a growing quotient filter is made for when nothing is said of it: four
/// bits a key that others do not take.
const GROWTH: u64 = 16;

/// Parts that a window is planned in: one generation less than there are.
const PARTS: u64 = 3;

/// Runs with the builder of whichever type it is.
macro_rules! with {
    ($any:expr, $builder:ident => $call:expr) => {
        match $any {
            Builder::Bloom($builder) => $call,
            Builder::Classic($builder) => $call,
            Builder::Counting($builder) => $call,
            Builder::CountingClassic($builder) => $call,
            Builder::Wide($builder) => $call,
            Builder::Quotient($builder) => $call,
            Builder::Scalable($builder) => $call,
            Builder::Windowed($builder) => $call,
        }
    };
}

impl Recipe {
    /// The rate when nothing is said of it.
    pub const RATE: f64 = 0.01;

    /// Bits of a counter when nothing is said of them.
    pub const WIDTH: u32 = 4;

    /// The lowest rate of a static filter, whose equations have at most 32 bits for a line.
    pub const LEAST_STATIC: f64 = 2.5e-10;

    /// The type that was named, or that the other words ask for.
    ///
    /// # Errors
    /// Of words that do not go together.
    pub fn kind(&self) -> Result<FilterType> {
        let asked = |wanted: bool, kind: FilterType| wanted.then_some(kind);
        let kind = self.kind.or(asked(!self.not_in.is_empty(), Cascade));
        let kind = kind.or(asked(self.max_keys.is_some(), Quotient));
        let forgets = self.window.is_some() || self.last.is_some();
        let kind = kind.or(asked(forgets, Windowed));
        let kind = kind.or(asked(self.growing, Scalable)).unwrap_or(Bloom);
        self.refuse_strange_words(kind)?;
        if kind == Cascade && self.not_in.is_empty() {
            return refused(move |names| {
                let Names { kind: word, not_in, .. } = names;
                format!("{word} {kind}: say with {not_in} which lines it must not hold")
            });
        }
        if kind == Windowed && !forgets {
            return refused(move |names| {
                let Names { kind: word, forgetting, .. } = names;
                format!("{word} {kind}: say with {forgetting} when it forgets")
            });
        }
        if self.last.is_some() && (self.window.is_some() || self.keys.is_some()) {
            return refused(|Names { last, window, keys, .. }| {
                format!("{last}: tells all of what is held; leave out {window} and {keys}")
            });
        }
        if kind.is_fixed() && self.keys.is_some() {
            return refused(move |Names { keys, .. }| {
                format!("{keys}: a {kind} filter is made of the lines that come; leave it out")
            });
        }
        let too_low = |rate: f64| 0.0 < rate && rate < Self::LEAST_STATIC;
        if kind.is_fixed() && self.rate.is_some_and(too_low) {
            return refused(move |names| {
                let Names { kind: word, rate, .. } = names;
                format!(
                    "{rate}: a {kind} filter has at most 32 bits for a line, and 2.5e-10 is the \
                     lowest rate of that; accept it, or take {word} bloom or wide"
                )
            });
        }
        let sized_by_rate = kind.is_fixed() || matches!(kind, Scalable | Quotient | Windowed);
        if sized_by_rate && self.by_memory() {
            return refused(move |Names { memory, rate, .. }| {
                format!(
                    "{memory}: alone it does not tell the rate of a {kind} filter; say that with \
                     {rate}, and {memory} is a limit"
                )
            });
        }
        Ok(kind)
    }

    /// Refuses words that are for other types.
    fn refuse_strange_words(&self, kind: FilterType) -> Result<()> {
        type Name = fn(&Names) -> &'static str;
        let rules: [(bool, Name, &'static [FilterType], &str); 6] = [
            (self.width.is_some(), |n| n.width, &[Counting, CountingClassic], "has no counters"),
            (self.growing, |n| n.growing, &[Scalable, Quotient], "does not grow"),
            (self.max_keys.is_some(), |n| n.max_keys, &[Quotient], "has no such end"),
            (self.window.is_some(), |n| n.window, &[Windowed], "forgets nothing"),
            (self.last.is_some(), |n| n.last, &[Windowed], "forgets nothing"),
            (!self.not_in.is_empty(), |n| n.not_in, &[Cascade], "knows no exceptions"),
        ];
        for (said, name, kinds, why) in rules {
            if said && !kinds.contains(&kind) {
                return refused(move |names| {
                    let (name, word) = (name(names), names.kind);
                    let kinds = kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>();
                    let kinds = kinds.join(" or ");
                    format!("{name}: a {kind} filter {why}; leave it out, or use {word} {kinds}")
                });
            }
        }
        Ok(())
    }

    /// Makes the filter of all lines of the inputs.
    ///
    /// # Errors
    /// Of words that do not go together, a filter that is larger than it may be or takes no more
    /// lines, and inputs that cannot be read, or not twice where they are to be counted first.
    pub fn make(&self, settings: &Settings<'_>, inputs: &[Source]) -> Result<Made> {
        let kind = self.kind()?;
        match kind.is_fixed() {
            true => self.at_once(kind, settings, inputs),
            false => self.line_by_line(kind, settings, inputs),
        }
    }

    /// Of a type that takes line after line.
    fn line_by_line(
        &self,
        kind: FilterType,
        settings: &Settings<'_>,
        inputs: &[Source],
    ) -> Result<Made> {
        // What grows with what comes need not know, nor what was told how many it is to hold.
        let untold = (kind == Scalable || self.last.is_some()).then_some(0);
        let (keys, passes) = match self.keys.or(untold) {
            Some(keys) => (keys, 1),
            None => {
                let lines = count_lines(settings, inputs)?.max(1);
                // All of them come at once, and that may be no more than a part of the window.
                (lines.saturating_mul(if kind == Windowed { PARTS } else { 1 }), 2)
            }
        };
        let mut filter = self.empty(kind, keys)?;
        let filled = fill(settings, filter.face_mut()?, inputs, self.cap());
        let lines = filled.map_err(|error| explain_full(error, filter.face()))?.lines;
        Ok(Made { filter, lines, passes })
    }

    /// Of a type that is made once of all lines and never changes.
    fn at_once(
        &self,
        kind: FilterType,
        settings: &Settings<'_>,
        inputs: &[Source],
    ) -> Result<Made> {
        let (hash, rate) = (self.hash(kind)?, self.planned_rate());
        let threads = NonZeroUsize::new(settings.jobs).unwrap_or(NonZeroUsize::MIN);
        let members = hashes(settings, &hash, inputs, 0)?;
        let lines = members.len() as u64;
        let filter = if kind == Static {
            let builder = StaticFilter::builder().hash(hash).rate(rate).threads(threads);
            AnyFilter::from(builder.from_mixed_hashes(members)?)
        } else {
            let others = hashes(settings, &hash, &self.not_in, lines)?;
            let builder = FilterCascade::builder(rate).hash(hash).threads(threads);
            let cascade = builder.from_mixed_hashes(members, others);
            AnyFilter::from(cascade.map_err(|error| match error.contradictions().len() {
                0 => error.into(),
                both => self.contradiction(both as u64),
            })?)
        };
        self.refuse_too_large(&filter)?;
        Ok(Made { filter, lines, passes: 1 })
    }

    /// Lines that are to be held and not to be held.
    fn contradiction(&self, both: u64) -> Error {
        let files = self.not_in.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        let both = readable_count(both);
        Error::worded(About::Setting, move |Names { common, .. }| {
            format!(
                "{files}: {both} of its lines are in the other inputs too; take them out of one of \
                 both ({common} prints them)"
            )
        })
    }

    /// The empty filter for so many keys, by rate or by memory.
    fn empty(&self, kind: FilterType, keys: u64) -> Result<AnyFilter> {
        let builder = self.builder(kind, keys)?;
        let sizing = self.sized(kind, builder)?;
        if sizing.size_bytes() > self.cap() {
            let or = |names: &Names| format!("accept a higher rate with {}", names.rate);
            return Err(self.too_large(sizing.planned_keys(), sizing.size_bytes(), or));
        }
        let built = with!(builder, builder => builder.build().map(AnyFilter::from));
        let mut filter = built.map_err(|error| self.explain(kind, error))?;
        if let AnyFilter::Windowed(filter) = &mut filter {
            filter.advance_to(self.now);
        }
        Ok(filter)
    }

    /// What [`make`](Self::make) would make for `keys` lines: its size and its rates, without the
    /// memory for it. The types that are made of all lines at once have none before.
    ///
    /// # Errors
    /// As `make`; but a filter may be larger than the memory there is, if no limit was given.
    pub fn sizing(&self, keys: u64) -> Result<Sizing> {
        let kind = self.kind()?;
        let limited = Self {
            memory: self.memory.or(Some(u64::MAX)),
            rate: self.rate.or_else(|| self.memory.is_none().then_some(Self::RATE)),
            ..self.clone()
        };
        let builder = limited.builder(kind, keys)?;
        let sizing = limited.sized(kind, builder)?;
        if sizing.size_bytes() > limited.cap() {
            let or = |names: &Names| format!("accept a higher rate with {}", names.rate);
            return Err(limited.too_large(keys, sizing.size_bytes(), or));
        }
        Ok(sizing)
    }

    /// A number of lines for which `make` makes a Bloom filter of at most the given memory at the
    /// given rate, within 2 % or one line of the most. `None` if one of both is not given, or for
    /// types of another kind.
    ///
    /// # Errors
    /// If the rate is not between 0 and 1.
    pub fn most_keys(&self) -> Result<Option<u64>> {
        let (Some(memory), Some(rate)) = (self.memory, self.rate) else { return Ok(None) };
        let width = u64::from(self.width.unwrap_or(Self::WIDTH)).max(1);
        Ok(Some(match self.kind()? {
            Bloom => Shape::most_keys(memory, rate)?,
            Classic => ClassicShape::most_keys(memory, rate)?,
            Counting => Shape::most_keys(memory / width, rate)?,
            CountingClassic => ClassicShape::most_keys(memory / width, rate)?,
            _ => return Ok(None),
        }))
    }

    fn sized(&self, kind: FilterType, builder: Builder) -> Result<Sizing> {
        with!(builder, builder => builder.sizing()).map_err(|error| self.explain(kind, error))
    }

    fn explain(&self, kind: FilterType, error: petal::Error) -> Error {
        match kind {
            Scalable | Windowed => out_of_reach(kind, self.planned_rate(), error),
            _ => error.into(),
        }
    }

    /// The builder of the filter, with all that was asked for.
    fn builder(&self, kind: FilterType, keys: u64) -> Result<Builder> {
        let (hash, width) = (self.hash(kind)?, self.width.unwrap_or(Self::WIDTH));
        let (size, rate) = (self.size(kind, keys)?, self.planned_rate());
        /// Tells a builder of any type what was asked for.
        macro_rules! sized {
            ($builder:expr) => {{
                let builder = $builder.hash(hash).keys(keys);
                match size {
                    Size::Memory(bytes) => builder.memory(bytes),
                    Size::Rate(rate) => builder.rate(rate),
                }
            }};
        }
        Ok(match kind {
            Bloom => Builder::Bloom(sized!(BloomFilter::builder())),
            Classic => Builder::Classic(sized!(ClassicBloomFilter::builder())),
            Counting => Builder::Counting(sized!(CountingBloomFilter::builder().width(width))),
            CountingClassic => {
                Builder::CountingClassic(sized!(ClassicCountingBloomFilter::builder().width(width)))
            }
            Wide => Builder::Wide(sized!(WideBloomFilter::builder())),
            Quotient => {
                if let Some(most) = self.max_keys.filter(|most| *most < keys) {
                    return refused(move |Names { max_keys, .. }| {
                        let (most, keys) = (readable_keys(most), readable_count(keys));
                        format!(
                            "{max_keys}: {most} is less than the {keys} that the filter begins \
                             with; raise it"
                        )
                    });
                }
                let builder = QuotientFilter::builder().hash(hash).keys(keys).rate(rate);
                let growth = self.growing.then(|| keys.saturating_mul(GROWTH));
                let most = self.max_keys.or(growth);
                Builder::Quotient(most.map_or(builder, |most| builder.max_keys(most)))
            }
            Scalable => {
                let builder = ScalableBloomFilter::builder().hash(hash).rate(rate);
                // Without a guess its own is as good as any.
                Builder::Scalable(self.keys.map_or(builder, |keys| builder.keys(keys)))
            }
            Windowed => {
                let builder = WindowedBloomFilter::builder().hash(hash).rate(rate);
                let builder = builder.keys(self.last.unwrap_or(keys));
                Builder::Windowed(self.window.map_or(builder, |seconds| builder.time(seconds)))
            }
            _ => {
                return refused(move |Names { kind: word, .. }| {
                    format!("{word} {kind}: cannot be made of lines")
                });
            }
        })
    }

    /// The hash of lines for a filter of this type; a keyed one has a new random key each time.
    ///
    /// # Errors
    /// If the system gives no random bytes.
    pub fn hash(&self, kind: FilterType) -> Result<HashSpec> {
        if !self.keyed {
            return Ok(match kind {
                Wide => HashSpec::wide(self.seed),
                _ => HashSpec::rapid(self.seed),
            });
        }
        let mut key = [0; 16];
        getrandom::fill(&mut key).map_err(|_| Error::random())?;
        Ok(if kind == Wide { HashSpec::wide_keyed(key) } else { HashSpec::keyed(key) })
    }

    /// The rate to plan for, unless memory alone decides.
    fn planned_rate(&self) -> f64 {
        self.rate.unwrap_or(Self::RATE)
    }

    /// Whether memory alone tells how large the filter is.
    fn by_memory(&self) -> bool {
        self.memory.is_some() && self.rate.is_none()
    }

    /// How large the filter may be.
    fn cap(&self) -> u64 {
        self.memory.unwrap_or_else(|| Cap::DEFAULT.bytes())
    }

    /// Memory alone: the best rate that fits. Else the rate decides, and memory is a limit.
    fn size(&self, kind: FilterType, keys: u64) -> Result<Size> {
        let (cap, rate) = (self.cap(), self.planned_rate());
        let Some(layout) = Layout::of(kind, self.width) else {
            // A table's size is known before memory is asked for, too.
            if kind == Quotient {
                let needed = QuotientShape::for_rate(keys, rate)?.size_bytes();
                if needed > cap {
                    let or = |names: &Names| format!("plan for fewer with {}", names.keys);
                    return Err(self.too_large(keys, needed, or));
                }
            }
            return Ok(if self.by_memory() { Size::Memory(cap) } else { Size::Rate(rate) });
        };
        if self.by_memory() {
            // More than the best rate takes would be memory for nothing.
            let best = if kind == Wide { BEST_RATE * BEST_RATE } else { BEST_RATE };
            let most = layout.needed(keys, best);
            return Ok(Size::Memory(most.map_or(cap, |most| cap.min(most))));
        }
        let needed = match layout.needed(keys, rate) {
            // A half could not, the whole perhaps can: its builder knows.
            Err(error) if kind == Wide && error.is_unattainable() => 0,
            needed => needed?,
        };
        if needed <= cap {
            return Ok(Size::Rate(rate));
        }
        // A filter that says yes to most things is no way out.
        let best = layout.best(cap, keys).ok().filter(|best| *best < 0.5);
        let limited = self.memory.is_some();
        Err(self.too_large(keys, needed, move |Names { rate, keys, .. }| match best {
            Some(best) if limited => format!("leave out {rate} to get {}", readable_rate(best)),
            Some(best) => format!("accept {} with {rate}", readable_rate(best * 1.001)),
            None => format!("plan for fewer keys with {keys}"),
        }))
    }

    /// Refuses a filter that is larger than it may be.
    fn refuse_too_large(&self, filter: &AnyFilter) -> Result<()> {
        let (keys, needed) = (filter.face().planned_keys(), filter.face().size_bytes());
        if needed <= self.cap() {
            return Ok(());
        }
        let or = |names: &Names| format!("accept a higher rate with {}", names.rate);
        Err(self.too_large(keys, needed, or))
    }

    /// So many keys need more than they may, and what to do about it, beside a larger cap.
    fn too_large(
        &self,
        keys: u64,
        needed: u64,
        or: impl Fn(&Names) -> String + Send + Sync + 'static,
    ) -> Error {
        let limited = self.memory.is_some();
        let (keys, rate) = (readable_count(keys), readable_rate(self.planned_rate()));
        let (needed, cap) = (readable_size(needed), readable_size(self.cap()));
        Error::worded(About::Memory, move |names| {
            let memory = names.memory;
            let cap_is = if limited { memory } else { "half of the memory there is" };
            let or = or(names);
            format!(
                "{keys} keys at {rate} take {needed}, more than {cap}, {cap_is}; raise {memory}, \
                 or {or}"
            )
        })
    }
}

/// Words that do not go together.
fn refused<T>(words: impl Fn(&Names) -> String + Send + Sync + 'static) -> Result<T> {
    Err(Error::worded(About::Setting, words))
}

/// Of a type in parts, each of which keeps less than the whole, the library would name the rate
/// of a part.
fn out_of_reach(kind: FilterType, rate: f64, error: petal::Error) -> Error {
    if !error.is_unattainable() {
        return error.into();
    }
    let asked = readable_rate(rate);
    Error::worded(About::Setting, move |names| {
        let Names { kind: word, rate, keys, .. } = names;
        format!(
            "{rate}: a {kind} filter has 64-bit hashes, which collide too often for {asked}; \
             accept a higher rate, or say with {keys} how many lines will come and take {word} wide"
        )
    })
}

/// A table that is full with less than this of its slots taken has a place that is crowded.
const CROWDED: f64 = 0.9;

/// Why a filter takes no more lines, and what to do about it; other errors stay what they are.
#[must_use]
pub fn explain_full(error: Error, filter: &dyn Membership) -> Error {
    if !error.is_full() {
        return error;
    }
    let (held, planned) = (readable_keys(filter.inserted()), readable_count(filter.planned_keys()));
    let crowded = filter.fill_ratio() < CROWDED;
    let grew = filter.geometry().contains(&("growing", 1));
    Error::worded(About::Full, move |names| {
        let Names { kind, keys, max_keys, growing, .. } = names;
        let way_out = match (crowded, grew) {
            (true, _) => format!("a line came so often that its place is; take {kind} counting"),
            (_, true) => format!("build it anew with a larger {max_keys}"),
            _ => format!("build it anew with a larger {keys}, or with {growing}"),
        };
        format!("full at {held}, planned for {planned}; {way_out}")
    })
}

/// A builder of any type that takes line after line.
#[derive(Clone, Copy)]
enum Builder {
    Bloom(petal::Builder<Shape>),
    Classic(petal::Builder<ClassicShape>),
    Counting(CountingBuilder<Shape>),
    CountingClassic(CountingBuilder<ClassicShape>),
    Wide(WideBuilder),
    Quotient(QuotientBuilder),
    Scalable(ScalableBuilder),
    Windowed(WindowedBuilder),
}

/// What decides how large a filter is.
#[derive(Clone, Copy)]
enum Size {
    Memory(u64),
    Rate(f64),
}

/// How the size of a Bloom filter follows from keys and rate.
struct Layout {
    for_rate: fn(u64, f64) -> petal::Result<u64>,
    rate_in: fn(u64, u64) -> petal::Result<f64>,
    /// How many times the memory of a plain filter it takes.
    times: u64,
}

impl Layout {
    /// `None` for types that are no Bloom filters of one size.
    fn of(kind: FilterType, width: Option<u32>) -> Option<Self> {
        let times = match kind {
            Bloom | Classic => 1,
            Counting | CountingClassic => width.unwrap_or(Recipe::WIDTH).into(),
            Wide => 2,
            _ => return None,
        };
        Some(match kind {
            // Two halves, each of which keeps the root of the rate, but for what its hash takes.
            Wide => Self {
                for_rate: |keys, rate| Ok(Shape::for_rate(keys, rate.sqrt())?.size_bytes()),
                rate_in: |bytes, keys| Ok(Shape::for_memory(bytes, keys)?.rate(keys).powi(2)),
                times,
            },
            Classic | CountingClassic => Self {
                for_rate: |keys, rate| Ok(ClassicShape::for_rate(keys, rate)?.size_bytes()),
                rate_in: |bytes, keys| Ok(ClassicShape::for_memory(bytes, keys)?.rate(keys)),
                times,
            },
            _ => Self {
                for_rate: |keys, rate| Ok(Shape::for_rate(keys, rate)?.size_bytes()),
                rate_in: |bytes, keys| Ok(Shape::for_memory(bytes, keys)?.rate(keys)),
                times,
            },
        })
    }

    /// Bytes that so many keys take at a rate.
    fn needed(&self, keys: u64, rate: f64) -> petal::Result<u64> {
        (self.for_rate)(keys, rate).map(|bytes| bytes.saturating_mul(self.times))
    }

    /// The best rate of so many keys in so much memory.
    fn best(&self, memory: u64, keys: u64) -> petal::Result<f64> {
        (self.rate_in)(memory / self.times, keys)
    }
}

#[cfg(test)]
mod tests {
    use petal_testkit::scratch::Scratch;

    use super::*;
    use crate::budget::LEAST_MEMORY;

    /// Names that no text of ours has in it.
    const NAMES: Names = Names {
        memory: "<memory>",
        rate: "<rate>",
        keys: "<keys>",
        kind: "<kind>",
        width: "<width>",
        growing: "<growing>",
        max_keys: "<max_keys>",
        window: "<window>",
        last: "<last>",
        forgetting: "<forgetting>",
        not_in: "<not_in>",
        common: "<common>",
        ..Names::PROGRAM
    };

    fn lines(scratch: &Scratch, name: &str, count: u64) -> Source {
        let text: String = (0..count).map(|line| format!("line {line}\n")).collect();
        Source::from_arg(scratch.write(name, text.as_bytes()))
    }

    /// In memory alone no filter is larger than the best rate that anybody asks for takes.
    #[test]
    fn memory_that_is_no_use_is_not_taken() {
        let scratch = Scratch::new();
        let input = lines(&scratch, "a", 3000);
        for kind in [Bloom, Classic, Counting, CountingClassic, Wide] {
            let recipe = Recipe { kind: Some(kind), memory: Some(1 << 30), ..Recipe::default() };
            let made = recipe.make(&Settings::new(LEAST_MEMORY), std::slice::from_ref(&input));
            let filter = made.unwrap().filter;
            assert!(filter.face().size_bytes() < 1 << 17, "{kind}");
            assert!(filter.face().target_rate() < 1.1e-9, "{kind}");
        }
    }

    /// What is planned is what is made, for any type and any way to size it.
    #[test]
    fn a_sizing_is_what_is_made() {
        let scratch = Scratch::new();
        let input = lines(&scratch, "a", 100);
        let settings = Settings::new(LEAST_MEMORY);
        for kind in [Bloom, Classic, Counting, CountingClassic, Wide, Quotient, Scalable] {
            let by_rate = Recipe { rate: Some(1e-3), ..Recipe::default() };
            let limited = Recipe { memory: Some(1 << 20), ..by_rate.clone() };
            let by_memory = Recipe { memory: Some(40_000), ..Recipe::default() };
            for recipe in [Recipe::default(), by_rate, limited, by_memory] {
                let recipe = Recipe { kind: Some(kind), keys: Some(5000), ..recipe };
                if recipe.kind().is_err() {
                    continue;
                }
                let sizing = recipe.sizing(5000).unwrap();
                let made = recipe.make(&settings, std::slice::from_ref(&input)).unwrap().filter;
                assert_eq!(sizing.size_bytes(), made.face().size_bytes(), "{recipe:?}");
                assert_eq!(sizing.target_rate(), made.face().target_rate(), "{recipe:?}");
            }
            // As many as fit, and not one more.
            let recipe = Recipe {
                kind: Some(kind),
                rate: Some(0.01),
                memory: Some(1 << 26),
                ..Recipe::default()
            };
            if let Ok(Some(most)) = recipe.most_keys() {
                let recipe = |keys| Recipe { keys: Some(keys), ..recipe.clone() };
                assert!(recipe(most).sizing(most).unwrap().size_bytes() <= 1 << 26);
                let made = recipe(most).make(&settings, std::slice::from_ref(&input)).unwrap();
                assert!(made.filter.face().size_bytes() <= 1 << 26);
                assert!(recipe(most + 1).sizing(most + 1).unwrap_err().is_memory());
            }
        }
        let huge = Recipe { kind: Some(Quotient), rate: Some(0.01), ..Recipe::default() };
        assert!(huge.sizing(100_000_000_000).unwrap().size_bytes() > 100 << 30);
    }

    /// Every refusal is told with the names that words have where people set them.
    #[test]
    fn what_is_refused_is_told_in_the_names_of_who_asked() {
        let scratch = Scratch::new();
        let input = lines(&scratch, "a", 3000);
        let kind = |kind| Recipe { kind: Some(kind), ..Recipe::default() };
        let not_in = vec![input.clone()];
        let cases = [
            (Recipe { width: Some(4), ..kind(Wide) }, "<width>: .* <kind> counting or"),
            (Recipe { growing: true, ..kind(Bloom) }, "<growing>: .* <kind> scalable or"),
            (Recipe { max_keys: Some(9), ..kind(Bloom) }, "<max_keys>: .* <kind> quotient"),
            (Recipe { window: Some(9), ..kind(Bloom) }, "<window>: .* <kind> windowed"),
            (Recipe { last: Some(9), ..kind(Bloom) }, "<last>: .* <kind> windowed"),
            (Recipe { not_in: not_in.clone(), ..kind(Bloom) }, "<not_in>: .* <kind> cascade"),
            (Recipe { not_in, ..kind(Cascade) }, "a: 3,000 .*(<common> prints"),
            (kind(Cascade), "<kind> cascade: say with <not_in>"),
            (kind(Windowed), "<kind> windowed: say with <forgetting>"),
            (
                Recipe { last: Some(9), window: Some(9), ..kind(Windowed) },
                "<last>: .* leave out <window> and <keys>",
            ),
            (
                Recipe { last: Some(9), keys: Some(9), ..kind(Windowed) },
                "<last>: .* leave out <window> and <keys>",
            ),
            (Recipe { keys: Some(9), ..kind(Static) }, "<keys>: a static filter"),
            (Recipe { rate: Some(1e-10), ..kind(Static) }, "<rate>: .* take <kind> bloom"),
            (Recipe { memory: Some(9), ..kind(Scalable) }, "<memory>: .* <rate>, and <memory>"),
            (Recipe { max_keys: Some(9), ..kind(Quotient) }, "<max_keys>: 9 keys is less"),
            (
                Recipe { rate: Some(1e-19), ..kind(Scalable) },
                "<rate>: .* say with <keys> .* take <kind> wide",
            ),
            (
                Recipe { memory: Some(1024), rate: Some(0.01), ..kind(Quotient) },
                "more than 1 KiB, <memory>; raise <memory>, or plan for fewer with <keys>",
            ),
            (
                Recipe { memory: Some(2048), rate: Some(0.01), ..kind(Bloom) },
                "raise <memory>, or leave out <rate> to get",
            ),
            (
                Recipe { memory: Some(128), rate: Some(0.01), ..kind(Bloom) },
                "raise <memory>, or plan for fewer keys with <keys>",
            ),
            (
                Recipe { memory: Some(2048), rate: Some(0.01), ..kind(Wide) },
                "raise <memory>, or leave out <rate> to get",
            ),
            (
                Recipe { memory: Some(1024), rate: Some(0.01), ..kind(Static) },
                "raise <memory>, or accept a higher rate with <rate>",
            ),
            (
                Recipe { keys: Some(1000), ..kind(Quotient) },
                "planned for 1,000; build it anew with a larger <keys>, or with <growing>",
            ),
            (
                Recipe { keys: Some(1000), max_keys: Some(1001), ..kind(Quotient) },
                "planned for 1,001; build it anew with a larger <max_keys>",
            ),
        ];
        let settings = Settings::new(LEAST_MEMORY);
        for (recipe, parts) in cases {
            let error = recipe.make(&settings, std::slice::from_ref(&input)).unwrap_err();
            let told = error.told(&NAMES).to_string();
            let mut rest = &told[..];
            for part in parts.split(".*") {
                let at = rest.find(part).unwrap_or_else(|| panic!("{parts}: {told}"));
                rest = &rest[at + part.len()..];
            }
            let program =
                [" -", "(petal"].into_iter().any(|name| format!(" {told}").contains(name));
            assert!(!program, "{told}");
            let about = [error.is_setting(), error.is_memory(), error.is_full()];
            assert_eq!(about.into_iter().filter(|is| *is).count(), 1, "{told}: {about:?}");
        }
    }

    /// Words ask for a type, and tell how often inputs are to be read.
    #[test]
    fn words_make_filters() {
        let scratch = Scratch::new();
        let (a, b) = (lines(&scratch, "a", 3000), scratch.write("b", b"another\n"));
        let settings = Settings::new(LEAST_MEMORY);
        let none = Recipe::default();
        for (recipe, kind, passes) in [
            (none.clone(), Bloom, 2),
            (Recipe { keys: Some(5000), ..none.clone() }, Bloom, 1),
            (Recipe { growing: true, ..none.clone() }, Scalable, 1),
            (Recipe { max_keys: Some(9000), ..none.clone() }, Quotient, 2),
            (Recipe { last: Some(9000), ..none.clone() }, Windowed, 1),
            (Recipe { window: Some(60), now: 7, ..none.clone() }, Windowed, 2),
            (Recipe { not_in: vec![Source::from_arg(b)], ..none.clone() }, Cascade, 1),
            (Recipe { kind: Some(Static), ..none.clone() }, Static, 1),
            (Recipe { kind: Some(Wide), keyed: true, ..none }, Wide, 2),
        ] {
            let made = recipe.make(&settings, std::slice::from_ref(&a)).unwrap();
            let held = made.filter.face().inserted();
            assert_eq!(made.filter.face().filter_type(), kind, "{recipe:?}");
            assert_eq!((made.lines, made.passes), (3000, passes), "{recipe:?}");
            assert!((2900..=3000).contains(&held), "{recipe:?}: {held}");
        }
    }
}
