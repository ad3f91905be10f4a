//! Access to the bytes of files: numbers, bit arrays, and Thrift's compact protocol.

pub(crate) mod bits;
pub(crate) mod bytes;
pub(crate) mod thrift;
