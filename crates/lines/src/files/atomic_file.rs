//! Files that appear complete or not at all.
//!
//! The file is written in the directory of its path and gets its name when it is complete: readers
//! see the old file or the new one. Several threads, processes or machines may write the same path
//! at the same time: each file is complete, and the last one stays.
//!
//! While being written, the file has no name if the file system supports that (`O_TMPFILE`), so a
//! killed process leaves nothing behind. On other file systems (NFS), and everywhere for the moment
//! in which it replaces an old file, it has a temporary name. If the process is killed then, that
//! file stays behind; a signal handler can remove it with [`remove_half_written`].
//!
//! A file that is replaced keeps its owner, group, permissions, access control list and extended
//! attributes. If the user may not give them to another file, or the file cannot be renamed (a mount
//! point, a directory in which only owners may), the new contents are copied into the old file when
//! they are complete. A copy of the old contents, named `FILE.petal-backup`, exists for that time, and
//! remains if the process is killed. Readers may then see a part of each. A signal that removes what is
//! half written waits until such a file is whole.
//!
//! Not `tempfile`'s `persist`: that needs a name from the start, has no list of names for a signal
//! handler, and does not follow links, keep attributes or sync the directory.
//!
//! Cost: a few system calls; [`finish`](AtomicFile::finish) waits for the disk.

use std::fs::{self, File};
use std::io::{self, Write};
use std::mem;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use super::attributes::Attributes;
use super::links::dir_of;

pub use super::descriptor::{descriptor_of, open_descriptor};
pub use super::links::{canonical_path, resolve_links};

/// Prefix and suffix of temporary names.
const NAME: (&str, &str) = (".petal-", ".tmp");

/// Suffix of the copy of a file that is written in place.
const BACKUP: &str = "petal-backup";

/// A file that is being written. Dropped before it is finished, it is removed and its path is
/// unchanged.
#[derive(Debug)]
pub struct AtomicFile {
    file: File,
    path: PathBuf,
    /// Its temporary name, if it has one.
    name: Option<PathBuf>,
    /// Whether it replaces a file.
    replaces: bool,
    /// Why it cannot have the attributes of the file that it replaces.
    unkept: Option<io::Error>,
}

/// What has become of the attributes of the file that was replaced.
#[derive(Debug)]
#[must_use = "a file that others may no longer use is worth a warning"]
pub enum Finished {
    /// They are as before, or there was no file.
    Kept,
    /// The new file belongs to the user of the process, because it could neither get the old ones nor be
    /// copied into the old file.
    Lost(io::Error),
}

