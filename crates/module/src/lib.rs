//! petal as a module for Redis and Valkey: Bloom filters and related filters with the commands of
//! RedisBloom (`BF.*`, `CF.*`) and of petal (`PETAL.*`). They are persisted and replicated like the
//! server's own types.
//!
//! The crate is a shared library that a server loads; `docs/guides/redis.md` is its manual, and
//! `docs/reference/commands*.md` list its commands. The Rust library exports nothing except what tests
//! and fuzz targets need.
//!
//! Layers, each using only those below it:
//!
//! | module | contents |
//! |---|---|
//! | `on_load` | the function that the server calls when it loads the module |
//! | `commands` | the commands: parse arguments, change a filter, reply, replicate |
//! | `bindings` | safe bindings to the server: commands, calls, keys, data types, settings, `INFO` |
//! | `persistence` | filters in RDB files and append-only files |
//! | `filters` | the value of a key: filters in petal's layout or in RedisBloom's |
//! | `redisbloom` | RedisBloom's Bloom and cuckoo filters, bit for bit |
//! | `server` | raw bindings to the server's C functions, and its allocator |
//! | `error` | why a filter rejected an operation |

mod bindings;
mod commands;
mod error;
mod filters;
mod on_load;
mod persistence;
mod redisbloom;
mod server;

/// Entry points of the fuzz targets.
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing {
    /// Loads RedisBloom's filters and sketches from arbitrary RDB fields.
    pub fn redisbloom_fields(data: &[u8]) {
        crate::redisbloom::fuzz_checks::fields(data);
    }

    /// Loads RedisBloom's filters from arbitrary chunks.
    pub fn redisbloom_chunks(data: &[u8]) {
        crate::redisbloom::fuzz_checks::chunks(data);
    }
}
