//! The process: allocator, signals, standard streams, the terminal.

pub(crate) mod hidden_terminal;
pub(crate) mod memory;
pub(crate) mod sampler;
pub(crate) mod signal;
pub(crate) mod streams;
