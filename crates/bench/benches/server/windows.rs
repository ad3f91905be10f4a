//! Memory of a million small windowed filters.

use petal::math;

use crate::Args;
use crate::rows::{Figure, Rows};
use crate::server::{Module, Programs, Server};

const USERS: u64 = 1_000_000;
const ITEMS: u64 = 200;
const RATE: f64 = 0.01;
/// The default number of generations.
const GENERATIONS: u32 = 4;
/// Allowed bytes above an empty module key.
const SLACK: f64 = 100.0;
/// Memory of a module value without data: the server's object and the link to the module's type.
const EMPTY_VALUE: f64 = 32.0;

pub(crate) fn measure(
    args: &Args,
    programs: &Programs,
    module: &Module,
    rows: &mut Rows,
) -> Result<(), String> {
    let users = args.scaled(USERS);
    let per_key = |server: &mut Server, before| {
        server.used_memory().map(|after| (after - before) / users as f64)
    };

    // The server shares small integers between keys, so this is the memory of the key alone.
    let mut server = Server::start(programs, module)?;
    let before = server.used_memory()?;
    server.each(users, |key| format!("SET {key} 1"))?;
    let empty = per_key(&mut server, before)? + EMPTY_VALUE;

    let mut server = Server::start(programs, module)?;
    let before = server.used_memory()?;
    server.each(users, |key| format!("PETAL.RESERVE {key} {RATE} {ITEMS} TYPE window LAST"))?;
    let reserved = per_key(&mut server, before)?;
    let items: String = (0..ITEMS).map(|item| format!(" item:{item}")).collect();
    server.each(users, |key| format!("PETAL.SEEN {key}{items}"))?;
    let filled = per_key(&mut server, before)?;

    let parts = f64::from(GENERATIONS - 1);
    let log = (1.0 / math::generation_fpr(RATE, GENERATIONS)).log2() / std::f64::consts::LN_2;
    let needed = ITEMS as f64 * f64::from(GENERATIONS) / parts * log / 8.0;
    let most = (1.3 * needed + SLACK + empty).round();
    println!("  an empty key of a module: {empty:.0} B; the bits that are needed: {needed:.0} B");
    for (what, value) in [("reserved", reserved), ("full", filled)] {
        let figure = Figure {
            name: format!("{users} windows of {ITEMS} items, {what}"),
            unit: "bytes/key",
            target: Some(most),
            command: format!("PETAL.RESERVE user {RATE} {ITEMS} TYPE window LAST"),
        };
        rows.add(&figure, &server.source(), 1, value, None);
    }
    Ok(())
}
