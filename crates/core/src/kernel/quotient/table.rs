//! A table's rule with the instructions that it is worked with, and the loops over many hashes.

use super::select::Portable;
use super::{Fault, Fill, HEAD, Inserted, Rule, Select, Tally, Walk, Walked};
use crate::kernel::{Ready, prefetch, scale};
use crate::store::{Line, bytes_of, bytes_of_mut};

#[cfg(target_arch = "x86_64")]
use super::select::Bmi2;

/// Keys on the way while one is looked at.
const AHEAD: usize = 24;
/// Where a run is likely to be: so many slots behind its quotient. At the fill that is planned
/// for, what is pushed out before a slot is 9 remainders in the mean.
const PUSHED: usize = 6;

/// A table whose lines come with each call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    rule: Rule,
    /// Fingerprints that there are: a hash is scaled to them.
    range: u64,
    #[cfg(target_arch = "x86_64")]
    bmi2: Option<Bmi2>,
}

/// What came of inserting many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    /// Hashes that were dealt with.
    pub(crate) hashes: usize,
    /// How many of them were new.
    pub(crate) new: u64,
    /// How many slots they took: with copies, one each.
    pub(crate) slots: u64,
    /// The next one found no slot.
    pub(crate) full: bool,
}

/// The same with the instructions of this machine, or without.
macro_rules! with {
    ($table:expr, |$select:ident| $portable:expr, $bmi2:ident($($argument:expr),*)) => {{
        #[cfg(target_arch = "x86_64")]
        if let Some($select) = $table.bmi2 {
            // SAFETY: whoever has a `Bmi2` knows that the machine has the instructions.
            return unsafe { bmi2::$bmi2($select, $($argument),*) };
        }
        let $select = Portable;
        $portable
    }};
}

impl Table {
    /// The table of a rule, worked with as the kernel likes it.
    pub(crate) fn new(rule: Rule, range: u64, kernel: Ready) -> Self {
        #[cfg(not(target_arch = "x86_64"))]
        let _ = kernel;
        Self {
            rule,
            range,
            #[cfg(target_arch = "x86_64")]
            bmi2: if kernel.0 == crate::kernel::Kernel::Portable { None } else { Bmi2::new() },
        }
    }

    /// The fingerprint of a hash.
    #[inline]
    pub(crate) fn fingerprint(&self, hash: u64) -> u64 {
        scale(hash, self.range)
    }

    /// Whether a hash's fingerprint is there.
    #[inline]
    pub(crate) fn contains(&self, lines: &[Line], hash: u64) -> bool {
        let (bytes, fingerprint) = (bytes_of(lines), self.fingerprint(hash));
        with!(
            self,
            |select| self.rule.contains(select, bytes, fingerprint),
            contains(self.rule, bytes, fingerprint)
        )
    }

    /// How many copies of a hash's fingerprint are there.
    pub(crate) fn count(&self, lines: &[Line], hash: u64) -> u64 {
        let (bytes, fingerprint) = (bytes_of(lines), self.fingerprint(hash));
        with!(
            self,
            |select| self.rule.count(select, bytes, fingerprint),
            count(self.rule, bytes, fingerprint)
        )
    }

    /// Inserts a hash's fingerprint; a copy if it is there and shall be there `again`.
    #[inline]
    pub(crate) fn insert(&self, lines: &mut [Line], hash: u64, again: bool) -> Inserted {
        let (bytes, fingerprint) = (bytes_of_mut(lines), self.fingerprint(hash));
        self.ask_for_more(bytes, hash);
        with!(
            self,
            |select| self.rule.insert(select, bytes, fingerprint, again),
            insert(self.rule, bytes, fingerprint, again)
        )
    }

    /// Removes one copy of a hash's fingerprint; how many there were.
    #[inline]
    pub(crate) fn remove(&self, lines: &mut [Line], hash: u64) -> u64 {
        let (bytes, fingerprint) = (bytes_of_mut(lines), self.fingerprint(hash));
        self.ask_for_more(bytes, hash);
        with!(
            self,
            |select| self.rule.remove(select, bytes, fingerprint),
            remove(self.rule, bytes, fingerprint)
        )
    }

