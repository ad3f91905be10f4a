//! Raw bindings to the server that loads the module: its C functions and its allocator.
//!
//! [`abi`] declares the functions, [`allocator`] makes the server's allocator Rust's global one.
//! Only this module and `bindings` call the server.
//!
//! All `unsafe` blocks rely on this: a function that the server returns for a name has the type
//! declared for it, and the server outlives the module.

#![allow(unsafe_code)]

pub(crate) mod abi;
mod allocator;
mod fields;

use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::OnceLock;

use abi::{Api, Context, Text};
#[cfg(test)]
pub(crate) use allocator::count_allocations;
pub(crate) use allocator::{allocated_bytes, copied_bytes, is_plain, zeroed_bytes};
pub(crate) use fields::{FieldReader, FieldWriter};

static API: OnceLock<Api> = OnceLock::new();

/// Returns the server's functions; `None` before the module is loaded.
#[inline]
pub(crate) fn loaded() -> Option<&'static Api> {
    API.get()
}

/// Returns the server's functions.
///
/// # Panics
/// If the module is not loaded. Code that the server calls never panics here.
#[inline]
pub(crate) fn api() -> &'static Api {
    match API.get() {
        Some(api) => api,
        None => not_loaded(),
    }
}

#[cold]
fn not_loaded() -> ! {
    panic!("the module is not loaded into a server")
}

/// Looks up the server's functions and switches to its allocator. Returns `false` if a required
/// function is missing, or if this was called before.
///
/// # Safety
/// `context` must be the one that the server passed to `RedisModule_OnLoad`.
pub(crate) unsafe fn find(context: *mut Context) -> bool {
    // SAFETY: the first word of such a context is the function that finds all others.
    let api = unsafe {
        let find = *context.cast::<unsafe extern "C" fn(*const c_char, *mut c_void) -> c_int>();
        Api::find(|name| {
            let mut function: *mut c_void = std::ptr::null_mut();
            find(name.as_ptr(), (&raw mut function).cast());
            function
        })
    };
    let Ok(api) = api else { return false };
    allocator::detect_natural_alignment(&api);
    API.set(api).is_ok()
}

/// Writes a warning to the server's log.
pub(crate) fn warn(context: *mut Context, message: &str) {
    let line = c_string(message);
    // SAFETY: the format takes one string, which lives until the call returns.
    unsafe { (api().log)(context, c"warning".as_ptr(), c"petal: %s".as_ptr(), line.as_ptr()) };
}

/// Converts text to a C string, truncated at the first zero byte.
pub(crate) fn c_string(text: &str) -> CString {
    CString::new(text.split('\0').next().unwrap_or("")).unwrap_or_default()
}

/// Returns the bytes of a server string.
///
/// # Safety
/// `text` must outlive `'a`.
#[inline]
pub(crate) unsafe fn bytes_of<'a>(text: *const Text) -> &'a [u8] {
    let mut length = 0;
    // SAFETY: a string of the server; it has `length` bytes.
    unsafe {
        let bytes = (api().text_bytes)(text, &raw mut length);
        if bytes.is_null() { &[] } else { std::slice::from_raw_parts(bytes.cast(), length) }
    }
}
