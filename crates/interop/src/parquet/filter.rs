//! stand-in
use crate::error::{Error, Result};
use crate::thrift::{Kind, Reader};
pub(crate) struct Header {
    pub(crate) length: usize,
    pub(crate) bytes: u64,
}
impl Header {
    pub(crate) fn parse(b: &[u8]) -> Result<Self> {
        let (mut r, mut last) = (Reader::new(b), 0);
        let mut bytes = None;
        while let Some(f) = r.field(&mut last)? {
            match (f.id, f.kind) {
                (1, Kind::I32) => bytes = Some(r.i32()?),
                _ => r.skip(f.kind)?,
            }
        }
        let bytes = bytes
            .filter(|b| *b > 0 && b % 32 == 0)
            .ok_or_else(|| Error::malformed("parquet", "bytes", "multiple of 32", "?"))?;
        Ok(Self { length: r.position(), bytes: bytes as u64 })
    }
}
pub(crate) struct Block;
impl Block {
    pub(crate) const BYTES: u64 = 32;
    pub(crate) fn index(hash: u64, blocks: u64) -> u64 {
        ((hash >> 32) * blocks) >> 32
    }
    pub(crate) fn holds(file: &[u8], at: usize, hash: u64) -> bool {
        const S: [u32; 8] = [
            0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947,
            0x5c6bfb31,
        ];
        S.iter().enumerate().all(|(i, s)| {
            let w = u32::from_le_bytes(file[at + 4 * i..at + 4 * i + 4].try_into().unwrap());
            w >> ((hash as u32).wrapping_mul(*s) >> 27) & 1 == 1
        })
    }
}
