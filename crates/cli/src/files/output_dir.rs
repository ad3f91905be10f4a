//! Outputs in a directory: one for each input, with its name.
//!
//! One is open at a time. Each appears when it is complete.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use petal_lines::{Compression, DocumentOutputs, ObjectUrl, Source};

use super::output::{LineOutputs, Output, name_output, refuse_bad_file};
use crate::error::{Failure, Result, cannot_write};

/// The outputs of the inputs of a job.
pub(crate) struct OutputDir<'a> {
    outputs: &'a LineOutputs,
    paths: Vec<PathBuf>,
    current: Option<Output>,
    /// Why an output could not be begun or completed.
    failed: Option<Failure>,
}

impl<'a> OutputDir<'a> {
    /// Checks the outputs of these inputs, and makes the directory.
    pub(crate) fn new(dir: &Path, inputs: &[Source], outputs: &'a LineOutputs) -> Result<Self> {
        let is_object = ObjectUrl::of_path(dir).is_some();
        if !is_object && fs::metadata(dir).is_ok_and(|data| !data.is_dir()) {
            let text = format!("{}: is a file, expected a directory; name another", dir.display());
            return Err(Failure::Message(text));
        }
        let id = |path: &Path| fs::metadata(path).ok().map(|data| (data.dev(), data.ino()));
        let ids: HashMap<_, _> = inputs
            .iter()
            .filter_map(|input| match input {
                Source::Path(path) => Some((id(path)?, input)),
                _ => None,
            })
            .collect();
        let (mut names, mut paths) = (HashMap::new(), Vec::with_capacity(inputs.len()));
        for input in inputs {
            let name = output_name(input)?;
            let path = dir.join(name);
            if let Some(other) = names.insert(name, input) {
                return Err(Failure::Message(format!(
                    "{input}: has the name of {other}, and both would be {}; rename one of them",
                    path.display()
                )));
            }
            if let Some(same) = id(&path).and_then(|id| ids.get(&id)) {
                return Err(Failure::Message(format!(
                    "{}: is the same file as the input {same}; write to another directory",
                    path.display()
                )));
            }
            refuse_bad_file(&path, &outputs.left_out)?;
            paths.push(path);
        }
        if !is_object && !dir.exists() {
            let failed = |error| cannot_write(&dir.display().to_string(), &error);
            fs::create_dir(dir).map_err(|error| Failure::Message(failed(error)))?;
        }
        Ok(Self { outputs, paths, current: None, failed: None })
    }

    /// Returns the least memory limit that remains beside an output.
    pub(crate) fn memory_beside(&self) -> Result<u64> {
        // Paths with the same extension take the same.
        let mut kinds = HashSet::new();
        let mut limits = Vec::new();
        for path in &self.paths {
            if kinds.insert(path.extension()) || fs::metadata(path).is_ok() {
                limits.push(self.outputs.memory_beside(&[Some(path)])?);
            }
        }
        Ok(limits.into_iter().min().unwrap_or_default())
    }

    /// Returns whether a file is one of the outputs.
    pub(crate) fn contains(&self, path: &Path) -> bool {
        let canonical = |path: &Path| petal_lines::atomic_file::canonical_path(path);
        let path = canonical(path);
        self.paths.iter().any(|own| own.file_name() == path.file_name() && canonical(own) == path)
    }

    /// Completes the last output.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.current.take().map_or(Ok(()), Output::finish)
    }

    /// Converts an error of a job that wrote to the outputs.
    pub(crate) fn failure(self, error: petal_lines::Error) -> Failure {
        let name = self.current.as_ref().map(Output::name);
        self.failed.unwrap_or_else(|| name_output(error, name, None))
    }

    fn next(&mut self, input: usize) -> Result<()> {
        self.current.take().map_or(Ok(()), Output::finish)?;
        self.current = Some(self.outputs.open(Some(&self.paths[input]), &[])?);
        Ok(())
    }
}

impl DocumentOutputs for OutputDir<'_> {
    fn begin(&mut self, input: usize) -> io::Result<()> {
        self.next(input).map_err(|failure| {
            self.failed = Some(failure);
            io::Error::other("an output failed")
        })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.current.as_mut().map_or(Ok(()), |output| output.writer().write_all(bytes))
    }
}

/// Returns the name of the output of an input: its own, without the extension of a compression that outputs
/// do not have.
fn output_name(input: &Source) -> Result<&OsStr> {
    let name = match input {
        Source::Path(path) => path.file_name(),
        _ => None,
    };
    let Some(name) = name.map(Path::new) else {
        return Err(Failure::Message(format!(
            "{input}: has no file name for its output; save it to a file first"
        )));
    };
    let known = Compression::of_path(name).is_ok();
    Ok(if known { name.as_os_str() } else { name.file_stem().unwrap_or(name.as_os_str()) })
}
