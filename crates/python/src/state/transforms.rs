//! The changes to the keys of a filter of lines, and how they are spelled, which its metadata records.

use petal_interop::KeyType;
use petal_lines::{
    KeyChanges, Spelling, Transform, recorded_spelling, transforms_text, union_metadata,
};
use pyo3::{PyErr, PyResult};

use super::FilterState;
use crate::error::Exception;

/// Returns the changes to keys and queries that the metadata of a filter records.
///
/// # Errors
/// If it names one that this version does not know.
pub(crate) fn recorded(metadata: &str) -> PyResult<KeyChanges> {
    KeyChanges::recorded(metadata).map_err(|list| {
        Exception::Incompatible.new_err(format_args!(
            "the keys of the filter were changed by '{list}', which this version of petal does not \
             know; use a newer version"
        ))
    })
}

/// Returns the names of transforms that have one.
pub(crate) fn names(list: &[Transform]) -> Vec<String> {
    list.iter().filter(|transform| transform.has_name()).map(ToString::to_string).collect()
}

/// Returns the changes for keys that are added to the filter with this metadata: those that it records,
/// otherwise those `given`.
///
/// # Errors
/// If others were given.
pub(crate) fn adopted(metadata: &str, given: &[Transform]) -> PyResult<Vec<Transform>> {
    let changes = recorded(metadata)?;
    let adopted = changes.adopt(given);
    adopted.map_err(|recorded| others_given("the keys of the filter were", recorded, given))
}

fn others_given(subject: &str, recorded: &[Transform], given: &[Transform]) -> PyErr {
    let recorded = match transforms_text(recorded) {
        text if text.is_empty() => "not changed".to_owned(),
        text => format!("changed by '{text}'"),
    };
    Exception::Incompatible.new_err(format_args!(
        "key_transform=: {subject} {recorded}, not by '{}'; leave it out to use those of the filter",
        transforms_text(given)
    ))
}

impl FilterState {
    /// Returns the changes for keys that are looked up: those that the filter records, with the case of its
    /// keys, otherwise those `given`.
    ///
    /// # Errors
    /// If others were given.
    pub(crate) fn adopted_for_queries(&self, given: &[Transform]) -> PyResult<Vec<Transform>> {
        let changes = recorded(&self.metadata)?;
        let adopted = changes.adopt_for_queries(self.recorded_spelling(), given);
        let subject = match changes.of_queries_only() {
            Some(_) => "queries of the filter are",
            None => "the keys of the filter were",
        };
        adopted.map_err(|recorded| others_given(subject, recorded, given))
    }

    /// Returns how the keys are spelled, if the filter records it or it does not matter.
    pub(crate) fn recorded_spelling(&self) -> Option<Spelling> {
        match self.format_and_key_type() {
            Some((_, key_type)) => (key_type == KeyType::TextCrlf.name()).then(Spelling::default),
            None => recorded_spelling(&self.metadata, self.inserted()),
        }
    }

    /// Replaces the metadata.
    pub(crate) fn replace_metadata(&mut self, metadata: String) {
        self.metadata = metadata;
        self.has_more_keys = false;
    }

    /// Adapts the metadata to keys that are added next: it is not known how they are spelled.
    #[inline]
    pub(super) fn expect_keys(&mut self) {
        if self.has_more_keys || self.metadata.is_empty() || self.is_mapped() {
            return;
        }
        self.metadata = union_metadata((&self.metadata, self.inserted()), ("", 1), 0);
        self.has_more_keys = true;
    }

    /// Adapts the metadata to the keys of another filter that were added; there were `before`.
    pub(crate) fn add_metadata_of(&mut self, other: &Self, before: u64) {
        let (ours, others) = ((&*self.metadata, before), (&*other.metadata, other.inserted()));
        self.replace_metadata(union_metadata(ours, others, self.inserted()));
    }

    pub(crate) fn inserted(&self) -> u64 {
        self.as_dyn().map_or(0, |filter| filter.inserted())
    }

    /// Returns an error if the keys of two filters were changed in different ways.
    pub(crate) fn check_same_transforms(&self, other: &Self) -> PyResult<()> {
        if self.metadata == other.metadata {
            return Ok(());
        }
        let (one, two) = (recorded(&self.metadata)?, recorded(&other.metadata)?);
        if one == two {
            return Ok(());
        }
        let argument = match one.of_keys() == two.of_keys() {
            true => "query_transform=",
            false => "key_transform=",
        };
        Err(Exception::Incompatible.new_err(format_args!(
            "the keys of one filter were {one}, those of the other were {two}; build both with the same \
             {argument}, or set the metadata of a filter whose keys you changed",
        )))
    }
}
