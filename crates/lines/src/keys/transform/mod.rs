//! Changes to keys that make different spellings equal.
//!
//! A key that a transform does not apply to stays as it is. Only `unhex`, `ntlm` and
//! [`Transform::ToCase`] refuse keys, which would be looked up in vain. The result depends on the key
//! alone, so that keys of different inputs, runs and machines are comparable.
//!
//! Cost: the ASCII transforms copy the key; those of URLs take a few allocations.

mod digest;
#[cfg(feature = "url-keys")]
mod escape;
#[cfg(feature = "url-keys")]
mod file_url;
#[cfg(feature = "url-keys")]
mod host;
#[cfg(feature = "url-keys")]
mod idna2003;
#[cfg(test)]
#[cfg(feature = "url-keys")]
mod original_tests;
mod query;
#[cfg(feature = "url-keys")]
mod scrapy;
#[cfg(feature = "url-keys")]
mod surt;
#[cfg(feature = "url-keys")]
mod surt_session;
#[cfg(test)]
mod tests;
mod text;
#[cfg(feature = "url-keys")]
mod url_split;
#[cfg(test)]
#[cfg(feature = "url-keys")]
mod whatwg_tests;

use std::fmt;
use std::str::FromStr;

use super::hex_shape::{Described, HexCase, HexShape};

/// A change to a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Transform {
    /// Removes ASCII white space at both ends.
    Trim,
    /// Changes the ASCII letters to lowercase.
    Lowercase,
    /// Changes all letters to lowercase. Keys that are not UTF-8 stay as they are.
    LowercaseUnicode,
    /// Changes the ASCII letters to uppercase.
    Uppercase,
    /// Removes a CR at the end.
    StripCr,
    /// The bytes as lowercase hexadecimal text.
    Hex,
    /// The bytes of hexadecimal text of either case; half as many as digits. Refuses other keys.
    Unhex,
    /// The MD5 digest, in lowercase hexadecimal text, as the next ones.
    Md5,
    /// The SHA-1 digest.
    Sha1,
    /// The SHA-256 digest.
    Sha256,
    /// The NTLM hash of a password: MD4 of its UTF-16 text. Refuses keys that are not UTF-8.
    Ntlm,
    /// Hexadecimal text in the case of a filter's keys. If all of those have one length, it refuses other
    /// keys, which no key of the filter equals. Keys that are not hexadecimal stay as they are. It has no
    /// name: the filter's metadata implies it.
    ToCase(HexShape),
    /// Removes the first `#` and all bytes after it.
    StripFragment,
    /// Removes the parameters of the query whose name matches a pattern. `*` matches any bytes, `?`
    /// one byte. A query without parameters is removed, with its `?`.
    StripQuery(String),
    /// Sorts the parameters of the query by name. Equal names keep their order.
    SortQuery,
    /// Unicode normalization form C. Keys that are not UTF-8 stay as they are.
    #[cfg(feature = "url-keys")]
    Nfc,
    /// The URL as the URL standard (WHATWG) writes it.
    #[cfg(feature = "url-keys")]
    Url,
    /// The result of `w3lib.url.canonicalize_url`, which Scrapy's fingerprints use.
    #[cfg(feature = "url-keys")]
    UrlScrapy,
    /// The result of `surt.surt`, the key of web archives.
    #[cfg(feature = "url-keys")]
    UrlSurt,
    /// The host of the URL. Also applies to keys that are a host name.
    #[cfg(feature = "url-keys")]
    Host,
    /// The domain below the public suffix of the host; the host if it has none.
    #[cfg(feature = "url-keys")]
    RegisteredDomain,
}

use Transform as T;

/// The names of the transforms without a parameter.
const NAMES: &[(&str, Transform)] = &[
    ("trim", T::Trim),
    ("lowercase", T::Lowercase),
    ("lowercase-unicode", T::LowercaseUnicode),
    ("uppercase", T::Uppercase),
    ("strip-cr", T::StripCr),
    ("hex", T::Hex),
    ("unhex", T::Unhex),
    ("md5", T::Md5),
    ("sha1", T::Sha1),
    ("sha256", T::Sha256),
    ("ntlm", T::Ntlm),
    #[cfg(feature = "url-keys")]
    ("nfc", T::Nfc),
    #[cfg(feature = "url-keys")]
    ("url", T::Url),
    #[cfg(feature = "url-keys")]
    ("url-scrapy", T::UrlScrapy),
    #[cfg(feature = "url-keys")]
    ("url-surt", T::UrlSurt),
    ("strip-fragment", T::StripFragment),
    ("sort-query", T::SortQuery),
    #[cfg(feature = "url-keys")]
    ("host", T::Host),
    #[cfg(feature = "url-keys")]
    ("registered-domain", T::RegisteredDomain),
];

/// Names that a build without the feature `url-keys` does not know.
#[cfg(not(feature = "url-keys"))]
const URL_NAMES: &[&str] = &["nfc", "url", "url-scrapy", "url-surt", "host", "registered-domain"];

