//! A run of redis-benchmark, and the CPU time of the server.

use std::process::Stdio;

use crate::server::{Programs, Server};

/// Keys for `GET`, all present.
const GET_KEYS: u64 = 100_000;
const GET_REQUESTS: u64 = 200_000;
const CONNECTIONS: &str = "20";

/// Requests of a run.
pub(crate) struct Load<'a> {
    /// The command, without its keys.
    pub(crate) command: &'a str,
    /// Number of keys in a command, each drawn at random, with replacement, from `range` keys.
    pub(crate) keys: usize,
    pub(crate) range: u64,
    pub(crate) pipeline: u32,
    pub(crate) requests: u64,
}

impl Load<'_> {
    /// The `GET` that other commands are compared with.
    pub(crate) fn get(pipeline: u32) -> Self {
        Self { command: "GET", keys: 1, range: GET_KEYS, pipeline, requests: GET_REQUESTS }
    }

    /// Returns the CPU time of the server's main thread per request, in ns.
    pub(crate) fn run(&self, programs: &Programs, server: &mut Server) -> Result<f64, String> {
        let mut command = programs.on_core(1, "redis-benchmark");
        command.args(["-p", &server.port.to_string(), "-c", CONNECTIONS, "-q"]);
        command.args(["-n", &self.requests.to_string(), "-P", &self.pipeline.to_string()]);
        command.args(["-r", &self.range.to_string()]);
        command.args(self.command.split_whitespace());
        command.args(std::iter::repeat_n("key:__rand_int__", self.keys));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        server.query::<String>("CONFIG RESETSTAT")?;
        let before = server.cpu()?;
        let status = command.status().map_err(|e| format!("cannot run redis-benchmark: {e}"))?;
        let after = server.cpu()?;
        let name = self.command.split_whitespace().next().unwrap_or_default();
        let stats = server.info("commandstats", &format!("cmdstat_{name}"))?;
        let number = |name: &str| {
            let mut fields = stats.split(',').filter_map(|field| field.split_once('='));
            fields.find(|(field, _)| *field == name)?.1.parse::<u64>().ok()
        };
        let no_errors = number("failed_calls") == Some(0) && number("rejected_calls") == Some(0);
        match number("calls").filter(|&calls| calls >= self.requests) {
            Some(calls) if no_errors && status.success() => Ok((after - before) / calls as f64),
            _ => Err(format!(
                "{}: not all requests of {} were answered: {status}, {stats}",
                server.name, self.command
            )),
        }
    }
}

/// Sets the keys of [`Load::get`].
pub(crate) fn prepare(server: &mut Server) -> Result<(), String> {
    for key in 0..GET_KEYS {
        server.query::<String>(&format!("SET key:{key:012} xxx"))?;
    }
    Ok(())
}
