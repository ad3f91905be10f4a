//! docs/reference/errors.md has every message of `wording.txt`, every kind of the libraries' errors, and every error
//! reply of the server module.

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

#[test]
fn page_has_every_message_of_the_program() {
    let messages =
        include_str!("wording.txt").lines().filter_map(|line| line.strip_prefix("petal: "));
    let (mut all, page) = (0, section("Messages of the program"));
    for message in messages {
        let message = message.replace('|', "\\|");
        assert!(
            page.contains(&format!("`{message}`")) || page.contains(&format!("`` {message} ``")),
            "docs/reference/errors.md does not have\n{message}"
        );
        all += 1;
    }
    assert!(all > 50, "{all}");
}

/// Returns the names of the kinds in the source of an error type.
fn kinds(source: &str) -> Vec<&str> {
    let body = source.split_once("pub enum ErrorKind {\n").unwrap().1;
    let body = body.split_once("\n}\n").unwrap().0;
    let indented = body.lines().filter_map(|line| line.strip_prefix("    "));
    indented
        .filter(|line| line.starts_with(char::is_uppercase))
        .map(|line| line.split([' ', '(', ',']).next().unwrap())
        .collect()
}

#[test]
fn page_has_every_kind_of_the_libraries_errors() {
    for (library, source, at_least) in [
        ("petal-filters", include_str!("../../core/src/error.rs"), 15),
        ("petal-lines", include_str!("../../lines/src/error/mod.rs"), 10),
        ("petal-interop", include_str!("../../interop/src/error.rs"), 17),
    ] {
        let page = section(&format!("Library `{library}`"));
        let kinds = kinds(source);
        assert!(kinds.len() >= at_least, "{library}: {kinds:?}");
        for kind in &kinds {
            let row = format!("\n| `{kind}` | ");
            assert!(page.contains(&row), "docs/reference/errors.md: {library}: no {kind}");
        }
        let rows = page.matches("\n| `").count() - 1;
        assert_eq!(
            rows,
            kinds.len(),
            "{library}: docs/reference/errors.md has a kind that is gone"
        );
    }
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

#[test]
fn page_has_every_error_reply_of_the_server() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../module/src");
    let page = section("Server");
    let mut all = 0;
    for file in rust_files(&source) {
        for reply in replies(&fs::read_to_string(&file).unwrap()) {
            assert!(
                reply == "ERR " || page.contains(&format!("`{reply}`")),
                "docs/reference/errors.md does not have the reply of {}\n{reply}",
                file.display()
            );
            all += 1;
        }
    }
    assert!(all > 80, "{all}");
}
