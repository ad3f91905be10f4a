//! `PETAL.*`: counting filters, windows, merges and comparisons, and their replication and logs.

use std::thread::sleep;
use std::time::Duration;

use crate::server::{Reply, Server, Setup, wait_until};

const SEED: &str = "SEED 000102030405060708090a0b0c0d0e0f";

/// Returns a master and its replica with different settings.
fn pair() -> (Server, Server) {
    let master = Server::new();
    let replica = Setup::new().args("--petal.memory-limit 1 --petal.bf-initial-size 7").start();
    replica.replicate_from(&master);
    (master, replica)
}

#[track_caller]
fn assert_same(master: &Server, replica: &Server) {
    replica.wait_for_sync(master);
    assert_eq!(replica.digest(), master.digest());
}

#[test]
#[ignore = "cargo x test --foreign"]
fn seen_replies_whether_items_were_present() {
    let server = Server::new();
    for (key, line) in [
        ("fixed", "0.001 1000 NONSCALING"),
        ("grows", "0.001 100"),
        ("counts", "0.001 1000 TYPE counting"),
        ("slots", "0.001 1000 TYPE vector-quotient"),
        ("last", "0.001 1000 LAST"),
        ("hour", "0.001 1000 WINDOW 1h"),
    ] {
        server.call(&format!("PETAL.RESERVE {key} {line}")).ok();
        assert_eq!(server.call(&format!("PETAL.SEEN {key} a b a")).ints(), [0, 0, 1], "{key}");
        assert_eq!(server.call(&format!("PETAL.SEEN {key} b c")).ints(), [1, 0], "{key}");
        assert_eq!(server.call(&format!("BF.MEXISTS {key} a b c d")).ints(), [1, 1, 1, 0], "{key}");
        let exists = format!("PETAL.RESERVE {key} {line}");
        assert_eq!(server.call(&exists).error(), "ERR item exists");
    }
    assert_eq!(server.call("PETAL.SEEN nothing a").error(), "ERR not found");
    assert_eq!(server.call("EXISTS nothing").int(), 0);
    server.call("SET string v").ok();
    assert!(server.call("PETAL.SEEN string a").error().starts_with("WRONGTYPE"));
}

