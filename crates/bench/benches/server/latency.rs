//! Latency while a large filter is exported, imported or deleted: the longest `PING` of another client, and the
//! server's longest command by its own clock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::Args;
use crate::rows::{Figure, Rows};
use crate::server::{Module, Programs, Server, connect};

/// Bytes of the filter.
const SIZE: u64 = 600_000_000;
/// Keys inserted: enough to touch all pages of the filter.
const TOUCHED: u64 = 3_000_000;
const MAX_MS: f64 = 5.0;
/// Duration of the idle measurement, and of the wait for the server's thread that frees memory.
const IDLE: Duration = Duration::from_secs(2);

/// A filter as chunks, each with the number that belongs to it.
type Chunks = Vec<(u64, Vec<u8>)>;

/// The commands that export and import a filter.
struct Commands {
    export: &'static str,
    import: &'static str,
}

const FILES: Commands = Commands { export: "PETAL.EXPORT", import: "PETAL.IMPORT" };
const CHUNKS: Commands = Commands { export: "BF.SCANDUMP", import: "BF.LOADCHUNK" };

pub(crate) fn measure(
    args: &Args,
    programs: &Programs,
    modules: &[Module],
    rows: &mut Rows,
) -> Result<(), String> {
    let size = args.scaled(SIZE);
    let of = format!("of a filter of {} MB", size / 1_000_000);
    for module in modules {
        let server = &mut Server::start(programs, module)?;
        let commands = if server.has(FILES.import)? { FILES } else { CHUNKS };
        if !server.has(commands.import)? {
            println!("  left out: {} has no {}", server.name, commands.import);
            continue;
        }
        // The number of keys for this size.
        server.query::<String>("BF.RESERVE probe 0.01 1000000")?;
        let keys = size * 1_000_000 / server.number("BF.INFO probe SIZE")?.max(1);
        server.query::<String>(&format!("BF.RESERVE filter 0.01 {keys}"))?;
        server.fill("BF.MADD filter", 0..args.scaled(TOUCHED))?;
        let chunks = export(server, &commands)?;
        for round in 1..=args.rounds().min(5) {
            let mut measure = |server: &mut Server, name, command: &str, target, job: Work<'_>| {
                let (ping, longest) = latency(server, job)?;
                println!(
                    "  {:<12} {name}: PING {ping:.2} ms, command {longest:.2} ms",
                    server.name
                );
                for (what, value) in [("longest PING", ping), ("longest command", longest)] {
                    let name = format!("{what}: {name}");
                    let command = command.to_owned();
                    let figure = Figure { name, unit: "ms", target, command };
                    rows.add(&figure, &server.source(), round, value, None);
                }
                Ok::<_, String>(())
            };
            measure(server, "idle".to_owned(), "", None, &|_| {
                thread::sleep(IDLE);
                Ok(())
            })?;
            measure(server, format!("export {of}"), commands.export, None, &|server| {
                export(server, &commands).map(|_| ())
            })?;
            measure(server, format!("import {of}"), commands.import, Some(MAX_MS), &|server| {
                chunks.iter().try_for_each(|(number, chunk)| {
                    let line = format!("{} copy {number}", commands.import);
                    server.query_with::<redis::Value>(&line, chunk).map(|_| ())
                })
            })?;
            if server.count("BF.MEXISTS copy", 0..10_000)? != 10_000 {
                return Err(format!("{}: the copy has lost keys", server.name));
            }
            measure(server, format!("UNLINK {of}"), "UNLINK", Some(MAX_MS), &|server| {
                server.query::<u64>("UNLINK copy")?;
                thread::sleep(IDLE);
                Ok(())
            })?;
        }
    }
    Ok(())
}

type Work<'a> = &'a dyn Fn(&mut Server) -> Result<(), String>;

/// Exports a filter, in chunks of the server's size.
fn export(server: &mut Server, commands: &Commands) -> Result<Chunks, String> {
    let mut chunks = Chunks::new();
    let mut number = 0;
    loop {
        let (next, chunk): (u64, Vec<u8>) =
            server.query(&format!("{} filter {number}", commands.export))?;
        // PETAL.IMPORT takes the offset of a chunk, BF.LOADCHUNK the number that was returned with it.
        let number_in = if commands.export == FILES.export { number } else { next };
        if !chunk.is_empty() {
            chunks.push((number_in, chunk));
        }
        if next == 0 {
            return Ok(chunks);
        }
        number = next;
    }
}

/// Returns the longest `PING` of another client and the server's longest command, in ms, while `work` runs.
fn latency(server: &mut Server, work: Work<'_>) -> Result<(f64, f64), String> {
    let mut other = connect(server.port)?;
    server.query::<String>("CONFIG SET slowlog-log-slower-than 200")?;
    server.query::<String>("SLOWLOG RESET")?;
    let done = AtomicBool::new(false);
    let (worked, longest) = thread::scope(|scope| {
        let pings = scope.spawn(|| {
            let mut longest = Duration::ZERO;
            while !done.load(Ordering::Relaxed) {
                let start = Instant::now();
                redis::cmd("PING").query::<String>(&mut other).map_err(|e| format!("PING: {e}"))?;
                longest = longest.max(start.elapsed());
            }
            Ok::<_, String>(longest)
        });
        let worked = work(server);
        done.store(true, Ordering::Relaxed);
        (worked, pings.join())
    });
    worked?;
    let longest = longest.map_err(|_| "the client that sends PING has panicked")??;
    server.query::<String>("CONFIG SET slowlog-log-slower-than -1")?;
    // An entry has a number, a time and a duration in microseconds.
    let slow: Vec<Vec<redis::Value>> = server.query("SLOWLOG GET 10000")?;
    let micros = slow.iter().map(|entry| match entry.get(2) {
        Some(redis::Value::Int(micros)) => *micros,
        _ => 0,
    });
    let command = micros.max().unwrap_or(0);
    Ok((longest.as_secs_f64() * 1e3, command as f64 / 1e3))
}
