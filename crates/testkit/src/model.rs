//! Reference implementations of the set operations over lines of bytes.
//!
//! A line ends at the delimiter (LF or NUL), which is not part of it. The last line may have no delimiter; an input
//! that ends in the delimiter has no empty line after it. All other bytes, including CR, belong to the line. In the
//! output every line ends with the delimiter.

use std::collections::{HashMap, HashSet};

/// The usual delimiter.
pub const LF: u8 = b'\n';
/// The alternative delimiter.
pub const NUL: u8 = 0;

/// Returns the lines of an input without their delimiters.
pub fn lines(input: &[u8], delimiter: u8) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = input.split(|&byte| byte == delimiter).collect();
    if lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    lines
}

/// Returns the lines as a file, each followed by the delimiter.
pub fn join<'a>(lines: impl IntoIterator<Item = &'a [u8]>, delimiter: u8) -> Vec<u8> {
    let mut out = Vec::new();
    for line in lines {
        out.extend_from_slice(line);
        out.push(delimiter);
    }
    out
}

/// Returns the distinct lines of `first` that occur in all of `others`, in order of first appearance.
pub fn common(first: &[u8], others: &[&[u8]], delimiter: u8) -> Vec<u8> {
    let others = sets(others, delimiter);
    let keep = distinct(lines(first, delimiter))
        .into_iter()
        .filter(|line| others.iter().all(|set| set.contains(line)));
    join(keep, delimiter)
}

/// Returns the distinct lines of `first` that occur in at least `number` of `others`, in order of first appearance.
pub fn at_least(number: usize, first: &[u8], others: &[&[u8]], delimiter: u8) -> Vec<u8> {
    let others = sets(others, delimiter);
    let keep = distinct(lines(first, delimiter))
        .into_iter()
        .filter(|line| others.iter().filter(|set| set.contains(line)).count() >= number);
    join(keep, delimiter)
}

/// Returns the distinct lines of `first` that occur in none of `others`, in order of first appearance.
pub fn diff(first: &[u8], others: &[&[u8]], delimiter: u8) -> Vec<u8> {
    let others = sets(others, delimiter);
    let keep = distinct(lines(first, delimiter))
        .into_iter()
        .filter(|line| others.iter().all(|set| !set.contains(line)));
    join(keep, delimiter)
}

/// Returns the distinct lines of `first` that are not in `second`, then those of `second` that are not in `first`.
pub fn symdiff(first: &[u8], second: &[u8], delimiter: u8) -> Vec<u8> {
    [diff(first, &[second], delimiter), diff(second, &[first], delimiter)].concat()
}

/// Returns the distinct lines of all inputs, in order of first appearance.
pub fn dedup(inputs: &[&[u8]], delimiter: u8) -> Vec<u8> {
    join(distinct(inputs.iter().flat_map(|input| lines(input, delimiter))), delimiter)
}

/// Returns the distinct lines of all inputs, in order of last appearance.
pub fn dedup_last(inputs: &[&[u8]], delimiter: u8) -> Vec<u8> {
    let backwards = inputs.iter().rev().flat_map(|input| lines(input, delimiter).into_iter().rev());
    join(distinct(backwards).into_iter().rev(), delimiter)
}

/// Returns the distinct lines that occur at least twice in all inputs together, in order of first appearance.
pub fn duplicates(inputs: &[&[u8]], delimiter: u8) -> Vec<u8> {
    join(
        counts(inputs, delimiter).into_iter().filter(|line| line.1 > 1).map(|line| line.0),
        delimiter,
    )
}

/// Returns the lines that occur exactly once in all inputs together, in order.
pub fn unique(inputs: &[&[u8]], delimiter: u8) -> Vec<u8> {
    join(
        counts(inputs, delimiter).into_iter().filter(|line| line.1 == 1).map(|line| line.0),
        delimiter,
    )
}

/// Returns the distinct lines of all inputs, each with its number of appearances, in order of first appearance.
pub fn counts<'a>(inputs: &[&'a [u8]], delimiter: u8) -> Vec<(&'a [u8], u64)> {
    let all = || inputs.iter().flat_map(|input| lines(input, delimiter));
    let mut counts = HashMap::new();
    all().for_each(|line| *counts.entry(line).or_insert(0) += 1);
    distinct(all()).into_iter().map(|line| (line, counts[line])).collect()
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
    fn lines_are_split_at_delimiters() {
        let none: [&[u8]; 0] = [];
        assert_eq!(lines(b"", LF), none);
        assert_eq!(lines(b"\n", LF), [b""]);
        assert_eq!(lines(b"a\nb", LF), [b"a", b"b"]);
        assert_eq!(lines(b"a\nb\n", LF), [b"a", b"b"]);
        assert_eq!(lines(b"a\r\n\n\nb", LF), [&b"a\r"[..], b"", b"", b"b"]);
        assert_eq!(lines(b"a\nb\0c", NUL), [&b"a\nb"[..], b"c"]);
    }

    #[test]
    fn set_operations_on_small_inputs() {
        let (a, b, c): (&[u8], &[u8], &[u8]) = (b"z\ny\nz\n\nx\r\nx", b"x\ny\n\nq", b"y\n\nz");
        assert_eq!(common(a, &[b], LF), b"y\n\nx\n");
        assert_eq!(common(a, &[b, c], LF), b"y\n\n");
        assert_eq!(common(a, &[], LF), b"z\ny\n\nx\r\nx\n");
        assert_eq!(at_least(1, a, &[b, c], LF), b"z\ny\n\nx\n");
        assert_eq!(at_least(2, a, &[b, c], LF), b"y\n\n");
        assert_eq!(diff(a, &[b], LF), b"z\nx\r\n");
        assert_eq!(diff(a, &[b, c], LF), b"x\r\n");
        assert_eq!(symdiff(b, c, LF), b"x\nq\nz\n");
        assert_eq!(dedup(&[b, c], LF), b"x\ny\n\nq\nz\n");
        assert_eq!(dedup(&[b""], LF), b"");
        assert_eq!(dedup(&[b"a\0b\0a"], NUL), b"a\0b\0");
        assert_eq!(duplicates(&[a, c], LF), b"z\ny\n\n");
        assert_eq!(unique(&[a, c], LF), b"x\r\nx\n");
        assert_eq!(counts(&[b, b"q\nx"], LF), [(&b"x"[..], 2), (b"y", 1), (b"", 1), (b"q", 2)]);
    }
}
