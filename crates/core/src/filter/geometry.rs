//! What the two layouts have in common: the seam between shapes and kernels.

use super::fold;
use crate::error::{Error, Result};
use crate::format::kind::FilterType;
use crate::kernel::blocked::{Blocks, Rule};
use crate::kernel::{Hashes, Ready, classic};
use crate::rate;
use crate::shape::{ClassicShape, Shape};
use crate::store::{Line, bytes_of};

/// A layout of bits: [`Shape`] or [`ClassicShape`]. Sealed.
pub trait Geometry:
    Copy + PartialEq + std::fmt::Debug + Send + Sync + sealed::Layout + 'static
{
}

impl Geometry for Shape {}
impl Geometry for ClassicShape {}

pub(crate) mod sealed {
    use super::{FilterType, Hashes, Line, Ready, Result};

    /// The numbers of a shape as they are in a file.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Fields {
        pub probes: u16,
        pub lanes: u16,
        /// Blocks, or bits.
        pub extent: u64,
    }

    pub trait Layout: Sized {
        /// The layout's number in files.
        const KIND: FilterType;
        fn fields(&self) -> Fields;
        /// Checks numbers from outside.
        fn from_fields(fields: Fields) -> Result<Self>;
        fn for_rate(keys: u64, rate: f64) -> Result<Self>;
        fn for_memory(bytes: u64, keys: u64) -> Result<Self>;
        fn for_bits(bits: u64, probes: u32) -> Result<Self>;
        fn for_rate_with_probes(keys: u64, rate: f64, probes: u32) -> Result<Self>;
        fn for_memory_with_probes(bytes: u64, probes: u32) -> Result<Self>;
        fn rate(&self, keys: u64) -> f64;
        fn lines(&self) -> u64;
        fn bits(&self) -> u64;
        fn touch(&self) -> f64;
        fn insert(&self, kernel: Ready, lines: &mut [Line], hash: u64) -> bool;
        fn contains(&self, kernel: Ready, lines: &[Line], hash: u64) -> bool;

        /// Asks for the lines of a hash, if they are few.
        fn prefetch(&self, lines: &[Line], hash: u64) {
            let _ = (lines, hash);
        }
        /// As many words as the answers need, 64 to a word.
        fn insert_batch(
            &self,
            kernel: Ready,
            lines: &mut [Line],
            hashes: impl Hashes,
            new: &mut [u64],
        );
        fn contains_batch(
            &self,
            kernel: Ready,
            lines: &[Line],
            hashes: impl Hashes,
            found: &mut [u64],
        );
        fn rate_now(&self, lines: &[Line]) -> f64;
        fn describe(&self) -> String;
        fn numbers(&self) -> Vec<(&'static str, u64)>;
        fn keys_at_rate(&self, rate: f64) -> u64;
        /// How many blocks have a fill in each of so many equal steps.
        fn block_fills(&self, lines: &[Line], steps: usize) -> Vec<u64>;
        /// Bits behind the last one would count as set and never be asked for.
        fn check_tail(&self, lines: &[Line], data_at: u64) -> Result<()>;
        /// Line `at` of the filter folded by a divisor of its extent.
        fn folded_line(&self, lines: &[Line], divisor: u64, at: usize) -> Line;
        /// The standard error of the number of keys, estimated from bits.
        fn cardinality_error(&self, keys: f64) -> f64;
        /// The smallest shape that keeps the rate and can be folded to this one.
        fn multiple_for_rate(&self, keys: u64, rate: f64) -> Result<Self>;
    }
}

use sealed::{Fields, Layout};

/// Runs with the kernel for a shape's number of lanes.
macro_rules! kernel {
    ($shape:expr, |$rule:ident| $call:expr) => {
        if $shape.lanes() == 8 {
            let $rule = $crate::kernel::blocked::Rule::<8> {
                blocks: $shape.blocks(),
                probes: $shape.probes(),
            };
            $call
        } else {
            let $rule = $crate::kernel::blocked::Rule::<16> {
                blocks: $shape.blocks(),
                probes: $shape.probes(),
            };
            $call
        }
    };
}
pub(super) use kernel;

impl Shape {
    /// How blocks of one line are marked.
    #[inline]
    fn line_rule(&self) -> Rule<8> {
        Rule { blocks: self.blocks(), probes: self.probes() }
    }

    /// One call for all that is not inlined: each more would take registers from what is.
    #[inline(never)]
    fn insert_by_call(self, kernel: Ready, lines: &mut [Line], hash: u64) -> bool {
        kernel!(self, |rule| kernel.insert(rule, lines, hash))
    }

    #[inline(never)]
    fn contains_by_call(self, kernel: Ready, lines: &[Line], hash: u64) -> bool {
        kernel!(self, |rule| kernel.contains(rule, lines, hash))
    }
}

impl Layout for Shape {
    const KIND: FilterType = FilterType::Bloom;

