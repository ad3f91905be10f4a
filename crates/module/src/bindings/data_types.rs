//! The module's data types and their callbacks.
//!
//! There are three types; the value of each is a `Box<StoredFilter>`. Filters in RedisBloom's
//! layout have RedisBloom's type names and encodings, so both modules read each other's files.
//! Filters in petal's layout have a type of their own, which RedisBloom rejects by name.

use std::alloc::Layout;
use std::ffi::{CStr, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{NonNull, null_mut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use petal::embed::Relocator;

use super::config::Settings;
use super::metrics;
use crate::error::FilterError;
use crate::filters::{StoredFilter, StoredType};
use crate::persistence::{self, DigestWriter};
use crate::server::abi::{self, Context, Defrag, Digest, Io, Text, Type, TypeMethods};
use crate::server::{self, FieldReader, FieldWriter, api, bytes_of, warn};

/// The types: name of nine characters, version of the encoding.
const DATA_TYPES: [(StoredType, &CStr, c_int); 3] = [
    (StoredType::Petal, c"petal-flt", 1),
    (StoredType::RedisBloom, c"MBbloom--", 4),
    (StoredType::RedisCuckoo, c"MBbloomCF", 4),
];

struct RegisteredTypes([*mut Type; DATA_TYPES.len()]);

// SAFETY: the pointers are only compared and passed to the server.
unsafe impl Send for RegisteredTypes {}
// SAFETY: as above.
unsafe impl Sync for RegisteredTypes {}

static REGISTERED: OnceLock<RegisteredTypes> = OnceLock::new();

/// Number of values.
static VALUE_COUNT: AtomicU64 = AtomicU64::new(0);

/// Returns the number of keys with a value of this module.
pub(super) fn value_count() -> u64 {
    VALUE_COUNT.load(Relaxed)
}

/// Registers the types with the server.
pub(super) fn register(context: *mut Context) -> Result<(), String> {
    let mut types = [null_mut(); DATA_TYPES.len()];
    for ((stored, name, version), slot) in DATA_TYPES.iter().zip(&mut types) {
        let rdb_load: unsafe extern "C" fn(*mut Io, c_int) -> *mut c_void = match stored {
            StoredType::Petal => load_petal,
            StoredType::RedisBloom => load_redis_bloom,
            StoredType::RedisCuckoo => load_redis_cuckoo,
        };
        let methods = TypeMethods {
            version: abi::TYPE_METHODS,
            rdb_load: Some(rdb_load),
            rdb_save: Some(save),
            aof_rewrite: Some(rewrite),
            mem_usage: Some(mem_usage),
            digest: Some(digest),
            free: Some(free),
            aux_load: None,
            aux_save: None,
            aux_save_triggers: 0,
            free_effort: Some(free_effort),
            unlink: None,
            copy: Some(copy),
            defrag: Some(defrag),
            mem_usage2: None,
            free_effort2: None,
            unlink2: None,
            copy2: None,
        };
        // SAFETY: the server copies the methods.
        *slot = unsafe {
            (api().create_data_type)(context, name.as_ptr(), *version, &raw const methods)
        };
        if slot.is_null() {
            let name = name.to_string_lossy();
            return Err(format!("the server rejects the type {name}: is RedisBloom loaded too?"));
        }
    }
    REGISTERED.set(RegisteredTypes(types)).map_err(|_| "the module is already loaded".to_owned())
}

#[inline]
pub(super) fn is_ours(value_type: *mut Type) -> bool {
    !value_type.is_null() && REGISTERED.get().is_some_and(|types| types.0.contains(&value_type))
}

/// Returns the type of a value.
pub(super) fn of(stored: &StoredFilter) -> *mut Type {
    let at = DATA_TYPES
        .iter()
        .position(|(stored_type, ..)| *stored_type == stored.stored_type())
        .unwrap_or(0);
    REGISTERED.get().map_or(null_mut(), |types| types.0[at])
}

/// Boxes a value and counts it.
pub(super) fn counted(stored: StoredFilter) -> Box<StoredFilter> {
    VALUE_COUNT.fetch_add(1, Relaxed);
    Box::new(stored)
}

/// Runs a callback; returns `fallback` if it panics.
pub(super) fn catch_panic<T>(fallback: T, run: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
        warn(null_mut(), "a panic was caught; this is a bug");
        fallback
    })
}

