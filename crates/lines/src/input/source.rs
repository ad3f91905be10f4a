//! The sources of inputs.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::key_fragment::KeyFragment;
use crate::error::{Error, Result};
use crate::keys::{Columns, Fields, KeySpec};
use crate::remote::ObjectUrl;

/// The source of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file, FIFO or device.
    Path(PathBuf),
    /// Standard input.
    Stdin,
    /// An object of a store, or of the web.
    Object(ObjectUrl),
    /// Lists of keys with counts.
    Counted(CountedLists),
    /// Any of the others, with keys of its own.
    Keyed(Box<Self>, KeyFragment),
}

impl Source {
    /// Returns the source of a name that may have a fragment: `a.csv#url`. A file that exists under the
    /// whole name has none. `place`: the source of a name without a fragment.
    ///
    /// # Errors
    /// If the fragment says no key, or contradicts itself.
    pub fn of_name(name: impl Into<PathBuf>, place: impl Fn(PathBuf) -> Self) -> Result<Self> {
        let name = name.into();
        let (start, Some(fragment)) = split_fragment(&name) else { return Ok(place(name)) };
        let keys = match fragment.to_str() {
            Some(text) => KeyFragment::parse(text),
            None => Err("what follows # is not UTF-8".to_owned()),
        };
        let shown = name.display().to_string().escape_debug().to_string();
        let keys = keys.map_err(|problem| Error::input(&shown, problem))?;
        Ok(Self::Keyed(Box::new(place(start.to_owned())), keys))
    }

    /// Returns the source without the keys of its own.
    #[must_use]
    pub fn place(&self) -> &Self {
        match self {
            Self::Keyed(place, _) => place.place(),
            place => place,
        }
    }

    /// Returns another source with the keys of this one.
    #[must_use]
    pub fn at(&self, place: Self) -> Self {
        match self {
            Self::Keyed(_, keys) => Self::Keyed(Box::new(place), keys.clone()),
            _ => place,
        }
    }

    /// Returns how the keys of its records are made in a job.
    #[must_use]
    pub fn keys(&self, job: &Arc<KeySpec>) -> Arc<KeySpec> {
        let Self::Keyed(_, own) = self else { return Arc::clone(job) };
        let fields = own.fields(job);
        Arc::new(KeySpec { fields, ..KeySpec::clone(job) })
    }

    /// Returns the fields of the keys of these sources in a job, each once; without a source, those of the
    /// job.
    pub(crate) fn all_fields(sources: &[Self], job: &KeySpec) -> Vec<Fields> {
        let mut all = Vec::new();
        for source in sources {
            let fields = match source {
                Self::Keyed(_, own) => own.fields(job),
                _ => job.fields.clone(),
            };
            if !all.contains(&fields) {
                all.push(fields);
            }
        }
        if all.is_empty() { vec![job.fields.clone()] } else { all }
    }

    /// Returns whether a job on these sources has settings for CSV and no columns that they are for.
    #[must_use]
    pub fn leave_csv_unused(sources: &[Self], job: &KeySpec) -> bool {
        let is_columns = |fields: &Fields| matches!(fields, Fields::Columns(_));
        job.csv != Columns::default()
            && !is_columns(&job.fields)
            && !Self::all_fields(sources, job).iter().any(is_columns)
    }

    /// Returns whether the source may be a table, if its keys are columns.
    pub(crate) fn may_be_table(&self) -> bool {
        !matches!(self, Self::Keyed(_, own) if !own.is_table)
    }

    /// Returns standard input for `-`, an object for an address like `s3://bucket/key` unless a file
    /// has this name, otherwise the path.
    pub fn from_arg(arg: impl Into<PathBuf>) -> Self {
        let path = arg.into();
        if path == Path::new("-") {
            return Self::Stdin;
        }
        match ObjectUrl::of_path(&path) {
            Some(url) if !path.exists() => Self::Object(url),
            _ => Self::Path(path),
        }
    }

    /// Returns whether the source is this file, under any name. Use it to refuse an output that is
    /// also an input.
    #[must_use]
    pub fn is(&self, file: &Metadata) -> bool {
        self.metadata().is_some_and(|own| (own.dev(), own.ino()) == (file.dev(), file.ino()))
    }

    /// Checks that no stream is named twice, under any name: standard input, a FIFO, a pipe or a
    /// socket. Each reader would get a part of its lines.
    ///
    /// # Errors
    /// If a stream is named twice. The error has both names.
    pub fn check_streams(sources: &[Self]) -> Result<()> {
        let mut streams: Vec<(Option<(u64, u64)>, &Self)> = Vec::new();
        for source in sources {
            let stream = source
                .metadata()
                .filter(|data| data.file_type().is_fifo() || data.file_type().is_socket());
            let stream = stream.map(|data| (data.dev(), data.ino()));
            let source = source.place();
            if stream.is_none() && *source != Self::Stdin {
                continue;
            }
            let same = |(earlier, name): &&(Option<_>, &Self)| {
                *name == source || stream.is_some() && stream == *earlier
            };
            if let Some((_, name)) = streams.iter().find(same) {
                let problem = match *name == source {
                    true => "is named twice, but can be read only once".to_owned(),
                    false => {
                        format!("is the same stream as {name}, which can be read only once")
                    }
                };
                let error = Error::input(&source.to_string(), problem);
                return Err(error.advise("save it to a file first"));
            }
            streams.push((stream, source));
        }
        Ok(())
    }

    /// Returns the metadata of a file or of standard input, if it is available.
    #[must_use]
    pub fn metadata(&self) -> Option<Metadata> {
        match self {
            Self::Path(path) => std::fs::metadata(path).ok(),
            Self::Stdin => {
                let stdin = io::stdin().as_fd().try_clone_to_owned().map(File::from).ok()?;
                stdin.metadata().ok()
            }
            Self::Object(_) | Self::Counted(_) => None,
            Self::Keyed(place, _) => place.metadata(),
        }
    }
}

/// Returns what precedes the last `#` of a name, and what follows it; the whole name if a file has it.
#[must_use]
pub fn split_fragment(name: &Path) -> (&Path, Option<&OsStr>) {
    let bytes = name.as_os_str().as_bytes();
    match memchr::memrchr(b'#', bytes) {
        Some(at) if at > 0 && !name.exists() => {
            let [start, fragment] = [&bytes[..at], &bytes[at + 1..]].map(OsStr::from_bytes);
            (Path::new(start), Some(fragment))
        }
        _ => (name, None),
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => path.display().fmt(f),
            Self::Stdin => f.write_str("-"),
            Self::Object(url) => url.fmt(f),
            Self::Counted(lists) => lists.fmt(f),
            Self::Keyed(place, keys) => write!(f, "{place}{keys}"),
        }
    }
}

/// Lists of keys with counts, which are read as one input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedLists {
    /// Files, or directories of all files of a list; `-` for standard input.
    pub paths: Vec<PathBuf>,
    /// Whether the names of files are the first digits of their keys.
    pub prefix_from_name: bool,
}

impl fmt::Display for CountedLists {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.paths[..] {
            [] => Ok(()),
            [one] => one.display().fmt(f),
            [one, others @ ..] => write!(f, "{} and {} others", one.display(), others.len()),
        }
    }
}

impl CountedLists {
    /// Returns whether the lists can be read more than once.
    pub(crate) fn is_repeatable(&self) -> bool {
        let is_kept = |path: &PathBuf| {
            std::fs::metadata(path).is_ok_and(|data| data.is_file() || data.is_dir())
        };
        self.paths.iter().all(is_kept)
    }
}
