//! Numbered events in ascending order, about one byte each.
//!
//! An event is the difference of its number to the one before and its kind, in groups of seven bits.

use crate::error::{Error, Result};

/// What happened at a line when lines were counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// The filter did not contain the line.
    New,
    /// The filter contained the line, but the table did not.
    Known,
}

/// The events of lines.
#[derive(Default)]
pub(super) struct Events {
    bytes: Vec<u8>,
    /// The number after that of the last event.
    next: u64,
}

impl Events {
    /// Adds an event at line `line`, which is after all others.
    #[inline]
    pub(super) fn push(&mut self, line: u64, event: Event) -> Result<()> {
        let mut rest = (line - self.next) << 1 | u64::from(event == Event::Known);
        self.next = line + 1;
        if self.bytes.len() == self.bytes.capacity() {
            let more = self.bytes.len().max(1 << 10);
            self.bytes.try_reserve_exact(more).map_err(|_| Error::alloc(2 * more as u64))?;
        }
        while rest >= 0x80 {
            self.bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.bytes.push(rest as u8);
        Ok(())
    }

    /// Returns the size in bytes.
    pub(super) fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Returns the events with the numbers of their lines.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, Event)> {
        let (mut bytes, mut line) = (self.bytes.iter(), 0);
        std::iter::from_fn(move || {
            let (mut value, mut shift) = (0, 0);
            loop {
                let byte = *bytes.next()?;
                value |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte < 0x80 {
                    break;
                }
            }
            line += (value >> 1) + 1;
            Some((line - 1, if value & 1 == 1 { Event::Known } else { Event::New }))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use petal_testkit::rng::Rng;

    #[test]
    fn events_are_those_that_were_added() {
        let mut rng = Rng::new(5);
        let (mut events, mut expected, mut line) = (Events::default(), vec![], 0);
        for _ in 0..3000 {
            line += rng.next_u64() >> (30 + rng.below(34));
            let event = [Event::New, Event::Known][rng.below(2)];
            events.push(line, event).unwrap();
            expected.push((line, event));
            line += 1;
        }
        assert_eq!(events.iter().collect::<Vec<_>>(), expected);
    }
}
