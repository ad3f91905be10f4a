//! `w3lib.url.canonicalize_url` of w3lib 2.5.0 with its default arguments, byte for byte.
//!
//! Parameters are sorted and escaped again, escapes in the path are in uppercase, dot segments are
//! resolved, the host is in lowercase and ASCII, the fragment is removed.

use std::net::Ipv6Addr;

use super::escape::{ByteSet, escape_at, push_escape, quote, unquote, unreserved_and};
use super::idna2003;
use super::url_split::{UrlParts, is_special, normalized, parse_ipv6, strip};

const USERINFO: ByteSet = unreserved_and(b"!$&'()*+,");
/// Of a path as it is read.
const PATH: ByteSet = unreserved_and(b":/?@!$&'()*+,;=%");
const QUERY: ByteSet = PATH;
const SPECIAL_QUERY: ByteSet = unreserved_and(b":/?@!$&()*+,;=%");
/// Of a path after its escapes have been replaced.
const UNQUOTED_PATH: ByteSet = unreserved_and(b":/?[]@!$&'()*+,;=|%");
const PARAMETER: ByteSet = unreserved_and(b"");

/// Schemes whose URLs have `//` also without a host: Python's `uses_netloc`.
const USES_NETLOC: &[&str] = &[
    "ftp", "http", "gopher", "nntp", "telnet", "imap", "wais", "file", "mms", "https", "shttp",
    "snews", "prospero", "rtsp", "rtsps", "rtspu", "rsync", "svn", "svn+ssh", "sftp", "nfs", "git",
    "git+ssh", "ws", "wss",
];

/// Schemes whose last path segment may have parameters after a `;`: Python's `uses_params`.
const USES_PARAMS: &[&str] = &[
    "", "ftp", "hdl", "prospero", "http", "imap", "https", "shttp", "rtsp", "rtsps", "sip", "sips",
    "mms", "sftp", "tel",
];

/// Returns the canonical URL; `None` if w3lib raises an exception.
pub(super) fn canonicalize(key: &[u8]) -> Option<Vec<u8>> {
    let url = UrlParts::of(&strip(&decoded(key)))?;
    let netloc = netloc(&url)?;
    let mut path = Vec::new();
    quote(url.path.as_bytes(), &PATH, &mut path);
    let mut query = Vec::new();
    let safe = if is_special(&url.scheme) { &SPECIAL_QUERY } else { &QUERY };
    quote(url.query.as_bytes(), safe, &mut query);
    let (path, params) = split_params(&url.scheme, &path);
    let path = match path {
        [] => b"/".to_vec(),
        path => resolved(requoted(path)),
    };
    Some(joined(&url.scheme, &netloc, &path, params, &sorted(&query)))
}

/// Returns the text; bytes that are not UTF-8 are escaped.
fn decoded(key: &[u8]) -> String {
    let mut text = String::with_capacity(key.len());
    for chunk in key.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

/// Returns user, host and port.
fn netloc(url: &UrlParts) -> Option<String> {
    let mut netloc = Vec::new();
    let quote_unquoted = |text: &str, to: &mut Vec<u8>| {
        let mut plain = Vec::new();
        unquote(text.as_bytes(), &mut plain);
        quote(&plain, &USERINFO, to);
    };
    if let Some(name) = &url.username {
        quote_unquoted(name, &mut netloc);
        if let Some(password) = &url.password {
            netloc.push(b':');
            quote_unquoted(password, &mut netloc);
        }
        netloc.push(b'@');
    }
    let mut host = match &url.hostname {
        // An IPv6 address; its zone must be ASCII.
        name if name.contains(':') => name.is_ascii().then(|| format!("[{name}]"))?,
        name if name.is_ascii() => name.clone(),
        name => idna2003::to_ascii(&normalized(name).1).unwrap_or_else(|| name.clone()),
    };
    if let Some(port) = url.port {
        host.push_str(&format!(":{port}"));
    }
    let host = host.to_lowercase();
    let host = host.strip_suffix(':').unwrap_or(&host);
    Some(String::from_utf8(netloc).ok()? + &short_ipv6(host))
}

/// Returns a host whose IPv6 address is as short as RFC 5952 says, without dots.
fn short_ipv6(host: &str) -> String {
    let bracketed = host.split_once('[').and_then(|(before, rest)| {
        let (inside, after) = rest.split_once(']')?;
        let (address, zone) = parse_ipv6(inside)?;
        Some(format!("{before}[{}{zone}]{after}", ipv6_text(address)))
    });
    bracketed.unwrap_or_else(|| host.to_owned())
}

/// Formats an address with hexadecimal groups only. The longest run of zero groups, the first of
/// equal ones, becomes `::` if it has two groups or more.
fn ipv6_text(address: Ipv6Addr) -> String {
    let groups = address.segments();
    let (mut run, mut best) = (0..0, 0..0);
    for (at, group) in groups.into_iter().enumerate() {
        run = if group == 0 { run.start..at + 1 } else { at + 1..at + 1 };
        if run.len() > best.len() {
            best = run.clone();
        }
    }
    let hex = |groups: &[u16]| {
        groups.iter().map(|group| format!("{group:x}")).collect::<Vec<_>>().join(":")
    };
    match best.len() {
        0 | 1 => hex(&groups),
        _ => format!("{}::{}", hex(&groups[..best.start]), hex(&groups[best.end..])),
    }
}

/// Splits the parameters of the last segment from the path.
fn split_params<'a>(scheme: &str, path: &'a [u8]) -> (&'a [u8], &'a [u8]) {
    let last = memchr::memrchr(b'/', path).map_or(0, |slash| slash + 1);
    match memchr::memchr(b';', &path[last..]) {
        Some(at) if USES_PARAMS.contains(&scheme) => (&path[..last + at], &path[last + at + 1..]),
        _ => (path, b""),
    }
}

