//! Requests to object stores: the only module with async code.
//!
//! One thread with a runtime serves all requests of the process. Other threads start requests and
//! wait for their results; a callback gets the result on the thread of the runtime.

use std::future::Future;
use std::io;
use std::ops::Range;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use object_store::path::Path;
use object_store::{
    Error, GetOptions, GetRange, GetResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt as _, PutPayload,
};
use tokio::runtime::{Builder, Handle};

use super::address::{ObjectUrl, Scheme};
use super::clients::{bucket_store, web_store};
use super::failure::{Failure, OTHER_ETAG};

/// The runtime, once its thread has started.
static RUNTIME: OnceLock<Handle> = OnceLock::new();

/// Requests of small ranges that run at the same time.
const REQUESTS_AT_ONCE: usize = 16;

/// A request must be answered within this time, in which it may be repeated, and that of its bytes at the
/// lowest speed, in bytes per second: a server may send one byte after the other.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(240);
const MIN_SPEED: u64 = 1 << 10;

/// Held while the runtime is started.
static STARTING: Mutex<()> = Mutex::new(());

/// Returns the runtime; starts its thread at the first call.
fn runtime() -> io::Result<&'static Handle> {
    let _starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(handle) = RUNTIME.get() {
        return Ok(handle);
    }
    // An error means that the program that embeds this library has chosen a provider.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    let serve = move || runtime.block_on(std::future::pending::<()>());
    std::thread::Builder::new().name("objects".to_owned()).spawn(serve)?;
    Ok(RUNTIME.get_or_init(|| handle))
}

/// Runs a future on the thread of the runtime and waits for its result.
fn wait<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> io::Result<T> {
    let (sender, receiver) = sync_channel(1);
    runtime()?.spawn(async move { sender.send(future.await).unwrap_or_default() });
    receiver.recv().map_err(|_| io::Error::other("the thread of requests has ended"))
}

/// Ends a request of at most `length` bytes that takes too long.
async fn in_time<T>(
    length: u64,
    request: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let time = REQUEST_TIMEOUT + Duration::from_secs(length / MIN_SPEED);
    tokio::time::timeout(time, request).await.unwrap_or_else(|_| {
        let text = "the server sends less than 1 KiB per second; try again later";
        Err(Failure::Other(io::ErrorKind::TimedOut, text.to_owned()))
    })
}

/// An object of a store.
#[derive(Clone, Debug)]
pub(super) struct Location {
    pub(super) scheme: Scheme,
    /// The masked address.
    pub(super) name: String,
    store: Arc<dyn ObjectStore>,
    path: Path,
}

/// The version of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) length: u64,
    pub(super) etag: Option<String>,
    /// Time of the last change in seconds since 1970.
    pub(super) modified: i64,
}

impl Version {
    fn of(meta: &ObjectMeta) -> Self {
        let (etag, modified) = (meta.e_tag.clone(), meta.last_modified.timestamp());
        Self { length: meta.size, etag, modified }
    }

    /// Returns whether a change of the object changes the version.
    fn is_certain(&self) -> bool {
        self.etag.is_some() || self.modified != 0
    }

    /// Returns options that demand this version. A weak ETag cannot be demanded; it is compared.
    fn options(&self) -> GetOptions {
        let strong = self.etag.clone().filter(|etag| !etag.starts_with("W/"));
        GetOptions { if_match: strong, ..GetOptions::default() }
    }
}

/// The first bytes of an object, or all of it as a stream.
pub(super) enum Begin {
    Bytes(Version, Vec<u8>),
    Stream(Pieces),
}

impl Location {
    /// Returns the place of an address; `uploads`: for writing.
    pub(super) fn of(url: &ObjectUrl, uploads: bool) -> io::Result<Self> {
        let (scheme, name) = (url.scheme(), url.to_string());
        // Clients need its provider of cryptography.
        runtime()?;
        let bad = |text: &str| io::Error::new(io::ErrorKind::InvalidInput, text.to_owned());
        let (store, path) = if url.is_web() {
            (web_store(url)?, Path::default())
        } else {
            let (bucket, key) = url.bucket_and_key();
            if bucket.contains('@') {
                return Err(bad("has credentials in the address; set them in the environment"));
            }
            if bucket.is_empty() || key.is_empty() || key.ends_with('/') {
                return Err(bad("expected the address of an object: BUCKET/KEY after ://"));
            }
            let path = Path::parse(key).map_err(|_| {
                bad("has a key that cannot be used: a part of it is empty, '.' or '..', or it has a control character")
            })?;
            (bucket_store(scheme, bucket, uploads)?, path)
        };
        Ok(Self { scheme, name, store, path })
    }

    fn failure(&self, error: &Error) -> Failure {
        Failure::of(error, self.scheme)
    }

