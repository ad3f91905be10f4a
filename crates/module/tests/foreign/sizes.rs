//! Memory of filters that hold what they were reserved for, beside RedisBloom's.

use crate::server::{Server, Setup};

/// Adds the items `PREFIX:FROM` to `PREFIX:TO`.
#[track_caller]
fn fill(server: &Server, key: &str, from: usize, to: usize) {
    for first in (from..to).step_by(5000) {
        let items = (first..to.min(first + 5000)).map(|item| format!("item:{item}"));
        let words = ["BF.MADD", key].into_iter().map(str::to_owned);
        let reply = server.ask_words(&words.chain(items).collect::<Vec<_>>());
        assert!(!format!("{reply:?}").contains("Error"), "{key}");
    }
}

/// How many of 100,000 items that were not added are found.
fn false_positives(server: &Server, key: &str) -> i64 {
    let strangers = (0..100_000).map(|item| format!("stranger:{item}"));
    let words = ["BF.MEXISTS", key].into_iter().map(str::to_owned).chain(strangers);
    server.ask_words(&words.collect::<Vec<_>>()).ints().iter().sum()
}

/// RedisBloom gives the first layer half the rate, in a textbook filter.
#[test]
#[ignore = "cargo x test --foreign"]
fn a_stated_capacity_takes_no_more_than_in_redisbloom() {
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
            server.ask("FLUSHALL").ok();
            assert!(!server.ask(&line).is_error(), "{line}");
            let bytes = server.ask(&format!("MEMORY USAGE {key} SAMPLES 0")).int();
            let bits = bytes as f64 * 8.0 / f64::from(capacity);
            // The key and the object are some hundred bytes: 0.02 bits an item.
            assert!(bits <= textbook + 0.03, "{line}: {bits:.2} bits, RedisBloom {textbook:.2}");
            assert_eq!(server.ask(&format!("BF.INFO {key} FILTERS")).ints(), [1]);
        }
    }
}

/// The rate that was promised holds at the stated capacity and however far the filter grows.
#[test]
#[ignore = "cargo x test --foreign"]
fn a_stated_capacity_keeps_its_rate_when_it_grows() {
    let (server, replica) = (Server::new(), Server::new());
    replica.follow(&server);
    for (key, rate, expansion) in [("a", 0.01_f64, 2), ("b", 0.003, 2), ("c", 0.01, 1)] {
        server.ask(&format!("BF.RESERVE {key} {rate} 20000 EXPANSION {expansion}")).ok();
        let mut from = 0;
        for to in [20_000, 50_000, 200_000] {
            fill(&server, key, from, to);
            from = to;
            let (yes, expected) = (false_positives(&server, key), 100_000.0 * rate);
            let most = expected + 5.0 * expected.sqrt();
            assert!((yes as f64) < most, "{key} with {to}: {yes} of 100000");
        }
        assert!(server.ask(&format!("BF.INFO {key} FILTERS")).ints()[0] > 2);
    }
    replica.wait_for(&server);
    assert_eq!(replica.digest(), server.digest());
}

/// What replicas and logs of an older version say has no share: it has the usual series.
#[test]
#[ignore = "cargo x test --foreign"]
fn filters_keep_the_share_that_they_were_made_with() {
    let mut server = Setup::new().words("--appendonly yes --aof-use-rdb-preamble no").start();
    server.ask("BF.RESERVE stated 0.01 1000").ok();
    server.ask("PETAL.RESERVE chosen 0.01 1000 GROWTHSHARE 8").ok();
    server.ask("BF.ADD usual a");
    let share = |server: &Server, key: &str| {
        let info = server.ask(&format!("PETAL.INFO {key}"));
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
        server.ask("BGREWRITEAOF");
        crate::server::until("rewritten", || server.info("aof_rewrite_in_progress") == "0");
    }
    ["stated", "chosen", "usual"].iter().for_each(|key| fill(&server, key, 5000, 9000));
    server.restart();
    assert_eq!(all(&server), [Some(4), Some(8), None]);
}
