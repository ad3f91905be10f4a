//! The memory that a compressed file needs, from its first bytes.

/// Returns the memory that the first block of an xz file needs, from the dictionary size of its
/// LZMA2 filter (xz file format 1.2.1, 3.1 and 5.3.1). `None` if it has no block.
pub(super) fn xz_memory(begin: &[u8]) -> Option<u64> {
    const STREAM_HEADER: usize = 12;
    const LZMA2: u64 = 0x21;
    /// Reads a number of up to 9 bytes with 7 bits each, the lowest first.
    fn number(bytes: &mut &[u8]) -> Option<u64> {
        let mut number = 0;
        for at in 0..9 {
            let (byte, rest) = bytes.split_first()?;
            *bytes = rest;
            number |= u64::from(byte & 0x7f) << (7 * at);
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }
    let (size, rest) = begin.get(STREAM_HEADER..)?.split_first()?;
    let (flags, mut rest) = rest.split_first()?;
    if *size == 0 {
        return None;
    }
    for size_is_present in [0x40, 0x80] {
        if flags & size_is_present != 0 {
            number(&mut rest)?;
        }
    }
    for _ in 0..=flags & 3 {
        let filter = number(&mut rest)?;
        let length = usize::try_from(number(&mut rest)?).ok()?;
        let properties = rest.get(..length)?;
        rest = &rest[length..];
        if filter == LZMA2 {
            let bits = *properties.first()?;
            let dictionary = match bits {
                0..40 => (2 | u32::from(bits & 1)) << (bits / 2 + 11),
                _ => u32::MAX,
            };
            return Some(u64::from(lzma_rust2::lzma2_get_memory_usage(dictionary)) * 1024);
        }
    }
    None
}

/// Returns the memory that a bzip2 file needs, according to the manual of bzip2; `begin` starts with
/// its header.
pub(super) fn bzip2_memory(begin: &[u8]) -> Option<u64> {
    let level = begin.get(3)?.checked_sub(b'0')?;
    Some(100_000 + 400_000 * u64::from(level))
}

/// Returns the memory that the blocks of an lz4 frame need: one compressed block, and one
/// decompressed block, or two and a window if the blocks depend on each other.
pub(super) fn lz4_memory(begin: &[u8]) -> Option<u64> {
    const INDEPENDENT: u8 = 0x20;
    let [4, 0x22, 0x4d, 0x18, flags, size] = *begin.first_chunk()? else { return None };
    let block = 1u64 << (8 + 2 * ((size >> 4) & 7));
    Some(if flags & INDEPENDENT != 0 { 2 * block } else { 3 * block + (64 << 10) })
}

/// Returns the window size of the first frame of a zstd file (RFC 8878, 3.1.1.1); `None` if the file
/// does not begin with such a frame.
pub(super) fn zstd_window(begin: &[u8]) -> Option<u64> {
    let (magic, header) = begin.split_first_chunk()?;
    if *magic != [0x28, 0xb5, 0x2f, 0xfd] {
        return None;
    }
    let (descriptor, rest) = header.split_first()?;
    if descriptor & 0x20 == 0 {
        let window = rest.first()?;
        let base = 1u64 << (10 + (window >> 3));
        return Some(base + base / 8 * u64::from(window & 7));
    }
    // Single segment: the window is the content size, which follows the dictionary ID.
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let length = [1, 2, 4, 8][usize::from(descriptor >> 6)];
    let mut bytes = [0; 8];
    bytes[..length].copy_from_slice(rest.get(dictionary..dictionary + length)?);
    Some(u64::from_le_bytes(bytes) + if length == 2 { 256 } else { 0 })
}
