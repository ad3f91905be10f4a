//! A replica equals its master to the bit, whatever its own settings are.

use crate::aof::LOOSE;
use crate::captures::{captures, file};
use crate::server::{Server, Setup, redisbloom};
use crate::zoo;

/// A pair in which every setting of the replica is another.
fn pair(setup: fn() -> Setup) -> (Server, Server) {
    let other = "--petal.bf-error-rate 0.2 --petal.bf-initial-size 7 --petal.bf-expansion-factor 3 \
                 --petal.cf-initial-size 16 --petal.cf-error-rate 0.1 --petal.memory-limit 1000000";
    let (master, replica) = (setup().start(), Setup::new().words(other).start());
    replica.follow(&master);
    (master, replica)
}

const LAYOUTS: [fn() -> Setup; 2] = [Setup::new, Setup::compat];

#[track_caller]
fn assert_same(master: &Server, replica: &Server) {
    replica.wait_for(master);
    assert_eq!(replica.digest(), master.digest());
}

#[test]
#[ignore = "cargo x test --foreign"]
fn a_replica_is_made_and_fed_to_the_bit() {
    for layout in LAYOUTS {
        let (master, replica) = pair(layout);
        let zoo = zoo::filled(&master, 3000);
        assert_same(&master, &replica);
        zoo.assert_members(&replica);
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn a_late_replica_gets_all_and_goes_on() {
    for layout in LAYOUTS {
        let master = layout().start();
        let zoo = zoo::filled(&master, 3000);
        let replica = Server::new();
        replica.ask("BF.ADD stale x");
        replica.follow(&master);
        assert_same(&master, &replica);
        zoo.grow(&master, 1000);
        assert_same(&master, &replica);
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn a_partial_add_replicates_what_it_did() {
    for layout in LAYOUTS {
        let (master, replica) = pair(layout);
        master.ask("BF.RESERVE full 0.0001 3 NONSCALING").ok();
        let reply = master.ask("BF.MADD full a b a c d e f");
        assert_eq!(reply.items().len(), 5);
        assert_eq!(reply.items()[4].error(), "ERR non scaling filter is full");
        master.ask("BF.INSERT inserted CAPACITY 2 ERROR 0.0001 NONSCALING ITEMS a b c d");
        master.ask("CF.RESERVE cuckoo 4 EXPANSION 0").ok();
        master.ask("CF.INSERT cuckoo ITEMS a b c d e f g h i j k l m n o p");
        assert_same(&master, &replica);
        assert_eq!(replica.ask("BF.MEXISTS full a b c d").ints(), [1, 1, 1, 0]);
        assert_eq!(replica.ask("BF.CARD inserted").int(), 2);
        assert_eq!(replica.info("master_link_status"), "up");
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn refused_commands_change_no_replica() {
    let (master, replica) = pair(Setup::new);
    master.ask("SET string v").ok();
    for line in [
        "BF.ADD string x",
        "BF.RESERVE r 7 100",
        "BF.INSERT gone NOCREATE ITEMS x",
        "CF.DEL gone x",
        "CF.RESERVE c 1",
        "BF.LOADCHUNK l 1 junk",
        "CF.LOADCHUNK l 1 junk",
    ] {
        assert!(master.ask(line).is_error(), "{line}");
    }
    assert_same(&master, &replica);
    assert_eq!(replica.ask("DBSIZE").int(), 1);
}

#[test]
#[ignore = "cargo x test --foreign"]
fn deletions_and_chunks_reach_the_replica() {
    for layout in LAYOUTS {
        let (master, replica) = pair(layout);
        zoo::filled(&master, 1000);
        for number in 0..300 {
            assert_eq!(master.ask(&format!("CF.DEL cf-grown item:{number}")).int(), 1);
        }
        master.ask("CF.COMPACT cf-grown").ok();
        captures().iter().for_each(|capture| {
            master.ask(&format!("DEL {}", capture.key));
            capture.load_chunks(&master);
        });
        assert_same(&master, &replica);
        captures().iter().for_each(|capture| capture.assert_exact(&replica));
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn a_compaction_reaches_the_replica_whatever_it_changed() {
    for layout in LAYOUTS {
        let (master, replica) = pair(layout);
        master.ask("CF.RESERVE cuckoo 16 EXPANSION 1").ok();
        for number in 0..200 {
            master.ask(&format!("CF.ADD cuckoo item:{number}"));
        }
        for number in 0..150 {
            master.ask(&format!("CF.DEL cuckoo item:{number}"));
            // RedisBloom has just compacted the newest layers: of the others no figure tells.
            if master.ask("CF.INFO cuckoo").field("Number of items deleted").int() == 0 {
                master.ask("CF.COMPACT cuckoo").ok();
                assert_same(&master, &replica);
            }
        }
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn settings_that_do_not_fit_make_filters_that_replicate() {
    for layout in LAYOUTS {
        let (master, replica) = pair(layout);
        master.ask("CONFIG SET petal.cf-initial-size 100").ok();
        master.ask("CONFIG SET petal.cf-bucket-size 100").ok();
        assert_eq!(master.ask("CF.ADD added a").int(), 1);
        assert_eq!(master.ask("CF.INSERT inserted ITEMS a b").ints(), [1, 1]);
        assert_same(&master, &replica);
        assert_eq!(replica.ask("CF.EXISTS added a").int(), 1);
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn a_transaction_and_a_script_replicate() {
    for layout in LAYOUTS {
        let (master, replica) = pair(layout);
        let mut client = master.client();
        client.ask("MULTI").ok();
        client.ask("BF.ADD tx a");
        client.ask("CF.ADD txc a");
        client.ask("EXEC");
        let script = "redis.call('BF.ADD', KEYS[1], 'a'); \
                      return redis.call('BF.MADD', KEYS[1], 'a', 'b', 'c')";
        assert_eq!(master.ask_words(&["EVAL", script, "1", "scripted"]).ints(), [0, 1, 1]);
        assert_same(&master, &replica);
        assert_eq!(replica.ask("BF.MEXISTS scripted a b c").ints(), [1, 1, 1]);
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn a_replica_takes_over() {
    for layout in LAYOUTS {
        let (mut master, replica) = pair(layout);
        let zoo = zoo::filled(&master, 2000);
        assert_same(&master, &replica);
        master.kill();
        replica.ask("REPLICAOF NO ONE").ok();
        zoo.assert_members(&replica);
        zoo.grow(&replica, 500);
        let fresh = Server::new();
        fresh.follow(&replica);
        assert_same(&replica, &fresh);
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn a_replica_of_redisbloom_takes_over() {
    let Some(module) = redisbloom() else {
        println!("left out: the peers have no RedisBloom for this machine");
        return;
    };
    let theirs = Setup::with(module).file("dump.rdb", file("dump.rdb")).start();
    let ours = Setup::compat().start();
    ours.follow(&theirs);
    captures().iter().for_each(|capture| capture.assert_exact(&ours));
    captures().iter().for_each(|capture| {
        capture.assert_goes_on(&theirs);
        ours.wait_for(&theirs);
        let family = capture.family();
        let theirs = crate::captures::chunks(&theirs, family, &capture.key);
        assert_eq!(crate::captures::chunks(&ours, family, &capture.key), theirs);
    });
    theirs.ask("FLUSHALL").ok();
    // The stream after the files: made by the master's defaults, which are ours.
    let zoo = zoo::filled_as_redisbloom_can(&theirs, 2000);
    ours.wait_for(&theirs);
    zoo.assert_members(&ours);
    for line in LOOSE {
        assert!(!theirs.ask(line).is_error(), "{line}");
        ours.wait_for(&theirs);
        let words: Vec<_> = line.split(' ').collect();
        let chunks = |server| crate::captures::chunks(server, &words[0][..2], words[1]);
        assert_eq!(chunks(&ours), chunks(&theirs), "{line}");
    }
    ours.ask("REPLICAOF NO ONE").ok();
    zoo.grow(&ours, 500);
}
