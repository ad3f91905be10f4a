//! Errors say what is so.

use crate::server::{Server, Setup};

const HUGE: &str = "1000000000000000000";
const NO_MEMORY: &str = "ERR Insufficient memory to create filter";

#[test]
#[ignore = "cargo x test --foreign"]
fn sizes_that_no_machine_has_are_not_blamed_on_the_limit() {
    for words in ["--petal.memory-limit 0", "", "--petal.layout redisbloom"] {
        let server = Setup::new().words(words).start();
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
            assert_eq!(server.ask(&line).error(), NO_MEMORY, "{words}: {line}");
        }
    }
    let server = Server::new();
    let limit = server.ask("BF.RESERVE a 0.01 100000000000");
    assert_eq!(limit.error(), "ERR operation exceeds bloom object memory limit");
    let rate = server.ask("BF.RESERVE a 1e-18 100000000");
    assert!(rate.error().contains("64 bits") && !rate.error().contains("petal build"), "{rate:?}");
}

#[test]
#[ignore = "cargo x test --foreign"]
fn filters_in_redisblooms_layout_are_not_merged_and_say_so() {
    let server = Server::compat();
    server.ask("BF.RESERVE a 0.01 100 NONSCALING").ok();
    server.ask("BF.RESERVE b 0.01 100 NONSCALING").ok();
    for line in ["PETAL.MERGE c a b", "PETAL.MERGE a b", "PETAL.MERGE c a", "PETAL.COMPARE a b"] {
        let reply = server.ask(line);
        assert!(reply.error().contains("in RedisBloom's layout are neither merged"), "{reply:?}");
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn counts_and_deletions_of_cuckoo_filters_name_their_commands() {
    for server in [Server::new(), Server::compat()] {
        server.ask("CF.ADD c x");
        assert!(server.ask("PETAL.COUNT c x").error().contains("CF.COUNT"));
        assert!(server.ask("PETAL.DEL c x").error().contains("CF.DEL"));
    }
}

/// RedisBloom's chain of equal links ends where its rates end; ours of doubling layers does not.
#[test]
#[ignore = "cargo x test --foreign"]
fn scaling_filters_are_never_called_non_scaling() {
    for (server, most) in [(Server::new(), u64::MAX), (Server::compat(), 1100)] {
        server.ask("BF.RESERVE a 0.01 1 EXPANSION 1").ok();
        let mut refused = None;
        for first in (0..40_000).step_by(400) {
            let items: Vec<_> = (first..first + 400).map(|item| item.to_string()).collect();
            let reply = server.ask(&format!("BF.MADD a {}", items.join(" ")));
            refused = reply.items().last().filter(|last| last.is_error()).cloned();
            if refused.is_some() {
                break;
            }
        }
        assert_eq!(refused.is_some(), most == 1100);
        if let Some(error) = refused {
            assert_eq!(error.error(), "Maximum expansions reached");
            assert!(server.ask("BF.INFO a FILTERS").ints()[0] > 1000);
        }
        assert_eq!(server.ask("BF.INFO a EXPANSION").ints(), [1]);
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn headers_that_announce_too_much_are_refused() {
    let server = Server::compat();
    let mut cuckoo = [0; 38];
    cuckoo[8] = 1;
    cuckoo[24..26].copy_from_slice(&u16::MAX.to_le_bytes());
    cuckoo[32..].copy_from_slice(&[1, 0, 20, 0, 1, 0]);
    let reply = server.ask_words(&[&b"CF.LOADCHUNK"[..], b"z", b"1", &cuckoo]);
    assert_eq!(reply.error(), "Couldn't create filter!");
    // What is too large for the machine, and for the limit.
    for (buckets, expected) in [
        (1u64 << 48, "Couldn't create filter!"),
        (1 << 40, "Couldn't create filter! It would take more than the setting memory-limit"),
    ] {
        cuckoo[8..16].copy_from_slice(&buckets.to_le_bytes());
        cuckoo[24..26].copy_from_slice(&[1, 0]);
        let reply = server.ask_words(&[&b"CF.LOADCHUNK"[..], b"z", b"1", &cuckoo]);
        assert_eq!(reply.error(), expected);
    }
    server.ask("BF.RESERVE b 0.01 5").ok();
    let mut header = server.ask("BF.SCANDUMP b 0").items()[1].bytes().to_vec();
    // Keys of the chain and of its link.
    header[..8].fill(255);
    header[36..44].fill(255);
    let reply = server.ask_words(&[&b"BF.LOADCHUNK"[..], b"z", b"1", &header]);
    assert_eq!(reply.error(), "ERR received bad data");
    assert_eq!(server.ask("EXISTS z").int(), 0);
}

#[test]
#[ignore = "cargo x test --foreign"]
fn commands_that_may_take_long_are_not_called_fast() {
    let server = Server::new();
    let info = server.ask("COMMAND INFO bf.info bf.card");
    let fast = |at: usize| format!("{:?}", info.items()[at]).contains("fast");
    assert!(!fast(0) && fast(1), "{info:?}");
}
