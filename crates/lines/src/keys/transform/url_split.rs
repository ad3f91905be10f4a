//! A URL in parts, as w3lib splits it: Python's `urlsplit` with the backslashes, tabs and newlines
//! of the URL standard.

use std::net::{Ipv4Addr, Ipv6Addr};

use unicode_normalization::UnicodeNormalization as _;

/// The parts of a URL, without its fragment.
#[derive(Default)]
pub(super) struct UrlParts {
    pub(super) scheme: String,
    pub(super) username: Option<String>,
    pub(super) password: Option<String>,
    /// In lowercase, except the zone of an IPv6 address; without brackets.
    pub(super) hostname: String,
    pub(super) port: Option<u16>,
    pub(super) path: String,
    pub(super) query: String,
}

/// Returns whether the scheme is one that the URL standard names.
pub(super) fn is_special(scheme: &str) -> bool {
    matches!(scheme, "ftp" | "file" | "http" | "https" | "ws" | "wss")
}

/// Returns the text without control codes and spaces at its ends, and without tabs and newlines.
pub(super) fn strip(text: &str) -> String {
    let text = text.trim_matches(|c: char| c <= ' ');
    if memchr::memchr3(b'\t', b'\n', b'\r', text.as_bytes()).is_none() {
        return text.to_owned();
    }
    text.chars().filter(|c| !matches!(c, '\t' | '\n' | '\r')).collect()
}

impl UrlParts {
    /// Splits a text that [`strip`] returned; `None` if w3lib raises `ValueError`.
    pub(super) fn of(text: &str) -> Option<Self> {
        let (scheme, rest) = split_scheme(text);
        let mut rest = rest.to_owned();
        if is_special(&scheme) && rest.contains('\\') {
            let end = rest.find(['?', '#']).unwrap_or(rest.len());
            let slashes = rest[..end].replace('\\', "/");
            rest.replace_range(..end, &slashes);
        }
        let (netloc, after) = match rest.strip_prefix("//") {
            Some(rest) => rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len())),
            None => ("", &rest[..]),
        };
        let mut parts = Self { scheme, ..Self::default() };
        parts.set_netloc(netloc)?;
        let url = after.split_once('#').map_or(after, |(url, _)| url);
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        (parts.path, parts.query) = (path.to_owned(), query.to_owned());
        Some(parts)
    }

    fn set_netloc(&mut self, netloc: &str) -> Option<()> {
        let has_bracket = netloc.contains('[');
        if has_bracket != netloc.contains(']') {
            return None;
        }
        if has_bracket {
            check_brackets(netloc)?;
        }
        check_normalized(netloc)?;
        let host = match netloc.rsplit_once('@') {
            Some((userinfo, host)) => {
                let (name, password) = match userinfo.split_once(':') {
                    Some((name, password)) => (name, Some(password.to_owned())),
                    None => (userinfo, None),
                };
                (self.username, self.password) = (Some(name.to_owned()), password);
                host
            }
            None => netloc,
        };
        let (hostname, port) = match has_bracket {
            true => {
                let bracketed = after(host, '[');
                (bracketed.split(']').next().unwrap_or(""), after(after(bracketed, ']'), ':'))
            }
            false => (host.split(':').next().unwrap_or(""), after(host, ':')),
        };
        self.hostname = match hostname.split_once('%') {
            Some((name, zone)) => format!("{}%{zone}", name.to_lowercase()),
            None => hostname.to_lowercase(),
        };
        self.port = match port {
            "" => None,
            _ if port.bytes().all(|byte| byte.is_ascii_digit()) => Some(number(port)?),
            _ => return None,
        };
        Some(())
    }
}

/// The longest number that Python converts, in digits.
pub(super) const MAX_DIGITS: usize = 4300;

/// Returns a number of digits; `None` if it is too large for a port.
pub(super) fn number(digits: &str) -> Option<u16> {
    match digits.trim_start_matches('0') {
        _ if digits.len() > MAX_DIGITS => None,
        "" => Some(0),
        digits => digits.parse().ok(),
    }
}

/// Returns the text after the first `c`; empty if there is none.
fn after(text: &str, c: char) -> &str {
    text.split_once(c).map_or("", |(_, rest)| rest)
}

/// Returns the scheme in lowercase and the text after its colon.
fn split_scheme(text: &str) -> (String, &str) {
    let is_letter = |text: &str| text.as_bytes().first().is_some_and(u8::is_ascii_alphabetic);
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    match text.split_once(':') {
        Some((scheme, rest)) if is_letter(scheme) && scheme.chars().all(is_scheme) => {
            (scheme.to_ascii_lowercase(), rest)
        }
        _ => (String::new(), text),
    }
}

/// Returns `None` if the brackets do not enclose an IPv6 address or one of a future version.
fn check_brackets(netloc: &str) -> Option<()> {
    let host = netloc.rsplit_once('@').map_or(netloc, |(_, host)| host);
    let hostname = match host.split_once('[') {
        Some(("", bracketed)) => {
            let (hostname, port) = bracketed.split_once(']').unwrap_or((bracketed, ""));
            if !port.is_empty() && !port.starts_with(':') {
                return None;
            }
            hostname
        }
        Some(_) => return None,
        None => host.split(':').next().unwrap_or(""),
    };
    if hostname.starts_with(['v', 'V']) {
        // The version is `v`, in lowercase, and hexadecimal digits.
        let (version, address) = hostname.strip_prefix('v')?.split_once('.')?;
        let is_version =
            !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_hexdigit());
        return (is_version && !address.is_empty()).then_some(());
    }
    if hostname.parse::<Ipv4Addr>().is_ok() {
        return None;
    }
    parse_ipv6(hostname).map(|_| ())
}

/// Returns an IPv6 address and its zone with the `%`, as Python's `ipaddress` parses them.
pub(super) fn parse_ipv6(text: &str) -> Option<(Ipv6Addr, &str)> {
    let (address, zone) = text.split_at(text.find('%').unwrap_or(text.len()));
    if zone.len() == 1 || zone.get(1..).is_some_and(|zone| zone.contains('%')) {
        return None;
    }
    // Python refuses a slash, which would be a network.
    (!text.contains('/')).then_some(())?;
    Some((address.parse().ok()?, zone))
}

/// Returns `None` if normalization of the host would make a delimiter.
fn check_normalized(netloc: &str) -> Option<()> {
    if netloc.is_ascii() {
        return Some(());
    }
    let (cleaned, normalized) = normalized(netloc);
    let has_delimiter = normalized.contains(['/', '?', '#', '@', ':', '\\']);
    (cleaned == normalized || !has_delimiter).then_some(())
}

/// Returns the text without delimiters, and that in normalization form KC.
pub(super) fn normalized(text: &str) -> (String, String) {
    let cleaned: String = text.chars().filter(|c| !matches!(c, '@' | ':' | '#' | '?')).collect();
    let normalized = cleaned.nfkc().collect();
    (cleaned, normalized)
}
