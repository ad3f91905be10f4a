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
    assert_eq!(
        push(&there, "fixed", 0, &file).error(),
        "ERR item exists: load under another name, then RENAME"
    );
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

/// The command line counts seconds, the server milliseconds.
#[test]
#[ignore = "cargo x test --foreign"]
fn windows_of_time_are_not_exchanged() {
    let server = Server::new();
    server.ask("PETAL.RESERVE last 0.01 200 LAST").ok();
    server.ask("PETAL.RESERVE time 0.01 200 WINDOW 1d").ok();
    for key in ["last", "time"] {
        server.ask(&format!("BF.ADD {key} a"));
    }
    let refusal = server.ask("PETAL.EXPORT time 0");
    assert!(refusal.error().starts_with("ERR a window by time"), "{refusal:?}");
    let file = export(&server, "last", 1 << 20);
    import(&server, "again", &file, 1000);
    assert_eq!(server.ask("BF.EXISTS again a").int(), 1);

    let timed = petal::WindowedBloomFilter::builder().keys(200).rate(0.01).time(3600).build();
    let mut file = Vec::new();
    timed.unwrap().write_to(&mut file, "").unwrap();
    push(&server, "timed", 0, &file[..1000]);
    let refusal = push(&server, "timed", 1000, &file[1000..]);
    assert!(refusal.error().starts_with("ERR a window by time"), "{refusal:?}");
    assert_eq!(server.ask("EXISTS timed").int(), 0);
}

#[test]
#[ignore = "cargo x test --foreign"]
fn an_import_keeps_its_time_to_live_and_tells_how_far_it_is() {
    let (here, there) = (source(), Server::new());
    let file = export(&here, "fixed", 1 << 20);
    push(&there, "fixed", 0, &file[..5000]);
    assert_eq!(there.ask("PETAL.INFO fixed").field("type").text(), "incomplete");
    let info = there.ask("PETAL.INFO fixed FULL");
    assert_eq!(info.field("bytes-come").int(), 5000);
    assert_eq!(info.field("bytes-in-all").int(), file.len() as i64);
    there.ask("EXPIRE fixed 1000");
    push(&there, "fixed", 5000, &file[5000..]);
    assert_whole(&there, "fixed");
    assert!(there.ask("TTL fixed").int() > 900);
    assert_eq!(there.info("petal_filters"), "1");
}

#[test]
#[ignore = "cargo x test --foreign"]
fn pieces_without_bytes_and_numbers_from_nowhere_are_refused() {
    let (here, there) = (source(), Server::new());
    assert!(push(&there, "k", 0, b"").is_error());
    assert_eq!(there.ask("EXISTS k").int(), 0);
    let front = here.ask("BF.SCANDUMP fixed 0").items()[1].bytes().to_vec();
    there.ask_words(&[&b"BF.LOADCHUNK"[..], b"k", b"1", &front]).ok();
    for number in ["0", "-1", "9223372036854775807", "1"] {
        let words = [&b"BF.LOADCHUNK"[..], b"k", number.as_bytes(), b"bytes"];
        assert!(there.ask_words(&words).is_error(), "{number}");
    }
    assert!(there.is_alive());
}

#[test]
#[ignore = "cargo x test --foreign"]
fn restore_is_held_to_the_limit_and_what_was_accepted_is_not() {
    let small = "--petal.memory-limit 10kb";
    let (mut here, replica) = (Setup::new().words(small).start(), Server::new());
    here.ask("CONFIG SET petal.memory-limit 0").ok();
    replica.ask("CONFIG SET petal.memory-limit 10kb").ok();
    here.ask("BF.RESERVE fixed 0.001 20000 NONSCALING").ok();
    let dump = here.ask("DUMP fixed").bytes().to_vec();
    let file = export(&here, "fixed", 1 << 20);
    push(&here, "part", 0, &file[..100]);
    let part = here.ask("DUMP part").bytes().to_vec();
    let restore = |server: &Server, key: &str, dump: &[u8]| {
        server.ask_words(&[&b"RESTORE"[..], key.as_bytes(), b"0", dump])
    };
    assert!(restore(&replica, "fixed", &dump).is_error());
    restore(&replica, "part", &part).ok();
    assert!(push(&replica, "part", 100, &file[100..5000]).is_error());
    assert_eq!(replica.ask("EXISTS fixed part").int(), 0);

    // A replica takes what its master has taken: as a stream, and as commands.
    replica.follow(&here);
    replica.wait_for(&here);
    restore(&here, "more", &dump).ok();
    push(&here, "part", 100, &file[100..5000]);
    replica.wait_for(&here);
    assert_eq!(replica.digest(), here.digest());

    push(&here, "whole", 0, &file[..5000]);
    // And so does a server that starts again; what goes on then has a limit.
    here.restart();
    assert_eq!(here.ask("EXISTS fixed more part").int(), 3);
    for (key, end) in [("part", 6000), ("whole", file.len())] {
        assert!(push(&here, key, 5000, &file[5000..end]).is_error(), "{key}");
        assert_eq!(here.ask(&format!("EXISTS {key}")).int(), 0);
    }
}
