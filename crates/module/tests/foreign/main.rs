//! Tests of the module in real servers with real clients. `cargo x test --foreign` installs them
//! and sets `PETAL_PEERS` to their folder. The file README.md lists what the tests cover.
//!
//! `PETAL_VALKEY=/path/to/valkey-server` runs all tests on that server.
//! `PETAL_REDISBLOOM=/path/redisbloom.so` selects another build of RedisBloom than that of the
//! peers. The captures in testdata/redisbloom are always compared.

#![allow(clippy::unwrap_used, reason = "a failed test reports where")]
#![allow(clippy::print_stdout, reason = "skipped tests, and logs of servers that failed")]
#![allow(missing_docs, reason = "test names describe the tests")]

mod aof;
mod captures;
mod clients;
mod cluster;
mod colliding_items;
mod commands;
mod copy_and_restore;
mod corrupt_input;
mod cuckoo_filters;
mod debian_package;
mod errors;
mod events;
mod failed_replay;
mod filter_sizes;
mod import_export;
mod memory;
mod monitoring;
mod more_commands;
mod newer_servers;
mod pages;
mod petal_commands;
mod rdb;
mod replication;
mod replies;
mod sample_filters;
mod server;
mod server_features;
mod sketches;
