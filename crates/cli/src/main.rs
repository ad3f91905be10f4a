//! `petal`: approximate set membership and exact set operations on line files.
//!
//! The program is thin: [`args`] turns words into values, [`commands`] do the work with the
//! libraries, [`exit`] turns what came of it into an exit code and one line on stderr.

mod args;
mod closed;
mod commands;
mod exit;
mod filter_file;
mod foreign_file;
mod lock;
mod memory;
mod output;
mod plot;
mod progress;
mod signal;
mod text;

use std::process::ExitCode;

fn main() -> ExitCode {
    memory::give_back();
    let args = match args::parse() {
        Ok(args) => args,
        Err(code) => return code,
    };
    signal::handle();
    exit::code(commands::run(args))
}
