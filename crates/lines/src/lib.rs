//! The file engine of petal: set operations on files of lines that are far larger than memory, and
//! filters built from and queried with lines.
//!
//! A *line* is the bytes up to a delimiter (LF or NUL), without the delimiter. The last line of an
//! input may lack its delimiter; every line of the output has one.
//!
//! ```
//! use petal_lines::{Mode, Outputs, SetJob, SetOp, Settings, Source};
//!
//! # let dir = tempfile::tempdir()?;
//! # let (a, b) = (dir.path().join("a"), dir.path().join("b"));
//! std::fs::write(&a, "cherry\napple\nplum\napple\n")?;
//! std::fs::write(&b, "apple\nfig\ncherry")?;
//!
//! let mut out = Vec::new();
//! let job = SetJob {
//!     op: SetOp::Common,
//!     first: vec![Source::from_arg(a)],
//!     others: vec![Source::from_arg(b)],
//!     mode: Mode::Exact { strategy: None },
//! };
//! let report = job.run(&Settings::new(64 << 20), Outputs::to(&mut out))?;
//! assert_eq!(out, b"cherry\napple\n");
//! assert_eq!(report.kept, 2);
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! The process uses at most the memory limit plus [`MEMORY_OVERHEAD`]. Data that does not fit is
//! written to an unnamed temporary file, or to the work directory of a job that can be resumed.
//! The output is the same bytes for any number of threads and any memory limit.
//!
//! The engine does not print: it reports progress through [`Progress`] and returns a [`Report`].
//!
//! # Modules
//! Each module depends only on those above it.
//!
//! | module | contents |
//! |---|---|
//! | `error`, `progress`, `numbers` | errors, progress, numbers as text |
//! | `keys` | the keys of records: fields and changes to them |
//! | `remote` | objects of stores |
//! | `files` | files that are read by position, atomic files, links, locks |
//! | `tables` | Parquet and Arrow files |
//! | `temp` | temporary files: spilled records, copies of streams, results of tasks |
//! | `input` | inputs: opening, decompression, checks, followed files |
//! | `output` | printed lines and rows |
//! | `memory` | the memory limit and its division |
//! | `fingerprint` | hashes and fingerprints of lines, the fingerprint table |
//! | `scan` | parallel passes over the lines of inputs |
//! | `settings`, `job_context` | settings of all jobs, and what a job works with |
//! | `filters` | specifying, building and querying filters |
//! | `seen` | lines that no earlier run has printed |
//! | `setops` | `common`, `diff` and `dedup` |
//! | `counts` | how often each distinct line occurs |
//! | `documents` | repeated parts of documents |
//! | [`distributed`] | the set operations as functions over ranges of files |

mod counts;
pub mod distributed;
mod documents;
mod error;
mod files;
mod filters;
mod fingerprint;
mod input;
mod job_context;
mod job_progress;
mod keys;
mod memory;
mod numbers;
mod output;
mod poll_read;
mod progress;
mod remote;
mod scan;
mod seen;
mod setops;
mod settings;
mod tables;
mod temp;
mod workers;

pub use counts::{CountJob, CountOrder, CountReport};
pub use documents::{DocumentJob, DocumentOutputs};
pub use error::{Advice, Error, ErrorKind, Result, Setting, io_text, is_disk_full, type_names};
pub use files::{Lock, atomic_file};
pub use filters::{
    AllowList, BuiltFilter, CheckCounts, CheckOptions, FillCounts, FilterGroup, FilterSpec,
    GroupHash, KeyChanges, LineBuffer, LineFilter, LineFilterMut, LineHash, METADATA, RemoteFile,
    RemoteFilter, RemoveCounts, build, check, count_lines, explain_full, fill, filter_metadata,
    random_key, recorded_keys, recorded_log_id, recorded_spelling, recorded_transforms, remove,
    union_metadata, with_fewer_keys, with_keys_of, with_log_id, with_note, with_query_transforms,
    with_spelling,
};
pub use fingerprint::fingerprints;
pub use input::{
    CountedLists, KeyFragment, LeftOutCounts, LeftOutRecords, Source, Spellings,
    compressed_extension, split_fragment,
};
pub use job_context::spelling_differences;
pub use job_progress::{JobProgress, TimeLeft};
pub use keys::{
    Alike, Column, Columns, Dialect, Fields, HexShape, JsonPointer, JsonValues, KeySpec,
    OtherShape, PartUnit, Quoting, RecordRules, RowKeys, Spelling, SpellingDifference, Transform,
    csv_records, json_values, parse_transforms, transform_key, transforms_text,
};
pub use memory::{MEMORY_OVERHEAD, MIN_MEMORY, MemoryLimit, memory_for_filter};
pub use numbers::{format_count, format_keys, format_number, format_rate, format_size};
pub use output::{AppendedTo, CompressedWriter, Compression, Outputs};
pub use poll_read::enlarge_pipe;
pub use progress::{Note, Progress};
pub use remote::{ObjectUrl, Upload, abort_uploads, upload_memory};
pub use scan::BadLine;
pub use seen::{FingerprintLog, SeenCounts, SeenFilter, max_seen_filter, seen};
pub use setops::{
    Bounds, Counting, InputEstimate, JobEstimate, Mode, PartCounts, Phase, Report, SetJob, SetOp,
    Strategy, forget_work,
};
pub use settings::Settings;
pub use temp::{DiskUsage, check_temp_dir};

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
