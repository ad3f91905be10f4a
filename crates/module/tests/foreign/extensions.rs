//! Commands that users of other modules asked for: debugging, deletion of many, windows and keys
//! with a time to live on demand, clearing, metrics, another name.

use std::thread::sleep;
use std::time::Duration;

use crate::server::{Reply, Server, Setup, until};
use crate::zoo;

fn lines(reply: &Reply) -> Vec<String> {
    reply.items().iter().map(Reply::text).collect()
}

/// The expected lines are what RedisBloom 2.8.2 replied to the same commands.
#[test]
#[ignore = "cargo x test --foreign"]
fn debug_replies_are_redisblooms() {
    let server = Server::compat();
    server.ask("BF.RESERVE bf 0.02 25").ok();
    for item in 1..=150 {
        server.ask(&format!("BF.ADD bf i{item}"));
    }
    let expected = [
        "size:150",
        "bytes:32 bits:256 hashes:7 hashwidth:64 capacity:25 size:25 ratio:0.01",
        "bytes:72 bits:576 hashes:8 hashwidth:64 capacity:50 size:50 ratio:0.005",
        "bytes:160 bits:1280 hashes:9 hashwidth:64 capacity:100 size:75 ratio:0.0025",
    ];
    assert_eq!(lines(&server.ask("BF.DEBUG bf")), expected);
    server.ask("BF.RESERVE fixed 0.003 1000 NONSCALING").ok();
    let expected =
        ["size:0", "bytes:1512 bits:12096 hashes:9 hashwidth:64 capacity:1000 size:0 ratio:0.003"];
    assert_eq!(lines(&server.ask("BF.DEBUG fixed")), expected);
    server.ask("CF.RESERVE cf 100 BUCKETSIZE 4 EXPANSION 2").ok();
    server.ask("CF.INSERT cf ITEMS a b");
    server.ask("CF.DEL cf a");
    let expected = "bktsize:4 buckets:32 items:1 deletes:1 filters:1 max_iterations:20 expansion:2";
    assert_eq!(server.ask("CF.DEBUG cf").text(), expected);
    server.ask("SET string v").ok();
    for command in ["BF.DEBUG", "CF.DEBUG"] {
        assert_eq!(server.ask(&format!("{command} none")).error(), "ERR not found");
        assert!(server.ask(&format!("{command} string")).error().starts_with("WRONGTYPE"));
        assert!(server.ask(command).error().contains("wrong number of arguments"));
    }
    assert!(server.ask("BF.DEBUG cf").error().starts_with("WRONGTYPE"));
    assert!(server.ask("CF.DEBUG bf").error().starts_with("WRONGTYPE"));
}

/// In petal's layout the lines have the same fields; there is one for each layer.
#[test]
#[ignore = "cargo x test --foreign"]
fn debug_lists_the_layers_of_every_filter() {
    let server = Server::new();
    let zoo = zoo::filled(&server, 1000);
    for key in zoo.keys() {
        if key.starts_with("cf") {
            let line = server.ask(&format!("CF.DEBUG {key}")).text();
            assert!(line.starts_with("bktsize:") && line.contains(" items:1000 "), "{line}");
            continue;
        }
        let debug = lines(&server.ask(&format!("BF.DEBUG {key}")));
        let layers = server.ask(&format!("BF.INFO {key} FILTERS")).ints()[0];
        assert_eq!(debug.len() as i64, 1 + layers, "{key}");
        let items = server.ask(&format!("BF.CARD {key}")).int();
        assert_eq!(debug[0], format!("size:{items}"));
        let number = |line: &str, name: &str| -> i64 {
            let field = line.split(' ').find_map(|word| word.strip_prefix(name));
            field.unwrap_or_else(|| panic!("{name} in {line}")).parse().unwrap()
        };
        let sum: i64 = debug[1..].iter().map(|line| number(line, "size:")).sum();
        assert_eq!(sum, items, "{debug:?}");
        assert!(debug[1..].iter().all(|line| number(line, "bits:") == 8 * number(line, "bytes:")));
    }
}

