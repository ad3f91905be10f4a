//! petal as a module of Redis and Valkey: Bloom filters and their family, behind the commands of
//! RedisBloom and some of its own, replicated and persistent as the server's own types are.
//!
//! The crate is a shared library that a server loads; docs/server.md is for its operators. As a
//! Rust library it has nothing but what its own tests and fuzz targets look into.

mod about;
mod chain;
mod commands;
mod compat;
mod config;
mod ffi;
mod fields;
mod load;
mod metrics;
mod object;
mod parcel;
mod persist;
mod plan;
mod refusal;
mod server;

/// What fuzz targets call.
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing {
    /// Fields of RedisBloom's filters in the server's files.
    pub fn redisbloom_fields(data: &[u8]) {
        crate::compat::exercise::fields(data);
    }

    /// Chunks of RedisBloom's filters.
    pub fn redisbloom_chunks(data: &[u8]) {
        crate::compat::exercise::chunks(data);
    }
}
