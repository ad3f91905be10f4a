//! libpetal: filters for approximate set membership, for C, C++ and every language that calls C.
//!
//! `include/petal.h` is the interface; cbindgen writes it from this file. No error aborts, and no panic leaves a function:
//! it becomes the error `PETAL_INTERNAL`.
#![allow(unsafe_code, reason = "every function takes pointers of C")]

mod error;
mod handle;
mod spec;

use std::ffi::{CStr, c_char, c_void};
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::ptr::null_mut;
use std::slice::from_raw_parts;

use petal::{Mapped, Secret};

use error::Failure;
pub use error::{PETAL_MESSAGE, PetalCode, PetalError};
pub use handle::PetalFilter;

/// Bytes of a secret.
pub const PETAL_SECRET_BYTES: usize = 16;

/// Many keys in one piece of memory, one after the other: each as long as its length, or all `width` bytes long.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PetalKeys {
    /// The bytes of all keys; may be NULL if they have none.
    pub data: *const c_void,
    /// The length of each key in bytes; NULL if all are `width` bytes long.
    pub lengths: *const usize,
    /// The length of all keys in bytes; not used if there are lengths.
    pub width: usize,
    /// The number of keys.
    pub count: usize,
}

/// The numbers of a filter as it is now.
#[repr(C)]
pub struct PetalStats {
    /// The number of keys that it was planned for; 0 without a plan.
    pub capacity: u64,
    /// The number of inserts that were new.
    pub inserted: u64,
    /// The size of its data in bytes.
    pub size_bytes: u64,
    /// Its memory in bytes, without pages of a file.
    pub memory_bytes: u64,
    /// The false-positive rate that it was planned for; 0 without a plan.
    pub target_fpr: f64,
    /// The false-positive rate by its data.
    pub estimated_fpr: f64,
    /// The number of distinct keys by its data.
    pub estimated_keys: f64,
    /// The share of bits, counters or slots in use.
    pub fill_ratio: f64,
}

// ---- Arguments ----------------------------------------------------------------------------------

fn invalid(text: &str) -> Failure {
    Failure::new(PetalCode::PetalInvalid, text)
}

/// # Safety
/// `data` is NULL, or valid for `length` bytes.
unsafe fn bytes<'a>(data: *const c_void, length: usize) -> Result<&'a [u8], Failure> {
    if length == 0 {
        return Ok(&[]);
    }
    if data.is_null() {
        return Err(invalid("the bytes are NULL"));
    }
    // SAFETY: as the caller promises.
    Ok(unsafe { from_raw_parts(data.cast(), length) })
}

/// # Safety
/// `text` is NULL, or ends with a zero byte.
unsafe fn text<'a>(text: *const c_char, name: &str) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(invalid(&format!("{name} is NULL")));
    }
    // SAFETY: as the caller promises.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| invalid(&format!("{name} is not UTF-8")))
}

/// # Safety
/// `secret` is NULL, or valid for 16 bytes.
unsafe fn secret(secret: *const u8) -> Option<Secret> {
    if secret.is_null() {
        return None;
    }
    // SAFETY: as the caller promises.
    let bytes = unsafe { from_raw_parts(secret, PETAL_SECRET_BYTES) };
    bytes.try_into().ok().map(Secret::new)
}

/// # Safety
/// `filter` is NULL or was returned by this library and not freed.
unsafe fn filter<'a>(filter: *const PetalFilter) -> Result<&'a PetalFilter, Failure> {
    // SAFETY: as the caller promises.
    unsafe { filter.as_ref() }.ok_or_else(|| invalid("the filter is NULL"))
}

/// # Safety
/// As [`filter`], and nothing else uses it during the call.
unsafe fn filter_mut<'a>(filter: *mut PetalFilter) -> Result<&'a mut PetalFilter, Failure> {
    // SAFETY: as the caller promises.
    unsafe { filter.as_mut() }.ok_or_else(|| invalid("the filter is NULL"))
}

