//! The steps that all exact work is made of: a filter filled with lines, and lines that filters
//! cannot rule out made into records.
//!
//! On one machine [`exact`](crate::exact) does them one after the other, with streams in memory
//! and one temporary file between them; past one machine [`ranges`](crate::ranges) does them task
//! by task, with files between them. What happens to a line is the same, and stands here.
//!
//! Invariant: what a step makes of a line depends on the line and the keys of the job alone,
//! never on its neighbours or on where the inputs are cut.
//!
//! Cost: one pass each, a filter key a line; a fingerprint for each line that becomes a record.

use petal::{Answers, BloomFilter, Membership};

use crate::error::Result;
use crate::fingerprint::Hashes;
use crate::input::Input;
use crate::pass::{Batch, Flow, Pass, Scratch, Seen};
use crate::resolve::{Digits, FIRST_RECORD, OTHER_RECORD, first_record};
use crate::spill::{Spill, Stream};

/// Memory for keys on their way to the next filter.
pub(crate) const KEY_LOG: u64 = 256 << 10;

/// Whose records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    First,
    Other,
}

impl Role {
    pub(crate) fn record(self) -> usize {
        match self {
            Self::First => FIRST_RECORD,
            Self::Other => OTHER_RECORD,
        }
    }
}

/// Where filter keys go, to make the next filter.
pub(crate) enum Keys<'a> {
    /// Into it at once.
    Filter(BloomFilter),
    /// Aside, until there is room for it.
    Log(Spill<'a>),
}

impl Keys<'_> {
    fn take(&mut self, keys: &[u64], answers: &mut Answers) -> Result<()> {
        match self {
            Self::Filter(filter) => {
                filter.insert_mixed_hashes(keys, answers);
                Ok(())
            }
            Self::Log(log) => keys.iter().try_for_each(|key| log.push(0, &key.to_le_bytes())),
        }
    }

    /// The keys that were put aside.
    pub(crate) fn into_log(self) -> Stream {
        match self {
            Self::Filter(_) => Stream::default(),
            Self::Log(log) => log.finish().swap_remove(0),
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Filter(filter) => filter.size_bytes(),
            Self::Log(_) => 0,
        }
    }
}

/// How the steps of one job are done.
#[derive(Clone, Copy)]
pub(crate) struct Steps<'a> {
    pub(crate) pass: Pass<'a>,
    pub(crate) hashes: &'a Hashes,
}

/// Which lines become records.
pub(crate) enum Asked<'a> {
    /// All of them.
    All,
    /// Those that any of these filters cannot rule out.
    Any(&'a [&'a dyn Membership]),
    /// Those of which this says yes, which is asked with the key of each line in their order.
    Told(&'a mut (dyn FnMut(u64) -> Result<bool> + Send)),
}

/// Asks several filters for the same hashes: an answer is yes if it is that of any of them.
pub(crate) fn ask_any(filters: &[&dyn Membership], hashes: &[u64], found: &mut Answers) {
    let Some((first, rest)) = filters.split_first() else {
        return found.answer(hashes.len(), |_| false);
    };
    first.contains_mixed_hashes(hashes, found);
    for filter in rest {
        let mut more = Answers::new();
        filter.contains_mixed_hashes(hashes, &mut more);
        let before = std::mem::take(found);
        found.answer(hashes.len(), |at| before.get(at) || more.get(at));
    }
}

/// Keeps the keys of the lines picked.
fn keep_picked(scratch: &mut Scratch) {
    // Picks ascend: each key moves forward, or stays.
    for (at, &line) in scratch.picks.iter().enumerate() {
        scratch.keys[at] = scratch.keys[line];
    }
    scratch.keys.truncate(scratch.picks.len());
}

impl Steps<'_> {
    /// Puts every line into a filter. The keys of lines that it seemed to know already go to
    /// `known`, if they are wanted.
    pub(crate) fn fill(
        &self,
        inputs: &[&Input],
        filter: &mut BloomFilter,
        mut known: Option<&mut Keys<'_>>,
    ) -> Result<Seen> {
        let map = |batch: &Batch<'_>, scratch: &mut Scratch| {
            scratch.take_keys(batch, self.hashes.spec());
        };
        let fold = |_: &Batch<'_>, scratch: &mut Scratch| {
            filter.insert_mixed_hashes(&scratch.keys, &mut scratch.answers);
            if let Some(known) = &mut known {
                let mut kept = 0;
                for at in 0..scratch.keys.len() {
                    if !scratch.answers.get(at) {
                        scratch.keys[kept] = scratch.keys[at];
                        kept += 1;
                    }
                }
                known.take(&scratch.keys[..kept], &mut scratch.answers)?;
            }
            Ok(Flow::Go)
        };
        self.pass.run("filtering", inputs, map, fold)
    }

    /// Makes records of lines, dealt to the streams of `spill`: of the first input with positions,
    /// counted from where `start` says that an input begins. The filter keys of those lines go to
    /// `keys`.
    #[expect(clippy::too_many_arguments, reason = "what a pass needs, each of another kind")]
    pub(crate) fn gather(
        &self,
        what: &'static str,
        inputs: &[&Input],
        role: Role,
        asked: Asked<'_>,
        digits: &Digits,
        mut start: impl FnMut(usize) -> Result<u64> + Send,
        spill: &mut Spill<'_>,
        mut keys: Option<&mut Keys<'_>>,
    ) -> Result<Seen> {
        let wants_keys = keys.is_some();
        let (filters, mut told) = match asked {
            Asked::All => (None, None),
            Asked::Any(filters) => (Some(filters), None),
            Asked::Told(told) => (None, Some(told)),
        };
        let waits = told.is_some();
        let print = |batch: &Batch<'_>, scratch: &mut Scratch| {
            scratch.prints.clear();
            let picked = scratch.picks.iter().map(|&line| batch.line(line));
            self.hashes.fingerprints(picked, &mut scratch.prints);
        };
        let map = |batch: &Batch<'_>, scratch: &mut Scratch| {
            scratch.picks.clear();
            if filters.is_some() || wants_keys || waits {
                scratch.take_keys(batch, self.hashes.spec());
            }
            match filters {
                _ if waits => return,
                None => scratch.picks.extend(0..batch.len()),
                Some(filters) => {
                    ask_any(filters, &scratch.keys, &mut scratch.answers);
                    scratch.picks.extend(scratch.answers.iter());
                    if wants_keys {
                        keep_picked(scratch);
                    }
                }
            }
            print(batch, scratch);
        };
        let fold = |batch: &Batch<'_>, scratch: &mut Scratch| {
            if let Some(told) = &mut told {
                for (line, &key) in scratch.keys.iter().enumerate() {
                    if told(key)? {
                        scratch.picks.push(line);
                    }
                }
                keep_picked(scratch);
                print(batch, scratch);
            }
            let start = if role == Role::First { start(batch.input)? } else { 0 };
            for (&line, &print) in scratch.picks.iter().zip(&scratch.prints) {
                let part = digits.of(print);
                match role {
                    Role::Other => spill.push(part, &print.to_bytes())?,
                    Role::First => {
                        let position = start + batch.offset(line);
                        spill.push(part, &first_record(print, position))?;
                    }
                }
            }
            if let Some(keys) = &mut keys {
                keys.take(&scratch.keys, &mut scratch.answers)?;
            }
            Ok(Flow::Go)
        };
        self.pass.run(what, inputs, map, fold)
    }
}