    /// Requests the first `max` bytes of the object. If the server knows no ranges or no versions,
    /// returns all of it as a stream.
    pub(super) fn begin(&self, max: u64) -> io::Result<Begin> {
        let this = self.clone();
        let begin = async move {
            let range = Some(GetRange::Bounded(0..max));
            let options = GetOptions { range, ..GetOptions::default() };
            match this.store.get_opts(&this.path, options).await {
                Ok(answer) if Version::of(&answer.meta).is_certain() => {
                    let version = Version::of(&answer.meta);
                    return Ok(Begin::Bytes(version, this.body(answer).await?));
                }
                Ok(_) => {}
                Err(error) if Failure::may_lack_ranges(&error) => {}
                Err(error) => return Err(this.failure(&error)),
            }
            // An empty object has no range; some servers know none.
            let all = this.store.get_opts(&this.path, GetOptions::default()).await;
            let all = all.map_err(|error| this.failure(&error))?;
            let version = Version::of(&all.meta);
            if version.length == 0 && version.is_certain() {
                return Ok(Begin::Bytes(version, Vec::new()));
            }
            Ok(Begin::Stream(Pieces::new(this, all)))
        };
        wait(in_time(max, begin))?.map_err(|failure| failure.into_io(&self.name))
    }

    /// Returns the bytes of an answer.
    async fn body(&self, answer: GetResult) -> Result<Vec<u8>, Failure> {
        let length = (answer.range.end - answer.range.start) as usize;
        let mut bytes = Vec::new();
        if bytes.try_reserve_exact(length).is_err() {
            return Err(Failure::Other(io::ErrorKind::OutOfMemory, "out of memory".to_owned()));
        }
        let mut stream = answer.into_stream();
        while let Some(piece) = stream.next().await {
            let piece = piece.map_err(|error| self.failure(&error))?;
            if bytes.len() + piece.len() > length {
                break;
            }
            bytes.extend_from_slice(&piece);
        }
        if bytes.len() != length {
            let text = "the server sent another number of bytes than it announced; try again later";
            return Err(Failure::Other(io::ErrorKind::InvalidData, text.to_owned()));
        }
        Ok(bytes)
    }

    async fn range(self, range: Range<u64>, version: Version) -> Result<Vec<u8>, Failure> {
        in_time(range.end - range.start, self.whole_range(range, version)).await
    }

    async fn whole_range(&self, range: Range<u64>, version: Version) -> Result<Vec<u8>, Failure> {
        let options =
            GetOptions { range: Some(GetRange::Bounded(range.clone())), ..version.options() };
        let answer = self.store.get_opts(&self.path, options).await;
        let answer = answer.map_err(|error| self.failure(&error))?;
        let now = Version::of(&answer.meta);
        if now.etag != version.etag {
            return Err(Failure::Changed(OTHER_ETAG));
        }
        if now != version {
            return Err(Failure::Changed("its length or time is not what it was"));
        }
        self.body(answer).await
    }

    /// Starts a request of a range of this version. `done` gets the bytes.
    pub(super) fn start(
        &self,
        range: Range<u64>,
        version: &Version,
        done: impl FnOnce(Result<Vec<u8>, Failure>) + Send + 'static,
    ) -> io::Result<()> {
        let request = self.clone().range(range, version.clone());
        runtime()?.spawn(async move { done(request.await) });
        Ok(())
    }

    /// Requests a range of this version and waits for its bytes.
    pub(super) fn read(&self, range: Range<u64>, version: &Version) -> io::Result<Vec<u8>> {
        let bytes = wait(self.clone().range(range, version.clone()))?;
        bytes.map_err(|failure| failure.into_io(&self.name))
    }

