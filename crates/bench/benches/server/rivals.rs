//! The modules that petal is compared with.

use std::path::PathBuf;

use crate::server::{Module, Programs, Server};

/// Modules and the environment variables that name their files.
const RIVALS: [(&str, &str); 3] = [
    ("RedisBloom", "PETAL_REDISBLOOM"),
    ("RedisBloom 8", "PETAL_REDISBLOOM_8"),
    ("valkey-bloom", "PETAL_VALKEY_BLOOM"),
];

/// Returns the modules that are installed and that the server loads; prints a note for each other one.
pub(crate) fn find(programs: &Programs) -> Vec<Module> {
    let mut found = Vec::new();
    for (name, variable) in RIVALS {
        let named = std::env::var_os(variable).map(PathBuf::from);
        let Some(file) = named.or_else(|| of_peers(name)) else {
            println!("left out: {name} (set {variable} to its module)");
            continue;
        };
        let module = Module { name, file };
        match Server::start(programs, &module) {
            Ok(_) => found.push(module),
            Err(problem) => println!("left out: {name}: {problem}"),
        }
    }
    found
}

/// Returns the module that `cargo x peers` has installed.
fn of_peers(name: &str) -> Option<PathBuf> {
    let peers = PathBuf::from(std::env::var_os("PETAL_PEERS")?);
    let file = peers.join("redisbloom/redisbloom.so");
    (name == "RedisBloom" && file.is_file()).then_some(file)
}
