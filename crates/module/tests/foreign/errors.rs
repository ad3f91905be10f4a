//! Texts of errors.

use crate::server::{Server, Setup};

const HUGE: &str = "1000000000000000000";
const NO_MEMORY: &str = "ERR Insufficient memory to create filter";

#[test]
#[ignore = "cargo x test --foreign"]
fn impossible_sizes_are_out_of_memory_errors() {
    for args in ["--petal.memory-limit 0", "", "--petal.layout redisbloom"] {
        let server = Setup::new().args(args).start();
        for line in [
            format!("BF.RESERVE a 0.01 {HUGE}"),
            format!("BF.RESERVE a 0.01 {HUGE} NONSCALING"),
            format!("BF.INSERT a CAPACITY {HUGE} ERROR 0.01 ITEMS 1"),
            format!("PETAL.RESERVE a 0.01 {HUGE} TYPE counting"),
            format!("PETAL.RESERVE a 0.01 {HUGE} TYPE cuckoo"),
            format!("PETAL.RESERVE a 0.01 {HUGE} LAST"),
            format!("CF.RESERVE a {HUGE}"),
            "CF.RESERVE a 1844674407370955165 EXPANSION 32".to_owned(),
            format!("CF.INSERT a CAPACITY {HUGE} ITEMS 1"),
        ] {
            assert_eq!(server.call(&line).error(), NO_MEMORY, "{args}: {line}");
        }
    }
    let server = Server::new();
    let limit = server.call("BF.RESERVE a 0.01 100000000000");
    assert_eq!(limit.error(), "ERR operation exceeds bloom object memory limit");
    let rate = server.call("BF.RESERVE a 1e-18 100000000");
    assert!(
        rate.error().contains("64-bit hashes") && !rate.error().contains("petal build"),
        "{rate:?}"
    );
}