    /// Requests ranges of this version, several at the same time; returns their bytes, one range after
    /// the other.
    pub(super) fn read_all(&self, ranges: &[Range<u64>], version: &Version) -> io::Result<Vec<u8>> {
        let (this, version, ranges) = (self.clone(), version.clone(), ranges.to_vec());
        let length = ranges.iter().map(|range| range.end - range.start).sum::<u64>();
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length as usize)?;
        // A request is made when there is room for it.
        let request = move |range| this.clone().range(range, version.clone());
        let all = async move {
            let requests = futures_util::stream::iter(ranges).map(request);
            let mut answers = requests.buffered(REQUESTS_AT_ONCE);
            while let Some(piece) = answers.next().await {
                bytes.extend_from_slice(&piece?);
            }
            Ok(bytes)
        };
        wait(all)?.map_err(|failure: Failure| failure.into_io(&self.name))
    }

    /// Writes the object with one request.
    pub(super) fn put(&self, bytes: Vec<u8>) -> io::Result<()> {
        let this = self.clone();
        let put = async move {
            let put = this.store.put(&this.path, PutPayload::from(bytes)).await;
            put.map(drop).map_err(|error| this.failure(&error))
        };
        wait(put)?.map_err(|failure| failure.into_io(&self.name))
    }

    /// Fails if a container of Azure cannot be written to. An upload to Azure begins with its first
    /// part, so a byte of the object is requested, whether there is one or not.
    async fn check_container(&self) -> Result<(), Failure> {
        if self.scheme != Scheme::Az {
            return Ok(());
        }
        let options = GetOptions { range: Some(GetRange::Bounded(0..1)), ..GetOptions::default() };
        match self.store.get_opts(&self.path, options).await {
            Err(error) if Failure::prevents_writing(&error) => Err(self.failure(&error)),
            _ => Ok(()),
        }
    }

    /// Begins a multipart upload.
    pub(super) fn begin_parts(&self) -> io::Result<Parts> {
        let this = self.clone();
        let begun = async move {
            this.check_container().await?;
            let begun = this.store.put_multipart(&this.path).await;
            begun.map_err(|error| this.failure(&error))
        };
        let upload = wait(begun)?.map_err(|failure| failure.into_io(&self.name))?;
        Ok(Parts { upload, location: self.clone() })
    }
}

/// A multipart upload.
#[derive(Debug)]
pub(super) struct Parts {
    upload: Box<dyn MultipartUpload>,
    location: Location,
}

impl Parts {
    /// Starts to send the next part.
    pub(super) fn send(
        &mut self,
        bytes: Vec<u8>,
        done: impl FnOnce(Result<(), Failure>) + Send + 'static,
    ) -> io::Result<()> {
        let part = self.upload.put_part(PutPayload::from(bytes));
        let scheme = self.location.scheme;
        let part = async move { part.await.map_err(|error| Failure::of(&error, scheme)) };
        runtime()?.spawn(async move { done(part.await) });
        Ok(())
    }

    /// Completes the upload: the object appears.
    pub(super) fn complete(mut self) -> io::Result<()> {
        let location = self.location.clone();
        let completed = async move {
            let completed = self.upload.complete().await;
            if completed.is_err() {
                let _ = self.upload.abort().await;
            }
            completed.map(drop).map_err(|error| self.location.failure(&error))
        };
        wait(completed)?.map_err(|failure| failure.into_io(&location.name))
    }

    /// Ends the upload without an object; waits for at most five seconds.
    pub(super) fn abort(mut self) {
        let aborted = async move {
            let _ = tokio::time::timeout(Duration::from_secs(5), self.upload.abort()).await;
        };
        let _ = wait(aborted);
    }
}

/// The body of an answer, read piece by piece.
pub(super) struct Pieces {
    location: Location,
    stream: Option<futures_util::stream::BoxStream<'static, Result<bytes::Bytes, Error>>>,
    piece: bytes::Bytes,
}

impl Pieces {
    fn new(location: Location, answer: GetResult) -> Self {
        Self { location, stream: Some(answer.into_stream()), piece: bytes::Bytes::new() }
    }
}

impl io::Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            let Some(mut stream) = self.stream.take() else { return Ok(0) };
            let (next, stream) = wait(async move { (stream.next().await, stream) })?;
            match next {
                None => return Ok(0),
                Some(Ok(piece)) => (self.piece, self.stream) = (piece, Some(stream)),
                Some(Err(error)) => {
                    return Err(self.location.failure(&error).into_io(&self.location.name));
                }
            }
        }
        let got = buffer.len().min(self.piece.len());
        buffer[..got].copy_from_slice(&self.piece.split_to(got));
        Ok(got)
    }
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;
    use object_store::throttle::{ThrottleConfig, ThrottledStore};

    use super::*;

    #[test]
    fn server_that_sends_byte_by_byte_is_given_up() {
        let slow = ThrottleConfig {
            wait_get_per_byte: Duration::from_secs(29),
            ..ThrottleConfig::default()
        };
        let store = Arc::new(ThrottledStore::new(InMemory::new(), slow));
        let path = Path::from("object");
        // Its time passes as fast as nothing else is to do.
        let runtime =
            Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        let error = runtime.block_on(async {
            let put = store.put(&path, PutPayload::from(vec![1; 64 << 10])).await;
            put.unwrap();
            let version = Version::of(&store.head(&path).await.unwrap());
            let name = "object".to_owned();
            let location = Location { scheme: Scheme::Http, name, store, path: path.clone() };
            location.range(0..64 << 10, version).await.unwrap_err()
        });
        let is_late = matches!(&error, Failure::Other(io::ErrorKind::TimedOut, _));
        assert!(is_late, "{error:?}");
    }
}
