//! Many keys at once: from Arrow's memory, from numpy's arrays, from any iterable.
//!
//! All of them are hashed in pieces whose hashes fit the nearest cache, and each piece is put in
//! or asked for under one taking of the filter's lock, without the interpreter's. So other threads
//! of Python go on, and see the keys of a long update come in.
//!
//! Cost beside hashing and looking: nothing for Arrow; a copy of each slice for numpy, whose
//! arrays others may change meanwhile; some 20 ns for each object of an iterable, under the
//! interpreter's lock.

use arrow_array::Array as _;
use petal::Answers;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyList, PyMemoryView, PySlice, PyString};

use crate::arrow::{self, Arrays, Bits};
use crate::held::Keyer;
use crate::key::{Key, out_of_range, with_key};
use crate::shared::Filter;

/// Keys of a piece: as many as the library itself hashes together.
const PIECE: usize = 1024;

/// Keys between two looks at whether Ctrl-C was pressed.
const PATIENCE: usize = 1 << 20;

/// Keys of a numpy array that are copied at once.
const SLICE: usize = 1 << 16;

/// The words of some keys of a piece.
struct Piece<'a> {
    words: &'a [u64],
    /// Keys and nulls.
    len: usize,
    /// Where the keys are, if there are nulls among them.
    rows: Option<&'a [usize]>,
}

/// What is done with each piece, without the interpreter's lock.
type Take<'a> = dyn FnMut(Piece<'_>) -> PyResult<()> + Send + 'a;

/// Adds keys; how many were new.
pub(crate) fn update(filter: &Filter, keys: &Bound<'_, PyAny>) -> PyResult<u64> {
    filter.write(keys.py())?.check_changeable()?;
    let keyer = filter.read(keys.py())?.member_keyer();
    let (mut new, mut answers) = (0, Answers::new());
    Batch::of(keys)?.for_pieces(keyer, &mut |piece| {
        filter.write_detached()?.insert_words(piece.words, &mut answers)?;
        new += answers.count_ones();
        Ok(())
    })?;
    Ok(new)
}

/// Asks for keys; a mask of the kind that goes with them.
pub(crate) fn contains<'py>(
    filter: &Filter,
    keys: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = keys.py();
    let keyer = filter.read(py)?.keyer();
    let (mut mask, mut answers) = (Bits::new(), Answers::new());
    let batch = Batch::of(keys)?;
    let is_numpy = matches!(batch, Batch::Numpy { .. });
    let is_arrow = matches!(batch, Batch::Arrow(..));
    batch.for_pieces(keyer, &mut |piece| {
        filter.read_detached()?.contains_words(piece.words, &mut answers);
        mask.append(&answers, piece.len, piece.rows);
        Ok(())
    })?;
    if is_arrow {
        let mask = Py::new(py, mask.into_mask())?.into_bound(py).into_any();
        let module = keys.get_type().module()?;
        if module.to_str()?.starts_with("pyarrow") {
            return py.import("pyarrow")?.call_method1("array", (mask,));
        }
        return Ok(mask);
    }
    if is_numpy {
        let bytes: Vec<u8> = mask.iter().map(u8::from).collect();
        let words = PyDict::new(py);
        words.set_item("dtype", "bool")?;
        // A bytearray, so that the mask can be written to.
        let bytes = PyByteArray::new(py, &bytes);
        return py.import("numpy")?.call_method("frombuffer", (bytes,), Some(&words));
    }
    Ok(PyList::new(py, mask.iter())?.into_any())
}

/// The words of all keys.
pub(crate) fn words(keys: &Bound<'_, PyAny>, keyer: Keyer) -> PyResult<Vec<u64>> {
    let mut all = Vec::new();
    Batch::of(keys)?.for_pieces(keyer, &mut |piece| {
        all.extend_from_slice(piece.words);
        Ok(())
    })?;
    Ok(all)
}

/// Keys by what they lie in.
enum Batch<'a, 'py> {
    Arrow(&'a Bound<'py, PyAny>, Arrays),
    Numpy { array: &'a Bound<'py, PyAny>, kind: Numbers, size: usize },
    Each(&'a Bound<'py, PyAny>),
}

/// What a numpy array is made of.
#[derive(Clone, Copy)]
enum Numbers {
    Bytes,
    Text,
    Signed,
    Unsigned,
    /// Bytes of which zeros at the end count, too.
    Raw,
}

