//! Replies and errors are RedisBloom's, to the byte, in both protocols.

use serde_json::Value;

use crate::server::{Client, Server, Setup, redisbloom};

/// Commands in order, and the bytes that answered each.
struct Captured {
    command: Vec<Vec<u8>>,
    reply: Vec<u8>,
}

impl Captured {
    fn shown(&self) -> String {
        let words =
            self.command.iter().map(|word| word[..word.len().min(60)].escape_ascii().to_string());
        words.collect::<Vec<_>>().join(" ")
    }
}

fn captured(protocol: u8) -> Vec<Captured> {
    let path = format!("../../testdata/redisbloom/replies-resp{protocol}.json");
    let rows: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let row = |row: &Value| Captured {
        command: row["command"].as_array().unwrap().iter().map(word).collect(),
        reply: bytes(row["reply"].as_str().unwrap()),
    };
    rows.as_array().unwrap().iter().map(row).collect()
}

/// A character of these files is a byte.
fn bytes(text: &str) -> Vec<u8> {
    text.chars().map(|c| u8::try_from(c).unwrap()).collect()
}

fn word(word: &Value) -> Vec<u8> {
    match word.as_str() {
        Some(text) => bytes(text),
        None => {
            bytes(word["byte"].as_str().unwrap()).repeat(word["times"].as_u64().unwrap() as usize)
        }
    }
}

/// Where petal answers otherwise on purpose: the command, what it answers, why. What RedisBloom answers is in the
/// captures. docs/server.md has the same in words.
const ON_PURPOSE: &[(&str, &str, &str)] = &[
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
    ("BF.SCANDUMP l 1", "*2\r\n:9\r\n$8\r\n1337577?\r\n", "chunks leave what was added"),
    ("CF.SCANDUMP g 2", "*2\r\n:5\r\n$3\r\n\u{85}\u{c4}\u{10}\r\n", CHUNKS),
    ("CF.LOADCHUNK y 9 1234", "-Couldn't load chunk!\r\n", CHUNKS),
    ("COPY a acopy", ":1\r\n", "filters can be copied"),
];

const CHUNKS: &str = "a position is of a byte, wherever it lies, and none lies behind the end";
const OPTIONS: &str = "an unknown option is refused, not passed over";
const LETTERS: &str = "an option is its word, not any that begins with the same letter";
const TYPES: &str = "a key of another type is an error, not a filter without the item";

const UNKNOWN: &str = "-Unknown argument received\r\n";
const UNKNOWN_OPTION: &str = "-ERR unknown argument received\r\n";
const WRONGTYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";

/// What is answered neither as RedisBloom does nor as it is otherwise on purpose. Replies that tell
/// of the layout itself are passed over unless it is RedisBloom's.
fn differences(server: &Server, protocol: u8, is_petal: bool, is_compat: bool) -> Vec<String> {
    let mut client: Client = server.client();
    if protocol == 3 {
        client.speak_resp3();
    }
    let mut found = Vec::new();
    for captured in captured(protocol) {
        let ours = client.ask_raw(&captured.command);
        let shown = captured.shown();
        let on_purpose = ON_PURPOSE.iter().find(|(command, ..)| is_petal && shown == *command);
        let expected = on_purpose.map_or(captured.reply.clone(), |(_, reply, _)| bytes(reply));
        if ours != expected && (is_compat || !tells_of_layout(&shown)) {
            let (theirs, ours) = (expected.escape_ascii(), ours.escape_ascii());
            found.push(format!("{shown}\n    expected {theirs}\n    ours     {ours}"));
        }
    }
    found
}

/// Whether a reply tells of sizes, layers or bytes of a filter.
fn tells_of_layout(command: &str) -> bool {
    let words: Vec<_> = command.split(' ').collect();
    match (words[0], words.get(2).copied()) {
        ("TYPE", _) | ("BF.INFO" | "CF.INFO", None | Some("SIZE")) => true,
        ("BF.INFO", Some("CAPACITY" | "FILTERS")) => words[1] == "grow",
        // Cuckoo filters that are filled up, and what else one with few bits may hold.
        (name, _) if name.starts_with("CF.") && matches!(words[1], "f" | "h") => true,
        (name, _) => name.ends_with("SCANDUMP") || name.ends_with("LOADCHUNK"),
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn redisbloom_still_answers_as_it_was_captured() {
    let Some(module) = redisbloom() else {
        println!("left out: the peers have no RedisBloom for this machine");
        return;
    };
    for protocol in [2, 3] {
        let server = Setup::with(module.clone()).start();
        assert_none(protocol, &differences(&server, protocol, false, true));
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn the_compat_layout_answers_as_redisbloom() {
    for protocol in [2, 3] {
        let server = Server::compat();
        assert_none(protocol, &differences(&server, protocol, true, true));
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn petals_layout_answers_as_redisbloom() {
    for protocol in [2, 3] {
        let server = Server::new();
        assert_none(protocol, &differences(&server, protocol, true, false));
    }
}

#[track_caller]
fn assert_none(protocol: u8, found: &[String]) {
    assert!(found.is_empty(), "RESP{protocol}: {} differ\n{}", found.len(), found.join("\n"));
}
