//! The key of a function call: different for calls with different arguments.
//!
//! The key of a call with one text is this text, so that a filter of such calls is one of texts. The key of any
//! other call begins with a byte that no text has. Then come the arguments, each as the letter of its kind and
//! its bytes after their length; the arguments passed by name follow theirs, in the order of the names.
//!
//! | letter | kind | letter | kind |
//! |---|---|---|---|
//! | `s` | text | `d` | date or time |
//! | `b` | bytes | `n` | decimal number |
//! | `i` | integer or boolean | `u` | UUID |
//! | `t` | tuple: its items in the same way | `k` | name of the argument that follows |

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use super::objects::{MAX_DEPTH, append, encode_one, one_deeper};
use super::{Key, KeyBuf, with_key};
use crate::memory::py_bytes;

/// UTF-8 has no such byte.
const NO_TEXT: u8 = 0xff;

/// Returns the key of a call with these arguments.
#[pyfunction(name = "_key_of_call")]
#[pyo3(signature = (*args, **kwargs))]
fn key_of_call<'py>(
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    if args.len() == 1 && kwargs.is_none_or(|named| named.is_empty()) {
        let argument = args.get_item(0)?;
        if argument.is_instance_of::<PyString>() {
            return Ok(argument);
        }
    }
    let mut key = vec![NO_TEXT];
    for argument in args {
        append_argument(&argument, MAX_DEPTH, &mut key)?;
    }
    let mut named: Vec<(String, Bound<'_, PyAny>)> = kwargs
        .into_iter()
        .flatten()
        .map(|(name, argument)| Ok((name.extract()?, argument)))
        .collect::<PyResult<_>>()?;
    named.sort_by(|(one, _), (other, _)| one.cmp(other));
    for (name, argument) in named {
        append_part(b'k', name.as_bytes(), &mut key)?;
        append_argument(&argument, MAX_DEPTH, &mut key)?;
    }
    py_bytes(args.py(), &key).map(Bound::into_any)
}

fn append_part(kind: u8, part: &[u8], key: &mut Vec<u8>) -> PyResult<()> {
    key.push(kind);
    append(part, key)
}

/// Appends an argument. Tuples in it may be nested `depth` times.
fn append_argument(argument: &Bound<'_, PyAny>, depth: usize, key: &mut Vec<u8>) -> PyResult<()> {
    if let Ok(tuple) = argument.cast::<PyTuple>() {
        let (depth, mut items) = (one_deeper(depth)?, Vec::new());
        for item in tuple {
            append_argument(&item, depth, &mut items)?;
        }
        return append_part(b't', &items, key);
    }
    if let Some((kind, bytes)) = encode_one(argument)? {
        return append_part(kind, &bytes, key);
    }
    let is_text = argument.is_instance_of::<PyString>();
    with_key(argument, |part| {
        let kind = match part {
            Key::Int(_) | Key::Bool(_) => b'i',
            Key::Object(_) => b'd',
            Key::Bytes(_) if is_text => b's',
            Key::Bytes(_) => b'b',
        };
        append_part(kind, KeyBuf::default().encode(part, false), key)
    })
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(key_of_call, module)?)
}
