//! The trait of the two layouts, which connects filters to kernels.

use super::folded_line::{folded_bits, folded_block};
use crate::byte_size::ByteSize;
use crate::error::{Error, Result};
use crate::format::kind::FilterType;
use crate::kernel::blocked::{BlockParams, BlockRange};
use crate::kernel::{HashSource, InlineCode, KernelHandle, classic};
use crate::layout::{BlockedLayout, ClassicLayout};
use crate::math;
use crate::membership::counted;
#[cfg(not(feature = "std"))]
use crate::no_std::*;
use crate::store::{CacheLine, lines_as_bytes};

/// A layout of bits: [`BlockedLayout`] or [`ClassicLayout`]. Sealed.
pub trait Layout:
    Copy + PartialEq + core::fmt::Debug + Send + Sync + sealed::LayoutImpl + 'static
{
}

impl Layout for BlockedLayout {}
impl Layout for ClassicLayout {}

pub(crate) mod sealed {
    use super::{
        BlockedLayout, ByteSize, CacheLine, ClassicLayout, FilterType, HashSource, InlineCode,
        KernelHandle, Result,
    };
    #[cfg(not(feature = "std"))]
    use crate::no_std::*;

    /// The numbers of a layout in a file.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Fields {
        pub probes: u16,
        pub lanes: u16,
        /// The number of blocks, or of bits.
        pub extent: u64,
    }

    /// The code for single keys: inlined into callers if there is such code, and the kernel.
    #[derive(Clone, Copy, Debug)]
    pub struct SingleKeys {
        pub(crate) inline: InlineCode,
        pub(crate) kernel: KernelHandle,
    }

    /// One of the layouts.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub enum AnyLayout {
        Blocked(BlockedLayout),
        Classic(ClassicLayout),
    }

    pub trait LayoutImpl: Sized {
        /// The type of the filter with this layout.
        const KIND: FilterType;
        /// The largest number of bits of a key.
        const MAX_PROBES: u32;
        fn fields(&self) -> Fields;
        /// Validates numbers of a file.
        fn from_fields(fields: Fields) -> Result<Self>;
        fn for_fpr(keys: u64, rate: f64) -> Result<Self>;
        fn for_least_space(keys: u64, rate: f64) -> Result<Self>;
        fn for_memory(capacity: u64, memory: ByteSize) -> Result<Self>;
        fn for_bits(bits: u64, probes: u32) -> Result<Self>;
        fn for_fpr_with_probes(keys: u64, rate: f64, probes: u32) -> Result<Self>;
        fn for_memory_with_probes(memory: ByteSize, probes: u32) -> Result<Self>;
        fn max_capacity(memory: ByteSize, rate: f64) -> Result<u64>;
        fn into_any(self) -> AnyLayout;
        fn fpr(&self, keys: u64) -> f64;
        fn lines(&self) -> u64;
        fn bits(&self) -> u64;
        fn bit_probability(&self) -> f64;

        /// Whether a filter may have code for single keys that is inlined into callers.
        const HAS_INLINE_CODE: bool = false;

        /// Returns the code for single keys that is inlined into callers.
        fn inline_code(&self, kernel: KernelHandle) -> InlineCode {
            let _ = kernel;
            InlineCode::NONE
        }

        /// Inserts the hash that `hash` returns; its argument is whether inlined code takes the hash.
        fn insert(
            &self,
            code: SingleKeys,
            lines: &mut [CacheLine],
            hash: impl FnOnce(bool) -> u64,
        ) -> bool;

        /// Same as [`insert`](Self::insert) for a query.
        fn contains(
            &self,
            code: SingleKeys,
            lines: &[CacheLine],
            hash: impl FnOnce(bool) -> u64,
        ) -> bool;

        /// [`insert`](Self::insert) without a result.
        #[inline]
        fn set(&self, code: SingleKeys, lines: &mut [CacheLine], hash: impl FnOnce(bool) -> u64) {
            self.insert(code, lines, hash);
        }

        /// Inserts up to [`SET_MAX`](super::SET_MAX) hashes without results.
        fn set_batch(
            &self,
            kernel: KernelHandle,
            lines: &mut [CacheLine],
            hashes: impl HashSource,
        ) {
            let mut new = [0; super::SET_MAX / 64];
            let new = &mut new[..hashes.words().len().div_ceil(64)];
            self.insert_batch(kernel, lines, hashes, new);
        }

        /// Prefetches the lines of a hash, if they are few.
        fn prefetch(&self, lines: &[CacheLine], hash: u64) {
            let _ = (lines, hash);
        }
        /// Inserts hashes; `new` has one bit for each.
        fn insert_batch(
            &self,
            kernel: KernelHandle,
            lines: &mut [CacheLine],
            hashes: impl HashSource,
            new: &mut [u64],
        );
        fn contains_batch(
            &self,
            kernel: KernelHandle,
            lines: &[CacheLine],
            hashes: impl HashSource,
            found: &mut [u64],
        );
        fn fpr_from_bits(&self, lines: &[CacheLine]) -> f64;
        /// Returns the positions of the bits of a hash, in the order of the probes.
        fn positions(&self, hash: u64) -> Vec<u64>;
        /// Returns the block of a hash; `None` if its bits are anywhere.
        fn block(&self, hash: u64) -> Option<u64>;
        fn describe(&self) -> String;
        fn parameters(&self) -> Vec<(&'static str, u64)>;
        fn capacity_at_fpr(&self, rate: f64) -> u64;
        /// Returns a histogram of blocks by fill ratio, in `steps` equal steps.
        fn block_fills(&self, lines: &[CacheLine], steps: usize) -> Vec<u64>;
        /// Checks that the bits after the last one are clear: queries never read them, but they
        /// would count as set.
        fn check_tail(&self, lines: &[CacheLine], data_at: u64) -> Result<()>;
        /// Returns line `at` of the filter folded by a divisor of its extent.
        fn folded_line(&self, lines: &[CacheLine], divisor: u64, at: usize) -> CacheLine;
        /// Returns the standard error of the number of keys estimated from bits.
        fn cardinality_error(&self, keys: f64) -> f64;
        /// Returns the smallest layout that reaches the rate and can be folded to this one.
        fn multiple_for_fpr(&self, keys: u64, rate: f64) -> Result<Self>;
    }
}

