//! URLs and hosts as the URL standard (WHATWG) writes them, and their registered domains.
//!
//! The registered domain comes from the Public Suffix List in the crate `psl`: both its sections, so
//! that `alice.github.io` and `bob.github.io` are different.

use url::{Host, Position, Url};

use super::file_url::FileUrl;
use super::url_split::strip;

/// Returns the URL as the standard writes it; `None` if it is not UTF-8 or not a URL.
pub(super) fn standard_url(key: &[u8]) -> Option<Vec<u8>> {
    if let Some(url) = file_url(key) {
        return url.map(FileUrl::into_bytes);
    }
    let url = parse(key)?;
    let path = &url[Position::BeforePath..Position::AfterPath];
    let (before, after) = (&url[..Position::BeforePath], &url[Position::AfterPath..]);
    // What the crate leaves as it is.
    Some(match path.strip_suffix(' ') {
        Some(path) if url.cannot_be_a_base() => [before, path, "%20", after].concat().into_bytes(),
        _ if path.contains('^') && !url.cannot_be_a_base() => {
            [before, &path.replace('^', "%5E"), after].concat().into_bytes()
        }
        _ => String::from(url).into_bytes(),
    })
}

/// Returns a URL of the scheme `file`; the inner `None` if it is invalid.
fn file_url(key: &[u8]) -> Option<Option<FileUrl>> {
    let key = std::str::from_utf8(key).ok()?;
    // Most keys are decided by their first letter.
    if !key.starts_with(|c: char| c <= ' ' || matches!(c, 'f' | 'F')) {
        return None;
    }
    let text = strip(key);
    let (scheme, rest) = text.split_once(':')?;
    scheme.eq_ignore_ascii_case("file").then(|| FileUrl::parse(rest))
}

/// Returns the host of a URL, or of a key that is a host name; `None` for other keys.
pub(super) fn host(key: &[u8]) -> Option<Vec<u8>> {
    if let Some(url) = file_url(key) {
        return url.map(|url| url.host.into_bytes()).filter(|host| !host.is_empty());
    }
    let host = match parse(key) {
        Some(url) => match url.host()? {
            Host::Domain(domain) => domain_name(&url, domain),
            address => address.to_string(),
        },
        None => host_name(key)?,
    };
    Some(host.into_bytes()).filter(|host| !host.is_empty())
}

/// Returns the registered domain of a URL or host name; the host if it is an address, a public
/// suffix, or a single label.
pub(super) fn registered_domain(key: &[u8]) -> Option<Vec<u8>> {
    let domain = match (file_url(key), parse(key)) {
        (Some(url), _) => match Host::parse(&url?.host).ok()? {
            Host::Domain(domain) => domain,
            address => return Some(address.to_string().into_bytes()),
        },
        (None, Some(url)) => match url.host()? {
            Host::Domain(domain) => domain_name(&url, domain),
            address => return Some(address.to_string().into_bytes()),
        },
        (None, None) => host_name(key)?,
    };
    let registered = psl::domain_str(&domain).map(|registered| registered.as_bytes().to_vec());
    Some(registered.unwrap_or(domain.into_bytes())).filter(|domain| !domain.is_empty())
}

fn parse(key: &[u8]) -> Option<Url> {
    Url::parse(std::str::from_utf8(key).ok()?).ok()
}

/// Returns the host of a URL. The standard leaves hosts of schemes that it does not know as they are
/// written, with escapes; here they are names like all others if they can be.
fn domain_name(url: &Url, domain: &str) -> String {
    let name = if url.is_special() { None } else { host_name(domain.as_bytes()) };
    name.unwrap_or_else(|| domain.to_ascii_lowercase())
}

/// Returns a key that is a host name of two labels or more, as the standard writes it.
fn host_name(key: &[u8]) -> Option<String> {
    if !key.contains(&b'.') {
        return None;
    }
    match Host::parse(std::str::from_utf8(key).ok()?).ok()? {
        Host::Domain(domain) => Some(domain),
        Host::Ipv4(_) | Host::Ipv6(_) => None,
    }
}
