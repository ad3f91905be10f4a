//! The module as the server sees it: its commands, data types, settings and `INFO` section.
//!
//! With `server` this is the only module with `unsafe` code. Above it all code is safe: a command
//! gets a [`Call`], the value of a key is a [`StoredFilter`](crate::filters::StoredFilter), and
//! panics are caught before they reach the server.
//!
//! All `unsafe` blocks rely on this:
//! - the server runs commands and callbacks on one thread, but frees values on another;
//! - a `Context`, the arguments and the keys of a call live as long as the call;
//! - a value of one of the module's data types is a `Box<StoredFilter>` that the module created,
//!   and nothing else accesses it while a command holds its key open; a value that no command uses
//!   is a `Box<Sketch>`.

#![allow(unsafe_code)]

mod call;
pub(crate) mod command_spec;
pub(crate) mod config;
mod data_types;
mod info;
mod key;
pub(crate) mod metrics;
mod register;
mod register_config;
mod sketch_types;

use std::ffi::c_int;

pub(crate) use call::{Call, ReplicatedArg};
pub(crate) use key::{KeyContent, ReadKey, WriteKey, not_usable};
pub(crate) use register::CommandEntry;

use crate::server::abi::{self, Context, Text};
use crate::server::{self, warn};

/// A command.
pub(crate) trait Command {
    /// The description that the server shows.
    const SPEC: command_spec::CommandSpec;

    /// The loss of the key if the command fails during replay.
    const REPLAY_LOSS: ReplayLoss = ReplayLoss::Nothing;

    /// Executes the command and replies.
    ///
    /// # Errors
    /// The error reply, if nothing has been replied yet.
    fn run(call: &Call<'_>) -> Result<(), ReplyError>;
}

/// The loss of a key if a command from a master or an append-only file fails.
///
/// Such a command succeeded once, so without it the filter would return wrong results. The filter
/// is replaced by a damaged one, which replies with errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplayLoss {
    /// Nothing, or the command handles its failures itself.
    Nothing,
    /// The filter, if the key is missing: the next command would create one with default settings.
    Filter,
    /// Items, unless the key holds a filter of another type.
    Items,
    /// Items of other keys, whatever the error.
    Sources,
}

/// An error reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReplyError {
    /// The key holds a value of another type.
    WrongType,
    /// The key already holds a complete filter; the text of the error.
    KeyExists(&'static str),
    /// Wrong number of arguments.
    WrongArity,
    /// A fixed text, which begins with the error code.
    Static(&'static str),
    /// A formatted text, which begins with the error code.
    Message(String),
}

impl ReplyError {
    /// The key is missing.
    pub(crate) const NOT_FOUND: Self = Self::Static("ERR not found");
}

/// Registers the module with these commands.
///
/// # Safety
/// The arguments must be those that the server passed to `RedisModule_OnLoad`.
pub(crate) unsafe fn load(
    context: *mut Context,
    args: *mut *mut Text,
    count: c_int,
    commands: &[CommandEntry],
) -> c_int {
    // SAFETY: as the caller promises. If a function is missing there is no way to log it.
    if !unsafe { server::find(context) } {
        return abi::ERR;
    }
    petal::embed::use_global_allocator();
    // SAFETY: as the caller promises.
    let loaded = std::panic::catch_unwind(|| unsafe {
        register::register_all(context, &Call::new(context, args, count), commands)
    });
    match loaded {
        Ok(Ok(())) => abi::OK,
        Ok(Err(error)) => {
            warn(context, &error);
            abi::ERR
        }
        Err(_) => abi::ERR,
    }
}
