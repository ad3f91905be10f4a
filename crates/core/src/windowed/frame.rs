//! What never changes of a windowed filter, in as few bytes as it needs: a server may hold a
//! million small windows, each with less bits than a page.

use super::plan::Plan;
use crate::hash::HashSpec;
use crate::kernel::{Kernel, Ready};
use crate::shape::Shape;

/// A plan, its shape and its hash. A proof, as they are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    keys: u64,
    rate: f64,
    /// 0 if the window is a number of keys.
    ticks: u64,
    blocks: u64,
    generations: u8,
    lanes: u8,
    probes: u8,
    pub(super) hash: HashSpec,
    pub(super) kernel: Ready,
}

impl Frame {
    /// Numbers of a plan and of a shape fit: there are 12 generations at most, and 16 lanes.
    pub(super) fn new(plan: Plan, shape: Shape, hash: HashSpec) -> Self {
        Self {
            keys: plan.keys,
            rate: plan.rate,
            ticks: plan.ticks.unwrap_or(0),
            blocks: shape.blocks(),
            generations: plan.generations as u8,
            lanes: shape.lanes() as u8,
            probes: shape.probes() as u8,
            hash,
            kernel: Kernel::chosen(),
        }
    }

    #[inline(always)]
    pub(super) fn plan(&self) -> Plan {
        let ticks = (self.ticks > 0).then_some(self.ticks);
        Plan { keys: self.keys, rate: self.rate, ticks, generations: self.generations.into() }
    }

    /// Of one generation.
    #[inline(always)]
    pub(super) fn shape(&self) -> Shape {
        Shape::again(self.blocks, self.lanes, self.probes)
    }
}

impl PartialEq for Frame {
    /// Equal plan, shape and hash, whatever the code is that works with them.
    fn eq(&self, other: &Self) -> bool {
        let all = |frame: &Self| (frame.plan(), frame.shape(), frame.hash);
        all(self) == all(other)
    }
}
