//! Lines in memory, for operations that need all of them at once.

use std::ops::ControlFlow;

use crate::error::{Error, ErrorKind, Result};
use crate::input::Source;
use crate::job_context::JobContext;
use crate::numbers::format_size;
use crate::scan::{Batch, Scratch};
use crate::settings::Settings;

/// The lines of inputs in memory, in order.
#[derive(Debug, Default)]
pub struct LineBuffer {
    bytes: Vec<u8>,
    /// End of each line.
    ends: Vec<usize>,
}

impl LineBuffer {
    /// Reads all lines, using at most `max_bytes` bytes. The limit includes `each` bytes per line for
    /// the caller.
    ///
    /// # Errors
    /// If an input cannot be read, or the lines need more memory.
    pub fn read(
        settings: &Settings<'_>,
        inputs: &[Source],
        max_bytes: u64,
        each: u64,
    ) -> Result<Self> {
        let names: Vec<_> = inputs.iter().map(ToString::to_string).collect();
        let (context, inputs) = JobContext::open_for_filters(settings, inputs)?;
        let inputs: Vec<_> = inputs.iter().collect();
        let mut buffer = Self::default();
        let fold = |batch: &Batch<'_>, _: &mut Scratch| {
            let length: usize = batch.keys().map(<[u8]>::len).sum();
            let lines = (buffer.ends.len() + batch.len()) as u64;
            // The capacity of a vector is up to twice its length.
            let bytes = 2 * ((buffer.bytes.len() + length) as u64 + lines * 8);
            if bytes.saturating_add(lines.saturating_mul(each)) > max_bytes {
                let max = format_size(max_bytes);
                let problem = format!("its lines take more than the {max} of memory for them");
                return Err(Error::new(ErrorKind::LineBuffer, problem)
                    .of(names.join(" "))
                    .advise("give fewer lines"));
            }
            let refused = |_| Error::alloc(bytes);
            buffer.bytes.try_reserve(length).map_err(refused)?;
            buffer.ends.try_reserve(batch.len()).map_err(refused)?;
            for line in batch.keys() {
                buffer.bytes.extend_from_slice(line);
                buffer.ends.push(buffer.bytes.len());
            }
            Ok(ControlFlow::Continue(()))
        };
        context.pass().run("reading", &inputs, |_, _| {}, fold)?;
        Ok(buffer)
    }

    /// Iterates over the lines without their delimiters.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end])
    }

    /// Returns the number of lines.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there are no lines.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the memory in bytes.
    #[must_use]
    pub fn memory_usage(&self) -> u64 {
        (self.bytes.capacity() + self.ends.capacity() * size_of::<usize>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use petal_testkit::scratch::Scratch;

    use super::*;
    use crate::memory::MIN_MEMORY;

    #[test]
    fn lines_are_unchanged_or_an_error() {
        let scratch = Scratch::new();
        let source = |name: &str, text: &str| Source::from_arg(scratch.write(name, text));
        let inputs = [source("a", "one\n\ntwo\r\n"), source("b", "three")];
        let settings = Settings::new(MIN_MEMORY);
        let buffer = LineBuffer::read(&settings, &inputs, 1 << 20, 0).unwrap();
        assert_eq!(buffer.iter().collect::<Vec<_>>(), [&b"one"[..], b"", b"two\r", b"three"]);
        assert!(buffer.memory_usage() >= 12 + 32);
        let error = LineBuffer::read(&settings, &inputs, 20, 0).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LineBuffer, "{error}");
        assert!(LineBuffer::read(&settings, &inputs, 1 << 20, 1 << 30).is_err());
    }
}
