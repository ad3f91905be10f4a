//! Blocks of an object that are requested before they are read.
//!
//! Readers on several threads read near each other, roughly in order. A block that is read lets the
//! next ones be requested: one after the first read, then twice as many with each further block, up
//! to the window. When the window is full, its lowest block is dropped. A reader that needs a dropped
//! block, or much more than a block, requests its bytes alone.
//!
//! Memory: at most [`BLOCKS`] blocks, an eighth of the window each.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::failure::Failure;
use super::object::ObjectInput;

/// Maximum number of blocks in memory.
const BLOCKS: usize = 8;

/// Maximum number of blocks that are requested ahead: the others are being read.
const AHEAD: u64 = BLOCKS as u64 - 2;

/// Reads an object in blocks.
pub(crate) struct ReadAhead {
    object: Arc<ObjectInput>,
    shared: Arc<Shared>,
    /// Size of a block.
    size: u64,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Default)]
struct State {
    blocks: BTreeMap<u64, Block>,
    /// The highest block that was read, and the number of blocks to request ahead.
    last: Option<u64>,
    ahead: u64,
}

#[derive(Clone)]
enum Block {
    Requested,
    Arrived(Arc<Vec<u8>>),
    Failed(Failure),
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Makes room for one block by dropping the lowest one below `number`. Returns whether there is
    /// room.
    fn make_room(&mut self, number: u64) -> bool {
        if self.blocks.len() < BLOCKS {
            return true;
        }
        let is_done = |block: &Block| !matches!(block, Block::Requested);
        let lowest = self.blocks.iter().find(|(at, block)| **at < number && is_done(block));
        let lowest = lowest.map(|(at, _)| *at);
        lowest.is_some_and(|lowest| self.blocks.remove(&lowest).is_some())
    }

    /// Counts a read of a block: in order, the next ones are requested ahead.
    fn advance(&mut self, number: u64) {
        match self.last {
            Some(last) if number <= last => {}
            Some(last) if number == last + 1 => {
                (self.last, self.ahead) = (Some(number), (2 * self.ahead).clamp(1, AHEAD));
            }
            _ => (self.last, self.ahead) = (Some(number), 0),
        }
    }
}

impl ReadAhead {
    pub(crate) fn new(object: &Arc<ObjectInput>) -> Self {
        let size = (object.window / BLOCKS as u64).clamp(64 << 10, 8 << 20);
        Self { object: Arc::clone(object), shared: Arc::default(), size }
    }

    /// Returns the object that is read.
    pub(crate) fn object(&self) -> &ObjectInput {
        &self.object
    }

    /// Requests a block if it is not there. Returns whether it is there or requested.
    fn request(&self, state: &mut State, number: u64, reader: u64) -> io::Result<bool> {
        if state.blocks.contains_key(&number) {
            return Ok(true);
        }
        if !state.make_room(reader) {
            return Ok(false);
        }
        let start = number * self.size;
        let range = start..self.object.length().min(start + self.size);
        let shared = Arc::clone(&self.shared);
        let done = move |bytes: Result<Vec<u8>, Failure>| {
            let block = match bytes {
                Ok(bytes) => Block::Arrived(Arc::new(bytes)),
                Err(failure) => Block::Failed(failure),
            };
            shared.state().blocks.insert(number, block);
            shared.arrived.notify_all();
        };
        self.object.location.start(range, &self.object.version, done)?;
        state.blocks.insert(number, Block::Requested);
        Ok(true)
    }

    /// Waits for a block. `None` if it was dropped, or if there is no room for it.
    fn block(&self, number: u64) -> io::Result<Option<Arc<Vec<u8>>>> {
        let mut state = self.shared.state();
        let is_behind = state.last.is_some_and(|last| number < last);
        if is_behind && !state.blocks.contains_key(&number) {
            return Ok(None);
        }
        state.advance(number);
        if !self.request(&mut state, number, number)? {
            return Ok(None);
        }
        let last = self.object.length().div_ceil(self.size);
        for next in (number + 1..last).take(state.ahead as usize) {
            if !self.request(&mut state, next, number)? {
                break;
            }
        }
        loop {
            match state.blocks.get(&number) {
                Some(Block::Arrived(bytes)) => return Ok(Some(Arc::clone(bytes))),
                Some(Block::Failed(failure)) => {
                    return Err(failure.clone().into_io(&self.object.location.name));
                }
                None => return Ok(None),
                Some(Block::Requested) => {}
            }
            state = self.shared.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Reads from a position, up to the end of its block. Returns 0 at the end.
    pub(crate) fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        if at >= self.object.length() || buffer.is_empty() {
            return Ok(0);
        }
        // One request for a long range is better than a few in turn.
        if buffer.len() as u64 > 2 * self.size {
            return self.object.read_at(buffer, at);
        }
        let number = at / self.size;
        let Some(bytes) = self.block(number)? else {
            let max = ((number + 1) * self.size - at).min(buffer.len() as u64);
            return self.object.read_at(&mut buffer[..max as usize], at);
        };
        let bytes = &bytes[(at - number * self.size) as usize..];
        let got = bytes.len().min(buffer.len());
        buffer[..got].copy_from_slice(&bytes[..got]);
        Ok(got)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_in_order_request_more_and_more_blocks() {
        let mut state = State::default();
        let mut ahead = Vec::new();
        for number in [0, 0, 1, 2, 1, 3, 4, 9, 10] {
            state.advance(number);
            ahead.push(state.ahead);
        }
        assert_eq!(ahead, [0, 0, 1, 2, 2, 4, AHEAD, 0, 1]);
    }

    #[test]
    fn the_lowest_finished_block_makes_room() {
        let mut state = State::default();
        for number in 0..BLOCKS as u64 {
            assert!(state.make_room(5));
            let bytes = Block::Arrived(Arc::default());
            state.blocks.insert(number, if number == 0 { Block::Requested } else { bytes });
        }
        assert!(!state.make_room(1), "no block below is finished");
        assert!(state.make_room(5));
        assert!(!state.blocks.contains_key(&1) && state.blocks.contains_key(&0));
    }
}