/// # Safety
/// `keys` is NULL, or its pointers are valid for the keys that it describes.
unsafe fn keys<'a>(
    keys: *const PetalKeys,
) -> Result<(usize, impl Iterator<Item = &'a [u8]>), Failure> {
    // SAFETY: as the caller promises.
    let Some(&PetalKeys { data, lengths, width, count }) = (unsafe { keys.as_ref() }) else {
        return Err(invalid("the keys are NULL"));
    };
    let lengths = if lengths.is_null() {
        None
    } else {
        // SAFETY: as the caller promises.
        Some(unsafe { from_raw_parts(lengths, count) })
    };
    let length_of = move |key: usize| lengths.map_or(width, |lengths| lengths[key]);
    let total = match lengths {
        Some(lengths) => lengths.iter().try_fold(0usize, |sum, &length| sum.checked_add(length)),
        None => width.checked_mul(count),
    };
    let total = total.filter(|total| *total <= isize::MAX as usize);
    let total = total.ok_or_else(|| invalid("the keys are longer than the memory"))?;
    // SAFETY: as the caller promises.
    let mut rest = unsafe { bytes(data, total) }?;
    let keys = (0..count).map(move |key| {
        let first;
        (first, rest) = rest.split_at(length_of(key));
        first
    });
    Ok((count, keys))
}

/// Runs a function; writes an error, or that there is none, to `error`, and returns `failed` for errors and panics.
///
/// # Safety
/// `error` is NULL or valid for writes.
unsafe fn guarded<T>(
    error: *mut PetalError,
    failed: T,
    run: impl FnOnce() -> Result<T, Failure>,
) -> T {
    let outcome = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
        Err(Failure::new(PetalCode::PetalInternal, "a fault of libpetal; please report it"))
    });
    // SAFETY: as the caller promises.
    let error = unsafe { error.as_mut() };
    match outcome {
        Ok(value) => {
            if let Some(error) = error {
                error.code = PetalCode::PetalOk as i32;
            }
            value
        }
        Err(failure) => {
            if let Some(error) = error {
                failure.write_to(error);
            }
            failed
        }
    }
}

fn boxed(filter: Result<PetalFilter, Failure>) -> Result<*mut PetalFilter, Failure> {
    filter.map(|filter| Box::into_raw(Box::new(filter)))
}

// ---- Making and freeing filters -----------------------------------------------------------------

/// Returns the version of the library: "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn petal_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// Makes an empty filter of a specification: a type, then fields, such as "bloom capacity=1e6 fpr=0.001". Types that are
/// built from all their keys at once are made by petal_build_from_keys.
///
/// secret: 16 bytes, or NULL. Files of the filter do not contain it, and are opened with it only.
///
/// Returns NULL after an error. The caller frees the filter.
///
/// # Safety
/// The pointers are valid as described, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn petal_build(
    spec: *const c_char,
    secret: *const u8,
    error: *mut PetalError,
) -> *mut PetalFilter {
    let run = || {
        // SAFETY: as the caller promises.
        let (text, secret) = unsafe { (text(spec, "the specification")?, self::secret(secret)) };
        boxed(PetalFilter::build(&spec::parse(text, secret.as_ref())?))
    };
    // SAFETY: as the caller promises.
    unsafe { guarded(error, null_mut(), run) }
}

/// Builds a filter of all its keys: "static fpr=0.001", "static-fuse fpr=0.001", "cascade fpr=0.01", or any other type.
///
/// others: the non-members of a cascade, which it never contains; NULL for other types.
///
/// Returns NULL after an error. The caller frees the filter. Memory: 16 bytes per key, and up to 80 per member of a
/// cascade.
///
/// # Safety
/// The pointers are valid as described, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn petal_build_from_keys(
    spec: *const c_char,
    secret: *const u8,
    members: *const PetalKeys,
    others: *const PetalKeys,
    error: *mut PetalError,
) -> *mut PetalFilter {
    let run = || {
        // SAFETY: as the caller promises.
        let (text, secret) = unsafe { (text(spec, "the specification")?, self::secret(secret)) };
        let spec = spec::parse(text, secret.as_ref())?;
        // SAFETY: as the caller promises.
        let (_, members) = unsafe { keys(members) }?;
        if others.is_null() {
            return boxed(PetalFilter::build_from(&spec, members, std::iter::empty()));
        }
        // SAFETY: as the caller promises.
        let (_, others) = unsafe { keys(others) }?;
        boxed(PetalFilter::build_from(&spec, members, others))
    };
    // SAFETY: as the caller promises.
    unsafe { guarded(error, null_mut(), run) }
}

