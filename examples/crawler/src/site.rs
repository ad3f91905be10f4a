//! A generated site on many hosts, with everything that makes a crawler visit a page twice or never end.
//!
//! Page n links to pages 4n+1 to 4n+4, so that each is reachable, and to eight others at random: cycles. Each link has
//! one of ten spellings: case of the host, default port, dot segments, escapes, fragment, parameters, and session ids
//! that are new in each response. Each page also links to a calendar without an end, to pages that robots.txt forbids,
//! and some to redirects.
//!
//! The hosts are `s0.example`, `s1.example`, ... at port 80; the server is reached as their HTTP proxy, with CONNECT.
//! Asked directly, it returns what it has counted: `GET /counts`.

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The number of hosts.
pub(crate) const HOSTS: u64 = 8;

/// One page of this number has a link to a redirect to itself, too.
const REDIRECTS: u64 = 64;

/// The site, and what was requested from it.
#[derive(Debug)]
pub(crate) struct Site {
    /// Requests for each page.
    pages: Vec<AtomicU32>,
    calendar: AtomicU64,
    forbidden: AtomicU64,
    redirects: AtomicU64,
    robots: AtomicU64,
    unknown: AtomicU64,
    session: AtomicU64,
    /// For each host the last request, and the shortest time between two.
    times: Mutex<Vec<(Option<Instant>, Option<Duration>)>>,
}

/// What was requested from the site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) pages: u64,
    pub(crate) once: u64,
    /// Requests for pages that had been requested before.
    pub(crate) repeated: u64,
    pub(crate) missed: u64,
    pub(crate) calendar: u64,
    pub(crate) forbidden: u64,
    pub(crate) redirects: u64,
    pub(crate) robots: u64,
    /// Requests that no link of the site leads to.
    pub(crate) unknown: u64,
    /// The shortest time between two requests to one host, in microseconds.
    pub(crate) shortest_gap: u64,
}

impl Counts {
    /// Returns the counts as lines `NAME VALUE`.
    pub(crate) fn lines(&self) -> String {
        let Self {
            pages,
            once,
            repeated,
            missed,
            calendar,
            forbidden,
            redirects,
            robots,
            unknown,
            shortest_gap,
        } = self;
        format!(
            "pages {pages}\nonce {once}\nrepeated {repeated}\nmissed {missed}\ncalendar {calendar}\n\
             forbidden {forbidden}\nredirects {redirects}\nrobots {robots}\nunknown {unknown}\n\
             shortest_gap_us {shortest_gap}\n"
        )
    }
}

impl Site {
    pub(crate) fn new(pages: u64) -> Self {
        Self {
            pages: (0..pages).map(|_| AtomicU32::new(0)).collect(),
            calendar: AtomicU64::new(0),
            forbidden: AtomicU64::new(0),
            redirects: AtomicU64::new(0),
            robots: AtomicU64::new(0),
            unknown: AtomicU64::new(0),
            session: AtomicU64::new(0),
            times: Mutex::new(vec![(None, None); HOSTS as usize]),
        }
    }

    /// Returns the URL of a page.
    pub(crate) fn start(page: u64) -> String {
        url(page)
    }

    /// Returns what was requested since the last [`reset`](Self::reset).
    pub(crate) fn counts(&self) -> Counts {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let mut counts = Counts {
            pages: self.pages.len() as u64,
            calendar: of(&self.calendar),
            forbidden: of(&self.forbidden),
            redirects: of(&self.redirects),
            robots: of(&self.robots),
            unknown: of(&self.unknown),
            ..Counts::default()
        };
        for page in &self.pages {
            let requests = u64::from(page.load(Ordering::Relaxed));
            counts.once += u64::from(requests == 1);
            counts.repeated += requests.saturating_sub(1);
            counts.missed += u64::from(requests == 0);
        }
        let times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        let gap = times.iter().filter_map(|(_, gap)| *gap).min().unwrap_or_default();
        counts.shortest_gap = gap.as_micros() as u64;
        counts
    }

    /// Begins to count again.
    pub(crate) fn reset(&self) {
        self.pages.iter().for_each(|page| page.store(0, Ordering::Relaxed));
        for count in [&self.calendar, &self.forbidden, &self.redirects, &self.robots, &self.unknown]
        {
            count.store(0, Ordering::Relaxed);
        }
        self.times.lock().unwrap_or_else(PoisonError::into_inner).fill((None, None));
    }

