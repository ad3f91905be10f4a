//! The blocked layout, marked and checked by many threads at once.
//!
//! The bits are those of [`Rule`]. A word only ever gains bits, and of the words of a block only
//! the holder of the block's *stripe* writes to one: a lock that many blocks have in common.
//!
//! * A query reads its words, and waits for nobody.
//! * An insert looks first. Where all bits are set the key is not new, and nothing is written.
//!   Else it takes the stripe, looks again, sets what is missing, and gives the stripe back.
//!
//! Whoever is told *new* has found a bit clear that nobody else could set meanwhile, so the
//! answer is exact: no two inserts of a key are both told so, and no insert that set a bit is
//! told otherwise. A `fetch_or` for each word cannot say this (`docs/design.md`, "Concurrent
//! filter"). The answers to inserts are those of some order one after another.
//!
//! Orderings: taking a stripe acquires what giving it back released, so its holder sees every bit
//! of its blocks. All else is relaxed. A thread that hears of an insert hears of its bits too:
//! what happened before is never unseen, and no bit is ever cleared.
//!
//! With AVX-512 the same is done a line at a time, in assembly (`avx512::shared`): the holder
//! of a stripe then stores all words of a line, most of them as they were, which nobody else could
//! change meanwhile. The other kernels go word by word, as written here.
//!
//! Cost of an insert: a query, and if the key is new one locked instruction on a line of the
//! stripes, which another core may have. A thread that is stopped while it holds a stripe holds
//! up the inserts of that stripe.
//!
//! `cargo x loom` runs the protocol through all orders of few threads (`tests.rs`).

#[cfg(all(loom, test))]
mod tests;

use super::batch::{GROUP, Hashes, Places, batch, each, join};
use super::blocked::{Marks, Rule};
#[cfg(target_arch = "x86_64")]
use super::{Kernel, avx512};
use super::{Ready, prefetch};
use crate::store::AtomicLine;
use crate::sync::{AtomicU64, Ordering, spin_loop, yield_now};

/// The most stripes of a filter, a power of two: 32 KiB of them. While ten threads do nothing but
/// insert, one insert in a hundred or so finds its stripe taken.
const MOST_STRIPES: u64 = 512;
/// The bit of a stripe that says it is taken.
const TAKEN: u64 = 1 << 63;
/// How often to look whether a stripe is free before the processor is left to others: holders
/// need some ten nanoseconds, unless they have been stopped. Under loom the end of all variation.
const SPINS: u32 = if cfg!(all(loom, test)) { 3 } else { 64 };

/// One for many blocks: the right to write to them, and how many inserts into them were new.
#[repr(align(64))]
pub(super) struct Stripe(AtomicU64);

impl Stripe {
    /// Waits until nobody has it, and takes it; the inserts counted so far.
    #[inline]
    fn take(&self) -> u64 {
        let mut spins = 0;
        loop {
            let inserted = self.0.load(Ordering::Relaxed);
            // Who finds it taken writes nothing, which leaves the line to the holder.
            if inserted & TAKEN == 0 {
                let taken = inserted | TAKEN;
                let (won, lost) = (Ordering::Acquire, Ordering::Relaxed);
                if self.0.compare_exchange_weak(inserted, taken, won, lost).is_ok() {
                    return inserted;
                }
            }
            if spins < SPINS {
                spins += 1;
                spin_loop();
            } else {
                yield_now();
            }
        }
    }

    /// Gives it back, with what is counted now.
    #[inline]
    fn give_back(&self, inserted: u64) {
        self.0.store(inserted, Ordering::Release);
    }

    fn inserted(&self) -> u64 {
        self.0.load(Ordering::Relaxed) & !TAKEN
    }
}

/// The stripes of a filter: a power of two of them, which blocks take in turn.
pub(crate) struct Stripes(Box<[Stripe]>);

impl Stripes {
    /// For so many blocks.
    pub(crate) fn new(blocks: u64) -> Self {
        let stripes = blocks.min(MOST_STRIPES).next_power_of_two();
        Self((0..stripes).map(|_| Stripe(AtomicU64::new(0))).collect())
    }

    /// How many inserts were new. Those under way may be counted or not.
    pub(crate) fn inserted(&self) -> u64 {
        self.0.iter().map(Stripe::inserted).sum()
    }

    #[inline(always)]
    fn of(&self, block: usize) -> &Stripe {
        &self.0[block & (self.0.len() - 1)]
    }
}

/// The blocks of a filter, in the hands of many threads.
#[derive(Clone, Copy)]
pub(crate) struct SharedBlocks<'a, const LANES: usize> {
    pub(crate) rule: Rule<LANES>,
    pub(crate) lines: &'a [AtomicLine],
    pub(crate) stripes: &'a Stripes,
    /// AVX-512 looks at lines, all others at words.
    pub(crate) kernel: Ready,
}