/// Opens a file: one of petal is mapped and shares its pages with other processes, one of another program is read. Only
/// the header of a mapped file is checked: see petal_verify.
///
/// No process may change the file while the filter exists. Replacing it, as petal_save does, is no change.
///
/// Returns NULL after an error. The caller frees the filter.
///
/// # Safety
/// The pointers are valid as described, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn petal_open(
    path: *const c_char,
    secret: *const u8,
    error: *mut PetalError,
) -> *mut PetalFilter {
    let run = || {
        // SAFETY: as the caller promises.
        let (path, secret) = unsafe { (text(path, "the path")?, self::secret(secret)) };
        let path = Path::new(path);
        // SAFETY: the caller promises that no process changes the file.
        let map = unsafe { Mapped::open(&File::open(path)?) }?;
        boxed(PetalFilter::open(path, map, secret.as_ref()))
    };
    // SAFETY: as the caller promises.
    unsafe { guarded(error, null_mut(), run) }
}

/// Takes the bytes of a file of petal or of another program, and checks all of them. Bytes of petal that begin at a
/// multiple of 64 are not copied: they must stay as they are until the filter is freed.
///
/// Returns NULL after an error. The caller frees the filter.
///
/// # Safety
/// The pointers are valid as described, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn petal_from_bytes(
    data: *const c_void,
    length: usize,
    secret: *const u8,
    error: *mut PetalError,
) -> *mut PetalFilter {
    let run = || {
        // SAFETY: as the caller promises.
        let (bytes, secret) = unsafe { (bytes(data, length)?, self::secret(secret)) };
        boxed(PetalFilter::from_bytes(bytes, secret.as_ref()))
    };
    // SAFETY: as the caller promises.
    unsafe { guarded(error, null_mut(), run) }
}

/// Copies a filter to memory of its own, where it can be changed.
///
/// Returns NULL after an error. The caller frees the copy.
///
/// # Safety
/// The pointers are valid as described, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn petal_copy(
    filter: *const PetalFilter,
    error: *mut PetalError,
) -> *mut PetalFilter {
    // SAFETY: as the caller promises.
    unsafe { guarded(error, null_mut(), || boxed(self::filter(filter)?.copy())) }
}

/// Frees a filter; NULL is ignored.
///
/// # Safety
/// The filter was returned by this library and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn petal_free(filter: *mut PetalFilter) {
    if !filter.is_null() {
        // SAFETY: as the caller promises.
        let filter = unsafe { Box::from_raw(filter) };
        let _ = catch_unwind(AssertUnwindSafe(|| drop(filter)));
    }
}

// ---- Queries ------------------------------------------------------------------------------------

/// Returns 0 if the key was certainly not inserted, 1 if it may have been, and -1, which is no "no", if the filter or the
/// key is NULL or the key cannot be one of this filter.
///
/// # Safety
/// The pointers are valid as described, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn petal_contains(
    filter: *const PetalFilter,
    key: *const c_void,
    length: usize,
) -> i32 {
    let run = || {
        // SAFETY: as the caller promises.
        let (filter, key) = unsafe { (self::filter(filter)?, bytes(key, length)?) };
        filter.contains(key).map(i32::from)
    };
    // SAFETY: there is no error to write.
    unsafe { guarded(null_mut(), -1, run) }
}

/// petal_contains for an integer, whose key is its eight bytes, the lowest first.
///
/// # Safety
/// The filter is valid or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn petal_contains_u64(filter: *const PetalFilter, key: u64) -> i32 {
    let key = key.to_le_bytes();
    // SAFETY: as the caller promises.
    unsafe { petal_contains(filter, key.as_ptr().cast(), key.len()) }
}