    /// Serves the site on a thread until the process ends. Returns its address.
    pub(crate) fn serve(self: &Arc<Self>) -> io::Result<SocketAddr> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let site = Arc::clone(self);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let site = Arc::clone(&site);
                // A client that closes its connection ends the thread.
                std::thread::spawn(move || site.answer_all(&stream));
            }
        });
        Ok(address)
    }

    fn answer_all(&self, stream: &TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let (mut lines, mut out) = (BufReader::new(stream), stream);
        let mut in_tunnel = false;
        while let Some((method, target, host)) = read_request(&mut lines)? {
            let response = match method.as_str() {
                "CONNECT" if !in_tunnel => {
                    in_tunnel = true;
                    "HTTP/1.1 200 OK\r\n\r\n".into()
                }
                "GET" if in_tunnel => self.answer(&host, &target),
                "GET" if target == "/counts" => {
                    response("200 OK", "text/plain", &self.counts().lines())
                }
                _ => response(
                    "400 Bad Request",
                    "text/plain",
                    "this server is a proxy for s0.example to s7.example\n",
                ),
            };
            out.write_all(response.as_bytes())?;
        }
        Ok(())
    }

    /// Returns the response to a request. The path is taken apart without the code of the crawler.
    fn answer(&self, host: &str, target: &str) -> String {
        let host = host.strip_suffix(":80").unwrap_or(host);
        let number: Option<u64> =
            host.strip_prefix('s').and_then(|rest| rest.strip_suffix(".example")?.parse().ok());
        let Some(host) = number.filter(|host| *host < HOSTS) else {
            self.unknown.fetch_add(1, Ordering::Relaxed);
            return response("404 Not Found", "text/html", "");
        };
        self.note_time(host as usize);
        let path = target.split(['?', ';']).next().unwrap_or_default();
        let (folder, name) = path.rsplit_once('/').unwrap_or_default();
        let page = name
            .parse::<u64>()
            .ok()
            .filter(|page| *page < self.pages.len() as u64 && page % HOSTS == host);
        let count = match (folder, page) {
            ("", _) if name == "robots.txt" => {
                self.robots.fetch_add(1, Ordering::Relaxed);
                return response("200 OK", "text/plain", "User-agent: *\nDisallow: /private/\n");
            }
            ("/~shop/caf%C3%A9", Some(page)) => {
                self.pages[page as usize].fetch_add(1, Ordering::Relaxed);
                return response("200 OK", "text/html; charset=utf-8", &self.html(page));
            }
            ("/old", Some(page)) => {
                self.redirects.fetch_add(1, Ordering::Relaxed);
                let target = url(page);
                return format!(
                    "HTTP/1.1 301 Moved Permanently\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n"
                );
            }
            ("/private", _) => &self.forbidden,
            _ => match calendar(path) {
                Some((year, month)) => {
                    self.calendar.fetch_add(1, Ordering::Relaxed);
                    let month = year * 12 + month - 1;
                    let link =
                        |m: u64| format!("<a href='/calendar/{}/{:02}'>", m / 12, m % 12 + 1);
                    return response("200 OK", "text/html", &(link(month + 1) + &link(month - 1)));
                }
                None => &self.unknown,
            },
        };
        count.fetch_add(1, Ordering::Relaxed);
        response("404 Not Found", "text/html", "")
    }

    fn html(&self, page: u64) -> String {
        let pages = self.pages.len() as u64;
        let children = (4 * page + 1..=4 * page + 4).filter(|child| *child < pages);
        let others = (0..8).map(|n| mix(page * 8 + n) % pages);
        let mut html =
            format!("<!DOCTYPE html><html><head><title>Page {page}</title></head><body>\n");
        for (n, target) in children.chain(others).enumerate() {
            let link = self.spelling(target, mix(page ^ ((n as u64) << 32)) % 10);
            let _ = writeln!(
                html,
                "<p><a href=\"{link}\">page {target}</a> and some text about it.</p>"
            );
        }
        let host = page % HOSTS;
        if page.is_multiple_of(REDIRECTS) {
            let _ = writeln!(html, "<a href=/old/{page}>this page, at its old place</a>");
        }
        let _ = writeln!(
            html,
            "<A HREF='/calendar/2026/11'>calendar</A> <a href=\"/private/{}\">private</a>\n\
             <a href=\"#top\">top</a> <a href=\"mailto:info@s{host}.example\">mail</a>\n\
             <script>var link = '<a href=\"/unknown/{page}\">';</script><!-- <a href=\"/unknown\"> --></body></html>",
            mix(page) % 10 * HOSTS + host,
        );
        html
    }

    /// Returns one of ten spellings of the URL of a page, for an attribute of HTML.
    fn spelling(&self, page: u64, spelling: u64) -> String {
        let host = page % HOSTS;
        let session = || mix(self.session.fetch_add(1, Ordering::Relaxed));
        match spelling {
            0 => url(page),
            1 => format!("HTTP://S{host}.Example/~shop/caf%C3%A9/{page}"),
            2 => format!("http://s{host}.example:80/~shop/caf%C3%A9/{page}"),
            3 => format!("http://s{host}.example/a/../~shop/./caf%C3%A9/b/%2e%2E/{page}"),
            4 => format!("http://s{host}.example/%7Eshop/c%61f%c3%a9/{page}"),
            5 => format!("http://s{host}.example/~shop/caf%C3%A9/{page}#part-{}", page % 7),
            6 => format!(
                "http://s{host}.example/~shop/caf%C3%A9/{page}?utm_source=site&amp;sid={:x}",
                session()
            ),
            7 => format!("//s{host}.example/~shop/caf%C3%A9/{page};jsessionid={:X}", session()),
            8 => format!("http://s{host}.example/~shop/café/{page}"),
            _ => format!(" http://s{host}.example/~shop/caf%C3%A9/{page}?sid={:x}#end ", session()),
        }
    }

    fn note_time(&self, host: usize) {
        let now = Instant::now();
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, shortest) = &mut times[host];
        if let Some(last) = *last {
            let gap = now.duration_since(last);
            *shortest = Some(shortest.map_or(gap, |shortest| shortest.min(gap)));
        }
        *last = Some(now);
    }
}

