//! Archives that are the same bytes for the same files, and their checksums.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};

use super::failed;
use crate::step::Result;

/// A `.tar.gz` that is being written, with all its files in one folder.
pub(super) struct Archive {
    tar: tar::Builder<GzEncoder<File>>,
    path: PathBuf,
    folder: String,
}

impl Archive {
    /// Creates `DIR/NAME.tar.gz` with a folder `NAME`.
    pub(super) fn create(dir: &Path, name: &str) -> Result<Self> {
        let path = dir.join(format!("{name}.tar.gz"));
        let file = File::create(&path).map_err(|error| failed(&path, &error))?;
        let tar = tar::Builder::new(GzEncoder::new(file, Compression::best()));
        Ok(Self { tar, path, folder: name.into() })
    }

    /// Appends a file, following links, without owner and time. The only mode bit that is kept is "executable".
    pub(super) fn add(&mut self, from: &Path, name: &str) -> Result {
        let bytes = fs::read(from).map_err(|error| failed(from, &error))?;
        let mode = fs::metadata(from).map_err(|error| failed(from, &error))?.permissions();
        let executable = std::os::unix::fs::PermissionsExt::mode(&mode) & 0o111 != 0;
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(if executable { 0o755 } else { 0o644 });
        let name = format!("{}/{name}", self.folder);
        let added = self.tar.append_data(&mut header, name, &bytes[..]);
        added.map_err(|error| failed(&self.path, &error))
    }

    /// Appends the files of a folder and of the folders in it, sorted by name. Links to files of the same folder stay
    /// links.
    pub(super) fn add_folder(&mut self, from: &Path, name: &str) -> Result {
        for path in sorted_files(from)? {
            let part = path.file_name().unwrap_or_default().to_string_lossy();
            let name = if name.is_empty() { part.into_owned() } else { format!("{name}/{part}") };
            if path.is_dir() {
                self.add_folder(&path, &name)?;
            } else if let Some(target) = link_within(&path) {
                self.add_link(&name, &target)?;
            } else {
                self.add(&path, &name)?;
            }
        }
        Ok(())
    }

    /// Appends a symbolic link.
    fn add_link(&mut self, name: &str, target: &Path) -> Result {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        header.set_mode(0o777);
        let name = format!("{}/{name}", self.folder);
        let added = self.tar.append_link(&mut header, name, target);
        added.map_err(|error| failed(&self.path, &error))
    }

    /// Completes the archive, reads it and checks that these files are in it. A name that ends in `*` stands for at
    /// least one file.
    pub(super) fn finish(self, needed: &[&str]) -> Result {
        let Self { tar, path, folder } = self;
        let done = tar.into_inner().and_then(|gzip| gzip.finish()).and_then(|file| file.sync_all());
        done.map_err(|error| failed(&path, &error))?;
        let entries = Self::entries(&path)?;
        for name in needed {
            let wanted = format!("{folder}/{name}");
            let found = entries.iter().any(|(entry, bytes)| {
                let same = match wanted.strip_suffix('*') {
                    Some(start) => entry.starts_with(start),
                    None => *entry == wanted,
                };
                same && *bytes > 0
            });
            if !found {
                return Err(format!("{}: no file {name}, or it is empty", path.display()));
            }
        }
        Ok(())
    }

    /// Returns the names and sizes of the files in an archive.
    pub(super) fn entries(path: &Path) -> Result<Vec<(String, u64)>> {
        let error = |error| failed(path, &error);
        let mut tar = tar::Archive::new(GzDecoder::new(File::open(path).map_err(error)?));
        let mut found = vec![];
        for entry in tar.entries().map_err(error)? {
            let entry = entry.map_err(error)?;
            found.push((entry.path().map_err(error)?.display().to_string(), entry.size()));
        }
        Ok(found)
    }

    /// Unpacks an archive into a folder.
    pub(super) fn unpack(path: &Path, into: &Path) -> Result {
        let error = |error| failed(path, &error);
        let file = File::open(path).map_err(error)?;
        tar::Archive::new(GzDecoder::new(file)).unpack(into).map_err(error)
    }
}

/// Returns the target of a link to a file of the same folder.
fn link_within(path: &Path) -> Option<PathBuf> {
    fs::read_link(path).ok().filter(|target| target.components().count() == 1)
}

/// Returns what is in a folder, sorted by name.
pub(super) fn sorted_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let error = |error| failed(folder, &error);
    let mut paths = vec![];
    for entry in fs::read_dir(folder).map_err(error)? {
        paths.push(entry.map_err(error)?.path());
    }
    paths.sort();
    Ok(paths)
}

/// Writes `SHA256SUMS`, which `sha256sum --check` reads.
pub(super) fn write_checksums(folder: &Path) -> Result {
    let mut lines = Vec::new();
    for path in sorted_files(folder)? {
        let error = |error| failed(&path, &error);
        let (mut file, mut hash) = (File::open(&path).map_err(error)?, Sha256::new());
        let mut buffer = vec![0; 1 << 16];
        loop {
            let read = file.read(&mut buffer).map_err(error)?;
            if read == 0 {
                break;
            }
            hash.update(&buffer[..read]);
        }
        let digits: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        writeln!(lines, "{digits}  {name}").map_err(error)?;
    }
    super::write(&folder.join("SHA256SUMS"), &lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("petal-archive-{}-{name}", std::process::id()));
        super::super::remake(&folder).unwrap();
        folder
    }

    #[test]
    fn archive_has_its_files_or_is_an_error() {
        let folder = folder("files");
        fs::create_dir(folder.join("man")).unwrap();
        fs::write(folder.join("man/petal.1"), "page").unwrap();
        std::os::unix::fs::symlink("petal.1", folder.join("man/petal-same.1")).unwrap();
        fs::write(folder.join("empty"), "").unwrap();
        let make = |needed: &[&str]| {
            let mut archive = Archive::create(&folder, "some").unwrap();
            archive.add(&folder.join("empty"), "empty").unwrap();
            archive.add_folder(&folder.join("man"), "man").unwrap();
            archive.finish(needed)
        };
        make(&["man/*", "man/petal.1"]).unwrap();
        let first = fs::read(folder.join("some.tar.gz")).unwrap();
        let entries = Archive::entries(&folder.join("some.tar.gz")).unwrap();
        let names = ["some/empty", "some/man/petal-same.1", "some/man/petal.1"];
        assert_eq!(entries, names.map(String::from).into_iter().zip([0, 0, 4]).collect::<Vec<_>>());
        Archive::unpack(&folder.join("some.tar.gz"), &folder).unwrap();
        let link = fs::read_link(folder.join("some/man/petal-same.1")).unwrap();
        assert_eq!(link, Path::new("petal.1"));
        assert!(make(&["empty"]).unwrap_err().contains("no file empty"));
        assert!(make(&["completions/*"]).unwrap_err().contains("no file completions/*"));
        assert_eq!(first, fs::read(folder.join("some.tar.gz")).unwrap());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn checksums_are_those_of_sha256sum() {
        let folder = folder("sums");
        fs::write(folder.join("abc"), "abc").unwrap();
        write_checksums(&folder).unwrap();
        // The example of FIPS 180-4.
        let sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  abc\n";
        assert_eq!(fs::read_to_string(folder.join("SHA256SUMS")).unwrap(), sum);
        fs::remove_dir_all(&folder).unwrap();
    }
}