impl<'a, 'py> Batch<'a, 'py> {
    fn of(keys: &'a Bound<'py, PyAny>) -> PyResult<Self> {
        refuse_one_key(keys)?;
        if let Some(arrays) = arrow::arrays(keys)? {
            return Ok(Self::Arrow(keys, arrays));
        }
        let py = keys.py();
        let module = keys.get_type().module()?;
        if module.to_str()?.starts_with("numpy.ma") {
            return Err(PyTypeError::new_err(
                "keys: a masked array; give keys.compressed(), which is without what is masked",
            ));
        }
        if module.to_str()? != "numpy" {
            return Ok(Self::Each(keys));
        }
        let Some(dtype) = keys.getattr_opt(intern!(py, "dtype"))? else {
            return Ok(Self::Each(keys));
        };
        let dimensions: usize = keys.getattr(intern!(py, "ndim"))?.extract()?;
        if dimensions != 1 {
            return Err(PyValueError::new_err(format!(
                "keys: expected an array of one dimension, found {dimensions}; give keys.ravel()"
            )));
        }
        let size = dtype.getattr(intern!(py, "itemsize"))?.extract()?;
        let kind: char = dtype.getattr(intern!(py, "kind"))?.extract()?;
        let kind = match kind {
            'S' => Numbers::Bytes,
            'U' => Numbers::Text,
            'i' => Numbers::Signed,
            'u' => Numbers::Unsigned,
            'V' if is_void(&dtype)? => Numbers::Raw,
            // Of Python's objects, and of strings of any length.
            'O' | 'T' => return Ok(Self::Each(keys)),
            _ => {
                return Err(PyTypeError::new_err(format!(
                    "keys: an array of {dtype} holds no keys; expected bytes, str or integers"
                )));
            }
        };
        if size == 0 { Ok(Self::Each(keys)) } else { Ok(Self::Numpy { array: keys, kind, size }) }
    }

    /// Hashes all keys piece by piece, and hands over their words.
    fn for_pieces(self, keyer: Keyer, take: &mut Take<'_>) -> PyResult<()> {
        match self {
            Self::Arrow(keys, arrays) => {
                keys.py().detach(|| for_pieces_of_arrow(arrays, keyer, take))
            }
            Self::Numpy { array, kind, size } => {
                for_pieces_of_numpy(array, (kind, size), keyer, take)
            }
            Self::Each(keys) => for_pieces_of_objects(keys, keyer, take),
        }
    }
}

fn for_pieces_of_arrow(arrays: Arrays, mut keyer: Keyer, take: &mut Take<'_>) -> PyResult<()> {
    let (mut rows, mut words, mut since) = (Vec::new(), Vec::new(), 0);
    for array in arrays {
        let array = array?;
        for start in (0..array.len()).step_by(PIECE) {
            let piece = array.piece(start, PIECE.min(array.len() - start))?;
            words.clear();
            let nulls = arrow::put_array(&piece, &mut keyer, &mut rows, &mut words)?;
            take(Piece { words: &words, len: piece.len(), rows: nulls.then_some(&rows[..]) })?;
            since += piece.len();
            if since >= PATIENCE {
                since = 0;
                Python::attach(|py| py.check_signals())?;
            }
        }
    }
    Ok(())
}

fn for_pieces_of_numpy(
    array: &Bound<'_, PyAny>,
    (kind, size): (Numbers, usize),
    mut keyer: Keyer,
    take: &mut Take<'_>,
) -> PyResult<()> {
    let py = array.py();
    let dtype = array.getattr(intern!(py, "dtype"))?;
    let big: bool = dtype.getattr(intern!(py, "str"))?.extract::<String>()?.starts_with('>');
    let little = dtype.call_method1(intern!(py, "newbyteorder"), ("<",))?;
    let (len, mut words) = (array.len()?, Vec::new());
    for start in (0..len).step_by(SLICE) {
        let end = len.min(start + SLICE) as isize;
        let mut slice = array.get_item(PySlice::new(py, start as isize, end, 1))?;
        if big {
            slice = slice.call_method1(intern!(py, "astype"), (&little,))?;
        }
        let bytes = slice.call_method0(intern!(py, "tobytes"))?.cast_into::<PyBytes>()?;
        let bytes = bytes.as_bytes();
        py.detach(|| {
            for piece in bytes.chunks(PIECE * size) {
                words.clear();
                let keys = piece.chunks_exact(size);
                let len = keys.len();
                match kind {
                    Numbers::Raw => keyer.put_all(keys, &mut words)?,
                    Numbers::Bytes => keyer.put_all(keys.map(without_zeros), &mut words)?,
                    Numbers::Text => put_text(keys, &mut keyer, &mut words)?,
                    Numbers::Signed | Numbers::Unsigned => {
                        put_numbers(keys, kind, &mut keyer, &mut words)?;
                    }
                }
                take(Piece { words: &words, len, rows: None })?;
            }
            Ok::<_, PyErr>(())
        })?;
        py.check_signals()?;
    }
    Ok(())
}