/// The start of the name of [`Transform::StripQuery`], before its pattern.
const STRIP_QUERY: &str = "strip-query=";

impl Transform {
    /// Appends the changed key to `to`.
    ///
    /// # Errors
    /// If the transform refuses the key; [`refusal`](Self::refusal) says why. `to` may have more bytes.
    pub(super) fn append(&self, key: &[u8], to: &mut Vec<u8>) -> Result<(), Refused> {
        match self {
            T::Trim => to.extend_from_slice(text::trim(key)),
            T::Lowercase => text::lowercase(key, to),
            T::LowercaseUnicode => text::lowercase_unicode(key, to),
            T::Uppercase => text::uppercase(key, to),
            T::Hex => digest::hex(key, to),
            T::Unhex => return digest::unhex(key, to).ok_or(Refused),
            T::Md5 => digest::append::<md5::Md5>(key, to),
            T::Sha1 => digest::append::<sha1::Sha1>(key, to),
            T::Sha256 => digest::append::<sha2::Sha256>(key, to),
            T::Ntlm => return digest::ntlm(key, to).ok_or(Refused),
            T::ToCase(shape) => return shape.append(key, to).ok_or(Refused),
            T::StripCr => to.extend_from_slice(key.strip_suffix(b"\r").unwrap_or(key)),
            T::StripFragment => to.extend_from_slice(query::without_fragment(key)),
            T::StripQuery(pattern) => query::strip(key, pattern.as_bytes(), to),
            T::SortQuery => query::sort(key, to),
            #[cfg(feature = "url-keys")]
            _ => self.append_url(key, to),
        }
        Ok(())
    }

    /// Returns whether the transform refuses some keys.
    pub(super) fn refuses(&self) -> bool {
        match self {
            T::Unhex | T::Ntlm => true,
            T::ToCase(shape) => shape.length.is_some(),
            _ => false,
        }
    }

    /// Says why the transform, one of `all`, refused a key. If it should become a digest, it may be a
    /// password, and is not shown.
    pub(super) fn refusal(&self, key: &[u8], all: &[Self]) -> String {
        let is_secret = all.iter().any(Self::is_digest);
        let found = Described { key: key.strip_suffix(b"\r").unwrap_or(key), is_secret };
        match self {
            T::ToCase(shape @ HexShape { case: HexCase::Bytes, .. }) => {
                let digits = 2 * key.len();
                format!("found {digits} hexadecimal digits, expected {}", shape.expected())
            }
            T::ToCase(shape) => format!("found {found}, expected {}", shape.expected()),
            T::Ntlm => format!("found {found}, expected UTF-8, which {self} hashes"),
            _ => format!("found {found}, expected pairs of hexadecimal digits, which {self} reads"),
        }
    }

    /// Returns the shape that every key has after transforms; `None` if it depends on the key.
    pub(super) fn shape_after(transforms: &[Self]) -> Option<HexShape> {
        transforms.iter().fold(None, |shape, transform| match transform {
            T::Md5 | T::Ntlm | T::Sha1 | T::Sha256 => {
                Some(HexShape { case: HexCase::Lower, length: transform.digest_length() })
            }
            T::Unhex => shape.map(|shape| HexShape { case: HexCase::Bytes, ..shape }),
            // Any byte may be a letter or a space.
            _ if shape.is_some_and(|shape| shape.case == HexCase::Bytes) => None,
            T::Lowercase => shape.map(|shape| HexShape { case: HexCase::Lower, ..shape }),
            T::Uppercase => shape.map(|shape| HexShape { case: HexCase::Upper, ..shape }),
            T::Trim | T::StripCr => shape,
            _ => None,
        })
    }

    /// Returns the change of keys after the transforms `before` to the shape that queries have after
    /// others; `None` if it changes nothing, or the shape depends on the query.
    pub(crate) fn to_shape_of(queries: &[Self], before: &[Self]) -> Option<Self> {
        Self::to_shape(Self::shape_after(queries)?, before)
    }

    /// Returns the change of keys after the transforms `before` to a shape; `None` if it changes nothing.
    pub(super) fn to_shape(shape: HexShape, before: &[Self]) -> Option<Self> {
        let is_given = Self::shape_after(before).is_some_and(|given| given.fits(shape));
        (!is_given).then_some(T::ToCase(shape))
    }

    /// Returns whether a key looks like a digest that the transform computes.
    #[must_use]
    pub fn may_have_computed(&self, key: &[u8]) -> bool {
        self.digest_length() == Some(key.len() as u64) && key.iter().all(u8::is_ascii_hexdigit)
    }

    /// Returns the number of digits of a digest in lowercase; `None` if the transform computes none.
    fn digest_length(&self) -> Option<u64> {
        match self {
            T::Md5 | T::Ntlm => Some(32),
            T::Sha1 => Some(40),
            T::Sha256 => Some(64),
            _ => None,
        }
    }

