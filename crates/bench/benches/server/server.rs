//! Servers on the first core, each with a module. A server is stopped when it is dropped.

use std::net::TcpListener;
use std::ops::Range;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use petal_bench::paths::root;
use redis::{Connection, FromRedisValue, Value};

use crate::rows::Source;

/// Keys in a command that inserts or looks up, and commands in a pipeline.
const KEYS: u64 = 100;
const COMMANDS: u64 = 50;
/// Modules that are part of Redis 8 and Valkey 9.
const OWN: [&str; 2] = ["name=vectorset,", "name=lua,"];
/// Maximum time to start a server.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// A module that a server can load.
pub(crate) struct Module {
    pub(crate) name: &'static str,
    pub(crate) file: PathBuf,
}

/// The programs of Redis.
pub(crate) struct Programs {
    folder: Option<PathBuf>,
    server: String,
}

impl Programs {
    pub(crate) fn find(server: &str) -> Self {
        let peers = std::env::var_os("PETAL_PEERS");
        let folder = peers.map_or_else(|| root().join("target/peers"), PathBuf::from).join("bin");
        let folder = Some(folder).filter(|folder| folder.join("redis-server").exists());
        Self { folder, server: server.to_owned() }
    }

    /// Returns a command that is bound to a core.
    pub(crate) fn on_core(&self, core: u32, name: &str) -> Command {
        let mut command = Command::new("taskset");
        command.args(["-c", &core.to_string()]);
        match &self.folder {
            Some(folder) => command.arg(folder.join(name)),
            None => command.arg(name),
        };
        command
    }
}

/// A server and a connection to it.
pub(crate) struct Server {
    pub(crate) name: &'static str,
    pub(crate) port: u16,
    process: Child,
    connection: Connection,
    module_version: String,
    version: String,
}

