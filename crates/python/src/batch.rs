//! Many keys at once: from Arrow's memory, from numpy's arrays, from pandas, from any iterable.
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
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView, PySlice, PyString};

use crate::arrow::{self, Arrays};
use crate::held::Keyer;
use crate::key::{Key, out_of_range, with_key};
use crate::mask::{Bits, Form};
use crate::pandas::{self, Values};
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
    Batch::of(keys)?.0.for_pieces(keys.py(), keyer, &mut |piece| {
        filter.write_detached()?.insert_words(piece.words, &mut answers)?;
        new += answers.count_ones();
        Ok(())
    })?;
    Ok(new)
}

/// Asks for keys; the answers in the form of their library.
pub(crate) fn contains<'py>(
    filter: &Filter,
    keys: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = keys.py();
    let keyer = filter.read(py)?.keyer();
    let (mut mask, mut answers) = (Bits::new(), Answers::new());
    let (batch, form) = Batch::of(keys)?;
    batch.for_pieces(py, keyer, &mut |piece| {
        filter.read_detached()?.contains_words(piece.words, &mut answers);
        mask.append(&answers, piece.len, piece.rows);
        Ok(())
    })?;
    form.of(py, mask)
}

/// The words of all keys.
pub(crate) fn words(keys: &Bound<'_, PyAny>, keyer: Keyer) -> PyResult<Vec<u64>> {
    let mut all = Vec::new();
    Batch::of(keys)?.0.for_pieces(keys.py(), keyer, &mut |piece| {
        all.extend_from_slice(piece.words);
        Ok(())
    })?;
    Ok(all)
}

/// Keys by what they lie in.
enum Batch<'py> {
    Arrow(Arrays),
    Numpy {
        array: Bound<'py, PyAny>,
        kind: Numbers,
        size: usize,
    },
    /// Objects one by one; where there may be nulls, a byte for each object that is 1 if it is one.
    Each(Bound<'py, PyAny>, Option<Vec<u8>>),
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

impl<'py> Batch<'py> {
    /// The keys, and the form of the answers to them.
    fn of(keys: &Bound<'py, PyAny>) -> PyResult<(Self, Form<'py>)> {
        refuse_one_key(keys)?;
        if let Some(column) = pandas::column(keys)? {
            let form = column.series.map_or(Form::Numpy, Form::Pandas);
            let batch = match column.values {
                Values::Pyarrow(array) => match arrow::arrays(&array)? {
                    Some(arrays) => Self::Arrow(arrays),
                    None => Self::Each(array, None),
                },
                Values::Numpy(array) => Self::of_numpy(&array)?,
                Values::Objects(objects, nulls) => Self::Each(objects, Some(nulls)),
            };
            return Ok((batch, form));
        }
        if let Some(arrays) = arrow::arrays(keys)? {
            return Ok((Self::Arrow(arrays), form_of_arrow(keys)?));
        }
        if pandas::is_instance(keys, "numpy", "ndarray")? {
            return Ok((Self::of_numpy(keys)?, Form::Numpy));
        }
        Ok((Self::Each(keys.clone(), None), Form::List))
    }

    fn of_numpy(array: &Bound<'py, PyAny>) -> PyResult<Self> {
        let py = array.py();
        if pandas::is_instance(array, "numpy.ma", "MaskedArray")? {
            return Err(PyTypeError::new_err(
                "keys: a masked array; give keys.compressed(), which is without what is masked",
            ));
        }
        let dtype = array.getattr(intern!(py, "dtype"))?;
        let dimensions: usize = array.getattr(intern!(py, "ndim"))?.extract()?;
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
            'O' | 'T' => return Ok(Self::Each(array.clone(), None)),
            _ => {
                return Err(PyTypeError::new_err(format!(
                    "keys: an array of {dtype} holds no keys; expected bytes, str or integers"
                )));
            }
        };
        if size == 0 {
            return Ok(Self::Each(array.clone(), None));
        }
        Ok(Self::Numpy { array: array.clone(), kind, size })
    }

    /// Hashes all keys piece by piece, and passes on their words.
    fn for_pieces(self, py: Python<'py>, keyer: Keyer, take: &mut Take<'_>) -> PyResult<()> {
        match self {
            Self::Arrow(arrays) => py.detach(|| for_pieces_of_arrow(arrays, keyer, take)),
            Self::Numpy { array, kind, size } => {
                for_pieces_of_numpy(&array, (kind, size), keyer, take)
            }
            Self::Each(keys, nulls) => for_pieces_of_objects(&keys, nulls, keyer, take),
        }
    }
}

/// The form of the answers to keys in Arrow's memory.
fn form_of_arrow<'py>(keys: &Bound<'py, PyAny>) -> PyResult<Form<'py>> {
    let py = keys.py();
    if keys.get_type().module()?.to_str()?.starts_with("pyarrow") {
        return Ok(Form::Pyarrow);
    }
    if pandas::is_instance(keys, "polars", "Series")? {
        return Ok(Form::Polars(keys.getattr(intern!(py, "name"))?));
    }
    if pandas::is_instance(keys, "polars", "DataFrame")? {
        // Of several columns the keys are refused when the first of them comes.
        let names = keys.getattr(intern!(py, "columns"))?;
        return Ok(if names.len()? == 1 { Form::Polars(names.get_item(0)?) } else { Form::Mask });
    }
    Ok(Form::Mask)
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
    nulls: Option<Vec<u8>>,
    mut keyer: Keyer,
    take: &mut Take<'_>,
) -> PyResult<()> {
    let py = keys.py();
    let (mut words, mut rows) = (Vec::new(), Vec::new());
    let mut nulls = nulls.map(Vec::into_iter);
    let mut iterator = keys.try_iter()?;
    loop {
        words.clear();
        rows.clear();
        let (mut wrong, mut len) = (None, 0);
        for key in iterator.by_ref().take(PIECE) {
            if let Some(nulls) = &mut nulls {
                if nulls.next() == Some(1) {
                    len += 1;
                    continue;
                }
                rows.push(len);
            }
            let hashed = key.and_then(|key| with_key(&key, |key| keyer.put_key(key, &mut words)));
            if let Err(error) = hashed {
                wrong = Some(error);
                break;
            }
            len += 1;
        }
        // Those before the one that was wrong, too.
        let present = nulls.is_some().then_some(&rows[..]);
        py.detach(|| take(Piece { words: &words, len, rows: present }))?;
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