pub(super) use sealed::SingleKeys;
use sealed::{AnyLayout, Fields, LayoutImpl};

/// The largest number of hashes in a call of [`LayoutImpl::set_batch`].
pub(super) const SET_MAX: usize = 1 << 14;

/// Evaluates an expression with the block parameters for a layout's number of lanes.
macro_rules! kernel {
    ($layout:expr, |$params:ident| $call:expr) => {
        if $layout.lanes() == 8 {
            let $params = $crate::kernel::blocked::BlockParams::<8> {
                blocks: $layout.blocks(),
                probes: $layout.probes(),
            };
            $call
        } else {
            let $params = $crate::kernel::blocked::BlockParams::<16> {
                blocks: $layout.blocks(),
                probes: $layout.probes(),
            };
            $call
        }
    };
}
pub(super) use kernel;

impl BlockedLayout {
    /// Returns the parameters of blocks of one line.
    #[inline]
    fn line_params(&self) -> BlockParams<8> {
        BlockParams { blocks: self.blocks(), probes: self.probes() }
    }

    /// One call for everything that is not inlined. Takes values, because a reference to the filter would
    /// keep it in memory, not registers.
    #[inline(never)]
    fn insert_by_call(self, kernel: KernelHandle, lines: &mut [CacheLine], hash: u64) -> bool {
        kernel!(self, |params| kernel.insert(params, lines, hash))
    }

    #[inline(never)]
    fn set_by_call(self, kernel: KernelHandle, lines: &mut [CacheLine], hash: u64) {
        kernel!(self, |params| kernel.set(params, lines, hash));
    }

