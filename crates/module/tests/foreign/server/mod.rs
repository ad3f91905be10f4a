//! Starts real servers, each on its own port and in its own folder. They end when dropped.
//!
//! The programs are in `PETAL_PEERS` (`cargo x test --foreign` installs them); `PETAL_VALKEY`
//! selects another server. The module is built by cargo with the tests.

mod client;
mod cluster;
mod resp;

use std::cell::RefCell;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use petal_testkit::scratch::Scratch;

pub(crate) use client::Client;
pub(crate) use cluster::{Cluster, slot};
pub(crate) use resp::{Reply, command};

/// Timeout for anything that is expected to happen.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

/// The module that a server loads.
#[derive(Clone)]
pub(crate) enum Module {
    Petal,
    /// petal's module in another file.
    File(PathBuf),
    RedisBloom(PathBuf),
}

/// Returns RedisBloom: the module in `PETAL_REDISBLOOM`, or that of the peers. `None` if they have
/// none for this machine.
pub(crate) fn redisbloom() -> Option<Module> {
    let named = std::env::var_os("PETAL_REDISBLOOM").map(PathBuf::from);
    let installed = || Some(program("redisbloom/redisbloom.so")).filter(|path| path.is_file());
    named.or_else(installed).map(Module::RedisBloom)
}

/// Returns the path of a program of the peers.
pub(crate) fn program(name: &str) -> PathBuf {
    let peers = std::env::var_os("PETAL_PEERS").expect("PETAL_PEERS: run cargo x test --foreign");
    PathBuf::from(peers).join(name)
}

/// Configuration of a server.
pub(crate) struct Setup {
    module: Module,
    module_args: Vec<String>,
    args: Vec<String>,
    files: Vec<(&'static str, Vec<u8>)>,
    memory: Option<u64>,
}

impl Setup {
    /// petal's module with its defaults, without persistence.
    pub(crate) fn new() -> Self {
        Self::with(Module::Petal)
    }

    pub(crate) fn with(module: Module) -> Self {
        Self { module, module_args: Vec::new(), args: Vec::new(), files: Vec::new(), memory: None }
    }

    /// New filters have RedisBloom's layout.
    pub(crate) fn redisbloom_layout() -> Self {
        Self::new().args("--petal.layout redisbloom")
    }

    /// Adds arguments of the module, after `--loadmodule PATH`.
    pub(crate) fn module_args(mut self, args: &str) -> Self {
        self.module_args.extend(args.split_whitespace().map(str::to_owned));
        self
    }

    /// Adds arguments of the server, such as `--appendonly yes`.
    pub(crate) fn args(mut self, args: &str) -> Self {
        self.args.extend(args.split_whitespace().map(str::to_owned));
        self
    }

    /// Adds a file to the server's folder.
    pub(crate) fn file(mut self, name: &'static str, bytes: Vec<u8>) -> Self {
        self.files.push((name, bytes));
        self
    }