impl AtomicFile {
    /// Creates a file for this path, following links, with the attributes of the file that it replaces.
    ///
    /// # Errors
    /// If the directory is not writable, or the path is that of a directory or of an open descriptor.
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::create_with(path, nameless)
    }

    fn create_with(path: &Path, nameless: impl FnOnce(&Path) -> Option<File>) -> io::Result<Self> {
        let path = resolve_links(path)?;
        let is_dir = path.as_os_str().as_bytes().ends_with(b"/");
        let Some(name) = path.file_name().filter(|_| !is_dir) else {
            return Err(Errno::ISDIR.into());
        };
        // Absolute: the process may change its working directory.
        let dir = fs::canonicalize(dir_of(&path))?;
        let path = dir.join(name);
        let old = match Attributes::of(&path) {
            Ok(old) => Some(old),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let (file, name) = if let Some(file) = nameless(&dir) {
            (file, None)
        } else {
            // Not readable by others from the start if the old file is not.
            let mode = old.as_ref().map_or(0o666, |old| old.permissions().mode() & 0o666);
            let make = |name: &Path| {
                File::options().read(true).write(true).create_new(true).mode(mode).open(name)
            };
            let (file, name) = named(&dir, make)?;
            (file, Some(name))
        };
        let unkept = old.as_ref().and_then(|old| old.give_to(&file).err());
        let file = Self { file, path, name, replaces: old.is_some(), unkept };
        if file.unkept.is_some() {
            // Now, and not after a long job.
            check_whole(&file.path)?;
        }
        Ok(file)
    }

    /// Lets only the owner read the file, unless it replaces one: for files with secrets. Call it
    /// before the secret is written.
    ///
    /// # Errors
    /// If its permissions cannot be changed.
    pub fn make_private(&self) -> io::Result<()> {
        match self.replaces {
            true => Ok(()),
            false => self.file.set_permissions(fs::Permissions::from_mode(0o600)),
        }
    }

    /// Returns the file.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Syncs the file, renames it to its path, and syncs the directory.
    ///
    /// # Errors
    /// If one of these fails. Write errors are reported before the rename.
    pub fn finish(mut self) -> io::Result<Finished> {
        self.file.sync_all()?;
        let mut finished = Finished::Kept;
        if let Some(error) = self.unkept.take() {
            if self.overwrite()? {
                return Ok(finished);
            }
            finished = Finished::Lost(error);
        }
        match self.place() {
            Err(error) if is_bound(&error) && self.overwrite()? => return Ok(Finished::Kept),
            placed => placed?,
        }
        sync_dir(dir_of(&self.path))?;
        Ok(finished)
    }

    /// Copies the file into the one that it would replace. Returns false if that is impossible, and
    /// nothing is changed then.
    fn overwrite(&self) -> io::Result<bool> {
        let Ok(old) = File::options().read(true).write(true).open(&self.path) else {
            return Ok(false);
        };
        check_whole(&self.path)?;
        let backup = beside(&self.path, BACKUP);
        // As long as the old file is whole, a signal removes the backup.
        remove_on_signal(&backup);
        // Named when it is complete.
        let saved = Self::create(&backup).and_then(|saved| {
            saved.make_private()?;
            copy(&old, &saved.file)?;
            let again = saved.file.try_clone()?;
            saved.finish().map(|_| again)
        });
        // Locked while the old file is not whole, for which a signal waits.
        let mut list = list();
        forget(&mut list, &backup);
        let Ok(saved) = saved else {
            let _ = fs::remove_file(&backup);
            return Ok(false);
        };
        if let Err(error) = copy(&self.file, &old).and_then(|()| old.sync_all()) {
            if copy(&saved, &old).and_then(|()| old.sync_all()).is_err() {
                let text = format!("{error}; the old contents are in {}", backup.display());
                return Err(io::Error::other(text));
            }
            fs::remove_file(&backup)?;
            return Err(error);
        }
        fs::remove_file(&backup)?;
        sync_dir(dir_of(&backup))?;
        Ok(true)
    }

    /// Renames the file to its path without waiting for a local disk: for work files that are useless
    /// after a crash of the machine.
    ///
    /// # Errors
    /// If the file cannot be renamed.
    pub fn finish_unsynced(mut self) -> io::Result<()> {
        if self.name.is_some() {
            // Probably a network file system, where other machines may see the name before the data.
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
            // Without an old file, a link suffices and no temporary name exists at any time.
            let linked = {
                let _list = list();
                link(&self.path)
            };
            match linked {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                done => return done,
            }
            self.name = Some(named(dir_of(&self.path), link)?.1);
        }
        if let Some(name) = &self.name {
            let mut list = list();
            fs::rename(name, &self.path)?;
            forget(&mut list, name);
        }
        self.name = None;
        Ok(())
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let mut list = list();
            let _ = fs::remove_file(name);
            forget(&mut list, name);
        }
    }
}

/// Opens a file that no run is writing in place. A file of which a part is written would be damaged.
///
/// # Errors
/// If it cannot be opened, or there is a copy of its old contents, which a killed run leaves.
pub fn open_whole(path: &Path) -> io::Result<File> {
    check_whole(path)?;
    File::open(path)
}

/// Returns an error if there is a copy of a file's old contents.
fn check_whole(path: &Path) -> io::Result<()> {
    let backup = beside(&resolve_links(path)?, BACKUP);
    if !backup.exists() {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "another run is writing the file, or was killed meanwhile; wait for it, or restore or remove {}",
        backup.display()
    )))
}

/// Returns whether a file cannot be renamed over another one, which may still be written: a mount point,
/// or another user's file in a directory in which only owners may rename.
fn is_bound(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::BUSY | Errno::PERM | Errno::ACCESS))
}

