//! URLs of the scheme `file`, as the URL standard (WHATWG) parses and writes them.
//!
//! The crate `url` loses the host of `file://host/C:/x`, and slashes of empty parts of a path. The
//! states are those of the standard's parser without a base URL.

use url::Host;

use super::escape::push_escape;

/// A parsed URL of the scheme `file`.
pub(super) struct FileUrl {
    /// The host as the standard writes it; empty for `localhost` and none.
    pub(super) host: String,
    path: Vec<Vec<u8>>,
    /// The query with its `?` and the fragment with its `#`.
    rest: Vec<u8>,
}

impl FileUrl {
    /// Parses what follows `file:`, without tabs and newlines; `None` if the host is invalid.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (text, fragment) = match text.split_once('#') {
            Some((text, fragment)) => (text, Some(fragment)),
            None => (text, None),
        };
        let (text, query) = match text.split_once('?') {
            Some((text, query)) => (text, Some(query)),
            None => (text, None),
        };
        let (host, path) = match text.strip_prefix(is_slash).and_then(|t| t.strip_prefix(is_slash))
        {
            Some(after) => {
                let (host, path) = after.split_at(after.find(is_slash).unwrap_or(after.len()));
                // Not a host, but the drive of a path.
                if is_drive(host.as_bytes()) { ("", after) } else { (host, path) }
            }
            None => ("", text),
        };
        let host = match host {
            "" => String::new(),
            host => match Host::parse(host).ok()?.to_string() {
                host if host == "localhost" => String::new(),
                host => host,
            },
        };
        let mut rest = Vec::new();
        for (sign, text, escaped) in [(b'?', query, &b"\"<>'"[..]), (b'#', fragment, b"\"<>`")] {
            if let Some(text) = text {
                rest.push(sign);
                escape(text, escaped, &mut rest);
            }
        }
        Some(Self { host, path: path_of(path), rest })
    }

    /// Returns the URL as the standard writes it.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        let mut url = b"file://".to_vec();
        url.extend_from_slice(self.host.as_bytes());
        for part in self.path {
            url.push(b'/');
            url.extend_from_slice(&part);
        }
        url.extend_from_slice(&self.rest);
        url
    }
}

fn is_slash(c: char) -> bool {
    c == '/' || c == '\\'
}

/// Returns the parts of a path.
fn path_of(path: &str) -> Vec<Vec<u8>> {
    let path = path.strip_prefix(is_slash).unwrap_or(path);
    let mut parts: Vec<Vec<u8>> = Vec::new();
    let mut texts = path.split(is_slash).peekable();
    while let Some(text) = texts.next() {
        let is_last = texts.peek().is_none();
        let mut part = Vec::new();
        escape(text, b"\"#<>?^`{}", &mut part);
        match dots(&part) {
            Some(count) => {
                // A drive stays.
                let is_at_drive = matches!(&parts[..], [drive] if is_normal_drive(drive));
                if count == 2 && !is_at_drive {
                    parts.pop();
                }
                if is_last {
                    parts.push(Vec::new());
                }
            }
            None => {
                if parts.is_empty() && is_drive(&part) {
                    part[1] = b':';
                }
                parts.push(part);
            }
        }
    }
    parts
}

/// Returns the number of dots if the part consists of one or two, which may be escaped.
fn dots(mut part: &[u8]) -> Option<usize> {
    let mut count = 0;
    while !part.is_empty() && count < 2 {
        part = match part {
            [b'.', rest @ ..] | [b'%', b'2', b'e' | b'E', rest @ ..] => rest,
            _ => return None,
        };
        count += 1;
    }
    (count > 0 && part.is_empty()).then_some(count)
}

fn is_drive(part: &[u8]) -> bool {
    matches!(part, [letter, b':' | b'|'] if letter.is_ascii_alphabetic())
}

fn is_normal_drive(part: &[u8]) -> bool {
    is_drive(part) && part[1] == b':'
}

/// Appends a text; control codes, spaces, bytes that are not ASCII and the given ones are escaped.
fn escape(text: &str, escaped: &[u8], to: &mut Vec<u8>) {
    for byte in text.bytes() {
        match byte {
            b'!'..=b'~' if !escaped.contains(&byte) => to.push(byte),
            _ => push_escape(byte, to),
        }
    }
}
