//! RDB: RedisBloom's files are loaded exactly, and saved filters are restored.

use crate::captures::{captures, chunks, file};
use crate::sample_filters;
use crate::server::{Server, Setup, redisbloom};

fn loaded() -> Server {
    Setup::new().args("--dbfilename dump.rdb").file("dump.rdb", file("dump.rdb")).start()
}

#[test]
#[ignore = "cargo x test --foreign"]
fn redisblooms_rdb_file_is_loaded_exactly() {
    let server = loaded();
    assert_eq!(server.call("DBSIZE").int(), captures().len() as i64);
    for capture in captures() {
        capture.assert_equals_redisbloom(&server);
        assert_eq!(chunks(&server, capture.family(), &capture.key), capture.chunks);
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn info_of_redisblooms_filters_equals_redisblooms() {
    let server = loaded();
    for capture in captures() {
        let info = capture.call(&server, "INFO", &[]);
        let formatted: Vec<_> = info
            .items()
            .iter()
            .map(|field| match field {
                crate::server::Reply::Int(number) => (*number).into(),
                crate::server::Reply::NoBulk => serde_json::Value::Null,
                text => text.text().into(),
            })
            .collect();
        assert_eq!(formatted, capture.info, "{}", capture.key);
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn redisblooms_filters_accept_items_after_loading() {
    let mut server = loaded();
    captures().iter().for_each(|capture| capture.assert_accepts_items(&server));
    let digest = server.digest();
    server.restart();
    assert_eq!(server.digest(), digest);
}

#[test]
#[ignore = "cargo x test --foreign"]
fn redisblooms_log_is_replayed() {
    for (setup, exact) in [(Setup::new(), false), (Setup::redisbloom_layout(), true)] {
        let setup = setup.file("appendonly.aof", file("appendonly.aof"));
        let server = setup.args("--appendonly yes --appendfilename appendonly.aof").start();
        for capture in captures() {
            if exact {
                capture.assert_equals_redisbloom(&server)
            } else {
                capture.assert_members(&server)
            }
            capture.assert_accepts_items(&server);
        }
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn saved_filters_are_restored() {
    for setup in [Setup::new(), Setup::redisbloom_layout()] {
        let mut server = setup.start();
        let filters = sample_filters::create(&server, 3000);
        let digest = server.digest();
        for _ in 0..2 {
            server.restart();
            assert_eq!(server.digest(), digest);
            filters.assert_members(&server);
        }
        filters.grow(&server, 500);
        let grown = server.digest();
        assert_ne!(grown, digest);
        server.restart();
        assert_eq!(server.digest(), grown);
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn redisbloom_loads_files_in_its_layout() {
    let Some(module) = redisbloom() else {
        println!("skipped: no RedisBloom for this machine");
        return;
    };
    let mut petal_server = Setup::redisbloom_layout().start();
    let filters = sample_filters::create_redisbloom_types(&petal_server, 3000);
    petal_server.call("SAVE").ok();
    let saved = petal_server.folder().read("dump.rdb");
    petal_server.kill();
    let redisbloom_server = Setup::with(module).file("dump.rdb", saved).start();
    filters.assert_members(&redisbloom_server);
    filters.grow(&redisbloom_server, 100);
}
