//! Open keys and their values.

use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;

use super::{ReplyError, data_types};
use crate::filters::StoredFilter;
use crate::server::abi::{self, Key};
use crate::server::api;

/// The value of a key.
pub(crate) enum KeyContent<T> {
    /// The key does not exist.
    Missing,
    /// A value of this module.
    Filter(T),
    /// A value of another type.
    OtherType,
}

impl<T> KeyContent<T> {
    #[inline]
    fn map<U>(self, map: impl FnOnce(T) -> U) -> KeyContent<U> {
        match self {
            Self::Missing => KeyContent::Missing,
            Self::Filter(stored) => KeyContent::Filter(map(stored)),
            Self::OtherType => KeyContent::OtherType,
        }
    }

    /// Returns the filter, complete or not; `None` if the key is missing.
    pub(crate) fn any_filter(self) -> Result<Option<T>, ReplyError> {
        match self {
            Self::Missing => Ok(None),
            Self::Filter(stored) => Ok(Some(stored)),
            Self::OtherType => Err(ReplyError::WrongType),
        }
    }

    /// Returns the complete filter; `None` if the key is missing. Incomplete and damaged filters
    /// are errors.
    pub(crate) fn complete(self) -> Result<Option<T>, ReplyError>
    where
        T: Deref<Target = StoredFilter>,
    {
        match self.any_filter()? {
            Some(stored) => match &*stored {
                StoredFilter::Partial(_) => Err(not_usable(&stored)),
                _ => Ok(Some(stored)),
            },
            None => Ok(None),
        }
    }
}

/// Returns the error for an incomplete or damaged filter.
#[cold]
pub(crate) fn not_usable(stored: &StoredFilter) -> ReplyError {
    match stored.damage() {
        Some(reason) => ReplyError::Message(format!(
            "ERR the filter is damaged: {reason}; delete the key and load it from a backup or \
             fill it again"
        )),
        None => ReplyError::Static("ERR the import of this filter is not complete"),
    }
}

/// A key that is open for reading.
pub(crate) struct ReadKey<'c>(WriteKey<'c>);

impl<'c> ReadKey<'c> {
    pub(super) fn new(key: WriteKey<'c>) -> Self {
        Self(key)
    }

    /// Returns the value. It may be used after the key is closed: it lives until the command ends,
    /// unless the command changes the key.
    #[inline]
    pub(crate) fn filter(&self) -> KeyContent<&'c StoredFilter> {
        self.0.value().map(|value| {
            // SAFETY: a value of our types is a `StoredFilter`. Only commands change it, one at a
            // time, and no command opens one key both for reading and for writing.
            unsafe { value.as_ref() }
        })
    }
}

/// A key that is open for writing.
pub(crate) struct WriteKey<'c> {
    key: Option<NonNull<Key>>,
    call: PhantomData<&'c ()>,
}

impl WriteKey<'_> {
    pub(super) fn new(key: *mut Key) -> Self {
        Self { key: NonNull::new(key), call: PhantomData }
    }

    #[inline]
    pub(crate) fn filter(&self) -> KeyContent<&StoredFilter> {
        self.value().map(|value| {
            // SAFETY: a value of our types is a `StoredFilter`; nothing changes it while the key is
            // open and borrowed.
            unsafe { value.as_ref() }
        })
    }

    /// Returns the value for changes.
    #[inline]
    pub(crate) fn filter_mut(&mut self) -> KeyContent<&mut StoredFilter> {
        self.value().map(|mut value| {
            // SAFETY: as above; the borrow of the key is exclusive, and a call opens a key once.
            unsafe { value.as_mut() }
        })
    }

    #[inline]
    fn value(&self) -> KeyContent<NonNull<StoredFilter>> {
        let Some(key) = self.key else { return KeyContent::Missing };
        // SAFETY: the key is open.
        unsafe {
            let value_type = (api().value_type)(key.as_ptr());
            if data_types::is_ours(value_type) {
                return match NonNull::new((api().value)(key.as_ptr()).cast()) {
                    Some(value) => KeyContent::Filter(value),
                    None => KeyContent::Missing,
                };
            }
            if (api().key_type)(key.as_ptr()) == abi::KEY_EMPTY {
                KeyContent::Missing
            } else {
                KeyContent::OtherType
            }
        }
    }

    /// Sets the value, replacing any other.
    pub(crate) fn set(&mut self, stored: StoredFilter) -> Result<(), ReplyError> {
        let data_type = data_types::of(&stored);
        let value = Box::into_raw(data_types::counted(stored));
        let failed = ReplyError::Static("ERR the key cannot be set");
        let Some(key) = self.key else { return Err(failed) };
        // SAFETY: the key is open; the value is a `Box<StoredFilter>`, which the server owns from
        // now on if the call succeeds.
        unsafe {
            if (api().set_value)(key.as_ptr(), data_type, value.cast()) == abi::OK {
                return Ok(());
            }
            data_types::free(value.cast());
        }
        Err(failed)
    }

    /// Sets the expiry time of the key, in milliseconds since 1970.
    pub(crate) fn expire_at(&mut self, milliseconds: u64) -> Result<(), ReplyError> {
        let failed = ReplyError::Static("ERR the time to live cannot be set");
        let time = i64::try_from(milliseconds).map_err(|_| failed.clone())?;
        let key = self.key.ok_or(failed.clone())?;
        // SAFETY: the key is open for writing.
        let set = unsafe { (api().set_abs_expire)(key.as_ptr(), time) };
        if set == abi::OK { Ok(()) } else { Err(failed) }
    }

    /// Deletes the key; a large value is freed in the background.
    pub(crate) fn delete(&mut self) {
        if let Some(key) = self.key {
            // SAFETY: the key is open for writing.
            unsafe { (api().unlink_key)(key.as_ptr()) };
        }
    }
}

impl Drop for WriteKey<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(key) = self.key {
            // SAFETY: opened by this call, closed once.
            unsafe { (api().close_key)(key.as_ptr()) };
        }
    }
}
