//! One call of a command: its words, the keys it opens, its reply, and what it tells replicas.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_long};
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;

use super::{Failure, Loses, types};
use crate::object::{Clock, Object};
use crate::server::abi::{self, Context, Key, Text};
use crate::server::{api, bytes_of, c_string, warn};

/// One call of a command.
pub(crate) struct Call<'a> {
    context: *mut Context,
    words: &'a [*mut Text],
    replied: Cell<bool>,
}

/// What a key holds.
pub(crate) enum Found<T> {
    /// The key is not there.
    Nothing,
    /// One of ours.
    Object(T),
    /// Something else.
    Other,
}

impl<T> Found<T> {
    #[inline]
    fn map<U>(self, map: impl FnOnce(T) -> U) -> Found<U> {
        match self {
            Self::Nothing => Found::Nothing,
            Self::Object(object) => Found::Object(map(object)),
            Self::Other => Found::Other,
        }
    }

    /// Nothing, or one of ours, whole or not.
    pub(crate) fn any(self) -> Result<Option<T>, Failure> {
        match self {
            Self::Nothing => Ok(None),
            Self::Object(object) => Ok(Some(object)),
            Self::Other => Err(Failure::WrongType),
        }
    }

    /// Nothing, or a whole filter: of one that is still coming, no answer would be true.
    pub(crate) fn known(self) -> Result<Option<T>, Failure>
    where
        T: Deref<Target = Object>,
    {
        match self.any()? {
            Some(object) => match &*object {
                Object::Incoming(_) => Err(incomplete(&object)),
                _ => Ok(Some(object)),
            },
            None => Ok(None),
        }
    }
}

/// Why a filter that is not whole answers nothing.
#[cold]
pub(crate) fn incomplete(object: &Object) -> Failure {
    match object.damage() {
        Some(reason) => Failure::Told(format!(
            "ERR the filter is damaged: {reason}; delete the key and load it from a backup or \
             fill it again"
        )),
        None => Failure::Says("ERR the filter has not come whole yet"),
    }
}

/// A part of a command that is told to replicas.
pub(crate) enum Word<'a> {
    /// The word at this place of the call.
    Same(usize),
    /// These bytes.
    Bytes(&'a [u8]),
}

impl<'a> Call<'a> {
    /// # Safety
    /// The server gave these, and the call is not over.
    pub(super) unsafe fn new(context: *mut Context, words: *mut *mut Text, count: c_int) -> Self {
        let count = usize::try_from(count).unwrap_or(0);
        let words = if count == 0 || words.is_null() {
            &[][..]
        } else {
            // SAFETY: the server gives as many words as it says.
            unsafe { std::slice::from_raw_parts(words, count) }
        };
        Self { context, words, replied: Cell::new(false) }
    }

