//! Servers: started on the first core, each with a module, asked and filled, gone when dropped.

use std::net::TcpListener;
use std::ops::Range;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use petal_bench::place::root;
use redis::{Connection, FromRedisValue, Value};

use crate::rows::Who;

/// Keys in a command that fills or asks, and such commands on their way at once.
const KEYS: u64 = 100;
const COMMANDS: u64 = 50;
/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(20);

/// A module that a server can load.
pub(crate) struct Module {
    pub(crate) name: &'static str,
    pub(crate) file: PathBuf,
}

/// The programs of a Redis.
pub(crate) struct Programs {
    folder: Option<PathBuf>,
}

impl Programs {
    pub(crate) fn find() -> Self {
        let peers = std::env::var_os("PETAL_PEERS");
        let folder = peers.map_or_else(|| root().join("target/peers"), PathBuf::from).join("bin");
        Self { folder: Some(folder).filter(|folder| folder.join("redis-server").exists()) }
    }

    /// A program, bound to a core.
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
    /// Starts it; nothing is saved.
    pub(crate) fn start(programs: &Programs, module: &Module) -> Result<Self, String> {
        let port = free_port()?;
        let mut command = programs.on_core(0, "redis-server");
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        command.args(["--appendonly", "no", "--enable-debug-command", "yes", "--dir"]);
        command.arg(std::env::temp_dir());
        command.arg("--loadmodule").arg(&module.file);
        let process = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| format!("cannot start redis-server under taskset: {e}"))?;
        // From here on it is stopped if anything fails.
        let mut process = Started(Some(process));
        let connection = connect(port)
            .map_err(|e| format!("no redis-server with {}: {e}", module.file.display()))?;
        let process = process.0.take().ok_or("no process")?;
        let mut server = Self {
            name: module.name,
            port,
            process,
            connection,
            module_version: String::new(),
            version: String::new(),
        };
        server.version = format!("redis {}", server.info("server", "redis_version")?);
        let modules = server.info("modules", "module")?;
        let version = modules.split(',').find_map(|field| field.strip_prefix("ver="));
        server.module_version = version.unwrap_or_default().to_owned();
        if server.info("server", "process_id")? != server.process.id().to_string() {
            return Err(format!("another server has taken port {port}"));
        }
        Ok(server)
    }

    pub(crate) fn who(&self) -> Who<'_> {
        Who { module: self.name, version: &self.module_version, server: &self.version }
    }

    /// Asks a command whose words have no blanks.
    pub(crate) fn ask<T: FromRedisValue>(&mut self, line: &str) -> Result<T, String> {
        let answer = words(line).query(&mut self.connection);
        answer.map_err(|e| format!("{}: {line}: {e}", self.name))
    }

    /// Asks a command that ends with bytes.
    pub(crate) fn give<T: FromRedisValue>(
        &mut self,
        line: &str,
        bytes: &[u8],
    ) -> Result<T, String> {
        let answer = words(line).arg(bytes).query(&mut self.connection);
        answer.map_err(|e| format!("{}: {line}: {e}", self.name))
    }

    /// A field of `INFO`; empty if it is not there.
    pub(crate) fn info(&mut self, section: &str, field: &str) -> Result<String, String> {
        let text: String = self.ask(&format!("INFO {section}"))?;
        let field = format!("{}:", field.to_ascii_lowercase());
        let line = text.lines().find(|line| line.to_ascii_lowercase().starts_with(&field));
        Ok(line.map(|line| line[field.len()..].trim().to_owned()).unwrap_or_default())
    }

    /// A field of `INFO memory`.
    pub(crate) fn used_memory(&mut self) -> Result<f64, String> {
        self.info("memory", "used_memory")?.parse().map_err(|e| format!("used_memory: {e}"))
    }

    /// Whether it has a command.
    pub(crate) fn knows(&mut self, command: &str) -> Result<bool, String> {
        let told: Vec<Value> = self.ask(&format!("COMMAND INFO {command}"))?;
        Ok(matches!(told.first(), Some(Value::Array(_))))
    }

    /// What its main thread has run so far, in ns.
    pub(crate) fn cpu(&self) -> Result<f64, String> {
        let file = format!("/proc/{}/schedstat", self.process.id());
        let text = std::fs::read_to_string(&file).map_err(|e| format!("{file}: {e}"))?;
        let first = text.split_whitespace().next().and_then(|number| number.parse().ok());
        first.ok_or_else(|| format!("{file}: {text}"))
    }

    /// Puts in keys `key:000000000000` onwards: `command` is all that comes before them.
    pub(crate) fn fill(&mut self, command: &str, keys: Range<u64>) -> Result<(), String> {
        self.many(command, keys).map(|_| ())
    }

    /// Of how many keys the answer is 1.
    pub(crate) fn count(&mut self, command: &str, keys: Range<u64>) -> Result<u64, String> {
        self.many(command, keys)
    }

    /// Asks a command for each of so many keys.
    pub(crate) fn each(&mut self, keys: u64, line: impl Fn(&str) -> String) -> Result<(), String> {
        let mut from = 0;
        while from < keys {
            let to = keys.min(from + COMMANDS);
            let mut pipe = redis::pipe();
            for key in from..to {
                pipe.add_command(words(&line(&format!("user:{key:07}"))));
            }
            pipe.query::<Value>(&mut self.connection).map_err(|e| format!("{}: {e}", self.name))?;
            from = to;
        }
        Ok(())
    }

    fn many(&mut self, command: &str, keys: Range<u64>) -> Result<u64, String> {
        let mut ones = 0;
        let mut from = keys.start;
        while from < keys.end {
            let mut pipe = redis::pipe();
            for _ in 0..COMMANDS {
                let to = keys.end.min(from + KEYS);
                if from == to {
                    break;
                }
                let mut words = words(command);
                (from..to).for_each(|key| {
                    words.arg(format!("key:{key:012}"));
                });
                pipe.add_command(words);
                from = to;
            }
            let answers: Vec<Vec<u64>> = pipe
                .query(&mut self.connection)
                .map_err(|e| format!("{}: {command}: {e}", self.name))?;
            ones += answers.iter().flatten().filter(|&&answer| answer == 1).count() as u64;
        }
        Ok(ones)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        stop(&mut self.process);
    }
}

fn words(line: &str) -> redis::Cmd {
    let mut command = redis::Cmd::new();
    line.split_whitespace().for_each(|word| {
        command.arg(word);
    });
    command
}

struct Started(Option<Child>);

impl Drop for Started {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(stop);
    }
}

/// Nothing of it is kept, so it need not be asked. One that is gone already is well, too.
fn stop(process: &mut Child) {
    let _ = process.kill();
    let _ = process.wait();
}

fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).and_then(|any| any.local_addr());
    listener.map(|address| address.port()).map_err(|e| format!("no free port: {e}"))
}

/// A connection, as soon as the server takes one.
pub(crate) fn connect(port: u16) -> Result<Connection, String> {
    let client = redis::Client::open(format!("redis://127.0.0.1:{port}/"));
    let client = client.map_err(|e| e.to_string())?;
    let begun = Instant::now();
    loop {
        match client.get_connection() {
            Ok(connection) => return Ok(connection),
            Err(problem) if begun.elapsed() > PATIENCE => return Err(problem.to_string()),
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}