/// Casts a value that the server passes to a callback.
///
/// # Safety
/// It must be a value of ours that nothing changes during the callback.
unsafe fn stored_filter<'a>(value: *const c_void) -> &'a StoredFilter {
    // SAFETY: as the caller promises.
    unsafe { &*value.cast::<StoredFilter>() }
}

pub(super) unsafe extern "C" fn free(value: *mut c_void) {
    // SAFETY: a value of ours, which the server no longer uses. This may be another thread; a
    // `StoredFilter` is `Send`.
    catch_panic((), || drop(unsafe { Box::from_raw(value.cast::<StoredFilter>()) }));
    VALUE_COUNT.fetch_sub(1, Relaxed);
}

unsafe extern "C" fn mem_usage(value: *const c_void) -> usize {
    // SAFETY: a value of ours.
    catch_panic(0, || unsafe { stored_filter(value) }.memory_usage() as usize)
}

/// Returns the size in KiB: the server frees values with an effort above 64 in the background.
unsafe extern "C" fn free_effort(_: *mut Text, value: *const c_void) -> usize {
    // SAFETY: a value of ours.
    catch_panic(1, || unsafe { stored_filter(value) }.memory_usage() as usize / 1024 + 1)
}

unsafe extern "C" fn copy(_: *mut Text, _: *mut Text, value: *const c_void) -> *mut c_void {
    catch_panic(null_mut(), || {
        // SAFETY: a value of ours.
        match unsafe { stored_filter(value) }.copy() {
            Some(copy) => Box::into_raw(counted(copy)).cast(),
            None => null_mut(),
        }
    })
}

unsafe extern "C" fn digest(into: *mut Digest, value: *mut c_void) {
    catch_panic((), || {
        // SAFETY: a value of ours.
        let stored = unsafe { stored_filter(value) };
        add_to_digest(into, |out| persistence::save(stored, out));
    });
}

/// Adds fields to a digest.
pub(super) fn add_to_digest(
    into: *mut Digest,
    save: impl FnOnce(&mut DigestWriter<&dyn Fn(&[u8])>),
) {
    let add = |bytes: &[u8]| {
        // SAFETY: the digest lives; the slice has that length.
        unsafe { (api().digest_bytes)(into, bytes.as_ptr().cast(), bytes.len()) };
    };
    save(&mut DigestWriter(&add));
    // SAFETY: as above.
    unsafe { (api().digest_end)(into) };
}

/// Moves the filter and its small blocks for the server's active defragmentation.
unsafe extern "C" fn defrag(context: *mut Defrag, _: *mut Text, value: *mut *mut c_void) -> c_int {
    let mut relocate = |block: NonNull<u8>, layout: Layout| {
        if !server::is_plain(layout) {
            return None;
        }
        // SAFETY: the context lives; the block is unpadded, as the server allocated it.
        NonNull::new(unsafe { (api().defrag_alloc)(context, block.as_ptr().cast()) }.cast::<u8>())
    };
    catch_panic((), || {
        // SAFETY: the server passes a value of ours, exclusively; if it moves, the old address is
        // invalid and `*value` is the new one. The server's new block has the same size, contents
        // and, as blocks of that size are naturally aligned, alignment; the old block is freed.
        unsafe {
            if let Some(moved) = NonNull::new((*value).cast::<u8>())
                .and_then(|block| relocate(block, Layout::new::<StoredFilter>()))
            {
                *value = moved.as_ptr().cast();
            }
            (*(*value).cast::<StoredFilter>()).relocate(&mut Relocator::new(&mut relocate));
        }
    });
    0
}

// ---- RDB and append-only files ------------------------------------------------------------------

/// Writes fields to an RDB file.
pub(super) struct RdbWriter(pub(super) *mut Io);

impl FieldWriter for RdbWriter {
    fn unsigned(&mut self, number: u64) {
        // SAFETY: the stream lives, here and in all functions below.
        unsafe { (api().save_unsigned)(self.0, number) };
    }

    fn double(&mut self, number: f64) {
        // SAFETY: as above.
        unsafe { (api().save_double)(self.0, number) };
    }

    fn bytes(&mut self, bytes: &[u8]) {
        // SAFETY: as above; the slice has that length.
        unsafe { (api().save_bytes)(self.0, bytes.as_ptr().cast(), bytes.len()) };
    }
}

/// Reads fields from an RDB file.
pub(super) struct RdbReader(pub(super) *mut Io);