impl Server {
    /// Starts a server without persistence.
    pub(crate) fn start(programs: &Programs, module: &Module) -> Result<Self, String> {
        let port = free_port()?;
        let mut command = programs.on_core(0, &programs.server);
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        command.args(["--appendonly", "no", "--enable-debug-command", "yes", "--dir"]);
        command.arg(std::env::temp_dir());
        command.arg("--loadmodule").arg(&module.file);
        let process = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| format!("cannot start {} under taskset: {e}", programs.server))?;
        // It is stopped if a later step fails.
        let mut process = Started(Some(process));
        let connection = connect_while(port, || process.is_running())
            .map_err(|e| format!("no {} with {}: {e}", programs.server, module.file.display()))?;
        let process = process.0.take().ok_or("no process")?;
        let mut server = Self {
            name: module.name,
            port,
            process,
            connection,
            module_version: String::new(),
            version: String::new(),
        };
        server.version = match server.info("server", "valkey_version")? {
            none if none.is_empty() => format!("redis {}", server.info("server", "redis_version")?),
            version => format!("valkey {version}"),
        };
        // Servers have modules of their own.
        let modules: String = server.query("INFO modules")?;
        let other =
            |line: &&str| line.starts_with("module:") && !OWN.iter().any(|own| line.contains(own));
        let module = modules.lines().find(other).unwrap_or_default();
        let version = module.split(',').find_map(|field| field.strip_prefix("ver="));
        server.module_version = version.unwrap_or_default().to_owned();
        if server.info("server", "process_id")? != server.process.id().to_string() {
            return Err(format!("another server has taken port {port}"));
        }
        Ok(server)
    }

    pub(crate) fn source(&self) -> Source<'_> {
        Source { module: self.name, version: &self.module_version, server: &self.version }
    }

    /// Runs a command whose arguments have no spaces.
    pub(crate) fn query<T: FromRedisValue>(&mut self, line: &str) -> Result<T, String> {
        let reply = command_of(line).query(&mut self.connection);
        reply.map_err(|e| format!("{}: {line}: {e}", self.name))
    }

    /// Runs a command whose last argument is `bytes`.
    pub(crate) fn query_with<T: FromRedisValue>(
        &mut self,
        line: &str,
        bytes: &[u8],
    ) -> Result<T, String> {
        let reply = command_of(line).arg(bytes).query(&mut self.connection);
        reply.map_err(|e| format!("{}: {line}: {e}", self.name))
    }

    /// Returns a field of `INFO`; empty if it does not exist.
    pub(crate) fn info(&mut self, section: &str, field: &str) -> Result<String, String> {
        let text: String = self.query(&format!("INFO {section}"))?;
        let field = format!("{}:", field.to_ascii_lowercase());
        let line = text.lines().find(|line| line.to_ascii_lowercase().starts_with(&field));
        Ok(line.map(|line| line[field.len()..].trim().to_owned()).unwrap_or_default())
    }

    /// Returns `used_memory` of `INFO memory`.
    pub(crate) fn used_memory(&mut self) -> Result<f64, String> {
        self.info("memory", "used_memory")?.parse().map_err(|e| format!("used_memory: {e}"))
    }

    /// Returns the number of a reply, or the first one of an array.
    pub(crate) fn number(&mut self, line: &str) -> Result<u64, String> {
        let mut reply = self.query::<Value>(line)?;
        if let Value::Array(items) = reply {
            reply = items.into_iter().next().unwrap_or(Value::Nil);
        }
        redis::from_redis_value(reply).map_err(|e| format!("{}: {line}: {e}", self.name))
    }

    /// Returns whether it has a command.
    pub(crate) fn has(&mut self, command: &str) -> Result<bool, String> {
        let info: Vec<Value> = self.query(&format!("COMMAND INFO {command}"))?;
        Ok(matches!(info.first(), Some(Value::Array(_))))
    }

    /// Returns the CPU time of its main thread, in ns.
    pub(crate) fn cpu(&self) -> Result<f64, String> {
        let file = format!("/proc/{}/schedstat", self.process.id());
        let text = std::fs::read_to_string(&file).map_err(|e| format!("{file}: {e}"))?;
        let first = text.split_whitespace().next().and_then(|number| number.parse().ok());
        first.ok_or_else(|| format!("{file}: {text}"))
    }

    /// Returns the CPU time of inserting keys with `command`, in ns: all in one command, or each in its own.
    pub(crate) fn cpu_of(&mut self, command: &str, keys: u64, single: bool) -> Result<f64, String> {
        let mut pipe = redis::pipe();
        let mut one = command_of(command);
        for key in 0..keys {
            one.arg(format!("key:{key:012}"));
            if single {
                pipe.add_command(std::mem::replace(&mut one, command_of(command)));
            }
        }
        if !single {
            pipe.add_command(one);
        }
        let before = self.cpu()?;
        let reply = pipe.query::<Value>(&mut self.connection);
        reply.map_err(|e| format!("{}: {command}: {e}", self.name))?;
        Ok(self.cpu()? - before)
    }

    /// Inserts keys `key:000000000000` onwards with `command`.
    pub(crate) fn fill(&mut self, command: &str, keys: Range<u64>) -> Result<(), String> {
        self.count(command, keys).map(|_| ())
    }

    /// Runs a command for each of `keys` keys.
    pub(crate) fn each(&mut self, keys: u64, line: impl Fn(&str) -> String) -> Result<(), String> {
        let mut from = 0;
        while from < keys {
            let to = keys.min(from + COMMANDS);
            let mut pipe = redis::pipe();
            for key in from..to {
                pipe.add_command(command_of(&line(&format!("user:{key:07}"))));
            }
            pipe.query::<Value>(&mut self.connection).map_err(|e| format!("{}: {e}", self.name))?;
            from = to;
        }
        Ok(())
    }

    /// Runs a command on keys and returns how many results are 1.
    pub(crate) fn count(&mut self, command: &str, keys: Range<u64>) -> Result<u64, String> {
        let mut ones = 0;
        let mut from = keys.start;
        while from < keys.end {
            let mut pipe = redis::pipe();
            for _ in 0..COMMANDS {
                let to = keys.end.min(from + KEYS);
                if from == to {
                    break;
                }
                let mut with_keys = command_of(command);
                (from..to).for_each(|key| {
                    with_keys.arg(format!("key:{key:012}"));
                });
                pipe.add_command(with_keys);
                from = to;
            }
            let replies: Vec<Vec<u64>> = pipe
                .query(&mut self.connection)
                .map_err(|e| format!("{}: {command}: {e}", self.name))?;
            ones += replies.iter().flatten().filter(|&&reply| reply == 1).count() as u64;
        }
        Ok(ones)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        stop(&mut self.process);
    }
}

/// Splits a command line at spaces.
fn command_of(line: &str) -> redis::Cmd {
    let mut command = redis::Cmd::new();
    line.split_whitespace().for_each(|argument| {
        command.arg(argument);
    });
    command
}

struct Started(Option<Child>);

impl Started {
    fn is_running(&mut self) -> bool {
        self.0.as_mut().is_some_and(|process| matches!(process.try_wait(), Ok(None)))
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(stop);
    }
}

/// Kills a process; it has nothing to save.
fn stop(process: &mut Child) {
    let _ = process.kill();
    let _ = process.wait();
}

fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).and_then(|any| any.local_addr());
    listener.map(|address| address.port()).map_err(|e| format!("no free port: {e}"))
}

/// Connects as soon as the server accepts connections.
pub(crate) fn connect(port: u16) -> Result<Connection, String> {
    connect_while(port, || true)
}

fn connect_while(port: u16, mut is_running: impl FnMut() -> bool) -> Result<Connection, String> {
    let client = redis::Client::open(format!("redis://127.0.0.1:{port}/"));
    let client = client.map_err(|e| e.to_string())?;
    let start = Instant::now();
    loop {
        match client.get_connection() {
            Ok(connection) => return Ok(connection),
            Err(_) if !is_running() => return Err("it ended at once".to_owned()),
            Err(problem) if start.elapsed() > START_TIMEOUT => return Err(problem.to_string()),
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}
