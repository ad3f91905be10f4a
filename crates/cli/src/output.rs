//! Where results go: standard output, or a file that appears whole or not at all.
//!
//! A file is written aside in the same directory, without a name where the file system can do
//! that, then synced and moved into place. A kill leaves nothing behind; where files must have a
//! name from the start, Ctrl-C and SIGTERM remove it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use petal_lines::Source;
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use crate::exit::{Failure, Result, cannot_write};

/// Where results go.
pub(crate) enum Output {
    /// Standard output, or something else that cannot be replaced, like a device or a FIFO.
    Direct(File),
    /// To be moved to this path.
    Aside { file: File, path: PathBuf, name: Option<PathBuf> },
}

impl Output {
    /// Opens the path, or standard output; an output that is also an input is refused.
    pub(crate) fn open(path: Option<&Path>, inputs: &[Source]) -> Result<Self> {
        let Some(path) = path.filter(|path| *path != Path::new("-")) else {
            let file = io::stdout().as_fd().try_clone_to_owned().map(File::from);
            let file = file.map_err(Failure::of_stdout)?;
            if let Ok(data) = file.metadata()
                && data.is_file()
            {
                refuse_input("standard output", &data, inputs)?;
            }
            return Ok(Self::Direct(file));
        };
        let shown = path.display().to_string();
        let failed = |error: io::Error| Failure::Plain(cannot_write(&shown, &error));
        let path = behind_links(path);
        match fs::metadata(&path) {
            Ok(data) if data.is_dir() => {
                Err(Failure::Plain(format!("{shown}: is a directory, -o expects a file")))
            }
            Ok(data) if data.is_file() => {
                refuse_input(&shown, &data, inputs)?;
                // As the shell's `>` would: a file one may not write is not replaced.
                File::options().append(true).open(&path).map_err(failed)?;
                Self::aside(path).map_err(failed)
            }
            Ok(_) => File::options().write(true).open(&path).map(Self::Direct).map_err(failed),
            Err(_) => Self::aside(path).map_err(failed),
        }
    }

    fn aside(path: PathBuf) -> io::Result<Self> {
        let dir = dir_of(&path);
        let nameless = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        if let Ok(file) = rustix::fs::open(dir, nameless, Mode::from_raw_mode(0o666)) {
            return Ok(Self::Aside { file: File::from(file), path, name: None });
        }
        let named = aside_name(dir);
        let file = File::options().write(true).create_new(true).open(&named)?;
        lock(&NAMED).push(named.clone());
        Ok(Self::Aside { file, path, name: Some(named) })
    }

    /// The writer.
    pub(crate) fn file(&mut self) -> &mut File {
        match self {
            Self::Direct(file) | Self::Aside { file, .. } => file,
        }
    }

    /// Writing to it failed.
    pub(crate) fn failed(&self, error: io::Error) -> Failure {
        match self {
            Self::Direct(_) => Failure::of_stdout(error),
            Self::Aside { path, .. } => {
                Failure::Plain(cannot_write(&path.display().to_string(), &error))
            }
        }
    }

    /// Makes the result durable and gives it its name.
    pub(crate) fn finish(self) -> Result<()> {
        self.finish_synced(false)
    }

    /// The same, and if so asked, makes durable what went to a file that was there before.
    pub(crate) fn finish_synced(mut self, direct: bool) -> Result<()> {
        let (path, done) = match &mut self {
            Self::Direct(file) => {
                let is_file = file.metadata().is_ok_and(|data| data.is_file());
                let synced = if direct && is_file { file.sync_all() } else { Ok(()) };
                return synced.map_err(Failure::of_stdout);
            }
            Self::Aside { file, path, name } => (path.clone(), settle(file, path, name)),
        };
        done.map_err(|error| Failure::Plain(cannot_write(&path.display().to_string(), &error)))
    }
}

/// Syncs a file written aside and moves it to its path.
fn settle(file: &mut File, path: &Path, name: &mut Option<PathBuf>) -> io::Result<()> {
    if let Ok(old) = fs::metadata(path) {
        // It takes the place of a file with permissions somebody chose.
        file.set_permissions(old.permissions())?;
    }
    file.sync_all()?;
    let named = match name {
        Some(named) => named.clone(),
        None => {
            let nameless = format!("/proc/self/fd/{}", file.as_raw_fd());
            let link =
                |to: &Path| rustix::fs::linkat(CWD, &nameless, CWD, to, AtFlags::SYMLINK_FOLLOW);
            // Where nothing is to be replaced the name is given in one step, and whatever ends the
            // process leaves no file of another name behind.
            match link(path) {
                Ok(()) => return File::open(dir_of(path))?.sync_all(),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            let named = aside_name(dir_of(path));
            lock(&NAMED).push(named.clone());
            link(&named)?;
            *name = Some(named.clone());
            named
        }
    };
    fs::rename(&named, path)?;
    *name = None;
    lock(&NAMED).retain(|other| *other != named);
    // The new name is durable when its directory is.
    File::open(dir_of(path))?.sync_all()
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Self::Aside { name: Some(name), .. } = self {
            let _ = fs::remove_file(&name);
            lock(&NAMED).retain(|other| other != name);
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file().flush()
    }
}

/// The named files written aside at this moment.
static NAMED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Has a file removed if a signal ends the process.
pub(crate) fn remove_on_signal(path: &Path) {
    lock(&NAMED).push(path.to_owned());
}

/// It is no longer ours to remove.
pub(crate) fn keep_on_signal(path: &Path) {
    lock(&NAMED).retain(|other| other != path);
}

/// Removes the named files written aside: for whoever ends the process.
pub(crate) fn remove_half_written() {
    for name in lock(&NAMED).drain(..) {
        let _ = fs::remove_file(name);
    }
}

/// Through links, to nothing too, so that the file and not the link is replaced.
pub(crate) fn behind_links(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    // As many as Linux follows; a loop is then an error of whoever opens it.
    for _ in 0..40 {
        let Ok(target) = fs::read_link(&path) else { break };
        // An absolute target replaces all of the path.
        path = dir_of(&path).join(target);
    }
    path
}

/// The one path of a file by whatever name, whether it is there or not.
pub(crate) fn real(path: &Path) -> PathBuf {
    let path = behind_links(path);
    let dir = fs::canonicalize(dir_of(&path));
    dir.ok().zip(path.file_name()).map_or_else(|| path.clone(), |(dir, name)| dir.join(name))
}

fn aside_name(dir: &Path) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    dir.join(format!(".petal-{}-{count}.tmp", std::process::id()))
}

fn dir_of(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn refuse_input(output: &str, data: &fs::Metadata, inputs: &[Source]) -> Result<()> {
    for input in inputs {
        let (name, same) = match input {
            Source::Path(path) => (path.display().to_string(), fs::metadata(path)),
            Source::Stdin => {
                let stdin = io::stdin().as_fd().try_clone_to_owned().map(File::from);
                ("standard input".to_owned(), stdin.and_then(|stdin| stdin.metadata()))
            }
        };
        if same.is_ok_and(|same| (same.dev(), same.ino()) == (data.dev(), data.ino())) {
            return Err(Failure::Plain(format!(
                "{output}: is the same file as the input {name}; write to another file"
            )));
        }
    }
    Ok(())
}
