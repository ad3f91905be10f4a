//! What the server and its users are told of a command: name, arity, where keys are, arguments in
//! words. `COMMAND INFO` and `COMMAND DOCS` show it.

use std::ffi::CStr;

/// A command's description.
#[derive(Debug)]
pub(crate) struct About {
    /// In upper case, as documentation writes it.
    pub(crate) name: &'static CStr,
    /// One sentence.
    pub(crate) summary: &'static CStr,
    /// In the field's O notation.
    pub(crate) complexity: &'static CStr,
    /// petal's version that had it first.
    pub(crate) since: &'static CStr,
    /// Words with the name; at least so many if negative.
    pub(crate) arity: i32,
    /// The server's words: `readonly` or `write deny-oom`, `fast`.
    pub(crate) flags: &'static CStr,
    /// Which keys it takes, and what it does to them.
    pub(crate) keys: &'static [Keys],
    /// What stands behind the name.
    pub(crate) args: &'static [Arg],
    /// Own ACL categories, where a server has such.
    pub(crate) categories: &'static CStr,
}

/// Keys in a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keys {
    /// The word of the first.
    pub(crate) first: i32,
    /// The word of the last, counted from the first; -1 for the last word of all.
    pub(crate) last: i32,
    /// What is done to them: see [`ASKED`] and its neighbours.
    pub(crate) flags: u64,
}

/// The key is read, and what is in it told.
pub(crate) const ASKED: u64 = 1 << 0 | 1 << 4;
/// The key is changed, and something of what was in it told.
pub(crate) const CHANGED: u64 = 1 << 1 | 1 << 4 | 1 << 6;
/// The key is changed, and nothing of what was in it told.
pub(crate) const PUT: u64 = 1 << 1 | 1 << 6;
/// Something in the key is deleted, and it is told whether it was there.
pub(crate) const REMOVED: u64 = 1 << 1 | 1 << 4 | 1 << 7;

/// The first word is the only key.
pub(crate) const fn key(flags: u64) -> Keys {
    Keys { first: 1, last: 0, flags }
}

/// A word, or words, behind a command's name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arg {
    /// Its name.
    pub(crate) name: &'static CStr,
    /// What it is.
    pub(crate) kind: ArgKind,
    /// The word that stands before it, or that it is.
    pub(crate) token: Option<&'static CStr>,
    /// Whether it may be left out.
    pub(crate) optional: bool,
    /// Whether there may be several.
    pub(crate) multiple: bool,
    /// Its parts, or what there is to choose from.
    pub(crate) parts: &'static [Arg],
}

/// What an argument is, by the server's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum ArgKind {
    /// Any bytes.
    Text = 0,
    /// A whole number.
    Integer = 1,
    /// A number.
    Double = 2,
    /// A key of the server.
    Key = 3,
    /// A word that stands for itself.
    Token = 6,
    /// One of its parts.
    OneOf = 7,
}

impl Arg {
    /// A word that must be there.
    pub(crate) const fn new(name: &'static CStr, kind: ArgKind) -> Self {
        Self { name, kind, token: None, optional: false, multiple: false, parts: &[] }
    }

    /// The key.
    pub(crate) const fn key() -> Self {
        Self::new(c"key", ArgKind::Key)
    }

    /// An item.
    pub(crate) const fn item() -> Self {
        Self::new(c"item", ArgKind::Text)
    }

    /// A word for itself.
    pub(crate) const fn word(name: &'static CStr, token: &'static CStr) -> Self {
        Self { token: Some(token), ..Self::new(name, ArgKind::Token) }
    }

    /// A word for itself, which may be left out.
    pub(crate) const fn flag(name: &'static CStr, token: &'static CStr) -> Self {
        Self::word(name, token).or_nothing()
    }

    /// It stands behind a word and may be left out with it.
    pub(crate) const fn after(self, token: &'static CStr) -> Self {
        Self { token: Some(token), ..self }.or_nothing()
    }

    /// It stands behind a word.
    pub(crate) const fn named(self, token: &'static CStr) -> Self {
        Self { token: Some(token), ..self }
    }

    /// It may be left out.
    pub(crate) const fn or_nothing(self) -> Self {
        Self { optional: true, ..self }
    }

    /// There may be several.
    pub(crate) const fn or_more(self) -> Self {
        Self { multiple: true, ..self }
    }

    /// One of these.
    pub(crate) const fn one_of(name: &'static CStr, parts: &'static [Self]) -> Self {
        Self { parts, ..Self::new(name, ArgKind::OneOf) }
    }
}
