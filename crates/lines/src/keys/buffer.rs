//! The keys of a batch of records.

use super::{KeyKind, KeyProblem, KeySpec};

/// Keys, one after the other. A worker reuses the memory for each batch.
#[derive(Default)]
pub(crate) struct Keys {
    bytes: Vec<u8>,
    /// The end of each key in `bytes`.
    ends: Vec<usize>,
    spare: Spare,
}

/// Memory for making a key that is used again.
#[derive(Default)]
pub(crate) struct Spare {
    /// Several fields before their transforms, each after its length.
    pub(super) fields: Vec<u8>,
    /// The results of all transforms but the last.
    pub(super) from: Vec<u8>,
    pub(super) to: Vec<u8>,
}

/// The start of a key that is distinct from all others. It is no UTF-8, so no text begins with it; a line of
/// bytes could, if it was made to.
const DISTINCT: &[u8] = b"\xff\0petal: distinct\0\xff";

impl Keys {
    /// Replaces the keys by those of these records. Keys that are distinct from all others are made of
    /// what `place` returns for the index of the record.
    ///
    /// # Errors
    /// The index of the first record without a key, and what is wrong with it.
    pub(crate) fn take<'a>(
        &mut self,
        spec: &KeySpec,
        records: impl Iterator<Item = &'a [u8]>,
        place: impl Fn(usize) -> [u64; 2],
    ) -> Result<(), (usize, KeyProblem)> {
        self.bytes.clear();
        self.ends.clear();
        for (number, record) in records.enumerate() {
            let kind = spec
                .append_kind(record, &mut self.spare, &mut self.bytes)
                .map_err(|problem| (number, problem))?;
            if kind != KeyKind::Plain {
                self.bytes.extend_from_slice(DISTINCT);
                place(number).iter().for_each(|part| self.bytes.extend(part.to_le_bytes()));
            }
            self.ends.push(self.bytes.len());
        }
        Ok(())
    }

    /// Returns a key.
    #[inline]
    pub(crate) fn get(&self, number: usize) -> &[u8] {
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.bytes[start..self.ends[number]]
    }

    /// Returns all keys.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.ends.len()).map(|number| self.get(number))
    }

    /// Frees memory beyond `max` bytes, which a long record may have taken.
    pub(crate) fn shrink(&mut self, max: usize) {
        self.bytes.clear();
        self.bytes.shrink_to(max);
        for spare in [&mut self.spare.fields, &mut self.spare.from, &mut self.spare.to] {
            spare.clear();
            spare.shrink_to(max);
        }
    }
}