/// Copies the contents of a file over those of another one.
fn copy(from: &File, to: &File) -> io::Result<()> {
    let mut buffer = vec![0; 256 << 10];
    let mut at = 0;
    loop {
        match from.read_at(&mut buffer, at) {
            Ok(0) => return to.set_len(at),
            Ok(got) => {
                to.write_all_at(&buffer[..got], at)?;
                at += got as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn sync_dir(dir: &Path) -> io::Result<()> {
    match rustix::fs::fsync(File::open(dir)?) {
        // Some file systems cannot sync a directory.
        Ok(()) | Err(Errno::INVAL) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Returns the path of a companion file: the path, a dot and `suffix`.
#[must_use]
pub fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}

/// Creates a file without a name; `None` if it could not be linked later.
fn nameless(dir: &Path) -> Option<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(dir, flags, Mode::from_raw_mode(0o666)).ok()?);
    // It is linked through `/proc`, which some containers lack.
    by_number(&file).exists().then_some(file)
}

fn by_number(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// Number of temporary names used.
static COUNT: AtomicU32 = AtomicU32::new(0);

fn name(count: u32) -> String {
    format!("{}{}-{count}{}", NAME.0, process::id(), NAME.1)
}

/// Creates something in a directory under an unused name. Processes on several machines may have the
/// same ID, so existing names are skipped.
fn named<T>(dir: &Path, make: impl Fn(&Path) -> io::Result<T>) -> io::Result<(T, PathBuf)> {
    loop {
        let name = dir.join(name(COUNT.fetch_add(1, Ordering::Relaxed)));
        // Locked before the file is created, so that a signal handler finds every file in the list.
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

/// Temporary names to remove on a signal. Only programs that handle signals create the list: its lock
/// could be held while another thread forks, as Python does, and would then block forever.
static LIST: OnceLock<Mutex<Vec<PathBuf>>> = OnceLock::new();

type List = MutexGuard<'static, Vec<PathBuf>>;

fn list() -> Option<List> {
    LIST.get().map(|list| list.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
}

fn forget(list: &mut Option<List>, name: &Path) {
    if let Some(list) = list {
        list.retain(|other| other != name);
    }
}

/// Starts recording temporary names. Call it if a signal handler calls [`remove_half_written`].
pub fn expect_signals() {
    LIST.get_or_init(Mutex::default);
}

/// Adds another file to those removed on a signal.
pub fn remove_on_signal(path: &Path) {
    if let Some(mut list) = list() {
        list.push(path.to_owned());
    }
}

/// Removes a file from those removed on a signal.
pub fn keep_on_signal(path: &Path) {
    forget(&mut list(), path);
}

/// Removes all unfinished files that have a name. Call it before a signal ends the process: from then on,
/// no other file gets a name or is written in place.
pub fn remove_half_written() {
    if let Some(mut list) = list() {
        for name in list.drain(..) {
            let _ = fs::remove_file(name);
        }
        // It stays locked.
        mem::forget(list);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
    use std::thread;

    use super::*;

    /// Nameless files where the file system supports them, and files with temporary names.
    const WAYS: [fn(&Path) -> Option<File>; 2] = [nameless, |_| None];

    fn names(dir: &Path) -> Vec<String> {
        let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name();
        let names = fs::read_dir(dir).unwrap().map(name);
        let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn file_appears_complete_or_not_at_all() {
        for way in WAYS {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("out");
            for (text, synced) in [("new", true), ("newer", false), ("newest", true)] {
                let old = fs::read(&path).ok();
                let mut dropped = AtomicFile::create_with(&path, way).unwrap();
                let mut file = AtomicFile::create_with(&path, way).unwrap();
                dropped.write_all(b"half").unwrap();
                file.write_all(text.as_bytes()).unwrap();
                drop(dropped);
                assert_eq!(fs::read(&path).ok(), old);
                if synced { file.finish().map(drop) } else { file.finish_unsynced() }.unwrap();
                assert_eq!(fs::read_to_string(&path).unwrap(), text);
                assert_eq!(names(dir.path()), ["out"]);
            }
        }
    }

    #[test]
    fn concurrent_writers_leave_one_complete_file() {
        for way in WAYS {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("out");
            thread::scope(|scope| {
                for writer in 0..8_u8 {
                    let path = &path;
                    scope.spawn(move || {
                        for _ in 0..50 {
                            let mut file = AtomicFile::create_with(path, way).unwrap();
                            for _ in 0..4 {
                                file.write_all(&[writer; 1000]).unwrap();
                            }
                            file.finish_unsynced().unwrap();
                            let whole = fs::read(path).unwrap();
                            assert_eq!(whole, vec![whole[0]; 4000]);
                        }
                    });
                }
            });
            assert_eq!(names(dir.path()), ["out"]);
        }
    }

    /// The names may belong to another machine, where a process has the same ID.
    #[test]
    fn existing_temporary_names_are_skipped() {
        for way in WAYS {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("out");
            fs::write(&path, "old").unwrap();
            let next = COUNT.load(Ordering::Relaxed);
            for count in next..next + 2000 {
                fs::write(dir.path().join(name(count)), "theirs").unwrap();
            }
            let mut file = AtomicFile::create_with(&path, way).unwrap();
            file.write_all(b"ours").unwrap();
            assert!(matches!(file.finish().unwrap(), Finished::Kept));
            drop(AtomicFile::create_with(&path, way).unwrap());
            assert_eq!(fs::read_to_string(&path).unwrap(), "ours");
            let left = names(dir.path()).into_iter().filter(|name| name.starts_with(NAME.0));
            let left: Vec<_> = left.map(|name| fs::read(dir.path().join(name)).unwrap()).collect();
            assert_eq!(left, vec![b"theirs"; 2000]);
        }
    }

    #[test]
    fn link_target_is_replaced_and_keeps_its_permissions() {
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
                let file = AtomicFile::create_with(&path("link"), way).unwrap();
                let begun = file.file.metadata().unwrap().mode();
                assert!(mode.is_none_or(|mode| begun & 0o7777 == mode));
                assert!(matches!(file.finish().unwrap(), Finished::Kept));
                let out = fs::symlink_metadata(path("far/out")).unwrap();
                assert!(out.is_file());
                assert_eq!(out.mode(), begun);
                assert_eq!(fs::read_link(path("link")).unwrap(), Path::new("far/next"));
                assert_eq!(names(&path("far")), ["next", "out"]);
            }
            assert_eq!(canonical_path(&path("link")), canonical_path(&path("far/../far/out")));
        }
    }

    #[test]
    fn file_that_cannot_get_the_old_attributes_is_written_in_place() {
        expect_signals();
        for way in WAYS {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("out");
            let unkept = |text: &[u8]| {
                let mut file = AtomicFile::create_with(&path, way).unwrap();
                file.write_all(text).unwrap();
                file.unkept = Some(Errno::PERM.into());
                file
            };
            fs::write(&path, "old, and longer").unwrap();
            let old = fs::metadata(&path).unwrap().ino();
            for text in ["short", "longer than the text before"] {
                assert!(matches!(unkept(text.as_bytes()).finish().unwrap(), Finished::Kept));
                assert_eq!(fs::read_to_string(&path).unwrap(), text);
                assert_eq!(fs::metadata(&path).unwrap().ino(), old);
                assert_eq!(names(dir.path()), ["out"]);
            }
            // A copy that a killed run has left is kept, and so is the file.
            fs::write(dir.path().join("out.petal-backup"), "older").unwrap();
            let error = unkept(b"new").finish().unwrap_err();
            assert!(error.to_string().contains("out.petal-backup"), "{error}");
            assert_eq!(names(dir.path()), ["out", "out.petal-backup"]);
            assert_eq!(fs::metadata(&path).unwrap().ino(), old);
            // What cannot be written in place either is replaced.
            fs::remove_file(dir.path().join("out.petal-backup")).unwrap();
            let file = unkept(b"new");
            fs::remove_file(&path).unwrap();
            assert!(matches!(file.finish().unwrap(), Finished::Lost(_)));
            assert_eq!(fs::read_to_string(&path).unwrap(), "new");
            assert_eq!(names(dir.path()), ["out"]);
            // A signal would remove nothing.
            assert!(list().unwrap().iter().all(|name| !name.starts_with(dir.path())));
        }
    }

    #[test]
    fn loops_of_links_and_descriptors_are_errors() {
        let dir = tempfile::tempdir().unwrap();
        symlink("two", dir.path().join("one")).unwrap();
        symlink("one", dir.path().join("two")).unwrap();
        let error = AtomicFile::create(&dir.path().join("one")).unwrap_err();
        assert_eq!(Errno::from_io_error(&error), Some(Errno::LOOP));
        symlink("/dev/fd/0", dir.path().join("input")).unwrap();
        for path in ["/dev/stdin", "/dev/fd/0", dir.path().join("input").to_str().unwrap()] {
            assert_eq!(descriptor_of(Path::new(path)), Some(0), "{path}");
            assert!(AtomicFile::create(Path::new(path)).is_err(), "{path}");
        }
        for path in ["/dev/null", "/dev/fd", "/dev/fd/x", "0", "/proc/1/fd/0"] {
            assert_eq!(descriptor_of(Path::new(path)), None, "{path}");
        }
        assert!(open_descriptor(Path::new("/dev/fd/987654")).is_err());
    }

    #[test]
    fn impossible_path_is_an_error_at_creation() {
        let dir = tempfile::tempdir().unwrap();
        for (path, kind) in [
            ("no/out", io::ErrorKind::NotFound),
            ("out/", io::ErrorKind::IsADirectory),
            ("..", io::ErrorKind::IsADirectory),
        ] {
            for way in WAYS {
                let error = AtomicFile::create_with(&dir.path().join(path), way).unwrap_err();
                assert_eq!(error.kind(), kind, "{path}");
            }
        }
        assert!(names(dir.path()).is_empty());
    }
}
