//! The crawl: threads that fetch the pages of different hosts, one request at a time for each host.
//!
//! All decisions are made while one lock is held; requests and parsing are not. For each page: its new links are
//! written to their queues, then the page is finished. A kill at any moment therefore repeats pages and loses none.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use robotxt::{AccessResult, Robots};
use url::Url;

use crate::canonical::Rules;
use crate::fetch::{Fetch, Response};
use crate::frontier::{Frontier, Item};
use crate::links::links;
use crate::visited::{self, Kind, Visited};

/// Attempts to fetch a page.
const ATTEMPTS: u32 = 3;

/// What a crawl does.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) folder: PathBuf,
    pub(crate) visited: Kind,
    pub(crate) capacity: u64,
    pub(crate) fpr: f64,
    pub(crate) rules: Rules,
    /// The least time between the end of a request and the start of the next one to the same host.
    pub(crate) delay: Duration,
    /// The time before a failed request is repeated; doubled each time.
    pub(crate) retry_after: Duration,
    pub(crate) threads: usize,
    /// The name that robots.txt files know the crawler by.
    pub(crate) robot: String,
    /// Pages between two snapshots.
    pub(crate) snapshot: u64,
    pub(crate) max_pages: u64,
    /// False to end as a killed crawl does.
    pub(crate) save_at_end: bool,
}

/// What a run did.
#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    /// URLs fetched, with those that failed or were redirects.
    pub(crate) fetched: u64,
    pub(crate) failed: u64,
    /// URLs that robots.txt forbids.
    pub(crate) forbidden: u64,
    /// Links to web pages, to hosts of the crawl, and near enough: those looked up in the visited set.
    pub(crate) links: u64,
    /// Those that were new.
    pub(crate) new: u64,
    /// Links that were farther from the start than the limit.
    pub(crate) too_far: u64,
    /// Time spent in the visited set.
    pub(crate) visited_time: Duration,
    pub(crate) visited_bytes: u64,
    pub(crate) snapshots: u64,
    /// URLs that were inserted into the visited set again at the start.
    pub(crate) recovered: u64,
    /// True if an earlier run fetched URLs that this run did not fetch again.
    pub(crate) is_continued: bool,
}

struct Host {
    robots: Option<Arc<Robots>>,
    attempts: u32,
    /// In the schedule, or being fetched.
    is_busy: bool,
    /// The earliest start of the next request.
    next: Instant,
}

struct State {
    frontier: Frontier,
    visited: Box<dyn Visited>,
    hosts: Vec<Host>,
    /// The hosts that have URLs and no request, by the time of their next request.
    schedule: BinaryHeap<Reverse<(Instant, usize)>>,
    requests: usize,
    since_snapshot: u64,
    report: Report,
    error: Option<String>,
}

/// A crawl of one folder.
pub(crate) struct Crawl<'a> {
    settings: &'a Settings,
    fetch: &'a dyn Fetch,
    /// Links to other hosts are not followed.
    hosts: HashSet<String>,
    state: Mutex<State>,
    changed: Condvar,
    /// Locked: a folder is for one process.
    _lock: File,
}

/// What a thread does next.
enum Task {
    Robots(usize, Url),
    Page(usize, Item),
    End,
}

