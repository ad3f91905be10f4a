//! Rules on files: unsafe code only in its rooms, lengths, and every room described in ARCHITECTURE.md.

use std::collections::BTreeSet;

use super::modules::room_of;
use super::rules::{HOUSES, LINES_MAX, LINES_NOTED, UNSAFE_ROOMS};
use super::source::{SourceFile, is_word};

/// Every `unsafe` outside the rooms for it, and every room with more of it than it may have.
pub(super) fn unsafe_rooms(sources: &[SourceFile]) -> Vec<String> {
    let mut findings = Vec::new();
    let mut counts = vec![0; UNSAFE_ROOMS.len()];
    for file in sources {
        let room = UNSAFE_ROOMS.iter().position(|room| file.path.starts_with(room.prefix));
        for (number, line) in file.numbered() {
            let times = words(line).filter(|word| *word == "unsafe").count();
            match room {
                Some(room) => counts[room] += times,
                None if times > 0 => {
                    findings.push(format!("{}:{number}: unsafe outside its rooms", file.path))
                }
                None => {}
            }
        }
    }
    for (room, count) in UNSAFE_ROOMS.iter().zip(counts) {
        if room.at_most.is_some_and(|most| count > most) {
            findings.push(format!(
                "{}: unsafe {count} times; the room is for {}",
                room.prefix, room.why
            ));
        }
    }
    findings
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !u8::try_from(c).is_ok_and(is_word)).filter(|word| !word.is_empty())
}

/// Files over the hard limit.
pub(super) fn lengths(sources: &[SourceFile]) -> Vec<String> {
    let over = sources.iter().filter(|file| file.is_src() && file.lines > LINES_MAX);
    over.map(|file| {
        format!("{}: {} lines without tests, the limit is {LINES_MAX}", file.path, file.lines)
    })
    .collect()
}

/// Files that still pass but should be split when they are next touched.
pub(super) fn long_files(sources: &[SourceFile]) -> Vec<String> {
    let long = sources
        .iter()
        .filter(|file| file.is_src() && (LINES_NOTED + 1..=LINES_MAX).contains(&file.lines));
    long.map(|file| {
        format!("{}: {} lines without tests, a file wants at most 400", file.path, file.lines)
    })
    .collect()
}

/// Crates and rooms that ARCHITECTURE.md does not name (in backquotes).
pub(super) fn rooms_described(sources: &[SourceFile], architecture: &str) -> Vec<String> {
    let mut names = BTreeSet::new();
    for file in sources.iter().filter(|file| file.is_src()) {
        if let Some(folder) = file.path.split("/src/").next() {
            names.insert(folder.to_owned());
        }
        for house in HOUSES {
            if let Some(room) = room_of(house.src, &file.path) {
                names.insert(room.to_owned());
            }
        }
    }
    let missing = names.iter().filter(|name| !architecture.contains(&format!("`{name}`")));
    missing.map(|name| format!("ARCHITECTURE.md: `{name}` is not described")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> SourceFile {
        SourceFile::new(path.into(), text)
    }

    #[test]
    fn unsafe_has_its_rooms() {
        let ok = [
            file("crates/core/src/store/owned.rs", "unsafe { a() }\nunsafe { b() }"),
            file("crates/cli/src/open.rs", "#[allow(unsafe_code)]\nfn f() { unsafe { map() } }"),
            file("crates/core/src/rate.rs", "// unsafe\nlet x = \"unsafe\"; let unsafe_code = 1;"),
        ];
        assert!(unsafe_rooms(&ok).is_empty());
        let bad = [
            file("crates/core/src/rate.rs", "\nunsafe { a() }"),
            file("crates/cli/src/open.rs", "unsafe { a() }"),
            file("crates/cli/src/main.rs", "unsafe { a() }"),
            file("crates/cli/src/plan.rs", "unsafe { a() }"),
            file("crates/cli/src/text.rs", "unsafe { a() }"),
        ];
        let found = unsafe_rooms(&bad);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("crates/core/src/rate.rs:2:"));
    }

    #[test]
    fn lengths_leave_tests_out() {
        let code = "fn a() {}\n".repeat(LINES_MAX);
        let with_tests = format!("{code}#[cfg(test)]\nmod tests {{\n{code}}}\n");
        assert!(lengths(&[file("crates/core/src/rate.rs", &with_tests)]).is_empty());
        assert_eq!(long_files(&[file("crates/core/src/rate.rs", &code)]).len(), 1);
        assert_eq!(lengths(&[file("crates/core/src/rate.rs", &format!("{code}\n\n"))]).len(), 1);
    }

    #[test]
    fn rooms_must_be_described() {
        let sources = [file("crates/core/src/rate.rs", ""), file("crates/core/src/lib.rs", "")];
        assert!(rooms_described(&sources, "`crates/core`: `rate`").is_empty());
        assert_eq!(rooms_described(&sources, "`crates/core`").len(), 1);
    }
}
