//! Arrows between the rooms (top-level modules) of a crate, from its `use crate::...` and `crate::x::...` paths.
//!
//! A name re-exported by `lib.rs` counts as the room it comes from, one defined there as the room [`DOOR`]. Unit tests
//! may use every room.

use std::collections::HashMap;

use super::rules::{DOOR, HOUSES, House};
use super::source::{SourceFile, is_word};

/// Every use of a room that is not drawn, and every room that is in no table.
pub(super) fn check(sources: &[SourceFile]) -> Vec<String> {
    HOUSES.iter().flat_map(|house| check_house(house, sources)).collect()
}

/// The top-level module a file belongs to; `None` for the doors (`lib.rs`, `main.rs`) and for other crates.
pub(super) fn room_of<'a>(src: &str, path: &'a str) -> Option<&'a str> {
    let inside = path.strip_prefix(src)?;
    let room = inside.split('/').next()?;
    let room = room.strip_suffix(".rs").unwrap_or(room);
    (!matches!(room, "lib" | "main" | "bin" | "tests")).then_some(room)
}

fn check_house(house: &House, sources: &[SourceFile]) -> Vec<String> {
    let exports = sources
        .iter()
        .find(|file| file.path == format!("{}lib.rs", house.src))
        .map(|file| re_exports(&file.code))
        .unwrap_or_default();
    let mut findings = Vec::new();
    for file in sources.iter().filter(|file| file.is_src()) {
        let Some(room) = room_of(house.src, &file.path) else {
            continue;
        };
        let Some(rule) = house.rooms.iter().find(|rule| rule.name == room) else {
            findings
                .push(format!("{}: room `{room}` is not in the table of {}", file.path, house.src));
            continue;
        };
        for (offset, name) in uses(&file.code, depth(house.src, &file.path)) {
            let to = exports.get(name.as_str()).unwrap_or(&name);
            let allowed = to == room
                || house.everyone.contains(&to.as_str())
                || rule.uses.contains(&to.as_str());
            if !allowed {
                findings.push(format!(
                    "{}:{}: `{room}` uses `{to}`: no such arrow",
                    file.path,
                    file.line_of(offset)
                ));
            }
        }
    }
    findings
}

/// How many modules deep a file is: 1 for `rate.rs` and `store/mod.rs`, 2 for `store/owned.rs`.
fn depth(src: &str, path: &str) -> usize {
    let parts = path.strip_prefix(src).unwrap_or(path).split('/');
    parts.filter(|part| *part != "mod.rs").count()
}

/// The names that `lib.rs` re-exports or defines, each with its room.
fn re_exports(code: &str) -> HashMap<String, String> {
    let mut exports = HashMap::new();
    for line in code.lines() {
        let line = line.trim_start_matches("pub ").trim_start_matches("pub(crate) ");
        let kinds = ["struct ", "enum ", "trait ", "type ", "const ", "fn "];
        if let Some(rest) = kinds.iter().find_map(|kind| line.strip_prefix(kind)) {
            exports.insert(first_word(rest), DOOR.to_owned());
        }
    }
    for statement in code.split(';') {
        let Some(at) = statement.rfind("pub use ") else {
            continue;
        };
        let path = statement[at + "pub use ".len()..]
            .trim()
            .trim_start_matches("crate::")
            .trim_start_matches("self::");
        let mut words = path
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .filter(|word| !word.is_empty());
        let Some(room) = words.next() else { continue };
        for word in words {
            exports.insert(word.to_owned(), room.to_owned());
        }
    }
    exports
}

/// Every first name after the crate root in a file `depth` modules deep, with its offset.
fn uses(code: &str, depth: usize) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let up = "super::".repeat(depth);
    for lead in ["crate::", up.as_str()] {
        for (at, _) in code.match_indices(lead) {
            // `xcrate::`, and a longer `super::super::` than this file's way to the root, are other things.
            let before = code[..at].bytes().next_back();
            if before.is_some_and(|byte| is_word(byte) || byte == b':') {
                continue;
            }
            let rest = &code[at + lead.len()..];
            if let Some(group) = rest.strip_prefix('{') {
                found.extend(group_heads(group).into_iter().map(|name| (at, name)));
            } else {
                found.push((at, first_word(rest)));
            }
        }
    }
    found.retain(|(_, name)| !name.is_empty());
    found
}

