//! Filters of lines: specification, building, filling, queries.

mod allow_list;
mod build;
mod fill;
mod filter_group;
mod hashing;
mod line_buffer;
mod line_filter;
mod metadata;
mod query;
mod remote_filter;
mod shared_hashes;
mod spec;
mod temp_hashes;

pub use allow_list::AllowList;
pub use build::{BuiltFilter, build, explain_full};
pub use fill::{FillCounts, RemoveCounts, count_lines, fill, remove};
pub use filter_group::{FilterGroup, GroupHash};
pub use line_buffer::LineBuffer;
pub use line_filter::{LineFilter, LineFilterMut, LineHash};
pub use metadata::{
    KeyChanges, METADATA, filter_metadata, recorded_keys, recorded_log_id, recorded_spelling,
    recorded_transforms, union_metadata, with_fewer_keys, with_keys_of, with_log_id, with_note,
    with_query_transforms, with_spelling,
};
pub(crate) use query::check_inputs;
pub use query::{CheckCounts, CheckOptions, check};
pub use remote_filter::{RemoteFile, RemoteFilter};
pub use spec::{FilterSpec, random_key};
