//! The byte arrays of layers, and `SCANDUMP` chunks of them. A chunk never extends beyond the end
//! of an array.

use crate::error::FilterError;
use crate::server::{copied_bytes, zeroed_bytes};

/// Maximum length of a chunk.
const MAX_CHUNK_BYTES: u64 = 16 << 20;

pub(super) fn zeroed(bytes: u64) -> Result<Box<[u8]>, FilterError> {
    usize::try_from(bytes).ok().and_then(zeroed_bytes).ok_or(FilterError::OutOfMemory)
}

pub(super) fn copied(bytes: &[u8]) -> Result<Box<[u8]>, FilterError> {
    copied_bytes(bytes).ok_or(FilterError::OutOfMemory)
}

/// Appends a layer. The vector grows by an eighth: little memory is wasted, and the amortized cost
/// is constant.
pub(super) fn push<T>(layers: &mut Vec<T>, layer: T) -> Result<(), FilterError> {
    if layers.len() == layers.capacity() {
        let more = layers.len() / 8 + 1;
        layers.try_reserve_exact(more).map_err(|_| FilterError::OutOfMemory)?;
    }
    layers.push(layer);
    Ok(())
}

/// Returns the chunk after a position and the position after the chunk; `None` at the end. Position
/// 1 is before the first byte.
pub(super) fn chunk<'a>(
    arrays: impl Iterator<Item = &'a [u8]>,
    position: u64,
) -> Option<(u64, &'a [u8])> {
    let mut at = position.checked_sub(1)?;
    for array in arrays {
        let length = array.len() as u64;
        if at < length {
            let end = at.saturating_add(MAX_CHUNK_BYTES).min(length);
            return Some((position + (end - at), array.get(at as usize..end as usize)?));
        }
        at -= length;
    }
    None
}

/// Returns the bytes for a chunk of `LOADCHUNK`, given the position after it.
pub(super) fn chunk_mut<'a>(
    arrays: impl Iterator<Item = &'a mut [u8]>,
    position: u64,
    length: usize,
) -> Result<&'a mut [u8], FilterError> {
    let Some(start) = position.checked_sub(length as u64).filter(|_| position > 0) else {
        return FilterError::malformed("the position of a chunk is 0 or less than its length");
    };
    let mut at = start.checked_sub(1).ok_or(FilterError::BadOffset)?;
    for array in arrays {
        let bytes = array.len() as u64;
        if at < bytes {
            let chunk = array.get_mut(at as usize..).and_then(|rest| rest.get_mut(..length));
            return chunk.ok_or(FilterError::ChunkTooLong);
        }
        at -= bytes;
    }
    Err(FilterError::BadOffset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn appending_many_layers_moves_each_a_few_times() {
        let (mut layers, mut moved) = (Vec::new(), 0);
        for layer in 0..u32::from(u16::MAX) {
            let before = layers.capacity();
            push(&mut layers, layer).unwrap();
            if layers.capacity() != before {
                moved += layers.len();
            }
            assert!(layers.capacity() <= layers.len() + layers.len() / 8 + 1);
        }
        assert!(moved <= 10 * layers.len(), "{moved}");
    }
}
