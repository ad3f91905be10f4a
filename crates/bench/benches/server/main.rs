//! `cargo x bench server`: petal's module on a real server, compared with RedisBloom and valkey-bloom if installed.
//!
//! Speed is **server CPU per request**, not requests per second: the CPU time of the server's main thread by the kernel's
//! count in ns, before and after a run of redis-benchmark, with the server on core 0 and the load on core 1. A run of `GET`
//! with the same pipeline on the same server precedes every run; read the ratio of the two, which disturbances affect
//! little. The `GET` is of a random key among 100,000 with values of 3 bytes: among a million keys a `GET` costs an eighth
//! more, and of one key half. Servers take turns within a round.
//!
//! The answers of the filters are checked before anything is timed, and every request of a run must be answered without
//! an error by the server's own count. Memory is that of `MEMORY USAGE` and `used_memory`. Latency is that of another
//! client that sends `PING` all the time, compared with the same client on an idle server; on a busy machine read the
//! server's own times of its longest command.
//!
//! The programs are those of `PETAL_PEERS` (`cargo x peers`) or of the path. RedisBloom is that of the peers, or the file
//! that `PETAL_REDISBLOOM` names; `PETAL_REDISBLOOM_8` and `PETAL_VALKEY_BLOOM` name the modules of Redis 8 and Valkey.
//! All modules run on the same kind of server, `--server`: one that it does not load is left out, with a note, as are
//! commands that a module does not have. The rows go to `results/<arch>-<cpu>/<date>-server.csv`.
#![allow(clippy::print_stdout, reason = "a command-line tool")]

mod growth;
mod latency;
mod load;
mod rivals;
mod rows;
mod server;
mod space;
mod speed;
mod windows;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use petal_bench::args;
use petal_bench::machine::Machine;
use petal_bench::paths::{dist, root};
use rows::Rows;
use server::{Module, Programs};

/// Measures petal's module on a server, compared with RedisBloom and valkey-bloom
#[derive(Parser)]
#[command(name = "cargo x bench server", bin_name = "cargo x bench server")]
pub(crate) struct Args {
    /// A tenth of the keys and few rounds: takes a minute, keeps no rows
    #[arg(long)]
    quick: bool,
    /// Parts to measure; all of them take 12 minutes and 3 GB
    #[arg(long, value_delimiter = ',', default_values = ["speed", "growth", "space", "waits", "windows"])]
    only: Vec<Part>,
    /// Rounds of speed and waits [default: 7; 2 with --quick]
    #[arg(long)]
    rounds: Option<usize>,
    /// The module to measure [default: target/dist/libpetal_redis.so]
    #[arg(long, value_name = "FILE")]
    module: Option<PathBuf>,
    /// The program that loads the modules: redis-server-8 and valkey-server-9 are peers, too
    #[arg(long, value_name = "PROGRAM", default_value = "redis-server")]
    server: String,
    /// Measure petal's module only
    #[arg(long)]
    no_rival: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Part {
    Speed,
    Growth,
    Space,
    Waits,
    Windows,
}

impl Args {
    /// Returns a number of keys, or a tenth of it with `--quick`.
    pub(crate) fn scaled(&self, keys: u64) -> u64 {
        if self.quick { keys / 10 } else { keys }
    }

    pub(crate) fn rounds(&self) -> usize {
        self.rounds.unwrap_or(if self.quick { 2 } else { 7 })
    }
}

fn main() -> ExitCode {
    args::main(|args: Args| run(&args))
}

fn run(args: &Args) -> Result<(), String> {
    let machine = Machine::read();
    let programs = Programs::find(&args.server);
    let file = args.module.as_ref();
    let file = file.map_or_else(|| dist("libpetal_redis.so"), |file| root().join(file));
    let mut modules = vec![Module { name: "petal", file }];
    if !args.no_rival {
        modules.extend(rivals::find(&programs));
    }
    println!("{}", machine.line());
    for part in &args.only {
        println!("\n{part:?}");
        let mut rows = Rows::default();
        match part {
            Part::Speed => speed::measure(args, &programs, &modules, &mut rows)?,
            Part::Growth => growth::measure(args, &programs, &modules, &mut rows)?,
            Part::Space => space::measure(args, &programs, &modules, &mut rows)?,
            Part::Waits => latency::measure(args, &programs, &modules, &mut rows)?,
            Part::Windows => windows::measure(args, &programs, &modules[0], &mut rows)?,
        }
        println!("\n{}", rows.table());
        if !args.quick {
            let file = machine.save("server", &rows.raw())?;
            println!("rows are in {}", file.display());
        }
    }
    Ok(())
}
