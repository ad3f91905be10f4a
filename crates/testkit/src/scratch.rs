//! A folder of its own for one test.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A new, empty folder that is removed with all it holds when this is dropped.
#[derive(Debug)]
pub struct Scratch {
    folder: PathBuf,
}

impl Scratch {
    /// Makes the folder, below the system's folder for temporary files.
    ///
    /// # Panics
    /// If it cannot be made: the test cannot go on.
    #[expect(clippy::new_without_default, reason = "it makes a folder")]
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder =
            std::env::temp_dir().join(format!("petal-test-{}-{number}", std::process::id()));
        // Left over from a killed run whose process id has come round again.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder)
            .unwrap_or_else(|e| panic!("cannot make {}: {e}", folder.display()));
        Self { folder }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// The path of a file in the folder, whether it exists or not.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes a file and returns its path.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.file(name);
        fs::write(&path, content)
            .unwrap_or_else(|e| panic!("cannot write {}: {e}", path.display()));
        path
    }

    /// Reads a file of the folder.
    ///
    /// # Panics
    /// If it cannot be read.
    pub fn read(&self, name: &str) -> Vec<u8> {
        let path = self.file(name);
        fs::read(&path).unwrap_or_else(|e| panic!("cannot read {}: {e}", path.display()))
    }

    /// The names in the folder, sorted: what a program left behind.
    ///
    /// # Panics
    /// If the folder cannot be read.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.folder)
            .unwrap_or_else(|e| panic!("cannot list {}: {e}", self.folder.display()));
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
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::Scratch;

    #[test]
    fn made_used_gone() {
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
