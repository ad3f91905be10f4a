//! `surt.surt` of surt 0.3.1 with its default arguments, byte for byte: the keys of web archives.
//!
//! One difference: for a host that begins with a digit, consists of numbers and dots and is not an
//! address, the original asks the name server. Such a host stays as it is here.

use super::escape::{ByteSet, escape_at, quote, unreserved_and};
use super::idna2003;
use super::surt_session::{without_path_session, without_query_session};
use super::url_split::{MAX_DIGITS, number};

/// Bytes that are not escaped.
const SAFE: ByteSet = unreserved_and(b"!\"$&'()*+,-./:;<=>?@[\\]^_`{|}~");

/// Returns the key; `None` if the original raises an exception.
pub(super) fn surt(key: &[u8]) -> Option<Vec<u8>> {
    if key.is_empty() {
        return Some(b"-".to_vec());
    }
    if key.starts_with(b"filedesc") {
        return Some(key.to_vec());
    }
    let url = with_scheme(key)?;
    let parts = Parts::of(&url)?;
    let host = host(parts.host.as_deref().unwrap_or_default())?;
    let host = Some(&host[..]).filter(|host| !host.is_empty());
    let mut surt = match host {
        Some(host) => reversed(&massaged(host, parts.scheme)),
        None => [parts.scheme, b":"].concat(),
    };
    if host.is_some() {
        let default = match parts.scheme {
            scheme if scheme.eq_ignore_ascii_case(b"http") => 80,
            scheme if scheme.eq_ignore_ascii_case(b"https") => 443,
            _ => 0,
        };
        // A port 0 counts as none.
        if parts.port != 0 && parts.port != default {
            surt.extend_from_slice(format!(":{}", parts.port).as_bytes());
        }
        surt.push(b')');
    }
    let path = path(&parts.path, host.is_some());
    let query = query(parts.query);
    surt.extend_from_slice(&path);
    if let Some(query) = query {
        if path.is_empty() {
            surt.push(b'/');
        }
        surt.push(b'?');
        surt.extend_from_slice(&query);
    }
    Some(surt)
}

/// Returns the URL without white space, with a scheme; `None` if it is empty.
fn with_scheme(key: &[u8]) -> Option<Vec<u8>> {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c);
    let start = key.iter().position(|byte| !is_space(byte))?;
    let end = key.iter().rposition(|byte| !is_space(byte))?;
    let mut url: Vec<u8> = key[start..=end].to_vec();
    url.retain(|byte| !matches!(byte, b'\n' | b'\r' | b'\t'));
    if scheme_length(&url).is_none() {
        url.splice(..0, *b"http://");
    }
    // Of several schemes in a row only the last one counts.
    let mut last = 0;
    while let Some(next) = http_length(&url[last..]) {
        if http_length(&url[last + next..]).is_none() {
            break;
        }
        last += next;
    }
    url.drain(..last);
    Some(url)
}

/// Returns the length of `http://` or `https://` at the start.
fn http_length(url: &[u8]) -> Option<usize> {
    [&b"http://"[..], b"https://"].iter().find(|scheme| url.starts_with(scheme)).map(|s| s.len())
}

/// Returns the length of the scheme, without its colon.
fn scheme_length(url: &[u8]) -> Option<usize> {
    let colon = memchr::memchr(b':', url)?;
    let is_scheme = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    let valid = url[0].is_ascii_alphabetic() && url[..colon].iter().all(is_scheme);
    valid.then_some(colon)
}

/// A URL in parts, as it is written.
struct Parts<'a> {
    scheme: &'a [u8],
    host: Option<Vec<u8>>,
    /// 0 if there is none.
    port: u16,
    path: Vec<u8>,
    query: &'a [u8],
}

