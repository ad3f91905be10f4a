//! One call of a command: arguments, keys, replies, replication.

use std::cell::Cell;
use std::ffi::{CStr, c_int, c_long};

use super::key::{KeyContent, ReadKey, WriteKey};
use super::{ReplayLoss, ReplyError};
use crate::filters::{Clock, StoredFilter};
use crate::server::abi::{self, Context, Text};
use crate::server::{api, bytes_of, c_string, warn};

/// One call of a command.
pub(crate) struct Call<'a> {
    context: *mut Context,
    args: &'a [*mut Text],
    replied: Cell<bool>,
}

/// An argument of a replicated command.
pub(crate) enum ReplicatedArg<'a> {
    /// The argument of the call at this index.
    FromCall(usize),
    Bytes(&'a [u8]),
}

impl<'a> Call<'a> {
    /// # Safety
    /// The server passed the arguments, and the call outlives the returned value.
    pub(super) unsafe fn new(context: *mut Context, args: *mut *mut Text, count: c_int) -> Self {
        let count = usize::try_from(count).unwrap_or(0);
        let args = if count == 0 || args.is_null() {
            &[][..]
        } else {
            // SAFETY: the server passes `count` arguments.
            unsafe { std::slice::from_raw_parts(args, count) }
        };
        Self { context, args, replied: Cell::new(false) }
    }

