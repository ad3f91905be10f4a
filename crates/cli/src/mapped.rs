//! Filter files queried where they lie.

use std::path::Path;

use petal::{AnyFilter, Mapped};

use crate::commands::open;
use crate::exit::{Failure, Result};

/// Maps a filter file into memory; nothing but its header is read.
#[expect(unsafe_code, reason = "the one place where the program maps a file")]
pub(crate) fn open_mapped(path: &Path) -> Result<AnyFilter<Mapped>> {
    let file = open(path)?;
    // SAFETY: the map is private to this process and read only. If another process cuts the file
    // short meanwhile, the kernel ends this one with SIGBUS: no wrong answer, no memory harmed.
    // petal itself never changes a filter file in place: it moves a new one over it.
    unsafe { AnyFilter::open_mapped(&file) }.map_err(Failure::of_file(path))
}
