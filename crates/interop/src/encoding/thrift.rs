//! A strict reader of Thrift's compact protocol, in which Parquet writes its footers and filter
//! headers.
//!
//! A struct is read field by field, and every field is read or skipped:
//!
//! ```text
//! let mut last = 0;
//! while let Some(field) = reader.field(&mut last)? {
//!     match (field.id, field.kind) {
//!         (1, Kind::I32) => bytes = Some(reader.i32()?),
//!         (2, Kind::Struct) => ...  // the same loop, with its own `last`
//!         (3, Kind::List) => ...    // reader.list()?, then the elements
//!         _ => reader.skip(field.kind)?,
//!     }
//! }
//! ```
//!
//! Nothing is allocated; text is borrowed. The length of a list is at most the number of remaining
//! bytes, and the nesting of skipped values is limited. Source: the document "Thrift compact
//! protocol" of Apache Thrift.

use crate::error::{Error, Result};
use crate::format::Format;

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// For a field, the type contains the value.
    True,
    False,
    Byte,
    I16,
    I32,
    I64,
    Double,
    /// Bytes or text.
    Binary,
    List,
    Set,
    Map,
    Struct,
    Uuid,
}

/// The header of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) id: i16,
    pub(crate) kind: Kind,
}

/// Maximum nesting of skipped values; Parquet's own nest a few levels.
const DEPTH: u32 = 32;

