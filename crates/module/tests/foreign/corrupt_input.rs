//! Payloads with a valid checksum and corrupt content: the server continues, uses little memory,
//! and has the key completely or not at all.

use crate::captures::{captures, chunks};
use crate::sample_filters;
use crate::server::{Client, Reply, Server, Setup};

/// Address space of the server: all filters here are a few kilobytes.
const ADDRESSES: u64 = 1 << 30;

/// Memory limit of a key.
const LIMIT: &str = "--petal.memory-limit 16mb";

/// Length of the format version and the checksum.
const FOOTER: usize = 10;

/// Computes the server's CRC64: polynomial 0xad93d23594c935a9, reflected.
fn crc64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |crc, &byte| {
        (0..8).fold(crc ^ u64::from(byte), |crc, _| {
            if crc & 1 == 1 { (crc >> 1) ^ 0x95ac_9329_ac4b_c9b5 } else { crc >> 1 }
        })
    })
}

/// Returns a payload of other content with a valid checksum.
fn with_checksum(body: &[u8], version: &[u8]) -> Vec<u8> {
    let mut payload = [body, version].concat();
    let sum = crc64(&payload);
    payload.extend_from_slice(&sum.to_le_bytes());
    payload
}

/// Returns truncated and changed copies: at every byte of the beginning, and at samples of the
/// rest.
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

/// Sends all kinds of commands for a key, if it exists.
#[track_caller]
fn use_key(client: &mut Client, family: &str, key: &str) {
    if client.call(&format!("EXISTS {key}")).int() == 0 {
        return;
    }
    assert_ne!(client.call(&format!("TYPE {key}")).text(), "none");
    for line in ["INFO", "EXISTS item:1", "ADD new:1", "ADD new:2", "EXISTS new:1", "DEL item:3"] {
        let (name, args) = line.split_once(' ').unwrap_or((line, ""));
        client.call(&format!("{family}.{name} {key} {args}"));
    }
    let mut position = 0;
    for _ in 0..100 {
        match client.call(&format!("{family}.SCANDUMP {key} {position}")) {
            Reply::Array(parts) if parts[0].int() > 0 => position = parts[0].int(),
            _ => break,
        }
    }
    client.call(&format!("DEBUG DIGEST-VALUE {key}"));
    assert!(!client.call(&format!("DUMP {key}")).bytes().is_empty());
    assert!(client.call(&format!("MEMORY USAGE {key}")).int() < 1 << 24);
    client.call(&format!("DEL {key}"));
}

/// Returns uncompressed payloads, so that a changed byte is a changed field.
fn payloads(server: &Server) -> Vec<(&'static str, String, Vec<u8>)> {
    for capture in captures() {
        server.call_args(&[b"RESTORE", capture.key.as_bytes(), b"0", &capture.dump]).ok();
    }
    let named = |family, key: &str, dump: &[u8]| (family, key.to_owned(), dump.to_vec());
    let mut all: Vec<_> = captures()
        .iter()
        .flat_map(|capture| {
            let unpacked = server.call(&format!("DUMP {}", capture.key));
            let family = capture.family();
            [
                named(family, &capture.key, &capture.dump),
                named(family, &capture.key, unpacked.bytes()),
            ]
        })
        .collect();
    server.call("FLUSHALL").ok();
    for key in sample_filters::create(server, 100).keys() {
        let family = if key.starts_with("cf") { "CF" } else { "BF" };
        all.push(named(family, key, server.call(&format!("DUMP {key}")).bytes()));
    }
    // Large payloads have the same fields as small ones.
    all.retain(|(_, _, payload)| payload.len() < 20_000);
    all
}