/// Looks up many keys; faster than one by one, most of all in a filter that is larger than the processor's caches.
///
/// found: a bool for each key, true if it may have been inserted; after an error also true if it was not looked up.
///
/// Returns 0, or -1 after an error.
///
/// # Safety
/// The pointers are valid as described, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn petal_contains_batch(
    filter: *const PetalFilter,
    keys: *const PetalKeys,
    found: *mut bool,
    error: *mut PetalError,
) -> i32 {
    let run = || {
        // SAFETY: as the caller promises.
        let (filter, (count, keys)) = unsafe { (self::filter(filter)?, self::keys(keys)?) };
        // SAFETY: as the caller promises.
        let found = unsafe { results(found, count, true) };
        let found = found.ok_or_else(|| invalid("found is NULL"))?;
        filter.contains_batch(keys, found).map(|()| 0)
    };
    // SAFETY: as the caller promises.
    unsafe { guarded(error, -1, run) }
}

/// Returns results that are all `first`; `None` if the pointer is NULL.
///
/// # Safety
/// `results` is NULL, or valid for `count` bools.
unsafe fn results<'a>(results: *mut bool, count: usize, first: bool) -> Option<&'a mut [bool]> {
    if results.is_null() {
        return (count == 0).then_some(&mut []);
    }
    // The caller's memory need not be initialized.
    // SAFETY: as the caller promises.
    unsafe { results.write_bytes(u8::from(first), count) };
    // SAFETY: as the caller promises, and each is a bool now.
    Some(unsafe { std::slice::from_raw_parts_mut(results, count) })
}

// ---- Changes ------------------------------------------------------------------------------------

/// Inserts a key. Returns 1 if it certainly was not in the filter, 0 if it may have been, and -1 after an error.
///
/// # Safety
/// The pointers are valid as described, or NULL, and nothing else uses the filter.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn petal_insert(
    filter: *mut PetalFilter,
    key: *const c_void,
    length: usize,
    error: *mut PetalError,
) -> i32 {
    let run = || {
        // SAFETY: as the caller promises.
        let (filter, key) = unsafe { (filter_mut(filter)?, bytes(key, length)?) };
        filter.insert(key).map(i32::from)
    };
    // SAFETY: as the caller promises.
    unsafe { guarded(error, -1, run) }
}

/// Inserts many keys.
///
/// new_keys: NULL, or a bool for each key: whether it certainly was not in the filter.
///
/// Returns 0, or -1 after an error: keys before the one that failed are then in the filter.
///
/// # Safety
/// The pointers are valid as described, or NULL, and nothing else uses the filter.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn petal_insert_batch(
    filter: *mut PetalFilter,
    keys: *const PetalKeys,
    new_keys: *mut bool,
    error: *mut PetalError,
) -> i32 {
    let run = || {
        // SAFETY: as the caller promises.
        let (filter, (count, keys)) = unsafe { (filter_mut(filter)?, self::keys(keys)?) };
        // SAFETY: as the caller promises.
        let new = unsafe { results(new_keys, count, false) };
        filter.insert_batch(keys, count, new).map(|()| 0)
    };
    // SAFETY: as the caller promises.
    unsafe { guarded(error, -1, run) }
}

/// Removes a key from a filter that supports it: "counting", "counting-classic", "quotient", "vector-quotient". Remove
/// only keys that were inserted.
///
/// Returns 1 if a key was removed, 0 if it certainly was not in the filter, and -1 after an error.
///
/// # Safety
/// The pointers are valid as described, or NULL, and nothing else uses the filter.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn petal_remove(
    filter: *mut PetalFilter,
    key: *const c_void,
    length: usize,
    error: *mut PetalError,
) -> i32 {
    let run = || {
        // SAFETY: as the caller promises.
        let (filter, key) = unsafe { (filter_mut(filter)?, bytes(key, length)?) };
        filter.remove(key).map(i32::from)
    };
    // SAFETY: as the caller promises.
    unsafe { guarded(error, -1, run) }
}

/// Moves the window of a "windowed" filter that forgets with time to `now`, in the ticks of its window. An earlier time
/// changes nothing. The window moves only by this function.
///
/// Returns 0, or -1 after an error.
///
/// # Safety
/// The pointers are valid as described, or NULL, and nothing else uses the filter.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn petal_advance(
    filter: *mut PetalFilter,
    now: u64,
    error: *mut PetalError,
) -> i32 {
    // SAFETY: as the caller promises.
    unsafe { guarded(error, -1, || filter_mut(filter)?.advance(now).map(|()| 0)) }
}

