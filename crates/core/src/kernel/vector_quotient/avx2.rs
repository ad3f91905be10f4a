//! The planes of a block with AVX2: a vector compares or changes several planes at once.
//!
//! Tags are compared with the slots of one or two blocks in lanes of 16 bytes, each with as many whole
//! planes as fit. Tags are moved in two vectors of 32 bytes, which overlap and together have all
//! planes. In those a plane may begin anywhere, so all planes are shifted as one row of bits, and
//! masks keep the bits that must not move.

use core::arch::x86_64::*;

use super::batch::TableInstructions;
use super::block::BlockOps;
use super::header::{BLOCK, Header, with_bit_inserted, with_bit_removed};
use super::planes::{Planes, slot_mask};
use super::shape::{PairParams, Place};
use crate::kernel::avx2::Avx2;
use crate::store::CacheLine;

/// Bytes of a vector.
const VECTOR: usize = 32;
/// Bytes of a lane, half a vector.
const LANE: usize = 16;
/// Lanes with all planes, at most.
const MAX_LANES: usize = 4;
/// Whole planes of a lane, at most.
const MAX_PLANES: usize = 5;
/// The index of a byte that a shuffle sets to 0.
const ZERO: u8 = 0x80;

/// For each byte of a part of the planes, the bit of the tag that its slots have.
#[derive(Clone, Copy)]
struct TagBits<const N: usize> {
    /// The byte of the tag.
    byte: [u8; N],
    /// The bit in this byte; 0 after the end of the part.
    bit: [u8; N],
}

impl<const N: usize> TagBits<N> {
    /// A part of `len` bytes that begins with byte `start` of planes of `plane` bytes.
    const fn new(start: usize, len: usize, plane: usize) -> Self {
        let mut bits = Self { byte: [0; N], bit: [0; N] };
        let mut at = 0;
        while at < len {
            let number = (start + at) / plane;
            bits.byte[at] = (number / 8) as u8;
            bits.bit[at] = 1 << (number % 8);
            at += 1;
        }
        bits
    }
}

/// The constants for `TAG_BITS` planes of `BYTES` bytes.
struct Layout<const TAG_BITS: usize, const BYTES: usize>;

impl<const TAG_BITS: usize, const BYTES: usize> Layout<TAG_BITS, BYTES> {
    /// Whole planes of a lane.
    const LANE_PLANES: usize = LANE / BYTES;
    /// Lanes with all planes. The last one ends with the last plane, and may share planes with the one
    /// before.
    const LANES: usize = TAG_BITS.div_ceil(Self::LANE_PLANES);

    /// Returns the offset of a lane.
    const fn lane_at(lane: usize) -> usize {
        let first = lane * Self::LANE_PLANES;
        let last = TAG_BITS - Self::LANE_PLANES;
        BYTES * if first < last { first } else { last }
    }

    const LANE_TAGS: [TagBits<LANE>; MAX_LANES] = {
        let mut tags = [TagBits::new(0, 0, BYTES); MAX_LANES];
        let mut lane = 0;
        while lane < Self::LANES {
            tags[lane] = TagBits::new(Self::lane_at(lane), Self::LANE_PLANES * BYTES, BYTES);
            lane += 1;
        }
        tags
    };

    /// Shuffles that move each plane of a lane to its beginning.
    const TO_FIRST: [[u8; LANE]; MAX_PLANES] = {
        let mut shuffles = [[ZERO; LANE]; MAX_PLANES];
        let mut plane = 0;
        while plane < Self::LANE_PLANES {
            let mut byte = 0;
            while byte < BYTES {
                shuffles[plane][byte] = (plane * BYTES + byte) as u8;
                byte += 1;
            }
            plane += 1;
        }
        shuffles
    };

    /// The offsets of the vectors with all planes.
    const VECTORS_AT: [usize; 2] = [0, TAG_BITS * BYTES - VECTOR];

    const VECTOR_TAGS: [TagBits<VECTOR>; 2] = [
        TagBits::new(Self::VECTORS_AT[0], VECTOR, BYTES),
        TagBits::new(Self::VECTORS_AT[1], VECTOR, BYTES),
    ];

