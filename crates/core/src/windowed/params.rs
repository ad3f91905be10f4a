//! The constant parameters of a windowed filter, in few bytes: a server may hold a million small
//! windows, each smaller than a page.

use super::plan::WindowPlan;
use crate::hash::HashSpec;
use crate::kernel::{Kernel, KernelHandle};
use crate::layout::BlockedLayout;

/// The plan, layout and hash of a windowed filter, validated.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowParams {
    keys: u64,
    fpr: f64,
    /// 0 for a window by count.
    ticks: u64,
    blocks: u64,
    generations: u8,
    lanes: u8,
    probes: u8,
    pub(super) hash: HashSpec,
    pub(super) kernel: KernelHandle,
}

impl WindowParams {
    /// Packs the parameters; at most 12 generations and 16 lanes fit into bytes.
    pub(super) fn new(plan: WindowPlan, layout: BlockedLayout, hash: HashSpec) -> Self {
        Self {
            keys: plan.keys,
            fpr: plan.fpr,
            ticks: plan.ticks.unwrap_or(0),
            blocks: layout.blocks(),
            generations: plan.generations as u8,
            lanes: layout.lanes() as u8,
            probes: layout.probes() as u8,
            hash,
            kernel: Kernel::selected(),
        }
    }

    #[inline(always)]
    pub(super) fn plan(&self) -> WindowPlan {
        let ticks = (self.ticks > 0).then_some(self.ticks);
        WindowPlan { keys: self.keys, fpr: self.fpr, ticks, generations: self.generations.into() }
    }

    /// Returns the layout of one generation.
    #[inline(always)]
    pub(super) fn layout(&self) -> BlockedLayout {
        BlockedLayout::new_unchecked(self.blocks, self.lanes, self.probes)
    }
}

impl PartialEq for WindowParams {
    /// Compares plan, layout and hash, not the kernel.
    fn eq(&self, other: &Self) -> bool {
        let all = |params: &Self| (params.plan(), params.layout(), params.hash);
        all(self) == all(other)
    }
}
