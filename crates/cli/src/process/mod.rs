//! The process: allocator, signals, standard streams.

pub(crate) mod memory;
pub(crate) mod sampler;
pub(crate) mod signal;
pub(crate) mod streams;
