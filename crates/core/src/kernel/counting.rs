//! Counting: a small counter for each bit of a filter, raised and lowered by what a key marks.
//!
//! Counters are bit-sliced. Of a line of 512 bits of the filter, *its bits*, each says whether its
//! counter is above zero; the lines beside it, its *planes*, hold count - 1 in binary, plane 1 the
//! lowest digit. So one operation on a line works on 512 counters, and whoever only asks looks at
//! the bits alone. Bits and planes are in memory of their own; the planes of a line lie together.
//!
//! * to raise is to add a one to each counter that is marked, by carries from plane to plane;
//! * to lower is to subtract it, by borrows;
//! * a counter at its largest count is *stuck*: nobody knows how far it would have gone, so it is
//!   never lowered, and no key can be lost.
//!
//! Invariants, if the filter was made by these means: a counter whose bit is clear is zero in all
//! planes. Each place that a key marks is counted once, even if two of its probes fall together.
//!
//! The word-wise code here is the law; the vector code equals it. Cost: a line of bits and its
//! planes for each line that a key marks. Source: Fan, Cao, Almeida & Broder 2000, "Summary
//! cache", for counters; carries over bit slices are folklore.

use super::blocked::{Marks, Rule};
use super::{Ready, classic, prefetch, scale};
use crate::store::Line;

/// The counters of a filter, to be changed.
pub(crate) struct Counters<'a> {
    pub(crate) bits: &'a mut [Line],
    pub(crate) planes: &'a mut [Line],
    /// Planes of a line; at least one.
    pub(crate) depth: usize,
}

/// What came of a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Removed {
    /// The key was certainly not there; nothing has changed.
    Absent,
    /// It was there, and still seems to be.
    Fewer,
    /// It was there, and is not any more.
    Gone,
}

/// How a key marks counters.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Marking {
    /// In one line.
    Line(Rule<8>),
    /// In a pair of lines.
    Pair(Rule<16>),
    /// Anywhere.
    Classic(classic::Rule),
}

/// The depth for which batches have code of their own: that of the default width, of four bits.
const USUAL: usize = 3;

/// Keys between the one that is worked on and the one that is asked for: with four lines each,
/// enough to keep a core's line-fill buffers busy.
const AHEAD: usize = 8;

// ---- The law ------------------------------------------------------------------------------------

/// Which counters a hash marks.
pub(super) trait Places: Copy {
    /// Whether all of them are above zero.
    fn contains(self, bits: &[Line], hash: u64) -> bool;

    /// Calls for each place once.
    fn each(self, hash: u64, look: impl FnMut(u64));

    /// Calls for each line with places in it, perhaps more than once.
    fn each_line(self, hash: u64, look: impl FnMut(usize));
}

impl<const LANES: usize> Places for Rule<LANES> {
    #[inline(always)]
    fn contains(self, bits: &[Line], hash: u64) -> bool {
        Rule::contains(&self, &bits[self.lines_of(hash)], hash)
    }

    #[inline(always)]
    fn each(self, hash: u64, mut look: impl FnMut(u64)) {
        let marks = Marks::<LANES>::of(hash);
        let first = scale(hash, self.blocks) * LANES as u64;
        for probe in 0..self.probes {
            // Each in a lane of its own.
            let (lane, bit) = marks.probe(probe);
            look((first + lane as u64) * 64 + u64::from(bit.trailing_zeros()));
        }
    }

    #[inline(always)]
    fn each_line(self, hash: u64, look: impl FnMut(usize)) {
        self.lines_of(hash).for_each(look);
    }
}

impl Places for classic::Rule {
    #[inline(always)]
    fn contains(self, bits: &[Line], hash: u64) -> bool {
        classic::Rule::contains(&self, bits, hash)
    }

    #[inline(always)]
    fn each(self, hash: u64, mut look: impl FnMut(u64)) {
        let mut seen = [0; classic::MOST_PROBES];
        let mut count = 0;
        for position in self.positions(hash) {
            if !seen[..count].contains(&position) {
                seen[count] = position;
                count += 1;
                look(position);
            }
        }
    }

