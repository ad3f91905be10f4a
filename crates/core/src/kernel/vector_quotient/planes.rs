//! The planes of a block: comparing a tag with all slots, and moving the tags after a slot.

use super::block::BLOCK;
use crate::kernel::select::{Portable, Select};

/// Operations on the planes of a block with `TAG_BITS` planes of `BYTES` bytes. Slots are less than
/// the number of slots.
///
/// Those that change planes may also change the bytes after them: the header is written later.
pub(super) trait Planes: Select {
    /// Returns the slots whose tag is `tag`, one bit each, in any bucket and in free slots.
    fn equal_tags<const TAG_BITS: usize, const BYTES: usize>(
        self,
        block: &[u8; BLOCK],
        tag: u32,
    ) -> u64;

    /// Moves the tags from `slot` on to the next slot, and puts `tag` there. The last slot is free.
    fn put_tag<const TAG_BITS: usize, const BYTES: usize>(
        self,
        block: &mut [u8; BLOCK],
        slot: u32,
        tag: u32,
    );

    /// Moves the tags after `slot` to the slot before.
    fn take_tag<const TAG_BITS: usize, const BYTES: usize>(
        self,
        block: &mut [u8; BLOCK],
        slot: u32,
    );
}

/// Returns a plane; 0 after the last one.
#[inline(always)]
pub(super) fn plane<const BYTES: usize>(block: &[u8; BLOCK], at: usize) -> u64 {
    let bytes = block[at * BYTES..].first_chunk::<8>().copied().unwrap_or_default();
    u64::from_le_bytes(bytes) & slot_mask(BYTES)
}

/// The bits of the slots in a plane.
const fn slot_mask(bytes: usize) -> u64 {
    u64::MAX >> (64 - 8 * bytes)
}

/// Replaces all planes by `change(number, plane)`.
#[inline(always)]
fn change_planes<const TAG_BITS: usize, const BYTES: usize>(
    block: &mut [u8; BLOCK],
    change: impl Fn(usize, u64) -> u64,
) {
    // All are read before the first is written: a plane is written with the zeros after it, which the
    // next planes replace.
    let planes: [u64; TAG_BITS] = core::array::from_fn(|at| change(at, plane::<BYTES>(block, at)));
    for (at, plane) in planes.iter().enumerate() {
        let begin = at * BYTES;
        let len = (TAG_BITS * BYTES - begin).min(8);
        block[begin..begin + len].copy_from_slice(&plane.to_le_bytes()[..len]);
    }
}

impl Planes for Portable {
    #[inline(always)]
    fn equal_tags<const TAG_BITS: usize, const BYTES: usize>(
        self,
        block: &[u8; BLOCK],
        tag: u32,
    ) -> u64 {
        let mut different = 0;
        for at in 0..TAG_BITS {
            let expected = 0u64.wrapping_sub(u64::from(tag >> at & 1));
            different |= plane::<BYTES>(block, at) ^ expected;
        }
        !different & slot_mask(BYTES)
    }

    #[inline(always)]
    fn put_tag<const TAG_BITS: usize, const BYTES: usize>(
        self,
        block: &mut [u8; BLOCK],
        slot: u32,
        tag: u32,
    ) {
        let slot = slot & 63;
        change_planes::<TAG_BITS, BYTES>(block, |at, plane| {
            let bit = u64::from(tag >> at & 1) << slot;
            // Adding the part from a bit on to a word shifts that part.
            plane.wrapping_add(plane & u64::MAX << slot) | bit
        });
    }

    #[inline(always)]
    fn take_tag<const TAG_BITS: usize, const BYTES: usize>(
        self,
        block: &mut [u8; BLOCK],
        slot: u32,
    ) {
        let below = (1 << (slot & 63)) - 1;
        change_planes::<TAG_BITS, BYTES>(block, |_, plane| plane & below | plane >> 1 & !below);
    }
}

/// A vector compares or changes several planes at once.
#[cfg(target_arch = "x86_64")]
mod vector {
    use core::arch::x86_64::*;

    use super::{BLOCK, Planes, slot_mask};
    use crate::kernel::select::Avx2Bmi2;

    /// Bytes of a vector.
    const VECTOR: usize = 16;
    /// Vectors of the planes of a block, at most.
    const MAX_VECTORS: usize = 5;

    /// The dimensions of vectors of adjacent planes, which together have all planes. The last one ends
    /// with the last plane, and may share planes with the one before.
    struct Vectors<const TAG_BITS: usize, const BYTES: usize>;

    impl<const TAG_BITS: usize, const BYTES: usize> Vectors<TAG_BITS, BYTES> {
        /// Planes of a vector.
        const PLANES: usize = VECTOR / BYTES;
        const COUNT: usize = TAG_BITS.div_ceil(Self::PLANES);

        /// Bytes of a plane in a vector of lanes.
        const LANE: usize = if BYTES > 4 { 8 } else { 4 };
        /// Planes of a vector of lanes.
        const LANES: usize = VECTOR / Self::LANE;
        const LANE_VECTORS: usize = TAG_BITS.div_ceil(Self::LANES);

