//! What people read on a terminal: histograms, progress, notes.

pub(crate) mod histogram;
pub(crate) mod notes;
pub(crate) mod progress;