    /// Returns whether the keys after transforms are the bytes of hexadecimal digits.
    pub(super) fn read_digits(transforms: &[Self]) -> bool {
        let last = transforms.iter().rfind(|transform| !matches!(transform, T::ToCase(_)));
        last == Some(&T::Unhex)
    }

    /// Appends a key that other crates change; the key itself if they refuse it.
    #[cfg(feature = "url-keys")]
    fn append_url(&self, key: &[u8], to: &mut Vec<u8>) {
        let changed = match self {
            T::Nfc => return text::nfc(key, to),
            T::Url => host::standard_url(key),
            T::UrlScrapy => scrapy::canonicalize(key),
            T::UrlSurt => surt::surt(key),
            T::Host => host::host(key),
            T::RegisteredDomain => host::registered_domain(key),
            _ => None,
        };
        to.extend_from_slice(changed.as_deref().unwrap_or(key));
    }

    /// Returns whether a name stands for the transform. The one that only refuses other lengths of bytes has
    /// none.
    #[must_use]
    pub fn has_name(&self) -> bool {
        !matches!(self, T::ToCase(HexShape { case: HexCase::Bytes, .. }))
    }

    /// Returns whether the result is a digest, from which the key cannot be computed.
    #[must_use]
    pub fn is_digest(&self) -> bool {
        self.digest_length().is_some()
    }

    /// Returns how many times longer than the bytes that are read the keys of a batch can be after
    /// transforms of keys that are `before` times as long. A batch has one key for 16 bytes that are read,
    /// and a digest has at most 64, whatever it is of.
    fn growth(&self, before: u64) -> u64 {
        let times = match self {
            T::Md5 | T::Sha1 | T::Sha256 | T::Ntlm => return 4,
            T::Trim | T::Lowercase | T::Uppercase | T::ToCase(_) | T::StripCr | T::Unhex => 1,
            T::StripFragment | T::StripQuery(_) | T::SortQuery => 1,
            T::Hex => 2,
            // A byte becomes `%XX`; a letter of two bytes one of three.
            _ => 3,
        };
        before.saturating_mul(times)
    }

    /// Returns how many times longer than the bytes that are read the keys of a batch can be.
    pub(super) fn max_growth(transforms: &[Self]) -> u64 {
        // The results before the last are in memory one at a time.
        transforms.iter().fold(1, |before, transform| transform.growth(before))
    }
}

/// A transform refused a key.
#[derive(Debug)]
pub(super) struct Refused;

/// Returns the key after all transforms, in order.
///
/// # Errors
/// If a transform refuses the key; the text says why.
pub fn transform_key(key: &[u8], transforms: &[Transform]) -> Result<Vec<u8>, String> {
    let mut key = key.to_vec();
    for transform in transforms {
        let mut to = Vec::with_capacity(key.len());
        let appended = transform.append(&key, &mut to);
        appended.map_err(|Refused| transform.refusal(&key, transforms))?;
        key = to;
    }
    Ok(key)
}

/// Returns the names of transforms that have one, separated by commas.
#[must_use]
pub fn transforms_text(transforms: &[Transform]) -> String {
    let named = transforms.iter().filter(|transform| transform.has_name());
    let names: Vec<_> = named.map(ToString::to_string).collect();
    names.join(",")
}

/// Parses names of transforms, separated by commas.
///
/// # Errors
/// If a name is unknown; the text says which, and what is expected.
pub fn parse_transforms(text: &str) -> Result<Vec<Transform>, String> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let parse = |name: &str| name.parse().map_err(|problem| format!("'{name}': {problem}"));
    text.split(',').map(parse).collect()
}

impl fmt::Display for Transform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            T::StripQuery(pattern) => write!(f, "{STRIP_QUERY}{pattern}"),
            T::ToCase(shape) => shape.fmt(f),
            _ => match NAMES.iter().find(|(_, transform)| transform == self) {
                Some((name, _)) => f.write_str(name),
                None => Err(fmt::Error),
            },
        }
    }
}

impl FromStr for Transform {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        if let Some((_, transform)) = NAMES.iter().find(|(known, _)| *known == name) {
            return Ok(transform.clone());
        }
        if let Some(pattern) = name.strip_prefix(STRIP_QUERY) {
            return match pattern {
                "" => Err("expected a pattern of parameter names, as in strip-query=utm_*".into()),
                _ if pattern.contains(',') => Err("a pattern cannot contain a comma".into()),
                _ => Ok(T::StripQuery(pattern.to_owned())),
            };
        }
        #[cfg(not(feature = "url-keys"))]
        if URL_NAMES.contains(&name) {
            return Err("this build does not have it; build with the feature url-keys".to_owned());
        }
        let known: Vec<_> = NAMES.iter().map(|(name, _)| *name).collect();
        Err(format!("unknown transform; expected {} or strip-query=PATTERN", known.join(", ")))
    }
}
