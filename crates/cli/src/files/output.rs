//! Outputs: standard output, a file that is replaced atomically, or an object of a store.
//!
//! What cannot be replaced is written in place: a device, a FIFO, and a descriptor of this process by a
//! name like `/dev/stdout`, whose file the shell may have written to before.

use std::fs::{self, File};
use std::io::{self, IsTerminal as _, Write};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;

use rustix::fs::{OFlags, fcntl_getfl};

use petal_lines::atomic_file::{AtomicFile, Finished, open_descriptor};
use petal_lines::{
    CompressedWriter, Compression, ErrorKind, LeftOutRecords, MIN_MEMORY, ObjectUrl, Settings,
    Source, Upload, compressed_extension, enlarge_pipe, upload_memory,
};

use super::same_file::is_input;
use crate::args::{CompressArgs, CompressionArg};
use crate::error::{Failure, Result, cannot_write, io_text, print_stderr};
use crate::process::streams::is_stdout_closed;
use crate::text;

/// The outputs of lines of a command: how they are compressed, and the memory that they take.
pub(crate) struct LineOutputs {
    compress: CompressArgs,
    memory_limit: u64,
    jobs: usize,
    left_out: LeftOutRecords,
}

impl LineOutputs {
    /// Of a job with these settings.
    pub(crate) fn new(compress: CompressArgs, settings: &Settings<'_>) -> Self {
        let left_out = settings.left_out.clone();
        Self { compress, memory_limit: settings.memory_limit, jobs: settings.jobs, left_out }
    }

    /// Returns the memory limit that remains beside the buffers of the outputs; `None` is standard output.
    pub(crate) fn memory_beside(&self, paths: &[Option<&Path>]) -> Result<u64> {
        if paths.is_empty() && self.compress.compress.is_some() {
            let text =
                "--compress: no lines are written with -c, or without --missing; leave it out";
            return Err(Failure::Message(text.to_owned()));
        }
        let limit = self.memory_limit;
        let (mut taken, mut needed, mut purpose) = (0, MIN_MEMORY, "");
        for path in paths {
            if path.is_some_and(|path| ObjectUrl::of_path(path).is_some()) {
                taken += upload_memory(limit);
                needed += upload_memory(0);
                purpose = "write to a store";
            }
            if let Some(compression) = self.compression(*path)? {
                taken += compression.memory(limit, self.jobs);
                needed += compression.memory(0, 1);
                purpose = if purpose.is_empty() { "compress the output" } else { purpose };
            }
        }
        if taken > 0 && limit < needed {
            return Err(Failure::Message(format!(
                "-m: {} is too little, at least {} is needed to {purpose}; raise -m",
                text::size(limit),
                text::size(needed),
            )));
        }
        Ok(limit - taken)
    }

    /// Opens the path, or standard output. Fails if the output is also an input.
    pub(crate) fn open(&self, path: Option<&Path>, inputs: &[Source]) -> Result<Output> {
        path.map_or(Ok(()), |path| refuse_bad_file(path, &self.left_out))?;
        let compression = self.compression(path)?;
        let output = Output::open_named(path, inputs, self.memory_limit)?;
        let Some(compression) = compression else { return Ok(output) };
        output.compressed(compression, self.memory_limit, self.jobs)
    }

    /// Returns how an output is compressed: as its name says, unless the command line says how.
    fn compression(&self, path: Option<&Path>) -> Result<Option<Compression>> {
        let path = path.filter(|path| *path != Path::new("-") && !is_special(path));
        let named = path.map_or(Ok(None), Compression::of_path);
        let given = self.compress.compress.map(|CompressionArg(format)| format);
        let name = path.unwrap_or(Path::new("-")).display();
        Err(Failure::Message(match (given, named) {
            (Some(None), _) => return Ok(None),
            (Some(given), Ok(None)) => return Ok(given),
            (Some(Some(given)), Ok(Some(named))) if given.is_like(named) => return Ok(Some(given)),
            (None, Ok(named)) => return Ok(named),
            (Some(Some(given)), Ok(Some(named))) => format!(
                "{name}: its name is one of {}, but --compress says {}; change one of them",
                named.name(),
                given.name(),
            ),
            (_, Err(extension)) => format!(
                "{name}: outputs are not compressed as .{extension}; name it .gz, .zst or .lz4, or leave out \
                 the extension, and compress the file afterwards"
            ),
        }))
    }
}

/// Returns an error if a file that a command writes is that of `--bad-records`.
pub(crate) fn refuse_bad_file(path: &Path, left_out: &LeftOutRecords) -> Result<()> {
    match left_out.writes_to(path) {
        true => Err(Failure::Message(format!(
            "{}: is used for two outputs; name another file",
            path.display()
        ))),
        false => Ok(()),
    }
}

/// An output.
pub(crate) struct Output {
    writer: Writer,
    /// Its name for messages; the address of an object is masked.
    name: String,
}

enum Writer {
    Plain(Target),
    Compressed(Box<CompressedWriter<Target>>),
}

