//! Memory per key and false-positive rate of filters that grew from the default capacity.

use crate::Args;
use crate::rows::{Figure, Rows};
use crate::server::{Module, Programs, Server};

const RATES: [f64; 2] = [0.01, 0.001];
/// Numbers of keys. Growth is in steps, so a single number would be arbitrary; there are two per doubling.
const KEYS: [u64; 8] =
    [1_000_000, 1_400_000, 2_000_000, 2_800_000, 4_000_000, 5_600_000, 8_000_000, 10_000_000];
/// Absent keys.
const ABSENT: u64 = 1_000_000;
const FIRST_ABSENT: u64 = 1_000_000_000;

pub(crate) fn measure(
    args: &Args,
    programs: &Programs,
    modules: &[Module],
    rows: &mut Rows,
) -> Result<(), String> {
    for module in modules {
        let mut server = Server::start(programs, module)?;
        for rate in RATES {
            grow(args, &mut server, rate, rows)?;
        }
    }
    Ok(())
}

fn grow(args: &Args, server: &mut Server, rate: f64, rows: &mut Rows) -> Result<(), String> {
    let fill = format!("BF.INSERT filter ERROR {rate} ITEMS");
    let mut begin = 0;
    for keys in KEYS.map(|keys| args.scaled(keys)) {
        server.fill(&fill, begin..keys)?;
        begin = keys;
        let bytes: f64 = server.query("MEMORY USAGE filter")?;
        let absent = args.scaled(ABSENT);
        let false_positives =
            server.count("BF.MEXISTS filter", FIRST_ABSENT..FIRST_ABSENT + absent)?;
        let present = keys.min(absent);
        let found = server.count("BF.MEXISTS filter", 0..present)?;
        if found != present {
            return Err(format!(
                "{}: {} of {present} keys are missing",
                server.name,
                present - found
            ));
        }
        let (per_key, measured) = (bytes / keys as f64, false_positives as f64 / absent as f64);
        println!(
            "  {:<12} {rate} {keys:>9} keys: {per_key:.3} B/key, rate {measured}",
            server.name
        );
        let figure = |what: &str, unit, target| Figure {
            name: format!("{what} at {rate}, grown to {keys}"),
            unit,
            target,
            command: format!("{fill} key:{{0..{keys}}}"),
        };
        rows.add(&figure("memory", "bytes/key", None), &server.source(), 1, per_key, None);
        // Four standard deviations of tolerance.
        let most = rate + 4.0 * (rate / absent as f64).sqrt();
        let rates = figure("false positives", "of absent", Some(most));
        rows.add(&rates, &server.source(), 1, measured, None);
    }
    server.query::<u64>("UNLINK filter").map(|_| ())
}
