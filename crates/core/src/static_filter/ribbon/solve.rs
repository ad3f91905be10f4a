//! Solving the equations of one shard: elimination in order, then back substitution.
//!
//! A row is a word: the coefficients of an equation from that row on in the low half, their sum in
//! the high half; 0 if the row is free. A taken row never changes, so that the last equations can be
//! undone by freeing their rows.
//!
//! Buckets are processed in ascending order, the keys of a bucket in descending order of start. The
//! keys that overlap with the bucket before are last. If one of them finds no row, its whole group is
//! bumped.
//!
//! Cost: 30 to 40 ns per key. Memory: 8 bytes per row, 4 per key. Source: Dillinger & Walzer 2021 for
//! the elimination, Dillinger, Hübschle-Schneider, Sanders & Walzer 2022 for bumping.

use super::super::keys::{HashedKey, reserve};

use crate::error::Result;
use crate::kernel::Kernel;
use crate::kernel::ribbon::{BUCKET, CUTS, CUTS_IN_HALF, Layer, WIDTH, equation};
use crate::kernel::substitution::Substitution;
#[cfg(not(feature = "std"))]
use crate::no_std::*;
use core::ops::Range;

/// The number of shards whose keys take rows together: each step of an equation waits for the one
/// before, so the steps of several overlap.
pub(super) const LANES: usize = 2;

/// The rows of a shard, reused for each shard.
#[derive(Default)]
pub(super) struct Solver {
    /// Those of the shard, and [`PARKED`].
    rows: Vec<u64>,
    /// The first and the last one are of no key.
    equations: Vec<Equation>,
}

/// The equation of a key.
#[derive(Clone, Copy, Default)]
struct Equation {
    row: u64,
    /// The row where it starts; once it has taken a row, that row.
    at: u32,
}

/// The row behind all others, which is taken. An equation with the first coefficient stays at it.
const PARKED: u64 = 2;

/// Returns the equation of a key, and the bits that it gives: the fingerprint, or for a key that the
/// filter must not contain the fingerprint with another first bit.
#[inline]
fn equation_of<K: HashedKey>(key: K) -> u64 {
    equation(key.hash()) ^ u64::from(key.is_other()) << 32
}

/// An equation that looks for a free row.
#[derive(Clone, Copy)]
struct Lane {
    row: u64,
    at: usize,
    /// The number of its key, from 1, and that of the last key of all that are behind it.
    key: usize,
    end: usize,
}

impl Lane {
    /// Moves the equation to its next row, or continues with the key before if it takes a free row.
    /// Returns false if no key is left, or the equation has no row.
    ///
    /// No branch depends on whether a row is free, because half of them would be mispredicted.
    #[inline(always)]
    fn step(&mut self, rows: &mut [u64], equations: &mut [Equation]) -> bool {
        let there = rows[self.at];
        let free = u64::from(there == 0).wrapping_neg();
        rows[self.at] = there | self.row & free;
        equations[self.key].at = self.at as u32;
        let sum = self.row ^ there;
        let coefficients = sum as u32;
        let zeros = coefficients.trailing_zeros();
        let moved = sum >> 32 << 32 | u64::from(coefficients) >> zeros;
        let next = equations[self.key - 1];
        self.row = next.row & free | moved & !free;
        self.at = (u64::from(next.at) & free | (self.at + zeros as usize) as u64 & !free) as usize;
        self.key -= (free & 1) as usize;
        self.key != self.end && coefficients != 0
    }
}

impl Solver {
    /// Frees all rows, and computes the equations and starts of the keys.
    fn reset<K: HashedKey>(&mut self, layer: &Layer, keys: &[K]) -> Result<()> {
        let rows = (layer.segments * WIDTH) as usize;
        self.rows.clear();
        reserve(&mut self.rows, rows + 1)?;
        self.rows.resize(rows, 0);
        self.rows.push(PARKED);
        self.equations.clear();
        reserve(&mut self.equations, keys.len() + 2)?;
        self.equations.push(Equation::default());
        // Starts are less than 2^25.
        self.equations.extend(keys.iter().map(|key| Equation {
            row: equation_of(*key),
            at: layer.locate(key.hash()).start as u32,
        }));
        self.equations.push(Equation::default());
        Ok(())
    }

    /// Returns the lane of consecutive keys, of which there is one, from the last on.
    fn lane(&self, keys: Range<usize>) -> Lane {
        let Range { start: end, end: key } = keys;
        let Equation { row, at } = self.equations[key];
        Lane { row, at: at as usize, key, end }
    }

    /// Returns a lane that is at the row behind all others.
    fn parked_lane(&self) -> Lane {
        Lane { row: 1, at: self.rows.len() - 1, key: 1, end: 0 }
    }

    /// Takes rows for the keys of some shards, which must be ascending. Moves the bumped keys of each
    /// to the front and returns their number. Sets the cuts of the shards, which must be 0.
    pub(super) fn eliminate<K: HashedKey>(
        solvers: &mut [Self; LANES],
        layer: &Layer,
        shards: [(&mut [K], &mut [u32]); LANES],
    ) -> Result<[usize; LANES]> {
        for (solver, (keys, _)) in solvers.iter_mut().zip(&shards) {
            solver.reset(layer, keys)?;
        }
        let mut shards = shards.map(|(keys, cuts)| Shard::new(layer, keys, cuts));
        let mut lanes = core::array::from_fn(|at| shards[at].next_lane(&solvers[at]));
        while shards.iter().any(|shard| !shard.is_finished()) {
            let ended = run(&mut lanes, solvers);
            let (shard, solver) = (&mut shards[ended], &mut solvers[ended]);
            shard.end_group(&lanes[ended], solver);
            lanes[ended] = shard.next_lane(solver);
        }
        Ok(shards.map(|shard| shard.bumped))
    }

