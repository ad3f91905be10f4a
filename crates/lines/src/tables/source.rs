//! The file of a table.

#![cfg_attr(not(feature = "parquet"), allow(dead_code, reason = "tables are refused"))]

use std::cell::Cell;
use std::fmt;
use std::fs::File;
use std::panic;
use std::path::PathBuf;
use std::sync::{Arc, Once};

use super::kind::TableKind;
use crate::error::{Advice, Error, Result};
use crate::files::{ByteRange, FileIdentity, InputFile, read_at};
use crate::numbers::format_size;

/// Divides a memory limit.
pub(crate) type Shares = Arc<dyn Fn(u64) -> TableShares + Send + Sync>;

/// The shares of a memory limit for a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableShares {
    /// For reading keys.
    pub(crate) keys: u64,
    /// For reading and writing rows.
    pub(crate) rows: u64,
    /// For what describes all tables of a job.
    pub(crate) descriptions: u64,
}

thread_local! {
    /// True while the thread is in a reader whose panics are errors.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Adds a panic hook that prints nothing for guarded threads, and calls the hook before it for others.
static GUARD: Once = Once::new();

/// The file of a table, and what its readers must know about the job.
#[derive(Clone)]
pub(crate) struct TableSource {
    /// Name of the input for messages.
    pub(crate) name: String,
    pub(crate) kind: TableKind,
    /// The path, if the file is opened for each pass.
    pub(crate) path: Option<PathBuf>,
    pub(crate) file: Option<InputFile>,
    /// The bytes of the table in its file.
    pub(crate) range: ByteRange,
    pub(crate) identity: Option<Arc<FileIdentity>>,
    /// Number of the table in its job.
    pub(crate) number: u64,
    /// The delimiter after each frame.
    pub(crate) delimiter: u8,
    /// Maximum length of a key.
    pub(crate) longest: u64,
    /// The memory limit of the job.
    pub(crate) limit: u64,
    /// Returns the shares of a memory limit.
    pub(crate) shares: Shares,
}

/// A part of a table that does not fit the memory limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct PartTooLarge {
    /// The part, with its article: "a page".
    pub(super) part: &'static str,
    pub(super) needed: u64,
    pub(super) available: u64,
    /// A memory limit that is enough.
    pub(super) limit: u64,
}

impl fmt::Display for PartTooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (needed, available) = (format_size(self.needed), format_size(self.available));
        let Self { part, .. } = self;
        write!(f, "{part} takes {needed}, more than the {available} of the memory limit for it")
    }
}

impl std::error::Error for PartTooLarge {}

impl TableSource {
    /// Returns the file after checking that it has not changed.
    pub(crate) fn file(&self) -> Result<InputFile> {
        let file = match (&self.file, &self.path) {
            (Some(file), _) => file.clone(),
            (None, Some(path)) => {
                File::open(path).map_err(|error| Error::read(&self.name, error))?.into()
            }
            (None, None) => return Err(self.unreadable("it has no file")),
        };
        if let Some(identity) = &self.identity {
            identity.check_strictly(&self.name, &file)?;
        }
        Ok(file)
    }

    /// Returns the length of the table in bytes.
    pub(crate) fn length(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Fills the buffer from a position in the table.
    pub(crate) fn read_at(&self, file: &InputFile, buffer: &mut [u8], at: u64) -> Result<()> {
        let end = at.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| end > self.length()) {
            return Err(self.unreadable("it names bytes beyond its end"));
        }
        read_at(file, &self.name, buffer, self.range.start + at)
    }

    /// An error of a table that cannot be read.
    pub(crate) fn unreadable(&self, problem: impl ToString) -> Error {
        let format = self.kind.name();
        Error::input(&self.name, format!("cannot read as {format}: {}", problem.to_string()))
            .advise("write the file again, or remove it from the inputs")
    }

    /// An error of a part that does not fit `available` bytes of the memory limit.
    pub(crate) fn too_large(&self, part: &'static str, needed: u64, available: u64) -> Error {
        let of_keys = self.limit_for(needed, available, |shares| shares.keys);
        let of_rows = self.limit_for(needed, available, |shares| shares.rows);
        self.too_large_for(PartTooLarge { part, needed, available, limit: of_keys.max(of_rows) })
    }

    /// The same, if the memory limit that is enough is known.
    pub(super) fn too_large_for(&self, found: PartTooLarge) -> Error {
        Error::input(&self.name, found.to_string())
            .advise(Advice::raise_limit_to(found.limit))
            .caused_by(found)
    }

    /// Checks that `needed` bytes for what describes all tables of the job fit the memory limit.
    ///
    /// # Errors
    /// If they do not.
    pub(crate) fn check_descriptions(&self, needed: u64) -> Result<()> {
        let available = self.shares().descriptions;
        if needed <= available {
            return Ok(());
        }
        let limit = self.limit_for(needed, available, |shares| shares.descriptions);
        let part = "the description of all tables";
        Err(self.too_large_for(PartTooLarge { part, needed, available, limit }))
    }

    /// Returns the shares of the job's memory limit.
    pub(super) fn shares(&self) -> TableShares {
        (self.shares)(self.limit)
    }

    /// Returns the memory limit that has a share of `needed` bytes, in MiB. The job has `given` bytes
    /// of that share now.
    pub(super) fn limit_for(
        &self,
        needed: u64,
        given: u64,
        share: impl Fn(TableShares) -> u64,
    ) -> u64 {
        const MIB: u64 = 1 << 20;
        let share = |limit| u128::from(share((self.shares)(limit)));
        let given = u128::from(given.max(1));
        let needed = u128::from(needed) * share(self.limit).max(given) / given + 1;
        let (mut low, mut high) = (self.limit / MIB, u64::MAX / MIB / 4);
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            if share(middle * MIB) < needed { low = middle } else { high = middle }
        }
        high * MIB
    }

    /// Calls a reader of the format. A panic of the library is an error of the table, and prints
    /// nothing.
    pub(crate) fn guarded<T>(&self, read: impl FnOnce() -> Result<T>) -> Result<T> {
        GUARD.call_once(|| {
            let hook = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                if !GUARDED.get() {
                    hook(info);
                }
            }));
        });
        let outer = GUARDED.replace(true);
        let caught = panic::catch_unwind(panic::AssertUnwindSafe(read));
        GUARDED.set(outer);
        caught.unwrap_or_else(|_| Err(self.unreadable("its contents are damaged")))
    }
}
