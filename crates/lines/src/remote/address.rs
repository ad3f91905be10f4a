//! Addresses of objects.

#![cfg_attr(not(feature = "object-store"), allow(dead_code, reason = "nothing is requested"))]

use std::fmt;
use std::path::Path;

/// The address of an object: `s3://bucket/key`, `gs://bucket/key`, `az://container/key`,
/// `https://host/path` or `http://host/path`.
///
/// `Display` and `Debug` mask what may be secret: user information, and everything after a `?`.
#[derive(Clone, PartialEq, Eq)]
pub struct ObjectUrl {
    scheme: Scheme,
    /// All of it, with secrets.
    text: String,
}

/// The scheme of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    S3,
    Gs,
    Az,
    Https,
    Http,
}

const SCHEMES: [(&str, Scheme); 5] = [
    ("s3://", Scheme::S3),
    ("gs://", Scheme::Gs),
    ("az://", Scheme::Az),
    ("https://", Scheme::Https),
    ("http://", Scheme::Http),
];

impl ObjectUrl {
    /// Returns the address if a path looks like one.
    #[must_use]
    pub fn of_path(path: &Path) -> Option<Self> {
        let text = path.to_str()?;
        let is = |prefix: &str| {
            text.get(..prefix.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(prefix))
        };
        let (_, scheme) = *SCHEMES.iter().find(|(prefix, _)| is(prefix))?;
        Some(Self { scheme, text: text.to_owned() })
    }

    pub(super) fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Returns whether it is an address of the web, not of a bucket.
    #[must_use]
    pub fn is_web(&self) -> bool {
        matches!(self.scheme, Scheme::Http | Scheme::Https)
    }

    /// Returns the part after `://`.
    fn rest(&self) -> &str {
        self.text.split_once("://").map_or("", |(_, rest)| rest)
    }

    /// Returns bucket or container, and key.
    pub(super) fn bucket_and_key(&self) -> (&str, &str) {
        self.rest().split_once('/').unwrap_or((self.rest(), ""))
    }

    /// Returns user information, and the address without it and without a fragment.
    pub(super) fn user_and_url(&self) -> (Option<&str>, String) {
        let (user, rest) = split_user(self.rest());
        let rest = rest.split_once('#').map_or(rest, |(before, _)| before);
        let scheme = if self.scheme == Scheme::Http { "http" } else { "https" };
        (user, format!("{scheme}://{rest}"))
    }
}

/// Splits user information from the part after `://`.
fn split_user(rest: &str) -> (Option<&str>, &str) {
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(at) => (Some(&rest[..at]), &rest[at + 1..]),
        None => (None, rest),
    }
}

impl fmt::Display for ObjectUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, rest) = self.text.split_once("://").unwrap_or_default();
        let (user, rest) = split_user(rest);
        let user = if user.is_some() { "***@" } else { "" };
        let end = rest.find('?').or_else(|| self.is_web().then(|| rest.find('#'))?);
        let (shown, query) = match end {
            Some(end) => (&rest[..end], "?***"),
            None => (rest, ""),
        };
        write!(f, "{scheme}://{user}{shown}{query}")
    }
}

impl fmt::Debug for ObjectUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> ObjectUrl {
        ObjectUrl::of_path(Path::new(text)).unwrap()
    }

    #[test]
    fn only_known_schemes_are_addresses() {
        for text in ["s3://b/k", "S3://b/k", "gs://b", "az://c/k", "https://h/p", "HTTP://h"] {
            assert!(ObjectUrl::of_path(Path::new(text)).is_some(), "{text}");
        }
        for text in
            ["", "s3", "s3:/b/k", "ftp://h/f", "./s3://b/k", "file:///f", "äs3://b", "s3:/ä"]
        {
            assert!(ObjectUrl::of_path(Path::new(text)).is_none(), "{text}");
        }
    }

    #[test]
    fn bucket_and_key_are_taken_literally() {
        assert_eq!(url("s3://b/a/b c?d%20#e").bucket_and_key(), ("b", "a/b c?d%20#e"));
        assert_eq!(url("s3://b").bucket_and_key(), ("b", ""));
    }

    #[test]
    fn secrets_are_masked() {
        for (text, shown) in [
            ("s3://b/k", "s3://b/k"),
            ("s3://b/k#1", "s3://b/k#1"),
            ("s3://AKIA:SECRET@b/k", "s3://***@b/k"),
            ("s3://b/k?X-Amz-Signature=SECRET", "s3://b/k?***"),
            ("https://h/p", "https://h/p"),
            ("https://h:1/p/@q", "https://h:1/p/@q"),
            ("https://u:SECRET@h/p?t=SECRET", "https://***@h/p?***"),
            ("https://u:p@SECRET@h/p", "https://***@h/p"),
            ("https://SECRET@h?a@b", "https://***@h?***"),
            ("http://h/p#SECRET", "http://h/p?***"),
            ("http://h#u@SECRET", "http://h?***"),
        ] {
            let url = url(text);
            assert_eq!(url.to_string(), shown);
            assert!(!format!("{url:?}").contains("SECRET"), "{text}");
        }
    }

    #[test]
    fn user_is_split_from_the_address() {
        let (user, rest) = ("u:p", "http://h/x?q".to_owned());
        assert_eq!(url("HTTP://u:p@h/x?q#f").user_and_url(), (Some(user), rest));
    }
}
