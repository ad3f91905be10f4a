//! Descriptions of commands: name, key positions, arguments. `COMMAND INFO` and `COMMAND DOCS` show
//! them, and calls are parsed by them.

#![deny(unsafe_code)]

use std::ffi::CStr;

/// The description of a command.
#[derive(Debug)]
pub(crate) struct CommandSpec {
    /// Name in upper case.
    pub(crate) name: &'static CStr,
    /// Summary in one or a few sentences.
    pub(crate) summary: &'static CStr,
    /// Time complexity in O notation.
    pub(crate) complexity: &'static CStr,
    /// The server's command flags: `readonly` or `write deny-oom`, `fast`.
    pub(crate) flags: &'static CStr,
    /// Where the keys are, and how the command accesses them.
    pub(crate) keys: &'static [KeySpec],
    /// The arguments after the name.
    pub(crate) args: &'static [Arg],
}

impl CommandSpec {
    /// Returns the number of arguments with the name; negative: the minimum.
    pub(crate) const fn arity(&self) -> i32 {
        let (mut min, mut is_exact, mut at) = (1, true, 0);
        while at < self.args.len() {
            let arg = &self.args[at];
            is_exact &= !arg.optional && !arg.multiple;
            if !arg.optional {
                min += if arg.token.is_some() && arg.takes_value() { 2 } else { 1 };
            }
            at += 1;
        }
        if is_exact { min } else { -min }
    }

    /// Returns the module's ACL category of the command.
    pub(crate) fn category(&self) -> &'static str {
        match self.name.to_bytes() {
            [b'B', b'F', ..] => "bloom",
            [b'C', b'F', ..] => "cuckoo",
            _ => "petal",
        }
    }
}

/// A range of key arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeySpec {
    /// Index of the first key.
    pub(crate) first: i32,
    /// Index of the last key, relative to the first; -1 for the last argument of the command.
    pub(crate) last: i32,
    /// Access flags, such as [`RO_ACCESS`].
    pub(crate) flags: u64,
}

// The server's key-spec flags (`REDISMODULE_CMD_KEY_*`).
const RO: u64 = 1 << 0;
const RW: u64 = 1 << 1;
const ACCESS: u64 = 1 << 4;
const INSERT: u64 = 1 << 6;
const DELETE: u64 = 1 << 7;

/// Reads the key and returns data from it.
pub(crate) const RO_ACCESS: u64 = RO | ACCESS;
/// Adds data to the key and returns data from it.
pub(crate) const RW_ACCESS_INSERT: u64 = RW | ACCESS | INSERT;
/// Adds data to the key and returns none.
pub(crate) const RW_INSERT: u64 = RW | INSERT;
/// Deletes data from the key and returns whether they were present.
pub(crate) const RW_ACCESS_DELETE: u64 = RW | ACCESS | DELETE;

/// The spec of a command whose only key is its first argument.
pub(crate) const fn first_key(flags: u64) -> KeySpec {
    KeySpec { first: 1, last: 0, flags }
}

/// The description of an argument.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arg {
    pub(crate) name: &'static CStr,
    pub(crate) kind: ArgKind,
    /// The token before the argument, or the argument itself if it is a token.
    pub(crate) token: Option<&'static CStr>,
    pub(crate) optional: bool,
    /// Whether the argument can be repeated.
    pub(crate) multiple: bool,
    /// The alternatives of [`ArgKind::OneOf`].
    pub(crate) parts: &'static [Arg],
}

/// Type of an argument, with the server's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum ArgKind {
    /// Any bytes.
    Text = 0,
    Integer = 1,
    Double = 2,
    Key = 3,
    /// A fixed word.
    Token = 6,
    /// One of several alternatives.
    OneOf = 7,
}

impl Arg {
    pub(crate) const KEY: Self = Self::new(c"key", ArgKind::Key);
    pub(crate) const ITEM: Self = Self::new(c"item", ArgKind::Text);
    pub(crate) const ITEMS: Self = Self::ITEM.multiple();

    /// A required argument.
    pub(crate) const fn new(name: &'static CStr, kind: ArgKind) -> Self {
        Self { name, kind, token: None, optional: false, multiple: false, parts: &[] }
    }

    /// Returns whether the argument is more than its token.
    pub(crate) const fn takes_value(&self) -> bool {
        !matches!(self.kind, ArgKind::Token)
    }

    /// A required token.
    pub(crate) const fn token(name: &'static CStr, token: &'static CStr) -> Self {
        Self { token: Some(token), ..Self::new(name, ArgKind::Token) }
    }

    /// An optional token.
    pub(crate) const fn flag(name: &'static CStr, token: &'static CStr) -> Self {
        Self::token(name, token).optional()
    }

    /// One of several alternatives.
    pub(crate) const fn one_of(name: &'static CStr, parts: &'static [Self]) -> Self {
        Self { parts, ..Self::new(name, ArgKind::OneOf) }
    }

    /// Makes the argument an option: a token and the argument after it, both optional.
    pub(crate) const fn option(self, token: &'static CStr) -> Self {
        self.after(token).optional()
    }

    /// Puts a required token before the argument.
    pub(crate) const fn after(self, token: &'static CStr) -> Self {
        Self { token: Some(token), ..self }
    }

    /// Makes the argument optional.
    pub(crate) const fn optional(self) -> Self {
        Self { optional: true, ..self }
    }

    /// Lets the argument be repeated.
    pub(crate) const fn multiple(self) -> Self {
        Self { multiple: true, ..self }
    }
}
