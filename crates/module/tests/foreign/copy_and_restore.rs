//! COPY, DUMP and RESTORE, chunks, RENAME, SWAPDB: the result is identical to the source.

use crate::captures::{captures, chunks};
use crate::sample_filters;
use crate::server::{Server, Setup};

fn digest_of(server: &Server, key: &str) -> String {
    server.call(&format!("DEBUG DIGEST-VALUE {key}")).items()[0].text()
}

#[test]
#[ignore = "cargo x test --foreign"]
fn copy_is_identical_and_independent() {
    for setup in [Setup::new(), Setup::redisbloom_layout()] {
        let server = setup.start();
        let filters = sample_filters::create(&server, 2000);
        // A name of the same length, because names use memory too.
        let copy_of = |key: &str| key.replace('-', "+");
        for key in filters.keys() {
            let copy = copy_of(key);
            assert_eq!(server.call(&format!("COPY {key} {copy}")).int(), 1);
            assert_eq!(digest_of(&server, &copy), digest_of(&server, key));
            let memory = |key: &str| server.call(&format!("MEMORY USAGE {key}")).int();
            assert_eq!(memory(&copy), memory(key), "{key}");
        }
        let keys = filters.keys();
        let copies: Vec<_> = keys.iter().map(|key| digest_of(&server, &copy_of(key))).collect();
        filters.grow(&server, 1000);
        for (key, copy) in keys.iter().zip(copies) {
            assert_eq!(digest_of(&server, &copy_of(key)), copy);
            assert_ne!(digest_of(&server, key), copy);
        }
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn dump_is_restored_on_another_server() {
    for setup in [Setup::new(), Setup::redisbloom_layout()] {
        let (server, other) = (setup.start(), Server::new());
        let filters = sample_filters::create(&server, 2000);
        for key in filters.keys() {
            let dump = server.call(&format!("DUMP {key}"));
            let restore = |key: &str| {
                let args = [b"RESTORE", key.as_bytes(), b"0", dump.bytes()];
                other.call_args(&args)
            };
            restore(key).ok();
            assert!(restore(key).error().starts_with("BUSYKEY"));
            assert_eq!(digest_of(&other, key), digest_of(&server, key));
            assert_eq!(other.call(&format!("DUMP {key}")), dump);
        }
        filters.assert_members(&other);
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn dumps_equal_redisblooms() {
    let server = Server::new();
    for capture in captures() {
        let args = [b"RESTORE", capture.key.as_bytes(), b"0", &capture.dump];
        server.call_args(&args).ok();
        capture.assert_equals_redisbloom(&server);
        let again = server.call(&format!("DUMP {}", capture.key));
        // A payload ends with the version of the server's format and a checksum.
        if std::env::var_os("PETAL_VALKEY").is_none() {
            assert!(again.bytes() == capture.dump, "{}", capture.key);
        }
        capture.assert_accepts_items(&server);
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn chunks_equal_redisblooms() {
    let server = Server::new();
    for capture in captures() {
        capture.load_chunks(&server);
        capture.assert_equals_redisbloom(&server);
        assert_eq!(chunks(&server, capture.family(), &capture.key), capture.chunks);
        capture.assert_accepts_items(&server);
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn loaded_chunks_give_identical_filters() {
    for setup in [Setup::new(), Setup::redisbloom_layout()] {
        let (server, other) = (setup.start(), Server::new());
        let filters = sample_filters::create(&server, 3000);
        for key in filters.keys() {
            let family = if key.starts_with("cf") { "CF" } else { "BF" };
            for (position, chunk) in chunks(&server, family, key) {
                let position = position.to_string();
                let name = format!("{family}.LOADCHUNK");
                let args = [name.as_bytes(), key.as_bytes(), position.as_bytes(), &chunk];
                other.call_args(&args).ok();
            }
            assert_eq!(digest_of(&other, key), digest_of(&server, key), "{key}");
        }
        filters.assert_members(&other);
        filters.grow(&other, 500);
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn keys_can_be_renamed_moved_swapped_and_expired() {
    let server = Server::new();
    sample_filters::create(&server, 500);
    let digest = digest_of(&server, "bf-scaled");
    server.call("RENAME bf-scaled renamed").ok();
    assert_eq!(digest_of(&server, "renamed"), digest);
    assert_eq!(server.call("MOVE renamed 1").int(), 1);
    server.call("SWAPDB 0 1").ok();
    assert_eq!(digest_of(&server, "renamed"), digest);
    server.call("PEXPIRE renamed 30");
    crate::server::wait_until("the key is gone", || server.call("EXISTS renamed").int() == 0);
    server.call("FLUSHALL ASYNC").ok();
    assert_eq!(server.call("DBSIZE").int(), 0);
}
