//! Real servers for tests: started on a port of their own, in a folder of their own, gone when dropped.
//!
//! The programs are those of `PETAL_PEERS` (`cargo x test --foreign` installs them), or the valkey-server that
//! `PETAL_VALKEY` names. The module is the one that cargo builds with these tests.

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

/// How long anything may take that is expected to happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// What a server loads.
#[derive(Clone)]
pub(crate) enum Module {
    Petal,
    RedisBloom(PathBuf),
}

/// RedisBloom: the module that `PETAL_REDISBLOOM` names, or that of the peers; `None` if they have
/// none for this machine.
pub(crate) fn redisbloom() -> Option<Module> {
    let named = std::env::var_os("PETAL_REDISBLOOM").map(PathBuf::from);
    let installed = || Some(program("redisbloom/redisbloom.so")).filter(|path| path.is_file());
    named.or_else(installed).map(Module::RedisBloom)
}

/// A program of the peers.
pub(crate) fn program(name: &str) -> PathBuf {
    let peers = std::env::var_os("PETAL_PEERS").expect("PETAL_PEERS: run cargo x test --foreign");
    PathBuf::from(peers).join(name)
}

/// How a server is to be.
pub(crate) struct Setup {
    module: Module,
    module_words: Vec<String>,
    words: Vec<String>,
    files: Vec<(&'static str, Vec<u8>)>,
    memory: Option<u64>,
}

impl Setup {
    /// petal's module with its defaults; nothing is saved unless asked for.
    pub(crate) fn new() -> Self {
        Self::with(Module::Petal)
    }

    pub(crate) fn with(module: Module) -> Self {
        Self {
            module,
            module_words: Vec::new(),
            words: Vec::new(),
            files: Vec::new(),
            memory: None,
        }
    }

    /// New filters have RedisBloom's layout.
    pub(crate) fn compat() -> Self {
        Self::new().words("--petal.layout redisbloom")
    }

    /// Words for the module, as after `--loadmodule PATH`.
    pub(crate) fn module_words(mut self, words: &str) -> Self {
        self.module_words.extend(words.split_whitespace().map(str::to_owned));
        self
    }

    /// More words for the server, such as `--appendonly yes`.
    pub(crate) fn words(mut self, words: &str) -> Self {
        self.words.extend(words.split_whitespace().map(str::to_owned));
        self
    }

    /// A file that lies in its folder before it starts.
    pub(crate) fn file(mut self, name: &'static str, bytes: Vec<u8>) -> Self {
        self.files.push((name, bytes));
        self
    }

    /// No more address space than this (`ulimit -v`).
    pub(crate) fn memory(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// Starts it; it must start.
    pub(crate) fn start(self) -> Server {
        let mut server = self.laid_out();
        server.start();
        server
    }

    /// Starts it if it does; its log otherwise.
    pub(crate) fn try_start(self) -> Result<Server, String> {
        let mut server = self.laid_out();
        server.port = free_port();
        match server.try_start() {
            Ok(()) => Ok(server),
            Err(_) => Err(server.log()),
        }
    }

    fn laid_out(self) -> Server {
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
        command.arg("--dir").arg(folder.path()).args(&self.words);
        let module = match &self.module {
            Module::Petal => petal(),
            Module::RedisBloom(path) => path.clone(),
        };
        command.arg("--loadmodule").arg(module).args(&self.module_words);
        command
    }
}

/// The module as cargo built it for these tests: it lies beside the test program. `PETAL_MODULE` names another, such as
/// that of a release.
fn petal() -> PathBuf {
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
    /// A server with petal's module and nothing in it.
    pub(crate) fn new() -> Self {
        Setup::new().start()
    }

    /// A server whose new filters have RedisBloom's layout.
    pub(crate) fn compat() -> Self {
        Setup::compat().start()
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn folder(&self) -> &Scratch {
        &self.folder
    }

    /// A connection of its own.
    pub(crate) fn client(&self) -> Client {
        Client::connect(self.port).unwrap()
    }

    /// Asks a command whose words have no blanks, on the connection that all of these share.
    #[track_caller]
    pub(crate) fn ask(&self, line: &str) -> Reply {
        self.ask_words(&line.split_whitespace().collect::<Vec<_>>())
    }

    /// Asks a command of any bytes.
    #[track_caller]
    pub(crate) fn ask_words<W: AsRef<[u8]>>(&self, words: &[W]) -> Reply {
        self.client.borrow_mut().as_mut().expect("a server that runs").ask_words(words)
    }

    /// The digest of all keys.
    #[track_caller]
    pub(crate) fn digest(&self) -> String {
        self.ask("DEBUG DIGEST").text()
    }

    /// A line of INFO.
    #[track_caller]
    pub(crate) fn info(&self, name: &str) -> String {
        let info = self.ask("INFO everything").text();
        let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap_or_else(|| panic!("no {name} in INFO")).to_owned()
    }

    /// Whether it still answers.
    #[track_caller]
    pub(crate) fn is_alive(&self) -> bool {
        Client::connect(self.port).is_ok_and(|mut client| client.try_words(&["PING"]).is_ok())
    }

    /// Ends it as a crash would.
    pub(crate) fn kill(&mut self) {
        self.client.replace(None);
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Starts it again in the same folder and on the same port.
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

    /// Saves everything as its configuration says, ends and starts it.
    pub(crate) fn restart(&mut self) {
        let saves = self.info("aof_enabled") == "0";
        let command = if saves { "SHUTDOWN SAVE" } else { "SHUTDOWN" };
        let words: Vec<_> = command.split(' ').collect();
        let mut client = self.client.take().unwrap();
        assert!(client.try_words(&words).is_err(), "{command}");
        let status = self.process.take().unwrap().wait().unwrap();
        assert!(status.success(), "{command}: {status}\n{}", self.log());
        self.start();
    }

    /// What it said so far.
    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.folder.file("log")).unwrap_or_default()).into()
    }

    /// Makes it a replica, and waits until it has all that the master has.
    pub(crate) fn follow(&self, master: &Self) {
        self.ask(&format!("REPLICAOF 127.0.0.1 {}", master.port)).ok();
        self.wait_for(master);
    }

    /// Waits until this replica is in step with its master.
    pub(crate) fn wait_for(&self, master: &Self) {
        until("the replica is in step", || {
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
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = process.try_wait().unwrap() {
                return Err(format!("the server ended at its start: {status}"));
            }
            if let Ok(mut client) = Client::connect(self.port) {
                // While it loads its files it answers with an error.
                if client.try_words(&["PING"]).is_ok_and(|reply| !reply.is_error()) {
                    self.client.replace(Some(client));
                    return Ok(());
                }
            }
            if Instant::now() > end {
                return Err("the server did not answer".into());
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
            println!("the log of the server at port {}:", self.port);
            tail.iter().rev().for_each(|line| println!("    {line}"));
        }
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Waits until something holds; a test that waits in vain fails.
#[track_caller]
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A port that nobody has, nor the one 10000 above it, where a cluster talks. Both lie below those
/// that the system gives to outgoing connections.
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
