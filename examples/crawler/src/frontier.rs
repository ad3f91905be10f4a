//! The frontier: the URLs that were found, in one queue for each origin (scheme, host and port), on disk.
//!
//! A queue is a file to which each new URL is appended as a line `DEPTH URL`; it is read from front to back. Nothing is
//! removed, so that a queue is also the log from which the visited set is completed after a crash. In memory are, for
//! each origin, two positions and the next few lines.
//!
//! `positions.txt` has for each queue how far it was *finished* and how *long* it was at the last snapshot, when the
//! visited set had all URLs up to that length. A crawl that is started again
//! 1. inserts the URLs after that length into the visited set: nothing that was found is lost or found twice;
//! 2. continues at the finished position: the pages that were fetched after the snapshot are fetched again, and with
//!    them the links that the crash kept from being written.
//!
//! A line that was cut by the crash, and everything after it, is removed: a page that is fetched again has the link.

use std::collections::{HashMap, VecDeque};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use url::Url;

/// Bytes of a queue that are read at once.
const READ_BYTES: u64 = 16 << 10;

/// A URL to fetch.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) url: Url,
    /// The number of links from a start page.
    pub(crate) depth: u32,
    /// The position in the queue after its line.
    end: u64,
}

#[derive(Debug)]
struct Queue {
    /// The name of the file, made from the origin.
    name: String,
    file: File,
    length: u64,
    finished: u64,
    read: u64,
    ahead: VecDeque<Item>,
    unwritten: Vec<u8>,
}

/// All queues.
#[derive(Debug)]
pub(crate) struct Frontier {
    folder: PathBuf,
    queues: Vec<Queue>,
    by_name: HashMap<String, usize>,
}

impl Frontier {
    /// Opens or makes the queues of a folder. `found` is called with each URL after the last snapshot, with all URLs if
    /// `from_start` is true.
    pub(crate) fn open(
        folder: &Path,
        from_start: bool,
        mut found: impl FnMut(&str) -> Result<(), String>,
    ) -> Result<Self, String> {
        let queues = folder.join("queues");
        fs::create_dir_all(&queues)
            .map_err(|e| format!("cannot make {}: {e}", queues.display()))?;
        let positions = read_positions(&folder.join("positions.txt"))?;
        let mut frontier =
            Self { folder: folder.to_owned(), queues: Vec::new(), by_name: HashMap::new() };
        let list = fs::read_dir(&queues).map_err(|e| format!("{}: {e}", queues.display()))?;
        let mut names: Vec<String> =
            list.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        names.sort();
        if let Some(gone) = positions.keys().find(|name| !names.contains(name)) {
            let file = queues.join(gone);
            return Err(format!(
                "{}: missing, but named in positions.txt; {ADVICE}",
                file.display()
            ));
        }
        for name in names {
            let at = frontier.queue(&name)?;
            let (queue, file) = (&mut frontier.queues[at], queues.join(&name));
            let (finished, length) = positions.get(&name).copied().unwrap_or_default();
            if queue.length < length || finished > length {
                let is = queue.length;
                return Err(format!(
                    "{}: {is} bytes, expected at least {length}, as positions.txt says; {ADVICE}",
                    file.display()
                ));
            }
            let from = if from_start { 0 } else { length };
            queue.recover(from, &mut found).map_err(|e| format!("{}: {e}", file.display()))?;
            queue.finished = finished.min(queue.length);
            queue.read = queue.finished;
        }
        Ok(frontier)
    }

    /// Returns true if an earlier run finished URLs.
    pub(crate) fn is_continued(&self) -> bool {
        self.queues.iter().any(|queue| queue.finished > 0)
    }

    /// Returns the number of the queue for a URL, which is made if it does not exist.
    pub(crate) fn queue_of(&mut self, url: &Url) -> Result<usize, String> {
        self.queue(&queue_name(url))
    }

    fn queue(&mut self, name: &str) -> Result<usize, String> {
        if let Some(&at) = self.by_name.get(name) {
            return Ok(at);
        }
        let path = self.folder.join("queues").join(name);
        let file = File::options().create(true).read(true).append(true).open(&path);
        let file = file.map_err(|e| format!("cannot open {}: {e}", path.display()))?;
        let length = file.metadata().map_err(|e| format!("{}: {e}", path.display()))?.len();
        let (ahead, unwritten) = Default::default();
        self.queues.push(Queue {
            name: name.into(),
            file,
            length,
            finished: 0,
            read: 0,
            ahead,
            unwritten,
        });
        self.by_name.insert(name.into(), self.queues.len() - 1);
        Ok(self.queues.len() - 1)
    }

