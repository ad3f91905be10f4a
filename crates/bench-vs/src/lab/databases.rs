//! Rows in a database: SQLite in a file, and PostgreSQL on a server that is started for it.
//!
//! Both are set up for speed, but keep their rows when the process ends or is killed: write-ahead logs that are not
//! flushed at every commit, a cache of [`CACHE_MIB`], prepared statements. Many rows are inserted by one statement or
//! transaction, as a program that cares for speed does it, or one by one.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use postgres::{Client, NoTls, Statement};
use rusqlite::{Connection, OptionalExtension};
use tempfile::TempDir;

use super::SeenSet;

/// The cache of each database, in MiB.
pub const CACHE_MIB: u64 = 256;
/// The pages of SQLite's log before they are written into the table: 1 GiB. By default it is 4 MiB, and random keys
/// would write the same pages again and again.
const LOG_PAGES: u32 = 1 << 18;

/// The number of rows of one statement or transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// A batch.
    Many,
    /// One.
    One,
}

/// A table in a file.
pub struct Sqlite {
    // Dropped before the folder.
    connection: Connection,
    folder: TempDir,
    rows: Rows,
}

impl Sqlite {
    /// An empty table, in a new folder below `temp`.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn new(temp: &Path, rows: Rows) -> Result<Self, String> {
        let folder = tempfile::tempdir_in(temp).map_err(|e| format!("{}: {e}", temp.display()))?;
        let connection = Self::open(folder.path()).map_err(sqlite)?;
        connection
            .execute_batch("CREATE TABLE seen (url TEXT PRIMARY KEY) WITHOUT ROWID, STRICT")
            .map_err(sqlite)?;
        Ok(Self { connection, folder, rows })
    }

    fn open(folder: &Path) -> rusqlite::Result<Connection> {
        let connection = Connection::open(folder.join("seen.db"))?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.pragma_update(None, "cache_size", -(1024 * CACHE_MIB as i64))?;
        connection.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)?;
        Ok(connection)
    }

    fn each(&mut self, statement: &str, urls: &[&str], rows: Rows) -> Result<(), String> {
        let run = |connection: &mut Connection| -> rusqlite::Result<()> {
            if rows == Rows::One {
                let mut statement = connection.prepare_cached(statement)?;
                return urls.iter().try_for_each(|url| statement.execute([url]).map(drop));
            }
            let transaction = connection.transaction()?;
            {
                let mut statement = transaction.prepare_cached(statement)?;
                urls.iter().try_for_each(|url| statement.execute([url]).map(drop))?;
            }
            transaction.commit()
        };
        run(&mut self.connection).map_err(sqlite)
    }

    fn look_up(
        connection: &Connection,
        urls: &[&str],
        found: &mut Vec<bool>,
    ) -> rusqlite::Result<()> {
        let mut statement = connection.prepare_cached("SELECT 1 FROM seen WHERE url = ?")?;
        for url in urls {
            found.push(statement.query_row([url], |_| Ok(())).optional()?.is_some());
        }
        Ok(())
    }
}

fn sqlite(error: rusqlite::Error) -> String {
    format!("SQLite: {error}")
}

const INSERT: &str = "INSERT INTO seen VALUES (?) ON CONFLICT DO NOTHING";

impl SeenSet for Sqlite {
    fn insert(&mut self, urls: &[&str]) -> Result<(), String> {
        self.each(INSERT, urls, self.rows)
    }

    fn prefill(&mut self, urls: &[&str]) -> Result<(), String> {
        self.each(INSERT, urls, Rows::Many)
    }

    fn contains(&mut self, urls: &[&str], found: &mut Vec<bool>) -> Result<(), String> {
        let mut look_up = |connection: &mut Connection| -> rusqlite::Result<()> {
            if self.rows == Rows::One {
                return Self::look_up(connection, urls, found);
            }
            // One lock of the file for all of them.
            let transaction = connection.transaction()?;
            Self::look_up(&transaction, urls, found)?;
            transaction.commit()
        };
        look_up(&mut self.connection).map_err(sqlite)
    }

    fn remove(&mut self, urls: &[&str]) -> Result<bool, String> {
        self.each("DELETE FROM seen WHERE url = ?", urls, Rows::Many)?;
        Ok(true)
    }

    fn restart(&mut self) -> Result<bool, String> {
        // The old connection is closed first.
        self.connection = Connection::open_in_memory().map_err(sqlite)?;
        self.connection = Self::open(self.folder.path()).map_err(sqlite)?;
        Ok(true)
    }

