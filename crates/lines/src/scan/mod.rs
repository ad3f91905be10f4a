//! Parallel passes over the lines of inputs.
//!
//! [`Chunks`] reads inputs in chunks of whole lines, [`Pass`] divides chunks into batches of lines.

mod batch;
mod buffer;
mod chunks;
mod line_ends;
mod pass;
mod record_ends;
mod sequencer;

pub use batch::BadLine;
pub(crate) use batch::{Batch, Scratch};
pub(crate) use chunks::{Chunks, LineChunk};
pub(crate) use pass::{Pass, PassStats};
pub(crate) use record_ends::RecordEnds;
pub(crate) use sequencer::Ticket;
