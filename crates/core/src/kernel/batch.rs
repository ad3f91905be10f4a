//! The loop of all batches: ask for lines early, look at them later.
//!
//! Hashes go through in groups of [`GROUP`]. A group is *prepared*: its places are computed, and
//! their lines are asked for. [`AHEAD`] groups later it is *looked at*. So many cache misses
//! overlap at any time, which is what makes a filter out of cache fast, and what needs no answer
//! of an earlier key is out of the way before.

/// Hashes that are prepared together: as many as the widest vector has of them.
pub(super) const GROUP: usize = 8;
/// Groups on the way: enough to keep a core's line-fill buffers busy.
const AHEAD: usize = 4;

/// Where a batch has its hashes from.
pub trait Hashes: Copy {
    /// As many words as there are hashes.
    fn words(&self) -> &[u64];

    /// The hashes of a group of these words.
    fn make(&self, words: &[u64; GROUP], hashes: &mut [u64; GROUP]);
}

/// The words are hashes.
impl Hashes for &[u64] {
    #[inline(always)]
    fn words(&self) -> &[u64] {
        self
    }

    #[inline(always)]
    fn make(&self, words: &[u64; GROUP], hashes: &mut [u64; GROUP]) {
        *hashes = *words;
    }
}

/// The words are keys, to be hashed while others are looked at.
#[derive(Clone, Copy)]
pub(crate) struct Keys<'a, F> {
    pub(crate) words: &'a [u64],
    pub(crate) hash: F,
}

impl<F: Fn(u64) -> u64 + Copy> Hashes for Keys<'_, F> {
    #[inline(always)]
    fn words(&self) -> &[u64] {
        self.words
    }

    #[inline(always)]
    fn make(&self, words: &[u64; GROUP], hashes: &mut [u64; GROUP]) {
        for (&word, hash) in words.iter().zip(hashes) {
            // SAFETY: a borrowed word. Volatile, since compilers like to make one vector of the
            // eight hashes, which are products of 128 bits: that takes longer than the products.
            unsafe { std::ptr::write_volatile(hash, (self.hash)(word)) };
        }
    }
}

/// All hashes in turn.
#[inline(always)]
pub(super) fn one_by_one(hashes: impl Hashes) -> impl Iterator<Item = u64> {
    let mut made = [0; GROUP];
    (0..hashes.words().len()).map(move |at| {
        if at % GROUP == 0 {
            let words = &hashes.words()[at..];
            let group = words.first_chunk().copied();
            let padded = || std::array::from_fn(|at| *words.get(at).unwrap_or(&0));
            hashes.make(&group.unwrap_or_else(padded), &mut made);
        }
        made[at % GROUP]
    })
}

/// Works through hashes in turn and puts an answer for each into `answers`, 64 to a word.
///
/// `prepare` fills a group's place on the way; `look` does what is to be done and leaves what it
/// saw of a group; `close` makes answers of what was seen of eight. The last group is filled up
/// with its last hash, which must do no harm: neither another look nor another insert of the same
/// key does.
///
/// Inlined always, so that the loop is compiled for the instructions of whoever calls.
#[inline(always)]
pub(super) fn batch<L, G: Default, S: Default>(
    mut lines: L,
    hashes: impl Hashes,
    answers: &mut [u64],
    prepare: impl Fn(&L, &[u64; GROUP], &mut G),
    look: impl Fn(&mut L, &G, &mut S),
    close: impl Fn(&[S; 8]) -> u64,
) {
    let words = hashes.words();
    assert!(answers.len() == words.len().div_ceil(64), "a word for 64 answers");
    let (whole, rest) = words.as_chunks::<GROUP>();
    let last = rest.last().map(|&last| std::array::from_fn(|at| *rest.get(at).unwrap_or(&last)));
    let mut ahead = whole.iter().chain(&last);
    // Hashes rest as long as groups do, made but not prepared: what was written word by word is
    // slow to be read as a vector as long as the writing is on its way.
    let mut made: [[u64; GROUP]; AHEAD] = Default::default();
    let mut way: [G; AHEAD] = Default::default();
    for (place, group) in way.iter_mut().zip(ahead.by_ref()) {
        hashes.make(group, &mut made[0]);
        prepare(&lines, &made[0], place);
    }
    for (made, group) in made.iter_mut().zip(ahead.by_ref()) {
        hashes.make(group, made);
    }
    let groups = words.len().div_ceil(GROUP);
    let mut seen: [S; 8] = Default::default();
    for (answer, first) in answers.iter_mut().zip((0..groups).step_by(8)) {
        for (at, seen) in seen.iter_mut().enumerate().take(groups - first) {
            let (place, made) = (&mut way[at % AHEAD], &mut made[at % AHEAD]);
            look(&mut lines, place, seen);
            if first + at + AHEAD < groups {
                prepare(&lines, made, place);
                if let Some(group) = ahead.next() {
                    hashes.make(group, made);
                }
            }
        }
        *answer = close(&seen);
    }
    let over = words.len() % 64;
    if let (Some(answer), 1..) = (answers.last_mut(), over) {
        *answer &= !(!0 << over);
    }
}

/// A group on the way, of the kernels that compute with one hash at a time.
#[derive(Clone, Copy, Default)]
pub(super) struct Places {
    /// The first line of each hash's block.
    pub(super) at: [usize; GROUP],
    pub(super) hashes: [u64; GROUP],
}

/// The answers to a group's keys, looked at one by one.
#[inline(always)]
pub(super) fn each<T>(keys: impl IntoIterator<Item = T>, mut look: impl FnMut(T) -> bool) -> u8 {
    // In from above: put where it belongs, an answer becomes a branch on it, which nothing can
    // foresee where present and absent keys come mixed.
    keys.into_iter().fold(0, |answers, key| answers >> 1 | u8::from(look(key)) << 7)
}

/// The answers to eight groups.
#[inline(always)]
pub(super) fn join(answers: &[u8; 8]) -> u64 {
    u64::from_le_bytes(*answers)
}
