//! Objects that are written: multipart uploads.
//!
//! The upload begins when the output is opened, so missing rights are an error before the job. Parts
//! are sent while the next one is filled. The object appears when the upload is completed; dropped
//! before, or at a signal, the upload is aborted. A killed process leaves parts behind, which no
//! reader sees, and which the rules of the bucket can remove.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::failure::Failure;
use super::store::{Location, Parts};
use super::{ObjectUrl, PARTS_IN_FLIGHT, part_size};

/// Maximum number of parts, of S3.
const MAX_PARTS: u64 = 10_000;

/// The uploads that are not completed. A signal takes them away and aborts them.
static UPLOADS: Mutex<BTreeMap<u64, Parts>> = Mutex::new(BTreeMap::new());

/// The number of the next upload.
static NEXT: AtomicU64 = AtomicU64::new(0);

fn uploads() -> MutexGuard<'static, BTreeMap<u64, Parts>> {
    UPLOADS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Aborts all uploads, waiting for at most five seconds for each. Call it before a signal ends the
/// process: writers of uploads then wait for that end, so that they do not end the process first.
pub fn abort_uploads() {
    let all = std::mem::take(&mut *uploads());
    all.into_values().for_each(Parts::abort);
}

/// The result of a part that was sent.
type Sent = Result<(), Failure>;

/// An object that is written. Dropped before it is finished, nothing remains of it.
#[derive(Debug)]
pub struct Upload {
    location: Location,
    number: u64,
    /// The part that is being filled.
    part: Vec<u8>,
    part_size: usize,
    sent: u64,
    in_flight: u64,
    results: (Sender<Sent>, Receiver<Sent>),
}

impl Upload {
    /// Begins to write an object, of a job with this memory limit, of which it takes
    /// [`upload_memory`](super::upload_memory).
    ///
    /// # Errors
    /// If the store refuses it.
    pub fn create(url: &ObjectUrl, memory_limit: u64) -> io::Result<Self> {
        if url.is_web() {
            let text = "is an address of the web, expected s3://, gs:// or az:// for an output; \
                        write to a file, and send it";
            return Err(io::Error::new(io::ErrorKind::Unsupported, text));
        }
        let location = Location::of(url, true)?;
        let parts = location.begin_parts()?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        uploads().insert(number, parts);
        let part_size = part_size(memory_limit);
        let (part, results) = (Vec::new(), channel());
        Ok(Self { location, number, part, part_size, sent: 0, in_flight: 0, results })
    }

    /// Waits for a part that was sent.
    fn wait_for_part(&mut self) -> io::Result<()> {
        let ended = |_| io::Error::other("the thread of requests has ended");
        let result = self.results.1.recv().map_err(ended)?;
        self.in_flight -= 1;
        result.map_err(|failure| failure.into_io(&self.location.name))
    }

    /// Sends the part that was filled.
    fn send(&mut self) -> io::Result<()> {
        while self.in_flight >= PARTS_IN_FLIGHT {
            self.wait_for_part()?;
        }
        if self.sent == MAX_PARTS {
            let max = (MAX_PARTS * self.part_size as u64) >> 30;
            let text = format!(
                "the output is longer than {max} GiB, {MAX_PARTS} parts of a 32nd of the memory \
                 limit; raise the limit, or write to a file"
            );
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
        }
        let part = std::mem::take(&mut self.part);
        let sender = self.results.0.clone();
        let mut uploads = uploads();
        let Some(parts) = uploads.get_mut(&self.number) else {
            drop(uploads);
            wait_for_the_end()
        };
        parts.send(part, move |result| sender.send(result).unwrap_or_default())?;
        (self.sent, self.in_flight) = (self.sent + 1, self.in_flight + 1);
        Ok(())
    }

    /// Completes the upload: the object appears.
    ///
    /// # Errors
    /// If a part or the completion fails; nothing remains then.
    pub fn finish(mut self) -> io::Result<()> {
        if !self.part.is_empty() {
            self.send()?;
        }
        while self.in_flight > 0 {
            self.wait_for_part()?;
        }
        let parts = uploads().remove(&self.number);
        let Some(parts) = parts else { wait_for_the_end() };
        if self.sent == 0 {
            // An upload without parts cannot be completed.
            parts.abort();
            return self.location.put(Vec::new());
        }
        parts.complete()
    }
}

/// Waits for the end of the process, after [`abort_uploads`].
fn wait_for_the_end() -> ! {
    loop {
        std::thread::park();
    }
}

impl Write for Upload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.part.capacity() == 0 {
            self.part.try_reserve_exact(self.part_size)?;
        }
        let room = self.part_size - self.part.len();
        let taken = bytes.len().min(room);
        self.part.extend_from_slice(&bytes[..taken]);
        if self.part.len() == self.part_size {
            self.send()?;
        }
        Ok(taken)
    }

    /// Does nothing: a part is sent when it is full, or at the end.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        let parts = uploads().remove(&self.number);
        parts.into_iter().for_each(Parts::abort);
    }
}
