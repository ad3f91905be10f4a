//! The modules of a crate, which of them use which, and cycles in such graphs.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use super::source::{ItemPath, SourceFile, module_path};

/// The file that names the code of every instruction set and defines the traits that this code implements. The macros
/// that write both need them in one file, so uses of it are left out of cycles.
const DISPATCH: &str = "crates/core/src/kernel/dispatch.rs";

/// A file below `src` as a module.
pub(super) struct Module {
    pub(super) path: ItemPath,
    pub(super) summary: String,
    pub(super) has_unsafe: bool,
    file: String,
    /// Modules it uses, as indices, each with the line of one such use.
    uses: BTreeMap<usize, usize>,
}

/// The modules of one crate, in the order of their paths.
pub(super) struct Graph {
    pub(super) modules: Vec<Module>,
}

impl Graph {
    /// The modules of the files below `src`, other programs (`src/bin`) and unit tests excluded.
    pub(super) fn new(files: &[SourceFile], src: &str) -> Self {
        let inside = files.iter().filter(|file| file.path.starts_with(src));
        let files: Vec<&SourceFile> =
            inside.filter(|file| !file.path[src.len()..].starts_with("bin/")).collect();
        let tests: Vec<&ItemPath> = files.iter().flat_map(|file| &file.test_modules).collect();
        let mut files: Vec<(ItemPath, &SourceFile)> =
            files.into_iter().map(|file| (module_path(&file.path), file)).collect();
        files.retain(|(path, _)| !tests.iter().any(|test| path.starts_with(test)));
        files.sort_by(|a, b| a.0.cmp(&b.0));
        let index = files.iter().enumerate().map(|(at, (path, _))| (path.clone(), at)).collect();
        let modules = files.iter().enumerate().map(|(at, (path, file))| {
            let mut uses = BTreeMap::new();
            for (line, used) in &file.uses {
                if let Some(to) = resolve(used, &files, &index, 0).filter(|&to| to != at) {
                    uses.entry(to).or_insert(*line);
                }
            }
            Module {
                path: path.clone(),
                summary: file.summary.clone(),
                has_unsafe: !file.unsafe_lines.is_empty(),
                file: file.path.clone(),
                uses,
            }
        });
        Self { modules: modules.collect() }
    }

    /// The top-level modules, each after all that it uses.
    pub(super) fn top_level(&self) -> Vec<String> {
        let (names, edges) = self.top_level_edges();
        let levels = levels(&edges);
        let mut order: Vec<usize> = (0..names.len()).collect();
        order.sort_by_key(|&at| (levels[at], names[at]));
        order.into_iter().map(|at| names[at].to_owned()).collect()
    }

    fn top_level_edges(&self) -> (Vec<&str>, Vec<Vec<usize>>) {
        let names: BTreeSet<&str> = self.modules.iter().filter_map(top).collect();
        let names: Vec<&str> = names.into_iter().collect();
        let mut edges = vec![BTreeSet::new(); names.len()];
        for module in &self.modules {
            let Some(from) = top(module).and_then(|name| names.binary_search(&name).ok()) else {
                continue;
            };
            let to = module
                .uses
                .keys()
                .filter_map(|&to| names.binary_search(&top(&self.modules[to])?).ok());
            edges[from].extend(to.filter(|&to| to != from));
        }
        (names, edges.into_iter().map(|to| to.into_iter().collect()).collect())
    }

    /// One finding for each cycle between top-level modules, and between files.
    pub(super) fn cycles(&self, folder: &str) -> Vec<String> {
        let (names, edges) = self.top_level_edges();
        let tops = cycles(&edges).into_iter().map(|cycle| {
            let names: Vec<&str> = cycle.iter().map(|&at| names[at]).collect();
            format!("{folder}: modules depend in a cycle: {}", names.join(" -> "))
        });
        // A module may use the files below it, and these may use it: it is what they have in common.
        let edges = |module: &Module| {
            let uses = module.uses.keys().copied();
            let others = uses.filter(|&to| !self.modules[to].path.starts_with(&module.path));
            others.filter(|&to| self.modules[to].file != DISPATCH).collect()
        };
        let edges: Vec<Vec<usize>> = self.modules.iter().map(edges).collect();
        let files = cycles(&edges).into_iter().map(|cycle| {
            let step = |pair: &[usize]| {
                let module = &self.modules[pair[0]];
                format!(
                    "\n    {}:{} uses {}",
                    module.file, module.uses[&pair[1]], self.modules[pair[1]].file
                )
            };
            format!(
                "{folder}: files depend in a cycle:{}",
                cycle.windows(2).map(step).collect::<String>()
            )
        });
        tops.chain(files).collect()
    }
}

fn top(module: &Module) -> Option<&str> {
    module.path.first().map(String::as_str)
}

/// The module that defines what `path` names, imports and re-exports followed.
fn resolve(
    path: &[String],
    files: &[(ItemPath, &SourceFile)],
    index: &HashMap<ItemPath, usize>,
    depth: usize,
) -> Option<usize> {
    let known = (0..=path.len()).rev().find(|&length| index.contains_key(&path[..length]))?;
    let at = index[&path[..known]];
    let Some(name) = path.get(known) else { return Some(at) };
    if let Some(target) = files[at].1.imports.get(name).filter(|_| depth < 8) {
        let target = [&target[..], &path[known + 1..]].concat();
        return resolve(&target, files, index, depth + 1);
    }
    Some(at)
}

