//! Memory: what it says it takes is what it takes; what is too much is refused, and the server lives.

use crate::server::{Server, Setup, until};
use crate::zoo;

fn used(server: &Server) -> i64 {
    server.info("used_memory").parse().unwrap()
}

/// Whether what a key says it takes is what the server counts: its allocator rounds up, by a quarter at most.
fn tells(said: i64, counted: i64) -> bool {
    said * 99 / 100 <= counted && counted <= said * 5 / 4
}

/// Made large, in ways that take different code.
const LARGE: &[&str] =
    &["BF.RESERVE k 0.01 8000000", "BF.RESERVE k 0.001 4000000 NONSCALING", "CF.RESERVE k 8000000"];

#[test]
#[ignore = "cargo x test --foreign"]
fn memory_usage_is_what_the_server_counts() {
    for setup in [Setup::new(), Setup::compat()] {
        let server = setup.start();
        for line in LARGE {
            server.ask("SET warm up");
            let before = used(&server);
            server.ask(line).ok();
            let (said, counted) = (server.ask("MEMORY USAGE k").int(), used(&server) - before);
            assert!(tells(said, counted), "{line}: says {said}, counted {counted}");
            server.ask("DEL k");
            // Perhaps in the background.
            until(&format!("{line} is given back"), || used(&server) - before < 100_000);
        }
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn memory_usage_follows_growth() {
    for setup in [Setup::new(), Setup::compat()] {
        let server = setup.start();
        let before = used(&server);
        let zoo = zoo::filled(&server, 20_000);
        let said: i64 =
            zoo.keys().iter().map(|key| server.ask(&format!("MEMORY USAGE {key}")).int()).sum();
        let counted = used(&server) - before;
        // Some of it is the buffers of the connection.
        assert!(tells(said, counted - 200_000), "says {said}, counted {counted}");
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn absurd_sizes_are_refused() {
    for setup in [Setup::new(), Setup::compat()] {
        let server = setup.words("--petal.memory-limit 0").memory(1 << 30).start();
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
            let reply = server.ask(line);
            assert!(reply.is_error(), "{line}: {reply:?}");
            assert_eq!(server.ask("EXISTS k").int(), 0, "{line}");
            assert_eq!(server.ask("PING").text(), "PONG");
        }
        assert!(used(&server) < 50_000_000);
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn growth_beyond_the_memory_is_refused_and_what_is_there_stays() {
    for setup in [Setup::new(), Setup::compat()] {
        let server = setup.words("--petal.memory-limit 0").memory(600 << 20).start();
        // The second layer is the one that does not fit.
        server.ask("BF.RESERVE bloom 0.01 30000 EXPANSION 32768").ok();
        server.ask("CF.RESERVE cuckoo 30000 EXPANSION 32768").ok();
        let mut refused = 0;
        for number in 0..400 {
            let items: Vec<_> = (0..100).map(|item| format!("{number}:{item}")).collect();
            let words = ["BF.MADD", "bloom"].into_iter().map(str::to_owned);
            let reply = server.ask_words(&words.chain(items.clone()).collect::<Vec<_>>());
            refused += i32::from(reply.items().iter().any(crate::server::Reply::is_error));
            let words = ["CF.INSERT", "cuckoo", "ITEMS"].into_iter().map(str::to_owned);
            server.ask_words(&words.chain(items).collect::<Vec<_>>());
        }
        assert!(refused > 50, "{refused} of 400 commands met a refusal");
        assert_eq!(server.ask("BF.EXISTS bloom 0:0").int(), 1);
        assert_eq!(server.ask("CF.EXISTS cuckoo 0:0").int(), 1);
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn a_key_has_a_limit() {
    for setup in [Setup::new(), Setup::compat()] {
        let server = setup.words("--petal.memory-limit 100kb").start();
        for line in ["BF.RESERVE k 0.01 1000000", "BF.INSERT k CAPACITY 1000000 ITEMS a"] {
            assert_eq!(
                server.ask(line).error(),
                "ERR operation exceeds bloom object memory limit",
                "{line}"
            );
        }
        assert!(server.ask("CF.RESERVE k 1000000").is_error());
        assert_eq!(server.ask("EXISTS k").int(), 0);
        let mut added = Vec::new();
        for number in 0..1_000_000 {
            let item = format!("item:{number}");
            match server.ask(&format!("BF.ADD grown {item}")) {
                crate::server::Reply::Int(_) => added.push(item),
                refused => {
                    assert!(refused.is_error());
                    break;
                }
            }
        }
        assert!(added.len() > 10_000 && added.len() < 200_000, "{}", added.len());
        assert!(server.ask("MEMORY USAGE grown").int() < 110_000);
        let words = ["BF.MEXISTS", "grown"].into_iter().chain(added.iter().map(String::as_str));
        let denied = server.ask_words(&words.collect::<Vec<_>>()).ints();
        assert!(denied.iter().all(|&yes| yes == 1));
        server.ask("CONFIG SET petal.memory-limit 1mb").ok();
        assert_eq!(server.ask("BF.ADD grown more-room-now").int(), 1);
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn a_server_whose_memory_is_used_up_refuses_writes_and_answers() {
    let server = Server::new();
    let zoo = zoo::filled(&server, 1000);
    server.ask("CONFIG SET maxmemory 1mb").ok();
    for line in ["BF.ADD bf-auto new", "CF.ADD cf-auto new", "BF.RESERVE k 0.01 10"] {
        assert!(server.ask(line).error().starts_with("OOM"), "{line}");
    }
    zoo.assert_members(&server);
    assert_eq!(server.ask("CF.DEL cf-auto item:1").int(), 1);
    server.ask("CONFIG SET maxmemory 0").ok();
    zoo.grow(&server, 10);
}

#[test]
#[ignore = "cargo x test --foreign"]
fn keys_are_evicted_like_any_other() {
    // Where values are freed in the background, it takes a moment until there is room again.
    let words = "--maxmemory 20mb --maxmemory-policy allkeys-lru --lazyfree-lazy-eviction no";
    let server = Setup::new().words(words).start();
    for number in 0..100 {
        let reply = server.ask(&format!("BF.RESERVE k{number} 0.01 500000"));
        assert!(reply.is_ok(), "{reply:?}");
        assert!(used(&server) < 22_000_000);
    }
    assert!(server.ask("DBSIZE").int() < 60);
}
