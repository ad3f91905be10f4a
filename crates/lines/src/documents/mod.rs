//! Repeated parts of documents: a part stays where it occurs first in all inputs, and each input has an
//! output of its own.
//!
//! * **In memory**: a table has the fingerprints of the parts so far, and documents are written as they are
//!   read.
//! * **By partition**, from the document on whose parts do not fit: every part becomes a record of its
//!   fingerprint and position, the records are joined as those of `dedup`, and a last pass over the inputs
//!   writes the documents without the positions that were found.
//! * **Approximate**: a filter instead of the table.
//!
//! The position of a part is that of its document and its number there. No two are equal, because a part
//! takes at least a byte of its document.
//!
//! | module | contents |
//! |---|---|
//! | `job` | a job as the caller specifies it, and its passes |
//! | `rewrite` | documents without their repeated parts |

mod job;
mod rewrite;
#[cfg(test)]
mod tests;

pub use job::DocumentJob;
pub use rewrite::DocumentOutputs;
