//! Building a filter from the lines of inputs.
//!
//! Cost: one pass over the inputs, and one more to count their lines if the filter needs a capacity
//! and none is given.

use std::num::NonZeroUsize;

use petal::FilterType::{Cascade, Counting, Scalable, StaticFuse, Windowed};
use petal::embed::HashStore as _;
use petal::{AnyFilter, FilterCascade, FilterType, HashSpec, Membership, StaticFilter};

use super::fill::{count_lines, fill, for_each_hashes};
use super::shared_hashes::{SharedHashes, TwoHashes};
use super::spec::FilterSpec;
use super::temp_hashes::TempHashes;
use crate::error::{Advice, Error, ErrorKind, Result, Setting};
use crate::input::{Input, Source};
use crate::job_context::JobContext;
use crate::memory::{MIN_MEMORY, memory_for_filter};
use crate::numbers::{format_count, format_keys, format_size};
use crate::settings::Settings;

/// Parts that a window is planned in: the number of generations less one.
const WINDOW_PARTS: u64 = 3;

/// A filter that was built from lines.
#[derive(Debug)]
pub struct BuiltFilter {
    /// The filter.
    pub filter: AnyFilter,
    /// Number of lines in the inputs.
    pub lines: u64,
    /// Number of passes over the inputs.
    pub passes: u64,
}

/// Builds the filter of all lines of the inputs.
///
/// # Errors
/// If settings conflict; if the filter is larger than the memory limit, or full; if an input
/// cannot be read, or must be counted first and can be read only once.
pub fn build(spec: &FilterSpec, settings: &Settings<'_>, inputs: &[Source]) -> Result<BuiltFilter> {
    let kind = spec.filter_type()?;
    if settings.memory_limit < MIN_MEMORY {
        return Err(Error::memory_too_small(settings.memory_limit, MIN_MEMORY));
    }
    let built = match kind.is_fixed() {
        true => build_at_once(spec, kind, settings, inputs),
        false => build_line_by_line(spec, kind, settings, inputs),
    };
    built.map_err(Error::of_listed_keys)
}

/// Builds a filter of a type that inserts line by line.
fn build_line_by_line(
    spec: &FilterSpec,
    kind: FilterType,
    settings: &Settings<'_>,
    inputs: &[Source],
) -> Result<BuiltFilter> {
    // Growing filters need no estimate of the number of keys; `last` is the capacity itself.
    let not_needed = kind == Scalable || spec.last.is_some() || spec.is_sized_without_capacity();
    let not_needed = not_needed.then_some(0);
    let (keys, passes) = match spec.capacity.or(not_needed) {
        Some(keys) => (keys, 1),
        None => {
            let lines = count_lines(settings, inputs)?.max(1);
            // All lines are inserted at once, which may be only one part of the window.
            (lines.saturating_mul(if kind == Windowed { WINDOW_PARTS } else { 1 }), 2)
        }
    };
    let limit = settings.memory_limit;
    let memory = memory_for_filter(limit);
    let mut filter = spec.empty(kind, keys, memory)?;
    let grows = kind == Scalable || spec.growing || spec.max_capacity.is_some();
    let max_bytes = spec.max_bytes(if grows { memory / 4 * 3 } else { memory });
    let left = limit - if grows { max_bytes.min(memory) } else { filter.as_dyn().size_bytes() };
    let reading = Settings { memory_limit: left.max(MIN_MEMORY), ..settings.clone() };
    let filled = fill(&reading, filter.as_dyn_mut()?, inputs, max_bytes);
    let explain = |error: Error| match spec.size {
        Some(size) if size == max_bytes => {
            let raise = Advice::Raise(Setting::MemoryLimit);
            error.replace_advice(&raise, Advice::Raise(Setting::Size))
        }
        _ => error,
    };
    let filled = filled.map_err(|error| explain(explain_full(error, filter.as_dyn())));
    let lines = filled?.lines;
    Ok(BuiltFilter { filter, lines, passes })
}

