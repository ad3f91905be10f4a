//! `cargo x bench server`: petal's module on a real Redis server, beside RedisBloom where that is at hand.
//!
//! Speed is **server CPU per request**, not requests per second: what the server's main thread has run, by the kernel's
//! count in ns, before and after a run of redis-benchmark; the server on core 0, the load on core 1. A run of `GET` at
//! the same pipeline on the same server comes right before every run, and the ratio of the two is what is to be read:
//! what disturbs one disturbs both. The `GET` is of a random key of 100,000 that are there, with values of 3 bytes: among
//! a million keys a `GET` costs an eighth more, and of one key over and over half. Servers take turns within a round.
//!
//! Before anything is timed the filters must answer right; every run must have been answered, each command without an
//! error, by the server's own count. Memory is what `MEMORY USAGE` and `used_memory` tell. Waits are those of another
//! client that asks `PING` all the time, beside those of the same client while nothing happens; on a busy machine
//! read the server's own times of its longest command.
//!
//! The programs are those of `PETAL_PEERS` (`cargo x peers`), or else of the path; RedisBloom is that of the
//! peers, or the file that `PETAL_REDISBLOOM` names. A command that a module does not have is left out, with a note. The raw rows go to
//! `results/<arch>-<cpu>/<date>-server.csv`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

mod load;
mod rows;
mod server;
mod space;
mod speed;
mod waits;
mod windows;

use std::path::PathBuf;
use std::process::ExitCode;

use petal_bench::machine::Machine;
use petal_bench::place::root;
use rows::{HEADER, Rows};
use server::{Module, Programs};

const USAGE: &str = "\
usage: cargo x bench server [--quick] [--only PARTS] [--rounds N] [--module FILE] [--no-rival]

  --quick        a tenth of the keys and few rounds: shows in a minute that it works, keeps no rows
  --only PARTS   of speed,space,waits,windows (default: all: 12 minutes, 3 GB)
  --rounds N     rounds of speed and waits (default 7; 2 with --quick)
  --module FILE  the module to measure (default: target/release/libpetal_redis.so)
  --no-rival     petal's module only
";

const PARTS: [&str; 4] = ["speed", "space", "waits", "windows"];

/// What was asked for.
pub(crate) struct Options {
    pub(crate) quick: bool,
    pub(crate) rounds: usize,
    only: Vec<String>,
    module: PathBuf,
    rival: bool,
}

impl Options {
    /// A number of keys, or a tenth of it.
    pub(crate) fn scaled(&self, keys: u64) -> u64 {
        if self.quick { keys / 10 } else { keys }
    }
}

fn main() -> ExitCode {
    // `cargo bench` adds `--bench` to what it is given.
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    if args.iter().any(|arg| arg == "--help") {
        print!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    match options(&args).and_then(|options| bench(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("server: {problem}");
            ExitCode::from(1)
        }
    }
}

fn options(args: &[String]) -> Result<Options, String> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from);
    let mut rounds = None;
    let mut options = Options {
        quick: false,
        rounds: 0,
        only: PARTS.map(str::to_owned).to_vec(),
        module: root().join(target).join("release/libpetal_redis.so"),
        rival: true,
    };
    let mut args = args.iter();
    while let Some(name) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{name} wants a value (see --help)"));
        match name.as_str() {
            "--quick" => options.quick = true,
            "--no-rival" => options.rival = false,
            "--module" => options.module = root().join(value()?),
            "--rounds" => {
                let text = value()?;
                let number = text.parse().ok().filter(|&rounds: &usize| rounds > 0);
                rounds = Some(number.ok_or_else(|| format!("not a number from 1: {text}"))?);
            }
            "--only" => {
                options.only = value()?.split(',').map(str::to_owned).collect();
                if let Some(other) = options.only.iter().find(|part| !PARTS.contains(&&***part)) {
                    return Err(format!("no such part: {other} (see --help)"));
                }
            }
            _ => return Err(format!("not understood: {name} (see --help)")),
        }
    }
    options.rounds = rounds.unwrap_or(if options.quick { 2 } else { 7 });
    Ok(options)
}

fn bench(options: &Options) -> Result<(), String> {
    let machine = Machine::read();
    let programs = Programs::find();
    let mut modules = vec![Module { name: "petal", file: options.module.clone() }];
    let named = std::env::var_os("PETAL_REDISBLOOM");
    let installed = || {
        let path = PathBuf::from(std::env::var_os("PETAL_PEERS")?).join("redisbloom/redisbloom.so");
        path.is_file().then(|| path.into_os_string())
    };
    match named.or_else(installed).filter(|_| options.rival) {
        Some(file) => modules.push(Module { name: "RedisBloom", file: file.into() }),
        None => println!("left out: RedisBloom (PETAL_REDISBLOOM names its module)"),
    }
    println!("{}", machine.line());
    for part in &options.only {
        println!("\n{part}");
        let mut rows = Rows::default();
        match part.as_str() {
            "speed" => speed::measure(options, &programs, &modules, &mut rows)?,
            "space" => space::measure(options, &programs, &modules, &mut rows)?,
            "waits" => waits::measure(options, &programs, &modules, &mut rows)?,
            _ => windows::measure(options, &programs, &modules[0], &mut rows)?,
        }
        println!("\n{}", rows.table());
        if !options.quick {
            let file = machine.save("server", &HEADER, &rows.raw(&machine))?;
            println!("rows are in {}", file.display());
        }
    }
    Ok(())
}