/// What is written to.
enum Target {
    /// Standard output, or a file that cannot be replaced, like a device or a FIFO.
    Direct(File),
    /// A regular file that is replaced on success.
    AtomicFile(AtomicFile),
    /// An object that appears on success.
    Upload(Upload),
}

impl Target {
    fn writer(&mut self) -> &mut (dyn Write + Send) {
        match self {
            Self::Direct(file) => file,
            Self::AtomicFile(file) => file.file(),
            Self::Upload(upload) => upload,
        }
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer().flush()
    }
}

impl Output {
    /// Opens the path, or standard output, for what is not compressed. Fails if the output is also an
    /// input, or its name says that it is compressed.
    pub(crate) fn open(path: Option<&Path>, inputs: &[Source]) -> Result<Self> {
        match path {
            Some(path) if !is_special(path) => refuse_compressed(path)?,
            _ => {}
        }
        Self::open_named(path, inputs, 0)
    }

    /// Opens a file that is written as its name says: one that stays as it was, or that the caller
    /// compresses.
    pub(crate) fn open_as_named(path: &Path, inputs: &[Source]) -> Result<Self> {
        Self::open_named(Some(path), inputs, 0)
    }

    fn new(target: Target, name: String) -> Self {
        Self { writer: Writer::Plain(target), name }
    }

    /// Compresses what will be written.
    fn compressed(self, compression: Compression, memory_limit: u64, jobs: usize) -> Result<Self> {
        let Self { writer: Writer::Plain(target), name } = self else { return Ok(self) };
        if let Target::Direct(file) = &target
            && file.is_terminal()
        {
            return Err(Failure::Message(format!(
                "{name}: is a terminal, which would show compressed bytes; redirect it, or leave out --compress"
            )));
        }
        let writer = CompressedWriter::new(target, compression, memory_limit, jobs);
        let writer = writer.map_err(|error| Failure::Message(cannot_write(&name, &error)))?;
        Ok(Self { writer: Writer::Compressed(Box::new(writer)), name })
    }

    fn open_named(path: Option<&Path>, inputs: &[Source], memory_limit: u64) -> Result<Self> {
        if let Some(url) = path.and_then(ObjectUrl::of_path) {
            return Self::upload(&url, inputs, memory_limit);
        }
        let Some(path) = path.filter(|path| *path != Path::new("-")) else {
            if is_stdout_closed() {
                return Err(Failure::closed_stdout());
            }
            let file = io::stdout().as_fd().try_clone_to_owned().map(File::from);
            return Self::direct(file.map_err(Failure::of_stdout)?, STDOUT.to_owned(), inputs);
        };
        let shown = path.display().to_string();
        let failed = |error: io::Error| Failure::Message(cannot_write(&shown, &error));
        if let Some(file) = open_descriptor(path).map_err(failed)? {
            return Self::direct(file, shown, inputs);
        }
        if let Ok(data) = fs::metadata(path) {
            if data.is_dir() {
                let message = format!(
                    "{shown}: is a directory, expected a file to write; add the name of a file"
                );
                return Err(Failure::Message(message));
            }
            if !data.is_file() {
                let file = File::options().write(true).open(path).map_err(failed)?;
                return Ok(Self::new(Target::Direct(file), shown));
            }
            refuse_input(&shown, &data, inputs)?;
            // A file without write permission is not replaced, as with `>` of the shell.
            File::options().append(true).open(path).map_err(failed)?;
        }
        let file = AtomicFile::create(path).map_err(failed)?;
        Ok(Self::new(Target::AtomicFile(file), shown))
    }

    /// Writes to an open file where it stands.
    fn direct(file: File, shown: String, inputs: &[Source]) -> Result<Self> {
        if let Ok(data) = file.metadata()
            && data.is_file()
        {
            refuse_input(&shown, &data, inputs)?;
        }
        enlarge_pipe(&file);
        Ok(Self::new(Target::Direct(file), shown))
    }

    fn upload(url: &ObjectUrl, inputs: &[Source], memory_limit: u64) -> Result<Self> {
        let name = url.to_string();
        if inputs.iter().any(|input| matches!(input.place(), Source::Object(input) if input == url))
        {
            return Err(Failure::Message(format!(
                "{name}: is the same object as an input; write to another object"
            )));
        }
        match Upload::create(url, memory_limit) {
            Ok(upload) => Ok(Self::new(Target::Upload(upload), name)),
            Err(error) => Err(Failure::Message(cannot_write(&name, &error))),
        }
    }

    /// Lets only the owner read a new file: it will have the secret key of a hash.
    pub(crate) fn make_private(&self) -> Result<()> {
        let made = match &self.writer {
            Writer::Plain(Target::AtomicFile(file)) => file.make_private(),
            _ => Ok(()),
        };
        made.map_err(|error| self.failed(error))
    }