/// Builds a filter of an immutable type from all lines. Hashes that do not fit in memory go to temporary
/// files.
fn build_at_once(
    spec: &FilterSpec,
    kind: FilterType,
    settings: &Settings<'_>,
    inputs: &[Source],
) -> Result<BuiltFilter> {
    let (context, inputs) = JobContext::open_for_filters(settings, inputs)?;
    for attempt in 0..ATTEMPTS {
        let seed = spec.seed.wrapping_add(attempt);
        let hash = FilterSpec { seed, ..spec.clone() }.hash()?;
        let store = TempHashes::new(&context.temp_dir(), settings.memory_limit)?;
        let job = FixedJob { spec, hash, settings, context, store: &store };
        let built = match kind {
            Cascade => job.cascade(&inputs)?,
            _ => Some(job.static_filter(kind == StaticFuse, &inputs)?),
        };
        if let Some((filter, lines)) = built {
            spec.check_size(&filter)?;
            return Ok(BuiltFilter { filter, lines, passes: 1 + PASSES_OF_ATTEMPT * attempt });
        }
    }
    let problem = "lines of both lists are different and have equal hashes, with several seeds";
    Err(Error::new(ErrorKind::Setting, problem).advise("use a keyed hash"))
}

/// Attempts to find a hash that no two lines of different lists have in common. One seed is enough,
/// unless lines were made to collide.
const ATTEMPTS: u64 = 3;
/// A failed attempt reads the lines once, and compares them.
const PASSES_OF_ATTEMPT: u64 = 2;

/// A job that builds a filter of an immutable type.
struct FixedJob<'a> {
    spec: &'a FilterSpec,
    hash: HashSpec,
    settings: &'a Settings<'a>,
    context: JobContext<'a>,
    store: &'a TempHashes,
}

