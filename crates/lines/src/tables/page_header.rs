//! The sizes in the header of a Parquet page.

#![cfg_attr(not(feature = "parquet"), allow(dead_code, reason = "tables are refused"))]

/// Bytes of a page header that are looked at.
pub(super) const LENGTH: usize = 31;

/// What the header of a page says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageHeader {
    pub(super) dictionary: bool,
    /// Decompressed length.
    pub(super) length: u64,
    pub(super) compressed: u64,
    /// Number of values of a dictionary, if it can be read.
    pub(super) values: u64,
}

/// Reads the start of a page header. Source: Thrift's compact protocol; a header begins with the type
/// and the two lengths of the page, as fields 1 to 3. A checksum may follow as field 4, and field 7
/// is the header of a dictionary, which begins with the number of its values.
pub(super) fn page_header(mut bytes: &[u8]) -> Option<PageHeader> {
    const DICTIONARY: u64 = 2;
    let [kind, length, compressed] = [(); 3].map(|()| next_i32(&mut bytes));
    let (dictionary, length, mut values) = (kind? == DICTIONARY, length?, 0);
    if dictionary {
        let delta = if next_i32(&mut bytes).is_some() { 0x3c } else { 0x4c };
        if let Some(rest) = bytes.strip_prefix(&[delta]) {
            bytes = rest;
            values = next_i32(&mut bytes).unwrap_or(0);
        }
    }
    Some(PageHeader { dictionary, length, compressed: compressed.unwrap_or(0), values })
}

/// Removes the next field if it has the next number and is an i32.
fn next_i32(bytes: &mut &[u8]) -> Option<u64> {
    let mut rest = bytes.strip_prefix(&[0x15])?;
    let (mut number, mut shift) = (0u64, 0);
    loop {
        let (byte, more) = rest.split_first()?;
        rest = more;
        number |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            *bytes = rest;
            // Zigzag; a negative number is an error of the library.
            return Some(number >> 1);
        }
        if shift > 28 {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::page_header::{PageHeader, page_header};

    #[test]
    fn sizes_are_read_from_page_headers() {
        let header = |dictionary, length, values| {
            let compressed = if dictionary { 1 } else { 3 };
            Some(PageHeader { dictionary, length, compressed, values })
        };
        // A data page of 300 bytes; a dictionary of 2^31 - 1, with 5 values, with and without a checksum.
        assert_eq!(page_header(&[0x15, 0, 0x15, 0xd8, 4, 0x15, 6]), header(false, 300, 0));
        let longest = [0x15, 4, 0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0x15, 2];
        let length = u64::from(u32::MAX >> 1);
        assert_eq!(page_header(&longest), header(true, length, 0));
        assert_eq!(
            page_header(&[&longest[..], &[0x4c, 0x15, 10]].concat()),
            header(true, length, 5)
        );
        let summed = [&longest[..], &[0x15, 0x80, 1, 0x3c, 0x15, 10]].concat();
        assert_eq!(page_header(&summed), header(true, length, 5));
        for cut in 0..8 {
            assert_eq!(page_header(&longest[..cut]), None);
        }
        assert_eq!(page_header(&[0x15, 0, 0x15, 0x80, 0x80, 0x80, 0x80, 0x80, 1]), None);
        assert_eq!(page_header(&[0x25, 0, 0x15, 2]), None);
    }
}