    /// Shuffles that repeat a plane.
    const REPEAT: [[u8; VECTOR]; 2] =
        [Self::repeat(Self::VECTORS_AT[0]), Self::repeat(Self::VECTORS_AT[1])];

    const fn repeat(start: usize) -> [u8; VECTOR] {
        let mut shuffle = [0; VECTOR];
        let mut at = 0;
        while at < VECTOR {
            shuffle[at] = ((start + at) % BYTES) as u8;
            at += 1;
        }
        shuffle
    }

    /// All bits but that of the last slot of each plane.
    const NOT_LAST: [[u8; VECTOR]; 2] =
        [Self::not_last(Self::VECTORS_AT[0]), Self::not_last(Self::VECTORS_AT[1])];

    const fn not_last(start: usize) -> [u8; VECTOR] {
        let mut mask = [0xff; VECTOR];
        let mut at = 0;
        while at < VECTOR {
            if (start + at) % BYTES == BYTES - 1 {
                mask[at] = 0x7f;
            }
            at += 1;
        }
        mask
    }

    /// Returns a vector of planes that are all equal to `plane`.
    #[inline(always)]
    fn planes(_: Avx2, vector: usize, plane: u64) -> __m256i {
        // SAFETY: an `Avx2` is proof that the machine has AVX2.
        unsafe {
            let plane = _mm256_set1_epi64x(plane.cast_signed());
            _mm256_shuffle_epi8(plane, of_bytes(Self::REPEAT[vector]))
        }
    }
}

#[inline(always)]
fn of_bytes(bytes: [u8; VECTOR]) -> __m256i {
    // SAFETY: any 32 bytes are a vector.
    unsafe { core::mem::transmute::<[u8; VECTOR], __m256i>(bytes) }
}

#[inline(always)]
fn of_lane(bytes: [u8; LANE]) -> __m128i {
    // SAFETY: any 16 bytes are a vector.
    unsafe { core::mem::transmute::<[u8; LANE], __m128i>(bytes) }
}

/// Returns a vector with the same bytes in both lanes.
#[inline(always)]
fn twice(bytes: [u8; LANE]) -> __m256i {
    // SAFETY: any 32 bytes are a vector.
    unsafe { core::mem::transmute::<[[u8; LANE]; 2], __m256i>([bytes; 2]) }
}

/// Returns part of a block.
#[inline(always)]
fn part<const N: usize>(block: &[u8; BLOCK], at: usize) -> [u8; N] {
    let part = block.get(at..).and_then(|rest| rest.first_chunk());
    part.copied().unwrap_or([0; N])
}

/// Stores the vectors with all planes. They overlap, so both are computed before.
#[inline(always)]
fn store<const TAG_BITS: usize, const BYTES: usize>(
    block: &mut [u8; BLOCK],
    vectors: [__m256i; 2],
) {
    for (vector, at) in vectors.into_iter().zip(Layout::<TAG_BITS, BYTES>::VECTORS_AT) {
        // SAFETY: a vector is 32 bytes.
        let bytes = unsafe { core::mem::transmute::<__m256i, [u8; VECTOR]>(vector) };
        block[at..at + VECTOR].copy_from_slice(&bytes);
    }
}

/// Returns ones in each byte whose bit of the tag is set, zeros in the others.
#[inline(always)]
fn expected<const TAG_BITS: usize>(_: Avx2, tags: __m256i, byte: __m256i, bit: __m256i) -> __m256i {
    // SAFETY: an `Avx2` is proof that the machine has AVX2.
    unsafe {
        let tags = if TAG_BITS > 8 { _mm256_shuffle_epi8(tags, byte) } else { tags };
        _mm256_cmpeq_epi8(_mm256_and_si256(tags, bit), bit)
    }
}

/// Returns a tag for [`expected`]: of up to eight bits in each byte, a longer one in each four bytes.
#[inline(always)]
fn tag_vector<const TAG_BITS: usize>(_: Avx2, tag: u32) -> __m256i {
    // SAFETY: an `Avx2` is proof that the machine has AVX2.
    unsafe {
        if TAG_BITS > 8 {
            _mm256_set1_epi32(tag.cast_signed())
        } else {
            _mm256_set1_epi8((tag as u8).cast_signed())
        }
    }
}

