//! Files that appear whole or not at all.
//!
//! A file is written aside, in the directory where it shall be, and gets its name when all of it is
//! there: whoever looks sees the old file or the new one. Several may write one path at once, in
//! threads, processes or on several machines: each file is whole, and the last one stays.
//!
//! Aside it has no name where the file system can do that, so a kill leaves nothing behind. It has
//! one on other file systems (NFS), and everywhere for the moment in which it replaces an old file.
//! That one stays when the process is killed; on a signal, [`remove_half_written`] removes it.
//!
//! Cost: a few calls of the system beside the writing; [`finish`](Aside::finish) waits for the
//! disk.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

/// What the names of files aside begin and end with.
const NAME: (&str, &str) = (".petal-", ".tmp");

/// A file that is written aside. Dropped before it is finished it is gone, and what is at its path
/// is as it was.
#[derive(Debug)]
pub struct Aside {
    file: File,
    path: PathBuf,
    /// Its own name, if it has one.
    name: Option<PathBuf>,
}

impl Aside {
    /// Begins a file that shall be at this path, behind all links. It has the permissions of the
    /// one that it replaces.
    ///
    /// # Errors
    /// If nothing can be made in the directory, or the path can only be a directory's.
    pub fn beside(path: &Path) -> io::Result<Self> {
        Self::begun(path, nameless)
    }

    fn begun(path: &Path, nameless: impl FnOnce(&Path) -> Option<File>) -> io::Result<Self> {
        let path = behind_links(path);
        let is_dir = path.as_os_str().as_bytes().ends_with(b"/");
        let Some(name) = path.file_name().filter(|_| !is_dir) else {
            return Err(Errno::ISDIR.into());
        };
        // From the root: the process may move to another directory meanwhile.
        let dir = fs::canonicalize(dir_of(&path))?;
        let path = dir.join(name);
        let old = fs::metadata(&path).ok().map(|old| old.permissions());
        let (file, name) = if let Some(file) = nameless(&dir) {
            (file, None)
        } else {
            // Of a file that others may not read, none from the first moment on.
            let mode = old.as_ref().map_or(0o666, |old| old.mode() & 0o666);
            let make =
                |name: &Path| File::options().write(true).create_new(true).mode(mode).open(name);
            let (file, name) = named(&dir, make)?;
            (file, Some(name))
        };
        let aside = Self { file, path, name };
        if let Some(old) = old {
            // Somebody chose them.
            aside.file.set_permissions(old)?;
        }
        Ok(aside)
    }

    /// The file.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Makes the file durable and puts it in its place, durably too.
    ///
    /// # Errors
    /// If it cannot be; whatever the storage has to say against its bytes it says before the file
    /// is in its place.
    pub fn finish(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        self.place()?;
        match rustix::fs::fsync(File::open(dir_of(&self.path))?) {
            // Some file systems cannot do that with a directory.
            Ok(()) | Err(Errno::INVAL) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Puts the file in its place and waits for no disk that is at hand: for work files, of use
    /// only as long as the machine goes on.
    ///
    /// # Errors
    /// If it cannot be.
    pub fn finish_unsynced(mut self) -> io::Result<()> {
        if self.name.is_some() {
            // As a rule over a network: other machines see the name before bytes not yet sent.
            self.file.sync_data()?;
        }
        self.place()
    }

    fn place(&mut self) -> io::Result<()> {
        if self.name.is_none() {
            let nameless = by_number(&self.file);
            let link = |name: &Path| -> io::Result<()> {
                Ok(rustix::fs::linkat(CWD, &nameless, CWD, name, AtFlags::SYMLINK_FOLLOW)?)
            };
            // Where nothing is to be replaced this is all, and at no moment is there another name.
            match link(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                done => return done,
            }
            self.name = Some(named(dir_of(&self.path), link)?.1);
        }
        if let Some(name) = &self.name {
            let list = list();
            fs::rename(name, &self.path)?;
            forget(list, name);
        }
        self.name = None;
        Ok(())
    }
}

impl Write for Aside {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let list = list();
            let _ = fs::remove_file(name);
            forget(list, name);
        }
    }
}

/// A file without a name, if there can be one that can be given one.
fn nameless(dir: &Path) -> Option<File> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(dir, flags, Mode::from_raw_mode(0o666)).ok()?);
    // Its name comes by way of `/proc`, which some containers lack.
    by_number(&file).exists().then_some(file)
}

