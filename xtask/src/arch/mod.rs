//! `cargo x arch`: checks the dependencies between crates and modules, and updates the module tables.
//!
//! The graph comes from `cargo metadata` and from the paths in the code. It must have no cycle: between crates, between
//! the top-level modules of a crate, or between its files. Unsafe code is allowed only below [`UNSAFE_CODE`], and
//! files have a maximum length. The tables between the markers in ARCHITECTURE.md are generated.

mod graph;
mod page;
mod source;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::step::{Result, Step, root};
use graph::Graph;
use source::SourceFile;

/// Paths below which unsafe code is allowed.
const UNSAFE_CODE: &[&str] = &[
    // Aligned and mapped memory; vector instructions and prefetches.
    "crates/capi/src/lib.rs",
    "crates/core/src/store/",
    "crates/core/src/kernel/",
    "crates/lines/src/fingerprint/aes/",
    "crates/lines/src/files/descriptor.rs",
    "crates/lines/src/keys/csv/ends.rs",
    "crates/lines/src/scan/line_ends.rs",
    // The C interfaces of Redis, of Arrow, and of libc (malloc options, wait4).
    "crates/module/src/server/",
    "crates/module/src/bindings/",
    "crates/module/src/on_load.rs",
    "crates/python/src/batch/arrow.rs",
    // Exported names of the book's WebAssembly.
    "crates/wasm/src/exports.rs",
    "crates/cli/src/process/memory.rs",
    "crates/cli/src/process/signal.rs",
    "crates/cli/src/process/streams.rs",
    "crates/testkit/src/measure.rs",
    // Mapping a filter file.
    "crates/bench-vs/src/known/mapped.rs",
    "crates/python/src/state/open.rs",
    "crates/cli/src/files/filter_file.rs",
    // Tests with a counting allocator or a mapped file; a prefetch; filters in C++.
    "crates/core/tests/global_allocator.rs",
    "crates/core/tests/portable/hostile.rs",
    "crates/core/tests/memory.rs",
    "crates/core/tests/filters/static_filter.rs",
    "crates/interop/tests/formats/hostile.rs",
    "crates/bench-vs/src/random_reads.rs",
    "crates/bench/benches/boost/main.rs",
];

/// Longest file that passes, in lines without unit tests, and the length from which a note is printed.
const MAX_LINES: usize = 800;
const NOTE_LINES: usize = 600;

/// A crate of the workspace.
struct Crate {
    name: String,
    /// Path from the root of the repository.
    folder: String,
    /// Crates of the workspace that it depends on, development dependencies excluded.
    uses: Vec<String>,
    dev_uses: Vec<String>,
    /// The modules below `src`.
    modules: Graph,
}

/// Checks everything and fails if there is a finding. With `write`, the page is updated first.
pub(crate) fn arch(write: bool) -> Result {
    eprintln!("\n==> arch");
    let root = root();
    let files = files(&root)?;
    let crates = crates(&root, &files)?;
    let mut findings: Vec<String> =
        files.iter().filter_map(too_long).chain(files.iter().flat_map(stray_unsafe)).collect();
    let gone = UNSAFE_CODE.iter().filter(|path| !root.join(path).exists());
    findings.extend(gone.map(|path| format!("xtask/src/arch/mod.rs: {path} does not exist")));
    findings.extend(crate_cycles(&crates));
    findings.extend(crates.iter().flat_map(|c| c.modules.cycles(&c.folder)));
    for file in files.iter().filter(|file| file.in_src() && file.lines > NOTE_LINES) {
        println!("note: {}: {} lines without tests", file.path, file.lines);
    }

    let path = root.join("ARCHITECTURE.md");
    let old = fs::read_to_string(&path).map_err(|e| format!("cannot read ARCHITECTURE.md: {e}"))?;
    let new = page::replace(&old, &page::overview(&crates))
        .map_err(|e| format!("ARCHITECTURE.md: {e}"))?;
    if write && new != old {
        fs::write(&path, &new).map_err(|e| format!("cannot write ARCHITECTURE.md: {e}"))?;
    } else if new != old {
        findings.push("ARCHITECTURE.md: out of date; run `cargo x arch --write`".to_owned());
    }
    for finding in &findings {
        println!("arch: {finding}");
    }
    match findings.len() {
        0 => Ok(()),
        count => Err(format!("arch: {count} findings")),
    }
}

