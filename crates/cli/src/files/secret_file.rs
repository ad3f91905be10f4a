//! Files with the secrets of filters whose own files do not have them.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use petal::Secret;
use petal_lines::random_key;

use crate::error::{Failure, Result, cannot_write, io_text};

/// The environment variable with the path of the file, if the option is not given.
const VARIABLE: &str = "PETAL_SECRET_FILE";

/// Returns the path that the option or the environment gives.
pub(crate) fn path(option: Option<&Path>) -> Option<PathBuf> {
    let from_environment = || std::env::var_os(VARIABLE).filter(|path| !path.is_empty());
    option.map(Path::to_owned).or_else(|| from_environment().map(PathBuf::from))
}

/// Reads a secret: 32 hexadecimal digits, with or without a line end, or 16 bytes.
pub(crate) fn read(path: &Path) -> Result<Secret> {
    Secret::read_from(path).map_err(|error| {
        let path = path.display();
        Failure::Message(match error.kind() {
            io::ErrorKind::InvalidData => {
                format!("{path}: {error}; name the file that petal build created")
            }
            _ => format!("{path}: cannot read: {}", io_text(&error)),
        })
    })
}

/// Reads a secret, or creates a file with a random one that only the owner can read; returns whether it
/// was created.
pub(crate) fn read_or_create(path: &Path) -> Result<(Secret, bool)> {
    let failed =
        |error: io::Error| Failure::Message(cannot_write(&path.display().to_string(), &error));
    match File::options().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            read(path).map(|secret| (secret, false))
        }
        Err(error) => Err(failed(error)),
        Ok(mut file) => {
            let key = random_key()?;
            let digits: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
            let written = writeln!(file, "{digits}").and_then(|()| file.sync_all());
            if written.is_err() {
                // The first error says more.
                let _ = std::fs::remove_file(path);
            }
            written.map_err(failed)?;
            Ok((Secret::new(key), true))
        }
    }
}