/// For each node the length of the longest way down from it; nodes of a cycle count as the level where it is met.
pub(super) fn levels(edges: &[Vec<usize>]) -> Vec<usize> {
    fn level(at: usize, edges: &[Vec<usize>], known: &mut [Option<usize>]) -> usize {
        if let Some(level) = known[at] {
            return level;
        }
        known[at] = Some(0);
        let below = edges[at].iter().map(|&to| level(to, edges, known) + 1).max().unwrap_or(0);
        known[at] = Some(below);
        below
    }
    let mut known = vec![None; edges.len()];
    (0..edges.len()).map(|at| level(at, edges, &mut known)).collect()
}

/// A shortest cycle through each node that is in one, as long as its nodes are not in a cycle listed before. The first
/// node of a cycle is repeated at its end.
pub(super) fn cycles(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut found: Vec<Vec<usize>> = Vec::new();
    for start in 0..edges.len() {
        if found.iter().any(|cycle| cycle.contains(&start)) {
            continue;
        }
        let mut came_from = HashMap::new();
        let mut queue = VecDeque::from([start]);
        while let Some(at) = queue.pop_front() {
            for &to in &edges[at] {
                came_from.entry(to).or_insert_with(|| {
                    queue.push_back(to);
                    at
                });
            }
        }
        if came_from.contains_key(&start) {
            let mut cycle = vec![start];
            let mut at = came_from[&start];
            while at != start {
                cycle.push(at);
                at = came_from[&at];
            }
            cycle.push(start);
            cycle.reverse();
            found.push(cycle);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(files: &[(&str, &str)]) -> Graph {
        let files = files
            .iter()
            .map(|(path, text)| SourceFile::parse(format!("crates/x/src/{path}"), text).unwrap());
        Graph::new(&files.collect::<Vec<_>>(), "crates/x/src/")
    }

    fn uses(files: &[(&str, &str)], module: &str) -> Vec<String> {
        let graph = graph(files);
        let at = graph.modules.iter().position(|m| m.path.join("::") == module).unwrap();
        graph.modules[at].uses.keys().map(|&to| graph.modules[to].path.join("::")).collect()
    }

    #[test]
    fn every_form_of_path_is_found() {
        let texts = [
            "use crate::b::Item;",
            "use crate::{b::{Item, Other}, b::x};",
            "use super::b;",
            "//! Doc.\nuse super::b;",
            "#[cfg(unix)]\nuse super::b;",
            "use super::b::*;",
            "use super::{b::Item as Renamed};",
            "fn f() -> Vec<crate::b::Item> { vec![] }",
            "fn f() { call(|| { super::b::item() }) }",
            "use crate::Item;",
            "mod inner { use super::super::b::Item; }",
        ];
        for text in texts {
            let files =
                [("lib.rs", "pub use b::Item; mod a; mod b;"), ("a.rs", text), ("b.rs", "")];
            assert_eq!(uses(&files, "a"), ["b"], "{text}");
        }
    }

    #[test]
    fn comments_strings_and_tests_are_no_uses() {
        let text = "//! [x](crate::b)\n/* crate::b::f() */ fn f() { g(\"crate::b::g()\") }\n\
                    #[cfg(test)]\nmod tests {\n    use crate::b;\n}\n";
        let files =
            [("lib.rs", "#[cfg(test)] mod b;"), ("a.rs", text), ("b.rs", "use crate::a::f;")];
        assert!(uses(&files, "a").is_empty());
        assert_eq!(graph(&files).modules.len(), 2);
        assert_eq!(SourceFile::parse("a.rs".into(), text).unwrap().lines, 2);
    }

    #[test]
    fn parent_modules_pass_names_on() {
        let files = [
            ("lib.rs", ""),
            ("a/mod.rs", "mod one; mod two; pub(crate) use one::One; use crate::b::B;"),
            ("a/one.rs", ""),
            ("a/two.rs", "use super::{One, B};"),
            ("b.rs", ""),
        ];
        assert_eq!(uses(&files, "a::two"), ["a::one", "b"]);
        assert_eq!(uses(&files, "a"), ["b"]);
        assert_eq!(graph(&files).top_level(), ["b", "a"]);
    }

    #[test]
    fn cycles_are_found_with_their_lines() {
        let files = [
            ("lib.rs", ""),
            ("a/mod.rs", "\nuse crate::b::B;"),
            ("a/one.rs", ""),
            ("b.rs", "use crate::a::one::One;"),
            ("c.rs", "use crate::d::D;"),
            ("d.rs", "\nuse crate::c::C;"),
        ];
        assert_eq!(
            graph(&files).cycles("crates/x"),
            [
                "crates/x: modules depend in a cycle: a -> b -> a",
                "crates/x: modules depend in a cycle: c -> d -> c",
                "crates/x: files depend in a cycle:\n    crates/x/src/c.rs:1 uses crates/x/src/d.rs\n    \
                 crates/x/src/d.rs:2 uses crates/x/src/c.rs",
            ]
        );
    }
}
