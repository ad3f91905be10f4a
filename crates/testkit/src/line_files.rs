//! Files with difficult lines.

use crate::rng::Rng;

/// Properties of generated files.
#[derive(Clone, Copy, Debug)]
pub struct FileSpec {
    /// The number of files.
    pub files: usize,
    /// The maximum number of lines in a file; some files are small or empty.
    pub max_lines: usize,
    /// The maximum number of bytes in a line. Most lines are short; about one in 64 is near this length.
    pub max_len: usize,
    /// The byte that ends a line and is never inside one.
    pub delimiter: u8,
}

impl FileSpec {
    /// Returns the properties of three small files with LF.
    pub fn small() -> Self {
        Self { files: 3, max_lines: 300, max_len: 5_000, delimiter: b'\n' }
    }
}

/// Returns files with many common lines, drawn with repetition from one pool.
///
/// The pool contains the empty line, lines that end in CR, lines with NUL, LF (for another delimiter), 0xFF and
/// invalid UTF-8, prefixes of other lines, lines with leading and trailing blanks, and long lines. About half of the
/// files have no final delimiter; some are empty; some repeat a single line.
pub fn overlapping_files(seed: u64, spec: FileSpec) -> Vec<Vec<u8>> {
    let mut rng = Rng::new(seed);
    let size = 1 + rng.below(spec.max_lines.max(1));
    let pool: Vec<Vec<u8>> = (0..size).map(|_| line(&mut rng, spec)).collect();
    (0..spec.files).map(|_| file(&mut rng, &pool, spec)).collect()
}

/// Returns one line without a delimiter.
pub fn line(rng: &mut Rng, spec: FileSpec) -> Vec<u8> {
    let mut line = match rng.below(16) {
        0 => Vec::new(),
        1 => b"\r".to_vec(),
        2 => [b"crlf-", short(rng).as_slice(), b"\r"].concat(),
        3 => vec![0; 1 + rng.below(4)],
        4 => vec![0xff; 1 + rng.below(4)],
        5 => [b" ", short(rng).as_slice(), b" \t"].concat(),
        6 => b"a".repeat(1 + rng.below(40)),
        7 => rng.next_u64().to_le_bytes()[..1 + rng.below(8)].to_vec(),
        8 => {
            let len = rng.below(200);
            rng.bytes(len)
        }
        9 if rng.one_in(4) => {
            let len = spec.max_len - rng.below(spec.max_len / 8 + 1);
            let mut long = vec![*rng.pick(b"xyz"); len];
            if let Some(last) = long.last_mut() {
                *last = rng.next_u64() as u8;
            }
            long
        }
        10 => format!("https://example.org/{}\u{e9}?q=\u{6f22}", rng.below(50)).into_bytes(),
        _ => short(rng),
    };
    line.truncate(spec.max_len);
    for byte in &mut line {
        if *byte == spec.delimiter {
            *byte = if spec.delimiter == b'\n' { 0 } else { b'\n' };
        }
    }
    line
}

fn short(rng: &mut Rng) -> Vec<u8> {
    format!("key{}", rng.below(1_000)).into_bytes()
}

fn file(rng: &mut Rng, pool: &[Vec<u8>], spec: FileSpec) -> Vec<u8> {
    let count = match rng.below(10) {
        0 => 0,
        1 => 1,
        _ => rng.below(spec.max_lines + 1),
    };
    let one_line_only = rng.one_in(12);
    let first = rng.below(pool.len());
    let mut out = Vec::new();
    for at in 0..count {
        let line = match rng.below(5) {
            _ if one_line_only => &pool[first],
            0 => &line(rng, spec),
            _ => rng.pick(pool),
        };
        out.extend_from_slice(line);
        if at + 1 < count || rng.one_in(2) {
            out.push(spec.delimiter);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::lines;

    #[test]
    fn files_contain_every_kind_of_line() {
        let files: Vec<_> =
            (0..200).flat_map(|seed| overlapping_files(seed, FileSpec::small())).collect();
        let lines: Vec<_> = files.iter().flat_map(|file| lines(file, b'\n')).collect();
        assert!(files.iter().any(|file| file.is_empty()));
        assert!(files.iter().any(|file| !file.is_empty() && !file.ends_with(b"\n")));
        assert!(lines.iter().any(|line| line.is_empty()));
        assert!(lines.iter().any(|line| line.ends_with(b"\r")));
        assert!(lines.iter().any(|line| line.contains(&0)));
        assert!(lines.iter().any(|line| line.contains(&0xff)));
        assert!(lines.iter().any(|line| std::str::from_utf8(line).is_err()));
        assert!(lines.iter().any(|line| line.len() > 4_000));
        assert!(lines.iter().all(|line| line.len() <= 5_000));
    }

    #[test]
    fn lines_contain_no_delimiter_and_depend_on_the_seed() {
        let spec = FileSpec { delimiter: 0, ..FileSpec::small() };
        let files = overlapping_files(7, spec);
        assert_eq!(files, overlapping_files(7, spec));
        assert!(
            (0..50)
                .flat_map(|seed| overlapping_files(seed, spec))
                .any(|file| file.contains(&b'\n'))
        );
        let mut rng = Rng::new(3);
        assert!((0..2_000).all(|_| !line(&mut rng, spec).contains(&0)));
    }

    #[test]
    fn files_share_lines() {
        let shared = (0..50).filter(|&seed| {
            let files = overlapping_files(seed, FileSpec::small());
            !crate::model::common(&files[0], &[&files[1]], b'\n').is_empty()
        });
        assert!(shared.count() > 25);
    }
}
