//! The generated part of ARCHITECTURE.md: a table of crates, and lists of modules.

use std::fmt::Write;

use super::Crate;
use super::graph::Module;
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

/// Returns the table of crates, and the lists of their top-level modules.
pub(super) fn overview(crates: &[Crate]) -> String {
    let mut out = String::from("\n| folder | crate | purpose | uses |\n|---|---|---|---|\n");
    for krate in crates {
        let root = krate.modules.modules.first().map_or("", |root| &root.summary);
        let row = (&krate.folder, &krate.name, names(krate.uses.iter().map(String::as_str)));
        let _ = writeln!(out, "| `{}` | `{}` | {root} | {} |", row.0, row.1, row.2);
    }
    for krate in listed(crates) {
        let _ = write!(out, "\n### `{}`\n\n", krate.folder);
        for name in krate.modules.top_level() {
            let module = krate.modules.modules.iter().find(|m| m.path == [name.clone()]);
            let purpose = module.map(purpose).unwrap_or_default();
            let _ = writeln!(out, "- `{name}`: {purpose}");
        }
    }
    out.push('\n');
    out
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_text_between_the_markers_is_replaced() {
        let page = format!("a\n{BEGIN}old\n{END}b\n");
        assert_eq!(replace(&page, "new\n").unwrap(), format!("a\n{BEGIN}new\n{END}b\n"));
        assert!(replace("a\n", "new\n").is_err());
    }
}
