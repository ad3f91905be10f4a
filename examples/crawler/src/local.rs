//! Crawls of the generated site, and their figures.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use url::Url;

use crate::crawl::{Crawl, Report};
use crate::rows::Rows;
use crate::site::{Counts, HOSTS, Site};
use crate::visited::Kind;
use crate::{Args, http};

/// Serves the site until standard input ends.
pub(crate) fn serve(args: &Args) -> Result<(), String> {
    let proxy = serve_on_thread(&Arc::new(Site::new(args.pages)))?;
    println!("{} pages from {} on; HTTP proxy: {proxy}", args.pages, Site::start(0));
    let mut rest = Vec::new();
    io::stdin().read_to_end(&mut rest).map(drop).map_err(|e| format!("standard input: {e}"))
}

/// Crawls the site with one visited set, or with all.
pub(crate) fn run(args: &Args) -> Result<(), String> {
    let site = Arc::new(Site::new(args.pages));
    let proxy = serve_on_thread(&site)?;
    println!(
        "site: {} pages on {HOSTS} hosts, 12 links each in 10 spellings, session ids, an endless calendar",
        grouped(args.pages)
    );
    let rows = Rows::new(args.rows.as_deref());
    if !args.compare {
        let start = Instant::now();
        let temporary = TemporaryFolder::new();
        let folder = args.state.clone().unwrap_or_else(|| temporary.path().to_owned());
        let settings = args.settings(folder, true);
        let client = http(Some(&proxy))?;
        let report = Crawl::open(&settings, &starts(args.pages), &client)?.run()?;
        let counts = site.counts();
        print!("{}{}", lines(&report, start.elapsed()), counted(&counts, report.is_continued));
        let case = case(args, args.visited);
        rows.add(&case, args.pages, "visited set", report.visited_bytes as f64, "bytes")?;
        rows.add(&case, args.pages, "URLs found", report.new as f64, "URLs")?;
        return rows.add(&case, args.pages, "pages missed", counts.missed as f64, "pages");
    }

    println!(
        "visited set  seconds  pages/s  ns/link  set, bytes  bytes/URL  process peak  pages missed  repeated"
    );
    for &kind in Kind::value_variants() {
        site.reset();
        let figures = child(args, kind, &proxy)?;
        let (counts, of) =
            (site.counts(), |name: &str| figures.get(name).copied().unwrap_or_default());
        let links = of("links").max(1.0);
        let (set, urls) = (of("visited_bytes"), of("new").max(1.0));
        println!(
            "{:11}  {:7.1}  {:7.0}  {:7.0}  {:>10}  {:9.1}  {:>10} MB  {:>12}  {:>8}",
            kind.name(),
            of("seconds"),
            counts.pages as f64 / of("seconds"),
            of("visited_seconds") / links * 1e9,
            grouped(set as u64),
            set / urls,
            of("peak_bytes") as u64 / 1_000_000,
            grouped(counts.missed),
            grouped(counts.repeated),
        );
        for (figure, value, unit) in [
            ("time", of("seconds"), "s"),
            ("links looked up", of("links"), "links"),
            ("URLs found", of("new"), "URLs"),
            ("time in the visited set", of("visited_seconds") / links * 1e9, "ns per link"),
            ("visited set", set, "bytes"),
            ("peak memory of the process", of("peak_bytes"), "bytes"),
            ("pages missed", counts.missed as f64, "pages"),
            ("pages repeated", counts.repeated as f64, "pages"),
            ("calendar pages", counts.calendar as f64, "pages"),
        ] {
            rows.add(&case(args, kind), args.pages, figure, value, unit)?;
        }
    }
    Ok(())
}

/// Returns the case of a visited set in rows.
fn case(args: &Args, kind: Kind) -> String {
    match kind {
        Kind::Petal => format!("petal, fpr {}", args.fpr),
        _ => kind.name().into(),
    }
}

