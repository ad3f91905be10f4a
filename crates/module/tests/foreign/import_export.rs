//! PETAL.IMPORT and PETAL.EXPORT of `.petal` files in chunks.

use petal::{BloomFilter, HashSpec, Secret};

use crate::server::{Reply, Server, Setup, wait_until};

/// Exports a key in chunks of this size.
#[track_caller]
fn export(server: &Server, key: &str, piece: usize) -> Vec<u8> {
    let (mut file, mut offset) = (Vec::new(), 0);
    loop {
        let reply = server.call(&format!("PETAL.EXPORT {key} {offset} COUNT {piece}"));
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
    server.call_args(&[&b"PETAL.IMPORT"[..], key.as_bytes(), offset.as_bytes(), bytes])
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
    server.call("BF.RESERVE growing 0.01 100").ok();
    server.call("BF.RESERVE fixed 0.001 20000 NONSCALING").ok();
    for key in ["growing", "fixed"] {
        let items = (0..10_000).map(|item| format!("item:{item}"));
        let args = ["BF.MADD", key].into_iter().map(str::to_owned).chain(items);
        server.call_args(&args.collect::<Vec<_>>());
    }
    server
}

#[track_caller]
fn assert_complete(server: &Server, key: &str) {
    let items = (0..10_000).map(|item| format!("item:{item}"));
    let args = ["BF.MEXISTS", key].into_iter().map(str::to_owned).chain(items);
    let found = server.call_args(&args.collect::<Vec<_>>()).ints();
    assert!(found.iter().all(|&yes| yes == 1), "{key}");
}

#[test]
#[ignore = "cargo x test --foreign"]
fn exported_filter_is_imported_unchanged() {
    let (here, there) = (source(), Server::new());
    for (key, piece) in [("growing", 1000), ("fixed", 1 << 20)] {
        let file = export(&here, key, piece);
        assert_eq!(file, export(&here, key, 4097));
        import(&there, key, &file, piece + 1);
        assert_complete(&there, key);
    }
    assert_eq!(there.digest(), here.digest());
    assert_eq!(there.call("BF.ADD growing new").int(), 1);
}

#[test]
#[ignore = "cargo x test --foreign"]
fn commands_on_an_incomplete_import_are_errors() {
    let (here, there) = (source(), Server::new());
    let file = export(&here, "fixed", 1 << 20);
    push(&there, "fixed", 0, &file[..file.len() / 2]);
    for line in ["BF.EXISTS fixed item:1", "BF.ADD fixed item:1", "BF.INFO fixed", "BF.CARD fixed"]
    {
        assert!(there.call(line).is_error(), "{line}");
    }
    assert!(push(&there, "fixed", 7, b"elsewhere").is_error());
    // The import can be started again or continued.
    import(&there, "fixed", &file, file.len() / 3);
    assert_complete(&there, "fixed");
    assert_eq!(
        push(&there, "fixed", 0, &file).error(),
        "ERR item exists: load under another name, then RENAME"
    );
}

#[test]
#[ignore = "cargo x test --foreign"]
fn damaged_file_leaves_no_key() {
    let (here, there) = (source(), Setup::new().memory(1 << 30).start());
    let file = export(&here, "fixed", 1 << 20);
    let mut client = there.client();
    for at in (0..256).chain((256..file.len()).step_by(997)) {
        let mut wrong = file.clone();
        wrong[at] ^= 0x10;
        let reply = client.call_args(&[&b"PETAL.IMPORT"[..], b"wrong", b"0", &wrong]);
        assert!(reply.is_error(), "byte {at}: {reply:?}");
        assert_eq!(client.call("EXISTS wrong").int(), 0, "byte {at}");
    }
    let more = [&file[..], b"more"].concat();
    assert!(push(&there, "wrong", 0, &more).is_error());
    assert_eq!(there.call("EXISTS wrong").int(), 0);
}

#[test]
#[ignore = "cargo x test --foreign"]
fn replica_attached_during_an_import_is_complete() {
    let (here, master, replica) = (source(), Server::new(), Server::new());
    let file = export(&here, "growing", 1 << 20);
    let (first, second) = file.split_at(file.len() / 2);
    push(&master, "growing", 0, first);
    replica.replicate_from(&master);
    push(&master, "growing", first.len(), second);
    replica.wait_for_sync(&master);
    assert_complete(&replica, "growing");
    assert_eq!(replica.digest(), master.digest());
    assert_eq!(master.digest(), {
        here.call("DEL fixed");
        here.digest()
    });
}

#[test]
#[ignore = "cargo x test --foreign"]
fn import_continues_after_a_restart() {
    let here = source();
    let file = export(&here, "growing", 1 << 20);
    let (first, second) = file.split_at(file.len() / 2);
    let log = "--appendonly yes --appendfsync always";
    for args in ["", log, "--appendonly yes --appendfsync always --aof-use-rdb-preamble no"] {
        let mut server = Setup::new().args(args).start();
        push(&server, "growing", 0, first);
        if args.len() > log.len() {
            crate::aof::rewrite(&server);
        }
        server.restart();
        let reply = push(&server, "growing", first.len(), second);
        assert!(!reply.is_error(), "{args}: {reply:?}");
        assert_complete(&server, "growing");
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn copy_of_an_incomplete_import_is_continued_by_itself() {
    let (here, there) = (source(), Server::new());
    let file = export(&here, "growing", 1 << 20);
    for cut in [10, 3000, 5000, file.len() / 2, file.len() - 1] {
        there.call("FLUSHALL").ok();
        push(&there, "first", 0, &file[..cut]);
        assert_eq!(there.call("COPY first second").int(), 1, "{cut}");
        for key in ["second", "first"] {
            let reply = push(&there, key, cut, &file[cut..]);
            assert_eq!(reply.ints(), [file.len() as i64; 2], "{key} {cut}");
            assert!(export(&there, key, 1 << 20) == file, "{key} {cut}");
        }
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn too_large_file_is_rejected_by_its_header() {
    let (here, there) = (source(), Setup::new().args("--petal.memory-limit 10kb").start());
    let file = export(&here, "fixed", 1 << 20);
    let reply = push(&there, "fixed", 0, &file[..4096]);
    let expected = format!(
        "ERR the filter takes {} bytes, more than the setting memory-limit, 10240: raise it, or \
         split the set over several keys",
        file.len() - 4096
    );
    assert_eq!(reply.error(), expected);
    assert_eq!(there.call("EXISTS fixed").int(), 0);
    assert_eq!(there.info("petal_rejected_memory_limit"), "1");
}

#[test]
#[ignore = "cargo x test --foreign"]
fn too_large_filter_of_restore_is_counted_and_logged() {
    for here in [Server::new(), Server::redisbloom_layout()] {
        let there = Setup::new().args("--petal.memory-limit 10kb").start();
        here.call("BF.RESERVE fixed 0.001 20000 NONSCALING").ok();
        let dump = here.call("DUMP fixed").bytes().to_vec();
        let reply = there.call_args(&[&b"RESTORE"[..], b"fixed", b"0", &dump]);
        assert!(reply.error().contains("Bad data format"), "{reply:?}");
        assert_eq!(there.info("petal_rejected_memory_limit"), "1");
        assert!(there.log().contains("more than the setting memory-limit, 10240"));
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn too_large_header_of_loadchunk_is_counted() {
    let (bloom, there) = (Server::redisbloom_layout(), Server::redisbloom_layout());
    there.call("CONFIG SET petal.memory-limit 10kb").ok();
    bloom.call("BF.RESERVE b 0.001 20000 NONSCALING").ok();
    bloom.call("CF.RESERVE c 20000").ok();
    bloom.call("CF.ADD c x");
    for (rejected, family) in [(1, "b"), (2, "c")] {
        let name = family.to_uppercase();
        let header =
            bloom.call(&format!("{name}F.SCANDUMP {family} 0")).items()[1].bytes().to_vec();
        let command = format!("{name}F.LOADCHUNK");
        let reply = there.call_args(&[command.as_bytes(), b"k", b"1", &header]);
        assert!(reply.error().contains("memory-limit"), "{reply:?}");
        assert_eq!(there.info("petal_rejected_memory_limit"), rejected.to_string());
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn import_without_the_magic_number_is_rejected_at_once() {
    let server = Server::new();
    for (command, first, wrong) in
        [("PETAL.IMPORT", &b"\x89PETAL"[..], &b"x"[..]), ("PETAL.LOADCHUNK", b"\xffpetal", b"x")]
    {
        let push =
            |offset: &[u8], bytes| server.call_args(&[command.as_bytes(), b"k", offset, bytes]);
        let reply = push(b"0", wrong);
        assert!(reply.error().starts_with("ERR received bad data: not a petal "), "{reply:?}");
        assert_eq!(server.call("EXISTS k").int(), 0);
        // The number may arrive in pieces.
        assert!(!push(b"0", first).is_error());
        assert!(push(b"6", wrong).is_error());
        assert_eq!(server.call("EXISTS k").int(), 0);
    }
}

/// The command line counts seconds, the server milliseconds.
#[test]
#[ignore = "cargo x test --foreign"]
fn windows_by_time_cannot_be_exported_or_imported() {
    let server = Server::new();
    server.call("PETAL.RESERVE last 0.01 200 LAST").ok();
    server.call("PETAL.RESERVE time 0.01 200 WINDOW 1d").ok();
    for key in ["last", "time"] {
        server.call(&format!("BF.ADD {key} a"));
    }
    let error = server.call("PETAL.EXPORT time 0");
    assert!(error.error().starts_with("ERR a window by time"), "{error:?}");
    let file = export(&server, "last", 1 << 20);
    import(&server, "again", &file, 1000);
    assert_eq!(server.call("BF.EXISTS again a").int(), 1);

    let timed = petal::WindowedBloomFilter::builder().capacity(200).fpr(0.01).window(3600).build();
    let mut file = Vec::new();
    timed.unwrap().write_to(&mut file, "").unwrap();
    push(&server, "timed", 0, &file[..1000]);
    let error = push(&server, "timed", 1000, &file[1000..]);
    assert!(error.error().starts_with("ERR a window by time"), "{error:?}");
    assert_eq!(server.call("EXISTS timed").int(), 0);
}

#[test]
#[ignore = "cargo x test --foreign"]
fn import_keeps_its_time_to_live_and_reports_progress() {
    let (here, there) = (source(), Server::new());
    let file = export(&here, "fixed", 1 << 20);
    push(&there, "fixed", 0, &file[..5000]);
    assert_eq!(there.call("PETAL.INFO fixed").field("type").text(), "incomplete");
    let info = there.call("PETAL.INFO fixed FULL");
    assert_eq!(info.field("bytes-received").int(), 5000);
    assert_eq!(info.field("bytes-total").int(), file.len() as i64);
    there.call("EXPIRE fixed 1000");
    push(&there, "fixed", 5000, &file[5000..]);
    assert_complete(&there, "fixed");
    assert!(there.call("TTL fixed").int() > 900);
    assert_eq!(there.info("petal_filters"), "1");
}

#[test]
#[ignore = "cargo x test --foreign"]
fn empty_chunks_and_invalid_iterators_are_rejected() {
    let (here, there) = (source(), Server::new());
    assert!(push(&there, "k", 0, b"").is_error());
    assert_eq!(there.call("EXISTS k").int(), 0);
    let front = here.call("BF.SCANDUMP fixed 0").items()[1].bytes().to_vec();
    there.call_args(&[&b"BF.LOADCHUNK"[..], b"k", b"1", &front]).ok();
    for number in ["0", "-1", "9223372036854775807", "1"] {
        let args = [&b"BF.LOADCHUNK"[..], b"k", number.as_bytes(), b"bytes"];
        assert!(there.call_args(&args).is_error(), "{number}");
    }
    assert!(there.is_alive());
}

#[test]
#[ignore = "cargo x test --foreign"]
fn memory_limit_applies_to_restore_but_not_to_replication() {
    let small = "--petal.memory-limit 10kb";
    let (mut here, replica) = (Setup::new().args(small).start(), Server::new());
    here.call("CONFIG SET petal.memory-limit 0").ok();
    replica.call("CONFIG SET petal.memory-limit 10kb").ok();
    here.call("BF.RESERVE fixed 0.001 20000 NONSCALING").ok();
    let dump = here.call("DUMP fixed").bytes().to_vec();
    let file = export(&here, "fixed", 1 << 20);
    push(&here, "part", 0, &file[..100]);
    let part = here.call("DUMP part").bytes().to_vec();
    let restore = |server: &Server, key: &str, dump: &[u8]| {
        server.call_args(&[&b"RESTORE"[..], key.as_bytes(), b"0", dump])
    };
    assert!(restore(&replica, "fixed", &dump).is_error());
    restore(&replica, "part", &part).ok();
    assert!(push(&replica, "part", 100, &file[100..5000]).is_error());
    assert_eq!(replica.call("EXISTS fixed part").int(), 0);

    // A replica accepts its master's data, as a stream and as commands.
    replica.replicate_from(&here);
    replica.wait_for_sync(&here);
    restore(&here, "more", &dump).ok();
    push(&here, "part", 100, &file[100..5000]);
    replica.wait_for_sync(&here);
    assert_eq!(replica.digest(), here.digest());

    push(&here, "whole", 0, &file[..5000]);
    // So does a restarted server; imports that continue then have a limit.
    here.restart();
    assert_eq!(here.call("EXISTS fixed more part").int(), 3);
    for (key, end) in [("part", 6000), ("whole", file.len())] {
        assert!(push(&here, key, 5000, &file[5000..end]).is_error(), "{key}");
        assert_eq!(here.call(&format!("EXISTS {key}")).int(), 0);
    }
}

const SECRET: [u8; 16] = *b"0123456789abcdef";
const OTHER_SECRET: [u8; 16] = *b"fedcba9876543210";

/// Returns the file of a filter whose secret is not in it.
fn file_without_its_secret() -> Vec<u8> {
    let hash = HashSpec::keyed_apart(&Secret::new(SECRET));
    let mut filter = BloomFilter::builder().capacity(20_000).fpr(0.001).hash(hash).build().unwrap();
    for item in 0..10_000 {
        filter.insert(&format!("item:{item}"));
    }
    let mut file = Vec::new();
    filter.write_to(&mut file, "").unwrap();
    assert!(!contains(&file, &SECRET));
    file
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// A server with this secret; the file has digits.
fn with_secret(secret: [u8; 16], args: &str) -> Setup {
    let digits: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    Setup::new()
        .file("secret", format!("{digits}\n").into_bytes())
        .args(&format!("--petal.secret-file secret {args}"))
}

#[test]
#[ignore = "cargo x test --foreign"]
fn filter_without_its_secret_needs_that_of_the_setting() {
    let file = file_without_its_secret();
    let message = |wrong: &Server| push(wrong, "key", 0, &file).error().to_owned();
    let missing = "ERR received bad data: the secret of the filter is not in its file; set \
                   petal.secret-file";
    assert_eq!(message(&Server::new()), missing);
    let other = with_secret(OTHER_SECRET, "").start();
    let wrong =
        "ERR received bad data: petal.secret-file has another secret than that of the filter";
    assert_eq!(message(&other), wrong);
    assert_eq!(other.call("EXISTS key").int(), 0);
    let server = with_secret(SECRET, "").start();
    import(&server, "key", &file, 5000);
    assert_complete(&server, "key");
    assert_eq!(server.call("BF.EXISTS key other").int(), 0);
    assert_eq!(server.call("BF.ADD key other").int(), 1);
    server.call("COPY key copy").int();
    assert_eq!(server.call("BF.EXISTS copy other").int(), 1);
    // Only the path is shown, and it cannot be changed.
    let shown = server.call("CONFIG GET petal.secret-file");
    assert_eq!(shown.items()[1].bytes(), b"secret");
    assert!(server.call("CONFIG SET petal.secret-file other").is_error());
    for at in ["key", "copy"] {
        let dump = server.call(&format!("DUMP {at}"));
        assert!(!contains(dump.bytes(), &SECRET));
        assert!(!contains(&export(&server, at, 1 << 20), &SECRET));
        let restore = [&b"RESTORE"[..], b"key", b"0", dump.bytes()];
        assert_eq!(other.call_args(&restore).error(), "ERR Bad data format");
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn files_of_the_server_do_not_have_the_secret() {
    let file = file_without_its_secret();
    for args in ["", "--appendonly yes", "--appendonly yes --aof-use-rdb-preamble no"] {
        let mut server = with_secret(SECRET, args).start();
        import(&server, "key", &file, 10_000);
        if !args.is_empty() {
            server.call("BGREWRITEAOF");
            wait_until("the log is rewritten", || server.info("aof_rewrite_in_progress") == "0");
        }
        server.restart();
        assert_complete(&server, "key");
        let mut folders = vec![server.folder().path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
                match entry.file_type().unwrap().is_dir() {
                    true => folders.push(entry.path()),
                    false => {
                        let bytes = std::fs::read(entry.path()).unwrap();
                        assert!(!contains(&bytes, &SECRET), "{}", entry.path().display());
                    }
                }
            }
        }
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn replica_without_the_secret_says_so() {
    let file = file_without_its_secret();
    let master = with_secret(SECRET, "").start();
    import(&master, "key", &file, 10_000);
    let good = with_secret(SECRET, "").start();
    good.replicate_from(&master);
    assert_complete(&good, "key");
    let replica = Server::new();
    replica.call(&format!("REPLICAOF 127.0.0.1 {}", master.port())).ok();
    wait_until("the replica logs the reason", || {
        replica.log().contains("the secret of the filter is not in its file; set petal.secret-file")
    });
}

#[test]
#[ignore = "cargo x test --foreign"]
fn server_does_not_start_with_a_file_that_is_no_secret() {
    for (content, reason) in [(Some(&b"short"[..]), "is no secret"), (None, "cannot read")] {
        let mut setup = Setup::new().args("--petal.secret-file secret");
        if let Some(content) = content {
            setup = setup.file("secret", content.to_vec());
        }
        let log = setup.try_start().err().expect("it starts");
        assert!(log.contains(reason) && !log.contains("short"), "{log}");
    }
}
