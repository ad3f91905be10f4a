//! A polite web crawler whose visited set is a petal filter. docs/uses/crawler.md is its page.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

mod canonical;
mod crawl;
mod fetch;
mod frontier;
mod links;
mod local;
mod rows;
mod site;
mod visited;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use url::Url;

use canonical::Rules;
use crawl::{Crawl, Settings};
use fetch::Http;
use visited::Kind;

/// Visits each page of a site once, remembering the visited URLs in a petal filter.
///
/// Without a URL, it crawls a site that it generates itself, and counts which pages were fetched.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "crawler",
    after_help = "Examples:\n  crawler --pages 20000 --compare\n  crawler --state crawl --delay 2 http://www.example.org/"
)]
struct Args {
    /// Pages to start from; the crawl stays on their hosts
    #[arg(value_name = "URL", value_parser = start)]
    starts: Vec<Url>,
    /// Folder of the crawl; the same command with the same folder continues a crawl [default: a temporary folder]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Type of the visited set
    #[arg(long, default_value = "petal")]
    visited: Kind,
    /// Expected number of URLs; the filter grows beyond it [default: 1000000, for the generated site its pages]
    #[arg(long, value_name = "N")]
    capacity: Option<u64>,
    /// False-positive rate: the share of pages that are lost at most
    #[arg(long, default_value_t = 1e-6, value_parser = rate)]
    fpr: f64,
    /// Seconds between the end of a request and the next one to the same host; a longer Crawl-delay in robots.txt counts [default: 1, for the generated site 0]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    delay: Option<Duration>,
    /// Parameters that are removed from URLs; a * at the end stands for any text
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "sid,jsessionid,phpsessid,utm_*"
    )]
    strip: Vec<String>,
    /// Maximum number of links between a start page and a page
    #[arg(long, value_name = "N", default_value_t = 40)]
    depth: u32,
    /// The same for paths that begin with PREFIX; can be repeated
    #[arg(long, value_name = "PREFIX=N", value_parser = depth_of)]
    depth_of: Vec<(String, u32)>,
    /// Stop after this number of pages
    #[arg(long, value_name = "N", default_value_t = u64::MAX, hide_default_value = true)]
    max_pages: u64,
    /// Save the crawl after this number of pages
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    snapshot: u64,
    /// Number of requests at a time, at most one for each host
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: u16,
    /// HTTP proxy
    #[arg(long, value_name = "URL")]
    proxy: Option<String>,
    /// Pages of the generated site
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pages: u64,
    /// Crawl the generated site with each type of visited set, one after the other
    #[arg(long, conflicts_with_all = ["starts", "state", "serve"])]
    compare: bool,
    /// Only serve the generated site, until standard input ends
    #[arg(long, conflicts_with = "starts")]
    serve: bool,
    /// Append the figures of the generated site to this CSV file
    #[arg(long, value_name = "FILE", conflicts_with = "state")]
    rows: Option<PathBuf>,
    /// Print lines `NAME VALUE`
    #[arg(long, hide = true)]
    figures: bool,
}

fn start(text: &str) -> Result<Url, String> {
    let problem = |found: &str| format!("{found}; expected a URL such as http://www.example.org/");
    let url = Url::parse(text).map_err(|e| problem(&e.to_string()))?;
    match url.scheme() {
        "https" if !cfg!(feature = "https") => {
            Err("built without https; build with `cargo build --release -p petal-example-crawler -F https`".into())
        }
        "http" | "https" => Ok(url),
        other => Err(problem(&format!("scheme {other}"))),
    }
}

fn rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|_| "expected a number such as 0.000001".to_owned())?;
    if rate > 0.0 && rate < 1.0 { Ok(rate) } else { Err("expected a rate between 0 and 1".into()) }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| "expected a number of seconds such as 0.5".into())
}

fn depth_of(text: &str) -> Result<(String, u32), String> {
    let parts = text.rsplit_once('=').filter(|(prefix, _)| prefix.starts_with('/'));
    let parsed = parts.and_then(|(prefix, depth)| Some((prefix.to_owned(), depth.parse().ok()?)));
    parsed.ok_or_else(|| "expected a path and a number such as /calendar/=3".into())
}

impl Args {
    fn settings(&self, folder: PathBuf, is_local: bool) -> Settings {
        let delay = if is_local { Duration::ZERO } else { Duration::from_secs(1) };
        // The calendar and the redirects of the generated site are some URLs more.
        let capacity = if is_local { self.pages + self.pages / 32 + 2000 } else { 1_000_000 };
        Settings {
            folder,
            visited: self.visited,
            capacity: self.capacity.unwrap_or(capacity),
            fpr: self.fpr,
            rules: Rules {
                strip: self.strip.iter().map(|name| name.to_ascii_lowercase()).collect(),
                max_depth: self.depth,
                max_depth_of: self.depth_of.clone(),
            },
            delay: self.delay.unwrap_or(delay),
            retry_after: Duration::from_secs(1),
            threads: usize::from(self.threads),
            robot: "petal-example-crawler".into(),
            snapshot: self.snapshot.max(1),
            max_pages: self.max_pages,
            save_at_end: true,
        }
    }

    /// Crawls from the start pages.
    fn crawl(&self) -> Result<(), String> {
        let start = Instant::now();
        let temporary = local::TemporaryFolder::new();
        let folder = self.state.clone().unwrap_or_else(|| temporary.path().to_owned());
        let settings = self.settings(folder, false);
        let client = http(self.proxy.as_deref())?;
        let starts: Option<Vec<Url>> =
            self.starts.iter().map(|url| settings.rules.canonical(url, "")).collect();
        let starts = starts.ok_or("a start page is too long")?;
        let report = Crawl::open(&settings, &starts, &client)?.run()?;
        let print = if self.figures { local::figures } else { local::lines };
        print!("{}", print(&report, start.elapsed()));
        Ok(())
    }
}

fn http(proxy: Option<&str>) -> Result<Http, String> {
    let agent = concat!("petal-example-crawler/", env!("CARGO_PKG_VERSION"));
    Http::new(agent, proxy, Duration::from_secs(30), 4 << 20)
}

fn main() -> ExitCode {
    let args = Args::parse();
    let outcome = if args.serve {
        local::serve(&args)
    } else if args.starts.is_empty() {
        local::run(&args)
    } else {
        args.crawl()
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("crawler: {problem}");
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_checked() {
        use clap::CommandFactory;
        Args::command().debug_assert();
        for (wrong, expected) in [
            (["--fpr", "2"], "between 0 and 1"),
            (["--delay", "x"], "number of seconds"),
            (["--depth-of", "calendar"], "/calendar/=3"),
            (["--threads", "0"], "1..=256"),
            (["--pages", "0"], "1..=100000000"),
        ] {
            let error =
                Args::try_parse_from(["crawler"].into_iter().chain(wrong)).unwrap_err().to_string();
            assert!(error.contains(expected), "{wrong:?}: {error}");
        }
        let error = Args::try_parse_from(["crawler", "www.example.org"]).unwrap_err().to_string();
        assert!(error.contains("expected a URL such as"), "{error}");
    }
}
