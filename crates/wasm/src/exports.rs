//! The functions that the page calls, and the buffer that requests and answers are in. Exported names are **unsafe**
//! attributes; there is no other unsafe code.
#![allow(unsafe_code, reason = "exported names")]

use std::sync::Mutex;

/// A request, then its answer.
static BUFFER: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Makes the buffer `length` bytes long and returns its address, for a request.
// SAFETY: the name is of this module alone.
#[unsafe(no_mangle)]
extern "C" fn petal_request(length: usize) -> *mut u8 {
    let mut buffer = BUFFER.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    buffer.clear();
    buffer.resize(length, 0);
    buffer.as_mut_ptr()
}

/// Replaces the request in the buffer by its answer and returns the answer's length.
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn petal_call() -> usize {
    let mut buffer = BUFFER.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    *buffer = crate::call(&String::from_utf8_lossy(&buffer)).into_bytes();
    buffer.len()
}

/// Returns the address of the answer.
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn petal_answer() -> *const u8 {
    BUFFER.lock().unwrap_or_else(std::sync::PoisonError::into_inner).as_ptr()
}