fn too_long(file: &SourceFile) -> Option<String> {
    (file.in_src() && file.lines > MAX_LINES)
        .then(|| format!("{}: {} lines without tests, maximum {MAX_LINES}", file.path, file.lines))
}

fn stray_unsafe(file: &SourceFile) -> Option<String> {
    let line = file.unsafe_lines.first()?;
    let allowed = UNSAFE_CODE.iter().any(|prefix| file.path.starts_with(prefix));
    (!allowed).then(|| format!("{}:{line}: unsafe code outside the modules for it", file.path))
}

/// Cycles among crates, development dependencies included, which cargo itself accepts.
fn crate_cycles(crates: &[Crate]) -> Vec<String> {
    let uses = |krate: &Crate| {
        let all = krate.uses.iter().chain(&krate.dev_uses);
        all.filter_map(|name| crates.iter().position(|other| other.name == *name)).collect()
    };
    let edges: Vec<Vec<usize>> = crates.iter().map(uses).collect();
    let name = |&at: &usize| crates[at].name.clone();
    let cycles = graph::cycles(&edges).into_iter();
    cycles
        .map(|cycle| {
            format!(
                "crates depend in a cycle: {}",
                cycle.iter().map(name).collect::<Vec<_>>().join(" -> ")
            )
        })
        .collect()
}

/// The crates of the workspace, users after what they use.
fn crates(root: &Path, files: &[SourceFile]) -> Result<Vec<Crate>> {
    let metadata = Step::cargo(&["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .output()
        .ok_or("cargo metadata failed")?;
    let metadata: Value =
        serde_json::from_str(&metadata).map_err(|e| format!("cargo metadata: {e}"))?;
    let mut crates = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let manifest = PathBuf::from(package["manifest_path"].as_str().unwrap_or_default());
        let folder = manifest.parent().and_then(|folder| folder.strip_prefix(root).ok());
        let folder = folder.map(slashed).ok_or("cargo metadata: a package outside the root")?;
        let dependencies = package["dependencies"].as_array().map_or(&[][..], Vec::as_slice);
        let of_kind = |dev: bool| {
            let ours = dependencies.iter().filter(|one| one["path"].is_string());
            let kind = ours.filter(|one| (one["kind"] == "dev") == dev);
            kind.filter_map(|one| one["name"].as_str().map(str::to_owned)).collect()
        };
        crates.push(Crate {
            name: package["name"].as_str().unwrap_or_default().to_owned(),
            uses: of_kind(false),
            dev_uses: of_kind(true),
            modules: Graph::new(files, &format!("{folder}/src/")),
            folder,
        });
    }
    let edges = |krate: &Crate| {
        krate
            .uses
            .iter()
            .filter_map(|name| crates.iter().position(|other| other.name == *name))
            .collect()
    };
    let levels = graph::levels(&crates.iter().map(edges).collect::<Vec<Vec<usize>>>());
    let mut crates: Vec<_> = levels.into_iter().zip(crates).collect();
    crates.sort_by(|a, b| (a.0, &a.1.folder).cmp(&(b.0, &b.1.folder)));
    Ok(crates.into_iter().map(|(_, krate)| krate).collect())
}

/// Every Rust file of the workspace, tests and benches included, in path order.
fn files(root: &Path) -> Result<Vec<SourceFile>> {
    let mut files = Vec::new();
    let mut folders = vec![root.join("crates"), root.join("examples"), root.join("xtask")];
    while let Some(folder) = folders.pop() {
        let entries =
            fs::read_dir(&folder).map_err(|e| format!("cannot read {}: {e}", folder.display()))?;
        for path in entries.filter_map(|entry| entry.ok().map(|entry| entry.path())) {
            if path.is_dir() && path.file_name().is_none_or(|name| name != "target") {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = fs::read_to_string(&path)
                    .map_err(|e| format!("cannot read {}: {e}", path.display()))?;
                files.push(SourceFile::parse(
                    slashed(path.strip_prefix(root).unwrap_or(&path)),
                    &text,
                )?);
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn slashed(path: &Path) -> String {
    path.to_string_lossy().replace('\\', "/")
}
