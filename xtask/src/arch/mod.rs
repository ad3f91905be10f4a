//! `cargo x arch`: holds the code to ARCHITECTURE.md.
//!
//! Five checks, each a pure function from text to findings: arrows between crates ([`crates`]), arrows between the
//! modules of a crate ([`modules`]), unsafe code only in its rooms, file lengths, and no room missing from
//! ARCHITECTURE.md ([`files`]). The tables of what is allowed are all in [`rules`].

mod crates;
mod files;
mod modules;
mod rules;
mod source;

use std::fs;
use std::path::Path;

use crate::step::{Result, Step, root};
use source::SourceFile;

/// Prints every finding and fails if there is one.
pub(crate) fn arch() -> Result {
    eprintln!("\n==> arch");
    let root = root();
    let metadata = Step::cargo(&["metadata", "--no-deps", "--format-version", "1"])
        .output()
        .ok_or("cargo metadata failed")?;
    let sources = sources(&root)?;
    let architecture = fs::read_to_string(root.join("ARCHITECTURE.md"))
        .map_err(|e| format!("cannot read ARCHITECTURE.md: {e}"))?;

    let mut findings = crates::check(&metadata)?;
    findings.extend(modules::check(&sources));
    findings.extend(files::unsafe_rooms(&sources));
    findings.extend(files::lengths(&sources));
    findings.extend(files::rooms_described(&sources, &architecture));
    for note in files::long_files(&sources) {
        println!("note: {note}");
    }
    for finding in &findings {
        println!("arch: {finding}");
    }
    if findings.is_empty() {
        println!("arch: {} source files in order", sources.len());
        Ok(())
    } else {
        Err(format!(
            "{} findings against ARCHITECTURE.md (tables: xtask/src/arch/rules.rs)",
            findings.len()
        ))
    }
}

/// Every Rust file below `crates` and `xtask`, tests and benches included, in path order.
fn sources(root: &Path) -> Result<Vec<SourceFile>> {
    let mut found = Vec::new();
    let mut folders = vec![root.join("crates"), root.join("xtask")];
    while let Some(folder) = folders.pop() {
        let entries =
            fs::read_dir(&folder).map_err(|e| format!("cannot read {}: {e}", folder.display()))?;
        for path in entries.filter_map(|entry| entry.ok().map(|entry| entry.path())) {
            if path.is_dir() {
                if path.file_name().is_none_or(|name| name != "target") {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = fs::read_to_string(&path)
                    .map_err(|e| format!("cannot read {}: {e}", path.display()))?;
                let short =
                    path.strip_prefix(root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
                found.push(SourceFile::new(short, &text));
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}
