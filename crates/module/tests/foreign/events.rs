//! Keyspace events and replication of every command.

use crate::server::{Client, Reply, Server, Setup};

/// Reads events (`event key`) until the end marker.
fn read_events(listener: &mut Client) -> Vec<String> {
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
fn every_change_is_published_and_replicated() {
    let (master, replica) = (Server::new(), Server::new());
    replica.replicate_from(&master);
    master.call("CONFIG SET notify-keyspace-events Ed").ok();
    let mut listener = master.client();
    listener.call("PSUBSCRIBE __keyevent@0__:*");
    const SEED: &str = "SEED 000102030405060708090a0b0c0d0e0f";
    let lines = [
        ("CF.RESERVE c 100", "cuckoo.reserve c"),
        ("CF.ADD c a", "cuckoo.add c"),
        ("CF.ADDNX c a", ""),
        ("CF.ADDNX c b", "cuckoo.add c"),
        ("CF.INSERT c ITEMS a d", "cuckoo.add c"),
        ("CF.INSERTNX c ITEMS a d", ""),
        ("CF.INSERTNX c ITEMS a e", "cuckoo.add c"),
        ("CF.DEL c a", "cuckoo.del c"),
        ("CF.DEL c none", ""),
        ("CF.MDEL c d none", "cuckoo.del c"),
        ("CF.MDEL c none", ""),
        ("CF.ADD c d", "cuckoo.add c"),
        (&format!("PETAL.RESERVE p 0.001 100 TYPE counting {SEED}"), "bloom.reserve p"),
        (&format!("PETAL.RESERVE q 0.001 100 TYPE counting {SEED}"), "bloom.reserve q"),
        ("PETAL.SEEN p a b", "bloom.add p"),
        ("PETAL.DEL p a", "petal.del p"),
        ("PETAL.DEL p none", ""),
        ("PETAL.MERGE q p", "petal.merge q"),
        ("PETAL.RESERVE w 0.001 100 WINDOW 1d", "bloom.reserve w"),
        ("PETAL.SEENAT w 1000 a b", "bloom.add w"),
        ("PETAL.SEENCREATE w 0.001 100 LAST ITEMS c", "bloom.add w"),
        ("PETAL.RESERVE v 0.001 100 LAST", "bloom.reserve v"),
        ("PETAL.SEEN v a", "bloom.add v"),
        ("PETAL.CLEAR v", "petal.clear v"),
        ("PETAL.EXISTS v a", ""),
        ("BF.DEBUG v", ""),
        ("CF.DEBUG c", ""),
        ("CF.INFO c", ""),
        ("PETAL.INFO p FULL", ""),
    ];
    let mut expected = Vec::new();
    for (line, event) in lines {
        let reply = master.call(line);
        assert!(!reply.is_error(), "{line}: {reply:?}");
        expected.extend((!event.is_empty()).then(|| event.to_owned()));
    }
    for (from, to, command) in [("p", "pp", "PETAL.IMPORT"), ("c", "cc", "CF.LOADCHUNK")] {
        copy_in_chunks(&master, from, to, command);
        expected.push(format!("petal.import {to}"));
    }
    master.call("PUBLISH __keyevent@0__:end end");
    assert_eq!(read_events(&mut listener), expected);
    replica.wait_for_sync(&master);
    assert_eq!(replica.digest(), master.digest());
    assert_eq!(replica.call("CF.MEXISTS cc b d e none").ints(), [1, 1, 1, 0]);
    assert_eq!(replica.call("PETAL.COUNT pp a b").ints(), [0, 1]);
}

/// Commands that fill filters, then commands that change nothing, with their replies.
type Unchanged = (&'static [&'static str], &'static [(&'static str, &'static str)]);

const UNCHANGED: &[Unchanged] = &[
    (
        &["PETAL.RESERVE c 0.01 100 TYPE counting", "BF.MADD c o o o o o o o o o"],
        &[
            ("BF.ADD c o", "0"),
            ("BF.MADD c o o", "[0, 0]"),
            ("PETAL.SEEN c o", "[1]"),
            ("PETAL.DEL c o", "[0]"),
            ("PETAL.DEL c o none", "[0, 0]"),
        ],
    ),
    (&["PETAL.RESERVE e 0.01 100 TYPE counting"], &[("PETAL.CLEAR e", "OK")]),
    (&["BF.RESERVE e 0.01 100"], &[("PETAL.CLEAR e", "OK")]),
    (&["CF.RESERVE e 100"], &[("PETAL.CLEAR e", "OK"), ("CF.COMPACT e", "OK")]),
    (&["PETAL.RESERVE e 0.01 100 LAST"], &[("PETAL.CLEAR e", "OK")]),
    (&["CF.RESERVE f 100", "CF.ADD f a"], &[("CF.COMPACT f", "OK")]),
    (
        &["PETAL.RESERVE l 0.01 100 LAST", "PETAL.SEEN l a b"],
        &[
            ("PETAL.SEEN l a", "[1]"),
            ("PETAL.SEEN l a b", "[1, 1]"),
            ("BF.ADD l a", "0"),
            ("PETAL.SEENCREATE l 0.01 100 LAST ITEMS b", "[1]"),
        ],
    ),
    (
        &["PETAL.RESERVE t 0.01 100 WINDOW 1000d", "PETAL.SEEN t a b"],
        &[("PETAL.SEEN t a", "[1]"), ("PETAL.SEENAT t 1000 a b", "[1, 1]"), ("BF.MADD t b", "[0]")],
    ),
    (
        &[
            "PETAL.RESERVE m 0.01 100 NONSCALING SEED 000102030405060708090a0b0c0d0e0f",
            "PETAL.RESERVE n 0.01 100 NONSCALING SEED 000102030405060708090a0b0c0d0e0f",
            "BF.MADD m a b c",
            "BF.MADD n a b",
        ],
        &[("PETAL.MERGE m n", "OK"), ("PETAL.MERGE m n m", "OK")],
    ),
    (
        &[
            "PETAL.RESERVE m 0.01 100 TYPE vector-quotient SEED 000102030405060708090a0b0c0d0e0f",
            "PETAL.RESERVE n 0.01 100 TYPE vector-quotient SEED 000102030405060708090a0b0c0d0e0f",
            "BF.MADD m a b c",
            "BF.MADD n a b",
        ],
        &[("PETAL.MERGE m n", "OK")],
    ),
    (
        &[],
        &[
            ("PETAL.IMPORT missing 0 nonsense", "ERR received bad data: ..."),
            ("PETAL.LOADCHUNK missing 0 nonsense", "ERR received bad data: ..."),
        ],
    ),
];

/// No event, no abort of a transaction with WATCH, no bytes in the append-only file.
#[test]
#[ignore = "cargo x test --foreign"]
fn commands_that_change_nothing_are_not_reported() {
    for setup in [Setup::new(), Setup::redisbloom_layout()] {
        let server = setup.args("--appendonly yes --appendfsync always").start();
        server.call("CONFIG SET notify-keyspace-events KEA").ok();
        let assert_unreported = |line: &str, args: &[Vec<u8>], expected: &str| {
            let mut listener = server.client();
            listener.call("PSUBSCRIBE __keyevent@0__:*");
            let mut watching = server.client();
            watching.call_args(&[&b"WATCH"[..], &args[1]]).ok();
            let size = server.info("aof_current_size");
            let reply = match server.call_args(args) {
                Reply::Int(number) => number.to_string(),
                Reply::Error(error) => error,
                reply if reply.is_ok() => "OK".to_owned(),
                reply => format!("{:?}", reply.ints()),
            };
            match expected.strip_suffix("...") {
                Some(begin) => assert!(reply.starts_with(begin), "{line}: {reply}"),
                None => assert_eq!(reply, expected, "{line}"),
            }
            assert_eq!(server.info("aof_current_size"), size, "{line}: bytes in the log");
            watching.call("MULTI").ok();
            watching.call("PING");
            assert_ne!(watching.call("EXEC"), Reply::NoArray, "{line}: the transaction is aborted");
            server.call("PUBLISH __keyevent@0__:end end");
            assert_eq!(read_events(&mut listener), Vec::<String>::new(), "{line}");
        };
        for (fill, unchanged) in UNCHANGED {
            server.call("FLUSHALL").ok();
            for line in *fill {
                assert!(!server.call(line).is_error(), "{line}");
            }
            for (line, expected) in *unchanged {
                let args: Vec<_> = line.split(' ').map(|arg| arg.as_bytes().to_vec()).collect();
                assert_unreported(line, &args, expected);
            }
        }
        // Chunks of RedisBloom's layout: nothing, and what the filter has already.
        server.call("CONFIG SET petal.layout redisbloom").ok();
        for family in ["BF", "CF"] {
            server.call("FLUSHALL").ok();
            server.call(&format!("{family}.ADD f a"));
            let dump = server.call(&format!("{family}.SCANDUMP f 1"));
            let (next, chunk) = (dump.items()[0].int(), dump.items()[1].bytes());
            let nothing = if family == "BF" { "OK" } else { "Couldn't load chunk!" };
            for (position, chunk, expected) in [(2, &b""[..], nothing), (next, chunk, "OK")] {
                let (command, position) = (format!("{family}.LOADCHUNK"), position.to_string());
                let args = [command.as_bytes(), b"f", position.as_bytes(), chunk];
                assert_unreported(&command, &args.map(<[u8]>::to_vec), expected);
            }
        }
    }
}

/// Copies a filter to another key in chunks.
#[track_caller]
fn copy_in_chunks(server: &Server, from: &str, to: &str, command: &str) {
    let mut at = 0;
    loop {
        let out = match command {
            "PETAL.IMPORT" => format!("PETAL.EXPORT {from} {at}"),
            _ => format!("CF.SCANDUMP {from} {at}"),
        };
        let reply = server.call(&out);
        let next = reply.items()[0].int();
        // The last chunk of a file has the next offset 0; SCANDUMP ends with an empty chunk.
        if next == 0 && command != "PETAL.IMPORT" {
            return;
        }
        let place = if command == "PETAL.IMPORT" { at } else { next }.to_string();
        let bytes = reply.items()[1].bytes();
        let args = [command.as_bytes(), to.as_bytes(), place.as_bytes(), bytes];
        let taken = server.call_args(&args);
        assert!(!taken.is_error(), "{command}: {taken:?}");
        if next == 0 {
            return;
        }
        at = next;
    }
}

/// A static filter that was built offline.
#[test]
#[ignore = "cargo x test --foreign"]
fn imported_static_filter_is_saved_copied_and_replicated() {
    let keys: Vec<String> = (0..5000).map(|number| format!("item:{number}")).collect();
    let mut file = Vec::new();
    petal::StaticFilter::build(&keys, 0.01).unwrap().write_to(&mut file, "").unwrap();
    let mut server = crate::server::Setup::new().args("--appendonly yes").start();
    server.call_args(&[&b"PETAL.IMPORT"[..], b"list", b"0", &file]);
    let all = ["BF.MEXISTS", "list"].into_iter().chain(keys.iter().map(String::as_str));
    let all: Vec<_> = all.collect();
    let whole = |server: &Server| server.call_args(&all).ints().iter().all(|&yes| yes == 1);
    assert!(whole(&server));
    for line in ["BF.ADD list new", "PETAL.SEEN list new", "PETAL.DEL list a"] {
        let reply = server.call(line);
        let error = reply.error();
        assert!(!error.contains("internal"), "{line}: {error}");
    }
    assert!(server.call("BF.MADD list a b").items()[0].is_error());
    let digest = server.digest();
    crate::aof::rewrite(&server);
    server.restart();
    assert_eq!(server.digest(), digest);
    assert!(whole(&server));
    let replica = Server::new();
    replica.replicate_from(&server);
    assert_eq!(replica.digest(), digest);
    let dump = server.call("DUMP list");
    assert_eq!(server.call("COPY list tsil").int(), 1);
    // Memory that was received in chunks may have spare capacity.
    let memory = |key: &str| server.call(&format!("MEMORY USAGE {key}")).int();
    assert!(memory("tsil") <= memory("list") && memory("tsil") > 4000);
    server.call("UNLINK list");
    server.call_args(&[&b"RESTORE"[..], b"list", b"0", dump.bytes()]).ok();
    server.call("DEL tsil");
    assert_eq!(server.digest(), digest);
}
