//! The keys of a batch of records.

use super::{KeyProblem, KeySpec};

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

impl Keys {
    /// Replaces the keys by those of these records.
    ///
    /// # Errors
    /// The index of the first record without a key, and what is wrong with it.
    pub(crate) fn take<'a>(
        &mut self,
        spec: &KeySpec,
        records: impl Iterator<Item = &'a [u8]>,
    ) -> Result<(), (usize, KeyProblem)> {
        self.bytes.clear();
        self.ends.clear();
        for (number, record) in records.enumerate() {
            spec.append_key(record, &mut self.spare, &mut self.bytes)
                .map_err(|problem| (number, problem))?;
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