    fn disk_bytes(&mut self) -> Result<u64, String> {
        // The log is written into the file.
        let truncate = "PRAGMA wal_checkpoint(TRUNCATE)";
        self.connection.query_row(truncate, [], |_| Ok(())).map_err(sqlite)?;
        allocated_bytes(self.folder.path()).map_err(|e| format!("SQLite's folder: {e}"))
    }
}

/// Returns the bytes that the files of a folder occupy.
fn allocated_bytes(folder: &Path) -> std::io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        bytes += entry?.metadata()?.blocks() * 512;
    }
    Ok(bytes)
}

/// A table on a server.
pub struct Postgres {
    // Dropped before the server.
    session: Session,
    server: Server,
    rows: Rows,
}

struct Session {
    client: Client,
    insert: Statement,
    insert_one: Statement,
    find: Statement,
    find_one: Statement,
    delete: Statement,
}

impl Session {
    fn open(server: &Server) -> Result<Self, postgres::Error> {
        let mut client = server.connect()?;
        // A statement looks up its rows by the index, also while the server knows nothing of the table's size.
        client.batch_execute(
            "CREATE TABLE IF NOT EXISTS seen (url text PRIMARY KEY);
             SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;
             SET plan_cache_mode = force_generic_plan",
        )?;
        let insert = "INSERT INTO seen SELECT * FROM unnest($1::text[]) ON CONFLICT DO NOTHING";
        let find = "SELECT place FROM unnest($1::text[]) WITH ORDINALITY AS asked (url, place) JOIN seen USING (url)";
        Ok(Self {
            insert: client.prepare(insert)?,
            insert_one: client.prepare("INSERT INTO seen VALUES ($1) ON CONFLICT DO NOTHING")?,
            find: client.prepare(find)?,
            find_one: client.prepare("SELECT FROM seen WHERE url = $1")?,
            delete: client.prepare("DELETE FROM seen WHERE url = ANY ($1::text[])")?,
            client,
        })
    }
}

fn postgres(error: postgres::Error) -> String {
    let cause =
        std::error::Error::source(&error).map_or(String::new(), |cause| format!(": {cause}"));
    format!("PostgreSQL: {error}{cause}")
}

impl Postgres {
    /// An empty table on a new server, whose files are below `temp`.
    ///
    /// # Errors
    /// If the server does not start.
    pub fn new(programs: &Path, temp: &Path, rows: Rows) -> Result<Self, String> {
        let server = Server::start(programs, temp)?;
        let session = Session::open(&server).map_err(postgres)?;
        Ok(Self { session, server, rows })
    }
}

impl SeenSet for Postgres {
    fn insert(&mut self, urls: &[&str]) -> Result<(), String> {
        let Session { client, insert_one, .. } = &mut self.session;
        match self.rows {
            Rows::Many => self.prefill(urls),
            Rows::One => urls
                .iter()
                .try_for_each(|url| client.execute(insert_one, &[url]).map(drop))
                .map_err(postgres),
        }
    }

    fn prefill(&mut self, urls: &[&str]) -> Result<(), String> {
        let Session { client, insert, .. } = &mut self.session;
        client.execute(insert, &[&urls]).map(drop).map_err(postgres)
    }

    fn contains(&mut self, urls: &[&str], found: &mut Vec<bool>) -> Result<(), String> {
        let Session { client, find, find_one, .. } = &mut self.session;
        if self.rows == Rows::One {
            for url in urls {
                found.push(client.query_opt(find_one, &[url]).map_err(postgres)?.is_some());
            }
            return Ok(());
        }
        let first = found.len();
        found.resize(first + urls.len(), false);
        for row in client.query(find, &[&urls]).map_err(postgres)? {
            let place: i64 = row.try_get(0).map_err(postgres)?;
            found[first + place as usize - 1] = true;
        }
        Ok(())
    }

    fn remove(&mut self, urls: &[&str]) -> Result<bool, String> {
        let Session { client, delete, .. } = &mut self.session;
        client.execute(delete, &[&urls]).map(|_| true).map_err(postgres)
    }

    fn restart(&mut self) -> Result<bool, String> {
        self.server.stop()?;
        self.server.run()?;
        self.session = Session::open(&self.server).map_err(postgres)?;
        Ok(true)
    }

    fn disk_bytes(&mut self) -> Result<u64, String> {
        let size = "SELECT pg_total_relation_size('seen')";
        let row = self.session.client.query_one(size, &[]).map_err(postgres)?;
        Ok(row.try_get::<_, i64>(0).map_err(postgres)? as u64)
    }
}

