//! Turns of chunks: processed in parallel, finished in order.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};

use crate::error::Result;

/// Gives the turn to chunks in ascending order.
pub(super) struct Sequencer<S> {
    pub(super) state: Mutex<Turn<S>>,
    /// Condition variables of waiting workers, by chunk number modulo the number of workers.
    pub(super) called: Vec<Condvar>,
    /// Set when reading ends early, by an error or because `fold` stops it.
    pub(super) over: AtomicBool,
}

pub(super) struct Turn<S> {
    pub(super) next: u64,
    pub(super) shared: S,
    /// The input of the last chunk, and the line ends in its chunks so far.
    pub(super) line_ends: (usize, u64),
    pub(super) result: Result<()>,
}

impl<S> Turn<S> {
    /// Returns the number of line ends in the chunks of this input so far.
    pub(super) fn line_ends(&self, input: usize) -> u64 {
        if self.line_ends.0 == input { self.line_ends.1 } else { 0 }
    }
}

/// The place of a chunk in the order.
pub(crate) struct Ticket<'a, S> {
    pub(super) turns: &'a Sequencer<S>,
    pub(super) number: u64,
    pub(super) turn: Option<MutexGuard<'a, Turn<S>>>,
}

impl<S> Ticket<'_, S> {
    /// Waits for the turn and keeps it. `None` if reading ended before.
    pub(crate) fn wait(&mut self) -> Option<&mut S> {
        if self.turn.is_none() {
            self.turn = self.turns.wait(self.number);
        }
        self.turn.as_mut().map(|turn| &mut turn.shared)
    }
}

impl<S> Sequencer<S> {
    pub(super) fn new(shared: S, workers: usize) -> Self {
        Self {
            state: Mutex::new(Turn { next: 0, shared, line_ends: (0, 0), result: Ok(()) }),
            called: std::iter::repeat_with(Condvar::new).take(workers).collect(),
            over: AtomicBool::new(false),
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    pub(super) fn place(&self, number: u64) -> &Condvar {
        &self.called[(number % self.called.len() as u64) as usize]
    }

    pub(super) fn wait(&self, number: u64) -> Option<MutexGuard<'_, Turn<S>>> {
        let mut turn = self.state.lock().ok()?;
        while turn.next != number {
            if self.is_over() {
                return None;
            }
            turn = self.place(number).wait(turn).ok()?;
        }
        (!self.is_over()).then_some(turn)
    }

    pub(super) fn end(&self, mut turn: MutexGuard<'_, Turn<S>>) {
        turn.next += 1;
        let next = turn.next;
        drop(turn);
        self.place(next).notify_one();
    }

    /// Ends reading with the error of the lowest chunk that has one.
    pub(super) fn stop(&self, turn: Option<MutexGuard<'_, Turn<S>>>, result: Result<()>) {
        let turn = turn.or_else(|| self.state.lock().ok());
        if let Some(mut turn) = turn {
            if turn.result.is_ok() && !self.is_over() {
                turn.result = result;
            }
            self.over.store(true, Ordering::Relaxed);
        }
        self.wake_all();
    }

    pub(super) fn wake_all(&self) {
        self.called.iter().for_each(Condvar::notify_all);
    }
}

/// Wakes all workers if this one panics; otherwise they would wait forever.
pub(super) struct WakeOnPanic<'a, S>(pub(super) &'a Sequencer<S>);

impl<S> Drop for WakeOnPanic<'_, S> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Under the lock, so that no worker misses it between its check and its wait.
            let turn = self.0.state.lock();
            self.0.over.store(true, Ordering::Relaxed);
            drop(turn);
            self.0.wake_all();
        }
    }
}
