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

#[derive(Debug)]
#[cfg_attr(any(test, fuzzing), derive(Clone))]
pub(super) enum Field {
    Unsigned(u64),
    Double(f64),
    Bytes(Box<[u8]>),
}

/// The fields of a value in an RDB file, in order.
#[derive(Debug, Default)]
pub(crate) struct Sketch {
    fields: Vec<Field>,
}

impl Sketch {
    /// Reads the fields of a value that takes at most `limit` bytes in memory.
    ///
    /// # Errors
    /// If the version is unknown, fields are missing, the value is larger, or memory is exhausted.
    pub(crate) fn load(
        sketch_type: SketchType,
        version: i32,
        limit: u64,
        input: &mut impl FieldReader,
    ) -> Result<Self, FilterError> {
        if version != 0 {
            return FilterError::malformed("unsupported encoding version of a sketch");
        }
        let mut loading = Loading { input, fields: Vec::new(), bytes: 0, limit };
        loading.read(sketch_type)?;
        let mut fields = loading.fields;
        fields.shrink_to_fit();
        Ok(Self { fields })
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

/// A value whose fields are read one after another. Their number comes from outside, so each is counted
/// before it is kept.
struct Loading<'a, I> {
    input: &'a mut I,
    fields: Vec<Field>,
    bytes: u64,
    limit: u64,
}

impl<I: FieldReader> Loading<'_, I> {
    fn read(&mut self, sketch_type: SketchType) -> Result<(), FilterError> {
        match sketch_type {
            SketchType::CountMin => {
                // Width, depth, count; counters.
                (0..3).try_for_each(|_| self.unsigned().map(drop))?;
                self.bytes()
            }
            SketchType::TopK => {
                // Number of items, width, depth, decay; counters, items without names.
                let items = self.unsigned()?;
                (0..2).try_for_each(|_| self.unsigned().map(drop))?;
                self.double()?;
                (0..2).try_for_each(|_| self.bytes())?;
                (0..items).try_for_each(|_| self.bytes())
            }
            SketchType::TDigest => {
                // Compression, minimum, maximum, capacity; merged and other nodes; compressions,
                // weights of both; means, weights.
                (0..3).try_for_each(|_| self.double())?;
                self.unsigned()?;
                let nodes = [self.unsigned()?, self.unsigned()?];
                self.unsigned()?;
                (0..2).try_for_each(|_| self.double())?;
                let [merged, others] = nodes;
                let nodes = merged.checked_add(others).and_then(|nodes| nodes.checked_mul(2));
                (0..nodes.ok_or_else(FilterError::truncated)?).try_for_each(|_| self.double())
            }
        }
    }

    fn unsigned(&mut self) -> Result<u64, FilterError> {
        let number = self.input.unsigned()?;
        self.push(Field::Unsigned(number), 0)?;
        Ok(number)
    }

    fn double(&mut self) -> Result<(), FilterError> {
        let number = self.input.double()?;
        self.push(Field::Double(number), 0)
    }

    fn bytes(&mut self) -> Result<(), FilterError> {
        let bytes = self.input.bytes()?;
        let length = bytes.len();
        self.push(Field::Bytes(bytes), length)
    }

    fn push(&mut self, field: Field, bytes: usize) -> Result<(), FilterError> {
        self.bytes += (size_of::<Field>() + bytes) as u64;
        if self.bytes > self.limit {
            return Err(FilterError::OverLimit { bytes: self.bytes, limit: self.limit });
        }
        self.fields.try_reserve(1).map_err(|_| FilterError::OutOfMemory)?;
        self.fields.push(field);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::fuzz_checks::{sketch_fields as fields, use_sketch};
    use super::*;

    #[test]
    fn fields_are_saved_as_they_were_loaded() {
        for (sketch_type, types, counts) in [
            (SketchType::CountMin, "UUUB", &[20, 3, 7][..]),
            (SketchType::TopK, "UUUDBBBB", &[2, 8, 4]),
            (SketchType::TopK, "UUUDBB", &[0, 8, 4]),
            (SketchType::TDigest, "DDDUUUUDDDDDDDD", &[610, 2, 1, 1]),
            (SketchType::TDigest, "DDDUUUUDD", &[610, 0, 0, 0]),
        ] {
            assert!(use_sketch(sketch_type, &fields(types, counts), 0, u64::MAX), "{types}");
            for cut in 0..types.len() {
                let cut = fields(&types[..cut], counts);
                assert!(!use_sketch(sketch_type, &cut, 0, u64::MAX), "{types} {cut:?}");
            }
            assert!(!use_sketch(sketch_type, &fields(types, counts), 1, u64::MAX), "{types}");
        }
        let huge = &[1, u64::MAX, 1, 1];
        assert!(!use_sketch(SketchType::TDigest, &fields("DDDUUUUDDD", huge), 0, u64::MAX));
        let items = &[100, 8, 4];
        let types = format!("UUUDBB{}", "B".repeat(100));
        let over = Sketch::load(SketchType::TopK, 0, 1000, &mut fields(&types, items));
        assert!(matches!(over, Err(FilterError::OverLimit { .. })), "{over:?}");
    }
}
