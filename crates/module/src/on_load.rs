//! The entry point that the server calls when it loads the module.

#![allow(unsafe_code)]

use std::ffi::c_int;

use crate::server::abi::{Context, Text};
use crate::{bindings, commands};

/// Registers the module's commands, data types and settings.
///
/// # Safety
/// Only the server may call this, with a valid context and `count` arguments.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn RedisModule_OnLoad(
    context: *mut Context,
    args: *mut *mut Text,
    count: c_int,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { bindings::load(context, args, count, commands::ALL) }
}
