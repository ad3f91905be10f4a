//! How long others wait while a large filter goes, or comes: the longest `PING` of another client, and the server's
//! longest command by its own clock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::Options;
use crate::rows::{Rows, Subject};
use crate::server::{Module, Programs, Server, connect};

/// Bytes of the filter.
const SIZE: u64 = 600_000_000;
/// Each has its own page in all likelihood: enough for all pages of the filter to be in memory.
const TOUCHED: u64 = 3_000_000;
const MOST_MS: f64 = 5.0;
/// How long nothing happens, and how long memory may take to be given back by another thread.
const IDLE: Duration = Duration::from_secs(2);

/// A filter as pieces, each with the number that goes with it.
type Pieces = Vec<(u64, Vec<u8>)>;

/// The commands that take a filter out, and in.
struct Ways {
    out: &'static str,
    into: &'static str,
}

const FILES: Ways = Ways { out: "PETAL.EXPORT", into: "PETAL.IMPORT" };
const CHUNKS: Ways = Ways { out: "BF.SCANDUMP", into: "BF.LOADCHUNK" };

pub(crate) fn measure(
    options: &Options,
    programs: &Programs,
    modules: &[Module],
    rows: &mut Rows,
) -> Result<(), String> {
    let size = options.scaled(SIZE);
    let of = format!("of a filter of {} MB", size / 1_000_000);
    for module in modules {
        let server = &mut Server::start(programs, module)?;
        // As many keys as make it so large.
        server.ask::<String>("BF.RESERVE probe 0.01 1000000")?;
        let bytes: Vec<u64> = server.ask("BF.INFO probe SIZE")?;
        let keys = bytes.first().map_or(0, |&bytes| size * 1_000_000 / bytes.max(1));
        server.ask::<String>(&format!("BF.RESERVE filter 0.01 {keys}"))?;
        server.fill("BF.MADD filter", 0..options.scaled(TOUCHED))?;
        let ways = if server.knows(FILES.into)? { FILES } else { CHUNKS };
        let pieces = out(server, &ways)?;
        for round in 1..=options.rounds.min(5) {
            let mut watch = |server: &mut Server, name, command: &str, target, job: Work<'_>| {
                let (ping, longest) = watched(server, job)?;
                println!(
                    "  {:<10} {name}: PING {ping:.2} ms, command {longest:.2} ms",
                    server.name
                );
                for (what, value) in [("longest PING", ping), ("longest command", longest)] {
                    let name = format!("{what}: {name}");
                    let command = command.to_owned();
                    let subject = Subject { name, unit: "ms", target, command };
                    rows.add(&subject, &server.who(), round, value, None);
                }
                Ok::<_, String>(())
            };
            watch(server, "nothing".to_owned(), "", None, &|_| {
                thread::sleep(IDLE);
                Ok(())
            })?;
            watch(server, format!("export {of}"), ways.out, None, &|server| {
                out(server, &ways).map(|_| ())
            })?;
            watch(server, format!("import {of}"), ways.into, Some(MOST_MS), &|server| {
                pieces.iter().try_for_each(|(number, piece)| {
                    let line = format!("{} copy {number}", ways.into);
                    server.give::<redis::Value>(&line, piece).map(|_| ())
                })
            })?;
            if server.count("BF.MEXISTS copy", 0..10_000)? != 10_000 {
                return Err(format!("{}: the copy denies keys", server.name));
            }
            watch(server, format!("UNLINK {of}"), "UNLINK", Some(MOST_MS), &|server| {
                server.ask::<u64>("UNLINK copy")?;
                thread::sleep(IDLE);
                Ok(())
            })?;
        }
    }
    Ok(())
}

type Work<'a> = &'a dyn Fn(&mut Server) -> Result<(), String>;

/// A filter, in pieces of the size that the server likes.
fn out(server: &mut Server, ways: &Ways) -> Result<Pieces, String> {
    let mut pieces = Pieces::new();
    let mut number = 0;
    loop {
        let (next, piece): (u64, Vec<u8>) = server.ask(&format!("{} filter {number}", ways.out))?;
        // A file's piece goes in where it begins; a chunk with the number that came with it.
        let with = if ways.out == FILES.out { number } else { next };
        if !piece.is_empty() {
            pieces.push((with, piece));
        }
        if next == 0 {
            return Ok(pieces);
        }
        number = next;
    }
}

/// While something is done: the longest `PING` of another client and the server's longest command, in ms.
fn watched(server: &mut Server, work: Work<'_>) -> Result<(f64, f64), String> {
    let mut other = connect(server.port)?;
    server.ask::<String>("CONFIG SET slowlog-log-slower-than 200")?;
    server.ask::<String>("SLOWLOG RESET")?;
    let done = AtomicBool::new(false);
    let (worked, longest) = thread::scope(|scope| {
        let pings = scope.spawn(|| {
            let mut longest = Duration::ZERO;
            while !done.load(Ordering::Relaxed) {
                let begun = Instant::now();
                redis::cmd("PING").query::<String>(&mut other).map_err(|e| format!("PING: {e}"))?;
                longest = longest.max(begun.elapsed());
            }
            Ok::<_, String>(longest)
        });
        let worked = work(server);
        done.store(true, Ordering::Relaxed);
        (worked, pings.join())
    });
    worked?;
    let longest = longest.map_err(|_| "the client that asks PING has panicked")??;
    server.ask::<String>("CONFIG SET slowlog-log-slower-than -1")?;
    // Each has a number, a time and how many microseconds it took.
    let slow: Vec<Vec<redis::Value>> = server.ask("SLOWLOG GET 10000")?;
    let micros = slow.iter().map(|entry| match entry.get(2) {
        Some(redis::Value::Int(micros)) => *micros,
        _ => 0,
    });
    let command = micros.max().unwrap_or(0);
    Ok((longest.as_secs_f64() * 1e3, command as f64 / 1e3))
}
