//! RDB: files of RedisBloom's are read exactly, and what the module saves comes back the same.

use crate::captures::{captures, chunks, file};
use crate::server::{Server, Setup, redisbloom};
use crate::zoo;

fn loaded() -> Server {
    Setup::new().words("--dbfilename dump.rdb").file("dump.rdb", file("dump.rdb")).start()
}

#[test]
#[ignore = "cargo x test --foreign"]
fn redisblooms_file_is_read_exactly() {
    let server = loaded();
    assert_eq!(server.ask("DBSIZE").int(), captures().len() as i64);
    for capture in captures() {
        capture.assert_exact(&server);
        assert_eq!(chunks(&server, capture.family(), &capture.key), capture.chunks);
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn what_info_tells_of_redisblooms_file_is_what_redisbloom_tells() {
    let server = loaded();
    for capture in captures() {
        let info = capture.ask(&server, "INFO", &[]);
        let shown: Vec<_> = info
            .items()
            .iter()
            .map(|field| match field {
                crate::server::Reply::Int(number) => (*number).into(),
                crate::server::Reply::NoBulk => serde_json::Value::Null,
                text => text.text().into(),
            })
            .collect();
        assert_eq!(shown, capture.info, "{}", capture.key);
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn adding_to_redisblooms_file_goes_on() {
    let mut server = loaded();
    captures().iter().for_each(|capture| capture.assert_goes_on(&server));
    let digest = server.digest();
    server.restart();
    assert_eq!(server.digest(), digest);
}

#[test]
#[ignore = "cargo x test --foreign"]
fn redisblooms_log_is_replayed() {
    for (setup, exact) in [(Setup::new(), false), (Setup::compat(), true)] {
        let setup = setup.file("appendonly.aof", file("appendonly.aof"));
        let server = setup.words("--appendonly yes --appendfilename appendonly.aof").start();
        for capture in captures() {
            if exact {
                capture.assert_exact(&server)
            } else {
                capture.assert_members(&server)
            }
            capture.assert_goes_on(&server);
        }
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn a_saved_filter_comes_back() {
    for setup in [Setup::new(), Setup::compat()] {
        let mut server = setup.start();
        let zoo = zoo::filled(&server, 3000);
        let digest = server.digest();
        for _ in 0..2 {
            server.restart();
            assert_eq!(server.digest(), digest);
            zoo.assert_members(&server);
        }
        zoo.grow(&server, 500);
        let grown = server.digest();
        assert_ne!(grown, digest);
        server.restart();
        assert_eq!(server.digest(), grown);
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn redisbloom_reads_what_the_compat_layout_saves() {
    let Some(module) = redisbloom() else {
        println!("left out: the peers have no RedisBloom for this machine");
        return;
    };
    let mut ours = Setup::compat().start();
    let zoo = zoo::filled_as_redisbloom_can(&ours, 3000);
    ours.ask("SAVE").ok();
    let saved = ours.folder().read("dump.rdb");
    ours.kill();
    let theirs = Setup::with(module).file("dump.rdb", saved).start();
    zoo.assert_members(&theirs);
    zoo.grow(&theirs, 100);
}