impl RdbReader {
    /// Returns the value that was read; an error after a read error.
    fn unless_failed<T>(&self, read: T) -> Result<T, FilterError> {
        // SAFETY: the stream lives.
        let failed = unsafe { (api().io_failed)(self.0) } != 0;
        if failed { Err(FilterError::truncated()) } else { Ok(read) }
    }
}

impl FieldReader for RdbReader {
    fn unsigned(&mut self) -> Result<u64, FilterError> {
        // SAFETY: the stream lives, here and in all functions below.
        let number = unsafe { (api().load_unsigned)(self.0) };
        self.unless_failed(number)
    }

    fn double(&mut self) -> Result<f64, FilterError> {
        // SAFETY: as above.
        let number = unsafe { (api().load_double)(self.0) };
        self.unless_failed(number)
    }

    fn bytes(&mut self) -> Result<Box<[u8]>, FilterError> {
        let mut length = 0;
        // SAFETY: as above.
        let bytes = unsafe { (api().load_bytes)(self.0, &raw mut length) };
        let bytes = NonNull::new(bytes).ok_or_else(FilterError::truncated)?;
        let owned = self.unless_failed(()).and_then(|()| {
            // SAFETY: the server allocated `length` bytes.
            let bytes = unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), length) };
            server::copied_bytes(bytes).ok_or_else(FilterError::truncated)
        });
        // SAFETY: the caller must free the bytes in this way.
        unsafe { (api().free)(bytes.as_ptr().cast()) };
        owned
    }
}

/// Returns the memory limit of a value. Values from a file or a master have no limit: they were
/// accepted before. Values from `RESTORE` have one.
pub(super) fn memory_limit() -> u64 {
    const ACCEPTED: c_int = abi::FLAG_LOADING | abi::FLAG_ASYNC_LOADING | abi::FLAG_REPLICA;
    // SAFETY: the context may be null; the flags are then those of the server.
    let flags = unsafe { (api().context_flags)(null_mut()) };
    if flags & ACCEPTED != 0 { u64::MAX } else { Settings::current().memory_limit }
}

fn load(io: *mut Io, stored: StoredType, version: c_int) -> *mut c_void {
    catch_panic(null_mut(), || {
        match persistence::load(stored, version, memory_limit(), &mut RdbReader(io)) {
            Ok(stored) => Box::into_raw(counted(stored)).cast(),
            Err(error) => log_rejected(io, &error),
        }
    })
}

/// Logs why a value cannot be loaded, with its key. Returns null.
pub(super) fn log_rejected(io: *mut Io, error: &FilterError) -> *mut c_void {
    metrics::rejected(error);
    // SAFETY: the stream lives, and the name as long; the format takes one string.
    unsafe {
        let name = (api().io_key)(io);
        let key = if name.is_null() { &[] } else { bytes_of(name) };
        let line = server::c_string(&format!("key {}: {error}", key.escape_ascii()));
        let level = c"warning".as_ptr();
        (api().log_io_error)(io, level, c"petal: %s".as_ptr(), line.as_ptr());
    }
    null_mut()
}

unsafe extern "C" fn load_petal(io: *mut Io, version: c_int) -> *mut c_void {
    load(io, StoredType::Petal, version)
}

unsafe extern "C" fn load_redis_bloom(io: *mut Io, version: c_int) -> *mut c_void {
    load(io, StoredType::RedisBloom, version)
}

unsafe extern "C" fn load_redis_cuckoo(io: *mut Io, version: c_int) -> *mut c_void {
    load(io, StoredType::RedisCuckoo, version)
}

unsafe extern "C" fn save(io: *mut Io, value: *mut c_void) {
    // SAFETY: a value of ours.
    catch_panic((), || persistence::save(unsafe { stored_filter(value) }, &mut RdbWriter(io)));
}

/// Writes the commands that recreate a value to the append-only file.
unsafe extern "C" fn rewrite(io: *mut Io, key: *mut Text, value: *mut c_void) {
    catch_panic((), || {
        // SAFETY: a value of ours.
        persistence::rewrite(unsafe { stored_filter(value) }, |command, offset, chunk| {
            // SAFETY: the format takes a string, a number, and bytes with their length.
            unsafe {
                (api().emit_aof)(
                    io,
                    command.as_ptr(),
                    c"slb".as_ptr(),
                    key,
                    offset as std::ffi::c_longlong,
                    chunk.as_ptr(),
                    chunk.len(),
                );
            }
        });
    });
}
