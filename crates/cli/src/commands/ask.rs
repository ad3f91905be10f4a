//! `check` of passwords that are typed at a terminal: they are not shown, and kept nowhere.

use std::io::{IsTerminal as _, Read as _, Write as _};

use petal::BatchResults;
use petal_lines::{Fields, FilterGroup, LineFilter as _, LineHash as _, Source, Transform};

use super::print;
use crate::args::CheckArgs;
use crate::error::{Failure, Outcome, Result};
use crate::process::hidden_terminal::HiddenTerminal;

/// Returns whether keys are typed.
pub(super) fn are_typed(inputs: &[Source]) -> bool {
    inputs.iter().any(|input| *input.place() == Source::Stdin) && std::io::stdin().is_terminal()
}

/// Returns an error for what goes with lines only: typed passwords would be shown.
pub(super) fn refuse_options(args: &CheckArgs, inputs: &[Source], fields: &Fields) -> Result<()> {
    let others = [
        (args.invert, "-v"),
        (args.count, "-c"),
        (args.which, "--which"),
        (args.output.is_some(), "-o"),
        (args.allow.is_some(), "--allow"),
        (args.compress.compress.is_some(), "--compress"),
        (matches!(fields, Fields::Columns(_)), "--column"),
        (matches!(fields, Fields::Json(_)), "--json-key"),
        (inputs.len() > 1, "other inputs"),
    ];
    match others.iter().find(|(is_given, _)| *is_given) {
        None => Ok(()),
        Some((_, other)) => Err(Failure::Message(format!(
            "standard input: is a terminal, which would show passwords that are typed, with {other}; leave \
             that out, or use a pipe"
        ))),
    }
}

/// Reads keys until the end of the input, and says of each whether a filter contains it; the filters look up
/// these digests of keys.
pub(super) fn run(filters: &FilterGroup<'_>, digests: &[&Transform]) -> Result<Outcome> {
    let failed = |error: std::io::Error| Failure::Message(format!("standard input: {error}"));
    let hash = filters.line_hash();
    let (mut words, mut found) = (Vec::new(), BatchResults::new());
    let mut outcome = Outcome::NoneFound;
    let _hidden = HiddenTerminal::new().map_err(|error| failed(error.into()))?;
    loop {
        show("key: ");
        let typed = read_line().map_err(failed)?;
        show("\n");
        let key = match typed {
            Typed::Line(key) => key,
            Typed::End => return Ok(outcome),
            Typed::Interrupt => return Ok(Outcome::Interrupted),
        };
        words.clear();
        if let Err(bad) = hash.hash_lines(std::iter::once(&key[..]), &mut words) {
            show(&format!("{}\n", bad.why));
            continue;
        }
        if let Some(digest) = digests.iter().find(|digest| digest.may_have_computed(&key)) {
            show(&format!("note: the key looks like a result of {digest} and is hashed again\n"));
        }
        filters.contains_hashes(&words, &mut found)?;
        let is_known = found.count_ones() > 0;
        if is_known {
            outcome = Outcome::Done;
        }
        print(if is_known { "known\n" } else { "not known\n" })?;
    }
}

/// What was typed at a hidden terminal.
enum Typed {
    Line(Vec<u8>),
    End,
    Interrupt,
}

const INTERRUPT: u8 = 3;
const END: u8 = 4;
const BACKSPACE: [u8; 2] = [8, 127];

fn read_line() -> std::io::Result<Typed> {
    let mut line = Vec::new();
    loop {
        let mut byte = [0];
        if std::io::stdin().lock().read(&mut byte)? == 0 {
            return Ok(Typed::End);
        }
        match byte[0] {
            b'\n' | b'\r' => return Ok(Typed::Line(line)),
            INTERRUPT => return Ok(Typed::Interrupt),
            END if line.is_empty() => return Ok(Typed::End),
            erase if BACKSPACE.contains(&erase) => erase_character(&mut line),
            byte => line.push(byte),
        }
    }
}

/// Prints a text to standard error; without one the keys are read all the same.
fn show(text: &str) {
    let mut stderr = std::io::stderr();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// Removes the last character in UTF-8.
fn erase_character(line: &mut Vec<u8>) {
    while line.pop().is_some_and(|byte| byte & 0xC0 == 0x80) {}
}
