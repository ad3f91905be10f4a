//! Payloads with a right checksum and wrong content: the server lives, takes no memory to speak of,
//! and has the key whole or not at all.

use crate::captures::{captures, chunks};
use crate::server::{Client, Reply, Server, Setup};
use crate::zoo;

/// What a server may come to take: nothing here is larger than some kilobytes.
const ADDRESSES: u64 = 1 << 30;

/// What a key may take.
const LIMIT: &str = "--petal.memory-limit 16mb";

/// The version of the server's format and the checksum.
const FOOTER: usize = 10;

/// CRC64 as the server computes it: polynomial 0xad93d23594c935a9, bits reversed.
fn crc64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |crc, &byte| {
        (0..8).fold(crc ^ u64::from(byte), |crc, _| {
            if crc & 1 == 1 { (crc >> 1) ^ 0x95ac_9329_ac4b_c9b5 } else { crc >> 1 }
        })
    })
}

/// A payload with other content and a right checksum.
fn sealed(body: &[u8], version: &[u8]) -> Vec<u8> {
    let mut payload = [body, version].concat();
    let sum = crc64(&payload);
    payload.extend_from_slice(&sum.to_le_bytes());
    payload
}

/// The beginning cut off after every byte, and every byte of it in some other ways; samples of the rest.
fn corruptions(bytes: &[u8]) -> Vec<Vec<u8>> {
    let step = bytes.len() / 20 + 1;
    let is_tried = |at: &usize| *at < 200 || at.is_multiple_of(step) || at + 20 > bytes.len();
    let places = || (0..bytes.len()).filter(is_tried);
    let cut = places().map(|at| bytes[..at].to_vec());
    let changed = places().flat_map(|at| {
        [0xff, 0x01, 0x80].map(|mask| {
            let mut changed = bytes.to_vec();
            changed[at] ^= mask;
            changed
        })
    });
    cut.chain(changed).collect()
}

/// Uses a key in all ways, if it is there.
#[track_caller]
fn exercise(client: &mut Client, family: &str, key: &str) {
    if client.ask(&format!("EXISTS {key}")).int() == 0 {
        return;
    }
    assert_ne!(client.ask(&format!("TYPE {key}")).text(), "none");
    for line in ["INFO", "EXISTS item:1", "ADD new:1", "ADD new:2", "EXISTS new:1", "DEL item:3"] {
        let (name, words) = line.split_once(' ').unwrap_or((line, ""));
        client.ask(&format!("{family}.{name} {key} {words}"));
    }
    let mut position = 0;
    for _ in 0..100 {
        match client.ask(&format!("{family}.SCANDUMP {key} {position}")) {
            Reply::Array(parts) if parts[0].int() > 0 => position = parts[0].int(),
            _ => break,
        }
    }
    client.ask(&format!("DEBUG DIGEST-VALUE {key}"));
    assert!(!client.ask(&format!("DUMP {key}")).bytes().is_empty());
    assert!(client.ask(&format!("MEMORY USAGE {key}")).int() < 1 << 24);
    client.ask(&format!("DEL {key}"));
}

/// What a payload of a key is, not packed, so that a change meets the content.
fn payloads(server: &Server) -> Vec<(&'static str, String, Vec<u8>)> {
    for capture in captures() {
        server.ask_words(&[b"RESTORE", capture.key.as_bytes(), b"0", &capture.dump]).ok();
    }
    let named = |family, key: &str, dump: &[u8]| (family, key.to_owned(), dump.to_vec());
    let mut all: Vec<_> = captures()
        .iter()
        .flat_map(|capture| {
            let unpacked = server.ask(&format!("DUMP {}", capture.key));
            let family = capture.family();
            [
                named(family, &capture.key, &capture.dump),
                named(family, &capture.key, unpacked.bytes()),
            ]
        })
        .collect();
    server.ask("FLUSHALL").ok();
    for key in zoo::filled(server, 100).keys() {
        let family = if key.starts_with("cf") { "CF" } else { "BF" };
        all.push(named(family, key, server.ask(&format!("DUMP {key}")).bytes()));
    }
    // Large ones have nothing that small ones lack.
    all.retain(|(_, _, payload)| payload.len() < 20_000);
    all
}