impl<'a> Parts<'a> {
    /// Splits a URL with a scheme; `None` if its port is not a number up to 65535.
    fn of(url: &'a [u8]) -> Option<Self> {
        let (scheme, rest) = url.split_at(scheme_length(url)?);
        let rest = &rest[1..];
        let rest = &rest[..memchr::memchr(b'#', rest).unwrap_or(rest.len())];
        let (rest, query) = split_once(rest, b'?').unwrap_or((rest, b""));
        let (netloc, path) = match rest.strip_prefix(b"//") {
            Some(rest) => rest.split_at(memchr::memchr(b'/', rest).unwrap_or(rest.len())),
            None => (&b""[..], rest),
        };
        let end = netloc.iter().rposition(|byte| *byte != b':').map_or(0, |last| last + 1);
        let (host, port) = host_and_port(&netloc[..end]);
        let port = match std::str::from_utf8(port).ok()? {
            "" => 0,
            port if port.bytes().all(|byte| byte.is_ascii_digit()) => number(port)?,
            _ => return None,
        };
        let (mut host, mut path) = ((!host.is_empty()).then_some(host), path.to_vec());
        // `http:////host`
        if host.is_none() && scheme.starts_with(b"http") && !path.is_empty() {
            let start = path.iter().position(|byte| *byte != b'/').unwrap_or(path.len());
            let (name, rest) = split_once(&path[start..], b'/').unwrap_or((&path[start..], b""));
            let rest = [b"/", rest].concat();
            host = Some(name.to_vec());
            path = rest;
        }
        Some(Self { scheme, host, port, path, query })
    }
}

/// Returns the host of `user@host:port`, in lowercase and without brackets, and the port.
fn host_and_port(netloc: &[u8]) -> (Vec<u8>, &[u8]) {
    let host = memchr::memrchr(b'@', netloc).map_or(netloc, |at| &netloc[at + 1..]);
    let (host, port) = match split_once(host, b'[') {
        Some((_, bracketed)) => {
            let (host, rest) = split_once(bracketed, b']').unwrap_or((bracketed, b""));
            (host, split_once(rest, b':').map_or(&b""[..], |(_, port)| port))
        }
        None => split_once(host, b':').unwrap_or((host, b"")),
    };
    // The zone of an IPv6 address stays as it is.
    let zone = memchr::memchr(b'%', host).unwrap_or(host.len());
    let mut host = host.to_vec();
    host[..zone].make_ascii_lowercase();
    (host, port)
}

fn split_once(text: &[u8], byte: u8) -> Option<(&[u8], &[u8])> {
    let at = memchr::memchr(byte, text)?;
    Some((&text[..at], &text[at + 1..]))
}

/// Returns the host as Google's safe browsing writes it; `None` for a number that is too long.
fn host(host: &[u8]) -> Option<Vec<u8>> {
    let mut host = unescaped(host);
    if !host.is_ascii() {
        let text: String = host.utf8_chunks().map(|chunk| chunk.valid()).collect();
        if let Some(ascii) = idna2003::to_ascii(&text) {
            host = ascii.into_bytes();
        }
    }
    let host = single_dots(&host);
    if !host.is_empty() && host.iter().all(u8::is_ascii_digit) {
        if host.len() > MAX_DIGITS {
            return None;
        }
        // The lower four bytes.
        let value = host.iter().fold(0_u32, |value, digit| {
            value.wrapping_mul(10).wrapping_add(u32::from(digit - b'0'))
        });
        return Some(std::net::Ipv4Addr::from(value).to_string().into_bytes());
    }
    if let Some(address) = ipv4(&host) {
        return Some(address);
    }
    let mut escaped = Vec::new();
    quote(&host.to_ascii_lowercase(), &SAFE, &mut escaped);
    Some(escaped)
}

/// Replaces each pair of dots by one, once, and removes dots at both ends.
fn single_dots(host: &[u8]) -> Vec<u8> {
    let mut single = Vec::with_capacity(host.len());
    let mut at = 0;
    while at < host.len() {
        single.push(host[at]);
        at += if host[at..].starts_with(b"..") { 2 } else { 1 };
    }
    let start = single.iter().position(|byte| *byte != b'.').unwrap_or(single.len());
    let end = single.iter().rposition(|byte| *byte != b'.').map_or(start, |last| last + 1);
    single[start..end].to_vec()
}