    /// How many words there are, the command's name included.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.words.len()
    }

    /// A word; empty behind the last.
    #[inline]
    pub(crate) fn word(&self, at: usize) -> &'a [u8] {
        match self.words.get(at) {
            // SAFETY: a word of this call lives as long as the call.
            Some(word) => unsafe { bytes_of(*word) },
            None => &[],
        }
    }

    /// The words from a place on.
    pub(crate) fn words_from(&self, at: usize) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone {
        let words = self.words.get(at..).unwrap_or(&[]);
        // SAFETY: as above.
        words.iter().map(|word| unsafe { bytes_of(*word) })
    }

    /// Whether it came from a master or from an append-only file, where it has been accepted.
    pub(crate) fn is_replayed(&self) -> bool {
        // SAFETY: the context lives.
        let flags = unsafe { (api().context_flags)(self.context) };
        flags & (abi::FLAG_REPLICATED | abi::FLAG_LOADING) != 0
    }

    /// Whether the command is one of petal's own.
    pub(crate) fn is_own(&self) -> bool {
        self.word(0).get(..6).is_some_and(|name| name.eq_ignore_ascii_case(b"petal."))
    }

    /// Whether the client speaks RESP3.
    pub(crate) fn is_resp3(&self) -> bool {
        // SAFETY: the context lives.
        unsafe { (api().context_flags)(self.context) & abi::FLAG_RESP3 != 0 }
    }

    /// A key for a keyed hash.
    pub(crate) fn random_key(&self) -> [u8; 16] {
        let mut key = [0; 16];
        // SAFETY: so many bytes are there to be written.
        unsafe { (api().random_bytes)(key.as_mut_ptr(), key.len()) };
        key
    }

    // ---- Keys -----------------------------------------------------------------------------------

    /// Opens the key that a word names, to read.
    #[inline]
    pub(crate) fn read(&self, at: usize) -> Read<'_> {
        Read(self.open(at, abi::READ))
    }

    /// Opens the key that a word names, to change it.
    #[inline]
    pub(crate) fn write(&self, at: usize) -> Opened<'_> {
        self.open(at, abi::READ | abi::WRITE)
    }

    #[inline]
    fn open(&self, at: usize, mode: c_int) -> Opened<'_> {
        let key = match self.words.get(at) {
            // SAFETY: context and word live; the mode is one of the server's.
            Some(word) => unsafe { (api().open_key)(self.context, *word, mode) },
            None => std::ptr::null_mut(),
        };
        Opened { key: NonNull::new(key), call: PhantomData }
    }

    // ---- Replies --------------------------------------------------------------------------------

    /// A whole number.
    #[inline]
    pub(crate) fn integer(&self, number: i64) {
        self.replied.set(true);
        // SAFETY: the context lives; so in all of these.
        unsafe { (api().reply_integer)(self.context, number) };
    }

    /// A whole number that may be too large.
    pub(crate) fn count(&self, number: u64) {
        self.integer(i64::try_from(number).unwrap_or(i64::MAX));
    }

    /// Yes or no: 1 or 0 in RESP2.
    #[inline]
    pub(crate) fn boolean(&self, yes: bool) {
        self.replied.set(true);
        // SAFETY: as above.
        unsafe { (api().reply_bool)(self.context, yes.into()) };
    }

    /// A number.
    pub(crate) fn double(&self, number: f64) {
        self.replied.set(true);
        // SAFETY: as above.
        unsafe { (api().reply_double)(self.context, number) };
    }

    /// Bytes.
    pub(crate) fn bytes(&self, bytes: &[u8]) {
        self.replied.set(true);
        // SAFETY: as above; so many bytes are there.
        unsafe { (api().reply_bytes)(self.context, bytes.as_ptr().cast(), bytes.len()) };
    }

    /// A word without line ends.
    pub(crate) fn simple(&self, word: &CStr) {
        self.replied.set(true);
        // SAFETY: as above.
        unsafe { (api().reply_simple)(self.context, word.as_ptr()) };
    }

    /// `OK`.
    pub(crate) fn ok(&self) {
        self.simple(c"OK");
    }

    /// The beginning of so many replies.
    pub(crate) fn array(&self, length: usize) {
        self.replied.set(true);
        // SAFETY: as above; no call has so many words.
        unsafe { (api().reply_array)(self.context, length as c_long) };
    }

    /// The beginning of so many pairs: in RESP2 an array of all.
    pub(crate) fn map(&self, pairs: usize) {
        self.replied.set(true);
        // SAFETY: as above.
        unsafe { (api().reply_map)(self.context, pairs as c_long) };
    }

    /// Nothing.
    pub(crate) fn null(&self) {
        self.replied.set(true);
        // SAFETY: as above.
        unsafe { (api().reply_null)(self.context) };
    }

    /// An error, as an answer or as one of several.
    pub(crate) fn failure(&self, failure: &Failure) {
        self.replied.set(true);
        let error = |text: &CStr| {
            // SAFETY: as above.
            unsafe { (api().reply_error)(self.context, text.as_ptr()) };
        };
        match failure {
            Failure::WrongType => {
                error(c"WRONGTYPE Operation against a key holding the wrong kind of value");
            }
            Failure::Arity => {
                // SAFETY: as above.
                unsafe { (api().wrong_arity)(self.context) };
            }
            Failure::Says(text) | Failure::Exists(text) => error(&c_string(text)),
            Failure::Told(text) => error(&c_string(text)),
        }
    }

    /// Whether something has been replied.
    pub(super) fn has_replied(&self) -> bool {
        self.replied.get()
    }

    // ---- Damage ---------------------------------------------------------------------------------

    /// Replaces the filter of the first key by a damaged one, because this command failed while it
    /// was replayed. A filter that has lost nothing stays, for example if the command was for a key
    /// whose name was damaged.
    #[cold]
    pub(super) fn damage(&self, loses: Loses, failure: &Failure) {
        let mut key = self.write(1);
        let is_sound = match key.object() {
            Found::Nothing => false,
            Found::Other => true,
            Found::Object(object) if object.damage().is_some() => return,
            Found::Object(_) => match loses {
                Loses::Nothing | Loses::Filter => true,
                Loses::Items => matches!(failure, Failure::WrongType | Failure::Exists(_)),
                Loses::Sources => false,
            },
        };
        if is_sound {
            self.keep_key(failure);
        } else {
            self.damage_key(&mut key, failure);
        }
    }

    /// Replaces what an open key holds by a damaged filter.
    #[cold]
    pub(crate) fn damage_key(&self, key: &mut Opened<'_>, failure: &Failure) {
        let reason = self.replay_error(failure);
        self.warn_of_key("damaged filter", &format!("{reason}; commands on it are errors"));
        // Nothing more can be done for a key that cannot be set.
        key.set(Object::damaged(&reason)).ok();
    }

    /// Logs that this command failed while it was replayed, and that its key stays as it is.
    #[cold]
    pub(crate) fn keep_key(&self, failure: &Failure) {
        let reason = self.replay_error(failure);
        self.warn_of_key("unchanged key", &format!("{reason}; the key stays as it is"));
    }

    /// What failed, for the log and for later replies.
    fn replay_error(&self, failure: &Failure) -> String {
        let why = match failure {
            Failure::WrongType => "the key holds a filter of another type",
            Failure::Arity => "wrong number of arguments",
            Failure::Says(text) | Failure::Exists(text) => text,
            Failure::Told(text) => text,
        };
        let why = why.strip_prefix("ERR ").unwrap_or(why);
        let name = String::from_utf8_lossy(self.word(0)).to_ascii_uppercase();
        format!("{name} failed when it was replayed: {why}")
    }

    /// Logs a line about the first key.
    fn warn_of_key(&self, what: &str, line: &str) {
        let key = String::from_utf8_lossy(self.word(1));
        warn(self.context, &format!("{what} {key}: {line}"));
    }

    // ---- What others are told -------------------------------------------------------------------

    /// Tells those who watch the key that it has changed. Whatever changes one is told to replicas,
    /// and only that.
    #[inline]
    fn changed(&self) {
        if let Some(key) = self.words.get(1) {
            // SAFETY: context and key live.
            unsafe { (api().signal_modified)(self.context, *key) };
        }
    }

    /// Tells replicas and the append-only file this very command, which has changed the key of its
    /// first word.
    #[inline]
    pub(crate) fn replicate_same(&self) {
        self.changed();
        // SAFETY: the context lives.
        unsafe { (api().replicate_verbatim)(self.context) };
    }

    /// As above, by another command.
    pub(crate) fn replicate(&self, command: &CStr, words: &[Word<'_>]) {
        self.changed();
        let mut made = Vec::new();
        let mut texts = Vec::with_capacity(words.len());
        for word in words {
            match word {
                Word::Same(at) => texts.extend(self.words.get(*at)),
                Word::Bytes(bytes) => {
                    // SAFETY: the context lives; so many bytes are there, and are copied.
                    let text = unsafe {
                        (api().create_text)(self.context, bytes.as_ptr().cast(), bytes.len())
                    };
                    texts.push(text);
                    made.push(text);
                }
            }
        }
        // SAFETY: the format takes a row of texts and their number; the server keeps what it needs
        // of them.
        unsafe {
            let format = c"v".as_ptr();
            (api().replicate)(self.context, command.as_ptr(), format, texts.as_ptr(), texts.len());
        }
        for text in made {
            // SAFETY: made above, freed once.
            unsafe { (api().free_text)(self.context, text) };
        }
    }

    /// A keyspace event of the key that a word names.
    #[inline]
    pub(crate) fn notify(&self, event: &CStr, at: usize) {
        if let Some(word) = self.words.get(at) {
            // SAFETY: context, event and word live.
            unsafe {
                (api().notify)(self.context, abi::NOTIFY_MODULE, event.as_ptr(), *word);
            }
        }
    }
}

