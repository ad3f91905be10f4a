//! A set of keys with every type of filter.

use crate::server::{Reply, Server};

/// How a key is created and used.
struct Kind {
    key: &'static str,
    /// The command that creates it; `None` if the first insert does.
    make: Option<&'static str>,
    /// The commands that add and query several items.
    add: &'static str,
    call: &'static str,
    /// Number of items that the filter holds.
    holds: usize,
}

const ALL: usize = usize::MAX;

const fn bloom(key: &'static str, make: Option<&'static str>) -> Kind {
    Kind { key, make, add: "BF.MADD", call: "BF.MEXISTS", holds: ALL }
}

const fn cuckoo(key: &'static str, make: Option<&'static str>) -> Kind {
    Kind { key, make, add: "CF.INSERT", call: "CF.MEXISTS", holds: ALL }
}

/// Filters that RedisBloom has as well.
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

/// Filters that only petal has.
const OWN: &[Kind] = &[
    bloom("pt-counting", Some("PETAL.RESERVE pt-counting 0.01 60000 TYPE counting")),
    bloom("pt-slots", Some("PETAL.RESERVE pt-slots 0.01 60000 TYPE vector-quotient")),
    bloom("pt-time", Some("PETAL.RESERVE pt-time 0.01 60000 TYPE window WINDOW 7d")),
    Kind {
        holds: 1000,
        ..bloom("pt-last", Some("PETAL.RESERVE pt-last 0.01 1000 TYPE window LAST"))
    },
];

/// Keys with the items `item:0` and so on in each.
pub(crate) struct SampleFilters {
    kinds: Vec<&'static Kind>,
    items: usize,
}

/// Returns the commands that create the keys, with a suffix for their names.
pub(crate) fn reserve_commands(tag: &str) -> Vec<String> {
    let made = COMMON.iter().chain(OWN).filter_map(|kind| Some((kind.key, kind.make?)));
    made.map(|(key, line)| line.replace(key, &format!("{key}{tag}"))).collect()
}

/// Returns the keys with a suffix, their command family, and the number of items that each holds.
pub(crate) fn keys_with_suffix(tag: &str) -> Vec<(String, &'static str, usize)> {
    let all = COMMON.iter().chain(OWN);
    all.map(|kind| (format!("{}{tag}", kind.key), &kind.add[..2], kind.holds)).collect()
}

/// Creates and fills a key of every type.
#[track_caller]
pub(crate) fn create(server: &Server, items: usize) -> SampleFilters {
    fill(server, COMMON.iter().chain(OWN).collect(), items)
}

/// Creates and fills a key of every type that RedisBloom has.
#[track_caller]
pub(crate) fn create_redisbloom_types(server: &Server, items: usize) -> SampleFilters {
    fill(server, COMMON.iter().collect(), items)
}

#[track_caller]
fn fill(server: &Server, kinds: Vec<&'static Kind>, items: usize) -> SampleFilters {
    for kind in &kinds {
        if let Some(make) = kind.make {
            server.call(make).ok();
        }
        put(server, kind, 0, items);
    }
    SampleFilters { kinds, items }
}

#[track_caller]
fn put(server: &Server, kind: &Kind, from: usize, to: usize) {
    for first in (from..to).step_by(500) {
        let reply = send(server, kind, kind.add, first, (first + 500).min(to));
        let rejected = reply.items().iter().find(|reply| !matches!(reply, Reply::Int(0 | 1)));
        assert!(rejected.is_none(), "{}: {rejected:?}", kind.key);
    }
}

/// Sends a command with many items.
fn send(server: &Server, kind: &Kind, name: &str, from: usize, to: usize) -> Reply {
    let items = (from..to).map(|number| format!("item:{number}"));
    let mut args = vec![name.to_owned(), kind.key.to_owned()];
    args.extend((name == "CF.INSERT").then(|| "ITEMS".to_owned()));
    args.extend(items);
    server.call_args(&args)
}

impl SampleFilters {
    pub(crate) fn keys(&self) -> Vec<&'static str> {
        self.kinds.iter().map(|kind| kind.key).collect()
    }

    /// Adds more items.
    #[track_caller]
    pub(crate) fn grow(&self, server: &Server, more: usize) {
        for kind in &self.kinds {
            put(server, kind, self.items, self.items + more);
        }
    }

    /// Asserts that all items are found.
    #[track_caller]
    pub(crate) fn assert_members(&self, server: &Server) {
        for kind in &self.kinds {
            let from = self.items.saturating_sub(kind.holds);
            let denied = send(server, kind, kind.call, from, self.items);
            let denied = denied.items().iter().filter(|reply| **reply != Reply::Int(1)).count();
            assert_eq!(denied, 0, "members of {} that are not found", kind.key);
        }
    }
}
