//! CPU time and memory of filters that a command creates and that grow from the default capacity. The time is
//! that of the second run of each command.

use crate::Args;
use crate::rows::{Figure, Rows};
use crate::server::{Module, Programs, Server};

/// Numbers of items, and the maximum ratio of petal's CPU time to RedisBloom's with all items in one command.
const ITEMS: [(u64, f64); 4] = [(1000, 1.0), (10_000, 0.8), (100_000, 0.6), (1_000_000, 0.6)];
/// The same with one item a command, in a pipeline.
const PIPELINE: f64 = 0.9;

const RATES: [f64; 3] = [0.01, 0.001, 0.0001];
/// Numbers of items whose memory is measured: 10² to 10⁷ at equal distances on a logarithmic scale.
const SIZES: u32 = 30;
/// The maximum ratio of petal's memory to RedisBloom's.
const MEMORY: f64 = 1.15;
const ABSENT: u64 = 1_000_000;
const FIRST_ABSENT: u64 = 1_000_000_000;

/// How the items reach the server.
const WAYS: [(&str, &str, bool); 3] = [
    ("BF.MADD, one command", "BF.MADD created", false),
    ("BF.INSERT, one command", "BF.INSERT created ITEMS", false),
    ("BF.ADD, pipeline", "BF.ADD created", true),
];

pub(crate) fn measure(
    args: &Args,
    programs: &Programs,
    modules: &[Module],
    rows: &mut Rows,
) -> Result<(), String> {
    let start = |module| Server::start(programs, module);
    let mut servers = modules.iter().map(start).collect::<Result<Vec<_>, _>>()?;
    for round in 1..=args.rounds() {
        for (items, most) in ITEMS {
            let items = args.scaled(items);
            for (name, command, single) in WAYS {
                for server in &mut servers {
                    let figure = Figure {
                        name: format!("{name}, {items} into a missing key"),
                        unit: "ns/item",
                        target: None,
                        command: format!(
                            "{command} key:{{0..{items}}}; at most {} of RedisBloom",
                            if single { PIPELINE } else { most }
                        ),
                    };
                    // The first run after a start or after other commands loads code: its time says
                    // little about a command.
                    server.query::<u64>("DEL created")?;
                    server.cpu_of(command, items, single)?;
                    server.query::<u64>("DEL created")?;
                    let ns = server.cpu_of(command, items, single)? / items as f64;
                    rows.add(&figure, &server.source(), round, ns, None);
                }
            }
        }
    }
    drop(servers);
    for module in modules {
        for rate in RATES {
            memory(args, &mut Server::start(programs, module)?, rate, rows)?;
        }
    }
    Ok(())
}

/// Grows a filter by commands of 100 items.
fn memory(args: &Args, server: &mut Server, rate: f64, rows: &mut Rows) -> Result<(), String> {
    let fill = format!("BF.INSERT grown ERROR {rate} ITEMS");
    let mut begin = 0;
    let row = |what: &str, unit, target, items| Figure {
        name: format!("{what} at {rate}, grown from 100 to {items}"),
        unit,
        target,
        command: format!("{fill} key:{{0..{items}}}; memory at most {MEMORY} of RedisBloom"),
    };
    for step in 0..SIZES {
        let items = 10f64.powf(2.0 + 5.0 * f64::from(step) / f64::from(SIZES - 1)).round() as u64;
        if items > args.scaled(10_000_000) {
            break;
        }
        server.fill(&fill, begin..items)?;
        begin = items;
        let bytes: f64 = server.query("MEMORY USAGE grown")?;
        let figure = row("memory", "bits/item", None, items);
        rows.add(&figure, &server.source(), 1, bytes * 8.0 / items as f64, None);
    }
    let absent = args.scaled(ABSENT);
    let found = server.count("BF.MEXISTS grown", FIRST_ABSENT..FIRST_ABSENT + absent)?;
    // Four standard deviations of tolerance.
    let most = rate + 4.0 * (rate / absent as f64).sqrt();
    let figure = row("false positives", "of absent", Some(most), begin);
    rows.add(&figure, &server.source(), 1, found as f64 / absent as f64, None);
    Ok(())
}
