//! A temporary directory for one test.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A new temporary directory, which is removed with its contents on drop.
#[derive(Debug)]
pub struct Scratch {
    directory: PathBuf,
}

impl Scratch {
    /// Creates a directory in the system's temporary directory.
    ///
    /// # Panics
    /// If it cannot be created.
    #[expect(clippy::new_without_default, reason = "it creates a directory")]
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let directory =
            std::env::temp_dir().join(format!("petal-test-{}-{number}", std::process::id()));
        // Left by a killed run with the same process id.
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory)
            .unwrap_or_else(|e| panic!("cannot create {}: {e}", directory.display()));
        Self { directory }
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.directory
    }

    /// Returns the path of a file in the directory, which need not exist.
    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Writes a file and returns its path.
    ///
    /// # Panics
    /// If the file cannot be written.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.file(name);
        fs::write(&path, content)
            .unwrap_or_else(|e| panic!("cannot write {}: {e}", path.display()));
        path
    }

    /// Reads a file in the directory.
    ///
    /// # Panics
    /// If the file cannot be read.
    pub fn read(&self, name: &str) -> Vec<u8> {
        let path = self.file(name);
        fs::read(&path).unwrap_or_else(|e| panic!("cannot read {}: {e}", path.display()))
    }

    /// Returns the sorted names of all files in the directory.
    ///
    /// # Panics
    /// If the directory cannot be read.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.directory)
            .unwrap_or_else(|e| panic!("cannot list {}: {e}", self.directory.display()));
        let mut names: Vec<_> = entries
            .filter_map(|entry| entry.ok())
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

#[cfg(test)]
mod tests {
    use super::Scratch;

    #[test]
    fn directory_is_removed_on_drop() {
        let scratch = Scratch::new();
        let other = Scratch::new();
        assert_ne!(scratch.path(), other.path());
        scratch.write("b", b"2");
        scratch.write("a", b"1");
        assert_eq!(
            (scratch.names(), scratch.read("b")),
            (vec!["a".to_owned(), "b".to_owned()], b"2".to_vec())
        );
        let path = scratch.path().to_owned();
        drop(scratch);
        assert!(!path.exists());
    }
}