/// Returns the canonical URL of a page.
fn url(page: u64) -> String {
    format!("http://s{}.example/~shop/caf%C3%A9/{page}", page % HOSTS)
}

/// Parses `/calendar/YEAR/MONTH`.
fn calendar(path: &str) -> Option<(u64, u64)> {
    let (year, month) = path.strip_prefix("/calendar/")?.split_once('/')?;
    Some((
        year.parse::<u64>().ok().filter(|year| *year > 0)?,
        month.parse::<u64>().ok().filter(|m| (1..=12).contains(m))?,
    ))
}

fn response(status: &str, mime: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {mime}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Reads a request without a body: method, target, host. `None` at the end of the connection.
fn read_request(lines: &mut impl BufRead) -> io::Result<Option<(String, String, String)>> {
    let mut line = String::new();
    if lines.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split(' ');
    let method = words.next().unwrap_or_default().to_owned();
    let target = words.next().unwrap_or_default().to_owned();
    let mut host = String::new();
    loop {
        line.clear();
        if lines.read_line(&mut line)? == 0 || line.trim().is_empty() {
            return Ok(Some((method, target, host)));
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("host")
        {
            host = value.trim().to_owned();
        }
    }
}

/// A hash of a number (SplitMix64).
fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonical::Rules;

    #[test]
    fn all_spellings_have_one_canonical_url() {
        let site = Site::new(100);
        let strip = ["sid", "jsessionid", "utm_*"].map(String::from).to_vec();
        let rules = Rules { strip, max_depth: 1, max_depth_of: Vec::new() };
        let base = url::Url::parse(&url(0)).unwrap();
        for page in 0..100 {
            for spelling in 0..10 {
                let link = site.spelling(page, spelling).replace("&amp;", "&");
                assert_eq!(rules.canonical(&base, &link).unwrap().as_str(), url(page), "{link}");
            }
        }
    }

    #[test]
    fn requests_are_counted() {
        let site = Site::new(10);
        for target in
            ["/~shop/caf%C3%A9/1", "/~shop/caf%C3%A9/1?sid=2", "/~shop/caf%C3%A9/9;jsessionid=1"]
        {
            assert!(site.answer("s1.example", target).starts_with("HTTP/1.1 200"), "{target}");
        }
        assert!(site.answer("s1.example", "/~shop/caf%C3%A9/2").starts_with("HTTP/1.1 404"));
        assert!(site.answer("s1.example", "/old/1").starts_with("HTTP/1.1 301"));
        let next = site.answer("s1.example", "/calendar/2026/12");
        assert!(next.contains("/calendar/2027/01") && next.contains("/calendar/2026/11"), "{next}");
        let counts = site.counts();
        let expected = (10, 1, 1, 8, 1, 1, 1);
        let Counts { pages, once, repeated, missed, calendar, redirects, unknown, .. } = counts;
        assert_eq!((pages, once, repeated, missed, calendar, redirects, unknown), expected);
        site.reset();
        assert_eq!((site.counts().missed, site.counts().unknown), (10, 0));
    }
}
