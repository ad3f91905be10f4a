//! Objects: inputs and outputs at `s3://`, `gs://`, `az://` and `https://`.
//!
//! | module | job |
//! |---|---|
//! | [`address`] | addresses, and their masked form for messages |
//! | `store` | the only module with async code: a thread with a runtime, requests |
//! | `clients` | connections to stores, timeouts, retries |
//! | `buckets` | settings and credentials of S3, Google and Azure |
//! | `failure` | errors of requests, in words without addresses and credentials |
//! | `object` | an object that was opened: its version, reads by position |
//! | `read_ahead` | blocks of an object that are requested before they are read |
//! | `upload` | an object that is written in parts |
//!
//! An object is opened with a request for its first 64 KiB, whose answer has the length and the
//! version: ETag or time of modification. Every later request demands that version, and its answer
//! is compared with it, so a change during a job is an error at the next request. A server without
//! ranges or versions is read once, as a stream.
//!
//! A pass reads an object in blocks. Several blocks are requested ahead, first one, then twice as
//! many with each block that is read in order. A window of bounded size, which the memory limit
//! includes, holds them. Samples are read with one request each.
//!
//! Failed requests are repeated with growing pauses, and a broken answer is continued where it
//! ended. Credentials come from the environment and the metadata service of the machine, as the
//! crate `object_store` finds them.
//!
//! An output is a multipart upload: the object appears when it is complete.

mod address;

#[cfg(feature = "object-store")]
mod buckets;
#[cfg(feature = "object-store")]
mod clients;
#[cfg(feature = "object-store")]
mod failure;
#[cfg(feature = "object-store")]
mod object;
#[cfg(feature = "object-store")]
mod read_ahead;
#[cfg(feature = "object-store")]
mod store;
#[cfg(feature = "object-store")]
mod upload;

#[cfg(not(feature = "object-store"))]
mod disabled;

pub use address::ObjectUrl;
#[cfg(not(feature = "object-store"))]
pub(crate) use disabled::{ObjectInput, ReadAhead, open};
#[cfg(not(feature = "object-store"))]
pub use disabled::{Upload, abort_uploads};
#[cfg(feature = "object-store")]
pub(crate) use object::{ObjectInput, open};
#[cfg(feature = "object-store")]
pub(crate) use read_ahead::ReadAhead;
#[cfg(feature = "object-store")]
pub use upload::{Upload, abort_uploads};

use std::io::Read;

use crate::poll_read::PollRead;

/// An object that was opened.
#[cfg_attr(not(feature = "object-store"), allow(dead_code, reason = "nothing is opened"))]
pub(crate) enum Opened {
    /// It can be read by position; `begin` are its first bytes.
    Object { object: ObjectInput, begin: Vec<u8> },
    /// It can be read once, in order.
    Stream(Box<dyn Read + Send>),
}

/// A stream that cannot be polled.
pub(crate) struct Blocking(pub(crate) Box<dyn Read + Send>);

impl Read for Blocking {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(buffer)
    }
}

impl PollRead for Blocking {
    fn ready(&mut self) -> bool {
        true
    }
}

/// Memory of the HTTP client: connections, certificates, buffers.
const CLIENT: u64 = 8 << 20;

/// The lowest memory limit of a job with an object as input.
pub(crate) const MIN_MEMORY_OF_OBJECTS: u64 = 32 << 20;

/// Returns the memory that objects as inputs take, of a job with this memory limit.
pub(crate) fn objects_memory(memory_limit: u64) -> u64 {
    window(memory_limit) + CLIENT
}

/// Returns the memory for the blocks of an object, of a job with this memory limit.
pub(crate) fn window(memory_limit: u64) -> u64 {
    (memory_limit / 16).clamp(512 << 10, 64 << 20)
}

/// Returns the size of the parts of an upload, of a job with this memory limit: 5 MiB is the least
/// that S3 accepts.
fn part_size(memory_limit: u64) -> usize {
    (memory_limit / 32).clamp(5 << 20, 64 << 20) as usize
}

/// Returns the memory that an upload takes, of a job with this memory limit.
#[must_use]
pub fn upload_memory(memory_limit: u64) -> u64 {
    (PARTS_IN_FLIGHT + 1) * part_size(memory_limit) as u64 + CLIENT
}

/// Parts that are sent at the same time, while another one is filled.
const PARTS_IN_FLIGHT: u64 = 2;
