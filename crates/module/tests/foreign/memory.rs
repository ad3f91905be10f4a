//! Memory: reported sizes, limits, and errors when it is exhausted.

use crate::sample_filters;
use crate::server::{Server, Setup, wait_until};

fn used(server: &Server) -> i64 {
    server.info("used_memory").parse().unwrap()
}

/// Returns whether a reported size matches the server's count. Its allocator rounds up, by a
/// quarter at most.
fn is_close(reported: i64, counted: i64) -> bool {
    reported * 99 / 100 <= counted && counted <= reported * 5 / 4
}

/// Large filters of different types.
const LARGE: &[&str] =
    &["BF.RESERVE k 0.01 8000000", "BF.RESERVE k 0.001 4000000 NONSCALING", "CF.RESERVE k 8000000"];

#[test]
#[ignore = "cargo x test --foreign"]
fn memory_usage_equals_allocated_memory() {
    for setup in [Setup::new(), Setup::redisbloom_layout()] {
        let server = setup.start();
        for line in LARGE {
            server.call("SET warm up");
            let before = used(&server);
            server.call(line).ok();
            let (reported, counted) = (server.call("MEMORY USAGE k").int(), used(&server) - before);
            assert!(is_close(reported, counted), "{line}: reported {reported}, counted {counted}");
            server.call("DEL k");
            // Possibly in the background.
            wait_until(&format!("{line} is freed"), || used(&server) - before < 100_000);
        }
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn memory_usage_follows_growth() {
    for setup in [Setup::new(), Setup::redisbloom_layout()] {
        let server = setup.start();
        let before = used(&server);
        let filters = sample_filters::create(&server, 20_000);
        let reported: i64 = filters
            .keys()
            .iter()
            .map(|key| server.call(&format!("MEMORY USAGE {key}")).int())
            .sum();
        let counted = used(&server) - before;
        // A part of it is the buffers of the connection.
        assert!(is_close(reported, counted - 200_000), "reported {reported}, counted {counted}");
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn oversized_filters_are_rejected() {
    for setup in [Setup::new(), Setup::redisbloom_layout()] {
        let server = setup.args("--petal.memory-limit 0").memory(1 << 30).start();
        for line in [
            "BF.RESERVE k 0.01 9223372036854775807",
            "BF.RESERVE k 0.0000000001 4611686018427387904 NONSCALING",
            "BF.RESERVE k 0.01 1000000000000 EXPANSION 32768",
            "BF.RESERVE k 0.01 10000000000",
            "BF.RESERVE k 5e-324 1000000000",
            "BF.INSERT k CAPACITY 9223372036854775807 ITEMS a",
            "BF.INSERT k CAPACITY 10000000000 NONSCALING ITEMS a",
            "CF.RESERVE k 9223372036854775807",
            "CF.RESERVE k 10000000000",
            "CF.RESERVE k 9223372036854775807 BUCKETSIZE 255 EXPANSION 32768",
            "CF.INSERT k CAPACITY 9223372036854775807 ITEMS a",
            "CF.INSERTNX k CAPACITY 10000000000 ITEMS a",
        ] {
            let reply = server.call(line);
            assert!(reply.is_error(), "{line}: {reply:?}");
            assert_eq!(server.call("EXISTS k").int(), 0, "{line}");
            assert_eq!(server.call("PING").text(), "PONG");
        }
        assert!(used(&server) < 50_000_000);
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn failed_growth_keeps_existing_items() {
    for setup in [Setup::new(), Setup::redisbloom_layout()] {
        let server = setup.args("--petal.memory-limit 0").memory(600 << 20).start();
        // The second layer does not fit.
        server.call("BF.RESERVE bloom 0.01 30000 EXPANSION 32768").ok();
        server.call("CF.RESERVE cuckoo 30000 EXPANSION 32768").ok();
        let mut rejected = 0;
        for number in 0..400 {
            let items: Vec<_> = (0..100).map(|item| format!("{number}:{item}")).collect();
            let args = ["BF.MADD", "bloom"].into_iter().map(str::to_owned);
            let reply = server.call_args(&args.chain(items.clone()).collect::<Vec<_>>());
            rejected += i32::from(reply.items().iter().any(crate::server::Reply::is_error));
            let args = ["CF.INSERT", "cuckoo", "ITEMS"].into_iter().map(str::to_owned);
            server.call_args(&args.chain(items).collect::<Vec<_>>());
        }
        assert!(rejected > 50, "{rejected} of 400 commands were rejected");
        assert_eq!(server.call("BF.EXISTS bloom 0:0").int(), 1);
        assert_eq!(server.call("CF.EXISTS cuckoo 0:0").int(), 1);
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn memory_limit_applies_to_each_key() {
    for setup in [Setup::new(), Setup::redisbloom_layout()] {
        let server = setup.args("--petal.memory-limit 100kb").start();
        for line in ["BF.RESERVE k 0.01 1000000", "BF.INSERT k CAPACITY 1000000 ITEMS a"] {
            assert_eq!(
                server.call(line).error(),
                "ERR operation exceeds bloom object memory limit",
                "{line}"
            );
        }
        assert!(server.call("CF.RESERVE k 1000000").is_error());
        assert_eq!(server.call("EXISTS k").int(), 0);
        let mut added = Vec::new();
        for number in 0..1_000_000 {
            let item = format!("item:{number}");
            match server.call(&format!("BF.ADD grown {item}")) {
                crate::server::Reply::Int(_) => added.push(item),
                rejected => {
                    assert!(rejected.is_error());
                    break;
                }
            }
        }
        assert!(added.len() > 10_000 && added.len() < 200_000, "{}", added.len());
        assert!(server.call("MEMORY USAGE grown").int() < 110_000);
        let args = ["BF.MEXISTS", "grown"].into_iter().chain(added.iter().map(String::as_str));
        let denied = server.call_args(&args.collect::<Vec<_>>()).ints();
        assert!(denied.iter().all(|&yes| yes == 1));
        server.call("CONFIG SET petal.memory-limit 1mb").ok();
        assert_eq!(server.call("BF.ADD grown more-room-now").int(), 1);
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn writes_fail_and_queries_work_at_maxmemory() {
    let server = Server::new();
    let filters = sample_filters::create(&server, 1000);
    server.call("CONFIG SET maxmemory 1mb").ok();
    for line in ["BF.ADD bf-auto new", "CF.ADD cf-auto new", "BF.RESERVE k 0.01 10"] {
        assert!(server.call(line).error().starts_with("OOM"), "{line}");
    }
    filters.assert_members(&server);
    assert_eq!(server.call("CF.DEL cf-auto item:1").int(), 1);
    server.call("CONFIG SET maxmemory 0").ok();
    filters.grow(&server, 10);
}

#[test]
#[ignore = "cargo x test --foreign"]
fn filters_are_evicted_at_maxmemory() {
    // Freeing in the background would delay the eviction.
    let args = "--maxmemory 20mb --maxmemory-policy allkeys-lru --lazyfree-lazy-eviction no";
    let server = Setup::new().args(args).start();
    for number in 0..100 {
        let reply = server.call(&format!("BF.RESERVE k{number} 0.01 500000"));
        assert!(reply.is_ok(), "{reply:?}");
        assert!(used(&server) < 22_000_000);
    }
    assert!(server.call("DBSIZE").int() < 60);
}
