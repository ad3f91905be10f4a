//! The generated parts of ARCHITECTURE.md and docs/design/modules.md: tables of crates and modules.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use super::Crate;
use super::graph::Module;
use super::source::cut_sentence;
use crate::step::Result;

const BEGIN: &str = "<!-- modules: begin -->\n";
const END: &str = "<!-- modules: end -->\n";

/// Crates that users get; the page lists their modules. Of the others it lists the crate alone.
const LISTED: &[&str] = &[
    "crates/core",
    "crates/lines",
    "crates/interop",
    "crates/cli",
    "crates/module",
    "crates/python",
];

/// Returns `page` with `tables` between the markers.
pub(super) fn replace(page: &str, tables: &str) -> Result<String> {
    let parts =
        page.split_once(BEGIN).and_then(|(head, rest)| Some((head, rest.split_once(END)?.1)));
    let (head, tail) = parts.ok_or("no markers `modules: begin` and `modules: end`")?;
    Ok(format!("{head}{BEGIN}{tables}{END}{tail}"))
}

/// Returns the table of crates, and the tables of their top-level modules.
pub(super) fn overview(crates: &[Crate]) -> String {
    let mut out = String::from("\n| folder | crate | purpose | uses |\n|---|---|---|---|\n");
    for krate in crates {
        let root = krate.modules.modules.first().map_or("", |root| &root.summary);
        let row = (&krate.folder, &krate.name, names(krate.uses.iter().map(String::as_str)));
        let _ = writeln!(out, "| `{}` | `{}` | {root} | {} |", row.0, row.1, row.2);
    }
    for krate in listed(crates) {
        let _ =
            write!(out, "\n### `{}`\n\n| module | purpose | uses |\n|---|---|---|\n", krate.folder);
        for (name, uses) in krate.modules.top_level() {
            let module = krate.modules.modules.iter().find(|m| m.path == [name.clone()]);
            let purpose = module.map(purpose).unwrap_or_default();
            let uses = names(uses.iter().map(String::as_str));
            let _ = writeln!(out, "| `{name}` | {purpose} | {uses} |");
        }
    }
    out.push('\n');
    out
}

/// Returns the tables of all modules, and of the Python package in `python`.
pub(super) fn all_modules(crates: &[Crate], python: &Path) -> Result<String> {
    let mut out = String::new();
    for krate in listed(crates) {
        let _ = write!(out, "\n## `{}/src`\n\n| module | purpose |\n|---|---|\n", krate.folder);
        for (name, _) in krate.modules.top_level() {
            for module in krate.modules.modules.iter().filter(|m| m.path.first() == Some(&name)) {
                let _ = writeln!(out, "| `{}` | {} |", module.path.join("::"), purpose(module));
            }
        }
    }
    out.push_str(
        "\n## `crates/python/python/petal`\n\n| module | purpose | imports |\n|---|---|---|\n",
    );
    out.push_str(&python_rows(python)?);
    out.push('\n');
    Ok(out)
}

fn listed(crates: &[Crate]) -> impl Iterator<Item = &Crate> {
    crates.iter().filter(|krate| LISTED.contains(&krate.folder.as_str()))
}

fn purpose(module: &Module) -> String {
    format!("{}{}", module.summary, if module.has_unsafe { " (**unsafe**)" } else { "" })
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// A row for each Python file, with what it imports from the package.
fn python_rows(package: &Path) -> Result<String> {
    let mut files = Vec::new();
    let mut folders = vec![package.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries =
            fs::read_dir(&folder).map_err(|e| format!("cannot read {}: {e}", folder.display()))?;
        for path in entries.filter_map(|entry| entry.ok().map(|entry| entry.path())) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "py") {
                files.push(path);
            }
        }
    }
    files.sort();
    let mut out = String::new();
    for path in files {
        let text = fs::read_to_string(&path)
            .map_err(|e| format!("cannot read {}: {e}", path.display()))?;
        let doc = text
            .strip_prefix("\"\"\"")
            .and_then(|rest| rest.split("\"\"\"").next())
            .unwrap_or_default();
        let doc = doc.split("\n\n").next().unwrap_or_default().replace('\n', " ");
        let name = super::slashed(path.strip_prefix(package).unwrap_or(&path));
        let uses = names(python_imports(&text).into_iter());
        let _ = writeln!(out, "| `{name}` | {} | {uses} |", cut_sentence(doc.trim()));
    }
    Ok(out)
}

fn python_imports(text: &str) -> BTreeSet<&str> {
    let mut modules = BTreeSet::new();
    for line in text.lines() {
        if let Some((_, names)) = line.split_once("from petal import ") {
            modules.extend(
                names.split(',').map(|name| name.trim().split(' ').next().unwrap_or_default()),
            );
        } else if let Some((_, module)) = line.split_once("from petal.") {
            modules.extend(module.split(' ').next());
        }
    }
    modules.retain(|name| !name.is_empty() && *name != "(");
    modules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_text_between_the_markers_is_replaced() {
        let page = format!("a\n{BEGIN}old\n{END}b\n");
        assert_eq!(replace(&page, "new\n").unwrap(), format!("a\n{BEGIN}new\n{END}b\n"));
        assert!(replace("a\n", "new\n").is_err());
    }

    #[test]
    fn python_imports_are_found() {
        let text = "from petal import _jobs, _tasks as t\nfrom petal._petal import (\n    x,\n)\nimport os\n";
        assert_eq!(
            python_imports(text).into_iter().collect::<Vec<_>>(),
            ["_jobs", "_petal", "_tasks"]
        );
    }
}