/// Crawls in a process of its own, whose peak memory is then that of the crawler alone.
fn child(args: &Args, kind: Kind, proxy: &str) -> Result<HashMap<String, f64>, String> {
    let program = std::env::current_exe().map_err(|e| format!("own program: {e}"))?;
    let folder = TemporaryFolder::new();
    let settings = args.settings(folder.path().to_owned(), true);
    let mut command = Command::new(program);
    command.args(["--figures", "--proxy", proxy, "--visited"]).arg(kind.name().to_lowercase());
    command.arg("--state").arg(folder.path());
    for (option, value) in [
        ("--capacity", settings.capacity.to_string()),
        ("--fpr", settings.fpr.to_string()),
        ("--delay", settings.delay.as_secs_f64().to_string()),
        ("--strip", settings.rules.strip.join(",")),
        ("--depth", settings.rules.max_depth.to_string()),
        ("--snapshot", settings.snapshot.to_string()),
        ("--threads", settings.threads.to_string()),
        ("--max-pages", settings.max_pages.to_string()),
    ] {
        command.arg(option).arg(value);
    }
    for (prefix, depth) in &settings.rules.max_depth_of {
        command.arg("--depth-of").arg(format!("{prefix}={depth}"));
    }
    command.args(starts(args.pages).iter().map(Url::as_str));
    let output =
        command.stderr(Stdio::inherit()).output().map_err(|e| format!("own program: {e}"))?;
    if !output.status.success() {
        return Err(format!("the crawl with {} failed: {}", kind.name(), output.status));
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let figure = |line: &str| {
        let (name, value) = line.split_once(' ')?;
        Some((name.to_owned(), value.parse().ok()?))
    };
    Ok(text.lines().filter_map(figure).collect())
}

/// Returns a page of each host.
fn starts(pages: u64) -> Vec<Url> {
    (0..pages.min(HOSTS)).filter_map(|page| Url::parse(&Site::start(page)).ok()).collect()
}

fn serve_on_thread(site: &Arc<Site>) -> Result<String, String> {
    let address = site.serve().map_err(|e| format!("cannot listen on 127.0.0.1: {e}"))?;
    Ok(format!("http://{address}"))
}

/// Returns what a crawl did, for people.
pub(crate) fn lines(report: &Report, time: Duration) -> String {
    let n = grouped;
    let per_link = report.visited_time.as_nanos() as u64 / report.links.max(1);
    format!(
        "fetched {} URLs in {:.1} s; {} failed, {} forbidden by robots.txt, {} links beyond the depth limit\n\
         visited set: {} links looked up, {} ns each; {} new URLs; {} bytes\n{}",
        n(report.fetched),
        time.as_secs_f64(),
        n(report.failed),
        n(report.forbidden),
        n(report.too_far),
        n(report.links),
        n(per_link),
        n(report.new),
        n(report.visited_bytes),
        match report.recovered {
            0 => String::new(),
            urls => format!(
                "continued: {} URLs inserted again that the last snapshot did not have\n",
                n(urls)
            ),
        },
    )
}

/// Returns what a crawl did, as lines `NAME VALUE`.
pub(crate) fn figures(report: &Report, time: Duration) -> String {
    let Report {
        fetched,
        failed,
        forbidden,
        links,
        new,
        too_far,
        visited_bytes,
        snapshots,
        recovered,
        ..
    } = report;
    let (seconds, visited_seconds) = (time.as_secs_f64(), report.visited_time.as_secs_f64());
    format!(
        "fetched {fetched}\nfailed {failed}\nforbidden {forbidden}\nlinks {links}\nnew {new}\ntoo_far {too_far}\n\
         visited_bytes {visited_bytes}\nsnapshots {snapshots}\nrecovered {recovered}\nseconds {seconds}\n\
         visited_seconds {visited_seconds}\npeak_bytes {}\n",
        peak_bytes().unwrap_or_default()
    )
}

/// Returns what the site counted, for people. It counts from zero in each run, so that what a continued crawl did not
/// fetch is not missed.
fn counted(counts: &Counts, is_continued: bool) -> String {
    let n = grouped;
    let (of, others) = if is_continued {
        ("pages of the site, in this run", "not fetched: in earlier runs, or missed")
    } else {
        ("pages of the site", "missed")
    };
    format!(
        "{of}: {} fetched once, {} repeated, {} {others}; {} of the calendar, {} redirects, {} forbidden\n",
        n(counts.once),
        n(counts.repeated),
        n(counts.missed),
        n(counts.calendar),
        n(counts.redirects),
        n(counts.forbidden),
    )
}

/// Returns the largest resident memory of this process so far. Linux only.
fn peak_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

/// Returns a number with commas.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A folder in the temporary directory, removed at the end. It is made by its user.
pub(crate) struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    pub(crate) fn new() -> Self {
        Self(std::env::temp_dir().join(format!("petal-crawler-{}", std::process::id())))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // It may not exist.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_commas() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn pages_of_earlier_runs_are_not_missed() {
        let counts = Counts { once: 16_034, missed: 3_966, ..Counts::default() };
        let text = counted(&counts, true);
        assert!(text.contains(
            "in this run: 16,034 fetched once, 0 repeated, 3,966 not fetched: in earlier runs"
        ));
        assert!(
            counted(&counts, false).contains(": 16,034 fetched once, 0 repeated, 3,966 missed;")
        );
    }
}
