//! PETAL.IMPORT and PETAL.EXPORT: filters that come and go as files, in pieces, while the server goes on.

use crate::server::{Reply, Server, Setup};

/// A key's file, in pieces of this size.
#[track_caller]
fn export(server: &Server, key: &str, piece: usize) -> Vec<u8> {
    let (mut file, mut offset) = (Vec::new(), 0);
    loop {
        let reply = server.ask(&format!("PETAL.EXPORT {key} {offset} COUNT {piece}"));
        let bytes = reply.items()[1].bytes();
        assert!(bytes.len() <= piece);
        file.extend_from_slice(bytes);
        offset = reply.items()[0].int();
        if offset == 0 {
            return file;
        }
        assert_eq!(offset, file.len() as i64);
    }
}

#[track_caller]
fn push(server: &Server, key: &str, offset: usize, bytes: &[u8]) -> Reply {
    let offset = offset.to_string();
    server.ask_words(&[&b"PETAL.IMPORT"[..], key.as_bytes(), offset.as_bytes(), bytes])
}

#[track_caller]
fn import(server: &Server, key: &str, file: &[u8], piece: usize) {
    for (at, bytes) in file.chunks(piece).enumerate() {
        let reply = push(server, key, at * piece, bytes);
        assert_eq!(reply.items()[0].int(), (at * piece + bytes.len()) as i64);
    }
}

fn source() -> Server {
    let server = Server::new();
    server.ask("BF.RESERVE growing 0.01 100").ok();
    server.ask("BF.RESERVE fixed 0.001 20000 NONSCALING").ok();
    for key in ["growing", "fixed"] {
        let items = (0..10_000).map(|item| format!("item:{item}"));
        let words = ["BF.MADD", key].into_iter().map(str::to_owned).chain(items);
        server.ask_words(&words.collect::<Vec<_>>());
    }
    server
}

#[track_caller]
fn assert_whole(server: &Server, key: &str) {
    let items = (0..10_000).map(|item| format!("item:{item}"));
    let words = ["BF.MEXISTS", key].into_iter().map(str::to_owned).chain(items);
    let found = server.ask_words(&words.collect::<Vec<_>>()).ints();
    assert!(found.iter().all(|&yes| yes == 1), "{key}");
}

#[test]
#[ignore = "cargo x test --foreign"]
fn a_filter_goes_out_and_comes_in() {
    let (here, there) = (source(), Server::new());
    for (key, piece) in [("growing", 1000), ("fixed", 1 << 20)] {
        let file = export(&here, key, piece);
        assert_eq!(file, export(&here, key, 4097));
        import(&there, key, &file, piece + 1);
        assert_whole(&there, key);
    }
    assert_eq!(there.digest(), here.digest());
    assert_eq!(there.ask("BF.ADD growing new").int(), 1);
}

#[test]
#[ignore = "cargo x test --foreign"]
fn what_has_not_come_whole_answers_nothing() {
    let (here, there) = (source(), Server::new());
    let file = export(&here, "fixed", 1 << 20);
    push(&there, "fixed", 0, &file[..file.len() / 2]);
    for line in ["BF.EXISTS fixed item:1", "BF.ADD fixed item:1", "BF.INFO fixed", "BF.CARD fixed"]
    {
        assert!(there.ask(line).is_error(), "{line}");
    }
    assert!(push(&there, "fixed", 7, b"elsewhere").is_error());
    // It begins again, or goes on.
    import(&there, "fixed", &file, file.len() / 3);
    assert_whole(&there, "fixed");
    assert_eq!(push(&there, "fixed", 0, &file).error(), "ERR item exists");
}

#[test]
#[ignore = "cargo x test --foreign"]
fn a_wrong_file_leaves_nothing() {
    let (here, there) = (source(), Setup::new().memory(1 << 30).start());
    let file = export(&here, "fixed", 1 << 20);
    let mut client = there.client();
    for at in (0..256).chain((256..file.len()).step_by(997)) {
        let mut wrong = file.clone();
        wrong[at] ^= 0x10;
        let reply = client.ask_words(&[&b"PETAL.IMPORT"[..], b"wrong", b"0", &wrong]);
        assert!(reply.is_error(), "byte {at}: {reply:?}");
        assert_eq!(client.ask("EXISTS wrong").int(), 0, "byte {at}");
    }
    let more = [&file[..], b"more"].concat();
    assert!(push(&there, "wrong", 0, &more).is_error());
    assert_eq!(there.ask("EXISTS wrong").int(), 0);
}

#[test]
#[ignore = "cargo x test --foreign"]
fn a_replica_that_comes_in_the_middle_gets_it_whole() {
    let (here, master, replica) = (source(), Server::new(), Server::new());
    let file = export(&here, "growing", 1 << 20);
    let (first, second) = file.split_at(file.len() / 2);
    push(&master, "growing", 0, first);
    replica.follow(&master);
    push(&master, "growing", first.len(), second);
    replica.wait_for(&master);
    assert_whole(&replica, "growing");
    assert_eq!(replica.digest(), master.digest());
    assert_eq!(master.digest(), {
        here.ask("DEL fixed");
        here.digest()
    });
}

#[test]
#[ignore = "cargo x test --foreign"]
fn a_server_that_ends_in_the_middle_goes_on_after() {
    let here = source();
    let file = export(&here, "growing", 1 << 20);
    let (first, second) = file.split_at(file.len() / 2);
    let log = "--appendonly yes --appendfsync always";
    for words in ["", log, "--appendonly yes --appendfsync always --aof-use-rdb-preamble no"] {
        let mut server = Setup::new().words(words).start();
        push(&server, "growing", 0, first);
        if words.len() > log.len() {
            crate::aof::rewrite(&server);
        }
        server.restart();
        let reply = push(&server, "growing", first.len(), second);
        assert!(!reply.is_error(), "{words}: {reply:?}");
        assert_whole(&server, "growing");
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn a_file_that_is_too_large_is_refused_by_its_header() {
    let (here, there) = (source(), Setup::new().words("--petal.memory-limit 10kb").start());
    let file = export(&here, "fixed", 1 << 20);
    assert!(push(&there, "fixed", 0, &file[..4096]).is_error());
    assert_eq!(there.ask("EXISTS fixed").int(), 0);
}