impl<'a, const LANES: usize> SharedBlocks<'a, LANES> {
    /// The block whose first line is at `at`.
    #[inline(always)]
    pub(super) fn block(&self, at: usize) -> &'a [AtomicLine] {
        &self.lines[at..at + Rule::<LANES>::LINES]
    }

    /// The words of a key, each with the mask of its bit as the word holds it.
    #[inline(always)]
    fn words<'b>(
        &self,
        block: &'b [AtomicLine],
        marks: &'b Marks<LANES>,
    ) -> impl Iterator<Item = (&'b AtomicU64, u64)> {
        (0..self.rule.probes).map(move |probe| {
            let (lane, bit) = marks.probe(probe);
            (&block[lane / 8].0[lane % 8], bit.to_le())
        })
    }

    /// Whether all bits of a key are set. Ends at the first clear one.
    #[inline(always)]
    fn has(&self, block: &[AtomicLine], marks: &Marks<LANES>) -> bool {
        self.words(block, marks).all(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0)
    }

    /// Whether all bits of a hash are set.
    #[inline]
    pub(crate) fn contains(&self, hash: u64) -> bool {
        match self.kernel.0 {
            // SAFETY: the machine has the instructions.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => unsafe { avx512::shared::contains(self, hash) },
            _ => self.contains_at(self.rule.at(hash), hash),
        }
    }

    /// Sets the bits of a hash; whether any of them was clear.
    #[inline]
    pub(crate) fn insert(&self, hash: u64) -> bool {
        match self.kernel.0 {
            // SAFETY: the machine has the instructions.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => unsafe { avx512::shared::insert(self, hash) },
            _ => self.insert_at(self.rule.at(hash), hash),
        }
    }

    #[inline(always)]
    fn contains_at(&self, at: usize, hash: u64) -> bool {
        self.has(self.block(at), &Marks::of(hash))
    }

    #[inline(always)]
    fn insert_at(&self, at: usize, hash: u64) -> bool {
        let (block, marks) = (self.block(at), Marks::of(hash));
        if self.has(block, &marks) {
            return false;
        }
        self.with_stripe(at, || {
            let mut new = false;
            for (word, bit) in self.words(block, &marks) {
                let bits = word.load(Ordering::Relaxed);
                if bits & bit == 0 {
                    // No locked instruction: whoever else writes to this word needs the stripe.
                    word.store(bits | bit, Ordering::Relaxed);
                    new = true;
                }
            }
            new
        })
    }

    /// The stripe of the block at `at`.
    #[inline(always)]
    pub(super) fn stripe(&self, at: usize) -> &'a Stripe {
        self.stripes.of(at / Rule::<LANES>::LINES)
    }

    /// Takes the stripe of the block at `at` while `set` looks again, sets what is missing, and
    /// says whether that was anything. It must not panic: the stripe would stay taken.
    #[inline(always)]
    pub(super) fn with_stripe(&self, at: usize, set: impl FnOnce() -> bool) -> bool {
        let stripe = self.stripe(at);
        let inserted = stripe.take();
        let new = set();
        stripe.give_back(inserted + u64::from(new));
        new
    }

    /// Where the blocks of hashes begin; asks for their lines.
    #[inline(always)]
    fn prepare(&self, hashes: &[u64; GROUP], places: &mut Places) {
        *places = Places { at: hashes.map(|hash| self.rule.at(hash)), hashes: *hashes };
        for at in places.at {
            (at..at + Rule::<LANES>::LINES).for_each(|line| prefetch(self.lines, line));
        }
    }

    /// Sets the bits of many hashes in turn: an answer is yes if that hash was new, those before
    /// it in the batch included. There are words for all answers, 64 to a word.
    pub(crate) fn insert_batch(self, hashes: impl Hashes, new: &mut [u64]) {
        match self.kernel.0 {
            // SAFETY: the machine has the instructions.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => unsafe { avx512::shared::insert_batch(&self, hashes, new) },
            _ => self.batch(hashes, new, Self::insert_at),
        }
    }

    /// Looks for many hashes; answers as in [`insert_batch`](Self::insert_batch).
    pub(crate) fn contains_batch(self, hashes: impl Hashes, found: &mut [u64]) {
        match self.kernel.0 {
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => unsafe { avx512::shared::contains_batch(&self, hashes, found) },
            _ => self.batch(hashes, found, Self::contains_at),
        }
    }

    /// Does many hashes in turn, each where its block begins.
    #[inline(always)]
    fn batch(
        self,
        hashes: impl Hashes,
        answers: &mut [u64],
        one: impl Fn(&Self, usize, u64) -> bool,
    ) {
        let look = |blocks: &mut Self, places: &Places, answers: &mut u8| {
            let keys = places.at.into_iter().zip(places.hashes);
            *answers = each(keys, |(at, hash)| one(blocks, at, hash));
        };
        batch(self, hashes, answers, Self::prepare, look, join);
    }
}
