//! Who may use a file: its owner, group, permissions, access control list and other extended attributes.

use std::fs::{self, File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::Path;

use rustix::fs::XattrFlags;
use rustix::io::Errno;

/// Names and values of extended attributes, among them the access control list.
type Extended = Vec<(Vec<u8>, Vec<u8>)>;

/// The attributes of a file that is replaced.
#[derive(Debug)]
pub(super) struct Attributes {
    data: Metadata,
    /// The extended attributes, or why they are not known.
    extended: Result<Extended, Errno>,
}

impl Attributes {
    /// Reads the attributes of a file.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        Ok(Self { data: fs::metadata(path)?, extended: extended(path) })
    }

    /// Returns the permissions.
    pub(super) fn permissions(&self) -> Permissions {
        self.data.permissions()
    }

    /// Gives the attributes to a new file. Those that the system manages (`security.`, `trusted.`) may be
    /// left out.
    ///
    /// # Errors
    /// If the user may not give it one of the others, or they are not known. Its group, which may be another one, then has no
    /// other permissions than everybody.
    pub(super) fn give_to(&self, file: &File) -> io::Result<()> {
        let everybody = self.data.mode() & 0o7;
        let mode = self.data.mode() & 0o700 | everybody << 3 | everybody;
        file.set_permissions(Permissions::from_mode(mode))?;
        let new = file.metadata()?;
        let (uid, gid) = (self.data.uid(), self.data.gid());
        if (uid, gid) != (new.uid(), new.gid()) {
            fchown(file, Some(uid).filter(|uid| *uid != new.uid()), Some(gid))?;
        }
        self.give_extended_to(file)?;
        // Last: a change of the owner removes setuid, and an access control list has its own bits.
        file.set_permissions(self.permissions())
    }

    fn give_extended_to(&self, file: &File) -> io::Result<()> {
        let extended = self.extended.as_ref().map_err(|error| *error)?;
        // The directory may have a default list for new files.
        let had_list = extended.iter().any(|(name, _)| name == ACL);
        if !had_list && rustix::fs::fgetxattr_query(file, ACL).is_ok() {
            rustix::fs::fremovexattr(file, ACL)?;
        }
        for (name, value) in extended {
            let given = rustix::fs::fsetxattr(file, &name[..], value, XattrFlags::empty());
            let managed = [&b"security."[..], b"trusted."].iter().any(|of| name.starts_with(of));
            match given {
                Err(error) if !managed => return Err(error.into()),
                _ => {}
            }
        }
        Ok(())
    }
}

/// The extended attribute that is the access control list.
const ACL: &[u8] = b"system.posix_acl_access";

/// Reads the extended attributes of a file; none if its file system or the system has none.
fn extended(path: &Path) -> Result<Extended, Errno> {
    let names = sized(|list: &mut [u8]| match list {
        [] => rustix::fs::listxattr_query(path),
        list => rustix::fs::listxattr(path, list),
    });
    let names = match names {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(Vec::new()),
        names => names?,
    };
    let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    let mut extended = Vec::new();
    for name in names {
        let value = sized(|value: &mut [u8]| match value {
            [] => rustix::fs::getxattr_query(path, name),
            value => rustix::fs::getxattr(path, name, value),
        });
        // If not, the user may not read it, or another process has removed it.
        if let Ok(value) = value {
            extended.push((name.to_owned(), value));
        }
    }
    Ok(extended)
}

/// Calls a function for the size of its result, then for the result, until both agree.
fn sized(call: impl Fn(&mut [u8]) -> Result<usize, Errno>) -> Result<Vec<u8>, Errno> {
    loop {
        let mut bytes = vec![0; call(&mut [])?];
        if bytes.is_empty() {
            return Ok(bytes);
        }
        match call(&mut bytes) {
            Ok(got) => {
                bytes.truncate(got);
                return Ok(bytes);
            }
            Err(Errno::RANGE) => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_that_are_not_known_are_not_given() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let known = Attributes::of(file.path()).unwrap();
        known.give_to(file.as_file()).unwrap();
        let error = Attributes { extended: Err(Errno::IO), ..known }.give_to(file.as_file());
        assert_eq!(Errno::from_io_error(&error.unwrap_err()), Some(Errno::IO));
        let error = Attributes::of(&file.path().join("x")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotADirectory);
    }
}
