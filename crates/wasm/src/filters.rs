//! The filters of JavaScript, which names them by numbers.
//!
//! A file is read as a stream. A filter at an address is read by the caller, who alone can wait: [`Filters::next`] names
//! the ranges that are missing, and starts again from the beginning with all that have arrived.

use std::cell::{Cell, RefCell};
use std::io::Read;
use std::ops::Range;
use std::rc::Rc;

use petal::embed::{RangeSource, RemoteFilter};
use petal::{
    BatchResults, BloomFilter, ClassicBloomFilter, ErrorKind, FilterCascade, HashSpec, Membership,
    Secret, StaticFilter,
};
use serde_json::{Value, json};

/// All filters, and what becomes one.
#[derive(Default)]
pub(crate) struct Filters {
    slots: Vec<Option<Slot>>,
}

enum Slot {
    Filter(Filter, String),
    /// A filter at an address, from its first request on.
    Remote(Replay, Option<Secret>),
    Opened(Rc<RemoteFilter>, u64),
    /// Hashes that are queried of a filter at an address.
    Query(Replay, Rc<RemoteFilter>, Vec<u64>),
    /// A number is free only after it was closed.
    Failed,
}

/// A filter in memory: of the types that are published, because the module is downloaded with every page.
enum Filter {
    Bloom(Box<BloomFilter>),
    Classic(Box<ClassicBloomFilter>),
    Static(Box<StaticFilter>),
    Cascade(Box<FilterCascade>),
}

impl Filter {
    /// Reads a file and its metadata.
    fn read(mut file: impl Read, secret: Option<&Secret>) -> petal::Result<(Self, String)> {
        const LAYOUT: std::ops::Range<usize> = 10..12;
        let mut begin = Vec::new();
        file.by_ref().take(LAYOUT.end as u64).read_to_end(&mut begin)?;
        let layout =
            begin.get(LAYOUT).map_or(0, |layout| u16::from_le_bytes([layout[0], layout[1]]));
        let file = begin.as_slice().chain(file);
        Ok(match layout {
            2 => {
                let (filter, metadata) = ClassicBloomFilter::read_from_with(file, secret)?;
                (Self::Classic(Box::new(filter)), metadata)
            }
            8 | 12 => {
                let (filter, metadata) = StaticFilter::read_from_with(file, secret)?;
                (Self::Static(Box::new(filter)), metadata)
            }
            9 => {
                let (filter, metadata) = FilterCascade::read_from_with(file, secret)?;
                (Self::Cascade(Box::new(filter)), metadata)
            }
            // Another type is an error that names it.
            _ => {
                let (filter, metadata) = BloomFilter::read_from_with(file, secret)?;
                (Self::Bloom(Box::new(filter)), metadata)
            }
        })
    }
}

/// Evaluates an expression with the filter of any type. A trait object would keep every method in the module.
macro_rules! with {
    ($filter:expr, $inner:ident => $call:expr) => {
        match $filter {
            Filter::Bloom($inner) => $call,
            Filter::Classic($inner) => $call,
            Filter::Static($inner) => $call,
            Filter::Cascade($inner) => $call,
        }
    };
}

/// [`with`] for a result; an error if the filter never changes.
macro_rules! with_mut {
    ($filter:expr, $inner:ident => $call:expr) => {
        match $filter {
            Filter::Bloom($inner) => Ok($call),
            Filter::Classic($inner) => Ok($call),
            fixed => {
                let text = format!("a {} filter never changes: build it again", with!(fixed, filter => filter.filter_type()));
                Err(Failure { kind: "unsupported", offset: 0, text })
            }
        }
    };
}

/// Why a call failed.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: &'static str,
    offset: u64,
    text: String,
}

type Result<T> = std::result::Result<T, Failure>;

/// Answers to earlier reads, and the ranges of the first one without an answer.
#[derive(Default)]
struct Replay {
    length: u64,
    answers: Vec<Vec<u8>>,
    next: Cell<usize>,
    missing: RefCell<Vec<Range<u64>>>,
}

impl RangeSource for Replay {
    fn length(&self) -> u64 {
        self.length
    }

    fn gap(&self) -> u64 {
        // A request costs more than these bytes.
        8192
    }

    fn read(&self, ranges: &[Range<u64>]) -> petal::Result<Vec<u8>> {
        let at = self.next.replace(self.next.get() + 1);
        match self.answers.get(at) {
            Some(answer) => Ok(answer.clone()),
            None => {
                *self.missing.borrow_mut() = ranges.to_vec();
                Err(std::io::Error::other("the bytes have not arrived").into())
            }
        }
    }
}

impl Replay {
    fn new(length: u64) -> Self {
        Self { length, ..Self::default() }
    }

