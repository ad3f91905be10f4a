//! Rows of bytes, one for each layer, that are read and written as one in chunks which never reach
//! over the end of a row.

use crate::refusal::Refusal;
use crate::server::{copied_bytes, zeroed_bytes};

/// What `SCANDUMP` gives at once.
const LONGEST_CHUNK: u64 = 16 << 20;

/// A row of zeros.
pub(super) fn zeroed(bytes: u64) -> Result<Box<[u8]>, Refusal> {
    usize::try_from(bytes).ok().and_then(zeroed_bytes).ok_or(Refusal::Memory)
}

/// A row with the same bytes.
pub(super) fn copied(row: &[u8]) -> Result<Box<[u8]>, Refusal> {
    copied_bytes(row).ok_or(Refusal::Memory)
}

/// Puts a layer behind others, in at most an eighth more memory than they take: so few layers waste
/// none, and each of many is moved a bounded number of times.
pub(super) fn push<T>(layers: &mut Vec<T>, layer: T) -> Result<(), Refusal> {
    if layers.len() == layers.capacity() {
        layers.try_reserve_exact(layers.len() / 8 + 1).map_err(|_| Refusal::Memory)?;
    }
    layers.push(layer);
    Ok(())
}

/// The chunk that `SCANDUMP` gives after this position, and the position behind it; none behind
/// the last. Position 1 is before the first byte.
pub(super) fn chunk<'r>(
    rows: impl Iterator<Item = &'r [u8]>,
    position: u64,
) -> Option<(u64, &'r [u8])> {
    let mut at = position.checked_sub(1)?;
    for row in rows {
        let length = row.len() as u64;
        if at < length {
            let end = at.saturating_add(LONGEST_CHUNK).min(length);
            return Some((position + (end - at), row.get(at as usize..end as usize)?));
        }
        at -= length;
    }
    None
}

/// Where a chunk belongs that `LOADCHUNK` brings with the position behind it.
pub(super) fn place_of<'r>(
    rows: impl Iterator<Item = &'r mut [u8]>,
    position: u64,
    length: usize,
) -> Result<&'r mut [u8], Refusal> {
    let Some(begin) = position.checked_sub(length as u64) else {
        return Refusal::malformed("a chunk that ends before it is over");
    };
    let mut at = begin.checked_sub(1).ok_or(Refusal::NoRow)?;
    for row in rows {
        let bytes = row.len() as u64;
        if at < bytes {
            let place = row.get_mut(at as usize..).and_then(|rest| rest.get_mut(..length));
            return place.ok_or(Refusal::TooLong);
        }
        at -= bytes;
    }
    Err(Refusal::NoRow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pushing_many_layers_moves_each_a_few_times() {
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
