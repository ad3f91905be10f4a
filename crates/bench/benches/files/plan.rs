//! What is run: for each work the commands, as they would be typed, and what is right for an answer.

use petal_testkit::bounds::binomial_range;

/// A thing to be done, by petal and its rivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Build,
    Check,
    Common,
    Dedup,
    Jobs,
}

impl Work {
    pub(crate) const ALL: [(Work, &'static str); 5] = [
        (Work::Build, "build"),
        (Work::Check, "check"),
        (Work::Common, "common"),
        (Work::Dedup, "dedup"),
        (Work::Jobs, "jobs"),
    ];

    pub(crate) fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// What standard output, or the file that a tool writes instead, has to hold.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// Nothing: a filter was made.
    Silence,
    /// A number within these bounds, as the first word.
    Count(u64, u64),
    /// A number of lines within these bounds.
    Lines(u64, u64),
    /// The lines common to both files.
    Common,
    /// Every distinct line of A.
    Distinct,
}

/// One command of one work.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) work: Work,
    pub(crate) tool: &'static str,
    /// What tells this command from the others of its tool.
    pub(crate) config: String,
    /// As typed in the folder of the files; `< FILE` at the end gives the standard input.
    pub(crate) command: String,
    pub(crate) answer: Answer,
    /// A cap on the whole process that the tool promises to keep.
    pub(crate) cap_mib: Option<u64>,
    /// Takes so long that one or two runs must do.
    pub(crate) slow: bool,
}

/// What the files hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) lines: u64,
    pub(crate) common: u64,
}

/// The false-positive rate that filters are made for.
const RATE: f64 = 0.01;
/// With what probability a sound filter's false positives stay within the bounds.
const CONFIDENCE: f64 = 0.999;
/// What DuckDB is measured with on "its best".
pub(crate) const DUCKDB_FREE: &str = "16GB";
pub(crate) const DUCKDB_TIGHT: &str = "256MB";

impl Size {
    /// The commands of a work. `wc -l` shows what reading the same bytes costs. Petal's first command is the one that
    /// others are compared with.
    pub(crate) fn entries(self, work: Work) -> Vec<Entry> {
        let Self { lines: n, common } = self;
        let entry = |tool, config: &str, command: &str, answer| Entry {
            work,
            tool,
            config: config.to_owned(),
            command: command.to_owned(),
            answer,
            cap_mib: None,
            slow: !matches!(tool, "wc" | "petal" | "duckdb"),
        };
        let wc = |files: &str| entry("wc", "-l", &format!("wc -l {files}"), Answer::Count(n, n));
        let capped = |cap: u64, verb: &str, files: &str, answer| Entry {
            cap_mib: Some(cap),
            ..entry(
                "petal",
                &format!("-m {cap}M"),
                &format!("petal {verb} -m {cap}M -T tmp {files}"),
                answer,
            )
        };
        let duckdb = |limit: &str, files: &str, answer| {
            entry("duckdb", limit, &format!("duckdb {limit} 2 tmp out.txt {files}"), answer)
        };
        let (low, high) = self.hits();
        match work {
            Work::Build => vec![
                wc("a.txt"),
                entry(
                    "petal",
                    "-n",
                    &format!("petal build -n {n} -p {RATE} -o a.petal a.txt"),
                    Answer::Silence,
                ),
                entry(
                    "petal",
                    "counts first",
                    &format!("petal build -p {RATE} -o counted.petal a.txt"),
                    Answer::Silence,
                ),
                entry(
                    "bloom",
                    "create",
                    &format!("bloom create -n {n} -p {RATE} a.bloom < a.txt"),
                    Answer::Silence,
                ),
            ],
            Work::Check => vec![
                wc("b.txt"),
                entry("petal", "-c", "petal check -c a.petal b.txt", Answer::Count(low, high)),
                entry("petal", "prints", "petal check a.petal b.txt", Answer::Lines(low, high)),
                entry("bloom", "check", "bloom check a.bloom < b.txt", Answer::Lines(low, high)),
            ],
            Work::Common => vec![
                wc("a.txt b.txt"),
                capped(128, "common", "a.txt b.txt", Answer::Common),
                capped(1024, "common", "a.txt b.txt", Answer::Common),
                duckdb(DUCKDB_FREE, "a.txt b.txt", Answer::Common),
                duckdb(DUCKDB_TIGHT, "a.txt b.txt", Answer::Common),
                entry("zet", "intersect", "zet intersect a.txt b.txt", Answer::Common),
                entry("sort+comm", "-S 4G", SORT_COMM, Answer::Common),
            ],
            Work::Dedup => vec![
                wc("a.txt"),
                capped(1024, "dedup", "a.txt", Answer::Distinct),
                capped(128, "dedup", "a.txt", Answer::Distinct),
                duckdb(DUCKDB_FREE, "a.txt", Answer::Distinct),
                duckdb(DUCKDB_TIGHT, "a.txt", Answer::Distinct),
                entry("zet", "union", "zet union a.txt", Answer::Distinct),
                entry("huniq", "", "huniq < a.txt", Answer::Distinct),
                entry("runiq", "", "runiq a.txt", Answer::Distinct),
                entry("sort", "-u -S 4G", SORT_UNIQUE, Answer::Distinct),
            ],
            Work::Jobs => {
                let build = format!("build -n {n} -p {RATE} -o jobs.petal a.txt");
                let works = [
                    ("build", build.as_str(), Answer::Silence),
                    ("check", "check -c a.petal b.txt", Answer::Count(low, high)),
                    (
                        "common",
                        "common -c -m 128M -T tmp a.txt b.txt",
                        Answer::Count(common, common),
                    ),
                    ("dedup", "dedup -c -m 1024M -T tmp a.txt", Answer::Count(n, n)),
                ];
                let both = works.iter().flat_map(|(name, command, answer)| {
                    [1, 2].map(|jobs| {
                        let config = format!("{name} -j {jobs}");
                        entry(
                            "petal",
                            &config,
                            &format!("petal {command} -j {jobs}"),
                            answer.clone(),
                        )
                    })
                });
                both.collect()
            }
        }
    }

    /// How many lines of B a filter of A may report: the common ones, and of the others no more than the rate says.
    fn hits(self) -> (u64, u64) {
        let (_, most) = binomial_range(self.lines - self.common, RATE, CONFIDENCE);
        (self.common, self.common + most)
    }
}

/// The second sort feeds `comm` directly, which saves it a file.
const SORT_COMM: &str = "export LC_ALL=C; sort -S 4G --parallel=2 -T tmp a.txt > a.sorted && \
    sort -S 4G --parallel=2 -T tmp b.txt | comm -12 a.sorted -";
const SORT_UNIQUE: &str = "export LC_ALL=C; sort -u -S 4G --parallel=2 -T tmp a.txt";
