//! Lines of checksum files: the hash of a file, and its name.
//!
//! | written by | line |
//! |---|---|
//! | `sha1sum`, `md5sum`, `sha256sum`, `b2sum`; `md5deep` | hash, space, space or `*`, name |
//! | the same with `--tag`; BSD | `SHA1 (name) = hash` |
//! | the same, if the name has escapes | `\` before the line |
//! | `hashdeep` | size, hashes and name with commas between them, after lines with `%%%%` and `##` |

use super::HexShape;

/// Returns the hash of a line of a checksum file; of several the one with `length` digits, or the first.
/// Empty if the line is a comment, `None` if it is no line of a checksum file.
pub(super) fn hash(line: &[u8], length: Option<u64>) -> Option<&[u8]> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.starts_with(b"%%%%") || line.starts_with(b"##") {
        return Some(b"");
    }
    of_sum(line).or_else(|| of_hashdeep(line, length))
}

fn of_sum(line: &[u8]) -> Option<&[u8]> {
    let line = line.strip_prefix(b"\\").unwrap_or(line);
    let digits = line.iter().position(|byte| !byte.is_ascii_hexdigit()).unwrap_or(line.len());
    if let (hash, [b' ', b' ' | b'*', _, ..]) = line.split_at(digits) {
        return Some(hash).filter(|hash| is_hash(hash));
    }
    let end = memchr::memmem::rfind(line, b") = ")?;
    let hash = &line[end + 4..];
    let is_tag = |name: &[u8]| {
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"-/_".contains(byte);
        !name.is_empty() && name.iter().all(is_part)
    };
    let name = memchr::memmem::find(line, b" (").filter(|at| at + 2 <= end)?;
    (is_tag(&line[..name]) && is_hash(hash)).then_some(hash)
}

fn of_hashdeep(line: &[u8], length: Option<u64>) -> Option<&[u8]> {
    let mut fields = line.split(|byte| *byte == b',');
    let size = fields.next()?;
    if size.is_empty() || !size.iter().all(u8::is_ascii_digit) {
        return None;
    }
    // The last field is the name.
    let fields: Vec<_> = fields.collect();
    let (_, others) = fields.split_last()?;
    let mut hashes = others.iter().take_while(|field| is_hash(field)).copied().peekable();
    let first = *hashes.peek()?;
    let is_right = |hash: &&[u8]| length == Some(hash.len() as u64);
    Some(hashes.find(is_right).unwrap_or(first))
}

fn is_hash(text: &[u8]) -> bool {
    HexShape::LENGTHS.contains(&(text.len() as u64)) && text.iter().all(u8::is_ascii_hexdigit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_of_each_format_is_found() {
        let (md5, sha1) = ("0123456789abcdef".repeat(2), "0123456789ABCDEF0123".repeat(2));
        let (b2, sha256) = ("ab".repeat(64), "cd".repeat(32));
        let found = |line: &str, length| {
            hash(line.as_bytes(), length).map(|hash| String::from_utf8(hash.to_vec()).unwrap())
        };
        for own in [&md5, &sha1, &b2, &sha256] {
            for line in [
                format!("{own}  a name"),
                format!("{own} *name"),
                format!("{own} * name) = {md5}"),
                format!("\\{own}  two\\nlines"),
                format!("{own}  name\r"),
                format!("SHA1 (a (name) = x) = {own}"),
                format!("BLAKE2b-256 ({md5}  x) = {own}"),
                format!("\\SHA2-256 (two\\nlines) = {own}"),
                format!("SHA512/256 () = {own}\r"),
                format!("12,{own},/a,name,with commas"),
            ] {
                assert_eq!(found(&line, None).as_ref(), Some(own), "{line}");
            }
        }
        // The first of several, or that of the length.
        let deep = format!("0,{md5},{sha256},/{sha1},x");
        assert_eq!(found(&deep, None).as_ref(), Some(&md5));
        assert_eq!(found(&deep, Some(64)).as_ref(), Some(&sha256));
        assert_eq!(found(&deep, Some(40)).as_ref(), Some(&md5));
        for line in ["%%%% HASHDEEP-1.0", "%%%% size,md5,sha256,filename", "## $ hashdeep -r", "##"]
        {
            assert_eq!(found(line, None).as_deref(), Some(""), "{line}");
        }
        for line in [
            "",
            "word",
            &md5,
            &format!("{md5}  "),
            &format!("{md5} x"),
            &format!("{md5}\tx"),
            &format!("{}  name", &md5[1..]),
            &format!("g{md5}  name"),
            &format!("SHA 1 (name) = {sha1}"),
            &format!("(name) = {sha1}"),
            &format!("SHA1 name) = {sha1}"),
            &format!("SHA1 (name) = {sha1} "),
            &format!("x,{md5},name"),
            &format!("1,{md5}"),
            "1,2,name",
            "#",
        ] {
            assert_eq!(found(line, None), None, "{line}");
        }
    }
}