        /// Moves planes to their lanes, with zeros after them.
        const SPREAD: [u8; VECTOR] = Self::shuffle(BYTES, Self::LANE);
        /// Moves planes from their lanes to adjacent bytes, with zeros after them.
        const PACK: [u8; VECTOR] = Self::shuffle(Self::LANE, BYTES);

        /// Returns the first plane of a vector with `planes` planes.
        const fn first(vector: usize, planes: usize) -> usize {
            let first = vector * planes;
            if first + planes > TAG_BITS { TAG_BITS - planes } else { first }
        }

        /// Returns the indices for `_mm_shuffle_epi8` that move planes from every `from` bytes to
        /// every `to` bytes.
        const fn shuffle(from: usize, to: usize) -> [u8; VECTOR] {
            let mut indices = [0x80; VECTOR];
            let mut at = 0;
            while at < VECTOR {
                let (plane, byte) = (at / to, at % to);
                if plane < Self::LANES && byte < BYTES {
                    indices[at] = (plane * from + byte) as u8;
                }
                at += 1;
            }
            indices
        }

        /// Returns the number of low bits of a tag that a vector is not compared with. Its planes have
        /// some of the next eight.
        const fn tag_shift(first: usize) -> usize {
            match first + Self::PLANES {
                0..=8 => 0,
                _ if TAG_BITS <= 13 => TAG_BITS - 8,
                9..=13 => 5,
                _ => 10,
            }
        }

        /// For each byte of a vector of planes, the bit of the shifted tag.
        const BYTE_BITS: [[u8; VECTOR]; MAX_VECTORS] = {
            let mut bits = [[0; VECTOR]; MAX_VECTORS];
            let mut vector = 0;
            while vector < Self::COUNT {
                let first = Self::first(vector, Self::PLANES);
                let mut at = 0;
                while at < Self::PLANES * BYTES {
                    bits[vector][at] = 1 << (first + at / BYTES - Self::tag_shift(first));
                    at += 1;
                }
                vector += 1;
            }
            bits
        };

        /// For each lane of a vector of lanes, the bit of the tag.
        const LANE_BITS: [[u8; VECTOR]; MAX_VECTORS] = {
            let mut bits = [[0; VECTOR]; MAX_VECTORS];
            let mut vector = 0;
            while vector < Self::LANE_VECTORS {
                let mut lane = 0;
                while lane < Self::LANES {
                    let plane = Self::first(vector, Self::LANES) + lane;
                    bits[vector][lane * Self::LANE + plane / 8] = 1 << (plane % 8);
                    lane += 1;
                }
                vector += 1;
            }
            bits
        };

        /// Replaces all planes by `change(vector, lanes)`.
        #[inline(always)]
        fn change(
            has: Avx2Bmi2,
            block: &mut [u8; BLOCK],
            change: impl Fn(usize, __m128i) -> __m128i,
        ) {
            let old = *block;
            for vector in 0..Self::LANE_VECTORS {
                let begin = Self::first(vector, Self::LANES) * BYTES;
                let mut lanes = load(&old, begin);
                if BYTES < Self::LANE {
                    lanes = shuffle(has, lanes, Self::SPREAD);
                }
                lanes = change(vector, lanes);
                if BYTES < Self::LANE {
                    lanes = shuffle(has, lanes, Self::PACK);
                }
                store(block, begin, lanes);
            }
        }

        /// Returns a vector with a word in each lane.
        #[inline(always)]
        fn each_lane(_: Avx2Bmi2, word: u64) -> __m128i {
            // SAFETY: a `Avx2Bmi2` is proof that the machine has AVX2.
            unsafe {
                match Self::LANE {
                    8 => _mm_set1_epi64x(word.cast_signed()),
                    _ => _mm_set1_epi32((word as u32).cast_signed()),
                }
            }
        }

        /// Shifts the bits of each lane that `mask` has, which are its upper ones, up by one, and sets
        /// the bits of `set`.
        #[inline(always)]
        fn shift_up(_: Avx2Bmi2, vector: __m128i, mask: __m128i, set: __m128i) -> __m128i {
            // SAFETY: as above.
            unsafe {
                // Adding the part from a bit on to a word shifts that part.
                let upper = _mm_and_si128(vector, mask);
                let moved = match Self::LANE {
                    8 => _mm_add_epi64(vector, upper),
                    _ => _mm_add_epi32(vector, upper),
                };
                _mm_or_si128(moved, set)
            }
        }

        /// Returns `bit` in the lanes in which `tags` has the bit in `bits`.
        #[inline(always)]
        fn bit_if(_: Avx2Bmi2, tags: __m128i, bits: __m128i, bit: __m128i) -> __m128i {
            // SAFETY: as above.
            unsafe {
                let tags = _mm_and_si128(tags, bits);
                let set = match Self::LANE {
                    8 => _mm_cmpeq_epi64(tags, bits),
                    _ => _mm_cmpeq_epi32(tags, bits),
                };
                _mm_and_si128(set, bit)
            }
        }