/// Bytes and a read position.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Starts at the first byte.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Returns the number of bytes read.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// Returns the next field of a struct; `None` at its end. `last` must be 0 at the start of a
    /// struct; this function updates it, because field numbers are relative to the previous one.
    pub(crate) fn field(&mut self, last: &mut i16) -> Result<Option<Field>> {
        let head = self.byte()?;
        if head == 0 {
            return Ok(None);
        }
        let id = match head >> 4 {
            0 => self.i16()?,
            step => {
                let id = last.checked_add(i16::from(step));
                id.ok_or_else(|| self.bad("a field below 32768", *last))?
            }
        };
        *last = id;
        Ok(Some(Field { id, kind: self.kind(head & 15)? }))
    }

    pub(crate) fn byte(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    pub(crate) fn i16(&mut self) -> Result<i16> {
        let number = self.i64()?;
        i16::try_from(number).map_err(|_| self.bad("a number of 16 bits", number))
    }

    pub(crate) fn i32(&mut self) -> Result<i32> {
        let number = self.i64()?;
        i32::try_from(number).map_err(|_| self.bad("a number of 32 bits", number))
    }

    pub(crate) fn i64(&mut self) -> Result<i64> {
        let zigzag = self.varint()?;
        Ok((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed())
    }

    /// Returns bytes or text, borrowed.
    pub(crate) fn binary(&mut self) -> Result<&'a [u8]> {
        let length = self.varint()?;
        self.take(length)
    }

    /// Returns the number and type of the elements of a list or set.
    pub(crate) fn list(&mut self) -> Result<(usize, Kind)> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => self.varint()?,
            few => few.into(),
        };
        Ok((self.bounded(count)?, self.kind(head & 15)?))
    }

    /// Skips the value of a field.
    pub(crate) fn skip(&mut self, kind: Kind) -> Result<()> {
        self.skip_down(kind, DEPTH)
    }

    fn skip_down(&mut self, kind: Kind, depth: u32) -> Result<()> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(self.bad("values nested 32 deep at most", "more"));
        };
        match kind {
            Kind::True | Kind::False => {}
            Kind::Byte => _ = self.byte()?,
            Kind::I16 | Kind::I32 | Kind::I64 => _ = self.varint()?,
            Kind::Double => _ = self.take(8)?,
            Kind::Uuid => _ = self.take(16)?,
            Kind::Binary => _ = self.binary()?,
            Kind::List | Kind::Set => {
                let (count, kind) = self.list()?;
                for _ in 0..count {
                    self.skip_element(kind, depth)?;
                }
            }
            Kind::Map => {
                let count = self.varint()?;
                let count = self.bounded(count)?;
                if count > 0 {
                    let kinds = self.byte()?;
                    let (key, value) = (self.kind(kinds >> 4)?, self.kind(kinds & 15)?);
                    for _ in 0..count {
                        self.skip_element(key, depth)?;
                        self.skip_element(value, depth)?;
                    }
                }
            }
            Kind::Struct => {
                let mut last = 0;
                while let Some(field) = self.field(&mut last)? {
                    self.skip_down(field.kind, depth)?;
                }
            }
        }
        Ok(())
    }

    /// Skips an element of a list, set or map, where a boolean is one byte.
    fn skip_element(&mut self, kind: Kind, depth: u32) -> Result<()> {
        match kind {
            Kind::True | Kind::False => self.skip_down(Kind::Byte, depth),
            _ => self.skip_down(kind, depth),
        }
    }

    /// Reads a varint: seven bits per byte, least significant first.
    fn varint(&mut self) -> Result<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            number |= bits << shift;
            if (number >> shift) != bits {
                break;
            }
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(self.bad("a number of 64 bits", "a longer one"))
    }

    fn kind(&self, code: u8) -> Result<Kind> {
        Ok(match code {
            1 => Kind::True,
            2 => Kind::False,
            3 => Kind::Byte,
            4 => Kind::I16,
            5 => Kind::I32,
            6 => Kind::I64,
            7 => Kind::Double,
            8 => Kind::Binary,
            9 => Kind::List,
            10 => Kind::Set,
            11 => Kind::Map,
            12 => Kind::Struct,
            13 => Kind::Uuid,
            _ => return Err(self.bad("a type from 1 to 13", code)),
        })
    }

    /// Checks a number of elements, each of which has at least one byte.
    fn bounded(&self, count: u64) -> Result<usize> {
        let rest = self.bytes.len() - self.at;
        match usize::try_from(count) {
            Ok(count) if count <= rest => Ok(count),
            _ => Err(self.bad(format_args!("{rest} elements at most"), count)),
        }
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        let taken = usize::try_from(length).ok().and_then(|length| rest.get(..length));
        let taken =
            taken.ok_or_else(|| self.bad(format_args!("{length} bytes more"), rest.len()))?;
        self.at += taken.len();
        Ok(taken)
    }

    fn bad(&self, expected: impl std::fmt::Display, found: impl std::fmt::Display) -> Error {
        let found = format!("{found} (byte {})", self.at);
        Error::malformed(Format::Parquet.name(), "its Thrift header", expected, found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Field 1: i32 -3, field 2: "hey", field 20: true, field 21: a list of two structs, each with
    /// an i64 in field 1; end.
    const SAMPLE: [u8; 19] =
        [0x15, 5, 0x18, 3, b'h', b'e', b'y', 0x01, 40, 0x19, 0x2c, 0x16, 0x80, 1, 0, 0x16, 1, 0, 0];

    fn read(bytes: &[u8]) -> Result<Vec<(i16, i64)>> {
        let (mut reader, mut last, mut found) = (Reader::new(bytes), 0, Vec::new());
        while let Some(field) = reader.field(&mut last)? {
            let value = match field.kind {
                Kind::I32 => reader.i32()?.into(),
                Kind::Binary => reader.binary()?.len() as i64,
                Kind::True => 1,
                Kind::List => {
                    let mut sum = 0;
                    for _ in 0..reader.list()?.0 {
                        let mut last = 0;
                        while let Some(field) = reader.field(&mut last)? {
                            assert_eq!(field, Field { id: 1, kind: Kind::I64 });
                            sum += reader.i64()?;
                        }
                    }
                    sum
                }
                kind => reader.skip(kind).map(|()| 0)?,
            };
            found.push((field.id, value));
        }
        assert_eq!(reader.position(), bytes.len());
        Ok(found)
    }

    #[test]
    fn struct_is_read_and_skipped() {
        assert_eq!(read(&SAMPLE).unwrap(), [(1, -3), (2, 3), (20, 1), (21, 63)]);
        let mut reader = Reader::new(&SAMPLE);
        reader.skip(Kind::Struct).unwrap();
        assert_eq!(reader.position(), SAMPLE.len());
    }

    #[test]
    fn truncated_values_are_errors() {
        for length in 0..SAMPLE.len() {
            assert!(read(&SAMPLE[..length]).unwrap_err().is_malformed(), "{length}");
            assert!(Reader::new(&SAMPLE[..length]).skip(Kind::Struct).is_err(), "{length}");
        }
    }

    #[test]
    fn every_type_can_be_skipped() {
        let map_of_truth_to_bytes = [2, 0x13, 1, 9, 2, 9];
        let long_list = [vec![0xf3, 15], vec![7; 15]].concat();
        let (double, uuid) = ([1; 8], [1; 16]);
        let values: [(Kind, &[u8]); 9] = [
            (Kind::True, &[]),
            (Kind::False, &[]),
            (Kind::Byte, &[0xff]),
            (Kind::I16, &[0xff, 1]),
            (Kind::Double, &double),
            (Kind::Uuid, &uuid),
            (Kind::Map, &[0]),
            (Kind::Map, &map_of_truth_to_bytes),
            (Kind::Set, &long_list),
        ];
        for (kind, bytes) in values {
            let mut reader = Reader::new(bytes);
            reader.skip(kind).unwrap();
            assert_eq!(reader.position(), bytes.len(), "{kind:?}");
        }
    }

    #[test]
    fn varints_out_of_range_are_errors() {
        let number = |bytes: &[u8]| Reader::new(bytes).i64();
        let longest = [vec![0xff; 9], vec![1]].concat();
        assert_eq!(number(&longest).unwrap(), i64::MIN);
        assert!(number(&[vec![0xff; 9], vec![2]].concat()).is_err());
        assert!(number(&[0x80; 11]).is_err());
        assert_eq!(Reader::new(&[0xff, 0xff, 0xff, 0xff, 15]).i32().unwrap(), i32::MIN);
        assert!(Reader::new(&[0x80, 0x80, 0x80, 0x80, 16]).i32().is_err());
        assert!(Reader::new(&[0x80, 0x80, 4]).i16().is_err());
    }

    #[test]
    fn wrong_lengths_are_errors() {
        assert!(Reader::new(&[0xff, 0xff, 0xff, 0xff, 15, 1]).binary().is_err());
        assert!(Reader::new(&[0xf5, 0xff, 0xff, 0xff, 0xff, 15, 1]).list().is_err());
        assert!(Reader::new(&[4, 0x33, 1]).skip(Kind::Map).is_err());
        // A list of lists of lists ...
        assert!(Reader::new(&[0x19; 1000]).skip(Kind::List).is_err());
        assert!(Reader::new(&[0x1c; 1000]).skip(Kind::Struct).is_err());
        assert!(Reader::new(&[0x1e]).field(&mut 0).is_err());
        let mut last = i16::MAX;
        assert!(Reader::new(&[0x13]).field(&mut last).is_err());
    }
}
