//! DEBUG, MDEL, SEENCREATE, TTL, CLEAR, SATURATE, EXISTS, metrics, and the module name `bf`.

use std::thread::sleep;
use std::time::Duration;

use crate::sample_filters;
use crate::server::{Reply, Server, Setup, wait_until};

fn lines(reply: &Reply) -> Vec<String> {
    reply.items().iter().map(Reply::text).collect()
}

/// The expected lines are RedisBloom 2.8.2's replies to the same commands.
#[test]
#[ignore = "cargo x test --foreign"]
fn debug_replies_equal_redisblooms() {
    let server = Server::redisbloom_layout();
    server.call("BF.RESERVE bf 0.02 25").ok();
    for item in 1..=150 {
        server.call(&format!("BF.ADD bf i{item}"));
    }
    let expected = [
        "size:150",
        "bytes:32 bits:256 hashes:7 hashwidth:64 capacity:25 size:25 ratio:0.01",
        "bytes:72 bits:576 hashes:8 hashwidth:64 capacity:50 size:50 ratio:0.005",
        "bytes:160 bits:1280 hashes:9 hashwidth:64 capacity:100 size:75 ratio:0.0025",
    ];
    assert_eq!(lines(&server.call("BF.DEBUG bf")), expected);
    server.call("BF.RESERVE fixed 0.003 1000 NONSCALING").ok();
    let expected =
        ["size:0", "bytes:1512 bits:12096 hashes:9 hashwidth:64 capacity:1000 size:0 ratio:0.003"];
    assert_eq!(lines(&server.call("BF.DEBUG fixed")), expected);
    server.call("CF.RESERVE cf 100 BUCKETSIZE 4 EXPANSION 2").ok();
    server.call("CF.INSERT cf ITEMS a b");
    server.call("CF.DEL cf a");
    let expected = "bktsize:4 buckets:32 items:1 deletes:1 filters:1 max_iterations:20 expansion:2";
    assert_eq!(server.call("CF.DEBUG cf").text(), expected);
    server.call("SET string v").ok();
    for command in ["BF.DEBUG", "CF.DEBUG"] {
        assert_eq!(server.call(&format!("{command} none")).error(), "ERR not found");
        assert!(server.call(&format!("{command} string")).error().starts_with("WRONGTYPE"));
        assert!(server.call(command).error().contains("wrong number of arguments"));
    }
    assert!(server.call("BF.DEBUG cf").error().starts_with("WRONGTYPE"));
    assert!(server.call("CF.DEBUG bf").error().starts_with("WRONGTYPE"));
}

/// In petal's layout the lines have the same fields, one line per layer.
#[test]
#[ignore = "cargo x test --foreign"]
fn debug_lists_the_layers_of_every_filter() {
    let server = Server::new();
    let filters = sample_filters::create(&server, 1000);
    for key in filters.keys() {
        if key.starts_with("cf") {
            let line = server.call(&format!("CF.DEBUG {key}")).text();
            assert!(line.starts_with("bktsize:") && line.contains(" items:1000 "), "{line}");
            continue;
        }
        let debug = lines(&server.call(&format!("BF.DEBUG {key}")));
        let layers = server.call(&format!("BF.INFO {key} FILTERS")).ints()[0];
        assert_eq!(debug.len() as i64, 1 + layers, "{key}");
        let items = server.call(&format!("BF.CARD {key}")).int();
        assert_eq!(debug[0], format!("size:{items}"));
        let number = |line: &str, name: &str| -> i64 {
            let field = line.split(' ').find_map(|arg| arg.strip_prefix(name));
            field.unwrap_or_else(|| panic!("{name} in {line}")).parse().unwrap()
        };
        let sum: i64 = debug[1..].iter().map(|line| number(line, "size:")).sum();
        assert_eq!(sum, items, "{debug:?}");
        assert!(debug[1..].iter().all(|line| number(line, "bits:") == 8 * number(line, "bytes:")));
    }
}