    /// Limits the address space (`ulimit -v`).
    pub(crate) fn memory(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// Starts the server; panics if it does not start.
    pub(crate) fn start(self) -> Server {
        let mut server = self.prepare();
        server.start();
        server
    }

    /// Starts the server; returns its log if it does not start.
    pub(crate) fn try_start(self) -> Result<Server, String> {
        let mut server = self.prepare();
        server.port = free_port();
        match server.try_start() {
            Ok(()) => Ok(server),
            Err(_) => Err(server.log()),
        }
    }

    fn prepare(self) -> Server {
        let folder = Scratch::new();
        for (name, bytes) in &self.files {
            let path = folder.file(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        Server { setup: self, folder, port: 0, process: None, client: RefCell::new(None) }
    }

    fn command(&self, folder: &Scratch, port: u16) -> Command {
        let server = match std::env::var_os("PETAL_VALKEY") {
            Some(path) => path.into(),
            None => program("bin/redis-server"),
        };
        let mut command = match self.memory {
            None => Command::new(server),
            Some(bytes) => {
                let mut shell = Command::new("sh");
                let limit = format!("ulimit -v {} && exec \"$@\"", bytes / 1024);
                shell.args(["-c", &limit, "sh"]).arg(server);
                shell
            }
        };
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1"]);
        command.args([
            "--save",
            "",
            "--enable-debug-command",
            "yes",
            "--repl-diskless-sync-delay",
            "0",
        ]);
        command.arg("--dir").arg(folder.path()).args(&self.args);
        let module = match &self.module {
            Module::Petal => petal(),
            Module::File(path) | Module::RedisBloom(path) => path.clone(),
        };
        command.arg("--loadmodule").arg(module).args(&self.module_args);
        command
    }
}

/// Returns the module that cargo built, beside the test program; `PETAL_MODULE` selects another
/// build.
pub(crate) fn petal() -> PathBuf {
    if let Some(path) = std::env::var_os("PETAL_MODULE") {
        return path.into();
    }
    std::env::current_exe().unwrap().with_file_name("libpetal_redis.so")
}

/// A running server.
pub(crate) struct Server {
    setup: Setup,
    folder: Scratch,
    port: u16,
    process: Option<Child>,
    client: RefCell<Option<Client>>,
}

impl Server {
    /// Starts an empty server with petal's module.
    pub(crate) fn new() -> Self {
        Setup::new().start()
    }

    /// Starts a server whose new filters have RedisBloom's layout.
    pub(crate) fn redisbloom_layout() -> Self {
        Setup::redisbloom_layout().start()
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn folder(&self) -> &Scratch {
        &self.folder
    }

    /// Opens a new connection.
    pub(crate) fn client(&self) -> Client {
        Client::connect(self.port).unwrap()
    }

    /// Sends a command whose arguments contain no spaces, on the shared connection.
    #[track_caller]
    pub(crate) fn call(&self, line: &str) -> Reply {
        self.call_args(&line.split_whitespace().collect::<Vec<_>>())
    }

    /// Sends a command of arbitrary bytes.
    #[track_caller]
    pub(crate) fn call_args<W: AsRef<[u8]>>(&self, args: &[W]) -> Reply {
        self.client.borrow_mut().as_mut().expect("the server is running").call_args(args)
    }

    /// Returns the digest of all keys.
    #[track_caller]
    pub(crate) fn digest(&self) -> String {
        self.call("DEBUG DIGEST").text()
    }

    /// Returns a field of INFO.
    #[track_caller]
    pub(crate) fn info(&self, name: &str) -> String {
        let info = self.call("INFO everything").text();
        let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap_or_else(|| panic!("no {name} in INFO")).to_owned()
    }

    /// Returns whether the server replies.
    #[track_caller]
    pub(crate) fn is_alive(&self) -> bool {
        Client::connect(self.port).is_ok_and(|mut client| client.try_call(&["PING"]).is_ok())
    }

    /// Kills the server.
    pub(crate) fn kill(&mut self) {
        self.client.replace(None);
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Starts the server again in the same folder and on the same port.
    pub(crate) fn start(&mut self) {
        assert!(self.process.is_none());
        let again = self.port != 0;
        for attempt in 0..5 {
            if !again {
                self.port = free_port();
            }
            match self.try_start() {
                Ok(()) => return,
                Err(why) if attempt == 4 => panic!("{why}\n{}", self.log()),
                Err(_) => self.kill(),
            }
        }
    }

    /// Saves all data as configured, and restarts the server.
    pub(crate) fn restart(&mut self) {
        let saves = self.info("aof_enabled") == "0";
        let command = if saves { "SHUTDOWN SAVE" } else { "SHUTDOWN" };
        let args: Vec<_> = command.split(' ').collect();
        let mut client = self.client.take().unwrap();
        assert!(client.try_call(&args).is_err(), "{command}");
        let status = self.process.take().unwrap().wait().unwrap();
        assert!(status.success(), "{command}: {status}\n{}", self.log());
        self.start();
    }

    /// Returns the log.
    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.folder.file("log")).unwrap_or_default()).into()
    }

    /// Makes this a replica, and waits until it is synchronized.
    pub(crate) fn replicate_from(&self, master: &Self) {
        self.call(&format!("REPLICAOF 127.0.0.1 {}", master.port)).ok();
        self.wait_for_sync(master);
    }

    /// Waits until this replica has its master's offset.
    pub(crate) fn wait_for_sync(&self, master: &Self) {
        wait_until("the replica is synchronized", || {
            self.info("master_link_status") == "up"
                && self.info("slave_repl_offset") == master.info("master_repl_offset")
        });
    }

    fn try_start(&mut self) -> Result<(), String> {
        let log = std::fs::File::options().create(true).append(true).open(self.folder.file("log"));
        let log = log.unwrap();
        let mut command = self.setup.command(&self.folder, self.port);
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let process = self.process.insert(command.spawn().unwrap());
        let end = Instant::now() + TIMEOUT;
        loop {
            if let Some(status) = process.try_wait().unwrap() {
                return Err(format!("the server exited at its start: {status}"));
            }
            if let Ok(mut client) = Client::connect(self.port) {
                // While the server loads its files, it replies with an error.
                if client.try_call(&["PING"]).is_ok_and(|reply| !reply.is_error()) {
                    self.client.replace(Some(client));
                    return Ok(());
                }
            }
            if Instant::now() > end {
                return Err("the server did not reply".into());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.log();
            let tail: Vec<_> = log.lines().rev().take(60).collect();
            println!("log of the server on port {}:", self.port);
            tail.iter().rev().for_each(|line| println!("    {line}"));
        }
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Waits until a condition holds; panics after a timeout.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + TIMEOUT;
    while !holds() {
        assert!(Instant::now() < end, "timeout: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Returns a free port whose cluster port (10000 above) is free too. Both are below the range of
/// outgoing connections.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = (std::process::id() % 9000) as u16;
    let free = |port: u16| std::net::TcpListener::bind(("127.0.0.1", port)).is_ok();
    loop {
        let port = 12_000 + (first + NEXT.fetch_add(1, Ordering::Relaxed)) % 10_000;
        if free(port) && free(port + 10_000) {
            return port;
        }
    }
}
