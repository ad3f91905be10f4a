//! Events, WATCH, INFO, settings, background freeing, defragmentation, and loading of the module.

use crate::sample_filters;
use crate::server::{Client, Module, Reply, Server, Setup, redisbloom, wait_until};

/// Returns the keyspace events of some commands.
fn events(server: &Server, lines: &[&str]) -> Vec<String> {
    server.call("CONFIG SET notify-keyspace-events KEA").ok();
    let mut listener = server.client();
    listener.call("PSUBSCRIBE __keyevent@0__:*");
    for line in lines {
        let reply = server.call(line);
        assert!(!reply.is_error(), "{line}: {reply:?}");
    }
    server.call("PUBLISH __keyevent@0__:end end");
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
fn only_changes_publish_events() {
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
fn changed_watched_key_aborts_the_transaction() {
    let server = Server::new();
    server.call("BF.ADD a x");
    let mut client: Client = server.client();
    client.call("WATCH a").ok();
    server.call("BF.ADD a new");
    client.call("MULTI").ok();
    client.call("PING");
    assert_eq!(client.call("EXEC"), Reply::NoArray);
}

#[test]
#[ignore = "cargo x test --foreign"]
fn info_has_a_petal_section() {
    let server = Server::new();
    sample_filters::create(&server, 100);
    let section = server.call("INFO petal").text();
    assert!(section.contains("petal_filters:12"), "{section}");
    assert!(section.contains("petal_memory_bytes:"), "{section}");
    // Tables of rates remain.
    server.call("FLUSHALL").ok();
    let left = server.info("petal_memory_bytes").parse::<u64>().unwrap();
    assert!(server.info("petal_filters") == "0" && left < 64 << 10, "{left} bytes");
}

#[test]
#[ignore = "cargo x test --foreign"]
fn settings_can_be_changed_at_run_time() {
    let server = Server::new();
    let get = |name: &str| server.call(&format!("CONFIG GET petal.{name}")).items()[1].text();
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
        server.call(&format!("CONFIG SET petal.{name} {value}")).ok();
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
            server.call(&format!("CONFIG SET petal.{name} {value}")).is_error(),
            "{name} {value}"
        );
        assert_eq!(get(name), before);
    }
    server.call("BF.ADD auto x");
    assert_eq!(server.call("BF.INFO auto").field("Capacity").int(), 5000);
    assert_eq!(server.call("BF.INFO auto").field("Expansion rate").int(), 4);
    server.call("CF.ADD cauto x");
    assert_eq!(server.call("CF.INFO cauto").field("Bucket size").int(), 4);
    assert_eq!(server.call("CF.INFO cauto").field("Expansion rate").int(), 2);
}

#[test]
#[ignore = "cargo x test --foreign"]
fn settings_are_read_from_file_and_module_arguments() {
    let file = Setup::new().args("--petal.bf-initial-size 777 --petal.bf-error-rate 0.05").start();
    file.call("BF.ADD auto x");
    assert_eq!(file.call("BF.INFO auto").field("Capacity").int(), 777);
    // RedisBloom's arguments of `loadmodule`.
    let args = "INITIAL_SIZE 300 ERROR_RATE 0.002 CF_MAX_EXPANSIONS 16";
    let args = Setup::new().module_args(args).start();
    args.call("BF.ADD auto x");
    assert_eq!(args.call("BF.INFO auto").field("Capacity").int(), 300);
    assert!(Setup::new().module_args("INITIAL_SIZE").try_start().is_err());
    assert!(Setup::new().module_args("INITIAL_SIZE many").try_start().is_err());
    assert!(Setup::new().module_args("BOGUS 1").try_start().is_err());
}

