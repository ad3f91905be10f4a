//! Many keys at once: from iterables.

use petal::Answers;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyList, PyMemoryView, PyString};

use crate::filter::Filter;
use crate::held::Keyer;
use crate::key::with_key;

/// Keys that are hashed together, and their hashes looked at while they are in the nearest cache.
const PIECE: usize = 1024;

/// Adds keys; how many were new.
pub(crate) fn update(filter: &Filter, keys: &Bound<'_, PyAny>) -> PyResult<u64> {
    filter.write(keys.py())?.check_changeable()?;
    let keyer = filter.read(keys.py())?.member_keyer();
    let (mut new, mut answers) = (0, Answers::new());
    for_pieces(keys, keyer, &mut |words| {
        filter.write_detached()?.insert_words(words, &mut answers)?;
        new += answers.count_ones();
        Ok(())
    })?;
    Ok(new)
}

/// Asks for keys; a mask.
pub(crate) fn contains<'py>(
    filter: &Filter,
    keys: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let keyer = filter.read(keys.py())?.keyer();
    let (mut mask, mut answers) = (Vec::new(), Answers::new());
    for_pieces(keys, keyer, &mut |words| {
        filter.read_detached()?.contains_words(words, &mut answers);
        mask.extend((0..answers.len()).map(|at| answers.get(at)));
        Ok(())
    })?;
    Ok(PyList::new(keys.py(), mask)?.into_any())
}

/// The words of all keys.
pub(crate) fn words(keys: &Bound<'_, PyAny>, keyer: Keyer) -> PyResult<Vec<u64>> {
    let mut all = Vec::new();
    for_pieces(keys, keyer, &mut |words| {
        all.extend_from_slice(words);
        Ok(())
    })?;
    Ok(all)
}

/// Hashes keys piece by piece, and hands over their words without the interpreter's lock.
fn for_pieces(
    keys: &Bound<'_, PyAny>,
    mut keyer: Keyer,
    take: &mut (dyn FnMut(&[u64]) -> PyResult<()> + Send),
) -> PyResult<()> {
    let py = keys.py();
    refuse_one_key(keys)?;
    let mut words = Vec::new();
    let mut iterator = keys.try_iter()?;
    loop {
        words.clear();
        let (mut wrong, mut got) = (None, 0);
        for key in iterator.by_ref().take(PIECE) {
            got += 1;
            let hashed = key.and_then(|key| with_key(&key, |key| keyer.put_key(key, &mut words)));
            if let Err(error) = hashed {
                wrong = Some(error);
                break;
            }
        }
        py.detach(|| take(&words))?;
        match wrong {
            Some(error) => return Err(error),
            None if got < PIECE => return Ok(()),
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