    #[inline(never)]
    fn contains_by_call(self, kernel: KernelHandle, lines: &[CacheLine], hash: u64) -> bool {
        kernel!(self, |params| kernel.contains(params, lines, hash))
    }
}

/// Defines the functions of `LayoutImpl` that a layout has under its own name.
macro_rules! inherent_methods {
    () => {
        fn for_fpr(keys: u64, rate: f64) -> Result<Self> {
            Self::for_fpr(keys, rate)
        }

        fn for_least_space(keys: u64, rate: f64) -> Result<Self> {
            Self::for_least_space(keys, rate)
        }

        fn for_memory(capacity: u64, memory: ByteSize) -> Result<Self> {
            Self::for_memory(capacity, memory)
        }

        fn for_bits(bits: u64, probes: u32) -> Result<Self> {
            Self::for_bits(bits, probes)
        }

        fn for_fpr_with_probes(keys: u64, rate: f64, probes: u32) -> Result<Self> {
            Self::for_fpr_with_probes(keys, rate, probes)
        }

        fn for_memory_with_probes(memory: ByteSize, probes: u32) -> Result<Self> {
            Self::for_memory_with_probes(memory, probes)
        }

        fn max_capacity(memory: ByteSize, rate: f64) -> Result<u64> {
            Self::max_capacity(memory, rate)
        }

        fn fpr(&self, keys: u64) -> f64 {
            self.fpr(keys)
        }

        fn lines(&self) -> u64 {
            self.lines()
        }

        fn bits(&self) -> u64 {
            self.bits()
        }

        fn bit_probability(&self) -> f64 {
            self.bit_probability()
        }
    };
}

impl LayoutImpl for BlockedLayout {
    const KIND: FilterType = FilterType::Bloom;
    const MAX_PROBES: u32 = 16;

    fn fields(&self) -> Fields {
        let (probes, lanes) = (self.probes() as u16, self.lanes() as u16);
        Fields { probes, lanes, extent: self.blocks() }
    }

    fn from_fields(fields: Fields) -> Result<Self> {
        Self::new(fields.extent, fields.lanes.into(), fields.probes.into())
    }

    inherent_methods!();

    fn into_any(self) -> AnyLayout {
        AnyLayout::Blocked(self)
    }

    const HAS_INLINE_CODE: bool = cfg!(target_arch = "x86_64");

    fn inline_code(&self, kernel: KernelHandle) -> InlineCode {
        if self.lanes() == 8 {
            InlineCode::of_lines(kernel, self.probes())
        } else {
            InlineCode::NONE
        }
    }

    #[inline(always)]
    fn insert(
        &self,
        code: SingleKeys,
        lines: &mut [CacheLine],
        hash: impl FnOnce(bool) -> u64,
    ) -> bool {
        if code.inline.is_none() {
            return self.insert_by_call(code.kernel, lines, hash(false));
        }
        let done = code.inline.insert(self.line_params(), lines, || hash(true));
        done.unwrap_or_default()
    }

    #[inline(always)]
    fn set(&self, code: SingleKeys, lines: &mut [CacheLine], hash: impl FnOnce(bool) -> u64) {
        if code.inline.is_none() {
            return self.set_by_call(code.kernel, lines, hash(false));
        }
        let done = code.inline.set(self.line_params(), lines, || hash(true));
        done.unwrap_or_default();
    }

    #[inline(always)]
    fn contains(
        &self,
        code: SingleKeys,
        lines: &[CacheLine],
        hash: impl FnOnce(bool) -> u64,
    ) -> bool {
        if code.inline.is_none() {
            return self.contains_by_call(code.kernel, lines, hash(false));
        }
        let done = code.inline.contains(self.line_params(), lines, || hash(true));
        done.unwrap_or_default()
    }

    #[inline]
    fn prefetch(&self, lines: &[CacheLine], hash: u64) {
        kernel!(self, |params| params.prefetch(lines, hash));
    }