impl<'a> Crawl<'a> {
    /// Opens the folder, with what an earlier run left in it, and adds the start pages.
    pub(crate) fn open(
        settings: &'a Settings,
        starts: &[Url],
        fetch: &'a dyn Fetch,
    ) -> Result<Self, String> {
        let folder = &settings.folder;
        fs::create_dir_all(folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
        let lock = lock(&folder.join("lock"))?;
        let (mut visited, is_empty) =
            visited::open(settings.visited, folder, settings.capacity, settings.fpr)?;
        let mut report = Report::default();
        let mut frontier = Frontier::open(folder, is_empty, |url| {
            report.recovered += 1;
            visited.insert(url).map(drop)
        })?;
        report.is_continued = frontier.is_continued();
        for url in starts {
            if visited.insert(url.as_str())? {
                let queue = frontier.queue_of(url)?;
                frontier.push(queue, url, 0);
            }
        }
        frontier.write()?;
        visited.commit()?;
        let mut state = State {
            hosts: Vec::new(),
            schedule: BinaryHeap::new(),
            requests: 0,
            since_snapshot: 0,
            error: None,
            frontier,
            visited,
            report,
        };
        state.schedule_hosts()?;
        Ok(Self {
            settings,
            fetch,
            hosts: starts.iter().filter_map(|url| Some(url.host_str()?.to_owned())).collect(),
            state: Mutex::new(state),
            changed: Condvar::new(),
            _lock: lock,
        })
    }

    /// Fetches all pages.
    pub(crate) fn run(self) -> Result<Report, String> {
        std::thread::scope(|scope| {
            for _ in 0..self.settings.threads {
                scope.spawn(|| {
                    let outcome = self.work();
                    let mut state = self.lock();
                    if let Err(error) = outcome {
                        state.error.get_or_insert(error);
                    }
                    self.changed.notify_all();
                });
            }
        });
        let mut state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        match state.error.take() {
            Some(error) => return Err(error),
            None if self.settings.save_at_end => state.snapshot()?,
            None => {}
        }
        state.report.visited_bytes = state.visited.bytes();
        Ok(state.report)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) -> Result<(), String> {
        loop {
            match self.next()? {
                Task::End => return Ok(()),
                Task::Robots(host, page) => self.fetch_robots(host, &page)?,
                Task::Page(host, item) => self.fetch_page(host, &item)?,
            }
        }
    }

    /// Waits for the time of the next request.
    fn next(&self) -> Result<Task, String> {
        let mut state = self.lock();
        loop {
            let started = state.report.fetched + state.requests as u64;
            if state.error.is_some() || started >= self.settings.max_pages {
                return Ok(Task::End);
            }
            let now = Instant::now();
            match state.schedule.peek().map(|Reverse((at, _))| *at) {
                Some(at) if at > now => {
                    let waited = self.changed.wait_timeout(state, at - now);
                    state = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                Some(_) => {
                    if let Some(task) = state.take()? {
                        return Ok(task);
                    }
                }
                None if state.requests == 0 => return Ok(Task::End),
                None => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    fn fetch_robots(&self, host: usize, page: &Url) -> Result<(), String> {
        let robot = self.settings.robot.as_str();
        let mut url = page.clone();
        url.set_path("/robots.txt");
        url.set_query(None);
        // RFC 9309: five redirects, also to other hosts. All is allowed if there is no file, nothing if the server fails.
        let mut robots = Robots::allow_all();
        for _ in 0..=5 {
            match self.fetch.fetch(&url) {
                Response::Page(text) => {
                    robots = Robots::from_access(AccessResult::Successful(&text), robot)
                }
                Response::Nothing => {}
                Response::Failed(_) => {
                    robots = Robots::from_access(AccessResult::Unreachable, robot)
                }
                Response::Redirect(link) => {
                    if let Ok(target) = url.join(&link) {
                        url = target;
                        continue;
                    }
                }
            }
            break;
        }
        let mut state = self.lock();
        state.hosts[host].robots = Some(Arc::new(robots));
        state.end_request(host, self.settings.delay);
        state.schedule_host(host)?;
        self.changed.notify_all();
        Ok(())
    }

    fn fetch_page(&self, host: usize, item: &Item) -> Result<(), String> {
        let response = self.fetch.fetch(&item.url);
        let rules = &self.settings.rules;
        let found: Vec<Url> = match &response {
            Response::Page(html) => {
                let (base, links) = links(html, &item.url);
                links.iter().filter_map(|link| rules.canonical(&base, link)).collect()
            }
            Response::Redirect(link) => rules.canonical(&item.url, link).into_iter().collect(),
            Response::Nothing | Response::Failed(_) => Vec::new(),
        };
        let found = found
            .into_iter()
            .filter(|url| url.host_str().is_some_and(|host| self.hosts.contains(host)));
        let (near, far): (Vec<Url>, Vec<Url>) =
            found.partition(|url| rules.is_near_enough(url, item.depth + 1));

        let mut state = self.lock();
        let state = &mut *state;
        state.end_request(host, self.settings.delay);
        if let Response::Failed(reason) = response {
            state.hosts[host].attempts += 1;
            let attempts = state.hosts[host].attempts;
            if attempts < ATTEMPTS {
                let wait = self.settings.retry_after * 2_u32.pow(attempts - 1);
                let next = state.hosts[host].next.max(Instant::now() + wait);
                state.hosts[host].next = next;
                state.schedule_host(host)?;
                self.changed.notify_all();
                return Ok(());
            }
            state.report.failed += 1;
            self.log_failure(&item.url, &reason)?;
        }
        state.hosts[host].attempts = 0;
        state.report.fetched += 1;
        state.report.too_far += far.len() as u64;
        state.add(&near, item.depth + 1)?;
        state.frontier.finish(host);
        state.schedule_hosts()?;
        state.since_snapshot += 1;
        if state.since_snapshot >= self.settings.snapshot {
            state.snapshot()?;
        }
        self.changed.notify_all();
        Ok(())
    }

    fn log_failure(&self, url: &Url, reason: &str) -> Result<(), String> {
        let path = self.settings.folder.join("failed.txt");
        File::options()
            .create(true)
            .append(true)
            .open(&path)
            .and_then(|mut file| writeln!(file, "{url} {reason}"))
            .map_err(|e| format!("cannot write {}: {e}", path.display()))
    }
}

impl State {
    /// Takes the next host from the schedule. `None` if all that is left of it is forbidden.
    fn take(&mut self) -> Result<Option<Task>, String> {
        let Some(Reverse((_, host))) = self.schedule.pop() else {
            return Ok(None);
        };
        while let Some(item) = self.frontier.first(host)? {
            let robots = self.hosts[host].robots.clone();
            if robots.as_ref().is_some_and(|robots| !robots.is_url_allowed(&item.url)) {
                self.report.forbidden += 1;
                self.frontier.finish(host);
                continue;
            }
            self.requests += 1;
            return Ok(Some(match robots {
                Some(_) => Task::Page(host, item),
                None => Task::Robots(host, item.url),
            }));
        }
        self.hosts[host].is_busy = false;
        Ok(None)
    }

    /// The delay begins at the end of a request, so that a slow server has a rest, too.
    fn end_request(&mut self, host: usize, delay: Duration) {
        self.requests -= 1;
        let host = &mut self.hosts[host];
        let own = host.robots.as_ref().and_then(|robots| robots.crawl_delay());
        host.next = Instant::now() + delay.max(own.unwrap_or_default());
        host.is_busy = false;
    }

    /// Adds the URLs that are new to their queues.
    fn add(&mut self, urls: &[Url], depth: u32) -> Result<(), String> {
        let start = Instant::now();
        let mut new = Vec::with_capacity(urls.len());
        for url in urls {
            new.push(self.visited.insert(url.as_str())?);
        }
        let mut time = start.elapsed();
        for (url, _) in urls.iter().zip(&new).filter(|(_, new)| **new) {
            let queue = self.frontier.queue_of(url)?;
            self.frontier.push(queue, url, depth);
        }
        self.frontier.write()?;
        let start = Instant::now();
        self.visited.commit()?;
        time += start.elapsed();
        self.report.visited_time += time;
        self.report.links += urls.len() as u64;
        self.report.new += new.iter().filter(|new| **new).count() as u64;
        Ok(())
    }

    fn schedule_hosts(&mut self) -> Result<(), String> {
        (0..self.frontier.len()).try_for_each(|host| self.schedule_host(host))
    }

    /// Puts a host into the schedule if it has URLs and is not busy.
    fn schedule_host(&mut self, host: usize) -> Result<(), String> {
        while self.hosts.len() <= host {
            self.hosts.push(Host {
                robots: None,
                attempts: 0,
                is_busy: false,
                next: Instant::now(),
            });
        }
        if !self.hosts[host].is_busy && self.frontier.first(host)?.is_some() {
            self.hosts[host].is_busy = true;
            self.schedule.push(Reverse((self.hosts[host].next, host)));
        }
        Ok(())
    }

    /// Saves the crawl, in an order in which a crash between two steps is harmless: the saved set never has a URL that
    /// is not in a queue on the disk, and the positions never exceed what the saved set has.
    fn snapshot(&mut self) -> Result<(), String> {
        self.frontier.sync()?;
        self.visited.save()?;
        self.frontier.save_positions()?;
        self.since_snapshot = 0;
        self.report.snapshots += 1;
        Ok(())
    }
}

fn lock(path: &Path) -> Result<File, String> {
    let file = File::create(path).map_err(|e| format!("cannot open {}: {e}", path.display()))?;
    file.try_lock().map_err(|_| {
        format!("{}: another crawl uses this folder; wait for its end", path.display())
    })?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::atomic::{AtomicU64, Ordering};

    use clap::ValueEnum;

    use super::*;

    /// A site in memory: page n of `pages` links to 2n+1, 2n+2, 0 and a page before it.
    struct Site {
        pages: u64,
        fetched: Mutex<HashMap<String, u64>>,
        failures: AtomicU64,
    }

    impl Site {
        fn new(pages: u64) -> Self {
            Self { pages, fetched: Mutex::default(), failures: AtomicU64::new(0) }
        }

        fn counts(&self) -> HashMap<String, u64> {
            self.fetched.lock().unwrap().clone()
        }
    }

    impl Fetch for Site {
        fn fetch(&self, url: &Url) -> Response {
            if url.path() == "/robots.txt" {
                return Response::Page(b"User-agent: *\nDisallow: /private".to_vec());
            }
            if self
                .failures
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1))
                .is_ok()
            {
                return Response::Failed("status 503".into());
            }
            *self.fetched.lock().unwrap().entry(url.to_string()).or_default() += 1;
            let n: u64 = url.path()[1..].parse().unwrap_or(0);
            let links = [2 * n + 1, 2 * n + 2, n / 3].into_iter().filter(|n| *n < self.pages);
            let link = |n| format!("<a href='http://h{}.example/{n}?sid={n}#x'>", n % 3);
            let html: String = links.map(link).collect();
            Response::Page(
                (html + "<a href='/private'><a href='http://other.example/'>").into_bytes(),
            )
        }
    }

    fn settings(folder: &Path, visited: Kind) -> Settings {
        Settings {
            folder: folder.to_owned(),
            visited,
            capacity: 1000,
            fpr: 1e-9,
            rules: Rules { strip: vec!["sid".into()], max_depth: 50, max_depth_of: Vec::new() },
            delay: Duration::ZERO,
            retry_after: Duration::from_millis(1),
            threads: 3,
            robot: "petal-example".into(),
            snapshot: 50,
            max_pages: u64::MAX,
            save_at_end: true,
        }
    }

    fn starts() -> Vec<Url> {
        (0..3).map(|n| Url::parse(&format!("http://h{n}.example/{n}")).unwrap()).collect()
    }

    fn crawl(settings: &Settings, site: &Site) -> Report {
        Crawl::open(settings, &starts(), site).unwrap().run().unwrap()
    }

    #[test]
    fn each_page_is_fetched_once() {
        for &kind in Kind::value_variants() {
            let folder = tempfile::tempdir().unwrap();
            let site = Site::new(1000);
            let report = crawl(&settings(folder.path(), kind), &site);
            let counts = site.counts();
            assert_eq!(counts.len(), 1000, "{kind:?}");
            assert!(counts.values().all(|count| *count == 1), "{kind:?}");
            assert!(!counts.keys().any(|url| url.contains("private") || url.contains("other")));
            assert_eq!((report.fetched, report.forbidden, report.failed), (1000, 3, 0), "{kind:?}");
        }
    }

    #[test]
    fn killed_crawl_loses_no_page_and_repeats_those_since_the_snapshot() {
        for &kind in Kind::value_variants() {
            for stop in [0, 1, 2, 49, 50, 51, 333, 999] {
                let folder = tempfile::tempdir().unwrap();
                let site = Site::new(1000);
                let mut settings = settings(folder.path(), kind);
                (settings.max_pages, settings.save_at_end) = (stop, false);
                crawl(&settings, &site);
                // The last writes of the queues were cut, at most at the positions of the snapshot.
                let saved = read_lengths(folder.path());
                for entry in fs::read_dir(folder.path().join("queues")).unwrap() {
                    let path = entry.unwrap().path();
                    let length = fs::metadata(&path).unwrap().len();
                    let least = saved
                        .get(path.file_name().unwrap().to_str().unwrap())
                        .copied()
                        .unwrap_or(0);
                    // SQLite has what was written before the kill; only the last line can be cut.
                    let cut = if kind.name() == "SQLite" {
                        0
                    } else {
                        (stop * 7 % 40).min(length - least)
                    };
                    File::options().write(true).open(&path).unwrap().set_len(length - cut).unwrap();
                }
                settings.max_pages = u64::MAX;
                crawl(&settings, &site);
                let counts = site.counts();
                assert_eq!(counts.len(), 1000, "{kind:?}, stopped after {stop}");
                let repeated = counts.values().sum::<u64>() - 1000;
                assert!(
                    repeated <= stop % 50,
                    "{kind:?}, stopped after {stop}: {repeated} repeated"
                );
            }
        }
    }

    fn read_lengths(folder: &Path) -> HashMap<String, u64> {
        let text = fs::read_to_string(folder.join("positions.txt")).unwrap_or_default();
        let fields = text.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        fields.map(|fields| (fields[2].to_owned(), fields[1].parse().unwrap())).collect()
    }

    #[test]
    fn finished_crawl_fetches_nothing_when_started_again() {
        let folder = tempfile::tempdir().unwrap();
        let (site, settings) = (Site::new(100), settings(folder.path(), Kind::Petal));
        crawl(&settings, &site);
        let report = crawl(&settings, &site);
        assert_eq!((report.fetched, report.recovered), (0, 0));
    }

    #[test]
    fn failed_requests_are_repeated() {
        let folder = tempfile::tempdir().unwrap();
        let (site, mut settings) = (Site::new(100), settings(folder.path(), Kind::Petal));
        settings.threads = 1;
        site.failures.store(ATTEMPTS as u64 - 1, Ordering::Relaxed);
        let report = crawl(&settings, &site);
        assert_eq!((site.counts().len(), report.failed), (100, 0));
    }

    #[test]
    fn pages_that_keep_failing_are_listed() {
        let folder = tempfile::tempdir().unwrap();
        let (site, settings) = (Site::new(100), settings(folder.path(), Kind::Petal));
        site.failures.store(u64::MAX, Ordering::Relaxed);
        let report = crawl(&settings, &site);
        assert_eq!((report.fetched, report.failed), (3, 3));
        let failed = fs::read_to_string(folder.path().join("failed.txt")).unwrap();
        assert!(failed.contains("http://h0.example/0 status 503\n"), "{failed}");
    }

    #[test]
    fn folder_is_for_one_crawl() {
        let folder = tempfile::tempdir().unwrap();
        let (site, settings) = (Site::new(1), settings(folder.path(), Kind::Petal));
        let first = Crawl::open(&settings, &starts(), &site).unwrap();
        let error = Crawl::open(&settings, &starts(), &site).err().unwrap();
        assert!(error.contains("another crawl uses this folder"), "{error}");
        drop(first);
        assert!(Crawl::open(&settings, &starts(), &site).is_ok());
    }
}
