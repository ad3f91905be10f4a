//! A Rust file as `arch` reads it: only the code, without comments, text in quotes, and unit tests.

/// One file, ready to be asked.
pub(super) struct SourceFile {
    /// Path from the root of the repository, with `/`.
    pub(super) path: String,
    /// The code: as many lines as the file, but comments, strings and `#[cfg(test)] mod` blocks are blank.
    pub(super) code: String,
    /// Lines of the file outside `#[cfg(test)] mod` blocks, comments included.
    pub(super) lines: usize,
}

impl SourceFile {
    pub(super) fn new(path: String, text: &str) -> Self {
        let code = blank_quiet(text);
        let (code, lines) = blank_tests(&code);
        Self { path, code, lines }
    }

    /// Tests, benches and examples are free of the arrows that bind `src`.
    pub(super) fn is_src(&self) -> bool {
        self.path.contains("/src/")
            && !self.path.ends_with("/tests.rs")
            && !self.path.contains("/tests/")
    }

    /// The code with line numbers from 1.
    pub(super) fn numbered(&self) -> impl Iterator<Item = (usize, &str)> {
        self.code.lines().enumerate().map(|(at, line)| (at + 1, line))
    }

    /// The line (from 1) of a byte offset into the code.
    pub(super) fn line_of(&self, offset: usize) -> usize {
        self.code[..offset].matches('\n').count() + 1
    }
}

/// Letters that can be part of a name.
pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Replaces comments, strings and character literals by spaces; newlines stay.
fn blank_quiet(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'/' if bytes[at..].starts_with(b"//") => find(bytes, at, b"\n").unwrap_or(bytes.len()),
            b'/' if bytes[at..].starts_with(b"/*") => block_comment_end(bytes, at),
            b'"' => quote_end(bytes, at + 1),
            b'r' if at == 0 || !is_word(bytes[at - 1]) || bytes[at - 1] == b'b' => {
                match raw_string_end(bytes, at) {
                    Some(end) => end,
                    None => at,
                }
            }
            b'\'' => char_end(bytes, at),
            _ => at,
        };
        for byte in &mut out[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end.max(at + 1);
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn find(bytes: &[u8], from: usize, what: &[u8]) -> Option<usize> {
    bytes[from..].windows(what.len()).position(|window| window == what).map(|at| from + at)
}

fn block_comment_end(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0;
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    bytes.len()
}

fn quote_end(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The end of `r"..."`, `r#"..."#` and so on; `None` if no raw string starts here.
fn raw_string_end(bytes: &[u8], at: usize) -> Option<usize> {
    let hashes = bytes[at + 1..].iter().take_while(|&&byte| byte == b'#').count();
    if bytes.get(at + 1 + hashes) != Some(&b'"') {
        return None;
    }
    let mut close = vec![b'"'];
    close.resize(1 + hashes, b'#');
    find(bytes, at + 2 + hashes, &close).map(|end| end + close.len())
}

/// The end of a character literal; a lifetime is left alone.
fn char_end(bytes: &[u8], at: usize) -> usize {
    if bytes.get(at + 1) == Some(&b'\\') {
        return find(bytes, at + 3, b"'").map_or(bytes.len(), |end| end + 1);
    }
    let rest = String::from_utf8_lossy(&bytes[at + 1..bytes.len().min(at + 6)]).into_owned();
    match rest.chars().next().map(char::len_utf8) {
        Some(width) if bytes.get(at + 1 + width) == Some(&b'\'') => at + 2 + width,
        _ => at,
    }
}

/// Blanks every `#[cfg(test)] mod x { ... }`; returns the code and the number of lines that are left.
fn blank_tests(code: &str) -> (String, usize) {
    let mut out = String::with_capacity(code.len());
    let mut lines = 0;
    let mut all = code.lines().peekable();
    while let Some(line) = all.next() {
        let opens_tests =
            line.trim() == "#[cfg(test)]" && all.peek().is_some_and(|next| opens_module(next));
        if !opens_tests {
            out.push_str(line);
            out.push('\n');
            lines += 1;
            continue;
        }
        out.push('\n');
        let mut depth = 0;
        for line in all.by_ref() {
            out.push('\n');
            depth += line.matches('{').count();
            depth -= line.matches('}').count().min(depth);
            if depth == 0 {
                break;
            }
        }
    }
    (out, lines)
}

fn opens_module(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("mod ") || line.starts_with("pub(crate) mod ") || line.starts_with("pub mod ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_text_are_not_code() {
        let code = blank_quiet(
            "let a = \"crate::x \\\" y\"; // crate::y\n/* a /* b */ crate::z */ let c = 'x';",
        );
        assert!(!code.contains("crate"));
        assert!(code.contains("let a =") && code.contains("let c ="));
        assert_eq!(code.lines().count(), 2);
    }

    #[test]
    fn raw_strings_and_lifetimes() {
        let code = blank_quiet(
            "fn f<'a>(x: &'a str) { let r = r#\"unsafe \" x\"#; g('\\'', '\"', '\\n', b'\\''); unsafe {} }",
        );
        assert!(code.contains("'a>(x: &'a str)"));
        assert_eq!(code.matches("unsafe").count(), 1);
    }

    #[test]
    fn tests_are_not_counted() {
        let file = SourceFile::new(
            "crates/core/src/rate.rs".into(),
            "//! Rate.\nfn a() {}\n#[cfg(test)]\nmod tests {\n    use crate::any;\n    fn b() {}\n}\nfn c() {}\n",
        );
        assert_eq!(file.lines, 3);
        assert!(!file.code.contains("any") && file.code.contains("fn c"));
        assert_eq!(file.code.lines().count(), 8);
    }

    #[test]
    fn a_test_module_in_its_own_file_hides_nothing() {
        let file = SourceFile::new(
            "crates/x/src/a.rs".into(),
            "#[cfg(test)]\nmod tests;\nfn c() { unsafe {} }\n",
        );
        assert!(file.code.contains("unsafe"));
    }
}
