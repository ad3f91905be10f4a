//! A filter of any type, wherever it lies: what all classes of Python hold.

use petal::{AnyFilter, HashSpec, Mapped, Membership, MembershipMut, Store};

use crate::error::{Kind, Raise};
use pyo3::PyResult;

/// A filter, and the free-form metadata of its file.
pub(crate) struct Held {
    pub(crate) filter: Place,
    pub(crate) metadata: String,
}

/// Where a filter lies.
pub(crate) enum Place {
    /// In memory of its own.
    Memory(AnyFilter),
    /// In a mapped file, which it never changes.
    File(AnyFilter<Mapped>),
}

impl Held {
    pub(crate) fn new(filter: impl Into<AnyFilter>) -> Self {
        Self { filter: Place::Memory(filter.into()), metadata: String::new() }
    }

    /// What all types have in common.
    pub(crate) fn face(&self) -> &dyn Membership {
        match &self.filter {
            Place::Memory(filter) => filter.face(),
            Place::File(filter) => filter.face(),
        }
    }

    /// The same to change it.
    pub(crate) fn face_mut(&mut self) -> PyResult<&mut dyn MembershipMut> {
        match &mut self.filter {
            Place::Memory(filter) => filter.face_mut().map_err(Raise::raise),
            Place::File(_) => Err(read_only()),
        }
    }

    /// Whether a key may be in it.
    #[inline]
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        match &self.filter {
            Place::Memory(filter) => contains(filter, key),
            Place::File(filter) => contains(filter, key),
        }
    }

    /// How keys become hashes.
    pub(crate) fn hash_spec(&self) -> HashSpec {
        self.face().hash_spec()
    }
}

fn read_only() -> pyo3::PyErr {
    Kind::Unsupported.with(
        "the filter lies in a mapped file and is read only; petal.load(path) reads it into memory",
    )
}

/// One key, without the detour that batches take.
#[inline]
fn contains<S: Store>(filter: &AnyFilter<S>, key: &[u8]) -> bool {
    match filter {
        AnyFilter::Bloom(filter) => filter.contains(key),
        AnyFilter::Classic(filter) => filter.contains(key),
        AnyFilter::Counting(filter) => filter.contains(key),
        AnyFilter::CountingClassic(filter) => filter.contains(key),
        AnyFilter::Quotient(filter) => filter.contains(key),
        AnyFilter::Scalable(filter) => filter.contains(key),
        AnyFilter::Windowed(filter) => filter.contains(key),
        AnyFilter::Static(filter) => filter.contains(key),
        AnyFilter::Cascade(filter) => filter.contains(key),
        AnyFilter::Wide(filter) => filter.contains(key),
        // Of a type that this crate does not know: it may be in it.
        _ => true,
    }
}