    /// Returns the number of queues.
    pub(crate) fn len(&self) -> usize {
        self.queues.len()
    }

    /// Appends a URL to a queue. [`write`](Self::write) writes it.
    pub(crate) fn push(&mut self, queue: usize, url: &Url, depth: u32) {
        self.queues[queue].unwritten.extend_from_slice(format!("{depth} {url}\n").as_bytes());
    }

    /// Writes what was pushed. It then survives the end of the process.
    pub(crate) fn write(&mut self) -> Result<(), String> {
        for queue in self.queues.iter_mut().filter(|queue| !queue.unwritten.is_empty()) {
            queue
                .file
                .write_all(&queue.unwritten)
                .map_err(|e| format!("cannot write queue {}: {e}", queue.name))?;
            queue.length += queue.unwritten.len() as u64;
            queue.unwritten.clear();
        }
        Ok(())
    }

    /// Returns the first URL of a queue that is not finished.
    pub(crate) fn first(&mut self, queue: usize) -> Result<Option<Item>, String> {
        let queue = &mut self.queues[queue];
        if queue.ahead.is_empty() {
            queue.read_ahead().map_err(|e| format!("cannot read queue {}: {e}", queue.name))?;
        }
        Ok(queue.ahead.front().cloned())
    }

    /// Removes the first URL of a queue: it was fetched, and its links were written.
    pub(crate) fn finish(&mut self, queue: usize) {
        let queue = &mut self.queues[queue];
        if let Some(item) = queue.ahead.pop_front() {
            queue.finished = item.end;
        }
    }

    /// Writes the queues to the disk: then they also survive a power cut.
    pub(crate) fn sync(&mut self) -> Result<(), String> {
        self.write()?;
        for queue in &self.queues {
            queue
                .file
                .sync_data()
                .map_err(|e| format!("cannot write queue {}: {e}", queue.name))?;
        }
        Ok(())
    }

    /// Saves the positions. The queues must be on the disk, and the visited set must have all their URLs.
    pub(crate) fn save_positions(&self) -> Result<(), String> {
        let line = |queue: &Queue| format!("{} {} {}\n", queue.finished, queue.length, queue.name);
        let text: String = self.queues.iter().map(line).collect();
        let (new, path) = (self.folder.join("positions.new"), self.folder.join("positions.txt"));
        let write = || {
            let mut file = File::create(&new)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&new, &path)?;
            File::open(&self.folder)?.sync_all()
        };
        write().map_err(|e: io::Error| format!("cannot write {}: {e}", path.display()))
    }
}

impl Queue {
    /// Checks the lines from a position on, calls `found` with each URL, and removes what follows the last good line.
    fn recover(
        &mut self,
        from: u64,
        found: &mut impl FnMut(&str) -> Result<(), String>,
    ) -> Result<(), String> {
        self.file.seek(SeekFrom::Start(from)).map_err(|e| e.to_string())?;
        let (mut lines, mut good, mut line) = (BufReader::new(&self.file), from, Vec::new());
        loop {
            line.clear();
            let bytes = lines.read_until(b'\n', &mut line).map_err(|e| e.to_string())?;
            let Some((_, url)) = parse(&line).filter(|(_, url)| queue_name(url) == self.name)
            else {
                break;
            };
            found(url.as_str())?;
            good += bytes as u64;
        }
        if good < self.length {
            self.file.set_len(good).map_err(|e| e.to_string())?;
            self.length = good;
        }
        Ok(())
    }

    fn read_ahead(&mut self) -> io::Result<()> {
        let bytes = READ_BYTES.min(self.length - self.read);
        let mut text = vec![0; bytes as usize];
        self.file.seek(SeekFrom::Start(self.read))?;
        self.file.read_exact(&mut text)?;
        for line in text.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"))
        {
            self.read += line.len() as u64;
            let (depth, url) = parse(line).ok_or_else(|| {
                io::Error::other(format!("no URL before position {}; {ADVICE}", self.read))
            })?;
            self.ahead.push_back(Item { url, depth, end: self.read });
        }
        Ok(())
    }
}

const ADVICE: &str = "was it changed? To start again, delete the folder";

/// Returns the name of the file: the parts of the origin, with a character between them that hosts do not have.
fn queue_name(url: &Url) -> String {
    let (host, port) =
        (url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or_default());
    format!("{}@{host}@{port}", url.scheme())
}

/// Parses a line of a queue; `None` if it is not complete.
fn parse(line: &[u8]) -> Option<(u32, Url)> {
    let (depth, url) = std::str::from_utf8(line.strip_suffix(b"\n")?).ok()?.split_once(' ')?;
    Some((depth.parse().ok()?, Url::parse(url).ok()?))
}