    /// Looks for many hashes; there are words for all answers, 64 to a word, and they are 0.
    pub(crate) fn contains_batch(&self, lines: &[Line], hashes: &[u64], found: &mut [u64]) {
        let bytes = bytes_of(lines);
        with!(
            self,
            |select| self.contains_all(select, bytes, hashes, found),
            contains_batch(self, bytes, hashes, found)
        )
    }

    /// Inserts hashes in turn, those that are there already if `again`, from the one at `first` on,
    /// until they have taken so many slots, or one finds none. Answers as above: yes if that one was
    /// new.
    pub(crate) fn insert_batch(
        &self,
        lines: &mut [Line],
        hashes: &[u64],
        first: usize,
        (room, again): (u64, bool),
        new: &mut [u64],
    ) -> Taken {
        let bytes = bytes_of_mut(lines);
        with!(
            self,
            |select| self.insert_all(select, bytes, hashes, first, (room, again), new),
            insert_batch(self, bytes, hashes, first, (room, again), new)
        )
    }

    /// All fingerprints that are there, ascending.
    pub(crate) fn walk<'a>(&self, lines: &'a [Line]) -> Walk<'a> {
        Walk::new(self.rule, bytes_of(lines))
    }

    /// Puts fingerprints into lines of zeros, in ascending order; whether all found a slot.
    pub(crate) fn fill(
        &self,
        lines: &mut [Line],
        mut fingerprints: impl Iterator<Item = u64>,
    ) -> bool {
        let mut fill = Fill::new(self.rule, bytes_of_mut(lines));
        let all = fingerprints.all(|fingerprint| fill.push(fingerprint));
        self.finish(fill);
        all
    }

    fn finish(&self, fill: Fill<'_>) {
        with!(self, |select| fill.finish(select), finish(fill))
    }

    #[inline(always)]
    fn contains_all(&self, select: impl Select, bytes: &[u8], hashes: &[u64], found: &mut [u64]) {
        for hash in hashes.iter().take(AHEAD) {
            self.ask_for(bytes, *hash);
        }
        for (at, hash) in hashes.iter().enumerate() {
            if let Some(later) = hashes.get(at + AHEAD) {
                self.ask_for(bytes, *later);
            }
            let yes = self.rule.contains(select, bytes, self.fingerprint(*hash));
            if let Some(word) = found.get_mut(at / 64) {
                *word |= u64::from(yes) << (at % 64);
            }
        }
    }

    #[inline(always)]
    fn insert_all(
        &self,
        select: impl Select,
        bytes: &mut [u8],
        hashes: &[u64],
        first: usize,
        (room, again): (u64, bool),
        new: &mut [u64],
    ) -> Taken {
        let mut taken = Taken::default();
        for hash in hashes.iter().skip(first).take(AHEAD) {
            self.ask_for_more(bytes, *hash);
        }
        for (at, hash) in hashes.iter().enumerate().skip(first) {
            if taken.slots == room {
                break;
            }
            if let Some(later) = hashes.get(at + AHEAD) {
                self.ask_for_more(bytes, *later);
            }
            let inserted = self.rule.insert(select, bytes, self.fingerprint(*hash), again);
            if inserted == Inserted::Full {
                taken.full = true;
                break;
            }
            let yes = u64::from(inserted == Inserted::New);
            if let Some(word) = new.get_mut(at / 64) {
                *word |= yes << (at % 64);
            }
            taken.new += yes;
            taken.slots += u64::from(inserted != Inserted::There);
            taken.hashes += 1;
        }
        taken
    }

    /// Asks for what will be looked at for a hash.
    #[inline]
    pub(crate) fn prefetch(&self, lines: &[Line], hash: u64) {
        self.ask_for(bytes_of(lines), hash);
    }

    /// For loops that look at the hash at `at`: asks for what will be looked at later.
    #[inline]
    pub(crate) fn ask_ahead(&self, lines: &[Line], hashes: &[u64], at: usize) {
        if let Some(later) = hashes.get(at + AHEAD) {
            self.ask_for(bytes_of(lines), *later);
        }
    }

    /// Whether a table of so many quotients is sound: what inserts would have made of its
    /// fingerprints.
    ///
    /// Cost: one pass.
    pub(crate) fn check(
        &self,
        lines: &[Line],
        quotients: u64,
        walked: Walked,
    ) -> Result<Tally, Fault> {
        self.rule.check(bytes_of(lines), quotients, walked)
    }

    /// The same as far as it can be told from the first so many lines.
    pub(crate) fn check_early(
        &self,
        lines: &[Line],
        there: usize,
        quotients: u64,
        walked: &mut Walked,
    ) -> Result<(), Fault> {
        let blocks = there.saturating_mul(Line::BYTES) / self.rule.at(1);
        self.rule.check_blocks(bytes_of(lines), quotients, blocks.min(self.rule.blocks), walked)
    }

    /// The line in which a block begins.
    pub(crate) fn line_of(&self, block: usize) -> usize {
        self.rule.at(block) / Line::BYTES
    }

    /// Asks for the lines in which something will be moved for a hash: those of the next block
    /// too.
    #[inline(always)]
    fn ask_for_more(&self, bytes: &[u8], hash: u64) {
        self.ask_for(bytes, hash);
        let quotient = self.rule.quotient(self.fingerprint(hash));
        let next = self.rule.at(quotient / super::SLOTS + 1);
        prefetch(bytes, next);
    }

    /// Asks for the lines that a hash will be looked for in.
    #[inline(always)]
    fn ask_for(&self, bytes: &[u8], hash: u64) {
        let quotient = self.rule.quotient(self.fingerprint(hash));
        let at = self.rule.at(quotient / super::SLOTS);
        let slot = quotient % super::SLOTS + PUSHED;
        prefetch(bytes, at);
        prefetch(bytes, at + HEAD + slot * self.rule.width as usize / 8);
    }
}