/// redis-py's tests compare a filter with its copy in this way.
#[test]
#[ignore = "cargo x test --foreign"]
fn debug_replies_survive_chunks_and_restarts() {
    for mut server in [Server::new(), Server::redisbloom_layout()] {
        server.call("BF.RESERVE from 0.001 100").ok();
        server.call("CF.RESERVE cfrom 64 EXPANSION 2").ok();
        for item in 0..1000 {
            server.call(&format!("BF.ADD from i{item}"));
            server.call(&format!("CF.ADD cfrom i{item}"));
        }
        for (family, from, to) in [("BF", "from", "to"), ("CF", "cfrom", "cto")] {
            let debug = |server: &Server, key: &str| server.call(&format!("{family}.DEBUG {key}"));
            let before = debug(&server, from);
            let mut at = 0;
            loop {
                let reply = server.call(&format!("{family}.SCANDUMP {from} {at}"));
                at = reply.items()[0].int();
                if at == 0 {
                    break;
                }
                let (command, place) = (format!("{family}.LOADCHUNK"), at.to_string());
                let args =
                    [command.as_bytes(), to.as_bytes(), place.as_bytes(), reply.items()[1].bytes()];
                server.call_args(&args).ok();
            }
            assert_eq!(debug(&server, to), before);
            server.restart();
            assert_eq!((debug(&server, from), debug(&server, to)), (before.clone(), before));
        }
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn mdel_deletes_several_items() {
    for (master, replica) in
        [(Server::new(), Server::new()), (Server::redisbloom_layout(), Server::new())]
    {
        replica.replicate_from(&master);
        master.call("CF.INSERT c ITEMS a a b");
        assert_eq!(master.call("CF.MDEL c a b none a a").ints(), [1, 1, 0, 1, 0]);
        assert_eq!(master.call("CF.MEXISTS c a b").ints(), [0, 0]);
        assert_eq!(master.call("CF.MDEL none a").error(), "Not found");
        assert!(master.call("CF.MDEL c").is_error());
        master.call("BF.ADD bloom a");
        assert!(master.call("CF.MDEL bloom a").error().starts_with("WRONGTYPE"));
        replica.wait_for_sync(&master);
        assert_eq!(replica.digest(), master.digest());
        let before = master.info("master_repl_offset");
        assert_eq!(master.call("CF.MDEL c a").ints(), [0]);
        assert_eq!(master.info("master_repl_offset"), before, "nothing was deleted");
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn seencreate_creates_a_missing_filter() {
    let master = Setup::new().args("--appendonly yes --appendfsync always").start();
    let replica = Server::new();
    replica.replicate_from(&master);
    let mut master = master;
    let call = |line: &str| master.call(line);
    let create = "0.001 100 WINDOW 1h GENERATIONS 3 ITEMS";
    assert_eq!(call(&format!("PETAL.SEENCREATE w {create} a b a")).ints(), [0, 0, 1]);
    assert_eq!(call(&format!("PETAL.SEENCREATE w {create} b c")).ints(), [1, 0]);
    assert_eq!(call("PETAL.SEEN w c d").ints(), [1, 0]);
    let info = call("PETAL.INFO w");
    assert_eq!((info.field("window-ms").int(), info.field("generations").int()), (3_600_000, 3));
    assert_eq!(call("PETAL.SEENCREATE n 0.01 3 NONSCALING ITEMS a b c").ints(), [0, 0, 0]);
    let full = call("PETAL.SEENCREATE n 0.01 3 NONSCALING ITEMS a d");
    assert!(full.items()[0] == Reply::Int(1) && full.items()[1].is_error(), "{full:?}");
    // An item may be any word, even that of an option.
    assert_eq!(call("PETAL.SEENCREATE g 0.01 100 ITEMS items ITEMS TTL").ints(), [0, 0, 0]);
    assert_eq!(call("PETAL.SEENCREATE one 0.01 100 LAST ITEMS x").ints(), [0]);
    for wrong in [
        "PETAL.SEENCREATE x 0.01 100 ITEMS",
        "PETAL.SEENCREATE x 0.01 100 a b",
        "PETAL.SEENCREATE x 2 100 ITEMS a",
        "PETAL.SEENCREATE x 0.01 100 WINDOW ITEMS a",
        "PETAL.SEENCREATE x 0.01 100 TYPE cuckoo ITEMS a",
        "PETAL.SEENCREATE x 0.01 100 BOGUS ITEMS a",
    ] {
        assert!(call(wrong).is_error(), "{wrong}");
    }
    assert_eq!(call("EXISTS x").int(), 0);
    replica.wait_for_sync(&master);
    let digest = master.digest();
    assert_eq!(replica.digest(), digest);
    master.restart();
    assert_eq!(master.digest(), digest);
}

#[test]
#[ignore = "cargo x test --foreign"]
fn time_to_live_is_replicated() {
    let (mut master, replica) =
        (Setup::new().args("--appendonly yes --appendfsync always").start(), Server::new());
    replica.replicate_from(&master);
    master.call("PETAL.RESERVE long 0.01 100 TTL 1h").ok();
    assert_eq!(master.call("PETAL.SEENCREATE seen 0.01 100 TTL 2h WINDOW 7d ITEMS a").ints(), [0]);
    master.call("PETAL.RESERVE brief 0.01 100 TTL 150ms").ok();
    master.call("PETAL.RESERVE none 0.01 100").ok();
    let at = |server: &Server, key: &str| server.call(&format!("PEXPIRETIME {key}")).int();
    replica.wait_for_sync(&master);
    let times = ["long", "seen", "none"].map(|key| at(&master, key));
    assert_eq!(["long", "seen", "none"].map(|key| at(&replica, key)), times);
    let hour = master.call("PTTL long").int();
    assert!((3_500_000..=3_600_000).contains(&hour) && times[2] == -1, "{hour}");
    // An existing key keeps its time to live.
    assert_eq!(master.call("PETAL.SEENCREATE long 0.01 100 TTL 9h ITEMS a").ints(), [0]);
    assert_eq!(at(&master, "long"), times[0]);
    sleep(Duration::from_millis(200));
    assert_eq!(master.call("EXISTS brief").int(), 0);
    master.restart();
    assert_eq!(["long", "seen", "none"].map(|key| at(&master, key)), times);
    assert!(master.call("PETAL.RESERVE x 0.01 100 TTL 5").is_error());
    assert_eq!(master.call("EXISTS x").int(), 0);
}

#[test]
#[ignore = "cargo x test --foreign"]
fn cleared_filter_equals_a_new_one() {
    const SEED: &str = "SEED 000102030405060708090a0b0c0d0e0f";
    let reserve = |name: &str| {
        [
            format!("PETAL.RESERVE {name}:fixed 0.01 1000 NONSCALING {SEED}"),
            format!("PETAL.RESERVE {name}:grows 0.01 100 {SEED}"),
            format!("PETAL.RESERVE {name}:counts 0.01 1000 TYPE counting {SEED}"),
            format!("PETAL.RESERVE {name}:slots 0.01 1000 TYPE vector-quotient {SEED}"),
            format!("PETAL.RESERVE {name}:last 0.01 100 LAST {SEED}"),
            format!("PETAL.RESERVE {name}:cf 0.01 100 TYPE cuckoo {SEED}"),
        ]
    };
    let (master, replica) = (Server::new(), Server::new());
    replica.replicate_from(&master);
    let dump = |key: &str| master.call(&format!("DUMP {key}")).bytes().to_vec();
    let size = |key: &str| master.call(&format!("MEMORY USAGE {key}")).int();
    // Names of equal length, because names use memory too.
    for (line, fresh) in reserve("used").iter().zip(reserve("pure")) {
        master.call(line).ok();
        master.call(&fresh).ok();
        let key = line.split(' ').nth(1).unwrap();
        for item in 0..500 {
            let add = if key.ends_with("cf") { "CF.ADD" } else { "BF.ADD" };
            assert!(!master.call(&format!("{add} {key} i{item}")).is_error());
        }
        master.call(&format!("PETAL.CLEAR {key}")).ok();
        let fresh = key.replace("used", "pure");
        assert_eq!(dump(key), dump(&fresh), "{key}");
        assert_eq!(size(key), size(&fresh), "{key}");
        assert_eq!(master.call(&format!("PETAL.EXISTS {key} i1 i499")).ints(), [0, 0]);
    }
    let redisbloom_layout = Server::redisbloom_layout();
    for line in ["BF.RESERVE b 0.01 10", "CF.RESERVE c 16"] {
        redisbloom_layout.call(line).ok();
        let (family, key) = (&line[..2], line.split(' ').nth(1).unwrap());
        let state = || {
            let dump = redisbloom_layout.call(&format!("DUMP {key}")).bytes().to_vec();
            let info = format!("{:?}", redisbloom_layout.call(&format!("{family}.INFO {key}")));
            (dump, info, redisbloom_layout.call(&format!("MEMORY USAGE {key}")).int())
        };
        let fill = || {
            (0..200).for_each(|item| {
                _ = redisbloom_layout.call(&format!("{family}.ADD {key} i{item}"))
            });
            state()
        };
        let (fresh, create) = (state(), fill());
        redisbloom_layout.call(&format!("PETAL.CLEAR {key}")).ok();
        assert!(state() == fresh, "{line}");
        // A filter that grows again does not count the freed layers.
        assert!(fill() == create, "{line}");
    }
    assert_eq!(master.call("PETAL.CLEAR none").error(), "ERR not found");
    master.call("SET string v").ok();
    assert!(master.call("PETAL.CLEAR string").error().starts_with("WRONGTYPE"));
    let mut file = Vec::new();
    petal::StaticFilter::build(&["a", "b"], 0.01).unwrap().write_to(&mut file, "").unwrap();
    master.call_args(&[&b"PETAL.IMPORT"[..], b"static", b"0", &file]);
    assert!(master.call("PETAL.CLEAR static").error().contains("delete the key"));
    assert_eq!(master.call("PETAL.EXISTS static a").ints(), [1]);
    replica.wait_for_sync(&master);
    assert_eq!(replica.digest(), master.digest());
}

#[test]
#[ignore = "cargo x test --foreign"]
fn saturating_filter_accepts_items_beyond_its_capacity() {
    const SEED: &str = "SEED 000102030405060708090a0b0c0d0e0f";
    let log = "--appendonly yes --aof-use-rdb-preamble no";
    let (mut master, replica) = (Setup::new().args(log).start(), Server::new());
    replica.replicate_from(&master);
    master.call(&format!("PETAL.RESERVE s 0.01 500 NONSCALING SATURATE {SEED}")).ok();
    master.call(&format!("PETAL.RESERVE n 0.01 500 NONSCALING {SEED}")).ok();
    let size = master.call("MEMORY USAGE s").int();
    assert_eq!(master.call("MEMORY USAGE n").int(), size);
    let capacity = master.call("BF.INFO s CAPACITY").ints()[0];
    assert!((500..600).contains(&capacity), "{capacity}");
    for item in 0..1500 {
        assert!(!master.call(&format!("BF.ADD s i{item}")).is_error());
    }
    let items: Vec<_> = (1500..2000).map(|item| format!("i{item}")).collect();
    let args = ["PETAL.SEEN", "s"].into_iter().chain(items.iter().map(String::as_str));
    assert_eq!(master.call_args(&args.collect::<Vec<_>>()).ints().len(), 500);
    assert!((0..2000).all(|item| master.call(&format!("BF.EXISTS s i{item}")).int() == 1));
    let info = master.call("PETAL.INFO s FULL");
    assert_eq!((info.field("saturates").int(), info.field("overfull").int()), (1, 1));
    assert_eq!(master.call("MEMORY USAGE s").int(), size);
    // It has the same layout as a filter without SATURATE, so the two can be merged.
    (0..9).for_each(|item| _ = master.call(&format!("BF.ADD n n{item}")));
    master.call("PETAL.MERGE s n").ok();
    assert_eq!(master.call("BF.EXISTS s n8").int(), 1);
    master.call("PETAL.CLEAR s").ok();
    (0..900).for_each(|item| assert!(!master.call(&format!("BF.ADD s i{item}")).is_error()));
    replica.wait_for_sync(&master);
    let digest = master.digest();
    assert_eq!(replica.digest(), digest);
    master.restart();
    assert_eq!(master.digest(), digest);
    assert!(!master.call("BF.ADD s one-more").is_error());
    master.call("BGREWRITEAOF");
    wait_until("the log is rewritten", || master.info("aof_rewrite_in_progress") == "0");
    let digest = master.digest();
    master.restart();
    assert_eq!(
        (master.digest(), master.call("PETAL.INFO s").field("saturates").int()),
        (digest, 1)
    );
}

#[test]
#[ignore = "cargo x test --foreign"]
fn exists_of_a_missing_key_is_an_error() {
    let server = Server::new();
    server.call("BF.ADD bloom a");
    server.call("CF.ADD cuckoo a");
    server.call("PETAL.RESERVE window 0.001 100 WINDOW 1d").ok();
    server.call("PETAL.SEEN window a");
    for key in ["bloom", "cuckoo", "window"] {
        assert_eq!(server.call(&format!("PETAL.EXISTS {key} a zz")).ints(), [1, 0], "{key}");
    }
    assert_eq!(server.call("PETAL.EXISTS none a").error(), "ERR not found");
    server.call("SET string v").ok();
    assert!(server.call("PETAL.EXISTS string a").error().starts_with("WRONGTYPE"));
    assert!(server.call("PETAL.EXISTS bloom").is_error());
}

#[test]
#[ignore = "cargo x test --foreign"]
fn metrics_count_operations() {
    let server = Server::new();
    server.call("BF.RESERVE full 0.01 2 NONSCALING").ok();
    server.call("BF.MADD full a b a c d"); // 2 new, 1 present, 1 rejected: it ends there
    server.call("BF.ADD full c"); // rejected
    server.call("BF.ADD other a"); // new
    server.call("PETAL.SEEN other a b"); // present, new
    server.call("CF.INSERT cf ITEMS a b"); // 2 new
    server.call("CF.INSERTNX cf ITEMS a c"); // present, new
    server.call("CF.DEL cf a");
    server.call("CF.MDEL cf b zz");
    server.call("BF.EXISTS other a");
    server.call("BF.MEXISTS none a b");
    server.call("CF.MEXISTS cf c zz");
    server.call("PETAL.EXISTS other a");
    server.call("CONFIG SET petal.memory-limit 1000").ok();
    assert!(server.call("BF.RESERVE large 0.01 100000").is_error());
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
fn module_can_be_named_bf() {
    let server = Setup::new().module_args("NAME bf ERROR_RATE 0.001").start();
    // The server may have modules of its own.
    let modules = server.call("MODULE LIST");
    let bf = modules.items().iter().find(|module| module.field("name").text() == "bf").unwrap();
    assert_eq!(bf.field("ver").int(), 20820);
    server.call("BF.ADD a x");
    assert_eq!(server.call("BF.INFO a ERROR").items()[0].text(), "0.001");
    server.call("CONFIG SET bf.memory-limit 1gb").ok();
    assert_eq!(server.info("bf_filters"), "1");
    let rejected = Setup::new().module_args("NAME other").try_start();
    assert!(rejected.is_err_and(|log| log.contains("NAME must be petal or bf")));
}

#[test]
#[ignore = "cargo x test --foreign"]
fn comparison_reports_folding() {
    const SEED: &str = "SEED 000102030405060708090a0b0c0d0e0f";
    let server = Server::new();
    for (key, capacity) in [("a", 20_000), ("b", 20_000), ("c", 40_000)] {
        server.call(&format!("PETAL.RESERVE {key} 0.01 {capacity} NONSCALING {SEED}")).ok();
        server.call(&format!("BF.MADD {key} x y {key}"));
    }
    assert_eq!(server.call("PETAL.COMPARE a b").field("folded").int(), 0);
    assert_eq!(server.call("PETAL.COMPARE a c").field("folded").int(), 1);
    wait_until("the server still answers", || server.is_alive());
}
