//! The sources of inputs.

use std::fmt;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::remote::ObjectUrl;

/// The source of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file, FIFO or device.
    Path(PathBuf),
    /// Standard input.
    Stdin,
    /// An object of a store, or of the web.
    Object(ObjectUrl),
}

impl Source {
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
        let own = match self {
            Self::Path(path) => std::fs::metadata(path),
            Self::Stdin => {
                let stdin = io::stdin().as_fd().try_clone_to_owned().map(File::from);
                stdin.and_then(|stdin| stdin.metadata())
            }
            Self::Object(_) => return false,
        };
        own.is_ok_and(|own| (own.dev(), own.ino()) == (file.dev(), file.ino()))
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => path.display().fmt(f),
            Self::Stdin => f.write_str("-"),
            Self::Object(url) => url.fmt(f),
        }
    }
}