/// The user and the group that run a server which refuses root: those without rights of their own in Debian.
const UNPRIVILEGED: u32 = 65_534;

/// A PostgreSQL server on the loopback address, stopped and deleted when dropped.
struct Server {
    programs: PathBuf,
    folder: TempDir,
    port: u16,
    as_root: bool,
}

impl Server {
    /// Makes an empty cluster with the programs in the folder `programs`, and starts its server.
    fn start(programs: &Path, temp: &Path) -> Result<Self, String> {
        let io = |e: std::io::Error| format!("{}: {e}", temp.display());
        let folder = tempfile::tempdir_in(temp).map_err(io)?;
        let as_root = folder.path().metadata().map_err(io)?.uid() == 0;
        if as_root {
            chown(folder.path(), Some(UNPRIVILEGED), Some(UNPRIVILEGED)).map_err(io)?;
        }
        let listener = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let port = listener.map_err(|e| format!("no free port: {e}"))?.port();
        let server = Self { programs: programs.into(), folder, port, as_root };
        server.command(
            "initdb",
            &["--auth=trust", "--username=lab", "--no-locale", "--encoding=UTF8"],
        )?;
        server.run()?;
        Ok(server)
    }

    fn run(&self) -> Result<(), String> {
        let options = format!(
            "-h 127.0.0.1 -p {} -c unix_socket_directories='' -c shared_buffers={CACHE_MIB}MB -c synchronous_commit=off \
             -c max_wal_size=8GB -c checkpoint_timeout=1h -c jit=off -c autovacuum=off",
            self.port
        );
        let log = self.folder.path().join("log");
        self.command("pg_ctl", &["start", "-w", "-l", &log.to_string_lossy(), "-o", &options])
    }

    fn stop(&self) -> Result<(), String> {
        self.command("pg_ctl", &["stop", "-w", "-m", "fast"])
    }

    /// Runs a program of the server on its cluster, as an unprivileged user if this process is root's.
    fn command(&self, program: &str, args: &[&str]) -> Result<(), String> {
        let file = self.programs.join(program);
        let log = self.folder.path().join(format!("{program}.txt"));
        let io = |e: std::io::Error| format!("{}: {e}", file.display());
        let output = fs::File::create(&log).map_err(io)?;
        let mut command = Command::new(&file);
        command.arg("-D").arg(self.folder.path().join("data")).args(args);
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        // Not a pipe: the server would keep it open.
        command.stdout(output.try_clone().map_err(io)?).stderr(output);
        if let Some(libraries) = self.libraries() {
            command.env("LD_LIBRARY_PATH", libraries);
        }
        if self.as_root {
            command.uid(UNPRIVILEGED).gid(UNPRIVILEGED);
        }
        let status = command.status().map_err(io)?;
        if status.success() {
            return Ok(());
        }
        let said = fs::read_to_string(&log).unwrap_or_default();
        let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no message");
        Err(format!("PostgreSQL's {program} failed: {last}"))
    }

    /// The libraries beside programs that were unpacked from Debian's packages: `usr/lib/<machine>` beside
    /// `usr/lib/postgresql/15/bin`.
    fn libraries(&self) -> Option<PathBuf> {
        let usr_lib = self.programs.ancestors().nth(3)?;
        let folder = usr_lib.join(format!("{}-linux-gnu", std::env::consts::ARCH));
        (usr_lib != Path::new("/usr/lib") && folder.is_dir()).then_some(folder)
    }

    fn connect(&self) -> Result<Client, postgres::Error> {
        let port = self.port;
        Client::connect(&format!("host=127.0.0.1 port={port} user=lab dbname=postgres"), NoTls)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A server that has failed cannot be stopped; the folder is deleted all the same.
        let _ = self.stop();
    }
}

/// Returns the folder with PostgreSQL's programs: that of Debian's packages unpacked below `peers`
/// (`examples/database/install.sh`), or an installed one.
pub fn postgres_programs(peers: &Path) -> Option<PathBuf> {
    let unpacked = peers.join("debian/postgresql/usr/lib/postgresql");
    [unpacked, "/usr/lib/postgresql".into()].iter().find_map(|folder| {
        let versions = fs::read_dir(folder).ok()?;
        let mut found: Vec<PathBuf> =
            versions.filter_map(|entry| Some(entry.ok()?.path().join("bin"))).collect();
        found.retain(|bin| bin.join("initdb").exists());
        found.sort();
        found.pop()
    })
}
