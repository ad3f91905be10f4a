//! The module in real servers, with real clients: `cargo x test --foreign` installs them and tells
//! where they are in `PETAL_PEERS`. Each file is one subject; `server` is what starts the servers.
//!
//! `PETAL_VALKEY=/path/to/valkey-server` runs all of it on that server. RedisBloom is that of the
//! peers, or the module that `PETAL_REDISBLOOM=/path/redisbloom.so` names; its captures in
//! testdata/redisbloom are compared with always.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]
#![allow(clippy::print_stdout, reason = "what was left out, and the log of a server that failed")]
#![allow(missing_docs, reason = "names that say it all")]

mod aof;
mod captures;
mod citizen;
mod clients;
mod cluster;
mod commands;
mod copies;
mod cuckoo;
mod damage;
mod errors;
mod extensions;
mod hostile;
mod memory;
mod petal;
mod rdb;
mod replication;
mod replies;
mod server;
mod sizes;
mod told;
mod transfer;
mod zoo;