/// Adds all keys of another filter with the same type, layout and hash.
///
/// Returns 0, or -1 after an error: the filter is then unchanged.
///
/// # Safety
/// The filters are valid and different, or NULL, and nothing else uses the first one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn petal_union(
    filter: *mut PetalFilter,
    other: *const PetalFilter,
    error: *mut PetalError,
) -> i32 {
    let run = || {
        if std::ptr::eq(filter, other) {
            return Ok(0);
        }
        // SAFETY: as the caller promises; they are different.
        let (filter, other) = unsafe { (filter_mut(filter)?, self::filter(other)?) };
        filter.union(other).map(|()| 0)
    };
    // SAFETY: as the caller promises.
    unsafe { guarded(error, -1, run) }
}

// ---- Description and files ----------------------------------------------------------------------

/// Returns the name of the filter's type, such as "bloom", or of another program's format; "" for NULL. The text need
/// not be freed.
///
/// # Safety
/// The filter is valid or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn petal_type(filter: *const PetalFilter) -> *const c_char {
    // SAFETY: as the caller promises.
    unsafe { guarded(null_mut(), c"".as_ptr(), || Ok(self::filter(filter)?.type_name().as_ptr())) }
}

/// Returns the metadata of the file that the filter is from, which belong to the filter; "" if there are none.
///
/// # Safety
/// The filter is valid or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn petal_metadata(filter: *const PetalFilter) -> *const c_char {
    // SAFETY: as the caller promises.
    unsafe { guarded(null_mut(), c"".as_ptr(), || Ok(self::filter(filter)?.metadata().as_ptr())) }
}

/// Writes the numbers of a filter of petal to `stats`. Reads the whole filter.
///
/// Returns 0, or -1 after an error.
///
/// # Safety
/// The pointers are valid as described, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn petal_statistics(
    filter: *const PetalFilter,
    stats: *mut PetalStats,
    error: *mut PetalError,
) -> i32 {
    let run = || {
        if stats.is_null() {
            return Err(invalid("stats is NULL"));
        }
        // SAFETY: as the caller promises.
        let numbers = unsafe { self::filter(filter) }?.stats()?;
        let numbers = PetalStats {
            capacity: numbers.capacity,
            inserted: numbers.inserted,
            size_bytes: numbers.size_bytes,
            memory_bytes: numbers.memory_usage,
            target_fpr: numbers.target_fpr,
            estimated_fpr: numbers.estimated_fpr,
            estimated_keys: numbers.estimated_len,
            fill_ratio: numbers.fill_ratio,
        };
        // SAFETY: as the caller promises.
        unsafe { stats.write(numbers) };
        Ok(0)
    };
    // SAFETY: as the caller promises.
    unsafe { guarded(error, -1, run) }
}

/// Checks every byte of the file that the filter is from.
///
/// Returns 0, or -1 if anything in it is damaged.
///
/// # Safety
/// The pointers are valid as described, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn petal_verify(filter: *const PetalFilter, error: *mut PetalError) -> i32 {
    // SAFETY: as the caller promises.
    unsafe { guarded(error, -1, || self::filter(filter)?.verify().map(|()| 0)) }
}

/// Writes the filter to a file, which replaces an earlier one only when it is complete.
///
/// metadata: text for the file, at most 1 MiB, e.g. JSON; NULL keeps that of the filter.
///
/// Returns 0, or -1 after an error.
///
/// # Safety
/// The pointers are valid as described, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn petal_save(
    filter: *const PetalFilter,
    path: *const c_char,
    metadata: *const c_char,
    error: *mut PetalError,
) -> i32 {
    let run = || {
        // SAFETY: as the caller promises.
        let (filter, path) = unsafe { (self::filter(filter)?, text(path, "the path")?) };
        let metadata = match metadata.is_null() {
            true => None,
            // SAFETY: as the caller promises.
            false => Some(unsafe { text(metadata, "the metadata") }?),
        };
        filter.save(Path::new(path), metadata).map(|()| 0)
    };
    // SAFETY: as the caller promises.
    unsafe { guarded(error, -1, run) }
}
