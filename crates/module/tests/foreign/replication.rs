//! A replica equals its master bit for bit, whatever its settings.

use crate::aof::LENIENT_COMMANDS;
use crate::captures::{captures, file};
use crate::sample_filters;
use crate::server::{Server, Setup, redisbloom};

/// Returns a master and a replica with different settings.
fn pair(setup: fn() -> Setup) -> (Server, Server) {
    let other = "--petal.bf-error-rate 0.2 --petal.bf-initial-size 7 --petal.bf-expansion-factor 3 \
                 --petal.cf-initial-size 16 --petal.cf-error-rate 0.1 --petal.memory-limit 1000000";
    let (master, replica) = (setup().start(), Setup::new().args(other).start());
    replica.replicate_from(&master);
    (master, replica)
}

const LAYOUTS: [fn() -> Setup; 2] = [Setup::new, Setup::redisbloom_layout];

#[track_caller]
fn assert_same(master: &Server, replica: &Server) {
    replica.wait_for_sync(master);
    assert_eq!(replica.digest(), master.digest());
}

#[test]
#[ignore = "cargo x test --foreign"]
fn replica_equals_its_master() {
    for layout in LAYOUTS {
        let (master, replica) = pair(layout);
        let filters = sample_filters::create(&master, 3000);
        assert_same(&master, &replica);
        filters.assert_members(&replica);
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn late_replica_equals_its_master() {
    for layout in LAYOUTS {
        let master = layout().start();
        let filters = sample_filters::create(&master, 3000);
        let replica = Server::new();
        replica.call("BF.ADD stale x");
        replica.replicate_from(&master);
        assert_same(&master, &replica);
        filters.grow(&master, 1000);
        assert_same(&master, &replica);
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn partial_inserts_are_replicated() {
    for layout in LAYOUTS {
        let (master, replica) = pair(layout);
        master.call("BF.RESERVE full 0.0001 3 NONSCALING").ok();
        let reply = master.call("BF.MADD full a b a c d e f");
        assert_eq!(reply.items().len(), 5);
        assert_eq!(reply.items()[4].error(), "ERR non scaling filter is full");
        master.call("BF.INSERT inserted CAPACITY 2 ERROR 0.0001 NONSCALING ITEMS a b c d");
        master.call("CF.RESERVE cuckoo 4 EXPANSION 0").ok();
        master.call("CF.INSERT cuckoo ITEMS a b c d e f g h i j k l m n o p");
        assert_same(&master, &replica);
        assert_eq!(replica.call("BF.MEXISTS full a b c d").ints(), [1, 1, 1, 0]);
        assert_eq!(replica.call("BF.CARD inserted").int(), 2);
        assert_eq!(replica.info("master_link_status"), "up");
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn rejected_commands_are_not_replicated() {
    let (master, replica) = pair(Setup::new);
    master.call("SET string v").ok();
    for line in [
        "BF.ADD string x",
        "BF.RESERVE r 7 100",
        "BF.INSERT gone NOCREATE ITEMS x",
        "CF.DEL gone x",
        "CF.RESERVE c 1",
        "BF.LOADCHUNK l 1 junk",
        "CF.LOADCHUNK l 1 junk",
    ] {
        assert!(master.call(line).is_error(), "{line}");
    }
    assert_same(&master, &replica);
    assert_eq!(replica.call("DBSIZE").int(), 1);
}

#[test]
#[ignore = "cargo x test --foreign"]
fn deletions_and_chunks_are_replicated() {
    for layout in LAYOUTS {
        let (master, replica) = pair(layout);
        sample_filters::create(&master, 1000);
        for number in 0..300 {
            assert_eq!(master.call(&format!("CF.DEL cf-grown item:{number}")).int(), 1);
        }
        master.call("CF.COMPACT cf-grown").ok();
        captures().iter().for_each(|capture| {
            master.call(&format!("DEL {}", capture.key));
            capture.load_chunks(&master);
        });
        assert_same(&master, &replica);
        captures().iter().for_each(|capture| capture.assert_equals_redisbloom(&replica));
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn compactions_are_replicated() {
    for layout in LAYOUTS {
        let (master, replica) = pair(layout);
        master.call("CF.RESERVE cuckoo 16 EXPANSION 1").ok();
        for number in 0..200 {
            master.call(&format!("CF.ADD cuckoo item:{number}"));
        }
        for number in 0..150 {
            master.call(&format!("CF.DEL cuckoo item:{number}"));
            // RedisBloom has compacted the newest layers; no field shows whether older ones
            // changed.
            if master.call("CF.INFO cuckoo").field("Number of items deleted").int() == 0 {
                master.call("CF.COMPACT cuckoo").ok();
                assert_same(&master, &replica);
            }
        }
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn inconsistent_settings_give_replicable_filters() {
    for layout in LAYOUTS {
        let (master, replica) = pair(layout);
        master.call("CONFIG SET petal.cf-initial-size 100").ok();
        master.call("CONFIG SET petal.cf-bucket-size 100").ok();
        assert_eq!(master.call("CF.ADD added a").int(), 1);
        assert_eq!(master.call("CF.INSERT inserted ITEMS a b").ints(), [1, 1]);
        assert_same(&master, &replica);
        assert_eq!(replica.call("CF.EXISTS added a").int(), 1);
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn transactions_and_scripts_are_replicated() {
    for layout in LAYOUTS {
        let (master, replica) = pair(layout);
        let mut client = master.client();
        client.call("MULTI").ok();
        client.call("BF.ADD tx a");
        client.call("CF.ADD txc a");
        client.call("EXEC");
        let script = "redis.call('BF.ADD', KEYS[1], 'a'); \
                      return redis.call('BF.MADD', KEYS[1], 'a', 'b', 'c')";
        assert_eq!(master.call_args(&["EVAL", script, "1", "scripted"]).ints(), [0, 1, 1]);
        assert_same(&master, &replica);
        assert_eq!(replica.call("BF.MEXISTS scripted a b c").ints(), [1, 1, 1]);
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn replica_takes_over() {
    for layout in LAYOUTS {
        let (mut master, replica) = pair(layout);
        let filters = sample_filters::create(&master, 2000);
        assert_same(&master, &replica);
        master.kill();
        replica.call("REPLICAOF NO ONE").ok();
        filters.assert_members(&replica);
        filters.grow(&replica, 500);
        let fresh = Server::new();
        fresh.replicate_from(&replica);
        assert_same(&replica, &fresh);
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn replica_of_redisbloom_takes_over() {
    let Some(module) = redisbloom() else {
        println!("skipped: no RedisBloom for this machine");
        return;
    };
    let redisbloom_server = Setup::with(module).file("dump.rdb", file("dump.rdb")).start();
    let petal_server = Setup::redisbloom_layout().start();
    petal_server.replicate_from(&redisbloom_server);
    captures().iter().for_each(|capture| capture.assert_equals_redisbloom(&petal_server));
    captures().iter().for_each(|capture| {
        capture.assert_accepts_items(&redisbloom_server);
        petal_server.wait_for_sync(&redisbloom_server);
        let family = capture.family();
        let redisbloom_server = crate::captures::chunks(&redisbloom_server, family, &capture.key);
        assert_eq!(crate::captures::chunks(&petal_server, family, &capture.key), redisbloom_server);
    });
    redisbloom_server.call("FLUSHALL").ok();
    // Replicated commands: the master's defaults equal the replica's.
    let filters = sample_filters::create_redisbloom_types(&redisbloom_server, 2000);
    petal_server.wait_for_sync(&redisbloom_server);
    filters.assert_members(&petal_server);
    for line in LENIENT_COMMANDS {
        assert!(!redisbloom_server.call(line).is_error(), "{line}");
        petal_server.wait_for_sync(&redisbloom_server);
        let args: Vec<_> = line.split(' ').collect();
        let chunks = |server| crate::captures::chunks(server, &args[0][..2], args[1]);
        assert_eq!(chunks(&petal_server), chunks(&redisbloom_server), "{line}");
    }
    petal_server.call("REPLICAOF NO ONE").ok();
    filters.grow(&petal_server, 500);
}
