//! The hash functions of foreign formats, bit for bit: short, and with the quirks of those who
//! use them.

pub(crate) mod fnv;
pub(crate) mod hadoop;
pub(crate) mod murmur2;
pub(crate) mod murmur3;
pub(crate) mod salted;
pub(crate) mod spark;
