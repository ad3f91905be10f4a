//! Outputs that would be the same file as an input or as another output.

use std::collections::HashMap;
use std::fs::{File, Metadata, metadata};
use std::os::fd::{AsFd as _, RawFd};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use libc::STDOUT_FILENO;
use petal_lines::Source;
use petal_lines::atomic_file::{canonical_path, descriptor_of};

use crate::error::{Failure, Result};

/// Returns an error if two outputs are the same file; `None` is standard output. `counts`: the first
/// output is the number of lines.
pub(crate) fn refuse_same_output(outputs: &[Option<PathBuf>], counts: bool) -> Result<()> {
    let mut earlier = HashMap::new();
    for (number, output) in outputs.iter().enumerate() {
        for id in OutputId::all_of(output.as_deref()) {
            let Some(other) = earlier.insert(id, number) else { continue };
            if other == number {
                continue;
            }
            let name = match output {
                Some(path) => Source::from_arg(path).to_string(),
                None => "standard output".to_owned(),
            };
            return Err(Failure::Message(match counts && other == 0 {
                true => {
                    format!("{name}: has the number of lines (-c); write the rest to another file")
                }
                false => format!("{name}: is used for two outputs; name another file"),
            }));
        }
    }
    Ok(())
}

/// Returns an error if an output in a directory is the same file as an input, whatever its name. Each input
/// is looked at once.
pub(crate) fn refuse_inputs(outputs: &[PathBuf], inputs: &[Source]) -> Result<()> {
    let files = inputs.iter().filter_map(|input| Some((file_id(&input.metadata()?), input)));
    let files: HashMap<_, _> = files.collect();
    for output in outputs {
        let input = metadata(output).ok().and_then(|data| files.get(&file_id(&data)));
        if let Some(input) = input {
            return Err(is_input(&output.display().to_string(), input, "directory"));
        }
    }
    Ok(())
}

/// Returns the error of an output that is an input; `place`: what to write to instead.
pub(super) fn is_input(output: &str, input: &Source, place: &str) -> Failure {
    let input = match input {
        Source::Stdin => "standard input".to_owned(),
        other => other.to_string(),
    };
    Failure::Message(format!(
        "{output}: is the same file as the input {input}; write to another {place}"
    ))
}

fn file_id(data: &Metadata) -> (u64, u64) {
    (data.dev(), data.ino())
}

/// What an output writes to. Two outputs of which one is equal are the same.
#[derive(PartialEq, Eq, Hash)]
enum OutputId {
    Descriptor(RawFd),
    File((u64, u64)),
    /// A file that does not exist.
    New(PathBuf),
}

impl OutputId {
    fn all_of(path: Option<&Path>) -> impl Iterator<Item = Self> {
        let (descriptor, file) = match path {
            Some(path) => (descriptor_of(path), metadata(path).ok()),
            None => {
                let out = std::io::stdout().as_fd().try_clone_to_owned().map(File::from);
                (Some(STDOUT_FILENO), out.and_then(|out| out.metadata()).ok())
            }
        };
        let file = match file {
            // Two outputs may share a device like /dev/null, but not a pipe.
            Some(file) if file.file_type().is_char_device() => None,
            Some(file) => Some(Self::File(file_id(&file))),
            None => path.map(|path| Self::New(canonical_path(path))),
        };
        descriptor.map(Self::Descriptor).into_iter().chain(file)
    }
}