/// The same, compiled for the instructions.
#[cfg(target_arch = "x86_64")]
mod bmi2 {
    use super::{Bmi2, Fill, Inserted, Rule, Table, Taken};

    #[target_feature(enable = "bmi1,bmi2,lzcnt,popcnt")]
    pub(super) fn contains(select: Bmi2, rule: Rule, bytes: &[u8], fingerprint: u64) -> bool {
        rule.contains(select, bytes, fingerprint)
    }

    #[target_feature(enable = "bmi1,bmi2,lzcnt,popcnt")]
    pub(super) fn count(select: Bmi2, rule: Rule, bytes: &[u8], fingerprint: u64) -> u64 {
        rule.count(select, bytes, fingerprint)
    }

    #[target_feature(enable = "bmi1,bmi2,lzcnt,popcnt")]
    pub(super) fn insert(
        select: Bmi2,
        rule: Rule,
        bytes: &mut [u8],
        fingerprint: u64,
        again: bool,
    ) -> Inserted {
        rule.insert(select, bytes, fingerprint, again)
    }

    #[target_feature(enable = "bmi1,bmi2,lzcnt,popcnt")]
    pub(super) fn remove(select: Bmi2, rule: Rule, bytes: &mut [u8], fingerprint: u64) -> u64 {
        rule.remove(select, bytes, fingerprint)
    }

    #[target_feature(enable = "bmi1,bmi2,lzcnt,popcnt")]
    pub(super) fn contains_batch(
        select: Bmi2,
        table: &Table,
        bytes: &[u8],
        hashes: &[u64],
        found: &mut [u64],
    ) {
        table.contains_all(select, bytes, hashes, found);
    }

    #[target_feature(enable = "bmi1,bmi2,lzcnt,popcnt")]
    pub(super) fn insert_batch(
        select: Bmi2,
        table: &Table,
        bytes: &mut [u8],
        hashes: &[u64],
        first: usize,
        (room, again): (u64, bool),
        new: &mut [u64],
    ) -> Taken {
        table.insert_all(select, bytes, hashes, first, (room, again), new)
    }

    #[target_feature(enable = "bmi1,bmi2,lzcnt,popcnt")]
    pub(super) fn finish(select: Bmi2, fill: Fill<'_>) {
        fill.finish(select);
    }
}