    fn fields(&self) -> Fields {
        let (probes, lanes) = (self.probes() as u16, self.lanes() as u16);
        Fields { probes, lanes, extent: self.blocks() }
    }

    fn from_fields(fields: Fields) -> Result<Self> {
        Self::new(fields.extent, fields.lanes.into(), fields.probes.into())
    }

    fn for_rate(keys: u64, rate: f64) -> Result<Self> {
        Self::for_rate(keys, rate)
    }

    fn for_memory(bytes: u64, keys: u64) -> Result<Self> {
        Self::for_memory(bytes, keys)
    }

    fn for_bits(bits: u64, probes: u32) -> Result<Self> {
        Self::for_bits(bits, probes)
    }

    fn for_rate_with_probes(keys: u64, rate: f64, probes: u32) -> Result<Self> {
        Self::for_rate_with_probes(keys, rate, probes)
    }

    fn for_memory_with_probes(bytes: u64, probes: u32) -> Result<Self> {
        Self::for_memory_with_probes(bytes, probes)
    }

    fn rate(&self, keys: u64) -> f64 {
        self.rate(keys)
    }

    fn lines(&self) -> u64 {
        self.lines()
    }

    fn bits(&self) -> u64 {
        self.bits()
    }

    fn touch(&self) -> f64 {
        self.touch()
    }

    #[inline]
    fn insert(&self, kernel: Ready, lines: &mut [Line], hash: u64) -> bool {
        if self.lanes() == 8
            && let Some(new) = kernel.insert_inline(self.line_rule(), lines, hash)
        {
            return new;
        }
        self.insert_by_call(kernel, lines, hash)
    }

    #[inline]
    fn contains(&self, kernel: Ready, lines: &[Line], hash: u64) -> bool {
        if self.lanes() == 8
            && let Some(found) = kernel.contains_inline(self.line_rule(), lines, hash)
        {
            return found;
        }
        self.contains_by_call(kernel, lines, hash)
    }

    #[inline]
    fn prefetch(&self, lines: &[Line], hash: u64) {
        kernel!(self, |rule| rule.prefetch(lines, hash));
    }

    fn insert_batch(
        &self,
        kernel: Ready,
        lines: &mut [Line],
        hashes: impl Hashes,
        new: &mut [u64],
    ) {
        kernel!(self, |rule| {
            kernel.insert_batch(Blocks::new(rule, lines, 0), hashes, new);
        });
    }

    fn contains_batch(
        &self,
        kernel: Ready,
        lines: &[Line],
        hashes: impl Hashes,
        found: &mut [u64],
    ) {
        kernel!(self, |rule| {
            kernel.contains_batch(Blocks::new(rule, lines, 0), hashes, found);
        });
    }

    fn rate_now(&self, lines: &[Line]) -> f64 {
        kernel!(self, |rule| rule.rate_now(lines))
    }

    fn describe(&self) -> String {
        format!("{} blocks of {} bits, {} probes", self.blocks(), self.lanes() * 64, self.probes())
    }

    fn numbers(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("bits", self.bits()),
            ("probes", self.probes().into()),
            ("blocks", self.blocks()),
            ("lanes", self.lanes().into()),
        ]
    }

    fn keys_at_rate(&self, rate: f64) -> u64 {
        self.keys_at_rate(rate)
    }

    fn block_fills(&self, lines: &[Line], steps: usize) -> Vec<u64> {
        let (steps, bits) = (steps.max(1), self.lanes() as usize * 64);
        let mut blocks = vec![0; steps];
        for block in lines.chunks_exact(self.lanes() as usize / 8) {
            let words = block.iter().flat_map(|line| line.0);
            let set: u32 = words.map(u64::count_ones).sum();
            blocks[(set as usize * steps / bits).min(steps - 1)] += 1;
        }
        blocks
    }

    fn check_tail(&self, _: &[Line], _: u64) -> Result<()> {
        Ok(())
    }

    fn folded_line(&self, lines: &[Line], divisor: u64, at: usize) -> Line {
        fold::folded_block(lines, self.lanes() as usize / 8, divisor, at)
    }

    fn cardinality_error(&self, keys: f64) -> f64 {
        rate::blocked_error(keys, self.blocks(), self.lanes(), self.probes())
    }

    fn multiple_for_rate(&self, keys: u64, rate: f64) -> Result<Self> {
        self.multiple_for_rate(keys, rate)
    }
}

impl ClassicShape {
    #[inline]
    fn rule(&self) -> classic::Rule {
        classic::Rule { bits: self.bits(), probes: self.probes() }
    }
}

impl Layout for ClassicShape {
    const KIND: FilterType = FilterType::Classic;

    fn fields(&self) -> Fields {
        Fields { probes: self.probes() as u16, lanes: 0, extent: self.bits() }
    }

    fn from_fields(fields: Fields) -> Result<Self> {
        if fields.lanes != 0 {
            return Err(Error::invalid("lanes", "0 in a classic filter", fields.lanes));
        }
        Self::for_bits(fields.extent, fields.probes.into())
    }