    fn insert_batch(
        &self,
        kernel: KernelHandle,
        lines: &mut [CacheLine],
        hashes: impl HashSource,
        new: &mut [u64],
    ) {
        kernel!(self, |params| {
            kernel.insert_batch(BlockRange::new(params, lines, 0), hashes, new);
        });
    }

    fn set_batch(&self, kernel: KernelHandle, lines: &mut [CacheLine], hashes: impl HashSource) {
        let set = kernel!(self, |params| {
            kernel.set_small(BlockRange::new(params, &mut *lines, 0), hashes)
        });
        if !set {
            let mut new = [0; SET_MAX / 64];
            let new = &mut new[..hashes.words().len().div_ceil(64)];
            self.insert_batch(kernel, lines, hashes, new);
        }
    }

    fn contains_batch(
        &self,
        kernel: KernelHandle,
        lines: &[CacheLine],
        hashes: impl HashSource,
        found: &mut [u64],
    ) {
        kernel!(self, |params| {
            kernel.contains_batch(BlockRange::new(params, lines, 0), hashes, found);
        });
    }

    fn positions(&self, hash: u64) -> Vec<u64> {
        kernel!(self, |params| params.positions(hash).collect())
    }

    fn block(&self, hash: u64) -> Option<u64> {
        kernel!(self, |params| Some(params.block(hash)))
    }

    fn fpr_from_bits(&self, lines: &[CacheLine]) -> f64 {
        kernel!(self, |params| params.fpr_from_bits(lines))
    }

    fn describe(&self) -> String {
        let probes = counted(self.probes().into(), "probe");
        format!("{} of {} bits, {probes}", counted(self.blocks(), "block"), self.lanes() * 64)
    }

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("bits", self.bits()),
            ("probes", self.probes().into()),
            ("blocks", self.blocks()),
            ("lanes", self.lanes().into()),
        ]
    }

    fn capacity_at_fpr(&self, rate: f64) -> u64 {
        self.capacity_at_fpr(rate)
    }

    fn block_fills(&self, lines: &[CacheLine], steps: usize) -> Vec<u64> {
        let (steps, bits) = (steps.max(1), self.lanes() as usize * 64);
        let mut blocks = vec![0; steps];
        for block in lines.chunks_exact(self.lanes() as usize / 8) {
            let words = block.iter().flat_map(|line| line.0);
            let set: u32 = words.map(u64::count_ones).sum();
            blocks[(set as usize * steps / bits).min(steps - 1)] += 1;
        }
        blocks
    }

    fn check_tail(&self, _: &[CacheLine], _: u64) -> Result<()> {
        Ok(())
    }

    fn folded_line(&self, lines: &[CacheLine], divisor: u64, at: usize) -> CacheLine {
        folded_block(lines, self.lanes() as usize / 8, divisor, at)
    }

    fn cardinality_error(&self, keys: f64) -> f64 {
        math::blocked_standard_error(keys, self.blocks(), self.lanes(), self.probes())
    }

    fn multiple_for_fpr(&self, keys: u64, rate: f64) -> Result<Self> {
        self.multiple_for_fpr(keys, rate)
    }
}

impl ClassicLayout {
    #[inline]
    fn params(&self) -> classic::ClassicParams {
        classic::ClassicParams { bits: self.bits(), probes: self.probes() }
    }
}

impl LayoutImpl for ClassicLayout {
    const KIND: FilterType = FilterType::Classic;
    const MAX_PROBES: u32 = 64;

    fn fields(&self) -> Fields {
        Fields { probes: self.probes() as u16, lanes: 0, extent: self.bits() }
    }

    fn from_fields(fields: Fields) -> Result<Self> {
        if fields.lanes != 0 {
            return Err(Error::invalid("lanes", "0 in a classic filter", fields.lanes));
        }
        Self::for_bits(fields.extent, fields.probes.into())
    }

    inherent_methods!();

    fn into_any(self) -> AnyLayout {
        AnyLayout::Classic(self)
    }

