//! The hash functions of foreign formats, bit for bit, with the quirks of their programs.

pub(crate) mod fnv;
pub(crate) mod hadoop;
pub(crate) mod murmur2;
pub(crate) mod murmur3;
pub(crate) mod salted;
pub(crate) mod spark;
pub(crate) mod wyhash;
