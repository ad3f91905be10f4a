//! Items that an adversary prepares to collide under the published hash: every command of petal's layout that makes a
//! filter hashes with a random key.

use petal_testkit::collide::RAPID;

use crate::server::{Server, Setup};

/// Items of each family.
const EACH: u64 = 50;

fn items() -> Vec<Vec<u8>> {
    RAPID.into_iter().flat_map(|family| family.keys(EACH)).collect()
}

/// The command with all items behind it.
fn with_items(line: &str) -> Vec<Vec<u8>> {
    line.split(' ').map(|word| word.as_bytes().to_vec()).chain(items()).collect()
}

#[test]
#[ignore = "cargo x test --foreign"]
fn prepared_items_are_told_apart_by_every_command_that_makes_a_filter() {
    let all = items().len() as i64;
    let replica = Setup::new().words("--petal.memory-limit 1 --petal.bf-initial-size 7").start();
    let server = Server::new();
    replica.follow(&server);
    // How a filter is made, how items are added, and what the reply says of a new one.
    let ways = [
        ("", "BF.MADD auto", 1),
        ("", "BF.INSERT inserted CAPACITY 2000 ITEMS", 1),
        ("BF.RESERVE fixed 0.001 2000 NONSCALING", "BF.MADD fixed", 1),
        ("BF.RESERVE grows 0.001 100", "BF.MADD grows", 1),
        ("", "CF.INSERTNX cuckoo ITEMS", 1),
        ("CF.RESERVE reserved 2000", "CF.INSERTNX reserved ITEMS", 1),
        ("PETAL.RESERVE bloom 0.001 2000", "PETAL.SEEN bloom", 0),
        ("PETAL.RESERVE counts 0.001 2000 TYPE counting", "PETAL.SEEN counts", 0),
        ("PETAL.RESERVE removes 0.001 2000 TYPE cuckoo", "CF.INSERTNX removes ITEMS", 1),
        ("PETAL.RESERVE last 0.001 2000 LAST", "PETAL.SEEN last", 0),
        ("PETAL.RESERVE hour 0.001 2000 WINDOW 1h", "PETAL.SEEN hour", 0),
    ];
    for (make, add, new) in ways {
        if !make.is_empty() {
            server.ask(make).ok();
        }
        let told = server.ask_words(&with_items(add)).ints();
        let new = told.iter().filter(|&&one| one == new).count() as i64;
        // The largest rate of these is that of CF.*, 3 %.
        assert!(new <= all && new > all * 9 / 10, "{add}: {new} of {all} are new");
    }
    replica.wait_for(&server);
    assert_eq!(replica.digest(), server.digest());
}

/// RedisBloom's layout has one public hash, and no key would fit into it: docs/server.md says so.
#[test]
#[ignore = "cargo x test --foreign"]
fn two_filters_have_two_keys_and_none_in_the_layout_of_redisbloom() {
    for (server, keyed) in [(Server::new(), true), (Server::compat(), false)] {
        for key in ["one", "two"] {
            server.ask_words(&with_items(&format!("BF.MADD {key}")));
        }
        let dump =
            |key: &str| server.ask(&format!("BF.SCANDUMP {key} 1")).items()[1].bytes().to_vec();
        assert_eq!(dump("one") != dump("two"), keyed);
    }
}
