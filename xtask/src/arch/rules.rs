//! What is allowed. The one place to change when the house changes; change ARCHITECTURE.md with it.

/// What a crate of ours may depend on.
pub(super) struct CrateRule {
    pub(super) name: &'static str,
    /// Crates of ours it may use. Crates from outside are `deny.toml`'s business.
    pub(super) uses: &'static [&'static str],
}

/// The arrows between crates. A crate that is not here has no place in the house yet.
/// Any crate may use [`DEV_ONLY`] in its tests and benches.
pub(super) const CRATES: &[CrateRule] = &[
    CrateRule { name: "petal-filters", uses: &[] },
    CrateRule { name: "petal-lines", uses: &["petal-filters"] },
    CrateRule { name: "petal-interop", uses: &["petal-filters"] },
    CrateRule { name: "petal-cli", uses: &["petal-filters", "petal-lines", "petal-interop"] },
    CrateRule { name: "petal-python", uses: &["petal-filters", "petal-lines", "petal-interop"] },
    CrateRule { name: "petal-redis", uses: &["petal-filters", "petal-interop"] },
    CrateRule { name: "petal-testkit", uses: &[] },
    CrateRule { name: "petal-bench", uses: &["petal-filters"] },
    CrateRule { name: "petal-bench-vs", uses: &["petal-filters", "petal-bench"] },
    CrateRule { name: "xtask", uses: &[] },
];

/// Allowed as a dev-dependency of every crate but itself, never as a dependency.
pub(super) const DEV_ONLY: &str = "petal-testkit";

/// What a room (a top-level module of a crate) may use of its own crate.
pub(super) struct Room {
    pub(super) name: &'static str,
    pub(super) uses: &'static [&'static str],
}

/// The rooms of one crate. `lib.rs` and `main.rs` are doors: they may use every room.
pub(super) struct House {
    pub(super) src: &'static str,
    /// Rooms that every other room may use.
    pub(super) everyone: &'static [&'static str],
    pub(super) rooms: &'static [Room],
}

/// The name under which a room may use what `lib.rs` itself defines: only a room that is as high as the door.
pub(super) const DOOR: &str = "lib";

