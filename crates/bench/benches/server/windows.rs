//! Very many small windowed filters: what each costs.

use petal::rate;

use crate::Options;
use crate::rows::{Rows, Subject};
use crate::server::{Module, Programs, Server};

const USERS: u64 = 1_000_000;
const ITEMS: u64 = 200;
const RATE: f64 = 0.01;
/// What is reserved where nobody says how many: three parts of the window, and the newest.
const GENERATIONS: u32 = 4;
/// Beyond an empty module key.
const SLACK: f64 = 100.0;
/// Of a key of a module beyond one whose value takes no memory of its own: the server's object, and what ties a module's
/// value to its type.
const EMPTY_VALUE: f64 = 32.0;

pub(crate) fn measure(
    options: &Options,
    programs: &Programs,
    module: &Module,
    rows: &mut Rows,
) -> Result<(), String> {
    let users = options.scaled(USERS);
    let per_key = |server: &mut Server, before| {
        server.used_memory().map(|after| (after - before) / users as f64)
    };

    // A small number as a value is shared by all keys that have it.
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
    let log = (1.0 / rate::generation(RATE, GENERATIONS)).log2() / std::f64::consts::LN_2;
    let needed = ITEMS as f64 * f64::from(GENERATIONS) / parts * log / 8.0;
    let most = (1.3 * needed + SLACK + empty).round();
    println!("  an empty key of a module: {empty:.0} B; the bits that are needed: {needed:.0} B");
    for (what, value) in [("reserved", reserved), ("full", filled)] {
        let subject = Subject {
            name: format!("{users} windows of {ITEMS} items, {what}"),
            unit: "bytes/key",
            target: Some(most),
            command: format!("PETAL.RESERVE user {RATE} {ITEMS} TYPE window LAST"),
        };
        rows.add(&subject, &server.who(), 1, value, None);
    }
    Ok(())
}
