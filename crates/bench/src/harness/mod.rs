//! The harness of the filter benchmarks: it times filters in turns and keeps the time of every round.
//!
//! criterion and divan measure one function after the other. On a shared machine two measurements that are minutes
//! apart differ more than the filters do. Here every case is timed in every round, in changing order, so the ratio of
//! two times of the same round is meaningful even then. The published figures are medians of those ratios.
//!
//! | module | purpose |
//! |---|---|
//! | [`keys`] | generated keys: inserted ones and absent ones |
//! | [`adapters`] | filters as the harness sees them: key by key, in batches, built at once |
//! | [`library`] | cases of the library's Bloom filters |
//! | [`family`] | cases of all filter types of the library, by the trait in `family_filter` |
//! | [`rounds`] | the order of measurements |
//! | `fpr` | the measured false-positive rate |
//! | [`rows`] | results as CSV and as a table |
//! | [`program`] | command lines and result files of the filter benchmarks |

pub mod adapters;
pub mod family;
mod family_filter;
mod fpr;
pub mod keys;
pub mod library;
pub mod program;
pub mod rounds;
pub mod rows;

use petal::Kernel;

use adapters::BenchFilter;

/// Start of the names of the cases that only read random cache lines, with prefetches: the limit of the machine. The
/// prefetch distance follows.
pub const RANDOM_READS: &str = "random line reads";

/// Keys of a measurement of a large filter.
pub const CHUNK: u64 = 1_000_000;

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Insert keys.
    Insert,
    /// Look up keys that were not inserted.
    Absent,
    /// Look up keys that were inserted.
    Present,
    /// Look up both, at random.
    Mixed,
    /// Insert all keys in one call. Measured in place of [`Insert`](Self::Insert).
    Build,
    /// Remove keys that were inserted.
    Remove,
}

impl Operation {
    /// The operations of a filter with inserts and lookups.
    pub const ALL: [Self; 4] = [Self::Insert, Self::Absent, Self::Present, Self::Mixed];
    /// Operations of a filter whose lookups are those of another case. Present keys are checked.
    pub const FILL: [Self; 2] = [Self::Insert, Self::Present];
    /// Operations in the family benchmark: filters without deletion.
    pub const INSERT_ONLY: &[Self] = &[Self::Insert, Self::Absent, Self::Present];
    /// Operations in the family benchmark: filters with deletion.
    pub const WITH_REMOVE: &[Self] = &[Self::Insert, Self::Absent, Self::Present, Self::Remove];
    /// Operations in the family benchmark: filters that are built from all keys at once.
    pub const BUILD_ONCE: &[Self] = &[Self::Build, Self::Absent, Self::Present];
    /// The order in which operations are measured.
    pub const ORDER: [Self; 5] =
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

/// The type of the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// A mixed hash; the filter hashes nothing.
    Hash,
    /// A `u64`, hashed by the filter.
    Number,
    /// Bytes, hashed by the filter.
    Bytes,
}

impl KeyKind {
    /// Its name in a row.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hash => "hash",
            Self::Number => "u64",
            Self::Bytes => "bytes",
        }
    }
}

/// How keys are passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One key per call.
    Single,
    /// Many keys per call.
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

/// A filter in one configuration, and its description for rows.
pub struct Case {
    /// Name of the filter: the same for all key kinds, forms and rates.
    pub filter: String,
    /// The target false-positive rate, if it has one.
    pub target: Option<f64>,
    /// Memory of the filter divided by its capacity.
    pub bits_per_key: f64,
    /// Type of the keys.
    pub kind: KeyKind,
    /// Single keys or batches.
    pub form: Form,
    /// The kernel of petal's batches.
    pub kernel: Option<Kernel>,
    /// Number of threads.
    pub threads: usize,
    /// The operations that are timed.
    pub operations: &'static [Operation],
    /// Whether an insert always takes all keys, even if there are more than a chunk.
    pub fills_at_once: bool,
    /// Whether it is a filter, with answers to check.
    pub is_filter: bool,
    /// The filter itself.
    pub tested: Box<dyn BenchFilter>,
}

impl Case {
    /// A filter of `bits` bits for `keys` keys, used key by key on one thread.
    pub fn single(
        filter: &str,
        target: f64,
        (bits, keys): (u64, u64),
        kind: KeyKind,
        tested: impl BenchFilter + 'static,
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
            fills_at_once: false,
            is_filter: true,
            tested: Box::new(tested),
        }
    }

    /// The operation that is timed when `operation` is measured: the same, or a build for an insert. `None` if the
    /// case does not have it.
    pub fn timed(&self, operation: Operation) -> Option<Operation> {
        let builds = self.operations.contains(&Operation::Build);
        let timed = match operation {
            Operation::Insert if builds => Operation::Build,
            other => other,
        };
        self.operations.contains(&timed).then_some(timed)
    }

    /// Makes the kernel of this case that of the process.
    fn use_kernel(&self) {
        if let Some(kernel) = self.kernel {
            kernel.force();
        }
    }

    /// One line that identifies the case.
    pub fn title(&self) -> String {
        let (kind, form) = (self.kind.name(), self.form.name());
        let rate = self.target.map_or(String::new(), |rate| format!(" {} %", rate * 100.0));
        let kernel = self.kernel.map_or(String::new(), |kernel| format!(", {kernel:?}"));
        format!("{}{rate}, {kind}, {form}{kernel}, {} threads", self.filter, self.threads)
    }
}

/// The size of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunPlan {
    /// Keys in every filter.
    pub keys: u64,
    /// Measurements of each case and operation.
    pub rounds: u64,
    /// Absent keys that are looked up for the measured rate; a tenth of that for byte keys.
    pub absent_keys: u64,
    /// Keys of a measurement of a large filter.
    pub chunk: u64,
    /// Whether filling a large filter is timed as a whole, not only its first chunks.
    pub time_whole_fill: bool,
}

impl RunPlan {
    /// The plan of a complete run, or of a short one that only shows that the benchmark works.
    pub fn new(keys: u64, quick: bool) -> Self {
        let rounds = match keys {
            _ if quick => 3,
            0..=200_000 => 61,
            200_001..=2_000_000 => 31,
            _ => 15,
        };
        let absent_keys = if quick { CHUNK } else { 10 * CHUNK };
        Self { keys, rounds, absent_keys, chunk: CHUNK, time_whole_fill: false }
    }
}