#[test]
#[ignore = "cargo x test --foreign"]
fn corrupt_payloads_of_restore_do_no_harm() {
    let server = Setup::new().words("--rdbcompression no").words(LIMIT).memory(ADDRESSES).start();
    let payloads = payloads(&server);
    let mut client = server.client();
    let (mut asked, mut taken) = (0, 0);
    for (family, key, payload) in payloads {
        let (body, footer) = payload.split_at(payload.len() - FOOTER);
        assert_eq!(sealed(body, &footer[..2]), payload);
        for corrupt in corruptions(body) {
            let payload = sealed(&corrupt, &footer[..2]);
            let reply = client.ask_words(&[&b"RESTORE"[..], b"hostile", b"0", &payload]);
            assert_eq!(reply.is_ok(), client.ask("EXISTS hostile").int() == 1, "{key}: {reply:?}");
            (asked, taken) = (asked + 1, taken + u32::from(reply.is_ok()));
            exercise(&mut client, family, "hostile");
        }
    }
    println!("{taken} of {asked} corrupt payloads were taken: changed items or figures, all sound");
    assert!(server.is_alive());
}

#[test]
#[ignore = "cargo x test --foreign"]
fn corrupt_chunks_do_no_harm() {
    let server = Setup::new().words(LIMIT).memory(ADDRESSES).start();
    let zoo = zoo::filled_as_redisbloom_can(&server, 100);
    let mut sources: Vec<_> =
        captures().into_iter().map(|capture| (capture.family(), capture.chunks)).collect();
    for key in zoo.keys() {
        let family = if key.starts_with("cf") { "CF" } else { "BF" };
        sources.push((family, chunks(&server, family, key)));
    }
    let mut client = server.client();
    let mut load = |family: &str, position: i128, chunk: &[u8]| {
        let (name, position) = (format!("{family}.LOADCHUNK"), position.to_string());
        client.ask_words(&[name.as_bytes(), b"hostile", position.as_bytes(), chunk])
    };
    let mut after = server.client();
    for (family, chunks) in sources {
        let (begin, header) = &chunks[0];
        // A header that is not whole, or not true.
        for corrupt in corruptions(header) {
            let taken = load(family, i128::from(*begin), &corrupt).is_ok();
            assert_eq!(taken, after.ask("EXISTS hostile").int() == 1);
            if taken {
                for (position, chunk) in &chunks[1..] {
                    load(family, i128::from(*position), chunk);
                }
                exercise(&mut after, family, "hostile");
            }
            after.ask("DEL hostile");
        }
        // A true header and chunks that are cut, come twice, or lie elsewhere.
        load(family, i128::from(*begin), header).ok();
        for (position, chunk) in &chunks[1..] {
            for off in [-9, -8, -1, 0, 1, 8, i64::MAX.into(), i64::MIN.into(), 1 << 40] {
                load(family, i128::from(*position) + off, chunk);
            }
            for cut in [0, 1, chunk.len() / 2, chunk.len() - 1] {
                load(family, i128::from(*position), &chunk[..cut]);
            }
        }
        exercise(&mut after, family, "hostile");
        after.ask("DEL hostile");
    }
    assert!(server.is_alive());
}

#[test]
#[ignore = "cargo x test --foreign"]
fn corrupt_files_stop_the_start_or_load_whole() {
    let good = crate::captures::file("dump.rdb");
    // The whole file has a checksum: without it, content is all that is looked at.
    let words = "--rdbchecksum no --dbfilename dump.rdb";
    let whole = Setup::new().words(words).file("dump.rdb", good.clone()).start();
    whole.ask("SAVE").ok();
    let good = whole.folder().read("dump.rdb");
    drop(whole);
    let step = good.len() / 40;
    for at in (60..good.len()).step_by(step) {
        let mut bytes = good.clone();
        bytes[at] ^= 0xff;
        let setup = Setup::new().words(words).file("dump.rdb", bytes).memory(ADDRESSES);
        // A server that refuses its file ends at once, in its own words; a crash has a report.
        match setup.try_start() {
            Ok(server) => {
                for capture in captures() {
                    exercise(&mut server.client(), capture.family(), &capture.key);
                }
            }
            Err(log) => assert!(!log.contains("BUG REPORT") && !log.contains("panicked"), "{log}"),
        }
    }
}
