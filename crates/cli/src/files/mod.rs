//! Filter files, outputs and locks.

pub(crate) mod filter_file;
pub(crate) mod foreign_file;
pub(crate) mod inputs;
pub(crate) mod key_fields;
pub(crate) mod key_transforms;
pub(crate) mod lock;
pub(crate) mod output;
pub(crate) mod output_dir;
pub(crate) mod same_file;
pub(crate) mod secret_file;
pub(crate) mod spelling;
