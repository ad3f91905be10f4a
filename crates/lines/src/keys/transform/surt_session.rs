//! Session ids in URLs, as surt's regular expressions find them.

use std::ops::Range;

/// Returns a path of ASP.NET, in lowercase, without its session ids: `/(S(…))/page.aspx`, `/(…)/page.aspx`.
pub(super) fn without_path_session(mut path: Vec<u8>) -> Vec<u8> {
    for length in [cookieless_length, plain_length] {
        if let Some(session) = path_session(&path, length) {
            path.drain(session);
        }
    }
    path
}

/// Returns the last session id that follows a slash, with the slash after it.
fn path_session(path: &[u8], length: fn(&[u8]) -> Option<usize>) -> Option<Range<usize>> {
    let slashes = memchr::memrchr_iter(b'/', path);
    slashes.into_iter().find_map(|slash| {
        let start = slash + 1;
        let end = start + length(&path[start..])?;
        let page = path.get(end + 1..)?;
        let aspx = memchr::memmem::find(page, b".aspx")?;
        let has_query = path[end..end + 1 + aspx].contains(&b'?');
        (!has_query).then_some(start..end)
    })
}

/// Returns the length of `(S(…)F(…))/`, with ids of 24 letters and digits.
fn cookieless_length(text: &[u8]) -> Option<usize> {
    const ID: usize = 27;
    let is_id = |text: &[u8]| {
        text.len() >= ID
            && text[0].is_ascii_alphabetic()
            && text[1] == b'('
            && text[2..26].iter().all(u8::is_ascii_alphanumeric)
            && text[26] == b')'
    };
    let ids = text.strip_prefix(b"(")?;
    let length = ids.chunks(ID).take_while(|id| is_id(id)).count() * ID;
    (length > 0 && ids[length..].starts_with(b")/")).then_some(length + 3)
}

/// Returns the length of `(…)/` with 24 letters and digits.
fn plain_length(text: &[u8]) -> Option<usize> {
    let id = text.strip_prefix(b"(")?;
    let valid = id.len() >= 26
        && id[..24].iter().all(u8::is_ascii_alphanumeric)
        && id[24..].starts_with(b")/");
    valid.then_some(27)
}

/// Returns the lengths of a name at the end of the bytes before a `=` and of the id after it.
type SessionLengths = fn(&[u8], &[u8]) -> Option<(usize, usize)>;

/// Returns a query without its session ids, each of the known kinds once.
pub(super) fn without_query_session(mut query: Vec<u8>) -> Vec<u8> {
    let kinds: [SessionLengths; 4] = [
        |name, id| id_lengths(name, id, b"jsessionid"),
        |name, id| id_lengths(name, id, b"phpsessid"),
        |name, id| id_lengths(name, id, b"sid"),
        asp_lengths,
    ];
    for lengths in kinds {
        let session = memchr::memrchr_iter(b'=', &query).find_map(|equals| {
            let (name, id) = lengths(&query[..equals], &query[equals + 1..])?;
            let (start, end) = (equals - name, equals + 1 + id);
            match query.get(end) {
                None => Some(start..end),
                Some(b'&') => Some(start..end + 1),
                Some(_) => None,
            }
        });
        if let Some(session) = session {
            query.drain(session);
        }
    }
    if let Some(session) = cold_fusion_session(&query) {
        query.drain(session);
    }
    query
}

/// Returns the bytes after a name in any case.
fn after<'a>(text: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (start, rest) = text.split_at_checked(name.len())?;
    start.eq_ignore_ascii_case(name).then_some(rest)
}

/// Returns the lengths of a name at the end of `before` and an id of 32 letters and digits.
fn id_lengths(before: &[u8], id: &[u8], name: &[u8]) -> Option<(usize, usize)> {
    let found = &before[before.len().checked_sub(name.len())?..];
    let is_id = id.get(..32)?.iter().all(u8::is_ascii_alphanumeric);
    (is_id && found.eq_ignore_ascii_case(name)).then_some((name.len(), 32))
}

/// Returns the lengths of `ASPSESSIONID` with 8 letters and an id of 24 letters.
fn asp_lengths(before: &[u8], id: &[u8]) -> Option<(usize, usize)> {
    let name = &before[before.len().checked_sub(20)?..];
    let letters = |text: &[u8]| text.iter().all(u8::is_ascii_alphabetic);
    let is_id = letters(id.get(..24)?) && letters(after(name, b"aspsessionid")?);
    is_id.then_some((20, 24))
}

/// Returns the last `cfid=…&cftoken=…`, with the `&` after it.
fn cold_fusion_session(query: &[u8]) -> Option<Range<usize>> {
    let mut end = query.len();
    for and in memchr::memrchr_iter(b'&', query) {
        let has_token = after(&query[and + 1..end], b"cftoken=").is_some_and(|id| !id.is_empty());
        let begin = memchr::memrchr(b'&', &query[..and]).map_or(0, |before| before + 1);
        // The id has a byte at least.
        let names = query[begin..and].windows(b"cfid=?".len());
        let id = names.into_iter().rposition(|name| after(name, b"cfid=").is_some());
        if let (true, Some(id)) = (has_token, id) {
            return Some(begin + id..(end + 1).min(query.len()));
        }
        end = and;
    }
    None
}
