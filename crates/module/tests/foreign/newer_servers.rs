//! Groups of the other tests on newer servers than Debian's: Redis 8 and Valkey 9 of the peer `servers`.

use std::process::Command;

use crate::server::program;

/// The groups: files, replication, events, filters that move between servers, and what older servers do not have.
const GROUPS: [&str; 8] = [
    "rdb::",
    "replication::",
    "events::",
    "import_export::",
    "copy_and_restore::",
    "sketches::",
    "cluster::no_item_is_lost_while_slots_move_atomically",
    "server_features::settings_of_redis_8_need_no_prefix",
];

/// One test, because the ports of two processes that start at once may be the same.
#[test]
#[ignore = "cargo x test --foreign"]
fn groups_pass_on_redis_8_and_valkey_9() {
    run("redis-server-8", &[]);
    let differences = [
        // This build uses the C library's allocator: the copy of a filter may have another size.
        "copy_is_identical_and_independent",
        // Valkey 9 reads no hexadecimal numbers such as 0x1p-3, which RedisBloom accepts.
        "replica_of_redisbloom_takes_over",
    ];
    run("valkey-server-9", &differences);
}

/// Runs the groups on a server, without some tests. Does nothing if the peers have no such server for this machine.
fn run(name: &str, skipped: &[&str]) {
    let server = program("bin").join(name);
    if !server.exists() {
        println!("skipped: no {name} for this machine");
        return;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--test-threads=1"])
        .args(skipped.iter().flat_map(|test| ["--skip", test]))
        .args(GROUPS)
        .env("PETAL_VALKEY", server)
        .output()
        .unwrap();
    let output_text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{name}:\n{output_text}");
    let passed = output_text.matches(" ... ok\n").count();
    assert!(passed >= 30, "{name}: only {passed} tests:\n{output_text}");
}
