//! Where the server comes in: it calls this when it loads the module.

#![allow(unsafe_code)]

use std::ffi::c_int;

use crate::server::abi::{Context, Text};
use crate::{commands, ffi};

/// Called by the server when it loads the module.
///
/// # Safety
/// Only the server calls it, with a context and words of its own.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn RedisModule_OnLoad(
    context: *mut Context,
    words: *mut *mut Text,
    count: c_int,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { ffi::load(context, words, count, commands::ALL) }
}
