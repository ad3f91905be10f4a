//! A key of every kind, filled.

use crate::server::{Reply, Server};

/// How a key is made and used.
struct Kind {
    key: &'static str,
    /// Makes it; of those that make themselves, none.
    make: Option<&'static str>,
    /// Puts many in and asks many.
    add: &'static str,
    ask: &'static str,
    /// How many items it certainly holds at a time.
    holds: usize,
}

const ALL: usize = usize::MAX;

const fn bloom(key: &'static str, make: Option<&'static str>) -> Kind {
    Kind { key, make, add: "BF.MADD", ask: "BF.MEXISTS", holds: ALL }
}

const fn cuckoo(key: &'static str, make: Option<&'static str>) -> Kind {
    Kind { key, make, add: "CF.INSERT", ask: "CF.MEXISTS", holds: ALL }
}

/// Those that RedisBloom has too.
const COMMON: &[Kind] = &[
    bloom("bf-auto", None),
    bloom("bf-fixed", Some("BF.RESERVE bf-fixed 0.001 100000 NONSCALING")),
    bloom("bf-scaled", Some("BF.RESERVE bf-scaled 0.01 50")),
    bloom("bf-x4", Some("BF.RESERVE bf-x4 0.02 30 EXPANSION 4")),
    bloom("bf-equal", Some("BF.RESERVE bf-equal 0.001 400 EXPANSION 1")),
    cuckoo("cf-auto", None),
    cuckoo("cf-wide", Some("CF.RESERVE cf-wide 10000 BUCKETSIZE 4")),
    cuckoo("cf-grown", Some("CF.RESERVE cf-grown 64 EXPANSION 2 MAXITERATIONS 50")),
];

/// Those that only petal has.
const OWN: &[Kind] = &[
    bloom("pt-counting", Some("PETAL.RESERVE pt-counting 0.01 60000 TYPE counting")),
    bloom("pt-time", Some("PETAL.RESERVE pt-time 0.01 60000 TYPE window WINDOW 7d")),
    Kind {
        holds: 1000,
        ..bloom("pt-last", Some("PETAL.RESERVE pt-last 0.01 1000 TYPE window LAST"))
    },
];

/// Keys with the items `item:0` and so on in each.
pub(crate) struct Zoo {
    kinds: Vec<&'static Kind>,
    items: usize,
}

/// The commands that make those that do not make themselves, with this behind their names.
pub(crate) fn lines_that_make(tag: &str) -> Vec<String> {
    let made = COMMON.iter().chain(OWN).filter_map(|kind| Some((kind.key, kind.make?)));
    made.map(|(key, line)| line.replace(key, &format!("{key}{tag}"))).collect()
}

/// The keys with this behind their names, the family of commands that each has, and how many items it certainly holds.
pub(crate) fn keys_with(tag: &str) -> Vec<(String, &'static str, usize)> {
    let all = COMMON.iter().chain(OWN);
    all.map(|kind| (format!("{}{tag}", kind.key), &kind.add[..2], kind.holds)).collect()
}

/// Makes a key of every kind and fills it.
#[track_caller]
pub(crate) fn filled(server: &Server, items: usize) -> Zoo {
    fill(server, COMMON.iter().chain(OWN).collect(), items)
}

/// The same, of the kinds that RedisBloom has.
#[track_caller]
pub(crate) fn filled_as_redisbloom_can(server: &Server, items: usize) -> Zoo {
    fill(server, COMMON.iter().collect(), items)
}

#[track_caller]
fn fill(server: &Server, kinds: Vec<&'static Kind>, items: usize) -> Zoo {
    for kind in &kinds {
        if let Some(make) = kind.make {
            server.ask(make).ok();
        }
        put(server, kind, 0, items);
    }
    Zoo { kinds, items }
}

#[track_caller]
fn put(server: &Server, kind: &Kind, from: usize, to: usize) {
    for first in (from..to).step_by(500) {
        let reply = send(server, kind, kind.add, first, (first + 500).min(to));
        let refused = reply.items().iter().find(|reply| !matches!(reply, Reply::Int(0 | 1)));
        assert!(refused.is_none(), "{}: {refused:?}", kind.key);
    }
}

/// A command with many items.
fn send(server: &Server, kind: &Kind, name: &str, from: usize, to: usize) -> Reply {
    let items = (from..to).map(|number| format!("item:{number}"));
    let mut words = vec![name.to_owned(), kind.key.to_owned()];
    words.extend((name == "CF.INSERT").then(|| "ITEMS".to_owned()));
    words.extend(items);
    server.ask_words(&words)
}

impl Zoo {
    pub(crate) fn keys(&self) -> Vec<&'static str> {
        self.kinds.iter().map(|kind| kind.key).collect()
    }

    /// Puts more items in.
    #[track_caller]
    pub(crate) fn grow(&self, server: &Server, more: usize) {
        for kind in &self.kinds {
            put(server, kind, self.items, self.items + more);
        }
    }

    /// All that were put in are there.
    #[track_caller]
    pub(crate) fn assert_members(&self, server: &Server) {
        for kind in &self.kinds {
            let from = self.items.saturating_sub(kind.holds);
            let denied = send(server, kind, kind.ask, from, self.items);
            let denied = denied.items().iter().filter(|reply| **reply != Reply::Int(1)).count();
            assert_eq!(denied, 0, "members of {} that are denied", kind.key);
        }
    }
}
