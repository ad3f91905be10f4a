//! Checks of the programs and modules before they are packed.

use std::fs;
use std::path::Path;

use object::{Architecture, Object as _, ObjectSection as _};

use super::failed;
use super::target::Target;
use crate::step::Result;

/// Checks a stripped program or module: its processor, that it has no debug information but names the file that has
/// it, and that it needs no newer C library than the target.
pub(super) fn check_stripped(file: &Path, target: &Target) -> Result {
    with_object(file, |object| {
        let expected = match target.processor() {
            "aarch64" => Architecture::Aarch64,
            _ => Architecture::X86_64,
        };
        let found = object.architecture();
        if found != expected {
            return Err(format!("is for {found:?}, expected {expected:?}"));
        }
        for section in [".debug_info", ".debug_line", ".symtab"] {
            if object.section_by_name(section).is_some() {
                return Err(format!("has the section {section}, expected a stripped file"));
            }
        }
        if object.section_by_name(".gnu_debuglink").is_none() {
            return Err("does not name its debug information (.gnu_debuglink)".into());
        }
        match target.glibc {
            Some(oldest) => check_glibc(&section_bytes(object, ".dynstr"), oldest),
            None if object.section_by_name(".interp").is_some() => {
                Err("is linked dynamically, expected a static program".into())
            }
            None => Ok(()),
        }
    })
}

/// Checks that a file has debug information with line numbers.
pub(super) fn check_debug_info(file: &Path) -> Result {
    with_object(file, |object| {
        if section_bytes(object, ".debug_line").is_empty() {
            return Err("has no line numbers (.debug_line)".into());
        }
        Ok(())
    })
}

/// Parses a file; errors name it.
fn with_object(file: &Path, check: impl FnOnce(&object::File<'_>) -> Result) -> Result {
    let bytes = fs::read(file).map_err(|error| failed(file, &error))?;
    let object = object::File::parse(&*bytes);
    let object = object.map_err(|error| format!("{}: {error}", file.display()))?;
    check(&object).map_err(|problem| format!("{}: {problem}", file.display()))
}

fn section_bytes(object: &object::File<'_>, name: &str) -> Vec<u8> {
    let section = object.section_by_name(name);
    section.and_then(|section| section.data().ok()).unwrap_or_default().to_vec()
}

/// Checks the versions of glibc among the names of a file's dynamic symbols and of their versions.
fn check_glibc(names: &[u8], oldest: &str) -> Result {
    let oldest = version(oldest).ok_or_else(|| format!("not a version of glibc: {oldest}"))?;
    for name in names.split(|&byte| byte == 0) {
        let Some(needed) = name.strip_prefix(b"GLIBC_") else { continue };
        let needed = String::from_utf8_lossy(needed);
        // GLIBC_PRIVATE and other names without a number stand for one release of glibc.
        if version(&needed).is_none_or(|needed| needed > oldest) {
            return Err(format!(
                "needs glibc {needed}, expected at most {}.{}",
                oldest.0, oldest.1
            ));
        }
    }
    Ok(())
}

/// Parses the first two numbers of a version.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
}

#[cfg(test)]
mod tests {
    use super::super::target::TARGETS;
    use super::*;

    #[test]
    fn newer_glibc_is_an_error() {
        check_glibc(b"\0libc.so.6\0GLIBC_2.2.5\0GLIBC_2.17\0GCC_3.0\0", "2.17").unwrap();
        for (names, shown) in
            [(&b"\0GLIBC_2.18\0"[..], "glibc 2.18"), (b"\0GLIBC_PRIVATE\0", "glibc PRIVATE")]
        {
            assert!(check_glibc(names, "2.17").unwrap_err().contains(shown));
        }
    }

    #[test]
    fn unstripped_or_foreign_binary_is_an_error() {
        // This test's own program: not stripped, for the processor of this machine.
        let own = std::env::current_exe().unwrap();
        check_debug_info(&own).unwrap();
        for target in TARGETS {
            let problem = check_stripped(&own, target).unwrap_err();
            let same = target.processor() == std::env::consts::ARCH;
            assert!(problem.contains(if same { "expected a stripped" } else { "is for" }));
        }
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        assert!(check_debug_info(&manifest).unwrap_err().contains("Cargo.toml: "));
    }
}
