//! One layer of a scalable filter: a blocked Bloom filter without what follows from the plan, in
//! few bytes, because a server may hold a million small filters.

use crate::error::Result;
use crate::filter::layout::sealed::{LayoutImpl as _, SingleKeys};
use crate::filter::{BloomFilter, FilterInfo};
use crate::hash::HashSpec;
use crate::kernel::{InlineCode, Kernel, KernelHandle};
use crate::layout::BlockedLayout;
#[cfg(not(feature = "std"))]
use crate::no_std::*;
use crate::results::BatchResults;
use crate::store::{Borrowed, CacheLine, Owned, Store, StoreMut};

/// The bits of a layer. The store has at least one block of `lanes` lanes, and whole blocks only.
#[derive(Clone, Debug)]
pub(super) struct Layer<S> {
    store: S,
    lanes: u8,
    probes: u8,
    kernel: KernelHandle,
    /// The code for single hashes that is inlined into callers.
    code: InlineCode,
}

impl Layer<Owned> {
    /// Allocates an empty layer.
    pub(super) fn empty(layout: BlockedLayout) -> Result<Self> {
        Ok(Self::new(layout, Owned::zeroed(layout.lines())?))
    }

    pub(super) fn store_mut(&mut self) -> &mut Owned {
        &mut self.store
    }
}

impl<S: Store> Layer<S> {
    /// Creates a layer of existing lines, which must be those of the layout.
    pub(super) fn new(layout: BlockedLayout, store: S) -> Self {
        debug_assert_eq!(store.lines().len() as u64, layout.lines());
        let kernel = Kernel::selected();
        let (lanes, probes) = (layout.lanes() as u8, layout.probes() as u8);
        Self { store, lanes, probes, kernel, code: layout.inline_code(kernel) }
    }

    #[inline(always)]
    pub(super) fn layout(&self) -> BlockedLayout {
        let lines_per_block = self.lanes / 8;
        // 1 or 2: a shift, not a division.
        let blocks = self.store.lines().len() as u64 >> (lines_per_block - 1);
        BlockedLayout::new_unchecked(blocks, self.lanes, self.probes)
    }

    pub(super) fn store(&self) -> &S {
        &self.store
    }

    pub(super) fn size_bytes(&self) -> u64 {
        size_of_val(self.store.lines()) as u64
    }

    /// Returns the layer as a filter of its own, which borrows the bits.
    pub(super) fn view(&self, hash: HashSpec, info: FilterInfo) -> BloomFilter<Borrowed<'_>> {
        let lines = Borrowed::from_lines(self.store.lines());
        BloomFilter::from_parts(self.layout(), hash, info, lines)
    }

    /// Copies the layer into memory of its own.
    pub(super) fn try_clone(&self) -> Result<Layer<Owned>> {
        Ok(Layer::new(self.layout(), Owned::from_lines(self.store.lines())?))
    }

    #[inline(always)]
    fn single_hashes(&self) -> SingleKeys {
        SingleKeys { inline: self.code, kernel: self.kernel }
    }

    #[inline(always)]
    pub(super) fn contains_mixed_hash(&self, hash: u64) -> bool {
        self.layout().contains(self.single_hashes(), self.store.lines(), |_| hash)
    }

    #[inline]
    pub(super) fn prefetch_mixed_hash(&self, hash: u64) {
        self.layout().prefetch(self.store.lines(), hash);
    }

    pub(super) fn contains_mixed_hashes(&self, hashes: &[u64], found: &mut BatchResults) {
        let found = found.reset(hashes.len());
        self.layout().contains_batch(self.kernel, self.store.lines(), hashes, found);
    }

    /// Returns whether layout and bits are equal.
    pub(super) fn equals<T: Store>(&self, other: &Layer<T>) -> bool {
        self.layout() == other.layout() && self.store.lines() == other.store.lines()
    }
}

impl<S: StoreMut> Layer<S> {
    #[inline(always)]
    pub(super) fn insert_mixed_hash(&mut self, hash: u64) -> bool {
        let (layout, code) = (self.layout(), self.single_hashes());
        layout.insert(code, self.store.lines_mut(), |_| hash)
    }

    pub(super) fn insert_mixed_hashes(&mut self, hashes: &[u64], new: &mut BatchResults) {
        let layout = self.layout();
        let new = new.reset(hashes.len());
        layout.insert_batch(self.kernel, self.store.lines_mut(), hashes, new);
    }

    pub(super) fn clear(&mut self) {
        self.store.lines_mut().fill(CacheLine::ZERO);
    }
}
