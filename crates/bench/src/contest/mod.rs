//! Filters side by side: who takes part, in rounds in which all take turns, and rows that keep every round.
//!
//! A harness of our own, not criterion or divan: those measure one thing after the other, and between two things that
//! are minutes apart a shared machine changes more than the things differ. Here every contestant has its turn in every
//! round, in an order that changes from round to round. The ratio of two times of one round means something even then,
//! and the median of those ratios is what is quoted.
//!
//! | module | what it is |
//! |---|---|
//! | [`keys`] | keys that are members by construction, and keys that are not |
//! | [`subject`] | a filter as the harness sees it |
//! | [`petal`] | the library's filters as contestants |
//! | [`family`] | one filter of each type that the library has, for the same keys |
//! | `members` | what is done with each of those types |
//! | [`rounds`] | turns and rounds |
//! | `judge` | the measured rate |
//! | [`rows`] | one row for each contestant and operation, as CSV and as a table |
//! | [`program`] | what the bench programs have in common |

pub mod family;
mod judge;
pub mod keys;
mod members;
pub mod petal;
pub mod program;
pub mod rounds;
pub mod rows;
pub mod subject;

use ::petal::Kernel;

use subject::Subject;

/// What the machine can do at all: lines of memory from random places, asked for ahead. The names of contestants that do
/// just that begin with it; how far ahead follows.
pub const LIMIT: &str = "random line reads";

/// What a contestant is timed at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Keys go in.
    Insert,
    /// Keys are asked for that were never inserted.
    Absent,
    /// Keys are asked for that were.
    Present,
    /// Either, by chance.
    Mixed,
    /// All keys go in with one call, on some threads. Timed in the turns of inserts.
    Build,
    /// Keys that were inserted are taken out.
    Remove,
}

impl Operation {
    /// All of a filter that keys go into and that is asked.
    pub const ALL: [Self; 4] = [Self::Insert, Self::Absent, Self::Present, Self::Mixed];
    /// What the types of the family are timed at: those that delete at [`Self::REMOVED`], those made at once at
    /// [`Self::MADE`].
    pub const ADDED: &[Self] = &[Self::Insert, Self::Absent, Self::Present];
    /// See [`Self::ADDED`].
    pub const REMOVED: &[Self] = &[Self::Insert, Self::Absent, Self::Present, Self::Remove];
    /// See [`Self::ADDED`].
    pub const MADE: &[Self] = &[Self::Build, Self::Absent, Self::Present];
    /// The turns of a contest, in their order.
    pub const TURNS: [Self; 5] =
        [Self::Insert, Self::Absent, Self::Present, Self::Mixed, Self::Remove];

    /// Its name in a row.
    pub fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Absent => "absent",
            Self::Present => "present",
            Self::Mixed => "mixed",
            Self::Build => "build",
            Self::Remove => "remove",
        }
    }
}

/// What a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A hash that is given: nothing is left to be hashed.
    Hash,
    /// A number, hashed by the filter.
    Number,
    /// A text, hashed by the filter.
    Bytes,
}

impl Kind {
    /// Its name in a row.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hash => "hash",
            Self::Number => "u64",
            Self::Bytes => "bytes",
        }
    }
}

/// How keys are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One in each call.
    Single,
    /// Many in each call.
    Batch,
}

impl Form {
    /// Its name in a row.
    pub fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Batch => "batch",
        }
    }
}

/// A filter that takes part, and what a row says of it.
pub struct Contestant {
    /// Its name: the same for the same layout, whatever the keys, the form and the rate.
    pub filter: String,
    /// The false-positive rate it was made for, if it was made for one.
    pub target: Option<f64>,
    /// The memory of the filter, divided by the keys that it is to hold.
    pub bits_per_key: f64,
    /// What a key is.
    pub kind: Kind,
    /// How keys are given.
    pub form: Form,
    /// The kernel of petal's batches.
    pub kernel: Option<Kernel>,
    /// Threads at work at a time.
    pub threads: usize,
    /// What it is timed at.
    pub operations: &'static [Operation],
    /// Whether it is made of all keys at once: a turn of an insert is then all of them, however many.
    pub at_once: bool,
    /// Whether it is a filter: if not, it cannot answer wrongly.
    pub judged: bool,
    /// The filter itself.
    pub subject: Box<dyn Subject>,
}

impl Contestant {
    /// A filter that is asked key by key on one thread, with `bits` bits for `keys` keys.
    pub fn single(
        filter: &str,
        target: f64,
        (bits, keys): (u64, u64),
        kind: Kind,
        subject: impl Subject + 'static,
    ) -> Self {
        Self {
            filter: filter.to_owned(),
            target: Some(target),
            bits_per_key: bits as f64 / keys as f64,
            kind,
            form: Form::Single,
            kernel: None,
            threads: 1,
            operations: &Operation::ALL,
            at_once: false,
            judged: true,
            subject: Box::new(subject),
        }
    }

    /// What it is timed at in the turns of an operation, if at anything.
    pub fn does(&self, operation: Operation) -> Option<Operation> {
        let built = self.operations.contains(&Operation::Build);
        let builds = operation == Operation::Insert && built;
        let does = if builds { Operation::Build } else { operation };
        self.operations.contains(&does).then_some(does)
    }

    /// One line that tells it from all others.
    pub fn title(&self) -> String {
        let (kind, form) = (self.kind.name(), self.form.name());
        let rate = self.target.map_or(String::new(), |rate| format!(" {} %", rate * 100.0));
        let kernel = self.kernel.map_or(String::new(), |kernel| format!(", {kernel:?}"));
        format!("{}{rate}, {kind}, {form}{kernel}, {} threads", self.filter, self.threads)
    }
}
