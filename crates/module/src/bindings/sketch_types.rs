//! Data types of RedisBloom whose values petal keeps, so that a server can read files that contain
//! them: `CMS.*`, `TOPK.*` and `TDIGEST.*`. The value is a `Box<Sketch>`; no command uses it.

use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;

use super::data_types::{
    RdbReader, RdbWriter, add_to_digest, catch_panic, log_rejected, memory_limit,
};
use crate::persistence;
use crate::redisbloom::{Sketch, SketchType};
use crate::server::abi::{self, Context, Digest, Io, Text, TypeMethods};
use crate::server::api;

/// The version of the encodings.
const VERSION: u16 = 0;

const TYPES: [(SketchType, &CStr); 3] = [
    (SketchType::CountMin, c"CMSk-TYPE"),
    (SketchType::TopK, c"TopK-TYPE"),
    (SketchType::TDigest, c"TDIS-TYPE"),
];

/// Registers the types with the server. If it rejects one, another module reads its values.
pub(super) fn register(context: *mut Context) {
    register_type::<0>(context);
    register_type::<1>(context);
    register_type::<2>(context);
}

fn register_type<const AT: usize>(context: *mut Context) {
    let methods = TypeMethods {
        version: abi::TYPE_METHODS,
        rdb_load: Some(load::<AT>),
        rdb_save: Some(save),
        aof_rewrite: Some(rewrite::<AT>),
        mem_usage: Some(mem_usage),
        digest: Some(digest),
        free: Some(free),
        aux_load: None,
        aux_save: None,
        aux_save_triggers: 0,
        free_effort: None,
        unlink: None,
        copy: Some(copy),
        defrag: None,
        mem_usage2: None,
        free_effort2: None,
        unlink2: None,
        copy2: None,
    };
    let (name, version) = (TYPES[AT].1.as_ptr(), VERSION.into());
    // SAFETY: the context is that of the loading module; the server copies the methods.
    unsafe { (api().create_data_type)(context, name, version, &raw const methods) };
}

/// Casts a value that the server passes to a callback.
///
/// # Safety
/// It must be a value of these types that nothing changes during the callback.
unsafe fn sketch<'a>(value: *const c_void) -> &'a Sketch {
    // SAFETY: as the caller promises.
    unsafe { &*value.cast::<Sketch>() }
}

unsafe extern "C" fn load<const AT: usize>(io: *mut Io, version: c_int) -> *mut c_void {
    catch_panic(null_mut(), || {
        match Sketch::load(TYPES[AT].0, version, memory_limit(), &mut RdbReader(io)) {
            Ok(sketch) => Box::into_raw(Box::new(sketch)).cast(),
            Err(error) => log_rejected(io, &error),
        }
    })
}

unsafe extern "C" fn save(io: *mut Io, value: *mut c_void) {
    // SAFETY: a value of these types, here and below.
    catch_panic((), || unsafe { sketch(value) }.save(&mut RdbWriter(io)));
}

/// Writes a `RESTORE` that recreates the value: no other command does.
unsafe extern "C" fn rewrite<const AT: usize>(io: *mut Io, key: *mut Text, value: *mut c_void) {
    catch_panic((), || {
        let name = TYPES[AT].1.to_string_lossy();
        // SAFETY: as above.
        let payload =
            persistence::payload(&name, VERSION, |out| unsafe { sketch(value) }.save(out));
        let (command, format) = (c"RESTORE".as_ptr(), c"slb".as_ptr());
        let bytes = payload.as_ptr();
        // SAFETY: the format takes a string, a number, and bytes with their length. Without a time to
        // live: the server writes it.
        unsafe { (api().emit_aof)(io, command, format, key, 0i64, bytes, payload.len()) };
    });
}

unsafe extern "C" fn mem_usage(value: *const c_void) -> usize {
    // SAFETY: as above.
    catch_panic(0, || unsafe { sketch(value) }.memory_usage() as usize)
}

unsafe extern "C" fn digest(into: *mut Digest, value: *mut c_void) {
    // SAFETY: as above.
    catch_panic((), || add_to_digest(into, |out| unsafe { sketch(value) }.save(out)));
}

unsafe extern "C" fn copy(_: *mut Text, _: *mut Text, value: *const c_void) -> *mut c_void {
    // SAFETY: as above.
    catch_panic(null_mut(), || match unsafe { sketch(value) }.copy() {
        Some(copy) => Box::into_raw(Box::new(copy)).cast(),
        None => null_mut(),
    })
}

unsafe extern "C" fn free(value: *mut c_void) {
    // SAFETY: as above; the server no longer uses it.
    catch_panic((), || drop(unsafe { Box::from_raw(value.cast::<Sketch>()) }));
}