/// Returns an address of two to four decimal or octal numbers, as `inet_aton` reads it.
fn ipv4(host: &[u8]) -> Option<Vec<u8>> {
    let numbers: Vec<_> = host.split(|byte| *byte == b'.').collect();
    let is_octal = |digits: &[u8]| digits.iter().all(|digit| matches!(digit, b'0'..=b'7'));
    let are_digits = numbers.iter().all(|n| !n.is_empty() && n.iter().all(u8::is_ascii_digit));
    let is_decimal = !host.starts_with(b"0");
    if numbers.len() > 4 || !are_digits || !(is_decimal || numbers.iter().all(|n| is_octal(n))) {
        return None;
    }
    let (last, before) = numbers.split_last()?;
    let mut address = 0_u64;
    for (at, digits) in before.iter().enumerate() {
        address |= aton(digits).filter(|byte| *byte < 256)? << (24 - 8 * at);
    }
    let last = aton(last).filter(|last| *last < 1 << (32 - 8 * before.len()))?;
    let address = u32::try_from(address | last).ok()?;
    Some(std::net::Ipv4Addr::from(address).to_string().into_bytes())
}

/// Returns a number that is octal if it begins with 0.
fn aton(digits: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(digits).ok()?;
    match digits.strip_prefix('0') {
        Some("") => Some(0),
        Some(octal) => u64::from_str_radix(octal, 8).ok(),
        None => digits.parse().ok(),
    }
}

/// Returns the host in lowercase without `www.`, `www1.`, …
fn massaged(host: &[u8], scheme: &[u8]) -> Vec<u8> {
    let host = host.to_ascii_lowercase();
    let rest = match host.strip_prefix(b"www") {
        Some(rest) if scheme != b"dns" => rest,
        _ => return host,
    };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    match rest.get(digits) {
        Some(b'.') => rest[digits + 1..].to_vec(),
        _ => host,
    }
}

/// Returns the labels in reverse order, separated by commas.
fn reversed(host: &[u8]) -> Vec<u8> {
    let labels: Vec<_> = host.rsplit(|byte| *byte == b'.').collect();
    labels.join(&b',')
}

fn path(path: &[u8], has_host: bool) -> Vec<u8> {
    let mut path = unescaped(path);
    if has_host {
        path = normalized(&path);
    }
    let mut escaped = Vec::with_capacity(path.len());
    quote(&path, &SAFE, &mut escaped);
    escaped.make_ascii_lowercase();
    let mut path = without_path_session(escaped);
    if path.len() > 1 && path.ends_with(b"/") {
        path.pop();
    }
    path
}

/// Resolves dot segments and joins repeated slashes.
fn normalized(path: &[u8]) -> Vec<u8> {
    let mut kept: Vec<&[u8]> = Vec::new();
    for segment in path.split(|byte| *byte == b'/').skip(1) {
        match segment {
            b"." => {}
            b".." if !kept.is_empty() => drop(kept.pop()),
            segment => kept.push(segment),
        }
    }
    let mut path = b"/".to_vec();
    let Some((last, before)) = kept.split_last() else { return path };
    for segment in before.iter().filter(|segment| !segment.is_empty()) {
        path.extend_from_slice(segment);
        path.push(b'/');
    }
    path.extend_from_slice(last);
    path
}

/// Returns the query without session ids, in lowercase, its parameters sorted; `None` if it is empty.
fn query(query: &[u8]) -> Option<Vec<u8>> {
    let mut escaped = Vec::with_capacity(query.len());
    quote(&unescaped(query), &SAFE, &mut escaped);
    let mut query = without_query_session(escaped);
    query.make_ascii_lowercase();
    let mut parameters: Vec<_> = query
        .split(|byte| *byte == b'&')
        .map(|parameter| match split_once(parameter, b'=') {
            Some((name, value)) => (name, Some(value)),
            None => (parameter, None),
        })
        .collect();
    parameters.sort();
    let parameters = parameters.into_iter().map(|(name, value)| match value {
        Some(value) => [name, b"=", value].concat(),
        None => name.to_vec(),
    });
    let sorted = parameters.collect::<Vec<_>>().join(&b'&');
    (!sorted.is_empty()).then_some(sorted)
}

/// Replaces escapes until there are none, in linear time: an escape that ends at a byte is replaced
/// before the next byte is read.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let first = memchr::memchr(b'%', text).unwrap_or(text.len());
    let mut plain = Vec::with_capacity(text.len());
    plain.extend_from_slice(&text[..first]);
    for &byte in &text[first..] {
        plain.push(byte);
        while plain.len() >= 3
            && let Some(byte) = escape_at(&plain[plain.len() - 3..])
        {
            plain.truncate(plain.len() - 3);
            plain.push(byte);
        }
    }
    plain
}
