//! CPU time per request of the commands, relative to `GET`.

use crate::Args;
use crate::load::{self, Load};
use crate::rows::{Figure, Rows};
use crate::server::{Module, Programs, Server};

/// The largest range of redis-benchmark: nearly all keys are new to a filter.
const ALL: u64 = i32::MAX as u64;
const SMALL: u64 = 1_000_000;
const LARGE: u64 = 50_000_000;
const GROWN: u64 = 500_000;

/// A filter that is filled with the first of its keys.
struct Filter {
    reserve: &'static str,
    capacity: u64,
    fill: &'static str,
    keys: u64,
}

struct Workload {
    name: &'static str,
    /// A filter that is made again before every run.
    fresh: Option<Filter>,
    command: &'static str,
    keys: usize,
    range: u64,
    pipeline: u32,
    requests: u64,
    target: Option<f64>,
}

/// Workloads with one key per command, and with a hundred.
const ONE: Workload = Workload {
    name: "",
    fresh: None,
    command: "",
    keys: 1,
    range: SMALL,
    pipeline: 64,
    requests: 200_000,
    target: None,
};
const HUNDRED: Workload = Workload { keys: 100, pipeline: 16, requests: 20_000, ..ONE };

const FRESH: Filter =
    Filter { reserve: "BF.RESERVE fresh 0.01", capacity: SMALL, fill: "BF.MADD fresh", keys: 0 };
const FRESH_CUCKOO: Filter =
    Filter { reserve: "CF.RESERVE fresh", capacity: SMALL, fill: "CF.INSERT fresh ITEMS", keys: 0 };

const WORKLOADS: [Workload; 13] = [
    Workload { name: "BF.EXISTS, 1 M", command: "BF.EXISTS small", target: Some(0.65), ..ONE },
    Workload {
        name: "BF.ADD, new, 1 M",
        fresh: Some(FRESH),
        command: "BF.ADD fresh",
        range: ALL,
        target: Some(0.85),
        ..ONE
    },
    Workload {
        name: "BF.ADD, half new, 1 M",
        fresh: Some(Filter { keys: SMALL / 2, ..FRESH }),
        command: "BF.ADD fresh",
        target: Some(0.85),
        ..ONE
    },
    Workload {
        name: "BF.MEXISTS 100, 1 M",
        command: "BF.MEXISTS small",
        target: Some(7.5),
        ..HUNDRED
    },
    Workload {
        name: "BF.MEXISTS 100, 50 M",
        command: "BF.MEXISTS large",
        range: LARGE,
        target: Some(9.5),
        ..HUNDRED
    },
    Workload {
        name: "BF.MADD 100, new, 50 M",
        command: "BF.MADD large",
        range: ALL,
        requests: 10_000,
        target: Some(13.0),
        ..HUNDRED
    },
    Workload {
        name: "BF.MEXISTS 100, grown from 100 to 500 k",
        command: "BF.MEXISTS grown",
        target: Some(10.5),
        ..HUNDRED
    },
    Workload { name: "BF.EXISTS, 50 M", command: "BF.EXISTS large", range: LARGE, ..ONE },
    Workload { name: "BF.EXISTS, grown from 100 to 500 k", command: "BF.EXISTS grown", ..ONE },
    Workload {
        name: "CF.ADD, new, 1 M",
        fresh: Some(FRESH_CUCKOO),
        command: "CF.ADD fresh",
        range: ALL,
        target: Some(0.9),
        ..ONE
    },
    Workload { name: "CF.EXISTS, 1 M", command: "CF.EXISTS cuckoo", target: Some(0.65), ..ONE },
    Workload {
        name: "CF.DEL, mostly present, 1 M",
        fresh: Some(Filter { keys: SMALL / 2, ..FRESH_CUCKOO }),
        command: "CF.DEL fresh",
        range: SMALL / 2,
        target: Some(0.9),
        ..ONE
    },
    Workload { name: "CF.MEXISTS 100, 1 M", command: "CF.MEXISTS cuckoo", ..HUNDRED },
];