    fn for_rate(keys: u64, rate: f64) -> Result<Self> {
        Self::for_rate(keys, rate)
    }

    fn for_memory(bytes: u64, keys: u64) -> Result<Self> {
        Self::for_memory(bytes, keys)
    }

    fn for_bits(bits: u64, probes: u32) -> Result<Self> {
        Self::for_bits(bits, probes)
    }

    fn for_rate_with_probes(keys: u64, rate: f64, probes: u32) -> Result<Self> {
        Self::for_rate_with_probes(keys, rate, probes)
    }

    fn for_memory_with_probes(bytes: u64, probes: u32) -> Result<Self> {
        Self::for_memory_with_probes(bytes, probes)
    }

    fn rate(&self, keys: u64) -> f64 {
        self.rate(keys)
    }

    fn lines(&self) -> u64 {
        self.lines()
    }

    fn bits(&self) -> u64 {
        self.bits()
    }

    fn touch(&self) -> f64 {
        self.touch()
    }

    #[inline]
    fn insert(&self, _: Ready, lines: &mut [Line], hash: u64) -> bool {
        self.rule().insert(lines, hash)
    }

    #[inline]
    fn contains(&self, _: Ready, lines: &[Line], hash: u64) -> bool {
        self.rule().contains(lines, hash)
    }

    fn insert_batch(&self, _: Ready, lines: &mut [Line], hashes: impl Hashes, new: &mut [u64]) {
        self.rule().insert_batch(lines, hashes, new);
    }

    fn contains_batch(&self, _: Ready, lines: &[Line], hashes: impl Hashes, found: &mut [u64]) {
        self.rule().contains_batch(lines, hashes, found);
    }

    fn rate_now(&self, lines: &[Line]) -> f64 {
        fill(self, lines).powi(self.probes() as i32)
    }

    fn describe(&self) -> String {
        format!("{} bits, {} probes", self.bits(), self.probes())
    }

    fn numbers(&self) -> Vec<(&'static str, u64)> {
        vec![("bits", self.bits()), ("probes", self.probes().into())]
    }

    fn keys_at_rate(&self, rate: f64) -> u64 {
        self.keys_at_rate(rate)
    }

    fn block_fills(&self, _: &[Line], _: usize) -> Vec<u64> {
        Vec::new()
    }

    fn check_tail(&self, lines: &[Line], data_at: u64) -> Result<()> {
        let (bytes, used) = (bytes_of(lines), self.bits());
        let first = usize::try_from(used / 8).unwrap_or(usize::MAX);
        let Some((byte, rest)) = bytes.get(first..).and_then(<[u8]>::split_first) else {
            return Ok(());
        };
        if byte >> (used % 8) != 0 || rest.iter().any(|byte| *byte != 0) {
            let at = data_at as usize + first;
            return Err(Error::corrupt("bits behind the last one", at, 0, "some that are set"));
        }
        Ok(())
    }

    fn folded_line(&self, lines: &[Line], divisor: u64, at: usize) -> Line {
        fold::folded_bits(lines, self.bits(), divisor, at)
    }

    fn cardinality_error(&self, keys: f64) -> f64 {
        rate::classic_error(keys, self.bits(), self.probes())
    }

    fn multiple_for_rate(&self, keys: u64, rate: f64) -> Result<Self> {
        self.multiple_for_rate(keys, rate)
    }
}

/// The share of bits that are set. Damaged data that nobody has verified may have bits set behind
/// the last one, and shall not make a share above 1.
pub(crate) fn fill<G: Geometry>(shape: &G, lines: &[Line]) -> f64 {
    fill_of(shape, lines.iter().map(|line| line.count_ones()).sum())
}

/// [`fill`] from the number of bits that are set.
fn fill_of<G: Geometry>(shape: &G, ones: u64) -> f64 {
    (ones as f64 / shape.bits() as f64).min(1.0)
}

/// Distinct keys, from bits that are set.
pub(crate) fn cardinality<G: Geometry>(shape: &G, lines: &[Line]) -> f64 {
    rate::cardinality(1.0 - fill(shape, lines), shape.touch())
}

/// [`cardinality`] from the number of bits that are set.
pub(crate) fn cardinality_of<G: Geometry>(shape: &G, ones: u64) -> f64 {
    rate::cardinality(1.0 - fill_of(shape, ones), shape.touch())
}

/// An estimate of the distinct keys as a whole number that a file can hold. Of a filter without
/// clear bits it is the estimate for half a clear bit: the least number of keys that fill a filter
/// of this size.
pub(crate) fn whole_cardinality<G: Geometry>(shape: &G, keys: f64) -> u64 {
    let most = rate::cardinality(0.5 / shape.bits() as f64, shape.touch());
    (keys.min(most).round() as u64).min(u64::MAX >> 1)
}
