//! Opens petal's filter files, mapped or read into memory, and writes them.

use std::fs::File;
use std::io::{self, Seek as _};
use std::path::Path;

use petal::{AnyFilter, Inspection, Mapped, Membership, Secret};
use petal_interop::ForeignFilter;
use petal_lines::atomic_file::open_whole;
use petal_lines::{MIN_MEMORY, Source};

use super::output::Output;
use super::secret_file;
use crate::args::SecretArgs;
use crate::error::{Failure, Result, io_text};
use crate::text;

/// Maps a petal file, with its secret if it needs one; reads only its header.
pub(crate) fn open(path: &Path, secret: &SecretArgs) -> Result<AnyFilter<Mapped>> {
    let map = map(path)?;
    with_secret(path, secret, |secret| AnyFilter::open_mapped_with(map.clone(), secret))
}

/// Maps a petal file that is described, not queried.
pub(crate) fn inspect(path: &Path) -> Result<Inspection> {
    Inspection::open_mapped(map(path)?).map_err(native_failure(path))
}

/// Opens a petal file, which is opened once more if its secret is in a file of its own.
pub(crate) fn with_secret<T>(
    path: &Path,
    secret: &SecretArgs,
    open: impl Fn(Option<&Secret>) -> petal::Result<T>,
) -> Result<T> {
    match open(None) {
        Err(error) if error.is_secret_missing() => {
            let file = secret_file::path(secret.secret_file.as_deref()).ok_or_else(|| {
                Failure::Message(format!(
                    "{}: its secret is in a file of its own; name that file with --secret-file, or in \
                     PETAL_SECRET_FILE",
                    path.display()
                ))
            })?;
            open(Some(&secret_file::read(&file)?)).map_err(|error| {
                if !error.is_secret() {
                    return native_failure(path)(error);
                }
                Failure::Message(format!(
                    "{}: was built with another secret than that of {}; name its own file with \
                     --secret-file",
                    path.display(),
                    file.display()
                ))
            })
        }
        opened => opened.map_err(native_failure(path)),
    }
}

/// Maps a file of any format.
#[expect(unsafe_code, reason = "the one place where the program maps a file")]
pub(crate) fn map(path: &Path) -> Result<Mapped> {
    let file = open_file(path)?;
    // SAFETY: the map is private to this process and read only. If another process truncates the
    // file meanwhile, the kernel ends this one with SIGBUS: no wrong answer, no corrupted memory.
    // petal itself renames a new file over a filter file. It changes one in place only if the new file
    // could not have its owner; the bits are then read as they change, and no value of them is invalid.
    // A change that has begun before is an error.
    let map = unsafe { Mapped::open(&file) };
    map.map_err(Failure::of_file(path))
}

/// Reads and verifies a filter file, with its secret if it needs one; returns the filter and its metadata.
pub(crate) fn read(path: &Path, secret: &SecretArgs) -> Result<(AnyFilter, String)> {
    let file = open_file(path)?;
    with_secret(path, secret, |secret| {
        (&file).rewind()?;
        AnyFilter::read_from_with(io::BufReader::with_capacity(1 << 20, &file), secret)
    })
}

/// Writes a filter to an output at this path. Only the owner can read a new file that has the secret of
/// its hash.
pub(crate) fn write(
    filter: &dyn Membership,
    metadata: &str,
    output: &mut Output,
    path: &Path,
) -> Result<()> {
    let hash = filter.hash_spec();
    if hash.is_keyed() && !hash.is_secret_apart() {
        output.make_private()?;
    }
    filter.write_to(output, metadata).map_err(Failure::of_output(path))
}

/// The error of a file that should be petal's own; detects filters of other programs.
fn native_failure(path: &Path) -> impl Fn(petal::Error) -> Failure + '_ {
    move |error| {
        let detect = || ForeignFilter::from_bytes(map(path).ok()?, None).ok();
        match error.is_foreign().then(detect).flatten() {
            Some(other) => Failure::Message(format!(
                "{}: is a {} filter, expected one of petal's own; for filters of other programs \
                 use check, info, add, merge or verify",
                path.display(),
                other.format()
            )),
            None => Failure::of_file(path)(error),
        }
    }
}

/// Returns an error if a path is the address of an object. A file of this name is no address.
pub(crate) fn refuse_address(path: &Path) -> Result<()> {
    match Source::from_arg(path) {
        Source::Object(url) => Err(Failure::Message(format!(
            "{url}: is an address, expected a file; download it first"
        ))),
        Source::Path(_) | Source::Stdin | Source::Counted(_) | Source::Keyed(..) => Ok(()),
    }
}

/// Opens a regular file for reading.
pub(crate) fn open_file(path: &Path) -> Result<File> {
    let failed = |error: io::Error| {
        Failure::Message(format!("{}: cannot read: {}", path.display(), io_text(&error)))
    };
    if path == Path::new("-") {
        return Err(Failure::Message(
            "-: a filter cannot be read from standard input; save it to a file first".to_owned(),
        ));
    }
    refuse_address(path)?;
    // Tested first: opening a FIFO would wait for its writer.
    let metadata = std::fs::metadata(path).map_err(failed)?;
    if !metadata.is_file() {
        let found = if metadata.is_dir() { "a directory" } else { "not a regular file" };
        let path = path.display();
        return Err(Failure::Message(format!(
            "{path}: is {found}, expected a filter file; save the filter to a file first"
        )));
    }
    open_whole(path).map_err(failed)
}

/// Returns an error if the memory limit is below the minimum of every job.
pub(crate) fn check_memory_limit(memory_limit: u64) -> Result<()> {
    if memory_limit >= MIN_MEMORY {
        return Ok(());
    }
    Err(Failure::Message(format!(
        "-m: {} is too little, at least {} is needed; raise -m",
        text::size(memory_limit),
        text::size(MIN_MEMORY),
    )))
}

/// Returns the memory that remains beside a filter, but at least the minimum of a job. Fails if the
/// filter does not fit, before it is read.
pub(crate) fn memory_beside(path: &Path, memory_limit: u64) -> Result<u64> {
    let size = open_file(path)?.metadata().map_or(0, |metadata| metadata.len());
    if size > memory_limit {
        return Err(Failure::Message(format!(
            "{}: the filter takes {}, more than the {} that -m leaves for it; raise -m",
            path.display(),
            text::size(size),
            text::size(memory_limit),
        )));
    }
    Ok((memory_limit - size).max(MIN_MEMORY))
}
