//! Outputs in a directory: one for each input, with its name.
//!
//! One is open at a time. Each appears when it is complete.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use petal_lines::atomic_file::{canonical_path, descriptor_of};
use petal_lines::{Compression, DocumentOutputs, ObjectUrl, Source};

use super::output::{LineOutputs, Output, name_output};
use super::same_file::{refuse_inputs, refuse_same_output};
use crate::error::{Failure, Result, cannot_write};

/// The outputs of the inputs of a job.
pub(crate) struct OutputDir<'a> {
    outputs: &'a LineOutputs,
    dir: &'a Path,
    paths: Vec<PathBuf>,
    current: Option<Output>,
    /// Whether this job made the directory, and is not done.
    is_new: bool,
    /// Why an output could not be begun or completed.
    failed: Option<Failure>,
}

impl<'a> OutputDir<'a> {
    /// Checks the outputs of these inputs, and makes the directory. No output may be one of `others`, which
    /// are outputs, too, or the input `list`.
    pub(crate) fn new(
        dir: &'a Path,
        inputs: &[Source],
        list: Option<Source>,
        others: &[&Path],
        outputs: &'a LineOutputs,
    ) -> Result<Self> {
        if dir == Path::new("-") {
            return Err(Failure::Message(
                "-o: - is one output, and each file has its own; name a directory".to_owned(),
            ));
        }
        let is_object = ObjectUrl::of_path(dir).is_some();
        if !is_object && fs::metadata(dir).is_ok_and(|data| !data.is_dir()) {
            let text = format!("{}: is a file, expected a directory; name another", dir.display());
            return Err(Failure::Message(text));
        }
        let own = fs::canonicalize(dir).ok();
        let (mut names, mut paths) = (HashMap::new(), Vec::with_capacity(inputs.len()));
        for input in inputs {
            let (source, name) = output_name(input)?;
            let path = dir.join(name);
            if let Some(other) = names.insert(name, input) {
                return Err(Failure::Message(format!(
                    "{input}: has the name of {other}, and both would be {}; rename one of them",
                    path.display()
                )));
            }
            if own.is_some() && canonical_path(source).parent() == own.as_deref() {
                return Err(Failure::Message(format!(
                    "{}: has the input {input}; write to another directory",
                    dir.display()
                )));
            }
            paths.push(path);
        }
        let all: Vec<_> = inputs.iter().cloned().chain(list).collect();
        refuse_inputs(&paths, &all)?;
        let is_new = !is_object && !dir.exists();
        if is_new {
            let failed = |error| cannot_write(&dir.display().to_string(), &error);
            fs::create_dir(dir).map_err(|error| Failure::Message(failed(error)))?;
        }
        let documents = Self { outputs, dir, paths, current: None, is_new, failed: None };
        // Paths in a directory that does not exist cannot be compared.
        let paths = documents.paths.iter().map(PathBuf::as_path).chain(others.iter().copied());
        let paths: Vec<_> =
            paths.map(|path| (path != Path::new("-")).then(|| path.to_owned())).collect();
        refuse_same_output(&paths, false)?;
        Ok(documents)
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

    /// Completes the last output.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.is_new = false;
        self.current.take().map_or(Ok(()), Output::finish)
    }

    /// Converts an error of a job that wrote to the outputs.
    pub(crate) fn failure(mut self, error: petal_lines::Error) -> Failure {
        let name = self.current.as_ref().map(Output::name);
        self.failed.take().unwrap_or_else(|| name_output(error, name, None))
    }

    fn next(&mut self, input: usize) -> Result<()> {
        self.current.take().map_or(Ok(()), Output::finish)?;
        // None is an input: `new` compared them all.
        self.current = Some(self.outputs.open(Some(&self.paths[input]), &[])?);
        Ok(())
    }
}

impl Drop for OutputDir<'_> {
    /// Removes a directory that would stay empty.
    fn drop(&mut self) {
        self.current = None;
        if self.is_new {
            // It fails if something is in it.
            let _ = fs::remove_dir(self.dir);
        }
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

/// Returns the path of an input, and the name of its output: its own, without the extension of a
/// compression that outputs do not have.
fn output_name(input: &Source) -> Result<(&Path, &OsStr)> {
    let path = match input {
        // The name of a descriptor is a number.
        Source::Path(path) if descriptor_of(path).is_none() => Some(path.as_path()),
        _ => None,
    };
    let Some((path, name)) = path.and_then(|path| Some((path, path.file_name()?))) else {
        return Err(Failure::Message(format!(
            "{input}: has no file name for its output; save it to a file first"
        )));
    };
    let known = Compression::of_path(Path::new(name)).is_ok();
    let stem = Path::new(name).file_stem().unwrap_or(name);
    Ok((path, if known { name } else { stem }))
}
