//! Any calls of libpetal with any bytes return: no crash, no access outside the bytes, no leak.
#![no_main]

use std::ffi::{CStr, CString, c_char};
use std::ptr::{null, null_mut};

use libfuzzer_sys::fuzz_target;
use petal_capi::*;

/// Numbers and bytes from the input; zeros after its end.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn byte(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or(0)
    }

    fn bytes(&mut self, len: usize) -> &'a [u8] {
        let (first, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        first
    }

    fn piece(&mut self) -> &'a [u8] {
        let len = self.byte().into();
        self.bytes(len)
    }
}

const SPECS: [&CStr; 8] = [
    c"bloom capacity=100 fpr=0.01",
    c"classic bits=777 probes=3",
    c"counting capacity=30 fpr=0.1",
    c"quotient capacity=40 fpr=0.1",
    c"vector-quotient capacity=40 fpr=0.01",
    c"scalable capacity=20 fpr=0.1",
    c"static fpr=0.1",
    c"cascade fpr=0.1",
];

fuzz_target!(|input: &[u8]| {
    let mut input = Input(input);
    let mut error = PetalError { code: 0, offset: 0, message: [0; PETAL_MESSAGE] };
    let secret = [7; PETAL_SECRET_BYTES];
    let secret = if input.byte() % 4 == 0 { secret.as_ptr() } else { null() };
    let how = input.byte();
    // SAFETY: the pointers are valid for the lengths that are given, and every filter is freed once.
    unsafe {
        let filter = match how % 4 {
            0 => {
                let bytes = input.bytes(usize::MAX);
                let filter =
                    petal_from_bytes(bytes.as_ptr().cast(), bytes.len(), secret, &raw mut error);
                query(filter, bytes);
                petal_free(filter);
                return;
            }
            1 => {
                let text = CString::new(input.piece()).unwrap_or_default();
                petal_build(text.as_ptr(), secret, &raw mut error)
            }
            2 => petal_build(SPECS[usize::from(input.byte()) % 8].as_ptr(), secret, &raw mut error),
            _ => {
                let spec: *const c_char = SPECS[usize::from(input.byte()) % 8].as_ptr();
                let (members, others) = (keys(input.piece(), 3), keys(input.piece(), 2));
                petal_build_from_keys(
                    spec,
                    secret,
                    &raw const members,
                    &raw const others,
                    &raw mut error,
                )
            }
        };
        if filter.is_null() {
            assert!(error.code > 0 && error.message[0] != 0);
            return;
        }
        let mut other: *mut PetalFilter = null_mut();
        while !input.0.is_empty() {
            let (what, key) = (input.byte(), input.piece());
            let (data, length) = (key.as_ptr().cast(), key.len());
            match what % 6 {
                0 if petal_insert(filter, data, length, &raw mut error) >= 0 => {
                    assert_eq!(petal_contains(filter, data, length), 1);
                }
                1 => _ = petal_remove(filter, data, length, &raw mut error),
                2 => {
                    let keys = keys(key, 2);
                    let mut new = vec![false; keys.count];
                    petal_insert_batch(filter, &raw const keys, new.as_mut_ptr(), &raw mut error);
                }
                3 if other.is_null() => other = petal_copy(filter, &raw mut error),
                4 => _ = petal_union(filter, other, &raw mut error),
                _ => query(filter, key),
            }
        }
        petal_free(other);
        petal_free(filter);
    }
});

/// Keys of one width.
fn keys(bytes: &[u8], width: usize) -> PetalKeys {
    PetalKeys { data: bytes.as_ptr().cast(), lengths: null(), width, count: bytes.len() / width }
}

/// Asks for a filter's numbers and keys, which are equal one by one and together.
///
/// # Safety
/// The filter is NULL or valid.
unsafe fn query(filter: *const PetalFilter, bytes: &[u8]) {
    let keys = keys(&bytes[..bytes.len().min(3000)], 3);
    let mut found = vec![false; keys.count];
    // SAFETY: as in the target.
    unsafe {
        let answered =
            petal_contains_batch(filter, &raw const keys, found.as_mut_ptr(), null_mut());
        for (key, found) in bytes.chunks_exact(3).zip(found).take(20) {
            let alone = petal_contains(filter, key.as_ptr().cast(), 3);
            assert!(answered != 0 || alone == i32::from(found));
        }
        petal_verify(filter, null_mut());
        assert!(!petal_type(filter).is_null() && !petal_metadata(filter).is_null());
    }
}