/// Redis 8 has RedisBloom's settings without the name of a module.
#[test]
#[ignore = "cargo x test --foreign"]
fn settings_of_redis_8_need_no_prefix() {
    let version = Server::new().info("redis_version");
    let first = version.split('.').next().unwrap().parse::<u32>().unwrap();
    if first < 8 || std::env::var("PETAL_VALKEY").is_ok_and(|path| path.contains("valkey")) {
        println!("skipped: this server is not Redis 8");
        return;
    }
    for name in ["bf", "petal"] {
        let settings = [
            ("bf-error-rate", "0.002"),
            ("bf-initial-size", "300"),
            ("bf-expansion-factor", "4"),
            ("cf-bucket-size", "4"),
            ("cf-initial-size", "2048"),
            ("cf-max-iterations", "30"),
            ("cf-expansion-factor", "2"),
            ("cf-max-expansions", "10"),
        ];
        let args: Vec<_> =
            settings.iter().map(|(setting, value)| format!("--{setting} {value}")).collect();
        let setup = Setup::new().module_args(&format!("NAME {name}"));
        let server = setup.args(&args.join(" ")).start();
        let get = |setting: &str| server.call(&format!("CONFIG GET {setting}")).items()[1].text();
        for (setting, value) in settings {
            assert_eq!(get(setting), value);
            assert_eq!(get(&format!("{name}.{setting}")), value);
        }
        server.call(&format!("CONFIG SET {name}.bf-initial-size 500")).ok();
        assert_eq!(get("bf-initial-size"), "500");
        server.call("CONFIG SET bf-initial-size 100").ok();
        assert_eq!(get(&format!("{name}.bf-initial-size")), "100");
        server.call("BF.ADD auto x");
        assert_eq!(server.call("BF.INFO auto").field("Capacity").int(), 100);
        // The file has one name, the server sets the other to the default.
        let setup = Setup::new().module_args(&format!("NAME {name}"));
        let server = setup.args(&format!("--{name}.bf-initial-size 777")).start();
        assert_eq!(server.call("CONFIG GET bf-initial-size").items()[1].text(), "777");
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn fpr_of_all_layers_is_within_the_target() {
    let server = Server::new();
    for (key, rate) in [("one", 0.01), ("thousandth", 0.001)] {
        server.call(&format!("BF.RESERVE {key} {rate} 100")).ok();
        for first in (0..100_000).step_by(1000) {
            let items = (first..first + 1000).map(|item| format!("item:{item}"));
            let args = ["BF.MADD", key].into_iter().map(str::to_owned).chain(items);
            server.call_args(&args.collect::<Vec<_>>());
        }
        let absent_items = (0..200_000).map(|item| format!("stranger:{item}"));
        let args = ["BF.MEXISTS", key].into_iter().map(str::to_owned).chain(absent_items);
        let yes = server.call_args(&args.collect::<Vec<_>>()).ints().iter().sum::<i64>();
        // Five standard deviations above the target.
        let expected: f64 = 200_000.0 * rate;
        assert!((yes as f64) < expected + 5.0 * expected.sqrt(), "{key}: {yes} of 200000");
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn large_filters_are_freed_in_the_background() {
    let server = Server::new();
    let freed = || server.info("lazyfreed_objects").parse::<u64>().unwrap();
    for line in ["BF.RESERVE k 0.01 10000000", "CF.RESERVE k 10000000"] {
        server.call(line).ok();
        let before = freed();
        assert_eq!(server.call("UNLINK k").int(), 1);
        wait_until("it is freed", || freed() == before + 1);
    }
    // A small filter is freed at once.
    server.call("BF.ADD small x");
    let before = freed();
    server.call("UNLINK small");
    assert_eq!(server.info("lazyfree_pending_objects"), "0");
    assert_eq!(freed(), before);
}

#[test]
#[ignore = "cargo x test --foreign"]
fn active_defragmentation_keeps_filters_intact() {
    let server = Server::new();
    if server.call("CONFIG SET activedefrag yes").is_error() {
        println!("skipped: this server has no active defragmentation");
        return;
    }
    for line in ["ignore-bytes 1", "threshold-lower 0", "cycle-min 80", "cycle-max 90"] {
        server.call(&format!("CONFIG SET active-defrag-{line}")).ok();
    }
    let filters = sample_filters::create(&server, 2000);
    for number in 0..20_000 {
        server.call(&format!("PETAL.RESERVE w:{number} 0.01 200 TYPE window LAST")).ok();
        server.call(&format!("BF.ADD w:{number} item"));
    }
    for number in (0..20_000).filter(|number| number % 4 != 0) {
        server.call(&format!("DEL w:{number}"));
    }
    let digest = server.digest();
    wait_until("blocks are moved", || {
        server.info("active_defrag_hits").parse::<u64>().unwrap() > 0
    });
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert_eq!(server.digest(), digest);
    filters.assert_members(&server);
}

#[test]
#[ignore = "cargo x test --foreign"]
fn module_with_keys_cannot_be_unloaded() {
    let server = Setup::new().args("--enable-module-command yes").start();
    server.call("BF.ADD a x");
    assert!(server.call("MODULE UNLOAD petal").is_error());
    assert_eq!(server.call("BF.EXISTS a x").int(), 1);
    // RedisBloom cannot be loaded too: its commands exist.
    if let Some(Module::RedisBloom(path)) = redisbloom() {
        let load = [b"MODULE", &b"LOAD"[..], path.to_str().unwrap().as_bytes()];
        assert!(server.call_args(&load).is_error());
        assert_eq!(server.call("BF.EXISTS a x").int(), 1);
    }
}

/// Returns all settings of the module with their values, sorted.
fn settings(server: &Server) -> Vec<(String, String)> {
    let reply = server.call("CONFIG GET petal.*");
    let mut pairs: Vec<_> =
        reply.items().chunks(2).map(|pair| (pair[0].text(), pair[1].text())).collect();
    pairs.sort();
    pairs
}

#[test]
#[ignore = "cargo x test --foreign"]
fn packaged_configuration_names_the_defaults() {
    let text = std::fs::read_to_string("../../packaging/redis/archive/petal.conf").unwrap();
    let active: Vec<&str> =
        text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
    assert_eq!(active, ["loadmodule /usr/lib/redis/modules/libpetal_redis.so"]);
    let shown = text.lines().filter_map(|line| line.strip_prefix("# petal."));
    let args: Vec<String> = shown.map(|setting| format!("--petal.{setting}")).collect();
    assert_eq!(args.len(), 11);
    let server = Setup::new().args(&args.join(" ")).start();
    assert_eq!(settings(&server), settings(&Server::new()));
    let changed = Setup::new().args("--petal.bf-error-rate 0.02").start();
    assert_ne!(settings(&changed), settings(&server));
}
