//! Items that collide under the published hash: in petal's layout every command that creates a
//! filter uses a random key.

use petal_testkit::collide::RAPID;

use crate::server::{Server, Setup};

/// Items of each family.
const EACH: u64 = 50;

fn items() -> Vec<Vec<u8>> {
    RAPID.into_iter().flat_map(|family| family.keys(EACH)).collect()
}

/// Returns the command with all items appended.
fn with_items(line: &str) -> Vec<Vec<u8>> {
    line.split(' ').map(|arg| arg.as_bytes().to_vec()).chain(items()).collect()
}

#[test]
#[ignore = "cargo x test --foreign"]
fn colliding_items_are_distinct_in_every_new_filter() {
    let all = items().len() as i64;
    let replica = Setup::new().args("--petal.memory-limit 1 --petal.bf-initial-size 7").start();
    let server = Server::new();
    replica.replicate_from(&server);
    // How the filter is created, how items are added, and the reply for a new one.
    let ways = [
        ("", "BF.MADD auto", 1),
        ("", "BF.INSERT inserted CAPACITY 2000 ITEMS", 1),
        ("BF.RESERVE fixed 0.001 2000 NONSCALING", "BF.MADD fixed", 1),
        ("BF.RESERVE grows 0.001 100", "BF.MADD grows", 1),
        ("", "CF.INSERTNX cuckoo ITEMS", 1),
        ("CF.RESERVE reserved 2000", "CF.INSERTNX reserved ITEMS", 1),
        ("PETAL.RESERVE bloom 0.001 2000", "PETAL.SEEN bloom", 0),
        ("PETAL.RESERVE counts 0.001 2000 TYPE counting", "PETAL.SEEN counts", 0),
        ("PETAL.RESERVE slots 0.001 2000 TYPE vector-quotient", "PETAL.SEEN slots", 0),
        ("PETAL.RESERVE removes 0.001 2000 TYPE cuckoo", "CF.INSERTNX removes ITEMS", 1),
        ("PETAL.RESERVE last 0.001 2000 LAST", "PETAL.SEEN last", 0),
        ("PETAL.RESERVE hour 0.001 2000 WINDOW 1h", "PETAL.SEEN hour", 0),
    ];
    for (make, add, new) in ways {
        if !make.is_empty() {
            server.call(make).ok();
        }
        let reply = server.call_args(&with_items(add)).ints();
        let new = reply.iter().filter(|&&one| one == new).count() as i64;
        // The highest false-positive rate of these is that of CF.*, 3 %.
        assert!(new <= all && new > all * 9 / 10, "{add}: {new} of {all} are new");
    }
    replica.wait_for_sync(&server);
    assert_eq!(replica.digest(), server.digest());
}

/// RedisBloom's layout has a public hash without a key: see docs/guides/redis-operate.md.
#[test]
#[ignore = "cargo x test --foreign"]
fn hash_keys_differ_between_filters_except_in_redisblooms_layout() {
    for (server, keyed) in [(Server::new(), true), (Server::redisbloom_layout(), false)] {
        for key in ["one", "two"] {
            server.call_args(&with_items(&format!("BF.MADD {key}")));
        }
        let dump =
            |key: &str| server.call(&format!("BF.SCANDUMP {key} 1")).items()[1].bytes().to_vec();
        assert_eq!(dump("one") != dump("two"), keyed);
    }
}
