//! Notifications, the section of INFO, settings while the server runs, and being loaded at all.

use crate::server::{Client, Module, Reply, Server, Setup, redisbloom, until};
use crate::zoo;

/// Events of keys that a command causes.
fn events(server: &Server, lines: &[&str]) -> Vec<String> {
    server.ask("CONFIG SET notify-keyspace-events KEA").ok();
    let mut listener = server.client();
    listener.ask("PSUBSCRIBE __keyevent@0__:*");
    for line in lines {
        let reply = server.ask(line);
        assert!(!reply.is_error(), "{line}: {reply:?}");
    }
    server.ask("PUBLISH __keyevent@0__:end end");
    let mut seen = Vec::new();
    loop {
        let message = listener.read();
        let channel = message.items()[2].text();
        let event = channel.rsplit("__:").next().unwrap().to_owned();
        if event == "end" {
            return seen;
        }
        seen.push(format!("{event} {}", message.items()[3].text()));
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn changes_are_told_and_what_changes_nothing_is_not() {
    let server = Server::new();
    let seen = events(
        &server,
        &[
            "BF.RESERVE a 0.01 100",
            "BF.ADD a x",
            "BF.ADD a x",
            "BF.EXISTS a x",
            "BF.MADD a x y z",
            "BF.INSERT b ITEMS x",
            "BF.INFO a",
        ],
    );
    let expected =
        ["bloom.reserve a", "bloom.add a", "bloom.add a", "bloom.reserve b", "bloom.add b"];
    assert_eq!(seen, expected);
}

#[test]
#[ignore = "cargo x test --foreign"]
fn a_watched_key_that_changes_ends_the_transaction() {
    let server = Server::new();
    server.ask("BF.ADD a x");
    let mut client: Client = server.client();
    client.ask("WATCH a").ok();
    server.ask("BF.ADD a new");
    client.ask("MULTI").ok();
    client.ask("PING");
    assert_eq!(client.ask("EXEC"), Reply::NoArray);
}

#[test]
#[ignore = "cargo x test --foreign"]
fn info_has_a_section() {
    let server = Server::new();
    zoo::filled(&server, 100);
    let section = server.ask("INFO petal").text();
    assert!(section.contains("petal_filters:11"), "{section}");
    assert!(section.contains("petal_memory_bytes:"), "{section}");
}

#[test]
#[ignore = "cargo x test --foreign"]
fn settings_are_read_and_set_while_it_runs() {
    let server = Server::new();
    let get = |name: &str| server.ask(&format!("CONFIG GET petal.{name}")).items()[1].text();
    for (name, value) in [
        ("bf-error-rate", "0.001"),
        ("bf-initial-size", "5000"),
        ("bf-expansion-factor", "4"),
        ("cf-initial-size", "2048"),
        ("cf-bucket-size", "4"),
        ("cf-max-iterations", "30"),
        ("cf-expansion-factor", "2"),
        ("cf-max-expansions", "10"),
        ("memory-limit", "1000000"),
        ("layout", "redisbloom"),
    ] {
        server.ask(&format!("CONFIG SET petal.{name} {value}")).ok();
        assert_eq!(get(name), value);
    }
    for (name, value) in [
        ("bf-error-rate", "0"),
        ("bf-error-rate", "1"),
        ("bf-error-rate", "nan"),
        ("bf-error-rate", "lots"),
        ("bf-initial-size", "0"),
        ("bf-expansion-factor", "32769"),
        ("cf-bucket-size", "256"),
        ("memory-limit", "-1"),
        ("layout", "other"),
    ] {
        let before = get(name);
        assert!(
            server.ask(&format!("CONFIG SET petal.{name} {value}")).is_error(),
            "{name} {value}"
        );
        assert_eq!(get(name), before);
    }
    server.ask("BF.ADD auto x");
    assert_eq!(server.ask("BF.INFO auto").field("Capacity").int(), 5000);
    assert_eq!(server.ask("BF.INFO auto").field("Expansion rate").int(), 4);
    server.ask("CF.ADD cauto x");
    assert_eq!(server.ask("CF.INFO cauto").field("Bucket size").int(), 4);
    assert_eq!(server.ask("CF.INFO cauto").field("Expansion rate").int(), 2);
}

#[test]
#[ignore = "cargo x test --foreign"]
fn settings_come_from_the_file_and_from_words_behind_the_module() {
    let file = Setup::new().words("--petal.bf-initial-size 777 --petal.bf-error-rate 0.05").start();
    file.ask("BF.ADD auto x");
    assert_eq!(file.ask("BF.INFO auto").field("Capacity").int(), 777);
    // As RedisBloom's users write them.
    let words = "INITIAL_SIZE 300 ERROR_RATE 0.002 CF_MAX_EXPANSIONS 16";
    let words = Setup::new().module_words(words).start();
    words.ask("BF.ADD auto x");
    assert_eq!(words.ask("BF.INFO auto").field("Capacity").int(), 300);
    assert!(Setup::new().module_words("INITIAL_SIZE").try_start().is_err());
    assert!(Setup::new().module_words("INITIAL_SIZE many").try_start().is_err());
    assert!(Setup::new().module_words("BOGUS 1").try_start().is_err());
}

#[test]
#[ignore = "cargo x test --foreign"]
fn the_rate_that_is_promised_is_kept_over_all_layers() {
    let server = Server::new();
    for (key, rate) in [("one", 0.01), ("thousandth", 0.001)] {
        server.ask(&format!("BF.RESERVE {key} {rate} 100")).ok();
        for first in (0..100_000).step_by(1000) {
            let items = (first..first + 1000).map(|item| format!("item:{item}"));
            let words = ["BF.MADD", key].into_iter().map(str::to_owned).chain(items);
            server.ask_words(&words.collect::<Vec<_>>());
        }
        let strangers = (0..200_000).map(|item| format!("stranger:{item}"));
        let words = ["BF.MEXISTS", key].into_iter().map(str::to_owned).chain(strangers);
        let yes = server.ask_words(&words.collect::<Vec<_>>()).ints().iter().sum::<i64>();
        // Five standard deviations above the promise.
        let expected: f64 = 200_000.0 * rate;
        assert!((yes as f64) < expected + 5.0 * expected.sqrt(), "{key}: {yes} of 200000");
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn large_filters_are_freed_aside() {
    let server = Server::new();
    let freed = || server.info("lazyfreed_objects").parse::<u64>().unwrap();
    for line in ["BF.RESERVE k 0.01 10000000", "CF.RESERVE k 10000000"] {
        server.ask(line).ok();
        let before = freed();
        assert_eq!(server.ask("UNLINK k").int(), 1);
        until("it is freed", || freed() == before + 1);
    }
    // One that takes little is freed at once: handing it over would take longer.
    server.ask("BF.ADD small x");
    let before = freed();
    server.ask("UNLINK small");
    assert_eq!(server.info("lazyfree_pending_objects"), "0");
    assert_eq!(freed(), before);
}

#[test]
#[ignore = "cargo x test --foreign"]
fn memory_in_pieces_is_put_together_while_it_runs() {
    let server = Server::new();
    if server.ask("CONFIG SET activedefrag yes").is_error() {
        println!("left out: this server has no active defragmentation");
        return;
    }
    for line in ["ignore-bytes 1", "threshold-lower 0", "cycle-min 80", "cycle-max 90"] {
        server.ask(&format!("CONFIG SET active-defrag-{line}")).ok();
    }
    let zoo = zoo::filled(&server, 2000);
    for number in 0..20_000 {
        server.ask(&format!("PETAL.RESERVE w:{number} 0.01 200 TYPE window LAST")).ok();
        server.ask(&format!("BF.ADD w:{number} item"));
    }
    for number in (0..20_000).filter(|number| number % 4 != 0) {
        server.ask(&format!("DEL w:{number}"));
    }
    let digest = server.digest();
    until("something is moved", || server.info("active_defrag_hits").parse::<u64>().unwrap() > 0);
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert_eq!(server.digest(), digest);
    zoo.assert_members(&server);
}

#[test]
#[ignore = "cargo x test --foreign"]
fn a_module_whose_types_are_in_use_stays() {
    let server = Setup::new().words("--enable-module-command yes").start();
    server.ask("BF.ADD a x");
    assert!(server.ask("MODULE UNLOAD petal").is_error());
    assert_eq!(server.ask("BF.EXISTS a x").int(), 1);
    // RedisBloom beside it is refused: its commands are taken.
    if let Some(Module::RedisBloom(path)) = redisbloom() {
        let load = [b"MODULE", &b"LOAD"[..], path.to_str().unwrap().as_bytes()];
        assert!(server.ask_words(&load).is_error());
        assert_eq!(server.ask("BF.EXISTS a x").int(), 1);
    }
}
