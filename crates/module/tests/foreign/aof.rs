//! The append-only file: what it replays is what was there, to the bit; nothing acknowledged is lost.

use crate::server::{Server, Setup, command, until};
use crate::zoo;

const ALWAYS: &str = "--appendonly yes --appendfsync always";
const COMMANDS: &str = "--aof-use-rdb-preamble no";

pub(crate) fn rewrite(server: &Server) {
    let size = server.info("aof_current_size");
    server.ask("BGREWRITEAOF");
    until("the log is rewritten", || {
        server.info("aof_rewrite_in_progress") == "0"
            && server.info("aof_rewrite_scheduled") == "0"
            && server.info("aof_current_size") != size
    });
    assert_eq!(server.info("aof_last_bgrewrite_status"), "ok");
}

#[test]
#[ignore = "cargo x test --foreign"]
fn the_log_is_replayed_to_the_bit() {
    for setup in [Setup::new(), Setup::compat()] {
        let mut server = setup.words(ALWAYS).start();
        let zoo = zoo::filled(&server, 3000);
        let digest = server.digest();
        server.restart();
        assert_eq!(server.digest(), digest);
        zoo.assert_members(&server);
    }
}

/// Commands that RedisBloom accepts, and a client of petal's may not say.
const LOOSE: &[&str] = &[
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
fn what_redisbloom_accepted_is_read_as_it_did() {
    let server = Server::new();
    let log: Vec<u8> = LOOSE
        .iter()
        .flat_map(|line| {
            assert!(server.ask(line).is_error(), "{line}");
            command(&line.split(' ').collect::<Vec<_>>())
        })
        .collect();
    let setup = Setup::new().words("--appendonly yes").file("appendonly.aof", log);
    let server = setup.start();
    assert_eq!(server.ask("DBSIZE").int(), 12);
    let told = |key: &str, name: &str| {
        let family = if key.starts_with('c') { "CF" } else { "BF" };
        server.ask(&format!("{family}.INFO {key}")).field(name).int()
    };
    // As RedisBloom itself tells of them.
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
        assert_eq!((told(key, "Capacity"), told(key, "Size")), (capacity, size), "{key}");
    }
    for (key, buckets, bucket_size, items) in
        [("c1", 512, 2, 2), ("c2", 512, 2, 0), ("c3", 256, 4, 0)]
    {
        assert_eq!(told(key, "Number of buckets"), buckets, "{key}");
        assert_eq!(told(key, "Bucket size"), bucket_size, "{key}");
        assert_eq!(told(key, "Number of items inserted"), items, "{key}");
    }
    assert_eq!(told("r4", "Expansion rate"), 4);
    assert_eq!(server.ask("BF.MEXISTS i1 a b c").ints(), [1, 1, 0]);
}

#[test]
#[ignore = "cargo x test --foreign"]
fn the_log_is_rewritten_as_commands_and_as_rdb() {
    for words in [COMMANDS, ""] {
        for setup in [Setup::new(), Setup::compat()] {
            let mut server = setup.words(ALWAYS).words(words).start();
            let zoo = zoo::filled(&server, 3000);
            let digest = server.digest();
            rewrite(&server);
            server.restart();
            assert_eq!(server.digest(), digest, "{words}");
            zoo.grow(&server, 300);
            let grown = server.digest();
            server.restart();
            assert_eq!(server.digest(), grown, "{words}");
        }
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn a_large_filter_is_rewritten_in_commands_of_a_bounded_size() {
    for setup in [Setup::new(), Setup::compat()] {
        let mut server = setup.words(ALWAYS).words(COMMANDS).start();
        server.ask("BF.RESERVE large 0.001 30000000").ok();
        server.ask("BF.MADD large a b c");
        let digest = server.digest();
        rewrite(&server);
        server.restart();
        assert_eq!(server.digest(), digest);
        assert_eq!(server.ask("BF.MEXISTS large a b c d").ints(), [1, 1, 1, 0]);
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn nothing_acknowledged_is_lost_when_the_server_is_killed() {
    for setup in [Setup::new(), Setup::compat()] {
        let mut server = setup.words(ALWAYS).start();
        let zoo = zoo::filled(&server, 2000);
        let digest = server.digest();
        server.kill();
        server.start();
        assert_eq!(server.digest(), digest);
        zoo.assert_members(&server);
        zoo.grow(&server, 100);
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn adds_that_change_nothing_are_not_logged() {
    for setup in [Setup::new(), Setup::compat()] {
        let server = setup.words(ALWAYS).start();
        server.ask("BF.MADD filter a b c");
        server.ask("CF.INSERT cuckoo ITEMS a b");
        let size = server.info("aof_current_size");
        assert_eq!(server.ask("BF.ADD filter a").int(), 0);
        assert_eq!(server.ask("BF.MADD filter a b c").ints(), [0, 0, 0]);
        assert_eq!(server.ask("BF.INSERT filter ITEMS a b c").ints(), [0, 0, 0]);
        assert_eq!(server.ask("CF.ADDNX cuckoo a").int(), 0);
        assert_eq!(server.ask("CF.INSERTNX cuckoo ITEMS a b").ints(), [0, 0]);
        assert_eq!(server.ask("CF.DEL cuckoo nope").int(), 0);
        assert_eq!(server.info("aof_current_size"), size);
        server.ask("BF.ADD filter d");
        assert_ne!(server.info("aof_current_size"), size);
    }
}
