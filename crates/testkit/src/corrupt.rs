//! Corrupted copies of a file.

/// Returns every proper prefix of the bytes, starting with the empty one.
pub fn truncations(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    (0..bytes.len()).map(move |len| &bytes[..len])
}

/// Returns every copy of the bytes with one bit flipped, and the number of that bit (bit 0 is the lowest of byte 0).
pub fn bit_flips(bytes: &[u8]) -> impl Iterator<Item = (usize, Vec<u8>)> {
    (0..bytes.len() * 8).map(move |bit| {
        let mut copy = bytes.to_vec();
        copy[bit / 8] ^= 1 << (bit % 8);
        (bit, copy)
    })
}

/// Returns copies with bytes appended: one zero, one 0xFF, and the whole content again.
pub fn extensions(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    [vec![0], vec![0xff], bytes.to_vec()].into_iter().map(move |tail| [bytes, &tail].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_and_content_of_corrupted_copies() {
        assert_eq!(truncations(b"abc").collect::<Vec<_>>(), [&b""[..], b"a", b"ab"]);
        let flips: Vec<_> = bit_flips(&[0, 0xff]).collect();
        assert_eq!(flips.len(), 16);
        assert_eq!(flips[3], (3, vec![8, 0xff]));
        assert_eq!(flips[15], (15, vec![0, 0x7f]));
        assert!(extensions(b"ab").all(|copy| copy.len() > 2 && copy.starts_with(b"ab")));
    }
}
