//! Opening of inputs: by name, standard input, objects, and files that grow.

use std::io;
#[cfg(test)]
use std::io::Read;
use std::sync::{Arc, Mutex};

use super::Input;
use crate::error::{Error, Result};
use crate::io::content_check::{Checked, ContentChecks};
use crate::io::follow::FollowedFiles;
use crate::io::open::{InputKind, InputOpener};
#[cfg(test)]
use crate::io::poll_read::PollRead;
use crate::io::source::Source;
use crate::keys::KeySpec;

/// Number of files that a job keeps open, so that they can be renamed. Others are opened by name
/// for each pass.
const MAX_OPEN: usize = 64;

impl Input {
    /// Opens and checks inputs. A missing file, a directory, a stream that is named twice and a
    /// file whose `contents` are not lines are errors. A compressed stream may use `memory` bytes.
    pub(crate) fn open_all(
        sources: &[Source],
        memory: u64,
        checks: &Arc<ContentChecks>,
    ) -> Result<Vec<Self>> {
        Source::check_streams(sources)?;
        let input = |(number, source)| Self::new(source, memory, checks, number < MAX_OPEN);
        sources.iter().enumerate().map(input).collect()
    }

    /// Opens files that grow, whose records have these keys, as one input that never ends.
    pub(crate) fn followed(
        sources: &[Source],
        checks: &Arc<ContentChecks>,
        keys: &KeySpec,
    ) -> Result<Self> {
        let names: Vec<_> = sources.iter().map(ToString::to_string).collect();
        let name = names.join(", ");
        let paths = sources.iter().map(|source| match source {
            Source::Path(path) => Ok(path.clone()),
            Source::Stdin => {
                let problem = "standard input cannot be followed; name a file";
                Err(Error::read("-", io::Error::other(problem)))
            }
            Source::Object(url) => {
                let problem = "an object does not grow; only files can be followed";
                Err(Error::read(&url.to_string(), io::Error::other(problem)))
            }
        });
        let paths = paths.collect::<Result<Vec<_>>>()?;
        let files = FollowedFiles::open(&paths, keys, checks.delimiter())?;
        let stream = Box::new(Checked::new(files, &name, checks).followed());
        let kind = InputKind::Stream(Mutex::new(Some(stream)));
        Ok(Self::with_kind(name, kind, Arc::clone(checks)))
    }

    /// Opens inputs without checking their contents.
    #[cfg(test)]
    pub(crate) fn open_unchecked(sources: &[Source], memory: u64) -> Result<Vec<Self>> {
        Self::open_all(sources, memory, &Arc::new(ContentChecks::new(b'\n', true)))
    }

    /// Opens an input; `keep`: keep the file open.
    fn new(source: &Source, memory: u64, checks: &Arc<ContentChecks>, keep: bool) -> Result<Self> {
        let name = source.to_string();
        let opener = InputOpener { name: &name, memory, checks };
        let body = match source {
            Source::Path(path) => {
                // Opening a FIFO waits for a writer, so check the type first.
                let data = std::fs::metadata(path).map_err(|e| Error::read(&name, e))?;
                if data.is_dir() {
                    return Err(Error::directory(&name));
                }
                opener.path(path, &data, keep).map_err(|e| Error::read(&name, e))?
            }
            Source::Stdin => opener.stdin().map_err(|e| Error::read(&name, e))?,
            Source::Object(url) => opener.object(url).map_err(|e| Error::read(&name, e))?,
        };
        Ok(Self::with_kind(name, body, Arc::clone(checks)))
    }

    /// A stream that returns these bytes in small pieces.
    #[cfg(test)]
    pub(crate) fn trickle(bytes: Vec<u8>) -> Self {
        struct Trickle(io::Cursor<Vec<u8>>);
        impl Read for Trickle {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let few = buffer.len().min(1 + self.0.position() as usize % 777);
                self.0.read(&mut buffer[..few])
            }
        }
        impl PollRead for Trickle {
            fn ready(&mut self) -> bool {
                true
            }
        }
        let checks = Arc::new(ContentChecks::new(b'\n', true));
        let opener = InputOpener { name: "trickle", memory: 1 << 20, checks: &checks };
        let body = opener.stream(Trickle(io::Cursor::new(bytes)));
        Self::with_kind("trickle".to_owned(), body, checks)
    }
}