    /// Returns the file to write to; `None` for an upload, and if what is written is compressed.
    pub(crate) fn file(&mut self) -> Option<&mut File> {
        match &mut self.writer {
            Writer::Plain(Target::Direct(file)) => Some(file),
            Writer::Plain(Target::AtomicFile(file)) => Some(file.file()),
            Writer::Plain(Target::Upload(_)) | Writer::Compressed(_) => None,
        }
    }

    /// Returns the writer of bytes.
    pub(crate) fn writer(&mut self) -> &mut (dyn Write + Send) {
        match &mut self.writer {
            Writer::Plain(target) => target.writer(),
            Writer::Compressed(writer) => writer,
        }
    }

    /// Converts an error of writing to this output.
    pub(crate) fn failed(&self, error: io::Error) -> Failure {
        write_failure(&self.name, error)
    }

    /// Returns the name for messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Syncs a new file and renames it to its final name, or completes the upload.
    pub(crate) fn finish(self) -> Result<()> {
        self.finish_synced(false)
    }

    /// Like [`finish`](Self::finish); with `direct`, also syncs an existing file.
    pub(crate) fn finish_synced(self, direct: bool) -> Result<()> {
        let Self { writer, name } = self;
        let failed = |error| write_failure(&name, error);
        let target = match writer {
            Writer::Plain(target) => target,
            Writer::Compressed(writer) => writer.finish().map_err(failed)?,
        };
        match target {
            Target::Direct(file) => {
                let is_file = file.metadata().is_ok_and(|data| data.is_file());
                let synced = if direct && is_file { file.sync_all() } else { Ok(()) };
                synced.map_err(failed)
            }
            Target::AtomicFile(file) => finish_file(file, &name),
            Target::Upload(upload) => {
                upload.finish().map_err(|error| Failure::Message(cannot_write(&name, &error)))
            }
        }
    }
}

fn write_failure(name: &str, error: io::Error) -> Failure {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Failure::ClosedPipe;
    }
    Failure::Message(cannot_write(name, &error))
}

/// Completes a file, and warns if others may no longer use it.
pub(crate) fn finish_file(file: AtomicFile, name: &str) -> Result<()> {
    match file.finish() {
        Ok(Finished::Kept) => {}
        Ok(Finished::Lost(error)) => print_stderr(&format!(
            "petal: warning: {name}: its owner, group or attributes could not be kept: {}; set them again",
            io_text(&error)
        )),
        Err(error) => return Err(Failure::Message(cannot_write(name, &error))),
    }
    Ok(())
}

/// Returns whether a path names something that is not a regular file, such as a FIFO, whose reader may
/// compress.
fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|data| !data.is_file())
}

fn refuse_compressed(path: &Path) -> Result<()> {
    let Some(extension) = compressed_extension(path) else { return Ok(()) };
    let name = path.display();
    Err(Failure::Message(format!(
        "{name}: the output is not compressed, but .{extension} says that it is; leave out the extension, \
         and compress the file afterwards"
    )))
}

pub(crate) const STDOUT: &str = "standard output";

/// Adds the name of the output to an error of writing it.
pub(crate) fn name_output(
    error: petal_lines::Error,
    kept: Option<&str>,
    rest: Option<&str>,
) -> Failure {
    let name = match error.kind() {
        ErrorKind::Output => kept,
        ErrorKind::RestOutput => rest,
        _ => None,
    };
    match (name, error.io_error()) {
        (Some(name), Some(source)) if !error.is_broken_pipe() => {
            Failure::Message(cannot_write(name, source))
        }
        _ => error.into(),
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer().flush()
    }
}

/// Returns whether what is written to a file follows its last byte. At another position the user
/// overwrites the file on purpose.
pub(crate) fn is_at_end(file: &mut File) -> io::Result<bool> {
    let appends = fcntl_getfl(&*file)?.contains(OFlags::APPEND);
    Ok(appends || io::Seek::stream_position(file)? == file.metadata()?.len())
}

/// Opens the same file for reading, because the shell opens the file of `>>` only for writing.
/// `None` if it is empty or not a regular file.
///
/// # Errors
/// If the file cannot be read.
pub(crate) fn readable(file: &File) -> io::Result<Option<File>> {
    let data = file.metadata()?;
    if !data.is_file() || data.len() == 0 {
        return Ok(None);
    }
    if file.read_at(&mut [0], 0).is_ok() {
        return file.try_clone().map(Some);
    }
    let again = File::open(format!("/dev/fd/{}", file.as_raw_fd()))?;
    let found = again.metadata()?;
    if (found.dev(), found.ino()) != (data.dev(), data.ino()) {
        return Err(io::Error::other("/dev/fd names another file"));
    }
    // Some systems only duplicate the descriptor.
    again.read_at(&mut [0], 0)?;
    Ok(Some(again))
}

fn refuse_input(output: &str, data: &fs::Metadata, inputs: &[Source]) -> Result<()> {
    let input = inputs.iter().find(|input| input.is(data));
    input.map_or(Ok(()), |input| Err(is_input(output, input, "file")))
}
