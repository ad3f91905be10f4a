//! `petal`: approximate set membership and exact set operations on line files.
//!
//! [`args`] defines the command line, [`commands`] run the libraries, [`files`] open filters and
//! outputs, [`html`] has the pages of `--html`, [`terminal`] shows progress, [`text`] formats and parses numbers, [`error`] has the
//! error messages and the exit code, [`process`] has signals and the allocator.

mod args;
mod commands;
mod error;
mod files;
mod html;
mod process;
mod terminal;
mod text;

use std::process::ExitCode;

fn main() -> ExitCode {
    process::memory::tune_malloc();
    let args = match args::parse() {
        Ok(args) => args,
        Err(code) => return code,
    };
    process::signal::handle();
    error::exit_code(commands::run(args))
}
