//! `cargo x words`: finds words that the field does not use, in code and prose, and names the plain ones; and what a
//! merge leaves in a file.
//!
//! Text is split into lower-case words at everything that is not a letter, and where a capital letter follows a small
//! one: identifiers are checked like sentences. docs/reference/glossary.md has the names to use instead.

use std::fs;

use crate::step::{Result, Step, root};

/// Words and phrases to avoid, and what to write instead.
const WORDS: &[(&str, &str)] = &[
    ("anew", "again, from the start"),
    ("as they lie", "in place"),
    ("aside", "temporary file, atomic file"),
    ("aught", "anything"),
    ("be it", "whether … or …"),
    ("betwixt", "between"),
    ("citizen", "a word for what it is"),
    ("errs", "returns false positives"),
    ("foreknown", "known in advance"),
    ("foresee", "estimate"),
    ("foreseen", "estimated, expected"),
    ("foresees", "estimates"),
    ("foretell", "estimate"),
    ("foretelling", "estimating"),
    ("foretells", "estimates"),
    ("foretold", "estimated"),
    ("gave back", "returned, freed"),
    ("give back", "return, free"),
    ("given back", "returned, freed"),
    ("gives back", "returns, frees"),
    ("has to say", "contains, reports"),
    ("hereby", "leave it out"),
    ("how often it errs", "false-positive rate"),
    ("ledger", "fingerprint log"),
    ("ledgers", "fingerprint logs"),
    ("likewise", "also"),
    ("mouth", "front end"),
    ("mouths", "front ends"),
    ("naught", "nothing, zero"),
    ("nobody", "no caller, no thread; or a passive sentence"),
    ("nothing is said", "not specified"),
    ("nought", "nothing, zero"),
    ("of a kind", "of one type"),
    ("parcel", "container"),
    ("parcels", "containers"),
    ("recipe", "specification"),
    ("recipes", "specifications"),
    ("scratchpad", "spill file"),
    ("scratchpads", "spill files"),
    ("shall", "must, will"),
    ("so many", "the number of …, a given number"),
    ("somebody", "the caller, another program"),
    ("thereby", "leave it out"),
    ("therein", "in it"),
    ("thereof", "of it"),
    ("told", "given, set, specified"),
    ("unite", "union, merge"),
    ("united", "merged"),
    ("unites", "merges"),
    ("uniting", "merging"),
    ("what comes", "the input, the keys that follow"),
    ("what is there", "the existing …"),
    ("whatever they", "name the thing"),
    ("wherein", "in which"),
    ("where they lie", "in place"),
    ("which is to say", "that is; or leave it out"),
    ("whichever", "name the thing"),
    ("whoever", "the caller, the user"),
    ("whosoever", "the caller, the user"),
    ("zoo", "all filter types, test inputs"),
];

/// Places where a word is right: the start of a path, and the word. No word: the whole file.
const ALLOWED: &[(&str, &str)] = &[
    ("xtask/src/words.rs", ""),
    // Lists what not to write.
    ("docs/reference/glossary.md", ""),
    // The program of that name.
    ("crates/cli/src/args/", "anew"),
    ("docs/guides/from-other-tools.md", "anew"),
    // A word of the generated URLs, which are fixed by a checksum.
    ("crates/bench/src/corpus.rs", "ledger"),
    // The user `nobody`.
    ("peers/squid/peer.py", "nobody"),
];

/// Files whose words are checked, except test data and measured results.
const ENDS: &[&str] = &[".rs", ".py", ".pyi", ".md", ".toml"];

/// The beginnings of the lines that a merge writes around both sides of a conflict; between them is [`BETWEEN`].
const MARKERS: [&str; 3] = ["<<<<<<<", "|||||||", ">>>>>>>"];

/// The whole line between the sides of a conflict.
const BETWEEN: &str = "=======";

/// Prints every such word and line in tracked files, below `paths` if any are given, and fails if there is one.
pub(crate) fn words(paths: &[&str]) -> Result {
    eprintln!("\n==> words");
    let arguments = [&["ls-files", "--"], paths].concat();
    let files = Step::program("git".as_ref(), &arguments).output().ok_or("git ls-files failed")?;
    let mut count = 0;
    for path in files.lines() {
        // Files that are deleted but still tracked have no words, and others are no text.
        let Ok(text) = fs::read_to_string(root().join(path)) else { continue };
        for number in conflicts(&text) {
            println!("{path}:{number}: a conflict of a merge: resolve it");
            count += 1;
        }
        if !is_prose_or_code(path) {
            continue;
        }
        for (number, word, plain) in find(&text).filter(|(_, word, _)| !is_allowed(path, word)) {
            println!("{path}:{number}: \"{word}\": {plain}");
            count += 1;
        }
    }
    if count == 0 { Ok(()) } else { Err(format!("words: {count} findings")) }
}

/// The numbers of the lines that a merge has left.
fn conflicts(text: &str) -> impl Iterator<Item = usize> {
    let is_marker =
        |line: &str| line == BETWEEN || MARKERS.iter().any(|marker| line.starts_with(marker));
    text.lines().zip(1..).filter(move |(line, _)| is_marker(line)).map(|(_, number)| number)
}

fn is_prose_or_code(path: &str) -> bool {
    let is_data = path.starts_with("testdata/") || path.starts_with("results/");
    !is_data && ENDS.iter().any(|end| path.ends_with(end))
}

fn is_allowed(path: &str, word: &str) -> bool {
    ALLOWED
        .iter()
        .any(|(start, only)| path.starts_with(start) && (only.is_empty() || *only == word))
}

/// The findings in a text: line, word, what to write instead. A phrase may not go over the end of a line.
fn find(text: &str) -> impl Iterator<Item = (usize, &'static str, &'static str)> {
    text.lines().enumerate().flat_map(|(at, line)| {
        let line = format!(" {} ", split(line));
        let hits = WORDS.iter().filter(move |(word, _)| line.contains(&format!(" {word} ")));
        hits.map(move |&(word, plain)| (at + 1, word, plain))
    })
}

/// The words of a line in lower case, with a space between.
fn split(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut small = false;
    for letter in line.chars() {
        if letter.is_uppercase() && small || !letter.is_alphabetic() && !out.ends_with(' ') {
            out.push(' ');
        }
        small = letter.is_lowercase();
        if letter.is_alphabetic() {
            out.extend(letter.to_lowercase());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{conflicts, find};

    #[test]
    fn every_line_that_a_merge_writes_is_found() {
        let text =
            "a\n<<<<<<< HEAD\nb\n||||||| 1a2b\nc\n=======\nd\r\n>>>>>>> topic\n\n=======\r\n";
        assert_eq!(conflicts(text).collect::<Vec<_>>(), [2, 4, 6, 8, 10]);
        let other = " <<<<<<< a\n========\n======= b\nx >>>>>>>\n\"=======\"\n";
        assert_eq!(conflicts(other).count(), 0);
    }

    #[test]
    fn words_are_found_in_prose_and_identifiers() {
        let text = "// What it is told.\nlet so_many = 1;\nstruct ToldKeys;\n/// Whoever; so  many";
        let found: Vec<_> = find(text).map(|(line, word, _)| (line, word)).collect();
        assert_eq!(
            found,
            [(1, "told"), (2, "so many"), (3, "told"), (4, "so many"), (4, "whoever")]
        );
    }

    #[test]
    fn parts_of_words_are_not_words() {
        assert_eq!(find("// retold, shallow; a zoom, BESIDE").count(), 0);
    }
}