/// The rooms that are checked, from the foundation up: every arrow points to an earlier line.
pub(super) const HOUSES: &[House] = &[
    House {
        src: "crates/core/src/",
        everyone: &["error", "answers"],
        rooms: &[
            Room { name: "error", uses: &[] },
            Room { name: "answers", uses: &[] },
            Room { name: "sync", uses: &[] },
            Room { name: "rate", uses: &[] },
            Room { name: "hash", uses: &[] },
            Room { name: "key", uses: &["hash"] },
            Room { name: "shape", uses: &["rate"] },
            Room { name: "store", uses: &["sync"] },
            Room { name: "kernel", uses: &["sync", "store"] },
            Room { name: "format", uses: &["hash", "store"] },
            Room { name: "membership", uses: &["rate", "hash", "format"] },
            Room {
                name: "filter",
                uses: &["rate", "shape", "hash", "key", "store", "kernel", "format", "membership"],
            },
            Room {
                name: "counting",
                uses: &[
                    "rate",
                    "hash",
                    "key",
                    "shape",
                    "store",
                    "kernel",
                    "format",
                    "membership",
                    "filter",
                ],
            },
            Room {
                name: "quotient",
                uses: &["rate", "hash", "key", "shape", "store", "kernel", "format", "membership"],
            },
            Room {
                name: "scalable",
                uses: &[
                    "rate",
                    "hash",
                    "key",
                    "shape",
                    "store",
                    "kernel",
                    "format",
                    "membership",
                    "filter",
                ],
            },
            Room {
                name: "windowed",
                uses: &[
                    "rate",
                    "hash",
                    "key",
                    "shape",
                    "store",
                    "kernel",
                    "format",
                    "membership",
                    "filter",
                ],
            },
            Room {
                name: "wide",
                uses: &[
                    "rate",
                    "hash",
                    "key",
                    "shape",
                    "store",
                    "kernel",
                    "format",
                    "membership",
                    "filter",
                ],
            },
            Room {
                name: "ribbon",
                uses: &["rate", "hash", "key", "shape", "store", "kernel", "format", "membership"],
            },
            Room {
                name: "cascade",
                uses: &[
                    "rate",
                    "hash",
                    "key",
                    "shape",
                    "store",
                    "kernel",
                    "format",
                    "membership",
                    "ribbon",
                ],
            },
            Room {
                name: "any",
                uses: &[
                    "rate",
                    "store",
                    "format",
                    "membership",
                    "filter",
                    "counting",
                    "quotient",
                    "scalable",
                    "windowed",
                    "wide",
                    "ribbon",
                    "cascade",
                ],
            },
        ],
    },
    House {
        src: "crates/lines/src/",
        everyone: &["readable", "error", "progress"],
        rooms: &[
            Room { name: "readable", uses: &[] },
            Room { name: "error", uses: &[] },
            Room { name: "progress", uses: &[] },
            Room { name: "aside", uses: &[] },
            Room { name: "vector", uses: &[] },
            Room { name: "fingerprint", uses: &["vector"] },
            Room { name: "cap", uses: &[] },
            Room { name: "lock", uses: &[] },
            Room { name: "line_filter", uses: &[] },
            Room { name: "table", uses: &["fingerprint"] },
            Room { name: "input", uses: &[] },
            Room { name: "budget", uses: &["input"] },
            Room { name: "chunks", uses: &["budget", "input"] },
            Room {
                name: "pass",
                uses: &["budget", "chunks", "fingerprint", "input", "line_filter", "vector"],
            },
            Room { name: "report", uses: &["pass"] },
            Room { name: "sections", uses: &["aside"] },
            Room { name: "spill", uses: &["input", "sections"] },
            Room { name: "marks", uses: &["input", "spill"] },
            Room { name: "judge", uses: &["fingerprint", "table"] },
            Room { name: "plan", uses: &["budget", "fingerprint", "input", "judge", "table"] },
            Room {
                name: "resolve",
                uses: &["fingerprint", "input", "judge", "marks", "spill", "table"],
            },
            Room { name: "steps", uses: &["fingerprint", "input", "pass", "resolve", "spill"] },
            Room { name: "print", uses: &["budget", "chunks", "input", "marks", "pass", "spill"] },
            Room {
                name: "exact",
                uses: &[
                    "aside",
                    "budget",
                    "fingerprint",
                    "input",
                    "judge",
                    "lock",
                    "marks",
                    "pass",
                    "plan",
                    "print",
                    "report",
                    "resolve",
                    "spill",
                    "steps",
                    "table",
                ],
            },
            Room {
                name: "approx",
                uses: &[
                    "budget",
                    "fingerprint",
                    "input",
                    "judge",
                    "pass",
                    "plan",
                    "print",
                    "report",
                    "table",
                ],
            },
            Room { name: "settings", uses: &["budget", "input", "pass"] },
            Room {
                name: "exceptions",
                uses: &["fingerprint", "input", "pass", "settings", "table"],
            },
            Room {
                name: "filters",
                uses: &[
                    "budget",
                    "exceptions",
                    "input",
                    "line_filter",
                    "pass",
                    "print",
                    "settings",
                ],
            },
            Room { name: "recipe", uses: &["cap", "filters", "input", "settings"] },
            Room {
                name: "ranges",
                uses: &[
                    "budget",
                    "filters",
                    "fingerprint",
                    "input",
                    "judge",
                    "marks",
                    "pass",
                    "plan",
                    "print",
                    "resolve",
                    "sections",
                    "settings",
                    "spill",
                    "steps",
                    "table",
                ],
            },
            Room { name: "listed", uses: &["input", "pass", "settings"] },
            Room { name: "ledger", uses: &["fingerprint", "table"] },
            Room {
                name: "seen",
                uses: &["budget", "fingerprint", "input", "ledger", "pass", "print", "settings"],
            },
        ],
    },
    House {
        src: "crates/interop/src/",
        everyone: &["format", "error"],
        rooms: &[
            Room { name: "format", uses: &[] },
            Room { name: "error", uses: &[] },
            Room { name: "keys", uses: &[] },
            Room { name: "bytes", uses: &[] },
            Room { name: "bits", uses: &[] },
            Room { name: "thrift", uses: &[] },
            Room { name: "hashes", uses: &["bytes"] },
            Room { name: "facts", uses: &["bits", "keys"] },
            Room { name: "floor", uses: &[] },
            Room { name: "scheme", uses: &["bits", "facts", "floor"] },
            Room {
                name: "formats",
                uses: &["bits", "bytes", "facts", "floor", "hashes", "keys", "scheme", "thrift"],
            },
            Room { name: "parquet", uses: &["bits", "formats", "scheme", "thrift"] },
            Room { name: "detect", uses: &["formats", "scheme"] },
            Room { name: "unpack", uses: &["formats"] },
            Room {
                name: "foreign",
                uses: &["detect", "facts", "formats", "keys", "scheme", "unpack"],
            },
            Room { name: "cascade", uses: &["foreign", "formats"] },
        ],
    },
    House {
        src: "crates/module/src/",
        everyone: &[],
        rooms: &[
            Room { name: "about", uses: &[] },
            Room { name: "config", uses: &[] },
            Room { name: "server", uses: &[] },
            Room { name: "fields", uses: &[] },
            Room { name: "refusal", uses: &[] },
            Room { name: "metrics", uses: &[] },
            Room { name: "compat", uses: &["fields", "refusal", "server"] },
            Room { name: "chain", uses: &["refusal"] },
            Room { name: "parcel", uses: &[] },
            Room { name: "object", uses: &["chain", "compat", "parcel", "refusal"] },
            Room { name: "plan", uses: &["chain", "compat", "object"] },
            Room { name: "persist", uses: &["chain", "compat", "fields", "object", "parcel"] },
            Room {
                name: "ffi",
                uses: &["about", "config", "metrics", "object", "persist", "server"],
            },
            Room {
                name: "commands",
                uses: &[
                    "about", "chain", "compat", "config", "ffi", "metrics", "object", "parcel",
                    "persist", "plan",
                ],
            },
            Room { name: "load", uses: &["commands", "ffi", "server"] },
        ],
    },
    House {
        src: "crates/python/src/",
        everyone: &["error"],
        rooms: &[
            Room { name: "error", uses: &[] },
            Room { name: "key", uses: &[] },
            Room { name: "held", uses: &["key"] },
            Room { name: "open", uses: &["held"] },
            Room { name: "shared", uses: &["held"] },
            Room { name: "arrow", uses: &["held", "key"] },
            Room { name: "pandas", uses: &[] },
            Room { name: "mask", uses: &["arrow"] },
            Room { name: "batch", uses: &["arrow", "held", "key", "mask", "pandas", "shared"] },
            Room { name: "filter", uses: &["batch", "held", "key", "open", "shared"] },
            Room { name: "prints", uses: &["arrow", "batch", "filter", "held"] },
            Room { name: "engine", uses: &["filter", "held"] },
            Room { name: "ranges", uses: &["engine", "open"] },
        ],
    },
];

