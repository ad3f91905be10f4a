//! The query and the fragment of a URL, in its bytes as they are written.
//!
//! The fragment begins at the first `#`, the query at the first `?` before it. Parameters are
//! separated by `&`; the name of a parameter ends at its first `=`.

/// Returns the key without its fragment.
pub(super) fn without_fragment(key: &[u8]) -> &[u8] {
    &key[..memchr::memchr(b'#', key).unwrap_or(key.len())]
}

/// The parts of a key with a query.
struct Parts<'a> {
    /// The bytes up to the `?`.
    before: &'a [u8],
    query: &'a [u8],
    /// The fragment with its `#`; empty if there is none.
    fragment: &'a [u8],
}

impl<'a> Parts<'a> {
    /// Splits a key; `None` if it has no query.
    fn of(key: &'a [u8]) -> Option<Self> {
        let (url, fragment) = key.split_at(without_fragment(key).len());
        let at = memchr::memchr(b'?', url)?;
        Some(Self { before: &url[..at], query: &url[at + 1..], fragment })
    }

    fn parameters(&self) -> impl Iterator<Item = &'a [u8]> {
        self.query.split(|byte| *byte == b'&')
    }
}

/// Returns the name of a parameter.
fn name(parameter: &[u8]) -> &[u8] {
    &parameter[..memchr::memchr(b'=', parameter).unwrap_or(parameter.len())]
}

/// Appends the key without the parameters whose name matches the pattern.
pub(super) fn strip(key: &[u8], pattern: &[u8], to: &mut Vec<u8>) {
    let Some(parts) = Parts::of(key) else { return to.extend_from_slice(key) };
    to.extend_from_slice(parts.before);
    let mut separator = b'?';
    for parameter in parts.parameters().filter(|parameter| !matches(pattern, name(parameter))) {
        to.push(separator);
        to.extend_from_slice(parameter);
        separator = b'&';
    }
    to.extend_from_slice(parts.fragment);
}

/// Appends the key with the parameters of its query sorted by name.
pub(super) fn sort(key: &[u8], to: &mut Vec<u8>) {
    let Some(parts) = Parts::of(key) else { return to.extend_from_slice(key) };
    let mut parameters: Vec<_> = parts.parameters().collect();
    parameters.sort_by_key(|parameter| name(parameter));
    to.extend_from_slice(parts.before);
    let mut separator = b'?';
    for parameter in parameters {
        to.push(separator);
        to.extend_from_slice(parameter);
        separator = b'&';
    }
    to.extend_from_slice(parts.fragment);
}

/// Returns whether a pattern matches all of a name. Cost: at most the product of their lengths.
pub(super) fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    // The last `*`, and the byte of the name up to which it matches.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(byte) if *byte == b'?' || *byte == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match &mut star {
                Some((at, end)) => {
                    *end += 1;
                    (p, n) = (*at + 1, *end);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}
