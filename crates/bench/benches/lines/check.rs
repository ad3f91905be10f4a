//! Checks the answer of a command.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use petal_bench::corpus::{AnswerCheck, CheckResult, Corpus};

/// The correct content of the output file.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// Nothing: a filter was built.
    Empty,
    /// A number within these bounds, as the first word.
    Count(u64, u64),
    /// A number of lines within these bounds.
    Lines(u64, u64),
    /// The lines common to both files.
    Common,
    /// The records of the CSV file of A, after a header, whose URLs are common to both files.
    CommonRecords,
    /// Every distinct line of A.
    Distinct,
    /// Every distinct line of both files after its number of occurrences, with white space around the number.
    Counted,
}

/// The result of a check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checked {
    /// The number of lines, or the printed count.
    pub(crate) lines: u64,
    pub(crate) correct: bool,
    /// Whether the lines are in the order of A, then of B. `None` if the order does not matter.
    pub(crate) in_order: Option<bool>,
}

/// Reads and checks the answer in a file.
pub(crate) fn check(corpus: &Corpus, answer: &Answer, file: &Path) -> Result<Checked, String> {
    let read = || File::open(file).map(|file| BufReader::with_capacity(1 << 20, file));
    let number = |lines, correct| Checked { lines, correct, in_order: None };
    let lines = |check| read().and_then(|answer| check_lines(check, answer, add_record));
    let checked = match *answer {
        Answer::Empty => read().and_then(count).map(|lines| number(lines, lines == 0)),
        Answer::Count(low, high) => read().and_then(first_number).map(|count| {
            number(count.unwrap_or(0), count.is_some_and(|n| (low..=high).contains(&n)))
        }),
        Answer::Lines(low, high) => {
            read().and_then(count).map(|lines| number(lines, (low..=high).contains(&lines)))
        }
        Answer::Common => lines(AnswerCheck::of_common(corpus)),
        Answer::CommonRecords => read().and_then(|mut answer| {
            answer.skip_until(b'\n')?;
            check_lines(AnswerCheck::of_common(corpus), answer, add_record)
        }),
        Answer::Distinct => lines(AnswerCheck::of_all(corpus)),
        Answer::Counted => {
            read().and_then(|answer| check_lines(AnswerCheck::of_both(corpus), answer, add_counted))
        }
    };
    checked.map_err(|e| format!("cannot read the answer: {e}"))
}

fn check_lines(
    mut check: AnswerCheck,
    mut answer: impl BufRead,
    add: fn(&mut AnswerCheck, &[u8]),
) -> io::Result<Checked> {
    let mut line = Vec::new();
    while answer.read_until(b'\n', &mut line)? > 0 {
        add(&mut check, line.strip_suffix(b"\n").unwrap_or(&line));
        line.clear();
    }
    let CheckResult { lines, exact, in_order, .. } = check.result();
    Ok(Checked { lines, correct: exact, in_order: Some(in_order) })
}

/// Adds a URL, or a record whose last field it is. A URL has no comma.
fn add_record(check: &mut AnswerCheck, record: &[u8]) {
    check.add(record.rsplit(|&byte| byte == b',').next().unwrap_or_default());
}

/// Adds a line that follows its count. Without a number the count is 0, which is wrong.
fn add_counted(check: &mut AnswerCheck, record: &[u8]) {
    let record = record.trim_ascii_start();
    let end = record.iter().position(u8::is_ascii_whitespace).unwrap_or(record.len());
    let (count, line) = record.split_at(end);
    let count = str::from_utf8(count).ok().and_then(|count| count.parse().ok());
    check.add_counted(count.unwrap_or(0), line.get(1..).unwrap_or_default());
}

fn count(mut answer: impl BufRead) -> io::Result<u64> {
    let mut lines = 0;
    loop {
        let bytes = answer.fill_buf()?;
        if bytes.is_empty() {
            return Ok(lines);
        }
        lines += bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
        let length = bytes.len();
        answer.consume(length);
    }
}

fn first_number(mut answer: impl BufRead) -> io::Result<Option<u64>> {
    let mut line = String::new();
    answer.read_line(&mut line)?;
    Ok(line.split_whitespace().next().and_then(|word| word.parse().ok()))
}