impl FixedJob<'_> {
    fn threads(&self) -> NonZeroUsize {
        NonZeroUsize::new(self.settings.jobs).unwrap_or(NonZeroUsize::MIN)
    }

    fn memory(&self) -> u64 {
        TempHashes::memory_beside(self.settings.memory_limit)
    }

    /// Explains that the filter does not fit in memory; returns other errors unchanged.
    fn explain(&self, error: petal::Error) -> Error {
        let petal::ErrorKind::NoMemory { bytes, minimum } = *error.kind() else {
            return error.into();
        };
        let (needed, limit) = (format_size(minimum), format_size(bytes));
        let problem = format!("building the filter takes {needed}, more than the {limit} for it");
        Error::new(ErrorKind::Memory, problem)
            .advise(Advice::Raise(Setting::MemoryLimit))
            .advise(Advice::Raise(Setting::Fpr))
    }

    fn static_filter(&self, fuse: bool, inputs: &[Input]) -> Result<(AnyFilter, u64)> {
        let builder = StaticFilter::builder().hash(self.hash).fpr(self.spec.target_fpr());
        let builder = builder.fuse(fuse).threads(self.threads());
        let mut collector = builder.collector(self.store, self.memory())?;
        let lines = for_each_hashes(&self.context, inputs, self.hash, |hashes| {
            Ok(collector.extend(hashes)?)
        })?;
        let filter = collector.finish().map_err(|error| self.explain(error))?;
        Ok((filter.into(), lines))
    }

    /// Builds a cascade. `None` if lines of both lists are different and have equal hashes.
    fn cascade(&self, inputs: &[Input]) -> Result<Option<(AnyFilter, u64)>> {
        let builder = FilterCascade::builder().hash(self.hash).fpr(self.spec.target_fpr());
        let mut members = builder.threads(self.threads()).collector(self.store, self.memory())?;
        let lines =
            for_each_hashes(
                &self.context,
                inputs,
                self.hash,
                |hashes| Ok(members.extend(hashes)?),
            )?;
        let (context, others) = JobContext::open_for_filters(self.settings, &self.spec.not_in)?;
        let explain = |error| self.explain(error);
        let cascade = if others.iter().all(Input::is_repeatable) {
            let count = count_lines(self.settings, &self.spec.not_in)?;
            let mut collector = members.others(count).map_err(explain)?;
            for_each_hashes(&context, &others, self.hash, |hashes| Ok(collector.extend(hashes)?))?;
            collector.finish()
        } else {
            // Their number determines the filter of the members.
            let mut kept = self.store.ranges()?;
            let count = for_each_hashes(&context, &others, self.hash, |hashes| {
                Ok(kept.extend(hashes, hashes)?)
            })?;
            let mut collector = members.others(count).map_err(explain)?;
            for range in 0..1 << kept.bits() {
                kept.read(range, &mut |hashes| collector.extend(hashes))?;
            }
            collector.finish()
        };
        let error = match cascade {
            Ok(cascade) => return Ok(Some((cascade.into(), lines))),
            Err(error) => error,
        };
        let hashes = error.contradictions();
        if hashes.is_empty() {
            return Err(self.explain(error));
        }
        if !inputs.iter().chain(&others).all(Input::is_repeatable) {
            return Err(contradiction(self.spec, hashes.len() as u64, ", or have equal hashes")
                .advise("use another seed"));
        }
        match self.equal_lines(hashes, inputs, (&context, &others))? {
            0 => Ok(None),
            lines => Err(contradiction(self.spec, lines, "").advise(Advice::FindCommonLines)),
        }
    }

    /// Reads both lists again, and returns the number of lines that both have, among those with these
    /// hashes.
    fn equal_lines(
        &self,
        hashes: &[u64],
        inputs: &[Input],
        (context, others): (&JobContext<'_>, &[Input]),
    ) -> Result<u64> {
        let hash = &TwoHashes::beside(self.hash)?;
        let max_lines = self.memory() / 2 / size_of::<[u64; 3]>() as u64;
        let mut shared = SharedHashes::new(hashes, max_lines as usize);
        for_each_hashes(&self.context, inputs, hash, |words| {
            shared.add_members(words);
            Ok(())
        })?;
        shared.end_members();
        for_each_hashes(context, others, hash, |words| {
            shared.compare(words);
            Ok(())
        })?;
        Ok(shared.equal_lines())
    }
}

/// The error of lines that are both members and non-members; `doubt` ends the sentence.
fn contradiction(spec: &FilterSpec, lines: u64, doubt: &str) -> Error {
    let files = spec.not_in.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let are = if lines == 1 { "line is" } else { "lines are" };
    let problem = format!("{} {are} in the other inputs too{doubt}", format_count(lines));
    Error::new(ErrorKind::Setting, problem).of(files).advise("remove them from one side")
}

/// A quotient filter that is full below this load has one crowded bucket.
const CROWDED_LOAD: f64 = 0.9;

/// Adds to a "filter full" error the number of keys and advice; returns other errors unchanged.
#[must_use]
pub fn explain_full(error: Error, filter: &dyn Membership) -> Error {
    if error.kind() != ErrorKind::Full {
        return error;
    }
    let stats = filter.stats();
    let crowded = stats.fill_ratio < CROWDED_LOAD;
    let grew = stats.parameters.contains(&("growing", 1));
    let advice = match (crowded, grew) {
        (true, _) => vec![Advice::UseType(&[Counting])],
        (_, true) => vec![Advice::RebuildWithHigher(Setting::MaxCapacity)],
        _ => vec![
            Advice::RebuildWithHigher(Setting::Capacity),
            Advice::RebuildWith(Setting::Growing),
        ],
    };
    let (inserted, capacity) = (format_keys(stats.inserted), format_count(stats.capacity));
    let why = if crowded { ": one line occurs too often" } else { "" };
    Error::new(ErrorKind::Full, format!("full at {inserted}, planned for {capacity}{why}"))
        .advise_any(advice)
}

#[cfg(test)]
mod tests {
    use petal_testkit::scratch::Scratch;

