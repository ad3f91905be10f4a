//! Canonical URLs: one spelling for each page, and the rules that keep a crawl out of endless paths.
//!
//! The `url` crate does what the WHATWG URL standard prescribes: lower-case scheme and host, no default port, no dot
//! segments, percent-encoding of what must be encoded, IDNA. On top of it: no fragment, no credentials, escapes in
//! upper case and only where they are needed (RFC 3986, 6.2.2), and no session ids.

use url::Url;

/// Longer URLs are not followed. Endless paths often grow: `/a/a/a/...`.
const MAX_LENGTH: usize = 2000;

/// What is removed from URLs, and how far links are followed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    /// Names of parameters that are removed, in lower case; a `*` at the end stands for any text.
    pub(crate) strip: Vec<String>,
    /// The largest number of links from a start page to a page.
    pub(crate) max_depth: u32,
    /// The same for paths that begin with a text.
    pub(crate) max_depth_of: Vec<(String, u32)>,
}

impl Rules {
    /// Resolves a link and returns the canonical URL; `None` if it is not a web page or too long.
    pub(crate) fn canonical(&self, base: &Url, link: &str) -> Option<Url> {
        let mut url = base.join(link).ok()?;
        if !matches!(url.scheme(), "http" | "https") || url.as_str().len() > MAX_LENGTH {
            return None;
        }
        url.set_fragment(None);
        url.set_username("").and_then(|()| url.set_password(None)).ok()?;
        let path = url.path().split('/').map(|part| self.path_part(part)).collect::<Vec<_>>();
        let path = unescaped(&path.join("/"));
        if path != url.path() {
            url.set_path(&path);
        }
        if let Some(query) = url.query() {
            let kept: Vec<&str> = query.split('&').filter(|part| self.is_kept(part)).collect();
            let query = unescaped(&kept.join("&"));
            url.set_query(Some(query.as_str()).filter(|query| !query.is_empty()));
        }
        Some(url)
    }

    /// Returns true if a page at this number of links from a start page is fetched.
    pub(crate) fn is_near_enough(&self, url: &Url, depth: u32) -> bool {
        let own = self.max_depth_of.iter().filter(|(prefix, _)| url.path().starts_with(prefix));
        depth <= own.map(|(_, depth)| *depth).chain([self.max_depth]).min().unwrap_or(u32::MAX)
    }

    /// Removes parameters such as `;jsessionid=1A2B` from a part of a path.
    fn path_part<'a>(&self, part: &'a str) -> &'a str {
        match part.split_once(';') {
            Some((before, parameter)) if !self.is_kept(parameter) => before,
            _ => part,
        }
    }

    fn is_kept(&self, parameter: &str) -> bool {
        let name = parameter.split('=').next().unwrap_or_default().to_ascii_lowercase();
        !parameter.is_empty()
            && !self.strip.iter().any(|strip| match strip.strip_suffix('*') {
                Some(start) => name.starts_with(start),
                None => name == *strip,
            })
    }
}

/// Decodes escapes of letters, digits and `-._~`, and writes the others in upper case.
fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        plain.push_str(&rest[..at]);
        let digits = rest.get(at + 1..at + 3).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        let Some(digits) = digits else {
            plain.push('%');
            rest = &rest[at + 1..];
            continue;
        };
        match u8::from_str_radix(digits, 16) {
            Ok(byte) if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => {
                plain.push(char::from(byte));
            }
            _ => plain.extend(['%'].into_iter().chain(digits.to_ascii_uppercase().chars())),
        }
        rest = &rest[at + 3..];
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Rules {
        let strip = ["sid", "jsessionid", "utm_*"].map(String::from).to_vec();
        Rules { strip, max_depth: 10, max_depth_of: vec![("/calendar/".into(), 3)] }
    }

    fn canonical(link: &str) -> Option<String> {
        let base = Url::parse("http://s3.example/a/b/index.html").unwrap();
        rules().canonical(&base, link).map(String::from)
    }

    #[test]
    fn spellings_of_one_url_become_equal() {
        let same = [
            "http://s3.example/~shop/caf%C3%A9/7",
            "HTTP://S3.Example:80/~shop/caf%C3%A9/7",
            "/~shop/./x/../caf%C3%A9/7#part",
            "/%7Eshop/caf%c3%a9/7",
            "/~shop/café/%37",
            "../../~shop/caf%C3%A9/7?",
            "//user:secret@s3.example/~shop/%2e/caf%C3%A9/7?sid=12&utm_source=mail",
            "/~shop/caf%C3%A9/7;jsessionid=1A2B?SID=1",
        ];
        for spelling in same {
            assert_eq!(canonical(spelling).as_deref(), Some(same[0]), "{spelling}");
        }
    }

    #[test]
    fn different_pages_stay_different() {
        let urls = [
            "/a",
            "/A",
            "/a/",
            "/a?x",
            "/a?x=1&y=2",
            "/a?y=2&x=1",
            "/a%2Fb",
            "/a/b",
            "/a;v=1",
            "/a%",
            "/a%zz",
            "https://s3.example/a",
            "http://s3.example:8080/a",
            "/a?x=%26",
        ];
        let mut all: Vec<String> = urls.iter().map(|url| canonical(url).unwrap()).collect();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), urls.len());
        assert_eq!(canonical("/a?x=1&sid=5&y=2").as_deref(), Some("http://s3.example/a?x=1&y=2"));
    }

    #[test]
    fn canonical_urls_do_not_change_again() {
        for link in
            ["/%257E", "/%2525", "/a%2e%2e/b", "/x/%2e%2e/y", "/?a=%2541", "/;sid=1/..;sid=2/z"]
        {
            let once = canonical(link).unwrap();
            assert_eq!(canonical(&once).as_deref(), Some(once.as_str()), "{link}");
        }
    }

    #[test]
    fn other_links_are_no_pages() {
        let long = format!("/{}", "a".repeat(MAX_LENGTH));
        for link in
            ["mailto:a@b.example", "javascript:void(0)", "http://", "ftp://s3.example/", &long]
        {
            assert_eq!(canonical(link), None, "{link}");
        }
    }

    #[test]
    fn depth_is_limited_for_all_paths_and_for_some() {
        let url = |path| Url::parse("http://s3.example").unwrap().join(path).unwrap();
        assert!(rules().is_near_enough(&url("/p/1"), 10));
        assert!(!rules().is_near_enough(&url("/p/1"), 11));
        assert!(rules().is_near_enough(&url("/calendar/2026/11"), 3));
        assert!(!rules().is_near_enough(&url("/calendar/2026/12"), 4));
    }
}
