//! Compares how the inputs of a job spell their keys: line ends, case, byte order marks. Reports
//! differences.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::source::Source;
use crate::keys::{HexCase, LineEnds, SeenSpelling, Spelling, SpellingDifference};
use crate::progress::{Note, Progress};

/// How the inputs of a job spell their keys, by name of the input. Clones share the data, so lists that
/// a job reads separately are compared with its inputs, too.
#[derive(Clone, Debug, Default)]
pub struct Spellings(Arc<Mutex<Inputs>>);

type Inputs = BTreeMap<String, InputSpelling>;

#[derive(Debug, Default)]
struct InputSpelling {
    /// Standard input only: the offset at its first opening. Later openings seek to it.
    start: Option<u64>,
    has_mark: bool,
    /// Whether its first bytes have CR, but no LF.
    begins_with_cr_only: bool,
    keys: Arc<SeenSpelling>,
    /// Whether all its keys were read.
    complete: bool,
    mark_reported: bool,
    cr_reported: bool,
    ends_reported: bool,
    case_reported: bool,
}

impl InputSpelling {
    fn ends(&self) -> Option<LineEnds> {
        self.keys.get().line_ends()
    }

    fn has_ends(&self, ends: LineEnds) -> bool {
        self.ends() == Some(ends)
    }

    fn has_case(&self, case: HexCase) -> bool {
        self.complete && self.keys.get().hex_case() == Some(case)
    }

    /// Returns whether CRs, not LFs, seem to end its lines: an LF may follow the first bytes.
    fn is_one_line_with_cr(&self) -> bool {
        self.begins_with_cr_only && self.complete && self.ends().is_none()
    }
}

/// Sets the flag of all inputs that `is` selects. Returns the name of the first of those that did not
/// have it, and the number of the others; `None` if all had it.
fn flag_new(
    inputs: &mut Inputs,
    is: impl Fn(&InputSpelling) -> bool,
    flag: fn(&mut InputSpelling) -> &mut bool,
) -> Option<(String, u64)> {
    let mut new = inputs.iter_mut().filter_map(|(name, input)| {
        (is(input) && !std::mem::replace(flag(input), true)).then_some(name)
    });
    let first = new.next()?.clone();
    Some((first, new.count() as u64))
}

/// Returns the name of the first input that `is` selects.
fn find(inputs: &Inputs, is: impl Fn(&InputSpelling) -> bool) -> Option<String> {
    inputs.iter().find(|(_, input)| is(input)).map(|(name, _)| name.clone())
}

impl Spellings {
    fn lock(&self) -> MutexGuard<'_, Inputs> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the spelling of all keys that were read of these inputs.
    #[must_use]
    pub fn of(&self, inputs: &[Source]) -> Spelling {
        let known = self.lock();
        let read = inputs.iter().filter_map(|input| known.get(&input.place().to_string()));
        read.fold(Spelling::default(), |all, one| all.union(one.keys.get()))
    }

    /// Returns the spelling of all keys that the job has read.
    #[must_use]
    pub fn all(&self) -> Spelling {
        self.lock().values().fold(Spelling::default(), |all, one| all.union(one.keys.get()))
    }

    /// Returns how the keys that the job has read differ from those of a filter, with the name of an
    /// input: see [`spelling_differences`](crate::spelling_differences).
    pub(crate) fn differences(
        &self,
        filter: Option<Spelling>,
        found: bool,
    ) -> Vec<(SpellingDifference, String)> {
        let has_keys = |input: &InputSpelling| input.keys.get() != Spelling::default();
        let Some(name) = find(&self.lock(), has_keys) else { return Vec::new() };
        let mut differences = self.all().differences(filter);
        differences.retain(|difference| difference.matters(found));
        differences.into_iter().map(|difference| (difference, name.clone())).collect()
    }

    /// Returns the record in which passes over an input note the spelling of its keys.
    pub(super) fn seen(&self, input: &str) -> Arc<SeenSpelling> {
        Arc::clone(&self.lock().entry(input.to_owned()).or_default().keys)
    }

    /// Returns the offset at which standard input was first opened; sets it to `here` at the first
    /// call.
    pub(super) fn start_of(&self, input: &str, here: u64) -> u64 {
        *self.lock().entry(input.to_owned()).or_default().start.get_or_insert(here)
    }

    /// Adds what the first bytes of an input show: a byte order mark, CRs without an LF, line ends.
    pub(super) fn add_first_bytes(
        &self,
        input: &str,
        has_mark: bool,
        cr_only: bool,
        ends: Spelling,
    ) {
        let mut inputs = self.lock();
        let input = inputs.entry(input.to_owned()).or_default();
        input.has_mark |= has_mark;
        input.begins_with_cr_only |= cr_only;
        input.keys.add(ends);
    }

    /// Sets that all keys of an input were read.
    pub(super) fn set_complete(&self, input: &str) {
        self.lock().entry(input.to_owned()).or_default().complete = true;
    }

    /// Reports marks and differences between inputs that have not been reported.
    pub(super) fn note(&self, progress: &dyn Progress) {
        let inputs = &mut *self.lock();
        if let Some((name, more)) =
            flag_new(inputs, |input| input.has_mark, |i| &mut i.mark_reported)
        {
            progress.note(Note::ByteOrderMark { input: &name, more });
        }
        let is_one_line = InputSpelling::is_one_line_with_cr;
        if let Some((name, more)) = flag_new(inputs, is_one_line, |i| &mut i.cr_reported) {
            progress.note(Note::CrLineEnds { input: &name, more });
        }
        let has_both = |input: &InputSpelling| input.has_ends(LineEnds::Both);
        if let Some((name, more)) = flag_new(inputs, has_both, |i| &mut i.ends_reported) {
            progress.note(Note::MixedLineEnds { crlf: &name, more, lf: &name });
        }
        if let Some(lf) = find(inputs, |input| input.has_ends(LineEnds::Lf)) {
            let has_crlf = |input: &InputSpelling| input.has_ends(LineEnds::Crlf);
            if let Some((crlf, more)) = flag_new(inputs, has_crlf, |i| &mut i.ends_reported) {
                progress.note(Note::MixedLineEnds { crlf: &crlf, more, lf: &lf });
            }
        }
        if let Some(upper) = find(inputs, |input| input.has_case(HexCase::Upper)) {
            let is_lower = |input: &InputSpelling| input.has_case(HexCase::Lower);
            if let Some((lower, more)) = flag_new(inputs, is_lower, |i| &mut i.case_reported) {
                progress.note(Note::MixedHexCase { lower: &lower, more, upper: &upper });
            }
        }
    }
}
