//! Filter files: queried where they lie, or read into memory.

use std::fs::File;
use std::io;
use std::path::Path;

use petal::{AnyFilter, Mapped};
use petal_interop::Foreign;
use petal_lines::LEAST_MEMORY;

use crate::exit::{Failure, Result, words};
use crate::text;

/// Maps a petal file into memory; nothing but its header is read.
pub(crate) fn open(path: &Path) -> Result<AnyFilter<Mapped>> {
    AnyFilter::open_mapped(map(path)?).map_err(of_native(path))
}

/// Maps a file of any kind.
#[expect(unsafe_code, reason = "the one place where the program maps a file")]
pub(crate) fn map(path: &Path) -> Result<Mapped> {
    let file = open_file(path)?;
    // SAFETY: the map is private to this process and read only. If another process cuts the file
    // short meanwhile, the kernel ends this one with SIGBUS: no wrong answer, no memory harmed.
    // petal itself never changes a filter file in place: it moves a new one over it.
    let map = unsafe { Mapped::open(&file) };
    map.map_err(Failure::of_file(path))
}

/// Reads a filter file and its metadata into memory, every byte examined.
pub(crate) fn read(path: &Path) -> Result<(AnyFilter, String)> {
    let file = io::BufReader::with_capacity(1 << 20, open_file(path)?);
    AnyFilter::read_from(file).map_err(of_native(path))
}

/// What is wrong with a file that should be petal's own: perhaps that it is another program's.
fn of_native(path: &Path) -> impl Fn(petal::Error) -> Failure + '_ {
    move |error| {
        let other = || Foreign::from_bytes(map(path).ok()?, None).ok();
        match error.is_foreign().then(other).flatten() {
            Some(other) => Failure::Plain(format!(
                "{}: is a {} filter, where one of petal's own is wanted; of other programs' \
                 filters petal knows check, info, add, merge with others of the kind, and verify",
                path.display(),
                other.format()
            )),
            None => Failure::of_file(path)(error),
        }
    }
}

pub(crate) fn open_file(path: &Path) -> Result<File> {
    let failed = |error: io::Error| {
        Failure::Plain(format!("{}: cannot read: {}", path.display(), words(&error)))
    };
    if path == Path::new("-") {
        return Err(Failure::Plain(
            "-: a filter cannot come through standard input; save it to a file first".to_owned(),
        ));
    }
    // Looked at first: opening a FIFO would wait for its writer.
    let data = std::fs::metadata(path).map_err(failed)?;
    if !data.is_file() {
        let what = if data.is_dir() { "a directory" } else { "no regular file" };
        let path = path.display();
        return Err(Failure::Plain(format!(
            "{path}: is {what}, expected a filter file; save it to one first"
        )));
    }
    File::open(path).map_err(failed)
}

/// Refuses a cap that no work can be done in, whatever the filter leaves of it.
pub(crate) fn is_enough(memory: u64) -> Result<()> {
    if memory >= LEAST_MEMORY {
        return Ok(());
    }
    Err(Failure::Plain(format!(
        "-m: {} is too little, at least {} is needed; raise -m",
        text::size(memory),
        text::size(LEAST_MEMORY),
    )))
}

/// What a filter leaves of the memory, at least what any work needs. One that does not fit is
/// refused before it is read.
pub(crate) fn fits(path: &Path, memory: u64) -> Result<u64> {
    let size = open_file(path)?.metadata().map_or(0, |data| data.len());
    if size > memory {
        return Err(Failure::Plain(format!(
            "{}: the filter takes {}, more than the {} that -m leaves for it; raise -m",
            path.display(),
            text::size(size),
            text::size(memory),
        )));
    }
    Ok((memory - size).max(LEAST_MEMORY))
}
