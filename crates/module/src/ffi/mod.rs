//! What the server calls, and what commands call it with.
//!
//! With `server` the only room with unsafe code. Everything above is safe Rust: a command gets a
//! [`Call`], a type's value is an [`Object`](crate::object::Object), and a panic is stopped here,
//! before it ends the server.
//!
//! The facts that all blocks rely on: the server runs commands and callbacks on one thread, but
//! frees values on another; a `Context`, its words and its keys live as long as the call; a value
//! of one of our types was made by us, is a `Box<Object>`, and is given to nobody else while a
//! command holds its key.

#![allow(unsafe_code)]

mod call;
mod register;
mod types;

use std::ffi::{CStr, c_int};

pub(crate) use call::{Call, Found, Opened, Read, Word, incomplete};
pub(crate) use register::Entry;

use crate::server::abi::{self, Context, Text};
use crate::server::{self, warn};

/// The module's name for the server.
const NAME: &CStr = c"petal";

/// A command: what is told of it, and what it does.
pub(crate) trait Command {
    /// What is told of it.
    const ABOUT: crate::about::About;

    /// What a key lacks if the command fails while a log is replayed.
    const LOSES: Loses = Loses::Nothing;

    /// Does it, and replies.
    ///
    /// # Errors
    /// What to reply instead, if nothing has been replied.
    fn run(call: &Call<'_>) -> Result<(), Failure>;
}

/// What a key lacks if a command fails that a master or an append-only file sends. Such a command
/// succeeded once, so the key would answer wrongly from then on: it becomes a damaged filter, which
/// answers with errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loses {
    /// Nothing, or the command itself looks at why it failed.
    Nothing,
    /// The filter, if there is none: the next command would make one with default settings.
    Filter,
    /// Items, unless the key holds a filter that the command is not for.
    Items,
    /// Items of other keys, whatever the error.
    Sources,
}

/// What is replied instead of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The key holds something else.
    WrongType,
    /// The key holds another filter already, which has all its items: an error in words.
    Exists(&'static str),
    /// Too few words, or too many.
    Arity,
    /// An error in words, the first of which is its code.
    Says(&'static str),
    /// As above, with numbers in it.
    Told(String),
}

/// Loads the module, with these commands.
///
/// # Safety
/// Only for what the server hands over when it loads a module.
pub(crate) unsafe fn load(
    context: *mut Context,
    words: *mut *mut Text,
    count: c_int,
    commands: &[Entry],
) -> c_int {
    // SAFETY: as the caller promises. If a function is lacking there is no way to say so.
    if !unsafe { server::find(context) } {
        return abi::ERR;
    }
    petal::use_allocator_only();
    // SAFETY: as the caller promises.
    let loaded = std::panic::catch_unwind(|| unsafe {
        register::everything(context, &Call::new(context, words, count), commands)
    });
    match loaded {
        Ok(Ok(())) => abi::OK,
        Ok(Err(what)) => {
            warn(context, &what);
            abi::ERR
        }
        Err(_) => abi::ERR,
    }
}
