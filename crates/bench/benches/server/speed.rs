//! Commands on filters: CPU per request, beside that of `GET`.

use crate::Options;
use crate::load::{self, Load};
use crate::rows::{Rows, Subject};
use crate::server::{Module, Programs, Server};

/// As many as redis-benchmark can draw from: nearly all are new to a filter.
const ALL: u64 = i32::MAX as u64;
const SMALL: u64 = 1_000_000;
const LARGE: u64 = 50_000_000;
const GROWN: u64 = 500_000;

/// A filter, made and filled with the first of its keys.
struct Filter {
    reserve: &'static str,
    capacity: u64,
    fill: &'static str,
    keys: u64,
}

struct Work {
    name: &'static str,
    /// Made anew before every run.
    fresh: Option<Filter>,
    command: &'static str,
    keys: usize,
    range: u64,
    pipeline: u32,
    requests: u64,
    target: Option<f64>,
}

/// Works on one key, and on a hundred.
const ONE: Work = Work {
    name: "",
    fresh: None,
    command: "",
    keys: 1,
    range: SMALL,
    pipeline: 64,
    requests: 200_000,
    target: None,
};
const HUNDRED: Work = Work { keys: 100, pipeline: 16, requests: 20_000, ..ONE };

const FRESH: Filter =
    Filter { reserve: "BF.RESERVE fresh 0.01", capacity: SMALL, fill: "BF.MADD fresh", keys: 0 };
const FRESH_CUCKOO: Filter =
    Filter { reserve: "CF.RESERVE fresh", capacity: SMALL, fill: "CF.INSERT fresh ITEMS", keys: 0 };

const WORKS: [Work; 13] = [
    Work { name: "BF.EXISTS, 1 M", command: "BF.EXISTS small", target: Some(0.65), ..ONE },
    Work {
        name: "BF.ADD, new, 1 M",
        fresh: Some(FRESH),
        command: "BF.ADD fresh",
        range: ALL,
        target: Some(0.85),
        ..ONE
    },
    Work {
        name: "BF.ADD, half new, 1 M",
        fresh: Some(Filter { keys: SMALL / 2, ..FRESH }),
        command: "BF.ADD fresh",
        target: Some(0.85),
        ..ONE
    },
    Work { name: "BF.MEXISTS 100, 1 M", command: "BF.MEXISTS small", target: Some(7.5), ..HUNDRED },
    Work {
        name: "BF.MEXISTS 100, 50 M",
        command: "BF.MEXISTS large",
        range: LARGE,
        target: Some(9.5),
        ..HUNDRED
    },
    Work {
        name: "BF.MADD 100, new, 50 M",
        command: "BF.MADD large",
        range: ALL,
        requests: 10_000,
        target: Some(13.0),
        ..HUNDRED
    },
    Work {
        name: "BF.MEXISTS 100, grown from 100 to 500 k",
        command: "BF.MEXISTS grown",
        target: Some(10.5),
        ..HUNDRED
    },
    Work { name: "BF.EXISTS, 50 M", command: "BF.EXISTS large", range: LARGE, ..ONE },
    Work { name: "BF.EXISTS, grown from 100 to 500 k", command: "BF.EXISTS grown", ..ONE },
    Work {
        name: "CF.ADD, new, 1 M",
        fresh: Some(FRESH_CUCKOO),
        command: "CF.ADD fresh",
        range: ALL,
        target: Some(0.9),
        ..ONE
    },
    Work { name: "CF.EXISTS, 1 M", command: "CF.EXISTS cuckoo", target: Some(0.65), ..ONE },
    Work {
        name: "CF.DEL, mostly present, 1 M",
        fresh: Some(Filter { keys: SMALL / 2, ..FRESH_CUCKOO }),
        command: "CF.DEL fresh",
        range: SMALL / 2,
        target: Some(0.9),
        ..ONE
    },
    Work { name: "CF.MEXISTS 100, 1 M", command: "CF.MEXISTS cuckoo", ..HUNDRED },
];

