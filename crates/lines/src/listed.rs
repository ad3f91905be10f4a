//! Lines held in memory as they are, one behind the other: for what must see all of them at once.

use crate::error::{Error, Result};
use crate::input::Source;
use crate::pass::{Batch, Flow, Scratch};
use crate::settings::Settings;

/// All lines of some inputs, in order.
#[derive(Debug, Default)]
pub struct Listed {
    bytes: Vec<u8>,
    /// Where each line ends.
    ends: Vec<usize>,
}

impl Listed {
    /// Reads them, into `room` bytes at most, of which `each` are for what the caller makes of a
    /// line.
    ///
    /// # Errors
    /// When an input cannot be read, or the lines take more than that.
    pub fn read(settings: &Settings<'_>, inputs: &[Source], room: u64, each: u64) -> Result<Self> {
        let names: Vec<_> = inputs.iter().map(ToString::to_string).collect();
        let (budget, inputs) = settings.open(inputs)?;
        let inputs: Vec<_> = inputs.iter().collect();
        let mut listed = Self::default();
        let fold = |batch: &Batch<'_>, _: &mut Scratch| {
            let length: usize = batch.lines().map(<[u8]>::len).sum();
            let lines = (listed.ends.len() + batch.len()) as u64;
            // A vector has up to twice its length.
            let bytes = 2 * ((listed.bytes.len() + length) as u64 + lines * 8);
            if bytes.saturating_add(lines.saturating_mul(each)) > room {
                return Err(Error::list_too_large(&names.join(" "), room));
            }
            let refused = |_| Error::alloc(bytes);
            listed.bytes.try_reserve(length).map_err(refused)?;
            listed.ends.try_reserve(batch.len()).map_err(refused)?;
            for line in batch.lines() {
                listed.bytes.extend_from_slice(line);
                listed.ends.push(listed.bytes.len());
            }
            Ok(Flow::Go)
        };
        settings.pass(budget).run("reading", &inputs, |_, _| {}, fold)?;
        Ok(listed)
    }

    /// The lines, without their delimiters.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end])
    }

    /// How many lines there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of memory that they take.
    #[must_use]
    pub fn memory_usage(&self) -> u64 {
        (self.bytes.capacity() + self.ends.capacity() * size_of::<usize>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use petal_testkit::scratch::Scratch;

    use super::*;
    use crate::budget::LEAST_MEMORY;

    #[test]
    fn lines_come_as_they_are_or_not_at_all() {
        let scratch = Scratch::new();
        let source = |name: &str, text: &str| Source::from_arg(scratch.write(name, text));
        let inputs = [source("a", "one\n\ntwo\r\n"), source("b", "three")];
        let settings = Settings::new(LEAST_MEMORY);
        let listed = Listed::read(&settings, &inputs, 1 << 20, 0).unwrap();
        assert_eq!(listed.iter().collect::<Vec<_>>(), [&b"one"[..], b"", b"two\r", b"three"]);
        assert!(listed.memory_usage() >= 12 + 32);
        assert!(Listed::read(&settings, &inputs, 20, 0).unwrap_err().is_list_too_large());
        assert!(Listed::read(&settings, &inputs, 1 << 20, 1 << 30).is_err());
    }
}