pub(crate) fn measure(
    args: &Args,
    programs: &Programs,
    modules: &[Module],
    rows: &mut Rows,
) -> Result<(), String> {
    let mut servers = Vec::new();
    for module in modules {
        println!("filling the filters of {}", module.name);
        let mut server = Server::start(programs, module)?;
        prepare(args, &mut server)?;
        servers.push(server);
    }
    for round in 1..=args.rounds() {
        println!("round {round}");
        for work in &WORKLOADS {
            // Even rounds are in reverse order, so that no server always follows another one.
            if round % 2 == 0 {
                servers
                    .iter_mut()
                    .rev()
                    .try_for_each(|s| run(args, programs, s, work, round, rows))?;
            } else {
                servers.iter_mut().try_for_each(|s| run(args, programs, s, work, round, rows))?;
            }
        }
    }
    Ok(())
}

fn run(
    args: &Args,
    programs: &Programs,
    server: &mut Server,
    work: &Workload,
    round: usize,
    rows: &mut Rows,
) -> Result<(), String> {
    let command = work.command.split_whitespace().next().unwrap_or_default();
    if !server.has(command)? {
        if round == 1 {
            println!("  left out: {} has no {command}", server.name);
        }
        return Ok(());
    }
    if let Some(filter) = &work.fresh {
        server.query::<u64>("DEL fresh")?;
        filter.make(args, server)?;
    }
    let get = Load::get(work.pipeline).run(programs, server)?;
    let load = Load {
        command: work.command,
        keys: work.keys,
        range: if work.range == ALL { ALL } else { args.scaled(work.range) },
        pipeline: work.pipeline,
        requests: args.scaled(work.requests),
    };
    let ns = load.run(programs, server)?;
    println!("  {:<40} {:<12} {ns:>7.0} ns {:>6.2}", work.name, server.name, ns / get);
    let figure = Figure {
        name: work.name.to_owned(),
        unit: "ns",
        target: work.target,
        command: format!(
            "redis-benchmark -P {} -n {} -r {} {} key:__rand_int__ (x {})",
            load.pipeline, load.requests, load.range, load.command, load.keys
        ),
    };
    rows.add(&figure, &server.source(), round, ns, Some(get));
    Ok(())
}

impl Filter {
    fn make(&self, args: &Args, server: &mut Server) -> Result<(), String> {
        let capacity = args.scaled(self.capacity);
        server.query::<String>(&format!("{} {capacity}", self.reserve))?;
        server.fill(self.fill, 0..args.scaled(self.keys))
    }
}

/// Makes the filters that are used in all rounds, with the first half of the keys of their lookups, and checks their
/// answers. New keys are added to the large one, 2 % of its capacity per round.
fn prepare(args: &Args, server: &mut Server) -> Result<(), String> {
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
    small.make(args, server)?;
    large.make(args, server)?;
    server.fill("BF.MADD grown", 0..args.scaled(GROWN))?;
    let mut filters = vec![
        ("BF.MEXISTS small", SMALL / 2),
        ("BF.MEXISTS large", LARGE / 2),
        ("BF.MEXISTS grown", GROWN),
    ];
    if server.has("CF.RESERVE")? {
        let cuckoo = Filter {
            reserve: "CF.RESERVE cuckoo",
            capacity: SMALL,
            fill: "CF.INSERT cuckoo ITEMS",
            keys: SMALL / 2,
        };
        cuckoo.make(args, server)?;
        filters.push(("CF.MEXISTS cuckoo", SMALL / 2));
    }
    for (command, keys) in filters {
        let keys = args.scaled(keys);
        let keys_checked = keys.min(100_000);
        let found = server.count(command, 0..keys_checked)?;
        let false_positives = server.count(command, keys..keys + keys_checked)?;
        if found != keys_checked || false_positives * 20 > keys_checked {
            return Err(format!(
                "{}: {command}: {found} of {keys_checked} keys, {false_positives} false positives",
                server.name
            ));
        }
    }
    let layers = server.number("BF.INFO grown FILTERS")?;
    println!("  {} grows to {layers} sub-filters", server.name);
    Ok(())
}