#[test]
#[ignore = "cargo x test --foreign"]
fn invalid_arguments_are_reported_in_redisblooms_order() {
    for server in [Server::new(), Server::redisbloom_layout()] {
        for (line, reply) in [
            ("BF.RESERVE a 1e-400 100", "ERR bad error rate"),
            ("BF.INSERT a ERROR 1e-400 ITEMS x", "Bad error rate"),
            ("BF.RESERVE a 0.01 100 EXPANSION x NONSCALING", "Nonscaling filters cannot expand"),
            ("BF.RESERVE a 0.01 100 NONSCALING EXPANSION 0", "Nonscaling filters cannot expand"),
            ("BF.RESERVE a 0.01 100 EXPANSION NONSCALING", "Nonscaling filters cannot expand"),
            ("BF.RESERVE a 0.01 100 NONSCALING EXPANSION", "ERR no expansion"),
            ("CF.INSERT a CAPACITY 2", "Capacity must be at least (BucketSize * 2)"),
            ("CF.INSERTNX a CAPACITY 0 NOCREATE", "Capacity must be at least (BucketSize * 2)"),
            ("BF.RESERVE a 0.01 100 EXPANSION x EXPANSION", "ERR bad expansion"),
            ("BF.RESERVE a 0.01 100 EXPANSION x FOO", "ERR bad expansion"),
            (
                "BF.RESERVE a 0.01 100 EXPANSION NONSCALING EXPANSION",
                "Nonscaling filters cannot expand",
            ),
            ("BF.RESERVE a 0.01 100 EXPANSION EXPANSION 3", "ERR bad expansion"),
            (
                "BF.INSERT a CAPACITY 5 ERROR",
                "ERR wrong number of arguments for 'bf.insert' command",
            ),
            ("BF.INSERT a CAPACITY x ERROR", "Bad capacity"),
            (
                "CF.INSERT a NOCREATE CAPACITY",
                "ERR wrong number of arguments for 'cf.insert' command",
            ),
            ("CF.INSERT a CAPACITY 0 CAPACITY x", "Capacity must be at least (BucketSize * 2)"),
            ("CF.INSERT a CAPACITY 1 FOO", "Capacity must be at least (BucketSize * 2)"),
            ("CF.INSERT a CAPACITY 100 FOO", "Unknown argument received"),
        ] {
            assert_eq!(server.call(line).error(), reply, "{line}");
        }
        // RedisBloom ignores all but the first EXPANSION.
        server.call("BF.RESERVE a 0.01 100 EXPANSION 3 EXPANSION").ok();
        assert_eq!(server.call("BF.INFO a EXPANSION").ints(), [3]);
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn chunks_without_bytes_are_rejected_as_in_redisbloom() {
    let server = Server::redisbloom_layout();
    server.call("BF.ADD b x");
    server.call("CF.ADD c x");
    let load = |family: &str, key: &str, position: &str| {
        let command = format!("{family}.LOADCHUNK");
        server.call_args(&[command.as_bytes(), key.as_bytes(), position.as_bytes(), b""])
    };
    assert_eq!(load("BF", "b", "0").error(), "ERR received bad data");
    load("BF", "b", "2").ok();
    assert_eq!(load("CF", "c", "2").error(), "Couldn't load chunk!");
}

/// The first layer of a filter that grows has half the rate.
#[test]
#[ignore = "cargo x test --foreign"]
fn half_of_the_smallest_rate_is_rejected_as_in_redisbloom() {
    let server = Server::redisbloom_layout();
    for line in ["BF.RESERVE a 5e-324 100", "BF.INSERT a ERROR 5e-324 ITEMS x"] {
        assert_eq!(server.call(line).error(), "ERR could not create filter", "{line}");
    }
    server.call("BF.RESERVE a 5e-324 100 NONSCALING").ok();
}

#[test]
#[ignore = "cargo x test --foreign"]
fn unknown_option_is_named() {
    let server = Server::new();
    for (line, expected) in [
        ("PETAL.RESERVE a 0.01 100 FOO", "ERR unknown option FOO"),
        ("PETAL.RESERVE a 0.01 100 TYPE counting SEEED 00", "ERR unknown option SEEED"),
        ("PETAL.SEENCREATE a 0.01 100 x\"y ITEMS b", "ERR unknown option x\\\"y"),
        ("PETAL.EXPORT a 0 FOO 1", "ERR the only option is COUNT"),
    ] {
        assert_eq!(server.call(line).error(), expected, "{line}");
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn expansion_above_the_maximum_is_an_error_that_names_the_option() {
    let server = Server::new();
    for line in [
        "BF.RESERVE a 0.01 100 EXPANSION 32769",
        "BF.INSERT a EXPANSION 32769 ITEMS x",
        "PETAL.RESERVE a 0.01 100 EXPANSION 32769",
        "PETAL.RESERVE a 0.01 100 EXPANSION 32769 TYPE cuckoo",
    ] {
        assert_eq!(server.call(line).error(), "ERR EXPANSION is at most 32768", "{line}");
    }
    server.call("BF.RESERVE a 0.01 100 EXPANSION 32768").ok();
    Server::redisbloom_layout().call("BF.RESERVE a 0.01 100 EXPANSION 65535").ok();
}

#[test]
#[ignore = "cargo x test --foreign"]
fn merging_redisblooms_layout_is_an_error() {
    let server = Server::redisbloom_layout();
    server.call("BF.RESERVE a 0.01 100 NONSCALING").ok();
    server.call("BF.RESERVE b 0.01 100 NONSCALING").ok();
    for line in ["PETAL.MERGE c a b", "PETAL.MERGE a b", "PETAL.MERGE c a", "PETAL.COMPARE a b"] {
        let reply = server.call(line);
        assert!(reply.error().contains("in RedisBloom's layout cannot be merged"), "{reply:?}");
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn petal_count_of_cuckoo_filter_names_the_right_command() {
    for server in [Server::new(), Server::redisbloom_layout()] {
        server.call("CF.ADD c x");
        assert!(server.call("PETAL.COUNT c x").error().contains("CF.COUNT"));
        assert!(server.call("PETAL.DEL c x").error().contains("CF.DEL"));
    }
}

/// RedisBloom's chain of equal links ends when the rate cannot be halved; petal's doubling layers
/// do not.
#[test]
#[ignore = "cargo x test --foreign"]
fn scaling_filter_has_no_non_scaling_error() {
    for (server, most) in [(Server::new(), u64::MAX), (Server::redisbloom_layout(), 1100)] {
        server.call("BF.RESERVE a 0.01 1 EXPANSION 1").ok();
        let mut rejected = None;
        for first in (0..40_000).step_by(400) {
            let items: Vec<_> = (first..first + 400).map(|item| item.to_string()).collect();
            let reply = server.call(&format!("BF.MADD a {}", items.join(" ")));
            rejected = reply.items().last().filter(|last| last.is_error()).cloned();
            if rejected.is_some() {
                break;
            }
        }
        assert_eq!(rejected.is_some(), most == 1100);
        if let Some(error) = rejected {
            assert_eq!(error.error(), "Maximum expansions reached");
            assert!(server.call("BF.INFO a FILTERS").ints()[0] > 1000);
        }
        assert_eq!(server.call("BF.INFO a EXPANSION").ints(), [1]);
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn oversized_headers_are_rejected() {
    let server = Server::redisbloom_layout();
    let mut cuckoo = [0; 38];
    cuckoo[8] = 1;
    cuckoo[24..26].copy_from_slice(&u16::MAX.to_le_bytes());
    cuckoo[32..].copy_from_slice(&[1, 0, 20, 0, 1, 0]);
    let reply = server.call_args(&[&b"CF.LOADCHUNK"[..], b"z", b"1", &cuckoo]);
    assert_eq!(reply.error(), "Couldn't create filter!");
    // Too large for the address space, and for the limit.
    for (buckets, expected) in [
        (1u64 << 48, "Couldn't create filter!"),
        (1 << 40, "Couldn't create filter! It would exceed the setting memory-limit"),
    ] {
        cuckoo[8..16].copy_from_slice(&buckets.to_le_bytes());
        cuckoo[24..26].copy_from_slice(&[1, 0]);
        let reply = server.call_args(&[&b"CF.LOADCHUNK"[..], b"z", b"1", &cuckoo]);
        assert_eq!(reply.error(), expected);
    }
    server.call("BF.RESERVE b 0.01 5").ok();
    let mut header = server.call("BF.SCANDUMP b 0").items()[1].bytes().to_vec();
    // The number of keys of the chain and of its link.
    header[..8].fill(255);
    header[36..44].fill(255);
    let reply = server.call_args(&[&b"BF.LOADCHUNK"[..], b"z", b"1", &header]);
    assert_eq!(reply.error(), "ERR received bad data");
    assert_eq!(server.call("EXISTS z").int(), 0);
}

#[test]
#[ignore = "cargo x test --foreign"]
fn slow_commands_have_no_fast_flag() {
    let server = Server::new();
    let info = server.call("COMMAND INFO bf.info bf.card");
    let fast = |at: usize| format!("{:?}", info.items()[at]).contains("fast");
    assert!(!fast(0) && fast(1), "{info:?}");
}
