//! Append-only file: the replayed log gives identical filters, and no acknowledged item is lost.

use crate::sample_filters;
use crate::server::{Server, Setup, command, wait_until};

const ALWAYS: &str = "--appendonly yes --appendfsync always";
const COMMANDS: &str = "--aof-use-rdb-preamble no";

pub(crate) fn rewrite(server: &Server) {
    let size = server.info("aof_current_size");
    server.call("BGREWRITEAOF");
    wait_until("the log is rewritten", || {
        server.info("aof_rewrite_in_progress") == "0"
            && server.info("aof_rewrite_scheduled") == "0"
            && server.info("aof_current_size") != size
    });
    assert_eq!(server.info("aof_last_bgrewrite_status"), "ok");
}

#[test]
#[ignore = "cargo x test --foreign"]
fn replayed_log_gives_identical_filters() {
    for setup in [Setup::new(), Setup::redisbloom_layout()] {
        let mut server = setup.args(ALWAYS).start();
        let filters = sample_filters::create(&server, 3000);
        let digest = server.digest();
        server.restart();
        assert_eq!(server.digest(), digest);
        filters.assert_members(&server);
    }
}

/// Commands that RedisBloom accepts and petal rejects from clients.
pub(crate) const LENIENT_COMMANDS: &[&str] = &[
    "BF.INSERT i1 CAP 1000 ITEMS a b",
    "BF.INSERT i2 CRAZY 7 ITEMS a",
    "BF.INSERT i3 ERR 0.1 IT a",
    "BF.INSERT i4 NOPE ITEMS a",
    "BF.INSERT i5 ERROR 0x1p-3 ITEMS a",
    "BF.RESERVE r1 0x1p-7 1000",
    "BF.RESERVE r2 0.01 1000 FOO",
    "BF.RESERVE r3 0.01 1000 FOO NONSCALING",
    "BF.RESERVE r4 0.01 1000 EXPANSION 4 FOO",
    "CF.INSERT c1 CAP 1000 ITEMS a",
    "CF.INSERTNX c1 NOPE IT b",
    "CF.RESERVE c2 1000 FOO 3",
    "CF.RESERVE c3 1000 FOO BUCKETSIZE 4 BAR",
];

#[test]
#[ignore = "cargo x test --foreign"]
fn lenient_commands_of_redisbloom_are_replayed() {
    let server = Server::new();
    let log: Vec<u8> = LENIENT_COMMANDS
        .iter()
        .flat_map(|line| {
            assert!(server.call(line).is_error(), "{line}");
            command(&line.split(' ').collect::<Vec<_>>())
        })
        .collect();
    let setup = Setup::new().args("--appendonly yes").file("appendonly.aof", log);
    let server = setup.start();
    assert_eq!(server.call("DBSIZE").int(), 12);
    let reply = |key: &str, name: &str| {
        let family = if key.starts_with('c') { "CF" } else { "BF" };
        server.call(&format!("{family}.INFO {key}")).field(name).int()
    };
    // RedisBloom's replies.
    for (key, capacity, size) in [
        ("i1", 1000, 1480),
        ("i2", 7, 112),
        ("i3", 100, 176),
        ("i4", 100, 216),
        ("i5", 100, 176),
        ("r1", 1000, 1544),
        ("r2", 1000, 1480),
        ("r3", 1000, 1296),
        ("r4", 1000, 1480),
    ] {
        assert_eq!((reply(key, "Capacity"), reply(key, "Size")), (capacity, size), "{key}");
    }
    for (key, buckets, bucket_size, items) in
        [("c1", 512, 2, 2), ("c2", 512, 2, 0), ("c3", 256, 4, 0)]
    {
        assert_eq!(reply(key, "Number of buckets"), buckets, "{key}");
        assert_eq!(reply(key, "Bucket size"), bucket_size, "{key}");
        assert_eq!(reply(key, "Number of items inserted"), items, "{key}");
    }
    assert_eq!(reply("r4", "Expansion rate"), 4);
    assert_eq!(server.call("BF.MEXISTS i1 a b c").ints(), [1, 1, 0]);
}

#[test]
#[ignore = "cargo x test --foreign"]
fn log_is_rewritten_as_commands_and_as_rdb() {
    for args in [COMMANDS, ""] {
        for setup in [Setup::new(), Setup::redisbloom_layout()] {
            let mut server = setup.args(ALWAYS).args(args).start();
            let filters = sample_filters::create(&server, 3000);
            let digest = server.digest();
            rewrite(&server);
            server.restart();
            assert_eq!(server.digest(), digest, "{args}");
            filters.grow(&server, 300);
            let grown = server.digest();
            server.restart();
            assert_eq!(server.digest(), grown, "{args}");
        }
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn large_filter_is_rewritten_in_chunks() {
    for setup in [Setup::new(), Setup::redisbloom_layout()] {
        let mut server = setup.args(ALWAYS).args(COMMANDS).start();
        server.call("BF.RESERVE large 0.001 30000000").ok();
        server.call("BF.MADD large a b c");
        let digest = server.digest();
        rewrite(&server);
        server.restart();
        assert_eq!(server.digest(), digest);
        assert_eq!(server.call("BF.MEXISTS large a b c d").ints(), [1, 1, 1, 0]);
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn acknowledged_items_survive_a_kill() {
    for setup in [Setup::new(), Setup::redisbloom_layout()] {
        let mut server = setup.args(ALWAYS).start();
        let filters = sample_filters::create(&server, 2000);
        let digest = server.digest();
        server.kill();
        server.start();
        assert_eq!(server.digest(), digest);
        filters.assert_members(&server);
        filters.grow(&server, 100);
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn unchanged_filters_are_not_logged() {
    for setup in [Setup::new(), Setup::redisbloom_layout()] {
        let server = setup.args(ALWAYS).start();
        server.call("BF.MADD filter a b c");
        server.call("CF.INSERT cuckoo ITEMS a b");
        let size = server.info("aof_current_size");
        assert_eq!(server.call("BF.ADD filter a").int(), 0);
        assert_eq!(server.call("BF.MADD filter a b c").ints(), [0, 0, 0]);
        assert_eq!(server.call("BF.INSERT filter ITEMS a b c").ints(), [0, 0, 0]);
        assert_eq!(server.call("CF.ADDNX cuckoo a").int(), 0);
        assert_eq!(server.call("CF.INSERTNX cuckoo ITEMS a b").ints(), [0, 0]);
        assert_eq!(server.call("CF.DEL cuckoo nope").int(), 0);
        assert_eq!(server.info("aof_current_size"), size);
        server.call("BF.ADD filter d");
        assert_ne!(server.info("aof_current_size"), size);
    }
}
