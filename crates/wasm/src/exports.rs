//! The functions that JavaScript calls, and the buffer through which bytes go both ways. Exported names are **unsafe**
//! attributes; there is no other unsafe code.
#![allow(unsafe_code, reason = "exported names")]

use std::cell::RefCell;
use std::io::Read;

use serde_json::Value;

use crate::filters::{Failure, Filters, invalid};

thread_local! {
    /// A request, then its answer.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static FILTERS: RefCell<Filters> = RefCell::default();
}

/// What a function returns after an error, which is in the buffer.
const FAILED: i32 = -1;

/// Runs a function with the filters and the buffer; an error goes to the buffer.
fn with(run: impl FnOnce(&mut Filters, &mut Vec<u8>) -> Result<i32, Failure>) -> i32 {
    FILTERS.with_borrow_mut(|filters| {
        BUFFER.with_borrow_mut(|buffer| {
            run(filters, buffer).unwrap_or_else(|failure| {
                *buffer = failure.to_json().to_string().into_bytes();
                FAILED
            })
        })
    })
}

#[cfg(target_arch = "wasm32")]
#[link(wasm_import_module = "petal")]
unsafe extern "C" {
    /// Copies the next bytes of the file that JavaScript opens, at most `length`, to `at`; returns their number, or
    /// -1 after an error, which JavaScript keeps.
    safe fn read(at: *mut u8, length: usize) -> usize;
}

/// The file that JavaScript opens.
struct OpenedFile;

impl Read for OpenedFile {
    #[cfg(target_arch = "wasm32")]
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let length = read(bytes.as_mut_ptr(), bytes.len());
        match length <= bytes.len() {
            true => Ok(length),
            false => Err(std::io::Error::other("the file cannot be read")),
        }
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        Ok(0)
    }
}

/// Makes the buffer `length` bytes long, and returns its address; 0 if there is no memory.
// SAFETY: the name is of this module alone.
#[unsafe(no_mangle)]
extern "C" fn petal_request(length: usize) -> *mut u8 {
    BUFFER.with_borrow_mut(|buffer| {
        if buffer.try_reserve(length.saturating_sub(buffer.len())).is_err() {
            return std::ptr::null_mut();
        }
        buffer.resize(length, 0);
        buffer.as_mut_ptr()
    })
}

/// Replaces the request in JSON in the buffer by its answer.
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn petal_call() {
    with(|filters, buffer| {
        let request: Option<Value> = serde_json::from_slice(buffer).ok();
        let answer = request.and_then(|request| filters.call(&request, OpenedFile));
        *buffer = match answer {
            Some(answer) => answer.to_string(),
            None => crate::call(&String::from_utf8_lossy(buffer)),
        }
        .into_bytes();
        Ok(0)
    });
}

/// Returns the address of the answer, or of an error.
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn petal_answer() -> *const u8 {
    BUFFER.with_borrow(|buffer| buffer.as_ptr())
}

/// Returns the length of the answer, or of an error.
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn petal_answer_length() -> usize {
    BUFFER.with_borrow(Vec::len)
}

/// Frees the memory of the buffer, after large requests and answers.
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn petal_done() {
    BUFFER.take();
}

/// Gives the bytes in the buffer to a filter that is read.
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn petal_push(filter: usize) -> i32 {
    with(|filters, buffer| filters.push(filter, buffer).map(|()| 0))
}

/// Returns 1 if the key, the first `length` bytes in the buffer, may be in the filter, and 0 if it certainly is not.
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn petal_has(filter: usize, length: usize) -> i32 {
    with(|filters, buffer| filters.contains(filter, key_of(buffer, length)?).map(i32::from))
}

/// Inserts the key in the buffer; returns 1 if it certainly was not in the filter.
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn petal_add(filter: usize, length: usize) -> i32 {
    with(|filters, buffer| filters.insert(filter, key_of(buffer, length)?).map(i32::from))
}

/// Looks up `count` keys, or inserts them; replaces them by a byte for each result.
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn petal_batch(filter: usize, count: usize, insert: bool) -> i32 {
    with(|filters, buffer| {
        let results = filters.batch(filter, &keys_of(buffer, count)?, insert)?;
        *buffer = (0..count).map(|key| results.get(key).into()).collect();
        Ok(0)
    })
}

/// Begins to query `count` keys of a filter at an address; returns the number of the query.
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn petal_ask(filter: usize, count: usize) -> i32 {
    with(|filters, buffer| filters.ask(filter, &keys_of(buffer, count)?).map(|query| query as i32))
}

/// Writes the filter's file to the buffer.
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn petal_file(filter: usize) -> i32 {
    with(|filters, buffer| {
        *buffer = filters.file_of(filter)?;
        Ok(0)
    })
}

fn key_of(buffer: &[u8], length: usize) -> Result<&[u8], Failure> {
    buffer.get(..length).ok_or_else(|| invalid("a key is longer than the buffer"))
}

/// Splits the buffer: the length of each key in four bytes, the lowest first, then all keys.
fn keys_of(buffer: &[u8], count: usize) -> Result<Vec<&[u8]>, Failure> {
    let split = count.checked_mul(4).and_then(|length| buffer.split_at_checked(length));
    let (lengths, mut rest) = split.ok_or_else(|| invalid("keys without lengths"))?;
    let split = |length: &[u8; 4]| {
        let (key, later) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        rest = later;
        Some(key)
    };
    let keys: Option<Vec<_>> = lengths.as_chunks().0.iter().map(split).collect();
    keys.ok_or_else(|| invalid("keys are longer than the buffer"))
}