    #[inline]
    fn insert(
        &self,
        _: SingleKeys,
        lines: &mut [CacheLine],
        hash: impl FnOnce(bool) -> u64,
    ) -> bool {
        self.params().insert(lines, hash(false))
    }

    #[inline]
    fn contains(
        &self,
        code: SingleKeys,
        lines: &[CacheLine],
        hash: impl FnOnce(bool) -> u64,
    ) -> bool {
        code.kernel.classic_contains(self.params(), lines, hash(false))
    }

    fn insert_batch(
        &self,
        _: KernelHandle,
        lines: &mut [CacheLine],
        hashes: impl HashSource,
        new: &mut [u64],
    ) {
        self.params().insert_batch(lines, hashes, new);
    }

    fn contains_batch(
        &self,
        kernel: KernelHandle,
        lines: &[CacheLine],
        hashes: impl HashSource,
        found: &mut [u64],
    ) {
        kernel.classic_contains_batch(self.params(), lines, hashes, found);
    }

    fn positions(&self, hash: u64) -> Vec<u64> {
        self.params().positions(hash).collect()
    }

    fn block(&self, _: u64) -> Option<u64> {
        None
    }

    fn fpr_from_bits(&self, lines: &[CacheLine]) -> f64 {
        fill(self, lines).powi(self.probes() as i32)
    }

    fn describe(&self) -> String {
        format!("{}, {}", counted(self.bits(), "bit"), counted(self.probes().into(), "probe"))
    }

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        vec![("bits", self.bits()), ("probes", self.probes().into())]
    }

    fn capacity_at_fpr(&self, rate: f64) -> u64 {
        self.capacity_at_fpr(rate)
    }

    fn block_fills(&self, _: &[CacheLine], _: usize) -> Vec<u64> {
        Vec::new()
    }

    fn check_tail(&self, lines: &[CacheLine], data_at: u64) -> Result<()> {
        let (bytes, used) = (lines_as_bytes(lines), self.bits());
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

    fn folded_line(&self, lines: &[CacheLine], divisor: u64, at: usize) -> CacheLine {
        folded_bits(lines, self.bits(), divisor, at)
    }

    fn cardinality_error(&self, keys: f64) -> f64 {
        math::classic_standard_error(keys, self.bits(), self.probes())
    }

    fn multiple_for_fpr(&self, keys: u64, rate: f64) -> Result<Self> {
        self.multiple_for_fpr(keys, rate)
    }
}

/// Returns the share of set bits, at most 1: damaged data that were not verified may have set bits
/// after the last one.
fn fill<L: Layout>(layout: &L, lines: &[CacheLine]) -> f64 {
    fill_of(layout, lines.iter().map(|line| line.count_ones()).sum())
}

/// [`fill`] from the number of set bits.
pub(super) fn fill_of<L: Layout>(layout: &L, ones: u64) -> f64 {
    (ones as f64 / layout.bits() as f64).min(1.0)
}

/// Estimates the number of distinct keys from the set bits.
pub(crate) fn cardinality<L: Layout>(layout: &L, lines: &[CacheLine]) -> f64 {
    math::cardinality(1.0 - fill(layout, lines), layout.bit_probability())
}

/// [`cardinality`] from the number of set bits.
pub(crate) fn cardinality_of<L: Layout>(layout: &L, ones: u64) -> f64 {
    math::cardinality(1.0 - fill_of(layout, ones), layout.bit_probability())
}

/// Rounds an estimate of the number of distinct keys to an integer that a file can hold, at least 1 if
/// there are any. For a full filter it is the estimate for half a clear bit: the smallest number of
/// keys that fill a filter of this size.
pub(crate) fn whole_cardinality<L: Layout>(layout: &L, keys: f64) -> u64 {
    let max = math::cardinality(0.5 / layout.bits() as f64, layout.bit_probability());
    // A key may set fewer bits than expected, and in tiny filters it sets all of them.
    (keys.min(max).round() as u64).clamp(u64::from(keys > 0.0), u64::MAX >> 1)
}
