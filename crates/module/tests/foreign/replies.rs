//! Replies and errors equal RedisBloom's, byte for byte, in both protocols.

use serde_json::Value;

use crate::server::{Client, Server, Setup, redisbloom};

/// A command and the bytes of its reply.
struct Captured {
    command: Vec<Vec<u8>>,
    reply: Vec<u8>,
}

impl Captured {
    fn formatted(&self) -> String {
        let args =
            self.command.iter().map(|arg| arg[..arg.len().min(60)].escape_ascii().to_string());
        args.collect::<Vec<_>>().join(" ")
    }
}

fn captured(protocol: u8) -> Vec<Captured> {
    let path = format!("../../testdata/redisbloom/replies-resp{protocol}.json");
    let rows: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let row = |row: &Value| Captured {
        command: row["command"].as_array().unwrap().iter().map(arg).collect(),
        reply: bytes(row["reply"].as_str().unwrap()),
    };
    rows.as_array().unwrap().iter().map(row).collect()
}

/// Each character in these files is a byte.
fn bytes(text: &str) -> Vec<u8> {
    text.chars().map(|c| u8::try_from(c).unwrap()).collect()
}

fn arg(arg: &Value) -> Vec<u8> {
    match arg.as_str() {
        Some(text) => bytes(text),
        None => {
            bytes(arg["byte"].as_str().unwrap()).repeat(arg["times"].as_u64().unwrap() as usize)
        }
    }
}

/// Intended differences: the command, petal's reply, the reason. RedisBloom's replies are in the
/// captures. See docs/reference/commands-differences.md.
const INTENDED_DIFFERENCES: &[(&str, &str, &str)] = &[
    ("BF.RESERVE r8 0.01 100 BOGUS", UNKNOWN_OPTION, OPTIONS),
    ("BF.RESERVE r9 0.01 100 EXPANSION 2 BOGUS", UNKNOWN_OPTION, OPTIONS),
    ("BF.RESERVE str 0.01 100 BOGUS", UNKNOWN_OPTION, OPTIONS),
    ("BF.RESERVE r13 0x1p-7 100", "-ERR bad error rate\r\n", "a rate is a decimal number"),
    ("BF.INSERT i10 CRAZY 7 EXTRA 3 ITEMS a", UNKNOWN, LETTERS),
    ("BF.INFO i10", "-ERR not found\r\n", LETTERS),
    ("BF.INSERT i11 NIL ITEMS a", UNKNOWN, LETTERS),
    ("BF.INSERT i12 ITEMSX a", UNKNOWN, LETTERS),
    ("BF.INSERT i13 E 0.1 ITEMS a", UNKNOWN, LETTERS),
    ("BF.EXISTS str x", WRONGTYPE, TYPES),
    ("BF.MEXISTS str x y", WRONGTYPE, TYPES),
    ("BF.EXISTS cuckoo x", WRONGTYPE, TYPES),
    ("BF.MEXISTS cuckoo x", WRONGTYPE, TYPES),
    ("CF.EXISTS str x", WRONGTYPE, TYPES),
    ("CF.MEXISTS str x y", WRONGTYPE, TYPES),
    ("CF.COUNT str x", WRONGTYPE, TYPES),
    ("CF.DEL str x", WRONGTYPE, TYPES),
    ("CF.COMPACT str", WRONGTYPE, TYPES),
    ("CF.EXISTS a x", WRONGTYPE, TYPES),
    ("CF.MEXISTS a x", WRONGTYPE, TYPES),
    ("CF.COUNT a x", WRONGTYPE, TYPES),
    ("CF.DEL a x", WRONGTYPE, TYPES),
    ("CF.RESERVE c15 100 BOGUS 1", UNKNOWN_OPTION, OPTIONS),
    ("CF.RESERVE c17 100 BUCKETSIZE 2 BOGUS 3", UNKNOWN_OPTION, OPTIONS),
    ("CF.INSERT n4 CRAZY 100 ITEMS x", UNKNOWN, LETTERS),
    ("CF.INSERT n5 NIL ITEMS x", UNKNOWN, LETTERS),
    ("BF.SCANDUMP l 1", "*2\r\n:9\r\n$8\r\n1337577?\r\n", "chunks keep added items"),
    ("CF.SCANDUMP g 2", "*2\r\n:5\r\n$3\r\n\u{85}\u{c4}\u{10}\r\n", CHUNKS),
    ("CF.LOADCHUNK y 9 1234", "-Couldn't load chunk!\r\n", CHUNKS),
    ("COPY a acopy", ":1\r\n", "filters can be copied"),
];

const CHUNKS: &str = "positions are of bytes, and none is after the end";
const OPTIONS: &str = "unknown options are rejected";
const LETTERS: &str = "options are compared in full";
const TYPES: &str = "a key of another type is an error";

const UNKNOWN: &str = "-Unknown argument received\r\n";
const UNKNOWN_OPTION: &str = "-ERR unknown argument received\r\n";
const WRONGTYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";

/// Returns the replies that differ from RedisBloom's, without intended differences. Replies that
/// depend on the layout are compared only in RedisBloom's layout.
fn differences(
    server: &Server,
    protocol: u8,
    is_petal: bool,
    is_redisbloom_layout: bool,
) -> Vec<String> {
    let mut client: Client = server.client();
    if protocol == 3 {
        client.use_resp3();
    }
    let mut found = Vec::new();
    for captured in captured(protocol) {
        let ours = client.call_raw(&captured.command);
        let formatted = captured.formatted();
        let intended =
            INTENDED_DIFFERENCES.iter().find(|(command, ..)| is_petal && formatted == *command);
        let expected = intended.map_or(captured.reply.clone(), |(_, reply, _)| bytes(reply));
        if ours != expected && (is_redisbloom_layout || !depends_on_layout(&formatted)) {
            let (theirs, ours) = (expected.escape_ascii(), ours.escape_ascii());
            found.push(format!("{formatted}\n    expected {theirs}\n    petal    {ours}"));
        }
    }
    found
}

/// Returns whether a reply has sizes, layers or bytes of a filter.
fn depends_on_layout(command: &str) -> bool {
    let args: Vec<_> = command.split(' ').collect();
    match (args[0], args.get(2).copied()) {
        ("TYPE", _) | ("BF.INFO" | "CF.INFO", None | Some("SIZE")) => true,
        ("BF.INFO", Some("CAPACITY" | "FILTERS")) => args[1] == "grow",
        // Full cuckoo filters, and false positives of small ones.
        (name, _) if name.starts_with("CF.") && matches!(args[1], "f" | "h") => true,
        (name, _) => name.ends_with("SCANDUMP") || name.ends_with("LOADCHUNK"),
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn redisblooms_replies_equal_the_captures() {
    let Some(module) = redisbloom() else {
        println!("skipped: no RedisBloom for this machine");
        return;
    };
    for protocol in [2, 3] {
        let server = Setup::with(module.clone()).start();
        assert_none(protocol, &differences(&server, protocol, false, true));
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn replies_in_redisblooms_layout_equal_the_captures() {
    for protocol in [2, 3] {
        let server = Server::redisbloom_layout();
        assert_none(protocol, &differences(&server, protocol, true, true));
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn replies_in_petals_layout_equal_the_captures() {
    for protocol in [2, 3] {
        let server = Server::new();
        assert_none(protocol, &differences(&server, protocol, true, false));
    }
}

#[track_caller]
fn assert_none(protocol: u8, found: &[String]) {
    assert!(found.is_empty(), "RESP{protocol}: {} differ\n{}", found.len(), found.join("\n"));
}
