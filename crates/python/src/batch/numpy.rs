//! Keys in NumPy arrays of bytes, text, integers, booleans or times.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PySlice};

use super::{OnPiece, PIECE, Piece, pandas};
use crate::keys::{Key, KeyHasher, NumpyTimes, out_of_range};

/// Keys that are copied at once.
const SLICE: usize = 1 << 16;

/// An array of one dimension whose elements have a fixed size.
pub(super) struct NumpyKeys<'py> {
    array: Bound<'py, PyAny>,
    element: Element,
    /// Bytes of an element.
    size: usize,
}

#[derive(Clone, Copy)]
enum Element {
    /// Bytes without the zeros at their end.
    Bytes,
    /// UTF-32 without the zeros at its end.
    Text,
    Signed,
    Unsigned,
    Bool,
    Time(NumpyTimes),
    /// Bytes with the zeros at their end.
    Void,
}

impl<'py> NumpyKeys<'py> {
    /// Returns `None` for an array that must be read object by object.
    ///
    /// # Errors
    /// `TypeError` or `ValueError` if the elements are not keys.
    pub(super) fn new(array: &Bound<'py, PyAny>) -> PyResult<Option<Self>> {
        if pandas::is_instance(array, "numpy.ma", "MaskedArray")? {
            return Err(PyTypeError::new_err(
                "keys: found a masked array; use keys.compressed(), the elements without a mask",
            ));
        }
        let dtype = array.getattr("dtype")?;
        let dimensions: usize = array.getattr("ndim")?.extract()?;
        if dimensions != 1 {
            return Err(PyValueError::new_err(format!(
                "keys: expected an array of one dimension, found {dimensions}; use keys.ravel()"
            )));
        }
        let size = dtype.getattr("itemsize")?.extract()?;
        // An array that is empty because of its values has a type by chance: that of `[]` is float64.
        if size == 0 || array.len()? == 0 {
            return Ok(None);
        }
        let kind: char = dtype.getattr("kind")?.extract()?;
        let mut array = array.clone();
        let element = match kind {
            'S' => Element::Bytes,
            'U' => Element::Text,
            'i' => Element::Signed,
            'u' => Element::Unsigned,
            'b' => Element::Bool,
            'M' => {
                let times;
                (array, times) = NumpyTimes::new(&array)?;
                Element::Time(times)
            }
            'V' if is_plain_void(&dtype)? => Element::Void,
            // Python objects, and strings of variable length.
            'O' | 'T' => return Ok(None),
            _ => {
                return Err(PyTypeError::new_err(format!(
                    "keys: an array of {dtype} holds no keys; expected bytes, str, integers or \
                     times"
                )));
            }
        };
        Ok(Some(Self { array, element, size }))
    }

    /// Copies and hashes the keys in pieces and calls `on_piece` for each.
    pub(super) fn for_each_piece(
        self,
        mut hasher: KeyHasher,
        on_piece: &mut OnPiece<'_>,
    ) -> PyResult<()> {
        let Self { array, element, size } = self;
        let py = array.py();
        let dtype = array.getattr("dtype")?;
        let big: bool = dtype.getattr("str")?.extract::<String>()?.starts_with('>');
        let little = dtype.call_method1("newbyteorder", ("<",))?;
        let (len, mut hashes) = (array.len()?, Vec::new());
        for start in (0..len).step_by(SLICE) {
            let end = len.min(start + SLICE) as isize;
            let mut slice = array.get_item(PySlice::new(py, start as isize, end, 1))?;
            if big {
                slice = slice.call_method1("astype", (&little,))?;
            }
            let bytes = slice.call_method0("tobytes")?.cast_into::<PyBytes>()?;
            let bytes = bytes.as_bytes();
            py.detach(|| {
                for piece in bytes.chunks(PIECE * size) {
                    hashes.clear();
                    let keys = piece.chunks_exact(size);
                    let len = keys.len();
                    match element {
                        Element::Void => hasher.hash_all(keys, &mut hashes)?,
                        Element::Bytes => {
                            hasher.hash_all(keys.map(without_zeros), &mut hashes)?;
                        }
                        Element::Text => hash_text(keys, &mut hasher, &mut hashes)?,
                        Element::Signed | Element::Unsigned => {
                            hash_integers(keys, element, &mut hasher, &mut hashes)?;
                        }
                        Element::Bool => {
                            for key in piece {
                                hasher.hash_key(Key::Bool(*key != 0), &mut hashes)?;
                            }
                        }
                        Element::Time(times) => hash_times(keys, times, &mut hasher, &mut hashes)?,
                    }
                    on_piece(Piece { hashes: &hashes, len, rows: None })?;
                }
                Ok::<_, PyErr>(())
            })?;
            py.check_signals()?;
        }
        Ok(())
    }
}

/// Returns true if NumPy defines the type as plain bytes: not a record, which has gaps and pointers,
/// and not a type of another library.
fn is_plain_void(dtype: &Bound<'_, PyAny>) -> PyResult<bool> {
    let char: char = dtype.getattr("char")?.extract()?;
    Ok(char == 'V' && dtype.getattr("names")?.is_none())
}

/// Removes the zeros with which NumPy pads an element, as NumPy does itself.
fn without_zeros(key: &[u8]) -> &[u8] {
    let end = key.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
    &key[..end]
}

/// Hashes UTF-32 texts as UTF-8.
fn hash_text<'a>(
    keys: impl Iterator<Item = &'a [u8]>,
    hasher: &mut KeyHasher,
    hashes: &mut Vec<u64>,
) -> PyResult<()> {
    let mut text = String::new();
    for key in keys {
        text.clear();
        for letter in key.as_chunks::<4>().0 {
            let letter = u32::from_le_bytes(*letter);
            text.push(char::from_u32(letter).ok_or_else(|| {
                PyValueError::new_err(format!("keys: U+{letter:04X} is not a character of UTF-8"))
            })?);
        }
        hasher.hash_bytes(text.trim_end_matches('\0').as_bytes(), hashes)?;
    }
    Ok(())
}

/// Hashes little-endian integers of up to eight bytes.
fn hash_integers<'a>(
    keys: impl Iterator<Item = &'a [u8]>,
    element: Element,
    hasher: &mut KeyHasher,
    hashes: &mut Vec<u64>,
) -> PyResult<()> {
    for key in keys {
        let mut bytes = [0; 8];
        bytes[..key.len()].copy_from_slice(key);
        if matches!(element, Element::Signed) && is_negative(&bytes[..key.len()]) {
            bytes[key.len()..].fill(0xff);
            return Err(out_of_range(i64::from_le_bytes(bytes)));
        }
        hasher.hash_key(Key::Int(u64::from_le_bytes(bytes)), hashes)?;
    }
    Ok(())
}

/// Hashes the texts of times, which are little-endian numbers of eight bytes.
fn hash_times<'a>(
    keys: impl Iterator<Item = &'a [u8]>,
    times: NumpyTimes,
    hasher: &mut KeyHasher,
    hashes: &mut Vec<u64>,
) -> PyResult<()> {
    for ticks in keys.filter_map(<[u8]>::first_chunk) {
        let text = times.text(i64::from_le_bytes(*ticks))?;
        hasher.hash_key(Key::Object(text.as_bytes()), hashes)?;
    }
    Ok(())
}

fn is_negative(little_endian: &[u8]) -> bool {
    little_endian.last().is_some_and(|byte| byte & 0x80 != 0)
}
