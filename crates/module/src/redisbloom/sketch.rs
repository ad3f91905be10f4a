//! Values of RedisBloom that petal keeps but does not use: count-min sketches, top-k lists and
//! t-digests. They are saved as they were loaded, so a server with RedisBloom can take them back.
//!
//! Cost: a load and a save read each field once. Source: fields in dumps of RedisBloom 2.8.

use crate::error::FilterError;
use crate::server::{FieldReader, FieldWriter, copied_bytes};

/// A data type of RedisBloom whose values petal keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SketchType {
    CountMin,
    TopK,
    TDigest,
}

#[derive(Debug, PartialEq)]
enum Field {
    Unsigned(u64),
    Double(f64),
    Bytes(Box<[u8]>),
}

/// The fields of a value in an RDB file, in order.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Sketch {
    fields: Vec<Field>,
}

impl Sketch {
    /// Reads the fields of a value.
    ///
    /// # Errors
    /// If the version is unknown, or fields are missing.
    pub(crate) fn load(
        sketch_type: SketchType,
        version: i32,
        input: &mut impl FieldReader,
    ) -> Result<Self, FilterError> {
        if version != 0 {
            return FilterError::malformed("unsupported encoding version of a sketch");
        }
        let mut sketch = Self::default();
        match sketch.read(sketch_type, input) {
            Some(()) => Ok(sketch),
            None => FilterError::malformed("the value is truncated"),
        }
    }

    /// Returns `None` if a field is missing or memory is exhausted.
    fn read(&mut self, sketch_type: SketchType, input: &mut impl FieldReader) -> Option<()> {
        match sketch_type {
            SketchType::CountMin => {
                // Width, depth, count; counters.
                (0..3).try_for_each(|_| self.unsigned(input).map(drop))?;
                self.bytes(input)
            }
            SketchType::TopK => {
                // Number of items, width, depth, decay; counters, items without names.
                let items = self.unsigned(input)?;
                (0..2).try_for_each(|_| self.unsigned(input).map(drop))?;
                self.double(input)?;
                (0..2).try_for_each(|_| self.bytes(input))?;
                (0..items).try_for_each(|_| self.bytes(input))
            }
            SketchType::TDigest => {
                // Compression, minimum, maximum, capacity; merged and other nodes; compressions,
                // weights of both; means, weights.
                (0..3).try_for_each(|_| self.double(input))?;
                self.unsigned(input)?;
                let nodes = self.unsigned(input)?.checked_add(self.unsigned(input)?)?;
                self.unsigned(input)?;
                (0..2).try_for_each(|_| self.double(input))?;
                (0..nodes.checked_mul(2)?).try_for_each(|_| self.double(input))
            }
        }
    }

    fn unsigned(&mut self, input: &mut impl FieldReader) -> Option<u64> {
        let number = input.unsigned()?;
        self.push(Field::Unsigned(number))?;
        Some(number)
    }

    fn double(&mut self, input: &mut impl FieldReader) -> Option<()> {
        let number = input.double()?;
        self.push(Field::Double(number))
    }

    fn bytes(&mut self, input: &mut impl FieldReader) -> Option<()> {
        let bytes = input.bytes()?;
        self.push(Field::Bytes(bytes))
    }

    fn push(&mut self, field: Field) -> Option<()> {
        self.fields.try_reserve(1).ok()?;
        self.fields.push(field);
        Some(())
    }

    /// Writes the fields.
    pub(crate) fn save(&self, out: &mut impl FieldWriter) {
        for field in &self.fields {
            match field {
                Field::Unsigned(number) => out.unsigned(*number),
                Field::Double(number) => out.double(*number),
                Field::Bytes(bytes) => out.bytes(bytes),
            }
        }
    }

    /// Returns a copy. `None` if the allocation fails.
    pub(crate) fn copy(&self) -> Option<Self> {
        let mut copy = Self::default();
        copy.fields.try_reserve_exact(self.fields.len()).ok()?;
        for field in &self.fields {
            copy.fields.push(match field {
                Field::Unsigned(number) => Field::Unsigned(*number),
                Field::Double(number) => Field::Double(*number),
                Field::Bytes(bytes) => Field::Bytes(copied_bytes(bytes)?),
            });
        }
        Some(copy)
    }

    /// Returns the memory of the value in bytes.
    pub(crate) fn memory_usage(&self) -> u64 {
        let bytes = self.fields.iter().map(|field| match field {
            Field::Bytes(bytes) => bytes.len(),
            Field::Unsigned(_) | Field::Double(_) => 0,
        });
        let fields = self.fields.capacity() * size_of::<Field>();
        (size_of::<Self>() + fields + bytes.sum::<usize>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::super::fuzz_checks::{Field, Fields};
    use super::*;

    /// `U` is a number, `D` a double, `B` bytes.
    fn fields(types: &str, counts: &[u64]) -> Fields {
        let mut counts = counts.iter();
        let field = |field| match field {
            'U' => Field::Unsigned(counts.next().copied().unwrap_or(0)),
            'D' => Field::Double(0.5),
            _ => Field::Bytes(Box::from(&b"bytes"[..])),
        };
        Fields(types.chars().map(field).collect())
    }

    #[test]
    fn fields_are_saved_as_they_were_loaded() {
        for (sketch_type, types, counts) in [
            (SketchType::CountMin, "UUUB", &[20, 3, 7][..]),
            (SketchType::TopK, "UUUDBBBB", &[2, 8, 4]),
            (SketchType::TopK, "UUUDBB", &[0, 8, 4]),
            (SketchType::TDigest, "DDDUUUUDDDDDDDD", &[610, 2, 1, 1]),
            (SketchType::TDigest, "DDDUUUUDD", &[610, 0, 0, 0]),
        ] {
            let sketch = Sketch::load(sketch_type, 0, &mut fields(types, counts)).unwrap();
            assert_eq!(sketch.copy().as_ref(), Some(&sketch));
            let mut saved = Fields::default();
            sketch.save(&mut saved);
            assert!(saved.0 == fields(types, counts).0, "{types}");
            for cut in 0..types.len() {
                let loaded = Sketch::load(sketch_type, 0, &mut fields(&types[..cut], counts));
                assert!(loaded.is_err(), "{types} {cut}");
            }
            assert!(Sketch::load(sketch_type, 1, &mut fields(types, counts)).is_err());
        }
        let huge = &[1, u64::MAX, 1, 1];
        assert!(Sketch::load(SketchType::TDigest, 0, &mut fields("DDDUUUUDDD", huge)).is_err());
    }
}