/// Whether numpy calls it no more than bytes: records have gaps and pointers, and types of others
/// a meaning.
fn is_void(dtype: &Bound<'_, PyAny>) -> PyResult<bool> {
    let char: char = dtype.getattr(intern!(dtype.py(), "char"))?.extract()?;
    Ok(char == 'V' && dtype.getattr(intern!(dtype.py(), "names"))?.is_none())
}

/// numpy fills up with zeros, and takes them away when it is asked for an item.
fn without_zeros(key: &[u8]) -> &[u8] {
    let end = key.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
    &key[..end]
}

/// Text of four bytes a letter.
fn put_text<'a>(
    keys: impl Iterator<Item = &'a [u8]>,
    keyer: &mut Keyer,
    words: &mut Vec<u64>,
) -> PyResult<()> {
    let mut text = String::new();
    for key in keys {
        text.clear();
        for letter in key.as_chunks::<4>().0 {
            let letter = u32::from_le_bytes(*letter);
            text.push(char::from_u32(letter).ok_or_else(|| {
                PyValueError::new_err(format!("keys: U+{letter:04X} is no letter of UTF-8"))
            })?);
        }
        keyer.put(text.trim_end_matches('\0').as_bytes(), words)?;
    }
    Ok(())
}

/// Numbers of any width up to eight bytes.
fn put_numbers<'a>(
    keys: impl Iterator<Item = &'a [u8]>,
    kind: Numbers,
    keyer: &mut Keyer,
    words: &mut Vec<u64>,
) -> PyResult<()> {
    for key in keys {
        let mut bytes = [0; 8];
        bytes[..key.len()].copy_from_slice(key);
        if matches!(kind, Numbers::Signed) && key_is_negative(&bytes[..key.len()]) {
            bytes[key.len()..].fill(0xff);
            return Err(out_of_range(i64::from_le_bytes(bytes)));
        }
        keyer.put_key(Key::Int(u64::from_le_bytes(bytes)), words)?;
    }
    Ok(())
}

fn key_is_negative(little_endian: &[u8]) -> bool {
    little_endian.last().is_some_and(|byte| byte & 0x80 != 0)
}

fn for_pieces_of_objects(
    keys: &Bound<'_, PyAny>,
    mut keyer: Keyer,
    take: &mut Take<'_>,
) -> PyResult<()> {
    let py = keys.py();
    let mut words = Vec::new();
    let mut iterator = keys.try_iter()?;
    loop {
        words.clear();
        let (mut wrong, mut len) = (None, 0);
        for key in iterator.by_ref().take(PIECE) {
            let hashed = key.and_then(|key| with_key(&key, |key| keyer.put_key(key, &mut words)));
            if let Err(error) = hashed {
                wrong = Some(error);
                break;
            }
            len += 1;
        }
        // Those before the one that was wrong, too.
        py.detach(|| take(Piece { words: &words, len, rows: None }))?;
        match wrong {
            Some(error) => return Err(error),
            None if len < PIECE => return Ok(()),
            None => py.check_signals()?,
        }
    }
}

/// One key where many are wanted: its letters are hardly meant.
fn refuse_one_key(keys: &Bound<'_, PyAny>) -> PyResult<()> {
    let one = keys.is_instance_of::<PyString>()
        || keys.is_instance_of::<PyBytes>()
        || keys.is_instance_of::<PyByteArray>()
        || keys.is_instance_of::<PyMemoryView>();
    if one {
        let name = keys.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "keys: expected an array or an iterable of keys, found one {name}; give [key]"
        )));
    }
    Ok(())
}
