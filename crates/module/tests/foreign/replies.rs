//! Replies and errors are RedisBloom's, to the byte, in both protocols.

use serde_json::Value;

use crate::server::{Client, Module, Server, Setup, redisbloom};

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

/// What is answered otherwise, as commands and both answers.
fn differences(server: &Server, protocol: u8) -> Vec<String> {
    let mut client: Client = server.client();
    if protocol == 3 {
        client.speak_resp3();
    }
    let mut found = Vec::new();
    for captured in captured(protocol) {
        let ours = client.ask_raw(&captured.command);
        if ours != captured.reply {
            found.push(format!(
                "{}\n    theirs {}\n    ours   {}",
                captured.shown(),
                captured.reply.escape_ascii(),
                ours.escape_ascii()
            ));
        }
    }
    found
}

#[test]
#[ignore = "cargo x test --foreign"]
fn redisbloom_still_answers_as_it_was_captured() {
    let Some(module) = redisbloom() else {
        println!("left out: PETAL_REDISBLOOM does not name the module");
        return;
    };
    for protocol in [2, 3] {
        let server = Setup::with(module.clone()).start();
        let found = differences(&server, protocol);
        assert!(found.is_empty(), "RESP{protocol}\n{}", found.join("\n"));
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn the_compat_layout_answers_as_redisbloom() {
    for protocol in [2, 3] {
        let found = differences(&Server::compat(), protocol);
        assert!(found.is_empty(), "RESP{protocol}, {} differ\n{}", found.len(), found.join("\n"));
    }
}