    #[inline(always)]
    fn each_line(self, hash: u64, mut look: impl FnMut(usize)) {
        self.positions(hash).for_each(|position| look(classic::place(position).0));
    }
}

impl Counters<'_> {
    /// The line of bits at this place, and its planes.
    #[inline(always)]
    pub(super) fn line(&mut self, at: usize) -> (&mut Line, &mut [Line]) {
        (&mut self.bits[at], &mut self.planes[at * self.depth..][..self.depth])
    }

    /// Asks for a line of bits and its planes.
    #[inline(always)]
    fn prefetch(&self, at: usize) {
        prefetch(self.bits, at);
        let planes = at.wrapping_mul(self.depth);
        (0..self.depth).for_each(|plane| prefetch(self.planes, planes.wrapping_add(plane)));
    }

    /// Adds one to a counter; whether it was zero.
    #[inline(always)]
    fn raise(&mut self, place: u64) -> bool {
        let (line, word, bit) = classic::place(place);
        let bit = bit.to_le();
        let (bits, planes) = self.line(line);
        let old = bits.0[word];
        bits.0[word] = old | bit;
        let mut carry = old & bit;
        for plane in planes.iter_mut() {
            let old = plane.0[word];
            plane.0[word] = old ^ carry;
            carry &= old;
        }
        // Beyond the largest count: back to it.
        planes.iter_mut().for_each(|plane| plane.0[word] |= carry);
        old & bit == 0
    }

    /// Takes one off a counter that is above zero, unless it is stuck; whether it is zero now.
    #[inline(always)]
    fn lower(&mut self, place: u64) -> bool {
        let (line, word, bit) = classic::place(place);
        let bit = bit.to_le();
        let (bits, planes) = self.line(line);
        let stuck = planes.iter().fold(bit, |stuck, plane| stuck & plane.0[word]);
        let mut borrow = bit & !stuck;
        for plane in planes.iter_mut() {
            let old = plane.0[word];
            plane.0[word] = old ^ borrow;
            borrow &= !old;
        }
        // It was one: all planes have borrowed.
        planes.iter_mut().for_each(|plane| plane.0[word] &= !borrow);
        bits.0[word] &= !borrow;
        borrow != 0
    }

    #[inline(always)]
    fn insert(&mut self, places: impl Places, hash: u64) -> bool {
        let mut new = false;
        places.each(hash, |place| new |= self.raise(place));
        new
    }

    #[inline(always)]
    fn remove(&mut self, places: impl Places, hash: u64) -> Removed {
        if !places.contains(self.bits, hash) {
            return Removed::Absent;
        }
        let mut gone = false;
        places.each(hash, |place| gone |= self.lower(place));
        if gone { Removed::Gone } else { Removed::Fewer }
    }

    /// Works through hashes in turn, asking early for the lines of those to come; an answer for
    /// each, 64 to a word.
    #[inline(always)]
    pub(super) fn batch(
        &mut self,
        places: impl Places,
        hashes: &[u64],
        answers: &mut [u64],
        act: impl FnMut(&mut Counters<'_>, u64) -> bool,
    ) {
        if self.depth == USUAL {
            // What the compiler knows needs no loops: that takes half the time.
            let mut known = Counters { bits: self.bits, planes: self.planes, depth: USUAL };
            known.batch_of_any(places, hashes, answers, act);
        } else {
            self.batch_of_any(places, hashes, answers, act);
        }
    }

    #[inline(always)]
    fn batch_of_any(
        &mut self,
        places: impl Places,
        hashes: &[u64],
        answers: &mut [u64],
        mut act: impl FnMut(&mut Counters<'_>, u64) -> bool,
    ) {
        assert!(answers.len() == hashes.len().div_ceil(64), "a word for 64 answers");
        for &hash in hashes.iter().take(AHEAD) {
            places.each_line(hash, |line| self.prefetch(line));
        }
        let mut ahead = hashes.iter().skip(AHEAD);
        for (answer, hashes) in answers.iter_mut().zip(hashes.chunks(64)) {
            *answer = 0;
            for (at, &hash) in hashes.iter().enumerate() {
                if let Some(&hash) = ahead.next() {
                    places.each_line(hash, |line| self.prefetch(line));
                }
                *answer |= u64::from(act(self, hash)) << at;
            }
        }
    }

    #[inline(always)]
    fn insert_batch(&mut self, places: impl Places, hashes: &[u64], new: &mut [u64]) {
        self.batch(places, hashes, new, |counters, hash| counters.insert(places, hash));
    }

    #[inline(always)]
    fn remove_batch(&mut self, places: impl Places, hashes: &[u64], removed: &mut [u64]) -> u64 {
        let mut gone = 0;
        self.batch(places, hashes, removed, |counters, hash| {
            let removed = counters.remove(places, hash);
            gone += u64::from(removed == Removed::Gone);
            removed != Removed::Absent
        });
        gone
    }
}

/// The count of one counter.
#[inline(always)]
fn count(bits: &[Line], planes: &[Line], depth: usize, place: u64) -> u64 {
    let (line, word, bit) = classic::place(place);
    let digit = |line: &Line| u64::from(u64::from_le(line.0[word]) & bit != 0);
    let planes = &planes[line * depth..][..depth];
    let above = planes.iter().rev().fold(0, |count, plane| count << 1 | digit(plane));
    // Where nobody has verified the data, planes may be set above a clear bit.
    digit(&bits[line]) * (above + 1)
}

// ---- The choice of code -------------------------------------------------------------------------

/// Runs with the rule that marks, by the code of the kernel: vectors for lines, or the law.
macro_rules! run {
    ($kernel:expr, $marking:expr, $vector:ident($($vector_argument:expr),*), |$places:ident| $law:expr) => {
        match ($marking, $kernel.0) {
            // SAFETY: the machine has the instructions.
            #[cfg(target_arch = "x86_64")]
            (Marking::Line(rule), super::Kernel::Avx512) => unsafe {
                super::avx512::counting::$vector(rule, $($vector_argument),*)
            },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            (Marking::Pair(rule), super::Kernel::Avx512) => unsafe {
                super::avx512::counting::$vector(rule, $($vector_argument),*)
            },
            (Marking::Line($places), _) => $law,
            (Marking::Pair($places), _) => $law,
            (Marking::Classic($places), _) => $law,
        }
    };
}

impl Marking {
    /// Counts a hash once more; whether any of its counters was zero.
    pub(crate) fn insert(self, kernel: Ready, mut counters: Counters<'_>, hash: u64) -> bool {
        run!(kernel, self, insert(&mut counters, hash), |places| counters.insert(places, hash))
    }

    /// Counts a hash once less, if none of its counters is zero.
    pub(crate) fn remove(self, kernel: Ready, mut counters: Counters<'_>, hash: u64) -> Removed {
        run!(kernel, self, remove(&mut counters, hash), |places| counters.remove(places, hash))
    }

    /// [`insert`](Self::insert) for many hashes in turn; an answer for each, 64 to a word.
    pub(crate) fn insert_batch(
        self,
        kernel: Ready,
        mut counters: Counters<'_>,
        hashes: &[u64],
        new: &mut [u64],
    ) {
        run!(kernel, self, insert_batch(&mut counters, hashes, new), |places| {
            counters.insert_batch(places, hashes, new)
        })
    }

    /// [`remove`](Self::remove) for many hashes in turn: an answer for each is yes unless it was
    /// absent. How many are gone.
    pub(crate) fn remove_batch(
        self,
        kernel: Ready,
        mut counters: Counters<'_>,
        hashes: &[u64],
        removed: &mut [u64],
    ) -> u64 {
        run!(kernel, self, remove_batch(&mut counters, hashes, removed), |places| {
            counters.remove_batch(places, hashes, removed)
        })
    }

    /// The least count among the counters of a hash.
    pub(crate) fn count(self, bits: &[Line], planes: &[Line], depth: usize, hash: u64) -> u64 {
        let mut least = u64::MAX;
        let look = |place| least = least.min(count(bits, planes, depth, place));
        match self {
            Self::Line(rule) => rule.each(hash, look),
            Self::Pair(rule) => rule.each(hash, look),
            Self::Classic(rule) => rule.each(hash, look),
        }
        least
    }
}
