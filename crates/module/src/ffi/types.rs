//! The types of value that the server knows, and what it calls to keep them.
//!
//! Three names, one value: all are a `Box<Object>`. The names of RedisBloom's two types and their
//! encodings are its own, so that its files are read, and what is in its layout is written as it
//! would. What is in petal's own layout has a type of its own, which RedisBloom refuses by name.

use std::alloc::Layout;
use std::ffi::{CStr, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{NonNull, null_mut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use petal::Mover;

use crate::config::Settings;
use crate::object::{Kind, Object};
use crate::persist::{self, Load, Save};
use crate::server::abi::{self, Context, Defrag, Digest, Io, Text, Type, TypeMethods};
use crate::server::{self, api, warn};

/// A kind, its name in nine letters, and the version of its encoding.
const KINDS: [(Kind, &CStr, c_int); 3] = [
    (Kind::Petal, c"petal-flt", 1),
    (Kind::RedisBloom, c"MBbloom--", 4),
    (Kind::RedisCuckoo, c"MBbloomCF", 4),
];

struct Types([*mut Type; KINDS.len()]);

// SAFETY: the pointers are only compared and handed back to the server.
unsafe impl Send for Types {}
// SAFETY: as above.
unsafe impl Sync for Types {}

static TYPES: OnceLock<Types> = OnceLock::new();

/// How many values there are.
static VALUES: AtomicU64 = AtomicU64::new(0);

/// How many keys hold something of ours.
pub(crate) fn values() -> u64 {
    VALUES.load(Relaxed)
}

/// Tells the server of the types.
pub(super) fn register(context: *mut Context) -> Result<(), String> {
    let mut types = [null_mut(); KINDS.len()];
    for ((kind, name, version), made) in KINDS.iter().zip(&mut types) {
        let rdb_load: unsafe extern "C" fn(*mut Io, c_int) -> *mut c_void = match kind {
            Kind::Petal => load_petal,
            Kind::RedisBloom => load_redis_bloom,
            Kind::RedisCuckoo => load_redis_cuckoo,
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
        *made = unsafe {
            (api().create_data_type)(context, name.as_ptr(), *version, &raw const methods)
        };
        if made.is_null() {
            let name = name.to_string_lossy();
            return Err(format!("the server refuses the type {name}: is RedisBloom loaded too?"));
        }
    }
    TYPES.set(Types(types)).map_err(|_| "loaded twice".to_owned())
}

#[inline]
pub(super) fn is_ours(kind: *mut Type) -> bool {
    !kind.is_null() && TYPES.get().is_some_and(|types| types.0.contains(&kind))
}

/// The type of a value.
pub(super) fn of(object: &Object) -> *mut Type {
    let at = KINDS.iter().position(|(kind, ..)| *kind == object.kind()).unwrap_or(0);
    TYPES.get().map_or(null_mut(), |types| types.0[at])
}

/// A value, counted.
pub(super) fn counted(object: Object) -> Box<Object> {
    VALUES.fetch_add(1, Relaxed);
    Box::new(object)
}

/// What a callback gives if it panics, which it should not: the server lives on.
fn guarded<T>(otherwise: T, run: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
        warn(null_mut(), "a panic was caught; this is a bug");
        otherwise
    })
}

/// A value as the server hands it to a callback.
///
/// # Safety
/// It is a value of ours that is not changed meanwhile.
unsafe fn object<'a>(value: *const c_void) -> &'a Object {
    // SAFETY: as the caller promises.
    unsafe { &*value.cast::<Object>() }
}

pub(super) unsafe extern "C" fn free(value: *mut c_void) {
    // SAFETY: a value of ours, which the server gives up; perhaps on another thread, and an
    // `Object` may be sent there.
    guarded((), || drop(unsafe { Box::from_raw(value.cast::<Object>()) }));
    VALUES.fetch_sub(1, Relaxed);
}

unsafe extern "C" fn mem_usage(value: *const c_void) -> usize {
    // SAFETY: a value of ours.
    guarded(0, || unsafe { object(value) }.memory_usage() as usize)
}

/// Above 64 the server frees a value in the background: what has more than a few kB.
unsafe extern "C" fn free_effort(_: *mut Text, value: *const c_void) -> usize {
    // SAFETY: a value of ours.
    guarded(1, || unsafe { object(value) }.memory_usage() as usize / 1024 + 1)
}

unsafe extern "C" fn copy(_: *mut Text, _: *mut Text, value: *const c_void) -> *mut c_void {
    guarded(null_mut(), || {
        // SAFETY: a value of ours.
        match unsafe { object(value) }.copy() {
            Some(copy) => Box::into_raw(counted(copy)).cast(),
            None => null_mut(),
        }
    })
}

unsafe extern "C" fn digest(into: *mut Digest, value: *mut c_void) {
    guarded((), || {
        // SAFETY: a value of ours.
        persist::digest(unsafe { object(value) }, |bytes| {
            // SAFETY: the digest lives; so many bytes are there.
            unsafe { (api().digest_bytes)(into, bytes.as_ptr().cast(), bytes.len()) };
        });
        // SAFETY: as above.
        unsafe { (api().digest_end)(into) };
    });
}

/// Moves what the server's defragmentation wants to be elsewhere: the object and its small blocks.
unsafe extern "C" fn defrag(context: *mut Defrag, _: *mut Text, value: *mut *mut c_void) -> c_int {
    let mut relocate = |block: NonNull<u8>, layout: Layout| {
        if !server::is_plain(layout) {
            return None;
        }
        // SAFETY: the context lives; the block came so from the server's allocator.
        NonNull::new(unsafe { (api().defrag_alloc)(context, block.as_ptr().cast()) }.cast::<u8>())
    };
    guarded((), || {
        // SAFETY: the server hands a value of ours, alone; if it moves, the old place is gone, and
        // it is told the new one. What the server gives for a block is as large, has its bytes,
        // and is as aligned, if blocks of that size are by nature; the old block is freed.
        unsafe {
            if let Some(moved) = NonNull::new((*value).cast::<u8>())
                .and_then(|block| relocate(block, Layout::new::<Object>()))
            {
                *value = moved.as_ptr().cast();
            }
            (*(*value).cast::<Object>()).relocate(&mut Mover::new(&mut relocate));
        }
    });
    0
}

// ---- Files of the server --------------------------------------------------------------------------

/// A stream of fields of the server's file, to write.
struct Saving(*mut Io);

impl Save for Saving {
    fn unsigned(&mut self, number: u64) {
        // SAFETY: the stream lives; so in all of these.
        unsafe { (api().save_unsigned)(self.0, number) };
    }

    fn double(&mut self, number: f64) {
        // SAFETY: as above.
        unsafe { (api().save_double)(self.0, number) };
    }

    fn bytes(&mut self, bytes: &[u8]) {
        // SAFETY: as above; so many bytes are there.
        unsafe { (api().save_bytes)(self.0, bytes.as_ptr().cast(), bytes.len()) };
    }
}

/// A stream of fields of the server's file, to read.
struct Loading(*mut Io);

impl Loading {
    /// What was read, unless the stream has failed.
    fn unless_failed<T>(&self, read: T) -> Option<T> {
        // SAFETY: the stream lives.
        (unsafe { (api().io_failed)(self.0) } == 0).then_some(read)
    }
}

impl Load for Loading {
    fn unsigned(&mut self) -> Option<u64> {
        // SAFETY: the stream lives; so in all of these.
        let number = unsafe { (api().load_unsigned)(self.0) };
        self.unless_failed(number)
    }

    fn double(&mut self) -> Option<f64> {
        // SAFETY: as above.
        let number = unsafe { (api().load_double)(self.0) };
        self.unless_failed(number)
    }

    fn bytes(&mut self) -> Option<Box<[u8]>> {
        let mut length = 0;
        // SAFETY: as above.
        let bytes = unsafe { (api().load_bytes)(self.0, &raw mut length) };
        let bytes = NonNull::new(bytes)?;
        let owned = self.unless_failed(()).and_then(|()| {
            // SAFETY: the server gave so many bytes.
            server::copied_bytes(unsafe {
                std::slice::from_raw_parts(bytes.as_ptr().cast(), length)
            })
        });
        // SAFETY: given to us to be freed so.
        unsafe { (api().free)(bytes.as_ptr().cast()) };
        owned
    }
}

/// Bytes that a value may take: what a file or a master has was accepted before, whatever the limit
/// is now; what `RESTORE` brings was not.
fn limit() -> u64 {
    const ACCEPTED: c_int = abi::FLAG_LOADING | abi::FLAG_ASYNC_LOADING | abi::FLAG_REPLICA;
    // SAFETY: without a context the server tells of itself only.
    let flags = unsafe { (api().context_flags)(null_mut()) };
    if flags & ACCEPTED != 0 { u64::MAX } else { Settings::now().memory_limit }
}

fn load(io: *mut Io, kind: Kind, version: c_int) -> *mut c_void {
    guarded(null_mut(), || match persist::load(kind, version, limit(), &mut Loading(io)) {
        Ok(object) => Box::into_raw(counted(object)).cast(),
        Err(what) => {
            let line = server::c_string(&what);
            // SAFETY: the format takes one string.
            unsafe {
                let level = c"warning".as_ptr();
                (api().log_io_error)(io, level, c"petal: %s".as_ptr(), line.as_ptr());
            }
            null_mut()
        }
    })
}

unsafe extern "C" fn load_petal(io: *mut Io, version: c_int) -> *mut c_void {
    load(io, Kind::Petal, version)
}

unsafe extern "C" fn load_redis_bloom(io: *mut Io, version: c_int) -> *mut c_void {
    load(io, Kind::RedisBloom, version)
}

unsafe extern "C" fn load_redis_cuckoo(io: *mut Io, version: c_int) -> *mut c_void {
    load(io, Kind::RedisCuckoo, version)
}

unsafe extern "C" fn save(io: *mut Io, value: *mut c_void) {
    // SAFETY: a value of ours.
    guarded((), || persist::save(unsafe { object(value) }, &mut Saving(io)));
}

/// The commands that make a value anew.
unsafe extern "C" fn rewrite(io: *mut Io, key: *mut Text, value: *mut c_void) {
    guarded((), || {
        // SAFETY: a value of ours.
        persist::rewrite(unsafe { object(value) }, |command, position, chunk| {
            // SAFETY: the format takes a text, a number, and bytes with their length.
            unsafe {
                (api().emit_aof)(
                    io,
                    command.as_ptr(),
                    c"slb".as_ptr(),
                    key,
                    position as std::ffi::c_longlong,
                    chunk.as_ptr(),
                    chunk.len(),
                );
            }
        });
    });
}
