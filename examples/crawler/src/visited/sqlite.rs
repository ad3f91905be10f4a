//! A visited set on disk: a table of SQLite.

use std::path::Path;

use rusqlite::Connection;

use super::Visited;

/// A table whose primary key is the URL, with one transaction for each page.
pub(crate) struct Table {
    database: Connection,
    is_open: bool,
}

impl Table {
    pub(crate) fn open(folder: &Path) -> Result<(Box<Self>, bool), String> {
        let file = folder.join("visited.sqlite");
        let new = !file.exists();
        let setup = "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
                     CREATE TABLE IF NOT EXISTS visited (url TEXT PRIMARY KEY) WITHOUT ROWID;";
        let database = Connection::open(&file)
            .and_then(|database| database.execute_batch(setup).map(|()| database))
            .map_err(|e| format!("{}: {e}", file.display()))?;
        Ok((Box::new(Self { database, is_open: false }), new))
    }
}

impl Visited for Table {
    fn insert(&mut self, url: &str) -> Result<bool, String> {
        let insert = || -> rusqlite::Result<bool> {
            if !self.is_open {
                self.database.prepare_cached("BEGIN")?.execute([])?;
            }
            let mut insert =
                self.database.prepare_cached("INSERT OR IGNORE INTO visited VALUES (?1)")?;
            Ok(insert.execute([url])? == 1)
        };
        let new = insert().map_err(|e| format!("visited.sqlite: {e}"))?;
        self.is_open = true;
        Ok(new)
    }

    fn commit(&mut self) -> Result<(), String> {
        if std::mem::take(&mut self.is_open) {
            let commit =
                self.database.prepare_cached("COMMIT").and_then(|mut commit| commit.execute([]));
            commit.map_err(|e| format!("visited.sqlite: {e}"))?;
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        let pages = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()";
        self.database.query_row(pages, [], |row| row.get::<_, i64>(0)).map_or(0, i64::unsigned_abs)
    }
}