    /// Runs `read`; returns its result, or the ranges that it needs first.
    fn run<T>(
        &self,
        read: impl FnOnce(&Self) -> petal::Result<T>,
    ) -> Result<std::result::Result<T, Value>> {
        self.next.set(0);
        let result = read(self);
        let missing = std::mem::take(&mut *self.missing.borrow_mut());
        if missing.is_empty() {
            return result.map(Ok).map_err(Failure::of_file);
        }
        let ranges: Vec<[u64; 2]> = missing.iter().map(|range| [range.start, range.end]).collect();
        Ok(Err(json!({ "ranges": ranges })))
    }
}

impl Filters {
    fn add(&mut self, slot: Slot) -> usize {
        let free = self.slots.iter().position(Option::is_none);
        let at = free.unwrap_or(self.slots.len());
        if free.is_none() {
            self.slots.push(None);
        }
        self.slots[at] = Some(slot);
        at
    }

    fn slot(&mut self, at: usize) -> Result<&mut Slot> {
        self.slots
            .get_mut(at)
            .and_then(Option::as_mut)
            .ok_or_else(|| invalid("the filter is closed"))
    }

    fn filter(&mut self, at: usize) -> Result<&mut Filter> {
        match self.slot(at)? {
            Slot::Filter(filter, _) => Ok(filter),
            _ => Err(invalid("the filter is not complete")),
        }
    }

    /// Answers a request whose `op` is one of filters; `None` if it is another one.
    pub(crate) fn call(&mut self, request: &Value, file: impl Read) -> Option<Value> {
        let at = || request["filter"].as_u64().map_or(usize::MAX, |at| at as usize);
        let answer = match request["op"].as_str()? {
            "build" => self.build(request),
            "open" => self.open(request, file),
            "remote" => secret_of(request).map(|secret| {
                let length = request["length"].as_u64().unwrap_or(0);
                json!({ "filter": self.add(Slot::Remote(Replay::new(length), secret)) })
            }),
            "next" => self.next(at()),
            "info" => self.info(at()),
            "close" => Ok(self.close(at())),
            _ => return None,
        };
        Some(answer.unwrap_or_else(|failure| failure.to_json()))
    }

    fn build(&mut self, request: &Value) -> Result<Value> {
        let number = |name: &str| request[name].as_f64().unwrap_or(f64::NAN);
        let mut builder = BloomFilter::builder().fpr(number("fpr"));
        // Numbers of JavaScript: what is no integer was refused there.
        builder = builder.capacity(number("capacity") as u64);
        if let Some(secret) = secret_of(request)? {
            builder = builder.hash(HashSpec::keyed_apart(&secret));
        }
        let filter = Filter::Bloom(Box::new(builder.build()?));
        Ok(json!({ "filter": self.add(Slot::Filter(filter, String::new())) }))
    }

    fn open(&mut self, request: &Value, file: impl Read) -> Result<Value> {
        let read = Filter::read(file, secret_of(request)?.as_ref());
        let (filter, metadata) = read.map_err(Failure::of_file)?;
        Ok(json!({ "filter": self.add(Slot::Filter(filter, metadata)) }))
    }