    /// Takes rows for all keys; returns false if that is impossible.
    pub(super) fn eliminate_all<K: HashedKey>(
        &mut self,
        layer: &Layer,
        keys: &[K],
    ) -> Result<bool> {
        self.reset(layer, keys)?;
        if keys.is_empty() {
            return Ok(true);
        }
        let mut lane = self.lane(0..keys.len());
        while lane.step(&mut self.rows, &mut self.equations) {}
        Ok(lane.key == 0)
    }

    /// Writes the bits of the rows that satisfy every equation to the half words of a shard. Free
    /// rows are 0.
    pub(super) fn substitute(&self, layer: &Layer, shard: u64, halves: &mut [u32]) {
        match layer.columns + u64::from(layer.wide > 0) {
            0..=4 => self.substitute_columns::<4>(layer, shard, halves),
            5..=8 => self.substitute_columns::<8>(layer, shard, halves),
            9..=12 => self.substitute_columns::<12>(layer, shard, halves),
            13..=16 => self.substitute_columns::<16>(layer, shard, halves),
            17..=24 => self.substitute_columns::<24>(layer, shard, halves),
            _ => self.substitute_columns::<32>(layer, shard, halves),
        }
    }

    /// Computes all columns of all rows, because rows of wide segments depend on those after them.
    fn substitute_columns<const COLUMNS: usize>(
        &self,
        layer: &Layer,
        shard: u64,
        halves: &mut [u32],
    ) {
        let first = shard * layer.segments;
        let code = Substitution::new(Kernel::selected());
        // The bits of the next 32 rows of each column.
        let mut bits = [0u32; COLUMNS];
        let mut end = halves.len();
        for (at, rows) in self.rows.chunks_exact(WIDTH as usize).enumerate().rev() {
            let segment = first + at as u64;
            code.substitute(rows, &mut bits);
            let columns = (layer.rows_of(segment + 1) - layer.rows_of(segment)) as usize;
            let from = end - columns;
            for (half, bits) in halves[from..end].iter_mut().zip(bits) {
                *half = bits.to_le();
            }
            end = from;
        }
    }
}

/// Takes steps of all lanes in turn until one of them ends, and returns its number.
#[inline(never)]
fn run(lanes: &mut [Lane; LANES], solvers: &mut [Solver; LANES]) -> usize {
    let mut data =
        solvers.each_mut().map(|solver| (&mut solver.rows[..], &mut solver.equations[..]));
    // A copy stays in registers.
    let mut moving = *lanes;
    let ended = 'steps: loop {
        for (at, (lane, (rows, equations))) in moving.iter_mut().zip(&mut data).enumerate() {
            if !lane.step(rows, equations) {
                break 'steps at;
            }
        }
    };
    *lanes = moving;
    ended
}

/// The keys of a shard on their way to rows.
struct Shard<'a, K> {
    keys: &'a mut [K],
    cuts: &'a mut [u32],
    buckets: u64,
    bucket: u64,
    /// The keys of the buckets before, and of all up to this one.
    first: usize,
    behind: usize,
    /// The cut if no more keys take rows, and the keys before those that have.
    cut: usize,
    end: usize,
    /// The first key of the group that takes rows.
    from: usize,
    bumped: usize,
}

impl<'a, K: HashedKey> Shard<'a, K> {
    fn new(layer: &Layer, keys: &'a mut [K], cuts: &'a mut [u32]) -> Self {
        let buckets = if cuts.is_empty() { 0 } else { layer.starts().div_ceil(BUCKET) };
        let (cut, behind) = (CUTS.len() - 1, 0);
        Self { keys, cuts, buckets, bucket: 0, first: 0, behind, cut, end: 0, from: 0, bumped: 0 }
    }

    fn is_finished(&self) -> bool {
        self.bucket == self.buckets
    }

    /// Returns the lane of the next group that has keys.
    fn next_lane(&mut self, solver: &Solver) -> Lane {
        while !self.is_finished() {
            let base = self.bucket * BUCKET;
            let before = |row: u64, keys: Range<usize>| {
                let equations = &solver.equations[keys.start + 1..keys.end + 1];
                let is_before = |equation: &&Equation| u64::from(equation.at) < row;
                keys.start + equations.iter().take_while(is_before).count()
            };
            if self.behind == self.first {
                self.behind = before(base + BUCKET, self.first..self.keys.len());
                self.end = self.behind;
            }
            // Group by group, from the end.
            while self.cut > 0 {
                self.from = before(base + CUTS[self.cut - 1], self.first..self.end);
                if self.from < self.end {
                    return solver.lane(self.from..self.end);
                }
                self.cut -= 1;
            }
            self.end_bucket();
        }
        solver.parked_lane()
    }

    /// Notes that the keys of a group have rows, or bumps them if one has none.
    fn end_group(&mut self, lane: &Lane, solver: &mut Solver) {
        if lane.key == lane.end {
            (self.end, self.cut) = (self.from, self.cut - 1);
            return;
        }
        for equation in &solver.equations[lane.key + 1..self.end + 1] {
            solver.rows[equation.at as usize] = 0;
        }
        self.end_bucket();
    }

    fn end_bucket(&mut self) {
        let (half, at) = (self.bucket / CUTS_IN_HALF, self.bucket % CUTS_IN_HALF);
        self.cuts[half as usize] |= ((self.cut as u32) << (2 * at)).to_le();
        if self.cut > 0 {
            self.keys.copy_within(self.first..self.end, self.bumped);
            self.bumped += self.end - self.first;
        }
        (self.first, self.bucket, self.cut) = (self.behind, self.bucket + 1, CUTS.len() - 1);
    }
}
