//! COPY, DUMP and RESTORE, RENAME, SWAPDB: what arrives is what was there, to the bit.

use crate::captures::{captures, chunks};
use crate::server::{Server, Setup};
use crate::zoo;

fn digest_of(server: &Server, key: &str) -> String {
    server.ask(&format!("DEBUG DIGEST-VALUE {key}")).items()[0].text()
}

#[test]
#[ignore = "cargo x test --foreign"]
fn a_copy_is_the_same_and_apart() {
    for setup in [Setup::new(), Setup::compat()] {
        let server = setup.start();
        let zoo = zoo::filled(&server, 2000);
        // Of the same length, for names take memory too.
        let copy_of = |key: &str| key.replace('-', "+");
        for key in zoo.keys() {
            let copy = copy_of(key);
            assert_eq!(server.ask(&format!("COPY {key} {copy}")).int(), 1);
            assert_eq!(digest_of(&server, &copy), digest_of(&server, key));
            let memory = |key: &str| server.ask(&format!("MEMORY USAGE {key}")).int();
            assert_eq!(memory(&copy), memory(key), "{key}");
        }
        let keys = zoo.keys();
        let copies: Vec<_> = keys.iter().map(|key| digest_of(&server, &copy_of(key))).collect();
        zoo.grow(&server, 1000);
        for (key, copy) in keys.iter().zip(copies) {
            assert_eq!(digest_of(&server, &copy_of(key)), copy);
            assert_ne!(digest_of(&server, key), copy);
        }
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn what_is_dumped_is_restored_on_another_server() {
    for setup in [Setup::new(), Setup::compat()] {
        let (server, other) = (setup.start(), Server::new());
        let zoo = zoo::filled(&server, 2000);
        for key in zoo.keys() {
            let dump = server.ask(&format!("DUMP {key}"));
            let restore = |key: &str| {
                let words = [b"RESTORE", key.as_bytes(), b"0", dump.bytes()];
                other.ask_words(&words)
            };
            restore(key).ok();
            assert!(restore(key).error().starts_with("BUSYKEY"));
            assert_eq!(digest_of(&other, key), digest_of(&server, key));
            assert_eq!(other.ask(&format!("DUMP {key}")), dump);
        }
        zoo.assert_members(&other);
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn redisblooms_dumps_are_restored_and_made() {
    let server = Server::new();
    for capture in captures() {
        let words = [b"RESTORE", capture.key.as_bytes(), b"0", &capture.dump];
        server.ask_words(&words).ok();
        capture.assert_exact(&server);
        let again = server.ask(&format!("DUMP {}", capture.key));
        // A payload ends with the version of the server's format, and a checksum.
        if std::env::var_os("PETAL_VALKEY").is_none() {
            assert!(again.bytes() == capture.dump, "{}", capture.key);
        }
        capture.assert_goes_on(&server);
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn redisblooms_chunks_are_loaded_and_made() {
    let server = Server::new();
    for capture in captures() {
        capture.load_chunks(&server);
        capture.assert_exact(&server);
        assert_eq!(chunks(&server, capture.family(), &capture.key), capture.chunks);
        capture.assert_goes_on(&server);
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn chunks_of_every_kind_make_the_same_filter() {
    for setup in [Setup::new(), Setup::compat()] {
        let (server, other) = (setup.start(), Server::new());
        let zoo = zoo::filled(&server, 3000);
        for key in zoo.keys() {
            let family = if key.starts_with("cf") { "CF" } else { "BF" };
            for (position, chunk) in chunks(&server, family, key) {
                let position = position.to_string();
                let name = format!("{family}.LOADCHUNK");
                let words = [name.as_bytes(), key.as_bytes(), position.as_bytes(), &chunk];
                other.ask_words(&words).ok();
            }
            assert_eq!(digest_of(&other, key), digest_of(&server, key), "{key}");
        }
        zoo.assert_members(&other);
        zoo.grow(&other, 500);
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn keys_are_renamed_moved_swapped_and_expire() {
    let server = Server::new();
    zoo::filled(&server, 500);
    let digest = digest_of(&server, "bf-scaled");
    server.ask("RENAME bf-scaled renamed").ok();
    assert_eq!(digest_of(&server, "renamed"), digest);
    assert_eq!(server.ask("MOVE renamed 1").int(), 1);
    server.ask("SWAPDB 0 1").ok();
    assert_eq!(digest_of(&server, "renamed"), digest);
    server.ask("PEXPIRE renamed 30");
    crate::server::until("the key is gone", || server.ask("EXISTS renamed").int() == 0);
    server.ask("FLUSHALL ASYNC").ok();
    assert_eq!(server.ask("DBSIZE").int(), 0);
}
