//! How the keys of each input of a job are spelled, and what that means for the others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::source::Source;
use crate::keys::{HexCase, LineEnds, SeenSpelling, Spelling, SpellingDifference};
use crate::progress::{Note, Progress};

/// How the keys of the inputs of a job are spelled, by name of the input. Clones share it, so lists
/// that a job reads for themselves are compared with its inputs.
#[derive(Clone, Debug, Default)]
pub struct Spellings(Arc<Mutex<BTreeMap<String, Known>>>);

/// What is known of an input.
#[derive(Debug, Default)]
struct Known {
    /// Where it began if it is standard input: a job may open it several times, for the same bytes.
    start: Option<u64>,
    /// Whether it begins with a byte order mark.
    mark: bool,
    /// Whether its first bytes have CR, but no LF.
    cr: bool,
    spelling: Arc<SeenSpelling>,
    /// Whether all its keys were read.
    complete: bool,
    mark_noted: bool,
    cr_noted: bool,
    ends_noted: bool,
    case_noted: bool,
}

impl Known {
    fn ends(&self) -> Option<LineEnds> {
        self.spelling.get().line_ends()
    }

    fn has_case(&self, case: HexCase) -> bool {
        self.complete && self.spelling.get().hex_case() == Some(case)
    }
}

impl Spellings {
    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the spelling of all keys that were read of these inputs.
    #[must_use]
    pub fn of(&self, inputs: &[Source]) -> Spelling {
        let known = self.known();
        let read = inputs.iter().filter_map(|input| known.get(&input.to_string()));
        read.fold(Spelling::default(), |all, one| all.union(one.spelling.get()))
    }

    /// Returns the spelling of all keys that the job has read.
    #[must_use]
    pub fn all(&self) -> Spelling {
        let known = self.known();
        known.values().fold(Spelling::default(), |all, one| all.union(one.spelling.get()))
    }

    /// Returns how the keys that the job has read differ from those of a filter, with the name of the
    /// first input with keys. `None`: the filter does not record how its keys are spelled. `found`: the
    /// job found some of them in the filter, or looked for none; then it does not matter that the filter
    /// has lines that end in both ways.
    #[must_use]
    pub fn differences(
        &self,
        filter: Option<Spelling>,
        found: bool,
    ) -> Vec<(SpellingDifference, String)> {
        let mut differences = self.all().differences(filter);
        differences.retain(|difference| difference.matters(found));
        let known = self.known();
        let has_keys = |known: &Known| known.spelling.get() != Spelling::default();
        let first = known.iter().find(|(_, known)| has_keys(known)).map(|(name, _)| name);
        first.map_or_else(Vec::new, |name| {
            differences.into_iter().map(|difference| (difference, name.clone())).collect()
        })
    }

    /// Returns what passes note of an input's keys.
    pub(super) fn seen(&self, input: &str) -> Arc<SeenSpelling> {
        Arc::clone(&self.known().entry(input.to_owned()).or_default().spelling)
    }

    /// Returns where standard input began: here, if the job opens it for the first time.
    pub(super) fn start_of(&self, input: &str, here: u64) -> u64 {
        *self.known().entry(input.to_owned()).or_default().start.get_or_insert(here)
    }

    /// Adds the result of a look at the first bytes of an input.
    pub(super) fn add_begin(&self, input: &str, mark: bool, cr: bool, ends: Spelling) {
        let mut known = self.known();
        let known = known.entry(input.to_owned()).or_default();
        known.mark |= mark;
        known.cr |= cr;
        known.spelling.add(ends);
    }

    /// Sets that all keys of an input were read.
    pub(super) fn set_complete(&self, input: &str) {
        self.known().entry(input.to_owned()).or_default().complete = true;
    }

    /// Reports marks and differences between inputs that have not been reported.
    pub(super) fn note(&self, progress: &dyn Progress) {
        let mut known = self.known();
        let mut marks = known.iter_mut().filter(|(_, input)| input.mark && !input.mark_noted);
        if let Some((name, first)) = marks.next() {
            first.mark_noted = true;
            let more = marks.map(|(_, input)| input.mark_noted = true).count() as u64;
            progress.note(Note::ByteOrderMark { input: name, more });
        }
        // What follows the first bytes may have an LF.
        let is_one_line = |input: &Known| input.cr && input.complete && input.ends().is_none();
        let mut cr = known.iter_mut().filter(|(_, input)| is_one_line(input) && !input.cr_noted);
        if let Some((name, first)) = cr.next() {
            first.cr_noted = true;
            let more = cr.map(|(_, input)| input.cr_noted = true).count() as u64;
            progress.note(Note::CrLineEnds { input: name, more });
        }
        let mut both = known
            .iter_mut()
            .filter(|(_, input)| input.ends() == Some(LineEnds::Both) && !input.ends_noted);
        if let Some((name, first)) = both.next() {
            first.ends_noted = true;
            let more = both.map(|(_, input)| input.ends_noted = true).count() as u64;
            progress.note(Note::MixedLineEnds { crlf: name, more, lf: name });
        }
        let lf = known.iter().find(|(_, input)| input.ends() == Some(LineEnds::Lf));
        if let Some(lf) = lf.map(|(name, _)| name.clone()) {
            let is_new = |input: &Known| input.ends() == Some(LineEnds::Crlf) && !input.ends_noted;
            let mut crlf = known.iter_mut().filter(|(_, input)| is_new(input));
            if let Some((name, first)) = crlf.next() {
                first.ends_noted = true;
                let more = crlf.map(|(_, input)| input.ends_noted = true).count() as u64;
                progress.note(Note::MixedLineEnds { crlf: name, more, lf: &lf });
            }
        }
        let upper = known.iter().find(|(_, input)| input.has_case(HexCase::Upper));
        if let Some(upper) = upper.map(|(name, _)| name.clone()) {
            let is_new = |input: &Known| input.has_case(HexCase::Lower) && !input.case_noted;
            let mut lower = known.iter_mut().filter(|(_, input)| is_new(input));
            if let Some((name, first)) = lower.next() {
                first.case_noted = true;
                let more = lower.map(|(_, input)| input.case_noted = true).count() as u64;
                progress.note(Note::MixedHexCase { lower: name, more, upper: &upper });
            }
        }
    }
}