impl Planes for Avx2 {
    #[inline(always)]
    fn equal_tags<const TAG_BITS: usize, const BYTES: usize>(
        self,
        block: &[u8; BLOCK],
        tag: u32,
    ) -> u64 {
        type L<const TAG_BITS: usize, const BYTES: usize> = Layout<TAG_BITS, BYTES>;
        // SAFETY: an `Avx2` is proof that the machine has AVX2.
        unsafe {
            let tags = _mm256_castsi256_si128(tag_vector::<TAG_BITS>(self, tag));
            let mut different = _mm_setzero_si128();
            for lane in 0..L::<TAG_BITS, BYTES>::LANES {
                let TagBits { byte, bit } = L::<TAG_BITS, BYTES>::LANE_TAGS[lane];
                let bit = of_lane(bit);
                let tags = if TAG_BITS > 8 { _mm_shuffle_epi8(tags, of_lane(byte)) } else { tags };
                let expected = _mm_cmpeq_epi8(_mm_and_si128(tags, bit), bit);
                let found = of_lane(part(block, L::<TAG_BITS, BYTES>::lane_at(lane)));
                different = _mm_or_si128(different, _mm_xor_si128(found, expected));
            }
            let mut folded = different;
            for plane in 1..L::<TAG_BITS, BYTES>::LANE_PLANES {
                let shuffle = of_lane(L::<TAG_BITS, BYTES>::TO_FIRST[plane]);
                folded = _mm_or_si128(folded, _mm_shuffle_epi8(different, shuffle));
            }
            !_mm_cvtsi128_si64(folded).cast_unsigned() & slot_mask(BYTES)
        }
    }

    #[inline(always)]
    fn equal_in_both<const TAG_BITS: usize, const BYTES: usize>(
        self,
        blocks: [&[u8; BLOCK]; 2],
        tag: u32,
    ) -> [u64; 2] {
        type L<const TAG_BITS: usize, const BYTES: usize> = Layout<TAG_BITS, BYTES>;
        let tags = tag_vector::<TAG_BITS>(self, tag);
        // SAFETY: an `Avx2` is proof that the machine has AVX2; 32 bytes are a vector.
        unsafe {
            let mut different = _mm256_setzero_si256();
            for lane in 0..L::<TAG_BITS, BYTES>::LANES {
                let TagBits { byte, bit } = L::<TAG_BITS, BYTES>::LANE_TAGS[lane];
                let (byte, bit) = (twice(byte), twice(bit));
                let expected = expected::<TAG_BITS>(self, tags, byte, bit);
                let at = L::<TAG_BITS, BYTES>::lane_at(lane);
                let lanes = blocks.map(|block| part::<LANE>(block, at));
                let found = core::mem::transmute::<[[u8; LANE]; 2], __m256i>(lanes);
                different = _mm256_or_si256(different, _mm256_xor_si256(found, expected));
            }
            let mut folded = different;
            for plane in 1..L::<TAG_BITS, BYTES>::LANE_PLANES {
                let shuffle = twice(L::<TAG_BITS, BYTES>::TO_FIRST[plane]);
                folded = _mm256_or_si256(folded, _mm256_shuffle_epi8(different, shuffle));
            }
            let slots = _mm256_set1_epi64x(slot_mask(BYTES).cast_signed());
            let equal = _mm256_andnot_si256(folded, slots);
            let first = _mm_cvtsi128_si64(_mm256_castsi256_si128(equal));
            [first.cast_unsigned(), _mm256_extract_epi64::<2>(equal).cast_unsigned()]
        }
    }