    fn close(&mut self, at: usize) -> Value {
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = None;
        }
        json!({})
    }

    /// Takes the bytes of the ranges that were missing.
    pub(crate) fn push(&mut self, at: usize, bytes: &[u8]) -> Result<()> {
        match self.slot(at)? {
            Slot::Remote(replay, _) | Slot::Query(replay, ..) => {
                replay.answers.push(bytes.to_vec())
            }
            _ => return Err(invalid("the filter takes no bytes")),
        }
        Ok(())
    }

    /// Goes on after bytes have arrived: returns the ranges that are missing, or the result.
    fn next(&mut self, at: usize) -> Result<Value> {
        let slot = self.slot(at)?;
        let ready = json!({ "ready": true });
        let (now, result) = match std::mem::replace(slot, Slot::Failed) {
            Slot::Remote(replay, secret) => {
                match replay.run(|source| RemoteFilter::open(source, secret.as_ref()))? {
                    Ok(filter) => (Slot::Opened(Rc::new(filter), replay.length), ready),
                    Err(ranges) => (Slot::Remote(replay, secret), ranges),
                }
            }
            Slot::Query(replay, filter, hashes) => {
                let mut found = BatchResults::new();
                let read =
                    |source: &Replay| filter.contains_mixed_hashes(source, &hashes, &mut found);
                let result = match replay.run(read)? {
                    Ok(()) => {
                        json!({ "found": (0..hashes.len()).map(|key| found.get(key)).collect::<Vec<_>>() })
                    }
                    Err(ranges) => ranges,
                };
                (Slot::Query(replay, filter, hashes), result)
            }
            other => (other, ready),
        };
        *slot = now;
        Ok(result)
    }

    /// Begins to query keys of a filter at an address; returns the number for [`next`](Self::next).
    pub(crate) fn ask(&mut self, at: usize, keys: &[&[u8]]) -> Result<usize> {
        let Slot::Opened(filter, length) = self.slot(at)? else {
            return Err(invalid("the filter is not at an address"));
        };
        let mut hashes = Vec::with_capacity(keys.len());
        filter.hash_spec().hash_all(keys.iter().copied(), &mut hashes);
        let query = Slot::Query(Replay::new(*length), Rc::clone(filter), hashes);
        Ok(self.add(query))
    }

    pub(crate) fn contains(&mut self, at: usize, key: &[u8]) -> Result<bool> {
        Ok(with!(self.filter(at)?, filter => filter.contains(key)))
    }

    pub(crate) fn insert(&mut self, at: usize, key: &[u8]) -> Result<bool> {
        with_mut!(self.filter(at)?, filter => filter.insert(key))
    }

    /// Looks up or inserts many keys.
    pub(crate) fn batch(
        &mut self,
        at: usize,
        keys: &[&[u8]],
        insert: bool,
    ) -> Result<BatchResults> {
        let filter = self.filter(at)?;
        let (mut hashes, mut results) = (Vec::with_capacity(keys.len()), BatchResults::new());
        with!(&*filter, filter => filter.hash_spec()).hash_all(keys.iter().copied(), &mut hashes);
        match insert {
            true => with_mut!(filter, filter => filter.insert_mixed_hashes(&hashes, &mut results))?,
            false => with!(filter, filter => filter.contains_mixed_hashes(&hashes, &mut results)),
        }
        Ok(results)
    }

    /// Returns the bytes of the filter's file.
    pub(crate) fn file_of(&mut self, at: usize) -> Result<Vec<u8>> {
        let Slot::Filter(filter, metadata) = self.slot(at)? else {
            return Err(invalid("the filter is not complete"));
        };
        let mut bytes = Vec::new();
        with!(filter, filter => filter.write_to(&mut bytes, metadata))?;
        Ok(bytes)
    }

    fn info(&mut self, at: usize) -> Result<Value> {
        Ok(match self.slot(at)? {
            Slot::Filter(filter, metadata) => {
                let (filter_type, stats) =
                    with!(filter, filter => (filter.filter_type(), filter.stats()));
                json!({
                    "type": filter_type.name(),
                    "inserted": stats.inserted,
                    "capacity": (stats.capacity > 0).then_some(stats.capacity),
                    "sizeBytes": stats.size_bytes,
                    "targetFpr": (stats.target_fpr > 0.0).then_some(stats.target_fpr),
                    "estimatedFpr": stats.estimated_fpr,
                    "metadata": metadata,
                })
            }
            Slot::Opened(filter, length) => json!({
                "type": filter.filter_type().name(),
                "inserted": filter.inserted(),
                "sizeBytes": length,
                "metadata": filter.metadata(),
            }),
            _ => return Err(invalid("the filter is not complete")),
        })
    }
}

/// Returns the secret of a request, 32 hexadecimal digits.
fn secret_of(request: &Value) -> Result<Option<Secret>> {
    let Some(digits) = request["secret"].as_str() else { return Ok(None) };
    let number = u128::from_str_radix(digits, 16).ok().filter(|_| digits.len() == 32);
    let number = number.ok_or_else(|| invalid("secret: expected 16 bytes"))?;
    Ok(Some(Secret::new(number.swap_bytes().to_le_bytes())))
}

pub(crate) fn invalid(text: &str) -> Failure {
    Failure { kind: "invalid", offset: 0, text: text.to_owned() }
}

impl Failure {
    pub(crate) fn to_json(&self) -> Value {
        json!({ "error": self.text, "kind": self.kind, "offset": self.offset })
    }

    /// Returns why a file is not opened.
    fn of_file(error: petal::Error) -> Self {
        let failure = match error.kind() {
            ErrorKind::Invalid { parameter: "type of filter", found, .. } => {
                let text = format!(
                    "{found} filters are not read in JavaScript: expected bloom, classic, static, static-fuse or cascade"
                );
                return Self { kind: "unsupported", offset: 10, text };
            }
            _ => Self::from(error),
        };
        match failure.kind {
            "invalid" => Self { kind: "damaged", ..failure },
            _ => failure,
        }
    }
}

impl From<petal::Error> for Failure {
    fn from(error: petal::Error) -> Self {
        let (kind, offset) = match error.kind() {
            ErrorKind::NotPetal { .. } => ("foreign", 0),
            ErrorKind::UnsupportedVersion { .. } => ("unsupported", 8),
            ErrorKind::Unsupported { .. } => ("unsupported", 0),
            ErrorKind::WrongLength { expected, found } => ("damaged", *expected.min(found)),
            ErrorKind::Corrupt { offset, .. } => ("damaged", *offset),
            ErrorKind::SecretMissing | ErrorKind::WrongSecret => ("secret", 0),
            ErrorKind::Alloc { .. } | ErrorKind::NoMemory { .. } => ("memory", 0),
            _ => ("invalid", 0),
        };
        Self { kind, offset, text: error.to_string() }
    }
}