#[test]
#[ignore = "cargo x test --foreign"]
fn corrupt_payloads_of_restore_do_no_harm() {
    let server = Setup::new().args("--rdbcompression no").args(LIMIT).memory(ADDRESSES).start();
    let payloads = payloads(&server);
    let mut client = server.client();
    let (mut tried, mut accepted) = (0, 0);
    for (family, key, payload) in payloads {
        let (body, footer) = payload.split_at(payload.len() - FOOTER);
        assert_eq!(with_checksum(body, &footer[..2]), payload);
        for corrupt in corruptions(body) {
            let payload = with_checksum(&corrupt, &footer[..2]);
            let reply = client.call_args(&[&b"RESTORE"[..], b"hostile", b"0", &payload]);
            assert_eq!(reply.is_ok(), client.call("EXISTS hostile").int() == 1, "{key}: {reply:?}");
            (tried, accepted) = (tried + 1, accepted + u32::from(reply.is_ok()));
            use_key(&mut client, family, "hostile");
        }
    }
    println!(
        "{accepted} of {tried} corrupt payloads were accepted: valid filters with other items"
    );
    assert!(server.is_alive());
}

#[test]
#[ignore = "cargo x test --foreign"]
fn corrupt_chunks_do_no_harm() {
    let server = Setup::new().args(LIMIT).memory(ADDRESSES).start();
    let filters = sample_filters::create_redisbloom_types(&server, 100);
    let mut sources: Vec<_> =
        captures().into_iter().map(|capture| (capture.family(), capture.chunks)).collect();
    for key in filters.keys() {
        let family = if key.starts_with("cf") { "CF" } else { "BF" };
        sources.push((family, chunks(&server, family, key)));
    }
    let mut client = server.client();
    let mut load = |family: &str, position: i128, chunk: &[u8]| {
        let (name, position) = (format!("{family}.LOADCHUNK"), position.to_string());
        client.call_args(&[name.as_bytes(), b"hostile", position.as_bytes(), chunk])
    };
    let mut after = server.client();
    for (family, chunks) in sources {
        let (begin, header) = &chunks[0];
        // A truncated or changed header.
        for corrupt in corruptions(header) {
            let accepted = load(family, i128::from(*begin), &corrupt).is_ok();
            assert_eq!(accepted, after.call("EXISTS hostile").int() == 1);
            if accepted {
                for (position, chunk) in &chunks[1..] {
                    load(family, i128::from(*position), chunk);
                }
                use_key(&mut after, family, "hostile");
            }
            after.call("DEL hostile");
        }
        // A valid header with truncated, repeated or misplaced chunks.
        load(family, i128::from(*begin), header).ok();
        for (position, chunk) in &chunks[1..] {
            for off in [-9, -8, -1, 0, 1, 8, i64::MAX.into(), i64::MIN.into(), 1 << 40] {
                load(family, i128::from(*position) + off, chunk);
            }
            for cut in [0, 1, chunk.len() / 2, chunk.len() - 1] {
                load(family, i128::from(*position), &chunk[..cut]);
            }
        }
        use_key(&mut after, family, "hostile");
        after.call("DEL hostile");
    }
    assert!(server.is_alive());
}

#[test]
#[ignore = "cargo x test --foreign"]
fn corrupt_rdb_files_load_completely_or_not_at_all() {
    let good = crate::captures::file("dump.rdb");
    // Without the checksum of the file, so that the content is parsed.
    let args = "--rdbchecksum no --dbfilename dump.rdb";
    let whole = Setup::new().args(args).file("dump.rdb", good.clone()).start();
    whole.call("SAVE").ok();
    let good = whole.folder().read("dump.rdb");
    drop(whole);
    let step = good.len() / 40;
    for at in (60..good.len()).step_by(step) {
        let mut bytes = good.clone();
        bytes[at] ^= 0xff;
        let setup = Setup::new().args(args).file("dump.rdb", bytes).memory(ADDRESSES);
        // A server that rejects its file ends with a log message; a crash would write a report.
        match setup.try_start() {
            Ok(server) => {
                for capture in captures() {
                    use_key(&mut server.client(), capture.family(), &capture.key);
                }
            }
            Err(log) => assert!(!log.contains("BUG REPORT") && !log.contains("panicked"), "{log}"),
        }
    }
}
