//! Keys that RedisBloom wrote: `testdata/redisbloom/filters.json`.

use serde_json::Value;

use crate::server::{Reply, Server};

/// A key that RedisBloom filled.
pub(crate) struct Capture {
    pub(crate) key: String,
    /// Items in the filter.
    pub(crate) members: Vec<String>,
    /// Items of [`absent_items`] that RedisBloom finds.
    pub(crate) false_positives: Vec<String>,
    /// Chunks of SCANDUMP: position and bytes.
    pub(crate) chunks: Vec<(u64, Vec<u8>)>,
    pub(crate) dump: Vec<u8>,
    /// The flat array of INFO, as JSON.
    pub(crate) info: Vec<Value>,
}

impl Capture {
    /// Returns `BF` or `CF`.
    pub(crate) fn family(&self) -> &'static str {
        if self.key.starts_with("cf") { "CF" } else { "BF" }
    }

    /// Sends a command for the key: `EXISTS` is `BF.EXISTS key` or `CF.EXISTS key`.
    pub(crate) fn call(&self, server: &Server, name: &str, args: &[&[u8]]) -> Reply {
        let name = format!("{}.{name}", self.family());
        server.call_args(&[&[name.as_bytes(), self.key.as_bytes()], args].concat())
    }

    /// Asserts that all members are found.
    #[track_caller]
    pub(crate) fn assert_members(&self, server: &Server) {
        let absent = self.answers(server, &self.members).iter().filter(|&&yes| !yes).count();
        assert_eq!(absent, 0, "members of {} that are not found", self.key);
    }

    /// Asserts that all members are found, and the same absent items as in RedisBloom.
    #[track_caller]
    pub(crate) fn assert_equals_redisbloom(&self, server: &Server) {
        self.assert_members(server);
        let absent_items = absent_items();
        let answers = self.answers(server, &absent_items);
        let yes = absent_items.iter().zip(answers).filter(|(_, yes)| *yes).map(|(item, _)| item);
        let yes: Vec<_> = yes.cloned().collect();
        assert!(
            yes == self.false_positives,
            "{}: false positives differ from RedisBloom's",
            self.key
        );
    }

    /// Asserts that items can be added and all items are found.
    #[track_caller]
    pub(crate) fn assert_accepts_items(&self, server: &Server) {
        // The filter of fixed size has space for 200 more.
        for item in (0..150).map(|number| format!("later:{number}")) {
            let reply = self.call(server, "ADD", &[item.as_bytes()]);
            assert!(!reply.is_error(), "{}: {reply:?}", self.key);
            assert_eq!(self.call(server, "EXISTS", &[item.as_bytes()]).int(), 1);
        }
        self.assert_members(server);
    }

    /// Loads the key from its chunks.
    #[track_caller]
    pub(crate) fn load_chunks(&self, server: &Server) {
        for (position, chunk) in &self.chunks {
            self.call(server, "LOADCHUNK", &[position.to_string().as_bytes(), chunk]).ok();
        }
    }

    fn answers(&self, server: &Server, items: &[String]) -> Vec<bool> {
        let items: Vec<_> = items.iter().map(String::as_bytes).collect();
        self.call(server, "MEXISTS", &items).ints().iter().map(|&answer| answer == 1).collect()
    }
}

/// Returns all chunks of a key, by SCANDUMP.
#[track_caller]
pub(crate) fn chunks(server: &Server, family: &str, key: &str) -> Vec<(u64, Vec<u8>)> {
    let (mut all, mut position) = (Vec::new(), 0);
    loop {
        let reply = server.call(&format!("{family}.SCANDUMP {key} {position}"));
        position = reply.items()[0].int() as u64;
        if position == 0 {
            return all;
        }
        all.push((position, reply.items()[1].bytes().to_vec()));
    }
}

/// Items that are in none of the keys.
pub(crate) fn absent_items() -> Vec<String> {
    (100_000..104_000).map(|number| format!("item:{number}")).collect()
}

/// Reads a file that RedisBloom wrote.
pub(crate) fn file(name: &str) -> Vec<u8> {
    std::fs::read(format!("../../testdata/redisbloom/{name}")).unwrap()
}

pub(crate) fn captures() -> Vec<Capture> {
    let all: Value = serde_json::from_slice(&file("filters.json")).unwrap();
    let one = |(key, value): (&String, &Value)| Capture {
        key: key.clone(),
        members: members(all["members"][key].as_str().unwrap()),
        false_positives: list(&value["false_positives_in_item_100000_103999"])
            .map(|number| format!("item:{number}"))
            .collect(),
        chunks: list(&value["scandump"])
            .map(|chunk| (chunk[0].as_u64().unwrap(), hex(chunk[1].as_str().unwrap())))
            .collect(),
        dump: hex(value["dump"].as_str().unwrap()),
        info: list(&value["info"]).cloned().collect(),
    };
    all["keys"].as_object().unwrap().iter().map(one).collect()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().unwrap().iter()
}

/// Parses `only`, or `item:0..799` with further words.
fn members(text: &str) -> Vec<String> {
    let Some((first, last)) = text.split(' ').next().unwrap().split_once("..") else {
        return vec![text.into()];
    };
    let (name, first) = first.split_once(':').unwrap();
    let (first, last): (u32, u32) = (first.parse().unwrap(), last.parse().unwrap());
    (first..=last).map(|number| format!("{name}:{number}")).collect()
}

fn hex(text: &str) -> Vec<u8> {
    let digits = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(digits).collect()
}