#[test]
#[ignore = "cargo x test --foreign"]
fn exactly_one_client_gets_a_new_item() {
    let server = Server::new();
    server.call("PETAL.RESERVE urls 0.000001 10000 NONSCALING").ok();
    let news: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let mut client = server.client();
                scope.spawn(move || {
                    let mut call = |url| client.call(&format!("PETAL.SEEN urls u{url}")).ints();
                    (0..1000).filter(|url| call(*url) == [0]).count()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(news, 1000);
}

#[test]
#[ignore = "cargo x test --foreign"]
fn full_filter_replies_for_inserted_items() {
    let (master, replica) = pair();
    master.call("PETAL.RESERVE full 0.0001 3 NONSCALING").ok();
    let reply = master.call("PETAL.SEEN full a b a c d e");
    assert_eq!(reply.items().len(), 5);
    assert_eq!(Reply::Array(reply.items()[..4].to_vec()).ints(), [0, 0, 1, 0]);
    assert_eq!(reply.items()[4].error(), "ERR non scaling filter is full");
    assert_same(&master, &replica);
    assert_eq!(replica.call("BF.MEXISTS full a b c d").ints(), [1, 1, 1, 0]);
    // All copies of an item must fit into its two blocks, which are one in a fortieth of the filters;
    // those before the one that does not are replicated.
    master.call("PETAL.RESERVE copies 0.0001 1000 TYPE vector-quotient").ok();
    let args = ["PETAL.SEEN", "copies"].into_iter().chain(std::iter::repeat_n("a", 300));
    let reply = master.call_args(&args.map(str::to_owned).collect::<Vec<_>>());
    let inserted = reply.items().len() - 1;
    assert!((24..=128).contains(&inserted), "{inserted}");
    assert_eq!(reply.items()[inserted].error(), "ERR non scaling filter is full");
    assert_same(&master, &replica);
    assert_eq!(replica.call("PETAL.COUNT copies a").ints(), [inserted as i64]);
}

#[test]
#[ignore = "cargo x test --foreign"]
fn windows_expire_items_and_queries_change_nothing() {
    let server = Server::new();
    server.call("PETAL.RESERVE last 0.0001 100 LAST").ok();
    server.call("PETAL.SEEN last first");
    (0..300).for_each(|item| {
        server.call(&format!("PETAL.SEEN last i{item}"));
    });
    assert_eq!(server.call("BF.MEXISTS last first i299 i201").ints(), [0, 1, 1]);

    server.call("PETAL.RESERVE brief 0.0001 100 WINDOW 600ms GENERATIONS 4").ok();
    server.call("PETAL.SEEN brief a");
    let digest = server.digest();
    assert_eq!(server.call("BF.EXISTS brief a").int(), 1);
    sleep(Duration::from_millis(900));
    assert_eq!(server.call("BF.MEXISTS brief a").ints(), [0]);
    assert_eq!(server.digest(), digest, "a query changed the filter");
    assert_eq!(server.call("PETAL.SEEN brief a").ints(), [0]);
}

#[test]
#[ignore = "cargo x test --foreign"]
fn replica_expires_items_with_its_master() {
    let (master, replica) = pair();
    master.call("PETAL.RESERVE time 0.01 200 WINDOW 200ms").ok();
    master.call("PETAL.RESERVE last 0.01 20 LAST GENERATIONS 3").ok();
    master.call("PETAL.RESERVE counts 0.01 200 TYPE counting").ok();
    master.call("PETAL.RESERVE slots 0.01 2000 TYPE vector-quotient").ok();
    for turn in 0..60 {
        for key in ["time", "last", "counts", "slots"] {
            // The same items again: none is new, but the filters change.
            let items = format!("i{} i{} again", turn % 7, turn);
            master.call(&format!("PETAL.SEEN {key} {items}"));
            master.call(&format!("BF.ADD {key} i{}", turn % 5));
            master.call(&format!("BF.MADD {key} {items}"));
            master.call(&format!("BF.INSERT {key} ITEMS {items}"));
        }
        sleep(Duration::from_millis(7));
    }
    assert_same(&master, &replica);
    let clock = |server: &Server| server.call("PETAL.INFO time").field("clock-ms").int();
    assert_eq!(clock(&replica), clock(&master));
    let late = Server::new();
    late.replicate_from(&replica);
    assert_same(&master, &late);
}

#[test]
#[ignore = "cargo x test --foreign"]
fn replayed_log_has_the_original_times() {
    for args in ["--aof-use-rdb-preamble no", ""] {
        let log = "--appendonly yes --appendfsync always";
        let mut server = Setup::new().args(log).args(args).start();
        server.call("PETAL.RESERVE time 0.01 200 WINDOW 300ms").ok();
        for turn in 0..40 {
            server.call(&format!("PETAL.SEEN time i{turn} again"));
            sleep(Duration::from_millis(10));
        }
        let digest = server.digest();
        server.restart();
        assert_eq!(server.digest(), digest);
        server.call("BGREWRITEAOF");
        wait_until("the log is rewritten", || server.info("aof_rewrite_in_progress") == "0");
        server.restart();
        assert_eq!(server.digest(), digest);
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn seenat_never_moves_the_clock_back() {
    let server = Server::new();
    server.call("PETAL.RESERVE t 0.0001 100 WINDOW 10s").ok();
    assert_eq!(server.call("PETAL.SEENAT t 1000000 a").ints(), [0]);
    assert_eq!(server.call("PETAL.SEENAT t 1009000 a b").ints(), [1, 0]);
    assert_eq!(server.call("PETAL.SEENAT t 5 c").ints(), [0]);
    assert_eq!(server.call("PETAL.INFO t").field("clock-ms").int(), 1_009_000);
    assert_eq!(server.call("PETAL.SEENAT t 1030000 b").ints(), [0]);
    let future = server.call("PETAL.SEENAT t 9223372036854775807 b");
    assert_eq!(future.error(), "ERR the time is in the future");
    for wrong in ["x", "-1", "1.5"] {
        assert!(server.call(&format!("PETAL.SEENAT t {wrong} b")).is_error(), "{wrong}");
    }
    assert_eq!(server.call("PETAL.SEENAT nothing 5 b").error(), "ERR not found");
}

#[test]
#[ignore = "cargo x test --foreign"]
fn filters_with_copies_delete_and_count() {
    let (master, replica) = pair();
    for filter_type in ["counting", "vector-quotient"] {
        let call =
            |command: &str, items: &str| master.call(&format!("{command} {filter_type} {items}"));
        call("PETAL.RESERVE", &format!("0.0001 1000 TYPE {filter_type}")).ok();
        call("BF.MADD", "a a a b");
        assert_eq!(call("PETAL.COUNT", "a b c").ints(), [3, 1, 0]);
        assert_eq!(call("PETAL.DEL", "a b c b").ints(), [1, 1, 0, 0]);
        assert_eq!(call("PETAL.COUNT", "a b").ints(), [2, 0]);
        assert_eq!(call("BF.ADD", "a").int(), 0);
        assert_same(&master, &replica);
        assert_eq!(replica.call(&format!("PETAL.COUNT {filter_type} a b")).ints(), [3, 0]);
    }

    assert_eq!(master.call("PETAL.DEL nothing a b").ints(), [0, 0]);
    assert_eq!(master.call("PETAL.COUNT nothing a b").ints(), [0, 0]);
    master.call("BF.ADD bloom a");
    for line in ["PETAL.DEL bloom a", "PETAL.COUNT bloom a"] {
        assert!(master.call(line).error().contains("TYPE counting"), "{line}");
    }
    assert_eq!(master.call("BF.EXISTS bloom a").int(), 1);
}

#[test]
#[ignore = "cargo x test --foreign"]
fn merged_filters_have_all_items() {
    let (master, replica) = pair();
    for key in ["a", "b", "c"] {
        master.call(&format!("PETAL.RESERVE {key} 0.0001 1000 NONSCALING {SEED}")).ok();
        master.call(&format!("BF.MADD {key} {key}1 {key}2 common"));
    }
    master.call("PETAL.MERGE a b a c a").ok();
    assert_eq!(master.call("BF.MEXISTS a a1 b2 c1 common d").ints(), [1, 1, 1, 1, 0]);
    assert_eq!(master.call("BF.CARD a").int(), 7);
    master.call("PETAL.MERGE new b c").ok();
    assert_eq!(master.call("BF.MEXISTS new a1 b1 c1 common").ints(), [0, 1, 1, 1]);
    master.call("PETAL.MERGE a a").ok();
    for key in ["x", "y"] {
        master.call(&format!("PETAL.RESERVE {key} 0.0001 1000 TYPE counting {SEED}")).ok();
        master.call(&format!("BF.MADD {key} {key} twice"));
    }
    master.call("PETAL.MERGE x y").ok();
    assert_eq!(master.call("PETAL.COUNT x x y twice").ints(), [1, 1, 2]);
    for key in ["v", "w"] {
        let options = format!("0.0001 1000 TYPE vector-quotient {SEED}");
        master.call(&format!("PETAL.RESERVE {key} {options}")).ok();
        master.call(&format!("BF.MADD {key} {key} once"));
    }
    master.call("PETAL.MERGE v w").ok();
    assert_eq!(master.call("PETAL.COUNT v v w once").ints(), [1, 1, 1]);
    assert!(master.call("PETAL.COMPARE v w").error().contains("TYPE counting"));
    assert_same(&master, &replica);
}

#[test]
#[ignore = "cargo x test --foreign"]
fn failed_merge_changes_nothing() {
    let (master, replica) = pair();
    let reserve = |key: &str, args: &str| {
        master.call(&format!("PETAL.RESERVE {key} {args}")).ok();
        master.call(&format!("BF.MADD {key} {key}1 {key}2"));
    };
    let alike = format!("0.01 1000 NONSCALING {SEED}");
    reserve("a", &alike);
    reserve("b", &alike);
    reserve("stranger", "0.01 1000 NONSCALING");
    reserve("larger", &format!("0.01 9000 NONSCALING {SEED}"));
    reserve("counting", &format!("0.01 1000 TYPE counting {SEED}"));
    reserve("grows", &format!("0.01 1000 {SEED}"));
    reserve("forgets", &format!("0.01 1000 LAST {SEED}"));
    master.call("SET string v").ok();
    let digest = master.digest();
    for other in ["stranger", "larger", "counting", "grows", "forgets", "string", "nothing"] {
        for line in [
            format!("PETAL.MERGE a b {other}"),
            format!("PETAL.MERGE new a {other}"),
            format!("PETAL.MERGE {other} a b"),
        ] {
            if line == "PETAL.MERGE nothing a b" {
                continue;
            }
            assert!(master.call(&line).is_error(), "{line}");
        }
    }
    assert!(master.call("PETAL.MERGE a stranger").error().contains("SEED"));
    assert!(master.call("PETAL.MERGE nothing nothing").is_error());
    assert_eq!(master.digest(), digest);
    assert_same(&master, &replica);
    master.call("CONFIG SET petal.memory-limit 100").ok();
    assert!(master.call("PETAL.MERGE new a b").is_error());
    assert_eq!(master.digest(), digest);
}

#[test]
#[ignore = "cargo x test --foreign"]
fn comparison_estimates_the_overlap() {
    let server = Server::new();
    for (key, from) in [("left", 0), ("right", 4000)] {
        server.call(&format!("PETAL.RESERVE {key} 0.01 20000 NONSCALING {SEED}")).ok();
        let items = (from..from + 8000).map(|item| format!("i{item}"));
        let args: Vec<_> =
            ["BF.MADD".to_owned(), key.to_owned()].into_iter().chain(items).collect();
        server.call_args(&args);
    }
    let overlap = server.call("PETAL.COMPARE left right");
    for (name, truth) in [
        ("left", 8000.0),
        ("right", 8000.0),
        ("union", 12000.0),
        ("intersection", 4000.0),
        ("jaccard", 1.0 / 3.0),
    ] {
        let numbers: Vec<f64> = overlap
            .field(name)
            .items()
            .iter()
            .map(|number| number.text().parse().unwrap())
            .collect();
        let [value, least, most] = numbers[..] else { panic!("{name}: {numbers:?}") };
        assert!(least < value && value < most, "{name}: {numbers:?}");
        // The bounds are twice the standard error. The seed is fixed.
        assert!((value - truth).abs() <= most - least, "{name}: {numbers:?}");
    }
    assert!(server.call("PETAL.COMPARE left left").field("jaccard").items()[0].text() == "1");
    server.call("PETAL.RESERVE other 0.01 20000 NONSCALING").ok();
    server.call("PETAL.RESERVE grows 0.01 20000").ok();
    for other in ["other", "grows", "nothing"] {
        assert!(server.call(&format!("PETAL.COMPARE left {other}")).is_error(), "{other}");
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn info_has_all_fields_except_the_seed() {
    let server = Server::new();
    server.call(&format!("PETAL.RESERVE w 0.01 200 WINDOW 1d GENERATIONS 5 {SEED}")).ok();
    server.call("PETAL.SEEN w a b c");
    let info = server.call("PETAL.INFO w FULL");
    assert_eq!(info.field("type").text(), "windowed");
    assert_eq!(info.field("hash").text(), "siphash-1-3");
    for (name, number) in
        [("capacity", 200), ("items", 3), ("generations", 5), ("window-ms", 86_400_000)]
    {
        assert_eq!(info.field(name).int(), number, "{name}");
    }
    let estimate: f64 = info.field("estimated-items").text().parse().unwrap();
    assert!((2.9..3.1).contains(&estimate), "{estimate}");
    assert!(!format!("{info:?}").contains("0c0d0e0f"));
    assert_eq!(server.call("PETAL.INFO nothing").error(), "ERR not found");
}

/// A recommender has a window of the last 200 items at 1 % for each of a million users.
#[test]
#[ignore = "cargo x test --foreign"]
fn small_windows_use_little_memory() {
    const KEYS: usize = 20_000;
    let server = Server::new();
    let used = || server.info("used_memory").parse::<f64>().unwrap();
    let fill = |args: &[&str]| {
        server.call("FLUSHALL SYNC").ok();
        let before = used();
        let keys = (0..KEYS).map(|number| format!("w:{number:07}"));
        let commands: Vec<Vec<String>> = keys
            .map(|key| {
                let args = args.iter().map(|arg| (*arg).to_owned());
                args.map(|arg| if arg == "KEY" { key.clone() } else { arg }).collect()
            })
            .collect();
        let mut client = server.client();
        let failed = client.pipeline(&commands).iter().filter(|reply| reply.is_error()).count();
        assert_eq!(failed, 0);
        (used() - before) / KEYS as f64
    };
    // Overhead of a module's value compared with a shared integer: an object of 16 bytes and a
    // module value of 16 bytes.
    let key = fill(&["SET", "KEY", "1"]) + 32.0;
    let window = fill(&["PETAL.RESERVE", "KEY", "0.01", "200", "LAST"]) - key;
    // Each of four generations has a quarter of the rate, and three of them hold the window.
    let generation = 1.0 - 0.99f64.powf(0.25);
    let bits = 200.0 * 4.0 / 3.0 * -generation.log2() / std::f64::consts::LN_2;
    assert!(window <= 1.3 * bits / 8.0 + 100.0, "{window} bytes for {bits} bits");
    println!(
        "a window of 200 items: {window:.1} bytes without its key, at least {:.0}",
        bits / 8.0
    );
}
