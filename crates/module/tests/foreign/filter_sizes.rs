//! Memory and false-positive rate of reserved filters, compared with RedisBloom's.

use crate::server::{Server, Setup};

/// Adds the items `item:FROM` to `item:TO`.
#[track_caller]
fn fill(server: &Server, key: &str, from: usize, to: usize) {
    for first in (from..to).step_by(5000) {
        let items = (first..to.min(first + 5000)).map(|item| format!("item:{item}"));
        let args = ["BF.MADD", key].into_iter().map(str::to_owned);
        let reply = server.call_args(&args.chain(items).collect::<Vec<_>>());
        assert!(!format!("{reply:?}").contains("Error"), "{key}");
    }
}

/// Returns how many of 100,000 absent items are found.
fn false_positives(server: &Server, key: &str) -> i64 {
    let absent_items = (0..100_000).map(|item| format!("stranger:{item}"));
    let args = ["BF.MEXISTS", key].into_iter().map(str::to_owned).chain(absent_items);
    server.call_args(&args.collect::<Vec<_>>()).ints().iter().sum()
}

/// RedisBloom gives the first layer half of the rate, in a classic Bloom filter.
#[test]
#[ignore = "cargo x test --foreign"]
fn reserved_filter_is_not_larger_than_redisblooms() {
    let server = Server::new();
    for (capacity, rate) in
        [(100_000, 0.05), (100_000, 0.01), (100_000, 0.004), (100_000, 0.001), (300_000, 0.002)]
    {
        let textbook = -(rate / 2.0_f64).ln() / std::f64::consts::LN_2.powi(2);
        for (key, line) in [
            ("reserved", format!("BF.RESERVE reserved {rate} {capacity}")),
            (
                "inserted",
                format!("BF.INSERT inserted ERROR {rate} CAPACITY {capacity} ITEMS item:0"),
            ),
            ("own", format!("PETAL.RESERVE own {rate} {capacity}")),
        ] {
            server.call("FLUSHALL").ok();
            assert!(!server.call(&line).is_error(), "{line}");
            let bytes = server.call(&format!("MEMORY USAGE {key} SAMPLES 0")).int();
            let bits = bytes as f64 * 8.0 / f64::from(capacity);
            // The key and the object take about a hundred bytes: 0.02 bits per item.
            assert!(bits <= textbook + 0.03, "{line}: {bits:.2} bits, RedisBloom {textbook:.2}");
            assert_eq!(server.call(&format!("BF.INFO {key} FILTERS")).ints(), [1]);
        }
    }
}

/// The target rate holds at the reserved capacity and after growth.
#[test]
#[ignore = "cargo x test --foreign"]
fn reserved_filter_keeps_its_fpr_when_it_grows() {
    let (server, replica) = (Server::new(), Server::new());
    replica.replicate_from(&server);
    for (key, rate, expansion) in [("a", 0.01_f64, 2), ("b", 0.003, 2), ("c", 0.01, 1)] {
        server.call(&format!("BF.RESERVE {key} {rate} 20000 EXPANSION {expansion}")).ok();
        let mut from = 0;
        for to in [20_000, 50_000, 200_000] {
            fill(&server, key, from, to);
            from = to;
            let (yes, expected) = (false_positives(&server, key), 100_000.0 * rate);
            let most = expected + 5.0 * expected.sqrt();
            assert!((yes as f64) < most, "{key} with {to}: {yes} of 100000");
        }
        assert!(server.call(&format!("BF.INFO {key} FILTERS")).ints()[0] > 2);
    }
    replica.wait_for_sync(&server);
    assert_eq!(replica.digest(), server.digest());
}

/// Commands of older versions have no GROWTHSHARE: their filters have the default series.
#[test]
#[ignore = "cargo x test --foreign"]
fn growth_share_survives_restarts() {
    let mut server = Setup::new().args("--appendonly yes --aof-use-rdb-preamble no").start();
    server.call("BF.RESERVE stated 0.01 1000").ok();
    server.call("PETAL.RESERVE chosen 0.01 1000 GROWTHSHARE 8").ok();
    server.call("BF.ADD usual a");
    let share = |server: &Server, key: &str| {
        let info = server.call(&format!("PETAL.INFO {key}"));
        let at = info.items().iter().position(
            |name| matches!(name, crate::server::Reply::Simple(name) if name == "growth-share"),
        );
        at.map(|at| info.items()[at + 1].int())
    };
    let all = |server: &Server| ["stated", "chosen", "usual"].map(|key| share(server, key));
    assert_eq!(all(&server), [Some(4), Some(8), None]);
    ["stated", "chosen", "usual"].iter().for_each(|key| fill(&server, key, 0, 5000));
    let digest = server.digest();
    for _ in 0..2 {
        server.restart();
        assert_eq!((server.digest(), all(&server)), (digest.clone(), [Some(4), Some(8), None]));
        server.call("BGREWRITEAOF");
        crate::server::wait_until("rewritten", || server.info("aof_rewrite_in_progress") == "0");
    }
    ["stated", "chosen", "usual"].iter().for_each(|key| fill(&server, key, 5000, 9000));
    server.restart();
    assert_eq!(all(&server), [Some(4), Some(8), None]);
}

/// A command that creates a filter makes one layer for all its items, on replicas too. If that is above the
/// memory limit, the filter begins with the default capacity.
#[test]
#[ignore = "cargo x test --foreign"]
fn created_filter_has_the_capacity_of_the_command() {
    let (server, replica) = (Server::new(), Server::new());
    replica.replicate_from(&server);
    fill(&server, "madd", 0, 5000);
    let items = (0..3000).map(|item| format!("item:{item}"));
    let args = ["BF.INSERT", "insert", "ERROR", "0.001", "ITEMS"].into_iter().map(str::to_owned);
    server.call_args(&args.chain(items).collect::<Vec<_>>());
    fill(&server, "few", 0, 20);
    for (key, capacity) in [("madd", 5000), ("insert", 3000), ("few", 100)] {
        assert_eq!(server.call(&format!("BF.INFO {key} FILTERS")).ints(), [1], "{key}");
        assert_eq!(server.call(&format!("BF.INFO {key} CAPACITY")).ints(), [capacity], "{key}");
    }
    fill(&server, "madd", 5000, 40_000);
    assert!(false_positives(&server, "madd") < 1000);
    replica.wait_for_sync(&server);
    assert_eq!(replica.digest(), server.digest());

    server.call("CONFIG SET petal.memory-limit 3000").ok();
    let same = std::iter::repeat_n("same".to_owned(), 100_000);
    let args = ["BF.MADD", "same"].into_iter().map(str::to_owned);
    let reply = server.call_args(&args.chain(same).collect::<Vec<_>>());
    assert_eq!(reply.ints().iter().sum::<i64>(), 1);
    assert_eq!(server.call("BF.INFO same CAPACITY").ints(), [100]);
}