    use petal::FilterType::*;

    use super::*;
    use crate::error::*;
    use crate::input::Source;

    fn lines(scratch: &Scratch, name: &str, count: u64) -> Source {
        let text: String = (0..count).map(|line| format!("line {line}\n")).collect();
        Source::from_arg(scratch.write(name, text.as_bytes()))
    }

    /// With only a maximum size, no filter is larger than its lowest useful rate needs.
    #[test]
    fn filter_is_no_larger_than_the_lowest_rate_needs() {
        let scratch = Scratch::new();
        let input = lines(&scratch, "a", 3000);
        for kind in [Bloom, Classic, Counting, CountingClassic] {
            let spec = FilterSpec {
                filter_type: Some(kind),
                size: Some(1 << 30),
                ..FilterSpec::default()
            };
            let made = build(&spec, &Settings::new(MIN_MEMORY), std::slice::from_ref(&input));
            let filter = made.unwrap().filter;
            assert!(filter.as_dyn().size_bytes() < 1 << 17, "{kind}");
            assert!(filter.as_dyn().target_fpr() < 1.1e-9, "{kind}");
        }
    }

    /// Compares size and rate for every type and every way to size it.
    #[test]
    fn plan_equals_the_built_filter() {
        let scratch = Scratch::new();
        let input = lines(&scratch, "a", 100);
        let settings = Settings::new(MIN_MEMORY);
        for kind in [Bloom, Classic, Counting, CountingClassic, Quotient, Scalable] {
            let by_rate = FilterSpec { fpr: Some(1e-3), ..FilterSpec::default() };
            let limited = FilterSpec { size: Some(1 << 20), ..by_rate.clone() };
            let by_memory = FilterSpec { size: Some(40_000), ..FilterSpec::default() };
            for spec in [FilterSpec::default(), by_rate, limited, by_memory] {
                let spec = FilterSpec { filter_type: Some(kind), capacity: Some(5000), ..spec };
                if spec.filter_type().is_err() {
                    continue;
                }
                let plan = spec.plan(5000).unwrap();
                let made = build(&spec, &settings, std::slice::from_ref(&input)).unwrap().filter;
                assert_eq!(plan.size_bytes(), made.as_dyn().size_bytes(), "{spec:?}");
                assert_eq!(plan.target_fpr(), made.as_dyn().target_fpr(), "{spec:?}");
            }
            // The capacity fits in memory; one more key does not.
            let spec = FilterSpec {
                filter_type: Some(kind),
                fpr: Some(0.01),
                size: Some(1 << 26),
                ..FilterSpec::default()
            };
            if let Bloom | Classic | Counting | CountingClassic = kind {
                let mut by_memory = petal::FilterSpec::new(kind);
                (by_memory.fpr, by_memory.memory) = (spec.fpr, Some(petal::ByteSize::mib(64)));
                let max = by_memory.plan().unwrap().capacity();
                let spec = |keys| FilterSpec { capacity: Some(keys), ..spec.clone() };
                assert!(spec(max).plan(max).unwrap().size_bytes() <= 1 << 26);
                let settings = Settings::new(1 << 27);
                let made = build(&spec(max), &settings, std::slice::from_ref(&input)).unwrap();
                assert!(made.filter.as_dyn().size_bytes() <= 1 << 26);
                let error = spec(max + 1).plan(max + 1).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Memory, "{error}");
            }
        }
        let huge =
            FilterSpec { filter_type: Some(Quotient), fpr: Some(0.01), ..FilterSpec::default() };
        assert!(huge.plan(100_000_000_000).unwrap().size_bytes() > 100 << 30);
    }

    #[test]
    fn errors_have_kind_setting_and_advice() {
        use Advice::{Lower, Omit, Raise, RebuildWith, RebuildWithHigher, Specify, UseType};
        use Setting::{
            Bits, Capacity, CounterWidth, Fpr, Growing, Last, LeastSpace, MaxCapacity, NotIn,
            Probes, Size, Window,
        };
        let scratch = Scratch::new();
        let input = lines(&scratch, "a", 3000);
        let kind = |kind| FilterSpec { filter_type: Some(kind), ..FilterSpec::default() };
        let not_in = vec![input.clone()];
        let for_other_types = |setting, types| (Some(setting), vec![Omit(setting), UseType(types)]);
        let memory = |bytes, filter_type| FilterSpec {
            size: Some(bytes),
            fpr: Some(0.01),
            ..kind(filter_type)
        };
        type Case = (FilterSpec, (Option<Setting>, Vec<Advice>));
        let cases: Vec<Case> = vec![
            (
                FilterSpec { width: Some(4), ..kind(Quotient) },
                for_other_types(CounterWidth, &[Counting, CountingClassic]),
            ),
            (
                FilterSpec { growing: true, ..kind(Bloom) },
                for_other_types(Growing, &[Scalable, Quotient]),
            ),
            (
                FilterSpec { max_capacity: Some(9), ..kind(Bloom) },
                for_other_types(MaxCapacity, &[Quotient]),
            ),
            (
                FilterSpec { bits: Some(9), ..kind(Quotient) },
                for_other_types(Bits, &[Bloom, Classic, Counting, CountingClassic]),
            ),
            (
                FilterSpec { probes: Some(9), ..kind(Static) },
                for_other_types(Probes, &[Bloom, Classic, Counting, CountingClassic]),
            ),
            (
                FilterSpec { least_space: true, ..kind(Quotient) },
                for_other_types(LeastSpace, &[Bloom, Classic, Counting, CountingClassic]),
            ),
            (
                FilterSpec { least_space: true, bits: Some(9), probes: Some(3), ..kind(Bloom) },
                (Some(LeastSpace), vec![Omit(Bits), Omit(Probes)]),
            ),
            (
                FilterSpec { least_space: true, size: Some(9999), ..kind(Classic) },
                (Some(LeastSpace), vec![Omit(Size)]),
            ),
            (
                FilterSpec { least_space: true, ..memory(1024, Counting) },
                (None, vec![Raise(Size), Advice::Lower(Capacity)]),
            ),
            (FilterSpec { probes: Some(17), ..kind(Bloom) }, for_other_types(Probes, &[Classic])),
            (
                FilterSpec { bits: Some(9999), probes: Some(3), size: Some(9), ..kind(Bloom) },
                (None, vec![Raise(Size), Lower(Bits)]),
            ),
            (FilterSpec { window: Some(9), ..kind(Bloom) }, for_other_types(Window, &[Windowed])),
            (FilterSpec { last: Some(9), ..kind(Bloom) }, for_other_types(Last, &[Windowed])),
            (
                FilterSpec { not_in: not_in.clone(), ..kind(Bloom) },
                for_other_types(NotIn, &[Cascade]),
            ),
            (
                FilterSpec { not_in, ..kind(Cascade) },
                (
                    None,
                    vec![
                        Advice::Other("remove them from one side".to_owned()),
                        Advice::FindCommonLines,
                    ],
                ),
            ),
            (kind(Cascade), (Some(Setting::FilterType), vec![Specify(NotIn)])),
            (kind(Windowed), (Some(Setting::FilterType), vec![Specify(Window), Specify(Last)])),
            (
                FilterSpec { last: Some(9), window: Some(9), ..kind(Windowed) },
                (Some(Last), vec![Omit(Window)]),
            ),
            (
                FilterSpec { last: Some(9), capacity: Some(9), ..kind(Windowed) },
                (Some(Last), vec![Omit(Capacity)]),
            ),
            (
                FilterSpec { capacity: Some(9), ..kind(Static) },
                (Some(Capacity), vec![Omit(Capacity)]),
            ),
            (
                FilterSpec { fpr: Some(1e-10), ..kind(Static) },
                (Some(Fpr), vec![Raise(Fpr), UseType(&[Bloom])]),
            ),
            (FilterSpec { size: Some(9), ..kind(Scalable) }, (Some(Size), vec![Specify(Fpr)])),
            (
                FilterSpec { max_capacity: Some(9), ..kind(Quotient) },
                (Some(MaxCapacity), vec![Raise(MaxCapacity)]),
            ),
            (FilterSpec { fpr: Some(1e-19), ..kind(Scalable) }, (Some(Fpr), vec![Raise(Fpr)])),
            (memory(1024, Quotient), (None, vec![Raise(Size), Lower(Capacity)])),
            (memory(128, Bloom), (None, vec![Raise(Size), Lower(Capacity)])),
            (memory(1024, Static), (None, vec![Raise(Size), Raise(Fpr)])),
            (
                FilterSpec { capacity: Some(1000), ..kind(Quotient) },
                (None, vec![RebuildWithHigher(Capacity), RebuildWith(Growing)]),
            ),
            (
                FilterSpec { max_capacity: Some(1001), capacity: Some(1000), ..kind(Quotient) },
                (None, vec![RebuildWithHigher(MaxCapacity)]),
            ),
        ];
        let settings = Settings::new(MIN_MEMORY);
        for (spec, expected) in cases {
            let error = build(&spec, &settings, std::slice::from_ref(&input)).unwrap_err();
            assert_eq!((error.setting(), error.advice()), (expected.0, &expected.1[..]), "{error}");
            let text = error.to_string();
            assert!(!text.contains(" -") && !text.contains("petal "), "{text}");
            let kinds = [ErrorKind::Setting, ErrorKind::Memory, ErrorKind::Full];
            assert!(kinds.contains(&error.kind()), "{text}: {:?}", error.kind());
        }
        for filter_type in [Bloom, Classic] {
            let made = build(&memory(2048, filter_type), &settings, std::slice::from_ref(&input));
            let error = made.unwrap_err();
            let [Raise(Size), Advice::OmitFpr(best)] = error.advice() else {
                panic!("{error}");
            };
            assert!(*best > 0.01, "{error}");
            let text = error.to_string();
            assert!(text.starts_with("3,000 keys at a false-positive rate of 1 % take "), "{text}");
            assert!(text.contains(", more than 2 KiB, the limit; raise size, "), "{text}");
        }
    }

    /// Settings imply the filter type and the number of passes over the inputs.
    #[test]
    fn settings_imply_type_and_passes() {
        let scratch = Scratch::new();
        let (a, b) = (lines(&scratch, "a", 3000), scratch.write("b", b"another\n"));
        let settings = Settings::new(MIN_MEMORY);
        let none = FilterSpec::default();
        for (spec, kind, passes) in [
            (none.clone(), Bloom, 2),
            (FilterSpec { capacity: Some(5000), ..none.clone() }, Bloom, 1),
            (FilterSpec { growing: true, ..none.clone() }, Scalable, 1),
            (FilterSpec { max_capacity: Some(9000), ..none.clone() }, Quotient, 2),
            (FilterSpec { last: Some(9000), ..none.clone() }, Windowed, 1),
            (FilterSpec { window: Some(60), now: 7, ..none.clone() }, Windowed, 2),
            (FilterSpec { not_in: vec![Source::from_arg(b)], ..none.clone() }, Cascade, 1),
            (FilterSpec { filter_type: Some(Static), ..none.clone() }, Static, 1),
            (FilterSpec { keyed: true, ..none }, Bloom, 2),
        ] {
            let made = build(&spec, &settings, std::slice::from_ref(&a)).unwrap();
            let inserted = made.filter.as_dyn().inserted();
            assert_eq!(made.filter.as_dyn().filter_type(), kind, "{spec:?}");
            assert_eq!((made.lines, made.passes), (3000, passes), "{spec:?}");
            assert!((2900..=3000).contains(&inserted), "{spec:?}: {inserted}");
        }
    }
}