/// Returns the path with its escapes replaced where that does not change its parts, and in uppercase
/// elsewhere.
fn requoted(path: &[u8]) -> Vec<u8> {
    let mut quoted = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some(at) = memchr::memchr(b'%', rest) {
        quote(&rest[..at], &UNQUOTED_PATH, &mut quoted);
        let escaped = escape_at(&rest[at..]);
        match escaped {
            Some(byte @ (b'%' | b'/' | b';' | b'?')) => push_escape(byte, &mut quoted),
            Some(byte) => quote(&[byte], &UNQUOTED_PATH, &mut quoted),
            None => quoted.push(b'%'),
        }
        rest = &rest[at + if escaped.is_some() { 3 } else { 1 }..];
    }
    quote(rest, &UNQUOTED_PATH, &mut quoted);
    quoted
}

/// Resolves the dot segments of a path that begins with a slash.
fn resolved(path: Vec<u8>) -> Vec<u8> {
    if path.first() != Some(&b'/') || memchr::memmem::find(&path, b"/.").is_none() {
        return path;
    }
    let mut segments: Vec<&[u8]> = Vec::new();
    let mut all = path[1..].split(|byte| *byte == b'/').peekable();
    while let Some(segment) = all.next() {
        let is_last = all.peek().is_none();
        match segment {
            b".." => drop(segments.pop()),
            b"." => {}
            segment => segments.push(segment),
        }
        if is_last && matches!(segment, b"." | b"..") {
            segments.push(b"");
        }
    }
    [b"/", &segments.join(&b'/')[..]].concat()
}

/// Returns the query with its parameters sorted by name and value, and escaped again.
fn sorted(query: &[u8]) -> Vec<u8> {
    let plain = |text: &[u8]| {
        let mut plain = Vec::with_capacity(text.len());
        for (number, word) in text.split(|byte| *byte == b'+').enumerate() {
            if number > 0 {
                plain.push(b' ');
            }
            unquote(word, &mut plain);
        }
        plain
    };
    let parameters = query.split(|byte| *byte == b'&').filter(|text| !text.is_empty());
    let mut parameters: Vec<_> = parameters
        .map(|text| {
            let end = memchr::memchr(b'=', text).unwrap_or(text.len());
            (plain(&text[..end]), plain(text.get(end + 1..).unwrap_or(b"")))
        })
        .collect();
    parameters.sort();
    let mut sorted = Vec::with_capacity(query.len());
    for (name, value) in &parameters {
        if !sorted.is_empty() {
            sorted.push(b'&');
        }
        quote_plus(name, &mut sorted);
        sorted.push(b'=');
        quote_plus(value, &mut sorted);
    }
    sorted
}

fn quote_plus(bytes: &[u8], to: &mut Vec<u8>) {
    for (number, word) in bytes.split(|byte| *byte == b' ').enumerate() {
        if number > 0 {
            to.push(b'+');
        }
        quote(word, &PARAMETER, to);
    }
}

/// Joins the parts as Python's `urlunparse` does.
fn joined(scheme: &str, netloc: &str, path: &[u8], params: &[u8], query: &[u8]) -> Vec<u8> {
    let mut url = path.to_vec();
    if !params.is_empty() {
        url.push(b';');
        url.extend_from_slice(params);
    }
    let has_slashes =
        url.starts_with(b"//") || (USES_NETLOC.contains(&scheme) && url.starts_with(b"/"));
    let mut text = Vec::with_capacity(scheme.len() + netloc.len() + url.len() + query.len() + 4);
    if !scheme.is_empty() {
        text.extend_from_slice(scheme.as_bytes());
        text.push(b':');
    }
    if !netloc.is_empty() {
        text.extend_from_slice(b"//");
        text.extend_from_slice(netloc.as_bytes());
        if !url.starts_with(b"/") {
            text.push(b'/');
        }
    } else if has_slashes {
        text.extend_from_slice(b"//");
    }
    text.extend_from_slice(&url);
    if !query.is_empty() {
        text.push(b'?');
        text.extend_from_slice(query);
    }
    text
}