fn read_positions(path: &Path) -> Result<HashMap<String, (u64, u64)>, String> {
    let text = match fs::read_to_string(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(HashMap::new()),
        text => text.map_err(|e| format!("{}: {e}", path.display()))?,
    };
    let parse = |line: &str| {
        let mut fields = line.split(' ');
        let (finished, length) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        Some((fields.next()?.to_owned(), (finished, length)))
    };
    let lines = text.lines().enumerate().map(|(at, line)| {
        let expected = "expected: FINISHED LENGTH QUEUE";
        parse(line).ok_or_else(|| {
            format!("{}:{}: found {line:?}, {expected}; {ADVICE}", path.display(), at + 1)
        })
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn reopen(folder: &Path) -> (Frontier, Vec<String>) {
        let mut found = Vec::new();
        let frontier = Frontier::open(folder, false, |url| {
            found.push(url.to_owned());
            Ok(())
        });
        (frontier.unwrap(), found)
    }

    fn next(frontier: &mut Frontier, queue: usize) -> Option<String> {
        frontier.first(queue).unwrap().map(|item| item.url.into())
    }

    #[test]
    fn queues_are_first_in_first_out_for_each_origin() {
        let folder = tempfile::tempdir().unwrap();
        let (mut frontier, _) = reopen(folder.path());
        // More than fits into one read.
        let urls: Vec<Url> =
            (0..2000).map(|n| url(&format!("http://h{}.example/{n}", n % 3))).collect();
        for url in &urls {
            let queue = frontier.queue_of(url).unwrap();
            frontier.push(queue, url, 1);
        }
        frontier.write().unwrap();
        for url in &urls {
            let queue = frontier.queue_of(url).unwrap();
            assert_eq!(next(&mut frontier, queue).as_deref(), Some(url.as_str()));
            frontier.finish(queue);
        }
        assert_eq!((frontier.len(), next(&mut frontier, 0)), (3, None));
    }

    #[test]
    fn crash_keeps_found_urls_and_repeats_pages_since_the_snapshot() {
        let folder = tempfile::tempdir().unwrap();
        let (mut frontier, _) = reopen(folder.path());
        let urls: Vec<Url> = (0..6).map(|n| url(&format!("http://a.example/{n}"))).collect();
        let queue = frontier.queue_of(&urls[0]).unwrap();
        for url in &urls[..4] {
            frontier.push(queue, url, 0);
        }
        frontier.write().unwrap();
        let _ = frontier.first(queue).unwrap();
        frontier.finish(queue);
        frontier.sync().unwrap();
        frontier.save_positions().unwrap();
        assert!(frontier.is_continued());
        frontier.finish(queue);
        for url in &urls[4..] {
            frontier.push(queue, url, 0);
        }
        frontier.write().unwrap();
        drop(frontier);

        // The last write is cut at every position.
        let file = folder.path().join("queues/http@a.example@80");
        let text = fs::read(&file).unwrap();
        let line = "0 http://a.example/0\n".len();
        for cut in 0..=2 * line {
            fs::write(&file, &text[..text.len() - cut]).unwrap();
            let (mut frontier, found) = reopen(folder.path());
            let whole = if cut == 0 { 2 } else { usize::from(cut <= line) };
            assert_eq!(
                found,
                urls[4..4 + whole].iter().map(Url::as_str).collect::<Vec<_>>(),
                "{cut}"
            );
            let queue = frontier.queue_of(&urls[0]).unwrap();
            for url in &urls[1..4 + whole] {
                assert_eq!(next(&mut frontier, queue).as_deref(), Some(url.as_str()), "{cut}");
                frontier.finish(queue);
            }
            assert_eq!(next(&mut frontier, queue), None);
        }
    }

    #[test]
    fn changed_files_are_errors_that_name_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let (mut frontier, _) = reopen(folder.path());
        let a = url("http://a.example/");
        let queue = frontier.queue_of(&a).unwrap();
        frontier.push(queue, &a, 0);
        frontier.sync().unwrap();
        frontier.save_positions().unwrap();
        let file = folder.path().join("queues/http@a.example@80");
        let open = || Frontier::open(folder.path(), false, |_| Ok(())).unwrap_err();

        fs::write(&file, "").unwrap();
        assert!(open().contains("http@a.example@80: 0 bytes, expected at least 20"), "{}", open());
        fs::remove_file(&file).unwrap();
        assert!(open().contains("http@a.example@80: missing"), "{}", open());
        fs::write(folder.path().join("positions.txt"), "x\n").unwrap();
        assert!(open().contains("positions.txt:1: found \"x\", expected"), "{}", open());
    }
}
