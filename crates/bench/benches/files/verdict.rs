//! Whether an answer is right.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use petal_bench::corpus::{self, Corpus, Judge};

use crate::plan::Answer;

/// What an answer turned out to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Verdict {
    /// The number of lines that it is, or tells.
    pub(crate) lines: u64,
    pub(crate) right: bool,
    /// Whether lines are in A's order, where lines were asked for.
    pub(crate) in_order: Option<bool>,
}

/// Reads and judges the answer in a file.
pub(crate) fn judge(corpus: &Corpus, answer: &Answer, file: &Path) -> Result<Verdict, String> {
    let open = || File::open(file).map(|file| BufReader::with_capacity(1 << 20, file));
    let told = |lines, right| Verdict { lines, right, in_order: None };
    let by = |judge| open().and_then(|answer| see_all(judge, answer));
    let verdict = match *answer {
        Answer::Silence => open().and_then(count).map(|lines| told(lines, lines == 0)),
        Answer::Count(low, high) => open().and_then(first_number).map(|number| {
            told(number.unwrap_or(0), number.is_some_and(|n| (low..=high).contains(&n)))
        }),
        Answer::Lines(low, high) => {
            open().and_then(count).map(|lines| told(lines, (low..=high).contains(&lines)))
        }
        Answer::Common => by(Judge::of_common(corpus)),
        Answer::Distinct => by(Judge::of_all(corpus)),
    };
    verdict.map_err(|e| format!("cannot read the answer: {e}"))
}

fn see_all(mut judge: Judge, mut answer: impl BufRead) -> io::Result<Verdict> {
    let mut line = Vec::new();
    while answer.read_until(b'\n', &mut line)? > 0 {
        judge.see(line.strip_suffix(b"\n").unwrap_or(&line));
        line.clear();
    }
    let corpus::Verdict { lines, exact, in_order, .. } = judge.verdict();
    Ok(Verdict { lines, right: exact, in_order: Some(in_order) })
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