impl Clock for Call<'_> {
    fn now(&self) -> u64 {
        // SAFETY: the function takes nothing.
        unsafe { (api().milliseconds)() }.unsigned_abs()
    }
}

/// A key that is open to be read.
pub(crate) struct Read<'c>(Opened<'c>);

impl<'c> Read<'c> {
    /// What the key holds. It outlives the key, which may be closed before: what a key holds stays
    /// until the command ends, if the command does not change that key.
    #[inline]
    pub(crate) fn object(&self) -> Found<&'c Object> {
        self.0.value().map(|value| {
            // SAFETY: a value of our types is an `Object`. Only commands change it, one at a time,
            // and no command of ours opens a key to change it that it reads.
            unsafe { value.as_ref() }
        })
    }
}

/// A key that is open to be changed.
pub(crate) struct Opened<'c> {
    key: Option<NonNull<Key>>,
    call: PhantomData<&'c ()>,
}

impl Opened<'_> {
    /// What the key holds.
    #[inline]
    pub(crate) fn object(&self) -> Found<&Object> {
        self.value().map(|value| {
            // SAFETY: a value of our types is an `Object`; nobody changes it while the key is open
            // and borrowed.
            unsafe { value.as_ref() }
        })
    }

    /// What the key holds, to be changed.
    #[inline]
    pub(crate) fn object_mut(&mut self) -> Found<&mut Object> {
        self.value().map(|mut value| {
            // SAFETY: as above; the borrow of the key is exclusive, and a call opens a key once.
            unsafe { value.as_mut() }
        })
    }

    #[inline]
    fn value(&self) -> Found<NonNull<Object>> {
        let Some(key) = self.key else { return Found::Nothing };
        // SAFETY: the key is open.
        unsafe {
            let kind = (api().value_type)(key.as_ptr());
            if types::is_ours(kind) {
                return match NonNull::new((api().value)(key.as_ptr()).cast()) {
                    Some(value) => Found::Object(value),
                    None => Found::Nothing,
                };
            }
            if (api().key_type)(key.as_ptr()) == abi::KEY_EMPTY {
                Found::Nothing
            } else {
                Found::Other
            }
        }
    }

    /// Puts an object in, instead of whatever was there.
    pub(crate) fn set(&mut self, object: Object) -> Result<(), Failure> {
        let kind = types::of(&object);
        let value = Box::into_raw(types::counted(object));
        let failed = Failure::Says("ERR the key cannot be set");
        let Some(key) = self.key else { return Err(failed) };
        // SAFETY: the key is open; the value is a `Box<Object>`, which the server owns from now on
        // unless it says no.
        unsafe {
            if (api().set_value)(key.as_ptr(), kind, value.cast()) == abi::OK {
                return Ok(());
            }
            types::free(value.cast());
        }
        Err(failed)
    }

    /// Lets the key expire at a time in milliseconds since 1970.
    pub(crate) fn expire_at(&mut self, milliseconds: u64) -> Result<(), Failure> {
        let failed = Failure::Says("ERR the time to live cannot be set");
        let time = i64::try_from(milliseconds).map_err(|_| failed.clone())?;
        let key = self.key.ok_or(failed.clone())?;
        // SAFETY: the key is open to be changed.
        let set = unsafe { (api().set_abs_expire)(key.as_ptr(), time) };
        if set == abi::OK { Ok(()) } else { Err(failed) }
    }

    /// Deletes the key; what is large is freed in the background.
    pub(crate) fn delete(&mut self) {
        if let Some(key) = self.key {
            // SAFETY: the key is open to be changed.
            unsafe { (api().unlink_key)(key.as_ptr()) };
        }
    }
}

impl Drop for Opened<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(key) = self.key {
            // SAFETY: opened by us, closed once.
            unsafe { (api().close_key)(key.as_ptr()) };
        }
    }
}

/// A string for C, or null.
pub(super) fn pointer(text: Option<&CStr>) -> *const c_char {
    text.map_or(std::ptr::null(), CStr::as_ptr)
}
