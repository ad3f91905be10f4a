//! The process: allocator, signals, standard output.

pub(crate) mod memory;
pub(crate) mod sampler;
pub(crate) mod signal;
pub(crate) mod stdout;
