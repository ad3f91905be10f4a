//! A simple implementation of docs/reference/format.md that shares no code with the library.
//!
//! It detects changes of the library's bit positions, header or hashes. It changes only together with
//! docs/reference/format.md and a new format version.
#![allow(dead_code, reason = "each test program uses its part")]

pub(crate) mod hash;

use xxhash_rust::xxh3::xxh3_64;

/// A filter as docs/reference/format.md defines it: numbers, and bytes of data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Naive {
    pub(crate) kind: u16,
    pub(crate) lanes: u64,
    pub(crate) probes: u64,
    /// Blocks, or bits.
    pub(crate) extent: u64,
    pub(crate) data: Vec<u8>,
}

impl Naive {
    pub(crate) fn blocked(blocks: u64, lanes: u64, probes: u64) -> Self {
        let data = vec![0; (blocks * lanes * 8) as usize];
        Self { kind: 1, lanes, probes, extent: blocks, data }
    }

    pub(crate) fn classic(bits: u64, probes: u64) -> Self {
        let data = vec![0; (bits.div_ceil(512) * 64) as usize];
        Self { kind: 2, lanes: 0, probes, extent: bits, data }
    }

    /// Returns the numbers of the bits that a hash sets.
    pub(crate) fn positions(&self, hash: u64) -> Vec<u64> {
        if self.kind == 1 { self.blocked_positions(hash) } else { self.classic_positions(hash) }
    }

    fn blocked_positions(&self, hash: u64) -> Vec<u64> {
        let block = part(hash, self.extent);
        let low = times(hash, 0x9e37_79b9_7f4a_7c15);
        let high = times(hash, 0x9fb2_1c65_1e98_df25);
        let start = low / 4096 % self.lanes;
        (0..self.probes)
            .map(|probe| {
                let lane = (start + probe) % self.lanes;
                let fields = if lane < 8 { low } else { high };
                let bit = fields / 2u64.pow(16 + 6 * (lane % 8) as u32) % 64;
                (block * self.lanes + lane) * 64 + bit
            })
            .collect()
    }

    fn classic_positions(&self, hash: u64) -> Vec<u64> {
        let mut x = hash;
        let mut positions = Vec::new();
        for _ in 0..self.probes {
            positions.push(part(x, self.extent));
            x = times(x, 0xf135_7aea_2e62_a9c5);
        }
        positions
    }

    /// Sets the bits of a hash. Returns whether one of them was clear.
    pub(crate) fn insert(&mut self, hash: u64) -> bool {
        let new = !self.contains(hash);
        for position in self.positions(hash) {
            self.data[(position / 8) as usize] |= 1 << (position % 8);
        }
        new
    }

    pub(crate) fn contains(&self, hash: u64) -> bool {
        let set = |position: u64| self.data[(position / 8) as usize] >> (position % 8) & 1 == 1;
        self.positions(hash).into_iter().all(set)
    }
}

/// The contents of a file other than the bits.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HeaderFields {
    pub(crate) hash: u16,
    pub(crate) seed: [u8; 16],
    pub(crate) planned: u64,
    pub(crate) target: f64,
    pub(crate) inserted: u64,
    pub(crate) metadata: String,
}

impl HeaderFields {
    /// Those of a filter made from bits and probes, with rapidhash and seed 0.
    pub(crate) fn none() -> Self {
        let metadata = String::new();
        Self { hash: 1, seed: [0; 16], planned: 0, target: 0.0, inserted: 0, metadata }
    }
}

impl Naive {
    /// The whole file, field by field as in the table of docs/reference/format.md.
    pub(crate) fn to_file(&self, fields: &HeaderFields) -> Vec<u8> {
        let metadata = fields.metadata.as_bytes();
        let data_at = (256 + metadata.len()).div_ceil(4096) * 4096;
        let mut file = Vec::new();
        file.extend(b"\x89PETAL\r\n");
        file.extend(1u16.to_le_bytes());
        file.extend(self.kind.to_le_bytes());
        file.extend([0; 4]);
        file.extend((data_at as u64).to_le_bytes());
        file.extend((self.data.len() as u64).to_le_bytes());
        file.extend((metadata.len() as u32).to_le_bytes());
        file.extend(fields.hash.to_le_bytes());
        file.extend((self.probes as u16).to_le_bytes());
        file.extend((self.lanes as u16).to_le_bytes());
        file.extend([0; 6]);
        file.extend(fields.seed);
        file.extend(self.extent.to_le_bytes());
        file.extend(fields.planned.to_le_bytes());
        file.extend(fields.target.to_bits().to_le_bytes());
        file.extend(fields.inserted.to_le_bytes());
        file.resize(256, 0);
        file.extend(metadata);
        file.resize(data_at, 0);
        file.extend(&self.data);
        update_checksums(&mut file);
        file
    }

    /// Reads what [`Naive::to_file`] writes. Checks nothing.
    pub(crate) fn from_file(file: &[u8]) -> (Self, HeaderFields) {
        let short = |at: usize| u16::from_le_bytes([file[at], file[at + 1]]);
        let long = |at: usize| {
            (0..8).rev().fold(0, |number, byte| number << 8 | u64::from(file[at + byte]))
        };
        let (data_at, length) = (long(16) as usize, long(32) as u32 as usize);
        let naive = Self {
            kind: short(10),
            lanes: short(40).into(),
            probes: short(38).into(),
            extent: long(64),
            data: file[data_at..].to_vec(),
        };
        let fields = HeaderFields {
            hash: short(36),
            seed: std::array::from_fn(|at| file[48 + at]),
            planned: long(72),
            target: f64::from_bits(long(80)),
            inserted: long(88),
            metadata: String::from_utf8_lossy(&file[256..256 + length]).into_owned(),
        };
        (naive, fields)
    }
}

/// Updates both checksums of a file, with the offsets and lengths in its fields. Missing metadata or
/// data is ignored.
pub(crate) fn update_checksums(file: &mut [u8]) {
    let part = |at: usize, end: usize| at.min(file.len())..end.min(file.len());
    let long = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| file[at + byte]));
    let data = xxh3_64(&file[part(long(16).min(1 << 60) as usize, usize::MAX)]);
    let metadata = file[part(256, 256 + long(32) as u32 as usize)].to_vec();
    file[240..248].copy_from_slice(&data.to_le_bytes());
    let header = xxh3_64(&[&file[..248], &metadata].concat());
    file[248..256].copy_from_slice(&header.to_le_bytes());
}

/// floor(hash * range / 2^64).
pub(crate) fn part(hash: u64, range: u64) -> u64 {
    (u128::from(hash) * u128::from(range) / (1 << 64)) as u64
}

/// The product modulo 2^64.
pub(crate) fn times(a: u64, b: u64) -> u64 {
    (u128::from(a) * u128::from(b) % (1 << 64)) as u64
}
