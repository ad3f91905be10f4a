//! Tests of the commands: each runs the program and looks at its output, exit code and files.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod bits_and_probes;
mod columns;
#[path = "../common/mod.rs"]
mod common;
mod completions_and_man;
mod compressed;
mod compressed_outputs;
mod count;
mod counting;
mod dialects;
mod documents;
mod dupes_output;
mod errors;
mod estimate;
mod explain;
mod filter_types;
mod filters;
mod hashes;
mod help_and_progress;
mod html;
mod input_keys;
mod input_lists;
mod journal;
mod json_keys;
mod kernels;
mod key_transforms;
mod keyed_hash;
mod merge_shrink_compare;
mod not_lines;
mod options;
mod plan_shapes;
mod probe;
mod process;
mod random_jobs;
mod records;
mod report;
mod resume;
mod secret_file;
mod seen;
mod setops;
mod several_filters;
mod spelling;