/// Where unsafe code may stand: a path prefix, and how often the word may occur below it.
pub(super) struct UnsafeRoom {
    pub(super) prefix: &'static str,
    pub(super) at_most: Option<usize>,
    pub(super) why: &'static str,
}

/// The rooms of unsafe code. Everything else is safe Rust.
pub(super) const UNSAFE_ROOMS: &[UnsafeRoom] = &[
    UnsafeRoom { prefix: "crates/core/src/store", at_most: None, why: "where the bits live" },
    UnsafeRoom { prefix: "crates/core/src/kernel", at_most: None, why: "vector instructions" },
    UnsafeRoom { prefix: "crates/lines/src/vector", at_most: None, why: "vector instructions" },
    UnsafeRoom {
        prefix: "crates/module/src/server",
        at_most: None,
        why: "the server's functions and its memory",
    },
    UnsafeRoom { prefix: "crates/module/src/ffi", at_most: None, why: "the server's calls" },
    UnsafeRoom {
        prefix: "crates/module/src/load.rs",
        at_most: Some(4),
        why: "where the server comes in",
    },
    UnsafeRoom {
        prefix: "crates/python/src/arrow.rs",
        at_most: Some(5),
        why: "arrays of others, taken out of their capsules",
    },
    UnsafeRoom {
        prefix: "crates/python/src/open.rs",
        at_most: Some(2),
        why: "one named allow: to map a filter file",
    },
    UnsafeRoom {
        prefix: "crates/cli/src/",
        at_most: Some(3),
        why: "three named allows: to map a filter file, to set up the C library's allocator, and \
              to test standard output before the runtime opens it",
    },
    UnsafeRoom {
        prefix: "crates/bench/benches/layouts",
        at_most: None,
        why: "vector kernels tried out before their layout was chosen",
    },
    UnsafeRoom {
        prefix: "crates/bench-vs/src/line_reads.rs",
        at_most: Some(1),
        why: "the prefetch of a line",
    },
    UnsafeRoom {
        prefix: "crates/testkit/src/measure.rs",
        at_most: Some(1),
        why: "wait4, for the peak memory of a child",
    },
    UnsafeRoom {
        prefix: "crates/core/tests/hostile.rs",
        at_most: None,
        why: "an allocator that counts, and a mapped file",
    },
    UnsafeRoom {
        prefix: "crates/core/tests/accounts.rs",
        at_most: None,
        why: "an allocator that counts, and one that moves blocks",
    },
    UnsafeRoom {
        prefix: "crates/core/tests/memory.rs",
        at_most: None,
        why: "an allocator that counts",
    },
    UnsafeRoom {
        prefix: "crates/interop/tests/hostile.rs",
        at_most: None,
        why: "an allocator that counts",
    },
    UnsafeRoom { prefix: "crates/core/tests/wide.rs", at_most: Some(1), why: "a mapped file" },
    UnsafeRoom {
        prefix: "crates/core/tests/static_filter.rs",
        at_most: Some(1),
        why: "a mapped file",
    },
];

/// A file wants at most 400 lines; above this one `arch` says so.
pub(super) const LINES_NOTED: usize = 600;
/// A file above this is a finding. Unit tests are not counted.
pub(super) const LINES_MAX: usize = 800;
