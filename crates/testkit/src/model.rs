//! The set verbs over byte lines, done the obvious way.
//!
//! A line ends at the delimiter (LF, or NUL with `-z`), which is not part of it. The last line may lack it; an input
//! that ends in the delimiter has no extra empty line after it. Every other byte, CR included, belongs to the line.
//! The output ends every line with the delimiter.

use std::collections::HashSet;

/// The usual delimiter.
pub const LF: u8 = b'\n';
/// The delimiter of `-z`.
pub const NUL: u8 = 0;

/// The lines of an input, without their delimiters.
pub fn lines(input: &[u8], delimiter: u8) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = input.split(|&byte| byte == delimiter).collect();
    if lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    lines
}

/// The lines as a file: each with the delimiter after it.
pub fn join<'a>(lines: impl IntoIterator<Item = &'a [u8]>, delimiter: u8) -> Vec<u8> {
    let mut out = Vec::new();
    for line in lines {
        out.extend_from_slice(line);
        out.push(delimiter);
    }
    out
}

/// The distinct lines of `first` that occur in every one of `others`, in order of first appearance.
pub fn common(first: &[u8], others: &[&[u8]], delimiter: u8) -> Vec<u8> {
    let others = sets(others, delimiter);
    let keep = distinct(lines(first, delimiter))
        .into_iter()
        .filter(|line| others.iter().all(|set| set.contains(line)));
    join(keep, delimiter)
}

/// The distinct lines of `first` that occur in none of `others`, in order of first appearance.
pub fn diff(first: &[u8], others: &[&[u8]], delimiter: u8) -> Vec<u8> {
    let others = sets(others, delimiter);
    let keep = distinct(lines(first, delimiter))
        .into_iter()
        .filter(|line| others.iter().all(|set| !set.contains(line)));
    join(keep, delimiter)
}

/// The distinct lines of all inputs, in order of first appearance.
pub fn dedup(inputs: &[&[u8]], delimiter: u8) -> Vec<u8> {
    join(distinct(inputs.iter().flat_map(|input| lines(input, delimiter))), delimiter)
}

fn distinct<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> Vec<&'a [u8]> {
    let mut seen = HashSet::new();
    lines.into_iter().filter(|line| seen.insert(*line)).collect()
}

fn sets<'a>(inputs: &[&'a [u8]], delimiter: u8) -> Vec<HashSet<&'a [u8]>> {
    inputs.iter().map(|input| lines(input, delimiter).into_iter().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_lines_end() {
        let none: [&[u8]; 0] = [];
        assert_eq!(lines(b"", LF), none);
        assert_eq!(lines(b"\n", LF), [b""]);
        assert_eq!(lines(b"a\nb", LF), [b"a", b"b"]);
        assert_eq!(lines(b"a\nb\n", LF), [b"a", b"b"]);
        assert_eq!(lines(b"a\r\n\n\nb", LF), [&b"a\r"[..], b"", b"", b"b"]);
        assert_eq!(lines(b"a\nb\0c", NUL), [&b"a\nb"[..], b"c"]);
    }

    #[test]
    fn the_three_verbs() {
        let (a, b, c): (&[u8], &[u8], &[u8]) = (b"z\ny\nz\n\nx\r\nx", b"x\ny\n\nq", b"y\n\nz");
        assert_eq!(common(a, &[b], LF), b"y\n\nx\n");
        assert_eq!(common(a, &[b, c], LF), b"y\n\n");
        assert_eq!(common(a, &[], LF), b"z\ny\n\nx\r\nx\n");
        assert_eq!(diff(a, &[b], LF), b"z\nx\r\n");
        assert_eq!(diff(a, &[b, c], LF), b"x\r\n");
        assert_eq!(dedup(&[b, c], LF), b"x\ny\n\nq\nz\n");
        assert_eq!(dedup(&[b""], LF), b"");
        assert_eq!(dedup(&[b"a\0b\0a"], NUL), b"a\0b\0");
    }
}
