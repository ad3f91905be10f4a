//! The server that the module is loaded into: its functions, found by name, and its memory.
//!
//! [`abi`] declares them, [`memory`] makes the server's allocator that of all Rust code here.
//! Nothing above this room and `ffi` calls the server.
//!
//! Facts that all blocks rely on: a function found under a name has the type declared for it; the
//! server outlives the module.

#![allow(unsafe_code)]

pub(crate) mod abi;
mod memory;

use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::OnceLock;

use abi::{Api, Context, Text};
#[cfg(test)]
pub(crate) use memory::allocations;
pub(crate) use memory::{copied_bytes, held, is_plain, zeroed_bytes};

static API: OnceLock<Api> = OnceLock::new();

/// The server's functions, once the module is loaded.
#[inline]
pub(crate) fn loaded() -> Option<&'static Api> {
    API.get()
}

/// The server's functions, for whoever runs because the server called.
#[inline]
pub(crate) fn api() -> &'static Api {
    match API.get() {
        Some(api) => api,
        None => without_server(),
    }
}

#[cold]
fn without_server() -> ! {
    panic!("only a server calls this")
}

/// Finds the server's functions, and makes its memory ours. `false` if one is lacking, or if this
/// was done before.
///
/// # Safety
/// The context is one that a server gave to a module that it loads.
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
    memory::try_alignment(&api);
    API.set(api).is_ok()
}

/// A line in the server's log.
pub(crate) fn warn(context: *mut Context, what: &str) {
    let line = c_string(what);
    // SAFETY: the format takes one string, which lives until the call is over.
    unsafe { (api().log)(context, c"warning".as_ptr(), c"petal: %s".as_ptr(), line.as_ptr()) };
}

/// Text for C; what is behind a zero byte is lost.
pub(crate) fn c_string(text: &str) -> CString {
    CString::new(text.split('\0').next().unwrap_or("")).unwrap_or_default()
}

/// The bytes of a text of the server.
///
/// # Safety
/// The text must live as long as what is returned is used.
#[inline]
pub(crate) unsafe fn bytes_of<'a>(text: *const Text) -> &'a [u8] {
    let mut length = 0;
    // SAFETY: a text of the server; its bytes are as many as it says.
    unsafe {
        let bytes = (api().text_bytes)(text, &raw mut length);
        if bytes.is_null() { &[] } else { std::slice::from_raw_parts(bytes.cast(), length) }
    }
}
