//! Memory per key of filters that grew from the default capacity, and how often they are wrong.

use crate::Options;
use crate::rows::{Rows, Subject};
use crate::server::{Module, Programs, Server};

const RATES: [f64; 2] = [0.01, 0.001];
/// Keys at which it is measured: growth is by steps, so that one number alone would be luck. A doubling has two.
const KEYS: [u64; 8] =
    [1_000_000, 1_400_000, 2_000_000, 2_800_000, 4_000_000, 5_600_000, 8_000_000, 10_000_000];
/// Keys that were never put in.
const ABSENT: u64 = 1_000_000;
const FIRST_ABSENT: u64 = 1_000_000_000;

pub(crate) fn measure(
    options: &Options,
    programs: &Programs,
    modules: &[Module],
    rows: &mut Rows,
) -> Result<(), String> {
    for module in modules {
        let mut server = Server::start(programs, module)?;
        for rate in RATES {
            grow(options, &mut server, rate, rows)?;
        }
    }
    Ok(())
}

fn grow(options: &Options, server: &mut Server, rate: f64, rows: &mut Rows) -> Result<(), String> {
    let fill = format!("BF.INSERT filter ERROR {rate} ITEMS");
    let mut begin = 0;
    for keys in KEYS.map(|keys| options.scaled(keys)) {
        server.fill(&fill, begin..keys)?;
        begin = keys;
        let bytes: f64 = server.ask("MEMORY USAGE filter")?;
        let absent = options.scaled(ABSENT);
        let wrong = server.count("BF.MEXISTS filter", FIRST_ABSENT..FIRST_ABSENT + absent)?;
        let asked = keys.min(absent);
        let yes = server.count("BF.MEXISTS filter", 0..asked)?;
        if yes != asked {
            return Err(format!("{}: {} of {asked} keys are denied", server.name, asked - yes));
        }
        let (per_key, measured) = (bytes / keys as f64, wrong as f64 / absent as f64);
        println!(
            "  {:<10} {rate} {keys:>9} keys: {per_key:.3} B/key, rate {measured}",
            server.name
        );
        let subject = |what: &str, unit, target| Subject {
            name: format!("{what} at {rate}, grown to {keys}"),
            unit,
            target,
            command: format!("{fill} key:{{0..{keys}}}"),
        };
        rows.add(&subject("memory", "bytes/key", None), &server.who(), 1, per_key, None);
        // Four standard deviations above the promise are still the promise.
        let most = rate + 4.0 * (rate / absent as f64).sqrt();
        let rates = subject("false positives", "of absent", Some(most));
        rows.add(&rates, &server.who(), 1, measured, None);
    }
    server.ask::<u64>("UNLINK filter").map(|_| ())
}
