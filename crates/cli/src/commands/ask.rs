//! `check` of passwords that are typed at a terminal: they are not shown, and kept nowhere.

use std::io::{IsTerminal as _, Read as _, Write as _};
use std::os::fd::AsFd as _;

use petal::BatchResults;
use petal_lines::{FilterGroup, LineFilter as _, LineHash as _, Source};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use super::print;
use crate::args::CheckArgs;
use crate::error::{Failure, Outcome, Result};

/// Returns whether keys are typed, and only whether they are known is wanted.
pub(super) fn is_asked(args: &CheckArgs, inputs: &[Source]) -> bool {
    let is_plain = !args.invert && !args.count && !args.which;
    let is_plain = is_plain && args.output.is_none() && args.allow.is_none();
    is_plain && matches!(inputs, [Source::Stdin]) && std::io::stdin().is_terminal()
}

/// Reads keys until the end of the input, and says of each whether a filter contains it.
pub(super) fn run(filters: &FilterGroup<'_>) -> Result<Outcome> {
    let hash = filters.line_hash();
    let (mut words, mut found) = (Vec::new(), BatchResults::new());
    let mut outcome = Outcome::NoneFound;
    while let Some(key) = read_hidden("key: ")? {
        words.clear();
        let hashed = hash.hash_lines(std::iter::once(&key[..]), &mut words);
        hashed.map_err(|bad| Failure::Message(bad.why))?;
        filters.contains_hashes(&words, &mut found)?;
        let is_known = found.count_ones() > 0;
        if is_known {
            outcome = Outcome::Done;
        }
        print(if is_known { "known\n" } else { "not known\n" })?;
    }
    Ok(outcome)
}

/// A terminal that shows nothing that is typed, and sends every key at once; as before when it is
/// dropped. A signal from the keyboard would end the program before that, so it is only a key.
struct HiddenTerminal(Termios);

impl HiddenTerminal {
    fn new() -> rustix::io::Result<Self> {
        let before = tcgetattr(std::io::stdin().as_fd())?;
        let mut hidden = before.clone();
        hidden.local_modes -= LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        tcsetattr(std::io::stdin().as_fd(), OptionalActions::Now, &hidden)?;
        Ok(Self(before))
    }
}

impl Drop for HiddenTerminal {
    fn drop(&mut self) {
        let _ = tcsetattr(std::io::stdin().as_fd(), OptionalActions::Now, &self.0);
    }
}

const INTERRUPT: u8 = 3;
const END: u8 = 4;
const BACKSPACE: [u8; 2] = [8, 127];

/// Reads a line that is not shown; `None` at the end of the input.
fn read_hidden(prompt: &str) -> Result<Option<Vec<u8>>> {
    let failed = |error: std::io::Error| Failure::Message(format!("standard input: {error}"));
    let terminal = HiddenTerminal::new().map_err(|error| failed(error.into()))?;
    show(prompt);
    let mut line = Vec::new();
    let ended = loop {
        let mut byte = [0];
        match std::io::stdin().lock().read(&mut byte).map_err(failed)? {
            0 => break true,
            _ => match byte[0] {
                b'\n' | b'\r' => break false,
                INTERRUPT => break true,
                END if line.is_empty() => break true,
                erase if BACKSPACE.contains(&erase) => erase_character(&mut line),
                byte => line.push(byte),
            },
        }
    };
    drop(terminal);
    show("\n");
    Ok((!ended).then_some(line))
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