pub(crate) fn measure(
    options: &Options,
    programs: &Programs,
    modules: &[Module],
    rows: &mut Rows,
) -> Result<(), String> {
    let mut servers = Vec::new();
    for module in modules {
        println!("filling the filters of {}", module.name);
        let mut server = Server::start(programs, module)?;
        prepare(options, &mut server)?;
        servers.push(server);
    }
    for round in 1..=options.rounds {
        println!("round {round}");
        for work in &WORKS {
            // Every second round goes backwards, so that no server always follows another.
            if round % 2 == 0 {
                servers
                    .iter_mut()
                    .rev()
                    .try_for_each(|s| run(options, programs, s, work, round, rows))?;
            } else {
                servers
                    .iter_mut()
                    .try_for_each(|s| run(options, programs, s, work, round, rows))?;
            }
        }
    }
    Ok(())
}

fn run(
    options: &Options,
    programs: &Programs,
    server: &mut Server,
    work: &Work,
    round: usize,
    rows: &mut Rows,
) -> Result<(), String> {
    let command = work.command.split_whitespace().next().unwrap_or_default();
    if !server.knows(command)? {
        if round == 1 {
            println!("  left out: {} has no {command}", server.name);
        }
        return Ok(());
    }
    if let Some(filter) = &work.fresh {
        server.ask::<u64>("DEL fresh")?;
        filter.make(options, server)?;
    }
    let get = Load::get(work.pipeline).run(programs, server)?;
    let load = Load {
        command: work.command,
        keys: work.keys,
        range: if work.range == ALL { ALL } else { options.scaled(work.range) },
        pipeline: work.pipeline,
        requests: options.scaled(work.requests),
    };
    let ns = load.run(programs, server)?;
    println!("  {:<40} {:<10} {ns:>7.0} ns {:>6.2}", work.name, server.name, ns / get);
    let subject = Subject {
        name: work.name.to_owned(),
        unit: "ns",
        target: work.target,
        command: format!(
            "redis-benchmark -P {} -n {} -r {} {} key:__rand_int__ (x {})",
            load.pipeline, load.requests, load.range, load.command, load.keys
        ),
    };
    rows.add(&subject, &server.who(), round, ns, Some(get));
    Ok(())
}

impl Filter {
    fn make(&self, options: &Options, server: &mut Server) -> Result<(), String> {
        let capacity = options.scaled(self.capacity);
        server.ask::<String>(&format!("{} {capacity}", self.reserve))?;
        server.fill(self.fill, 0..options.scaled(self.keys))
    }
}

/// The filters that stay, each with the first half of the keys that it is asked about; new keys go to the large one as
/// well, 2 % of its capacity a round. They must say yes to all of theirs, and to few of the others.
fn prepare(options: &Options, server: &mut Server) -> Result<(), String> {
    load::prepare(server)?;
    let small = Filter {
        reserve: "BF.RESERVE small 0.01",
        capacity: SMALL,
        fill: "BF.MADD small",
        keys: SMALL / 2,
    };
    let large = Filter {
        reserve: "BF.RESERVE large 0.01",
        capacity: LARGE,
        fill: "BF.MADD large",
        keys: LARGE / 2,
    };
    small.make(options, server)?;
    large.make(options, server)?;
    server.fill("BF.MADD grown", 0..options.scaled(GROWN))?;
    let mut filters = vec![
        ("BF.MEXISTS small", SMALL / 2),
        ("BF.MEXISTS large", LARGE / 2),
        ("BF.MEXISTS grown", GROWN),
    ];
    if server.knows("CF.RESERVE")? {
        let cuckoo = Filter {
            reserve: "CF.RESERVE cuckoo",
            capacity: SMALL,
            fill: "CF.INSERT cuckoo ITEMS",
            keys: SMALL / 2,
        };
        cuckoo.make(options, server)?;
        filters.push(("CF.MEXISTS cuckoo", SMALL / 2));
    }
    for (command, keys) in filters {
        let keys = options.scaled(keys);
        let asked = keys.min(100_000);
        let (yes, wrong) =
            (server.count(command, 0..asked)?, server.count(command, keys..keys + asked)?);
        if yes != asked || wrong * 20 > asked {
            return Err(format!(
                "{}: {command}: {yes} of {asked} keys, {wrong} others",
                server.name
            ));
        }
    }
    let layers: Vec<u64> = server.ask("BF.INFO grown FILTERS")?;
    println!("  {} grows to {layers:?} sub-filters", server.name);
    Ok(())
}