        /// Shifts the bits of each lane down by one, except those that `below` has.
        #[inline(always)]
        fn shift_down(_: Avx2Bmi2, vector: __m128i, below: __m128i) -> __m128i {
            // SAFETY: as above.
            unsafe {
                let moved = match Self::LANE {
                    8 => _mm_srli_epi64::<1>(vector),
                    _ => _mm_srli_epi32::<1>(vector),
                };
                _mm_or_si128(_mm_and_si128(vector, below), _mm_andnot_si128(below, moved))
            }
        }
    }

    #[inline(always)]
    fn shuffle(_: Avx2Bmi2, vector: __m128i, indices: [u8; VECTOR]) -> __m128i {
        // SAFETY: a `Avx2Bmi2` is proof that the machine has AVX2, and so SSSE3.
        unsafe { _mm_shuffle_epi8(vector, of_bytes(indices)) }
    }

    #[inline(always)]
    fn of_bytes(bytes: [u8; VECTOR]) -> __m128i {
        // SAFETY: any 16 bytes are a vector.
        unsafe { core::mem::transmute::<[u8; VECTOR], __m128i>(bytes) }
    }

    #[inline(always)]
    fn load(block: &[u8; BLOCK], at: usize) -> __m128i {
        of_bytes(block[at..].first_chunk().copied().unwrap_or_default())
    }

    #[inline(always)]
    fn store(block: &mut [u8; BLOCK], at: usize, vector: __m128i) {
        // SAFETY: a vector is 16 bytes.
        let bytes = unsafe { core::mem::transmute::<__m128i, [u8; VECTOR]>(vector) };
        block[at..at + VECTOR].copy_from_slice(&bytes);
    }

    /// Compares the bytes of a block from `at` on with a tag, and returns the bits that differ. All bits
    /// of a byte are expected to equal one bit of the tag: that in `bits`.
    #[inline(always)]
    fn differences(
        _: Avx2Bmi2,
        block: &[u8; BLOCK],
        at: usize,
        tag: u8,
        bits: [u8; VECTOR],
    ) -> u128 {
        let (found, bits) = (load(block, at), of_bytes(bits));
        // SAFETY: a `Avx2Bmi2` is proof that the machine has AVX2; a vector is 16 bytes.
        unsafe {
            let tags = _mm_set1_epi8(tag.cast_signed());
            let expected = _mm_cmpeq_epi8(_mm_and_si128(tags, bits), bits);
            core::mem::transmute::<__m128i, u128>(_mm_xor_si128(found, expected))
        }
    }

    impl Planes for Avx2Bmi2 {
        #[inline(always)]
        fn equal_tags<const TAG_BITS: usize, const BYTES: usize>(
            self,
            block: &[u8; BLOCK],
            tag: u32,
        ) -> u64 {
            let mut different = 0;
            for vector in 0..Vectors::<TAG_BITS, BYTES>::COUNT {
                let first =
                    Vectors::<TAG_BITS, BYTES>::first(vector, Vectors::<TAG_BITS, BYTES>::PLANES);
                let tag = (tag >> Vectors::<TAG_BITS, BYTES>::tag_shift(first)) as u8;
                let bits = Vectors::<TAG_BITS, BYTES>::BYTE_BITS[vector];
                different |= differences(self, block, first * BYTES, tag, bits);
            }
            let folded = (0..Vectors::<TAG_BITS, BYTES>::PLANES)
                .fold(0, |all, at| all | (different >> (8 * BYTES * at)) as u64);
            !folded & slot_mask(BYTES)
        }

        #[inline(always)]
        fn put_tag<const TAG_BITS: usize, const BYTES: usize>(
            self,
            block: &mut [u8; BLOCK],
            slot: u32,
            tag: u32,
        ) {
            let bit = Vectors::<TAG_BITS, BYTES>::each_lane(self, 1 << (slot & 63));
            let from = Vectors::<TAG_BITS, BYTES>::each_lane(self, u64::MAX << (slot & 63));
            let tags = Vectors::<TAG_BITS, BYTES>::each_lane(self, tag.into());
            Vectors::<TAG_BITS, BYTES>::change(self, block, |vector, planes| {
                let bits = of_bytes(Vectors::<TAG_BITS, BYTES>::LANE_BITS[vector]);
                let set = Vectors::<TAG_BITS, BYTES>::bit_if(self, tags, bits, bit);
                Vectors::<TAG_BITS, BYTES>::shift_up(self, planes, from, set)
            });
        }

        #[inline(always)]
        fn take_tag<const TAG_BITS: usize, const BYTES: usize>(
            self,
            block: &mut [u8; BLOCK],
            slot: u32,
        ) {
            let below = Vectors::<TAG_BITS, BYTES>::each_lane(self, (1 << (slot & 63)) - 1);
            Vectors::<TAG_BITS, BYTES>::change(self, block, |_, planes| {
                Vectors::<TAG_BITS, BYTES>::shift_down(self, planes, below)
            });
        }
    }
}