    #[inline(always)]
    fn put<const TAG_BITS: usize, const BYTES: usize>(
        self,
        block: &mut [u8; BLOCK],
        slot: u32,
        tag: u32,
        position: u32,
    ) {
        type L<const TAG_BITS: usize, const BYTES: usize> = Layout<TAG_BITS, BYTES>;
        let header = with_bit_inserted(Header::<TAG_BITS, BYTES>::of(block), position);
        let bit = 1u64 << (slot & 63);
        let tags = tag_vector::<TAG_BITS>(self, tag);
        let mut new = [tags; 2];
        for (vector, new) in new.iter_mut().enumerate() {
            let at = L::<TAG_BITS, BYTES>::VECTORS_AT[vector];
            let planes = of_bytes(part(block, at));
            let TagBits { byte, bit: bits } = L::<TAG_BITS, BYTES>::VECTOR_TAGS[vector];
            let set = expected::<TAG_BITS>(self, tags, of_bytes(byte), of_bytes(bits));
            let slot = L::<TAG_BITS, BYTES>::planes(self, vector, bit);
            let below = L::<TAG_BITS, BYTES>::planes(self, vector, bit - 1);
            // SAFETY: as above.
            *new = unsafe {
                // The words before those of the vector, whose last bits move into it. Before the first
                // word is none, but its slot 0 has no tag from before.
                let before = if at == 0 {
                    _mm256_permute4x64_epi64::<0b10_01_00_00>(planes)
                } else {
                    of_bytes(part(block, at - 8))
                };
                let moved = _mm256_or_si256(
                    _mm256_slli_epi64::<1>(planes),
                    _mm256_srli_epi64::<63>(before),
                );
                let kept = _mm256_and_si256(planes, below);
                let moved = _mm256_andnot_si256(_mm256_or_si256(below, slot), moved);
                _mm256_or_si256(_mm256_or_si256(kept, moved), _mm256_and_si256(set, slot))
            };
        }
        store::<TAG_BITS, BYTES>(block, new);
        Header::<TAG_BITS, BYTES>::set(block, header);
    }

    #[inline(always)]
    fn take<const TAG_BITS: usize, const BYTES: usize>(
        self,
        block: &mut [u8; BLOCK],
        slot: u32,
        position: u32,
    ) {
        type L<const TAG_BITS: usize, const BYTES: usize> = Layout<TAG_BITS, BYTES>;
        let header = with_bit_removed(self, Header::<TAG_BITS, BYTES>::of(block), position);
        // SAFETY: an `Avx2` is proof that the machine has AVX2.
        let mut new = [unsafe { _mm256_setzero_si256() }; 2];
        for (vector, new) in new.iter_mut().enumerate() {
            let at = L::<TAG_BITS, BYTES>::VECTORS_AT[vector];
            let planes = of_bytes(part(block, at));
            let after = of_bytes(part(block, at + 8));
            let not_last = of_bytes(L::<TAG_BITS, BYTES>::NOT_LAST[vector]);
            let below = L::<TAG_BITS, BYTES>::planes(self, vector, (1 << (slot & 63)) - 1);
            // SAFETY: as above.
            *new = unsafe {
                let moved =
                    _mm256_or_si256(_mm256_srli_epi64::<1>(planes), _mm256_slli_epi64::<63>(after));
                let moved = _mm256_andnot_si256(below, _mm256_and_si256(moved, not_last));
                _mm256_or_si256(_mm256_and_si256(planes, below), moved)
            };
        }
        store::<TAG_BITS, BYTES>(block, new);
        Header::<TAG_BITS, BYTES>::set(block, header);
    }
}

impl TableInstructions for Avx2 {
    #[inline(always)]
    fn insert_by_moving<const TAG_BITS: usize, const BYTES: usize>(
        self,
        params: &PairParams,
        blocks: &mut [CacheLine],
        place: Place,
    ) -> bool {
        // SAFETY: an `Avx2` is proof that the machine has the instructions.
        unsafe { insert_by_moving::<TAG_BITS, BYTES>(self, params, blocks, place) }
    }
}

#[cold]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn insert_by_moving<const TAG_BITS: usize, const BYTES: usize>(
    select: Avx2,
    params: &PairParams,
    blocks: &mut [CacheLine],
    place: Place,
) -> bool {
    BlockOps::<TAG_BITS, BYTES>::insert_by_moving(select, params, blocks, place)
}
