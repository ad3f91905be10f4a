//! `CF.*`: random adds and deletes give no false negatives.

use petal_testkit::rng::Rng;

use crate::server::{Reply, Server, Setup};

/// Adds and deletes at random, and compares with a model.
#[track_caller]
fn live(server: &Server, reserve: &str, seed: u64) {
    server.call("FLUSHALL").ok();
    server.call(reserve).ok();
    let mut rng = Rng::new(seed);
    let mut there = vec![0_i64; 400];
    let mut client = server.client();
    for step in 0..12_000 {
        let item = rng.below(there.len());
        // Two adds for each delete, then the reverse.
        let adds = rng.below(3) < if (step / 3000) % 2 == 0 { 2 } else { 1 };
        if adds {
            match client.call(&format!("CF.ADD cuckoo item:{item}")) {
                Reply::Int(1) => there[item] += 1,
                Reply::Error(error) => {
                    assert!(error.contains("full") || error.contains("expansions"), "{error}");
                }
                other => panic!("{other:?}"),
            }
        } else if there[item] > 0 {
            assert_eq!(client.call(&format!("CF.DEL cuckoo item:{item}")).int(), 1, "{reserve}");
            there[item] -= 1;
        }
        if step % 1500 == 0 {
            check(server, &there);
        }
    }
    check(server, &there);
    client.call("CF.COMPACT cuckoo").ok();
    check(server, &there);
}

#[track_caller]
fn check(server: &Server, there: &[i64]) {
    let mut client = server.client();
    for (item, &times) in there.iter().enumerate() {
        let count = client.call(&format!("CF.COUNT cuckoo item:{item}")).int();
        assert!(count >= times, "item:{item} is there {times} times, counted {count}");
        if times > 0 {
            assert_eq!(client.call(&format!("CF.EXISTS cuckoo item:{item}")).int(), 1);
        }
    }
    let items = server.call("CF.INFO cuckoo").field("Number of items inserted").int();
    assert_eq!(items, there.iter().sum::<i64>());
}

#[test]
#[ignore = "cargo x test --foreign"]
fn random_adds_and_deletes_give_no_false_negatives() {
    for setup in [Setup::new(), Setup::redisbloom_layout()] {
        let server = setup.start();
        for (seed, reserve) in [
            "CF.RESERVE cuckoo 10000",
            "CF.RESERVE cuckoo 64 EXPANSION 2",
            "CF.RESERVE cuckoo 16 EXPANSION 4 BUCKETSIZE 4",
            "CF.RESERVE cuckoo 600 EXPANSION 0",
        ]
        .into_iter()
        .enumerate()
        {
            live(&server, reserve, seed as u64);
        }
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn redisbloom_layout_checks_layers_once_per_command() {
    let server = Setup::redisbloom_layout().args("--petal.cf-max-expansions 3").start();
    server.call("CF.RESERVE cuckoo 4").ok();
    let reply = server.call("CF.INSERT cuckoo ITEMS a b c d e f g h i j k l m n o p q r s t");
    assert_eq!(reply.ints(), [1; 20]);
    assert_eq!(server.call("CF.INFO cuckoo").field("Number of filters").int(), 5);
    assert_eq!(server.call("CF.DEL cuckoo a").int(), 1);
    // There is a free slot, and the other item is present.
    for line in [
        "CF.ADD cuckoo a",
        "CF.ADDNX cuckoo b",
        "CF.INSERT cuckoo ITEMS a b",
        "CF.INSERTNX cuckoo ITEMS b",
    ] {
        assert_eq!(server.call(line).error(), "Maximum expansions reached", "{line}");
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn reserved_capacity_fits_into_the_first_layer() {
    let server = Server::new();
    for capacity in [4, 10, 100, 1000, 50_000] {
        server.call("FLUSHALL").ok();
        server.call(&format!("CF.RESERVE cuckoo {capacity} EXPANSION 0")).ok();
        for first in (0..capacity).step_by(1000) {
            let items = (first..capacity.min(first + 1000)).map(|item| format!("item:{item}"));
            let args = ["CF.INSERT", "cuckoo", "ITEMS"].into_iter().map(str::to_owned);
            let reply = server.call_args(&args.chain(items).collect::<Vec<_>>());
            assert!(reply.ints().iter().all(|&added| added == 1), "{capacity}");
        }
        assert_eq!(server.call("CF.INFO cuckoo").field("Number of filters").int(), 1);
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn growing_filter_keeps_the_configured_fpr() {
    let server = Setup::new().args("--petal.cf-error-rate 0.003").start();
    server.call("CF.RESERVE cuckoo 500 EXPANSION 2").ok();
    for first in (0..60_000).step_by(1000) {
        let items = (first..first + 1000).map(|item| format!("item:{item}"));
        let args = ["CF.INSERT", "cuckoo", "ITEMS"].into_iter().map(str::to_owned);
        server.call_args(&args.chain(items).collect::<Vec<_>>());
    }
    let absent_items = (0..200_000).map(|item| format!("stranger:{item}"));
    let args = ["CF.MEXISTS", "cuckoo"].into_iter().map(str::to_owned).chain(absent_items);
    let yes = server.call_args(&args.collect::<Vec<_>>()).ints().iter().sum::<i64>();
    // Five standard deviations above the target.
    assert!(yes < 600 + 5 * 25, "{yes} of 200000");
}