fn by_number(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// How many names were taken.
static COUNT: AtomicU32 = AtomicU32::new(0);

fn name(count: u32) -> String {
    format!("{}{}-{count}{}", NAME.0, process::id(), NAME.1)
}

/// Makes something in a directory under a name that nothing has. Processes on several machines may
/// have one number, and one directory: whoever comes second takes another name.
fn named<T>(dir: &Path, make: impl Fn(&Path) -> io::Result<T>) -> io::Result<(T, PathBuf)> {
    loop {
        let name = dir.join(name(COUNT.fetch_add(1, Ordering::Relaxed)));
        // Before it is made: a signal finds it in the list, or not made.
        let mut list = list();
        match make(&name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
            Ok(made) => {
                if let Some(list) = &mut list {
                    list.push(name.clone());
                }
                return Ok((made, name));
            }
        }
    }
}

/// Names to remove on a signal. Only a program that handles signals has the list, and so its lock:
/// a process forked while another thread held that would wait for ever, and Python's are forked.
static LIST: OnceLock<Mutex<Vec<PathBuf>>> = OnceLock::new();

type List = MutexGuard<'static, Vec<PathBuf>>;

fn list() -> Option<List> {
    LIST.get().map(|list| list.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
}

fn forget(list: Option<List>, name: &Path) {
    if let Some(mut list) = list {
        list.retain(|other| other != name);
    }
}

/// Says that signals are handled, and that the handler calls [`remove_half_written`].
pub fn expect_signals() {
    LIST.get_or_init(Mutex::default);
}

/// Has another file removed too if a signal ends the process.
pub fn remove_on_signal(path: &Path) {
    if let Some(mut list) = list() {
        list.push(path.to_owned());
    }
}

/// It is no longer ours to remove.
pub fn keep_on_signal(path: &Path) {
    forget(list(), path);
}

/// Removes the files that have a name and are not finished: for whoever ends the process.
pub fn remove_half_written() {
    if let Some(mut list) = list() {
        for name in list.drain(..) {
            let _ = fs::remove_file(name);
        }
    }
}

/// Through links, to nothing too, so that the file and not the link is replaced.
#[must_use]
pub fn behind_links(path: &Path) -> PathBuf {
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
#[must_use]
pub fn real(path: &Path) -> PathBuf {
    let path = behind_links(path);
    let dir = fs::canonicalize(dir_of(&path));
    dir.ok().zip(path.file_name()).map_or_else(|| path.clone(), |(dir, name)| dir.join(name))
}

fn dir_of(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
    use std::thread;

    use super::*;

    /// As the file system can do it, and as on one that cannot have nameless files.
    const WAYS: [fn(&Path) -> Option<File>; 2] = [nameless, |_| None];

    fn names(dir: &Path) -> Vec<String> {
        let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name();
        let names = fs::read_dir(dir).unwrap().map(name);
        let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        for way in WAYS {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("out");
            for (text, synced) in [("new", true), ("newer", false), ("newest", true)] {
                let old = fs::read(&path).ok();
                let mut dropped = Aside::begun(&path, way).unwrap();
                let mut aside = Aside::begun(&path, way).unwrap();
                dropped.write_all(b"half").unwrap();
                aside.write_all(text.as_bytes()).unwrap();
                drop(dropped);
                assert_eq!(fs::read(&path).ok(), old);
                if synced { aside.finish() } else { aside.finish_unsynced() }.unwrap();
                assert_eq!(fs::read_to_string(&path).unwrap(), text);
                assert_eq!(names(dir.path()), ["out"]);
            }
        }
    }

    #[test]
    fn many_at_once_do_no_harm() {
        for way in WAYS {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("out");
            thread::scope(|scope| {
                for writer in 0..8_u8 {
                    let path = &path;
                    scope.spawn(move || {
                        for _ in 0..50 {
                            let mut aside = Aside::begun(path, way).unwrap();
                            for _ in 0..4 {
                                aside.write_all(&[writer; 1000]).unwrap();
                            }
                            aside.finish_unsynced().unwrap();
                            let whole = fs::read(path).unwrap();
                            assert_eq!(whole, vec![whole[0]; 4000]);
                        }
                    });
                }
            });
            assert_eq!(names(dir.path()), ["out"]);
        }
    }

    /// As those of another machine, whose processes have the same numbers.
    #[test]
    fn names_of_others_are_left_to_them() {
        for way in WAYS {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("out");
            fs::write(&path, "old").unwrap();
            let next = COUNT.load(Ordering::Relaxed);
            for count in next..next + 2000 {
                fs::write(dir.path().join(name(count)), "theirs").unwrap();
            }
            let mut aside = Aside::begun(&path, way).unwrap();
            aside.write_all(b"ours").unwrap();
            aside.finish().unwrap();
            drop(Aside::begun(&path, way).unwrap());
            assert_eq!(fs::read_to_string(&path).unwrap(), "ours");
            let left = names(dir.path()).into_iter().filter(|name| name.starts_with(NAME.0));
            let left: Vec<_> = left.map(|name| fs::read(dir.path().join(name)).unwrap()).collect();
            assert_eq!(left, vec![b"theirs"; 2000]);
        }
    }

    #[test]
    fn the_file_behind_links_is_replaced_and_its_permissions_stay() {
        for way in WAYS {
            let dir = tempfile::tempdir().unwrap();
            let path = |name: &str| dir.path().join(name);
            fs::create_dir(path("far")).unwrap();
            symlink("far/next", path("link")).unwrap();
            symlink("out", path("far/next")).unwrap();
            for mode in [None, Some(0o640), Some(0o400)] {
                if let Some(mode) = mode {
                    fs::set_permissions(path("far/out"), fs::Permissions::from_mode(mode)).unwrap();
                }
                let aside = Aside::begun(&path("link"), way).unwrap();
                let begun = aside.file.metadata().unwrap().mode();
                assert!(mode.is_none_or(|mode| begun & 0o7777 == mode));
                aside.finish().unwrap();
                let out = fs::symlink_metadata(path("far/out")).unwrap();
                assert!(out.is_file());
                assert_eq!(out.mode(), begun);
                assert_eq!(fs::read_link(path("link")).unwrap(), Path::new("far/next"));
                assert_eq!(names(&path("far")), ["next", "out"]);
            }
            assert_eq!(real(&path("link")), real(&path("far/../far/out")));
        }
    }

    #[test]
    fn what_cannot_be_there_is_told_before_anything_is_written() {
        let dir = tempfile::tempdir().unwrap();
        for (path, kind) in [
            ("no/out", io::ErrorKind::NotFound),
            ("out/", io::ErrorKind::IsADirectory),
            ("..", io::ErrorKind::IsADirectory),
        ] {
            for way in WAYS {
                let error = Aside::begun(&dir.path().join(path), way).unwrap_err();
                assert_eq!(error.kind(), kind, "{path}");
            }
        }
        assert!(names(dir.path()).is_empty());
    }
}