/// How redis-py's tests compare a filter with its copy.
#[test]
#[ignore = "cargo x test --foreign"]
fn debug_replies_survive_chunks_and_restarts() {
    for mut server in [Server::new(), Server::compat()] {
        server.ask("BF.RESERVE from 0.001 100").ok();
        server.ask("CF.RESERVE cfrom 64 EXPANSION 2").ok();
        for item in 0..1000 {
            server.ask(&format!("BF.ADD from i{item}"));
            server.ask(&format!("CF.ADD cfrom i{item}"));
        }
        for (family, from, to) in [("BF", "from", "to"), ("CF", "cfrom", "cto")] {
            let debug = |server: &Server, key: &str| server.ask(&format!("{family}.DEBUG {key}"));
            let before = debug(&server, from);
            let mut at = 0;
            loop {
                let reply = server.ask(&format!("{family}.SCANDUMP {from} {at}"));
                at = reply.items()[0].int();
                if at == 0 {
                    break;
                }
                let (command, place) = (format!("{family}.LOADCHUNK"), at.to_string());
                let words =
                    [command.as_bytes(), to.as_bytes(), place.as_bytes(), reply.items()[1].bytes()];
                server.ask_words(&words).ok();
            }
            assert_eq!(debug(&server, to), before);
            server.restart();
            assert_eq!((debug(&server, from), debug(&server, to)), (before.clone(), before));
        }
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn many_items_are_deleted_at_once() {
    for (master, replica) in [(Server::new(), Server::new()), (Server::compat(), Server::new())] {
        replica.follow(&master);
        master.ask("CF.INSERT c ITEMS a a b");
        assert_eq!(master.ask("CF.MDEL c a b none a a").ints(), [1, 1, 0, 1, 0]);
        assert_eq!(master.ask("CF.MEXISTS c a b").ints(), [0, 0]);
        assert_eq!(master.ask("CF.MDEL none a").error(), "Not found");
        assert!(master.ask("CF.MDEL c").is_error());
        master.ask("BF.ADD bloom a");
        assert!(master.ask("CF.MDEL bloom a").error().starts_with("WRONGTYPE"));
        replica.wait_for(&master);
        assert_eq!(replica.digest(), master.digest());
        let before = master.info("master_repl_offset");
        assert_eq!(master.ask("CF.MDEL c a").ints(), [0]);
        assert_eq!(master.info("master_repl_offset"), before, "nothing was deleted");
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn a_window_is_created_on_demand() {
    let master = Setup::new().words("--appendonly yes --appendfsync always").start();
    let replica = Server::new();
    replica.follow(&master);
    let mut master = master;
    let ask = |line: &str| master.ask(line);
    let create = "0.001 100 WINDOW 1h GENERATIONS 3 ITEMS";
    assert_eq!(ask(&format!("PETAL.SEENCREATE w {create} a b a")).ints(), [0, 0, 1]);
    assert_eq!(ask(&format!("PETAL.SEENCREATE w {create} b c")).ints(), [1, 0]);
    assert_eq!(ask("PETAL.SEEN w c d").ints(), [1, 0]);
    let info = ask("PETAL.INFO w");
    assert_eq!((info.field("window-ms").int(), info.field("generations").int()), (3_600_000, 3));
    assert_eq!(ask("PETAL.SEENCREATE n 0.01 3 NONSCALING ITEMS a b c").ints(), [0, 0, 0]);
    let full = ask("PETAL.SEENCREATE n 0.01 3 NONSCALING ITEMS a d");
    assert!(full.items()[0] == Reply::Int(1) && full.items()[1].is_error(), "{full:?}");
    // An item may be any word, that of the option too.
    assert_eq!(ask("PETAL.SEENCREATE g 0.01 100 ITEMS items ITEMS TTL").ints(), [0, 0, 0]);
    assert_eq!(ask("PETAL.SEENCREATE one 0.01 100 LAST ITEMS x").ints(), [0]);
    for wrong in [
        "PETAL.SEENCREATE x 0.01 100 ITEMS",
        "PETAL.SEENCREATE x 0.01 100 a b",
        "PETAL.SEENCREATE x 2 100 ITEMS a",
        "PETAL.SEENCREATE x 0.01 100 WINDOW ITEMS a",
        "PETAL.SEENCREATE x 0.01 100 TYPE cuckoo ITEMS a",
        "PETAL.SEENCREATE x 0.01 100 BOGUS ITEMS a",
    ] {
        assert!(ask(wrong).is_error(), "{wrong}");
    }
    assert_eq!(ask("EXISTS x").int(), 0);
    replica.wait_for(&master);
    let digest = master.digest();
    assert_eq!(replica.digest(), digest);
    master.restart();
    assert_eq!(master.digest(), digest);
}

#[test]
#[ignore = "cargo x test --foreign"]
fn a_time_to_live_is_that_of_the_master() {
    let (mut master, replica) =
        (Setup::new().words("--appendonly yes --appendfsync always").start(), Server::new());
    replica.follow(&master);
    master.ask("PETAL.RESERVE long 0.01 100 TTL 1h").ok();
    assert_eq!(master.ask("PETAL.SEENCREATE seen 0.01 100 TTL 2h WINDOW 7d ITEMS a").ints(), [0]);
    master.ask("PETAL.RESERVE brief 0.01 100 TTL 150ms").ok();
    master.ask("PETAL.RESERVE none 0.01 100").ok();
    let at = |server: &Server, key: &str| server.ask(&format!("PEXPIRETIME {key}")).int();
    replica.wait_for(&master);
    let times = ["long", "seen", "none"].map(|key| at(&master, key));
    assert_eq!(["long", "seen", "none"].map(|key| at(&replica, key)), times);
    let hour = master.ask("PTTL long").int();
    assert!((3_500_000..=3_600_000).contains(&hour) && times[2] == -1, "{hour}");
    // A key that exists keeps its own.
    assert_eq!(master.ask("PETAL.SEENCREATE long 0.01 100 TTL 9h ITEMS a").ints(), [0]);
    assert_eq!(at(&master, "long"), times[0]);
    sleep(Duration::from_millis(200));
    assert_eq!(master.ask("EXISTS brief").int(), 0);
    master.restart();
    assert_eq!(["long", "seen", "none"].map(|key| at(&master, key)), times);
    assert!(master.ask("PETAL.RESERVE x 0.01 100 TTL 5").is_error());
    assert_eq!(master.ask("EXISTS x").int(), 0);
}

#[test]
#[ignore = "cargo x test --foreign"]
fn a_cleared_filter_is_as_it_was_reserved() {
    const SEED: &str = "SEED 000102030405060708090a0b0c0d0e0f";
    let reserve = |name: &str| {
        [
            format!("PETAL.RESERVE {name}:fixed 0.01 1000 NONSCALING {SEED}"),
            format!("PETAL.RESERVE {name}:grows 0.01 100 {SEED}"),
            format!("PETAL.RESERVE {name}:counts 0.01 1000 TYPE counting {SEED}"),
            format!("PETAL.RESERVE {name}:last 0.01 100 LAST {SEED}"),
            format!("PETAL.RESERVE {name}:cf 0.01 100 TYPE cuckoo {SEED}"),
        ]
    };
    let (master, replica) = (Server::new(), Server::new());
    replica.follow(&master);
    let dump = |key: &str| master.ask(&format!("DUMP {key}")).bytes().to_vec();
    let size = |key: &str| master.ask(&format!("MEMORY USAGE {key}")).int();
    for (line, fresh) in reserve("used").iter().zip(reserve("anew")) {
        master.ask(line).ok();
        master.ask(&fresh).ok();
        let key = line.split(' ').nth(1).unwrap();
        for item in 0..500 {
            let add = if key.ends_with("cf") { "CF.ADD" } else { "BF.ADD" };
            assert!(!master.ask(&format!("{add} {key} i{item}")).is_error());
        }
        master.ask(&format!("PETAL.CLEAR {key}")).ok();
        let fresh = key.replace("used", "anew");
        assert_eq!(dump(key), dump(&fresh), "{key}");
        assert_eq!(size(key), size(&fresh), "{key}");
        assert_eq!(master.ask(&format!("PETAL.EXISTS {key} i1 i499")).ints(), [0, 0]);
    }
    let compat = Server::compat();
    for line in ["BF.RESERVE b 0.01 10", "CF.RESERVE c 16"] {
        compat.ask(line).ok();
        let (family, key) = (&line[..2], line.split(' ').nth(1).unwrap());
        let state = || {
            let dump = compat.ask(&format!("DUMP {key}")).bytes().to_vec();
            let info = format!("{:?}", compat.ask(&format!("{family}.INFO {key}")));
            (dump, info, compat.ask(&format!("MEMORY USAGE {key}")).int())
        };
        let fill = || {
            (0..200).for_each(|item| _ = compat.ask(&format!("{family}.ADD {key} i{item}")));
            state()
        };
        let (fresh, filled) = (state(), fill());
        compat.ask(&format!("PETAL.CLEAR {key}")).ok();
        assert!(state() == fresh, "{line}");
        // A filter that grows again counts no layer of before.
        assert!(fill() == filled, "{line}");
    }
    assert_eq!(master.ask("PETAL.CLEAR none").error(), "ERR not found");
    master.ask("SET string v").ok();
    assert!(master.ask("PETAL.CLEAR string").error().starts_with("WRONGTYPE"));
    let mut file = Vec::new();
    petal::StaticFilter::build(&["a", "b"], 0.01).unwrap().write_to(&mut file, "").unwrap();
    master.ask_words(&[&b"PETAL.IMPORT"[..], b"static", b"0", &file]);
    assert!(master.ask("PETAL.CLEAR static").error().contains("delete the key"));
    assert_eq!(master.ask("PETAL.EXISTS static a").ints(), [1]);
    replica.wait_for(&master);
    assert_eq!(replica.digest(), master.digest());
}

#[test]
#[ignore = "cargo x test --foreign"]
fn a_filter_that_saturates_refuses_nothing() {
    const SEED: &str = "SEED 000102030405060708090a0b0c0d0e0f";
    let log = "--appendonly yes --aof-use-rdb-preamble no";
    let (mut master, replica) = (Setup::new().words(log).start(), Server::new());
    replica.follow(&master);
    master.ask(&format!("PETAL.RESERVE s 0.01 500 NONSCALING SATURATE {SEED}")).ok();
    master.ask(&format!("PETAL.RESERVE n 0.01 500 NONSCALING {SEED}")).ok();
    let size = master.ask("MEMORY USAGE s").int();
    assert_eq!(master.ask("MEMORY USAGE n").int(), size);
    let capacity = master.ask("BF.INFO s CAPACITY").ints()[0];
    assert!((500..600).contains(&capacity), "{capacity}");
    for item in 0..1500 {
        assert!(!master.ask(&format!("BF.ADD s i{item}")).is_error());
    }
    let items: Vec<_> = (1500..2000).map(|item| format!("i{item}")).collect();
    let words = ["PETAL.SEEN", "s"].into_iter().chain(items.iter().map(String::as_str));
    assert_eq!(master.ask_words(&words.collect::<Vec<_>>()).ints().len(), 500);
    assert!((0..2000).all(|item| master.ask(&format!("BF.EXISTS s i{item}")).int() == 1));
    let info = master.ask("PETAL.INFO s FULL");
    assert_eq!((info.field("saturates").int(), info.field("overfull").int()), (1, 1));
    assert_eq!(master.ask("MEMORY USAGE s").int(), size);
    // It has the shape of one that refuses, so the two can be merged.
    (0..9).for_each(|item| _ = master.ask(&format!("BF.ADD n n{item}")));
    master.ask("PETAL.MERGE s n").ok();
    assert_eq!(master.ask("BF.EXISTS s n8").int(), 1);
    master.ask("PETAL.CLEAR s").ok();
    (0..900).for_each(|item| assert!(!master.ask(&format!("BF.ADD s i{item}")).is_error()));
    replica.wait_for(&master);
    let digest = master.digest();
    assert_eq!(replica.digest(), digest);
    master.restart();
    assert_eq!(master.digest(), digest);
    assert!(!master.ask("BF.ADD s one-more").is_error());
    master.ask("BGREWRITEAOF");
    until("the log is rewritten", || master.info("aof_rewrite_in_progress") == "0");
    let digest = master.digest();
    master.restart();
    assert_eq!((master.digest(), master.ask("PETAL.INFO s").field("saturates").int()), (digest, 1));
}

#[test]
#[ignore = "cargo x test --foreign"]
fn a_missing_key_is_told_from_a_missing_item() {
    let server = Server::new();
    server.ask("BF.ADD bloom a");
    server.ask("CF.ADD cuckoo a");
    server.ask("PETAL.RESERVE window 0.001 100 WINDOW 1d").ok();
    server.ask("PETAL.SEEN window a");
    for key in ["bloom", "cuckoo", "window"] {
        assert_eq!(server.ask(&format!("PETAL.EXISTS {key} a zz")).ints(), [1, 0], "{key}");
    }
    assert_eq!(server.ask("PETAL.EXISTS none a").error(), "ERR not found");
    server.ask("SET string v").ok();
    assert!(server.ask("PETAL.EXISTS string a").error().starts_with("WRONGTYPE"));
    assert!(server.ask("PETAL.EXISTS bloom").is_error());
}

#[test]
#[ignore = "cargo x test --foreign"]
fn metrics_count_what_was_done() {
    let server = Server::new();
    server.ask("BF.RESERVE full 0.01 2 NONSCALING").ok();
    server.ask("BF.MADD full a b a c d"); // 2 new, 1 present, 1 rejected: it ends there
    server.ask("BF.ADD full c"); // rejected
    server.ask("BF.ADD other a"); // new
    server.ask("PETAL.SEEN other a b"); // present, new
    server.ask("CF.INSERT cf ITEMS a b"); // 2 new
    server.ask("CF.INSERTNX cf ITEMS a c"); // present, new
    server.ask("CF.DEL cf a");
    server.ask("CF.MDEL cf b zz");
    server.ask("BF.EXISTS other a");
    server.ask("BF.MEXISTS none a b");
    server.ask("CF.MEXISTS cf c zz");
    server.ask("PETAL.EXISTS other a");
    server.ask("CONFIG SET petal.memory-limit 1000").ok();
    assert!(server.ask("BF.RESERVE large 0.01 100000").is_error());
    let number = |name: &str| server.info(&format!("petal_{name}")).parse::<u64>().unwrap();
    for (name, expected) in [
        ("filters", 3),
        ("items_added", 7),
        ("items_already_present", 3),
        ("items_deleted", 2),
        ("queries", 6),
        ("queries_positive", 3),
        ("rejected_full", 2),
        ("rejected_memory_limit", 1),
        ("rejected_out_of_memory", 0),
    ] {
        assert_eq!(number(name), expected, "{name}");
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn clients_that_look_for_the_module_bf_find_it() {
    let server = Setup::new().module_words("NAME bf ERROR_RATE 0.001").start();
    // The server may have modules of its own.
    let modules = server.ask("MODULE LIST");
    let bf = modules.items().iter().find(|module| module.field("name").text() == "bf").unwrap();
    assert_eq!(bf.field("ver").int(), 20820);
    server.ask("BF.ADD a x");
    assert_eq!(server.ask("BF.INFO a ERROR").items()[0].text(), "0.001");
    server.ask("CONFIG SET bf.memory-limit 1gb").ok();
    assert_eq!(server.info("bf_filters"), "1");
    let refused = Setup::new().module_words("NAME other").try_start();
    assert!(refused.is_err_and(|log| log.contains("NAME is petal or bf")));
}

#[test]
#[ignore = "cargo x test --foreign"]
fn a_comparison_tells_whether_it_folded() {
    const SEED: &str = "SEED 000102030405060708090a0b0c0d0e0f";
    let server = Server::new();
    for (key, capacity) in [("a", 20_000), ("b", 20_000), ("c", 40_000)] {
        server.ask(&format!("PETAL.RESERVE {key} 0.01 {capacity} NONSCALING {SEED}")).ok();
        server.ask(&format!("BF.MADD {key} x y {key}"));
    }
    assert_eq!(server.ask("PETAL.COMPARE a b").field("folded").int(), 0);
    assert_eq!(server.ask("PETAL.COMPARE a c").field("folded").int(), 1);
    until("the server still answers", || server.is_alive());
}