fn first_word(text: &str) -> String {
    text.trim_start().bytes().take_while(|&byte| is_word(byte)).map(char::from).collect()
}

/// The first names of `a::b, c::{d, e}, f}`.
fn group_heads(group: &str) -> Vec<String> {
    let mut heads = Vec::new();
    let mut depth = 1;
    let mut start = 0;
    for (at, byte) in group.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 || (byte == b',' && depth == 1) {
            heads.push(first_word(&group[start..at]));
            start = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    heads
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<_> =
            files.iter().map(|(path, text)| SourceFile::new((*path).into(), text)).collect();
        check(&files)
    }

    #[test]
    fn allowed_arrows_pass() {
        let none = findings(&[
            (
                "crates/core/src/lib.rs",
                "mod rate; pub use error::Error; pub use filter::{BloomFilter, Builder};",
            ),
            ("crates/core/src/shape.rs", "use crate::rate::optimal_k;\nuse crate::Error;"),
            (
                "crates/core/src/filter/view.rs",
                "use crate::{kernel::Kernel, shape::{Shape, Kind}};\nuse super::Builder;",
            ),
        ]);
        assert!(none.is_empty(), "{none:?}");
    }

    #[test]
    fn forbidden_arrows_are_found() {
        for (path, text) in [
            ("crates/core/src/rate.rs", "use crate::shape::Shape;"),
            ("crates/core/src/rate.rs", "use super::shape::Shape;"),
            ("crates/core/src/kernel/portable.rs", "use super::super::filter::View;"),
            (
                "crates/core/src/kernel/portable.rs",
                "use crate::{\n    store::Line,\n    filter::View,\n};",
            ),
            ("crates/core/src/format/read.rs", "fn f() { crate::kernel::pick() }"),
        ] {
            assert_eq!(findings(&[(path, text)]).len(), 1, "{path}: {text}");
        }
    }

    #[test]
    fn a_re_export_is_the_room_it_comes_from() {
        let found = findings(&[
            ("crates/core/src/lib.rs", "pub use crate::filter::{\n    BloomFilter,\n};"),
            ("crates/core/src/format/write.rs", "\nuse crate::BloomFilter;"),
        ]);
        assert_eq!(
            found,
            ["crates/core/src/format/write.rs:2: `format` uses `filter`: no such arrow"]
        );
    }

    #[test]
    fn what_the_door_defines_is_the_doors() {
        let found = findings(&[
            ("crates/lines/src/lib.rs", "pub struct Settings<'a> {\n}"),
            ("crates/lines/src/filters.rs", "use crate::Settings;"),
            ("crates/lines/src/spill.rs", "use crate::Settings;"),
        ]);
        assert_eq!(
            found,
            [
                "crates/lines/src/filters.rs:1: `filters` uses `lib`: no such arrow",
                "crates/lines/src/spill.rs:1: `spill` uses `lib`: no such arrow"
            ]
        );
    }

    #[test]
    fn tests_and_comments_are_free_but_new_rooms_are_not() {
        assert!(
            findings(&[(
                "crates/core/src/rate.rs",
                "//! [x](crate::any)\n#[cfg(test)]\nmod tests {\n use crate::any;\n}\n"
            )])
            .is_empty()
        );
        assert_eq!(findings(&[("crates/core/src/attic.rs", "")]).len(), 1);
    }

    #[test]
    fn every_arrow_points_down() {
        for house in HOUSES {
            for (at, room) in house.rooms.iter().enumerate() {
                for to in room.uses {
                    let lower =
                        *to == DOOR || house.rooms[..at].iter().any(|other| other.name == *to);
                    assert!(
                        lower,
                        "{}: `{}` uses `{to}`, which is not below it",
                        house.src, room.name
                    );
                }
            }
        }
    }
}
