//! The messages and replies that docs/reference/errors.md explains exist.

#![allow(clippy::unwrap_used, reason = "the helpers of a test may panic as the test may")]

use std::fs;
use std::path::{Path, PathBuf};

const PAGE: &str = include_str!("../../../docs/reference/errors.md");

/// Returns the part of the page under a heading of level 2.
fn section(heading: &str) -> &'static str {
    let start = PAGE.find(&format!("\n## {heading}\n")).unwrap_or_else(|| panic!("no {heading}"));
    let text = &PAGE[start + 4..];
    &text[..text.find("\n## ").unwrap_or(text.len())]
}

/// Returns the Rust files in a directory and its directories.
fn rust_files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { rust_files(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}

/// Returns the string literal at the start of `source`, on one line, with `…` for arguments.
fn literal(source: &str) -> Option<String> {
    let source = source.strip_prefix('"')?;
    let mut text = String::new();
    let mut chars = source.chars();
    loop {
        match chars.next()? {
            '"' => return Some(text),
            // Only line breaks are escaped in replies.
            '\\' => chars = chars.as_str().trim_start().chars(),
            '{' => {
                text.push('…');
                chars.by_ref().find(|&c| c == '}')?;
            }
            other => text.push(other),
        }
    }
}

/// Returns the error replies in the source of the server module.
fn replies(source: &str) -> Vec<String> {
    let code = source.split("#[cfg(test)]\nmod tests").next().unwrap();
    let starts = ["Static(", "KeyExists(", "Message(format!(", "parse_error: ", "range_error: "];
    let of_start = |start: &str| {
        code.match_indices(start)
            .filter_map(|(at, _)| literal(code[at + start.len()..].trim_start()))
            .collect::<Vec<_>>()
    };
    let with_code = code.match_indices("\"ERR ").filter_map(|(at, _)| literal(&code[at..]));
    starts.into_iter().flat_map(of_start).chain(with_code).collect()
}

/// Returns the code in the first cells of the tables in a section.
fn explained(section: &str) -> Vec<String> {
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    let cells = rows.filter_map(|row| row.split_once("` | ")).map(|(cell, _)| cell);
    cells.flat_map(|cell| cell.split("`<br>`")).map(|text| text.replace("\\|", "|")).collect()
}

/// Returns a source with each string literal on one line, and with `…` for the arguments of a text.
fn texts(source: &str) -> String {
    let mut text = String::new();
    for (number, part) in source.split("\\\n").enumerate() {
        text.push_str(if number == 0 { part } else { part.trim_start() });
    }
    let mut parts = text.split('{');
    let mut found = parts.next().unwrap().to_owned();
    for part in parts {
        match part.split_once('}').filter(|(argument, _)| !argument.contains(char::is_whitespace)) {
            Some((_, rest)) => found.extend(["…", rest]),
            None => found.extend(["{", part]),
        }
    }
    found
}

#[test]
fn messages_on_the_page_exist() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folders = ["core/src", "interop/src", "lines/src", "cli/src", "cli/tests/objects"];
    let files = folders.iter().flat_map(|folder| rust_files(&crates.join(folder)));
    let mut known: Vec<String> =
        files.map(|file| texts(&fs::read_to_string(file).unwrap())).collect();
    known.push(include_str!("wording.txt").to_owned());
    let messages = explained(section("Messages of the program"));
    assert!(messages.len() >= 15, "{messages:?}");
    for message in messages {
        for part in message.split('…').map(str::trim).filter(|part| !part.is_empty()) {
            let exists = known.iter().any(|text| text.contains(part));
            assert!(exists, "docs/reference/errors.md: no message has the text\n{part}");
        }
    }
}

#[test]
fn replies_on_the_page_exist() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../module/src");
    let files = rust_files(&source);
    let known: Vec<_> =
        files.iter().flat_map(|file| replies(&fs::read_to_string(file).unwrap())).collect();
    assert!(known.len() > 80, "{known:?}");
    let explained = explained(section("Server"));
    assert!(explained.len() > 15, "{explained:?}");
    for reply in explained {
        // The text of this one is the server's.
        let exists = reply == "WRONGTYPE …" || known.contains(&reply);
        assert!(exists, "docs/reference/errors.md: there is no reply\n{reply}");
    }
}