    /// Returns the number of arguments, including the name of the command.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.args.len()
    }

    /// Returns an error if the number of arguments, including the name of the command, is not the
    /// arity; a negative arity is a minimum.
    #[inline]
    pub(super) fn check_arity(&self, arity: i32) -> Result<(), ReplyError> {
        let expected = arity.unsigned_abs() as usize;
        let valid = self.len() == expected || (arity < 0 && self.len() > expected);
        if valid { Ok(()) } else { Err(ReplyError::WrongArity) }
    }

    /// Returns the argument at an index; empty after the last.
    #[inline]
    pub(crate) fn arg(&self, index: usize) -> &'a [u8] {
        match self.args.get(index) {
            // SAFETY: an argument lives as long as the call.
            Some(arg) => unsafe { bytes_of(*arg) },
            None => &[],
        }
    }

    /// Returns the arguments from an index on.
    pub(crate) fn args_from(
        &self,
        index: usize,
    ) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone {
        let args = self.args.get(index..).unwrap_or(&[]);
        // SAFETY: as above.
        args.iter().map(|arg| unsafe { bytes_of(*arg) })
    }

    /// Returns whether the command comes from a master or an append-only file, where it succeeded.
    pub(crate) fn is_replay(&self) -> bool {
        // SAFETY: the context lives.
        let flags = unsafe { (api().context_flags)(self.context) };
        flags & (abi::FLAG_REPLICATED | abi::FLAG_LOADING) != 0
    }

    /// Returns whether this is a `PETAL.*` command.
    pub(crate) fn is_petal_command(&self) -> bool {
        self.arg(0).get(..6).is_some_and(|name| name.eq_ignore_ascii_case(b"petal."))
    }

    /// Returns whether the client uses RESP3.
    pub(crate) fn is_resp3(&self) -> bool {
        // SAFETY: the context lives.
        unsafe { (api().context_flags)(self.context) & abi::FLAG_RESP3 != 0 }
    }

    /// Returns a random key for a keyed hash.
    pub(crate) fn random_key(&self) -> [u8; 16] {
        let mut key = [0; 16];
        // SAFETY: `key` has that length.
        unsafe { (api().random_bytes)(key.as_mut_ptr(), key.len()) };
        key
    }

    // ---- Keys -----------------------------------------------------------------------------------

    /// Opens the key at an argument index for reading.
    #[inline]
    pub(crate) fn open_read(&self, index: usize) -> ReadKey<'_> {
        ReadKey::new(self.open(index, abi::READ))
    }

    /// Opens the key at an argument index for writing.
    #[inline]
    pub(crate) fn open_write(&self, index: usize) -> WriteKey<'_> {
        self.open(index, abi::READ | abi::WRITE)
    }

    #[inline]
    fn open(&self, index: usize, mode: c_int) -> WriteKey<'_> {
        WriteKey::new(match self.args.get(index) {
            // SAFETY: context and argument live; the mode is one of the server's.
            Some(name) => unsafe { (api().open_key)(self.context, *name, mode) },
            None => std::ptr::null_mut(),
        })
    }

    // ---- Replies --------------------------------------------------------------------------------

    /// Returns the context for a reply, and notes that there is one.
    #[inline]
    fn reply(&self) -> *mut Context {
        self.replied.set(true);
        self.context
    }

    /// Replies with an integer.
    #[inline]
    pub(crate) fn integer(&self, number: i64) {
        // SAFETY: the context lives, here and in all replies below.
        unsafe { (api().reply_integer)(self.reply(), number) };
    }

    /// Replies with an integer, at most `i64::MAX`.
    pub(crate) fn count(&self, number: u64) {
        self.integer(i64::try_from(number).unwrap_or(i64::MAX));
    }

    /// Replies with a boolean: 1 or 0 in RESP2.
    #[inline]
    pub(crate) fn boolean(&self, value: bool) {
        // SAFETY: as above.
        unsafe { (api().reply_bool)(self.reply(), value.into()) };
    }

    pub(crate) fn double(&self, number: f64) {
        // SAFETY: as above.
        unsafe { (api().reply_double)(self.reply(), number) };
    }

    /// Replies with a bulk string.
    pub(crate) fn bytes(&self, bytes: &[u8]) {
        // SAFETY: as above; the slice has that length.
        unsafe { (api().reply_bytes)(self.reply(), bytes.as_ptr().cast(), bytes.len()) };
    }

    /// Replies with a simple string.
    pub(crate) fn simple(&self, text: &CStr) {
        // SAFETY: as above.
        unsafe { (api().reply_simple)(self.reply(), text.as_ptr()) };
    }

    pub(crate) fn ok(&self) {
        self.simple(c"OK");
    }

    /// Begins an array of `length` replies.
    pub(crate) fn array(&self, length: usize) {
        // SAFETY: as above; no reply is longer than `c_long::MAX`.
        unsafe { (api().reply_array)(self.reply(), length as c_long) };
    }

    /// Replies with an array of booleans.
    pub(crate) fn booleans(&self, length: usize, value: impl Fn(usize) -> bool) {
        self.array(length);
        (0..length).for_each(|at| self.boolean(value(at)));
    }

    /// Begins a map of `pairs` pairs: a flat array in RESP2.
    pub(crate) fn map(&self, pairs: usize) {
        // SAFETY: as above.
        unsafe { (api().reply_map)(self.reply(), pairs as c_long) };
    }

    pub(crate) fn null(&self) {
        // SAFETY: as above.
        unsafe { (api().reply_null)(self.reply()) };
    }

    /// Replies with an error, alone or as an element of an array.
    pub(crate) fn error(&self, error: &ReplyError) {
        let reply = |text: &CStr| {
            // SAFETY: as above.
            unsafe { (api().reply_error)(self.reply(), text.as_ptr()) };
        };
        match error {
            ReplyError::WrongType => {
                reply(c"WRONGTYPE Operation against a key holding the wrong kind of value");
            }
            ReplyError::WrongArity => {
                // SAFETY: as above.
                unsafe { (api().wrong_arity)(self.reply()) };
            }
            ReplyError::Static(text) | ReplyError::KeyExists(text) => reply(&c_string(text)),
            ReplyError::Message(text) => reply(&c_string(text)),
        }
    }

    /// Returns whether the call has replied.
    pub(super) fn has_replied(&self) -> bool {
        self.replied.get()
    }

    // ---- Failed replay --------------------------------------------------------------------------

    /// Handles the failure of this command during replay: replaces the filter of the first key by a
    /// damaged one, unless the filter lost nothing. It lost nothing, for example, if a damaged log
    /// names the wrong key.
    #[cold]
    pub(super) fn replay_failed(&self, loss: ReplayLoss, error: &ReplyError) {
        let mut key = self.open_write(1);
        let is_intact = match key.filter() {
            KeyContent::Missing => false,
            KeyContent::OtherType => true,
            KeyContent::Filter(stored) if stored.damage().is_some() => return,
            KeyContent::Filter(_) => match loss {
                ReplayLoss::Nothing | ReplayLoss::Filter => true,
                ReplayLoss::Items => {
                    matches!(error, ReplyError::WrongType | ReplyError::KeyExists(_))
                }
                ReplayLoss::Sources => false,
            },
        };
        if is_intact {
            self.log_unchanged_key(error);
        } else {
            self.damage_key(&mut key, error);
        }
    }

    /// Replaces the value of an open key by a damaged filter.
    #[cold]
    pub(crate) fn damage_key(&self, key: &mut WriteKey<'_>, error: &ReplyError) {
        let reason = self.replay_error(error);
        self.warn_of_key("damaged filter", &format!("{reason}; commands on it are errors"));
        // If the key cannot be set, the log entry is all that can be done.
        key.set(StoredFilter::damaged(&reason)).ok();
    }

    /// Logs that this command failed during replay and its key is unchanged.
    #[cold]
    pub(crate) fn log_unchanged_key(&self, error: &ReplyError) {
        let reason = self.replay_error(error);
        self.warn_of_key("unchanged key", &format!("{reason}; the key stays as it is"));
    }

    /// Returns the text of a replay failure, for the log and for later replies.
    fn replay_error(&self, error: &ReplyError) -> String {
        let reason = match error {
            ReplyError::WrongType => "the key holds a filter of another type",
            ReplyError::WrongArity => "wrong number of arguments",
            ReplyError::Static(text) | ReplyError::KeyExists(text) => text,
            ReplyError::Message(text) => text,
        };
        let reason = reason.strip_prefix("ERR ").unwrap_or(reason);
        let name = String::from_utf8_lossy(self.arg(0)).to_ascii_uppercase();
        format!("{name} failed when it was replayed: {reason}")
    }

    /// Logs a warning about the first key.
    fn warn_of_key(&self, what: &str, line: &str) {
        let key = String::from_utf8_lossy(self.arg(1));
        warn(self.context, &format!("{what} {key}: {line}"));
    }

    // ---- Replication and events -----------------------------------------------------------------

    /// Notifies clients that `WATCH` the first key. Called for every replicated change, and for
    /// nothing else.
    #[inline]
    fn signal_modified(&self) {
        if let Some(key) = self.args.get(1) {
            // SAFETY: context and key live.
            unsafe { (api().signal_modified)(self.context, *key) };
        }
    }

    /// Sends this command to replicas and the append-only file. It changed its first key.
    #[inline]
    pub(crate) fn replicate_verbatim(&self) {
        self.signal_modified();
        // SAFETY: the context lives.
        unsafe { (api().replicate_verbatim)(self.context) };
    }

    /// Sends another command to replicas and the append-only file, instead of this one.
    pub(crate) fn replicate(&self, command: &CStr, args: &[ReplicatedArg<'_>]) {
        self.signal_modified();
        let mut created = Vec::new();
        let mut texts = Vec::with_capacity(args.len());
        for arg in args {
            match arg {
                ReplicatedArg::FromCall(index) => texts.extend(self.args.get(*index)),
                ReplicatedArg::Bytes(bytes) => {
                    // SAFETY: the context lives; the server copies the bytes.
                    let text = unsafe {
                        (api().create_text)(self.context, bytes.as_ptr().cast(), bytes.len())
                    };
                    texts.push(text);
                    created.push(text);
                }
            }
        }
        // SAFETY: the format takes an array of strings and its length; the server keeps references
        // to the strings if it needs them.
        unsafe {
            let format = c"v".as_ptr();
            (api().replicate)(self.context, command.as_ptr(), format, texts.as_ptr(), texts.len());
        }
        for text in created {
            // SAFETY: created above, freed once.
            unsafe { (api().free_text)(self.context, text) };
        }
    }

    /// Publishes a keyspace event for the key at an argument index.
    #[inline]
    pub(crate) fn notify(&self, event: &CStr, index: usize) {
        if let Some(key) = self.args.get(index) {
            // SAFETY: context, event and key live.
            unsafe {
                (api().notify)(self.context, abi::NOTIFY_MODULE, event.as_ptr(), *key);
            }
        }
    }
}

impl Clock for Call<'_> {
    fn now(&self) -> u64 {
        // SAFETY: the function has no arguments.
        unsafe { (api().milliseconds)() }.unsigned_abs()
    }
}
