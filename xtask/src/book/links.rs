//! Links of the book: those that leave `docs/` are redirected, and every one is checked.
//!
//! Pages link to each other and to files of the root as in the repository (`../README.md`), so that they are readable
//! without mdBook. In the book, a link to a file that is also a page leads to that page, and a link to a licence to a
//! copy of it. A link to another file of the repository becomes text, because the book is not served next to it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::step::Result;

/// Files of the root, and the pages that include them.
const ROOT_PAGES: &[(&str, &str)] = &[
    ("README.md", "introduction.html"),
    ("README.zh-CN.md", "zh/introduction.html"),
    ("ARCHITECTURE.md", "design/architecture.html"),
    ("CONTRIBUTING.md", "contributing.html"),
    ("CHANGELOG.md", "changelog.html"),
];

/// Files of the root that are copied into the book.
const COPIED: &[&str] = &["LICENSE-APACHE", "LICENSE-MIT"];

/// The folder of the Chinese pages, which mdBook marks as English like all others.
const CHINESE: &str = "zh/";

/// Redirects and checks the links of all pages of `book`. Returns the number of pages.
pub(super) fn finish(root: &Path, book: &Path) -> Result<usize> {
    for name in COPIED {
        fs::copy(root.join(name), book.join(name))
            .map_err(|e| format!("cannot copy {name}: {e}"))?;
    }
    let mut pages = BTreeMap::new();
    for path in html_files(book)? {
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let name = relative(&path, book);
        let site = Site { root, book, page: &name };
        let mut new = rewrite(&text, |target| site.redirect(target));
        if name.starts_with(CHINESE) {
            new = new.replacen("<html lang=\"en\"", "<html lang=\"zh-CN\"", 1);
        }
        if new != text {
            fs::write(&path, &new).map_err(|e| format!("{}: {e}", path.display()))?;
        }
        pages.insert(name, new);
    }
    let ids: BTreeMap<&str, BTreeSet<String>> =
        pages.iter().map(|(name, text)| (name.as_str(), ids(text))).collect();
    let mut broken = Vec::new();
    for (name, text) in &pages {
        for target in attributes(text, &["href", "src"]) {
            if let Err(problem) = check(book, name, &target, &ids) {
                broken.push(format!("{name}: {target}: {problem}"));
            }
        }
    }
    for link in &broken {
        println!("book: {link}");
    }
    match broken.len() {
        0 => Ok(pages.len()),
        count => Err(format!("book: {count} broken links")),
    }
}

/// Where a link is.
struct Site<'a> {
    root: &'a Path,
    book: &'a Path,
    /// The page, by its path in the book.
    page: &'a str,
}

/// What becomes of a link.
enum Redirect {
    Keep,
    To(String),
    /// The link becomes text.
    Text,
}

impl Site<'_> {
    /// Decides about a link by its value.
    fn redirect(&self, target: &str) -> Redirect {
        let Some((path, fragment)) = local(target) else {
            return Redirect::Keep;
        };
        let folder = Path::new(self.page).parent().unwrap_or(Path::new(""));
        let in_book = clean(&folder.join(path));
        if in_book.as_ref().is_some_and(|path| self.book.join(path).exists()) {
            return Redirect::Keep;
        }
        // The page's own folder, then the root, where the text of an included page is.
        let candidates =
            [clean(&Path::new("docs").join(folder).join(path)), clean(Path::new(path))];
        for name in candidates.into_iter().flatten() {
            // mdBook has replaced `.md`.
            for name in [name.clone(), name.with_extension("md")] {
                if self.root.join(&name).exists() {
                    return match self.page_of(&name) {
                        Some(page) => Redirect::To(format!("{}{page}{fragment}", up(self.page))),
                        None => Redirect::Text,
                    };
                }
            }
        }
        Redirect::Keep
    }

    /// Returns the page or the copy of a file of the repository.
    fn page_of(&self, name: &Path) -> Option<String> {
        let file = slashed(name);
        if let Some((_, page)) = ROOT_PAGES.iter().find(|(root_file, _)| *root_file == file) {
            return self.book.join(page).exists().then(|| (*page).to_owned());
        }
        if COPIED.contains(&file.as_str()) {
            return Some(file);
        }
        let inside = name.strip_prefix("docs").ok()?;
        let html = inside.with_extension("html");
        let index = inside.with_file_name("index.html");
        let readme = inside.file_name().is_some_and(|name| name == "README.md");
        let pages = if readme { vec![index, html] } else { vec![html, inside.to_owned()] };
        pages.iter().find(|page| self.book.join(page).is_file()).map(|page| slashed(page))
    }
}

/// Returns the path and the fragment (with `#`) of a link within the book; `None` for other links.
fn local(target: &str) -> Option<(&str, &str)> {
    let outside = target.starts_with("//") || target.split('/').next()?.contains(':');
    let (path, fragment) = target.split_at(target.find('#').unwrap_or(target.len()));
    (!outside && !path.is_empty()).then_some((path, fragment))
}

/// Checks a link of a page.
fn check(book: &Path, page: &str, target: &str, ids: &BTreeMap<&str, BTreeSet<String>>) -> Result {
    let (path, fragment) = match local(target) {
        Some(parts) => parts,
        None if target.starts_with('#') => ("", target),
        None => return Ok(()),
    };
    let path = path.split('?').next().unwrap_or(path);
    let file = if path.is_empty() {
        page.to_owned()
    } else {
        let folder = Path::new(page).parent().unwrap_or(Path::new(""));
        let file = if path.starts_with('/') { None } else { clean(&folder.join(path)) };
        slashed(&file.ok_or("is outside the book")?)
    };
    let file = if book.join(&file).is_dir() { format!("{file}/index.html") } else { file };
    if !book.join(&file).is_file() {
        return Err("there is no such file".to_owned());
    }
    let id = fragment.trim_start_matches('#');
    match ids.get(file.trim_start_matches('/')) {
        Some(ids) if !id.is_empty() && !ids.contains(&decoded(id)) => {
            Err(format!("{file} has no heading or element #{id}"))
        }
        _ => Ok(()),
    }
}

/// Replaces the links of anchors.
fn rewrite(html: &str, redirect: impl Fn(&str) -> Redirect) -> String {
    let mut new = String::with_capacity(html.len());
    let (mut rest, mut closing) = (html, 0);
    while let Some((before, tag, after)) = next_tag(rest) {
        new.push_str(before);
        rest = after;
        let href = if tag.starts_with("<a ") { attribute(tag, "href") } else { None };
        match href.map(|href| (href, redirect(&href.replace("&amp;", "&")))) {
            Some((href, Redirect::To(target))) => {
                new.push_str(&tag.replace(&format!("\"{href}\""), &format!("\"{target}\"")));
            }
            Some((_, Redirect::Text)) => {
                closing += 1;
                new.push_str("<span class=\"source-file\">");
            }
            _ if closing > 0 && tag == "</a>" => {
                closing -= 1;
                new.push_str("</span>");
            }
            _ => new.push_str(tag),
        }
    }
    new.push_str(rest);
    new
}

/// Returns the text before the next tag, the tag, and the text after it. Scripts and comments are text.
fn next_tag(html: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    loop {
        let start = from + html[from..].find('<')?;
        let rest = &html[start..];
        let skipped = |end: &str| rest.find(end).map_or(html.len(), |at| start + at + end.len());
        if rest.starts_with("<!--") {
            from = skipped("-->");
        } else if rest.starts_with("<script>") {
            from = skipped("</script>");
        } else if rest.starts_with("<style>") {
            from = skipped("</style>");
        } else if rest[1..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '/') {
            let end = start + rest.find('>')? + 1;
            return Some((&html[..start], &html[start..end], &html[end..]));
        } else {
            from = start + 1;
        }
    }
}

/// Returns the value of an attribute of a tag.
fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let start = tag.find(&format!(" {name}=\""))? + name.len() + 3;
    tag[start..].split('"').next()
}

/// Returns the values of attributes in all tags, with `&amp;` decoded.
fn attributes(html: &str, names: &[&str]) -> Vec<String> {
    let (mut values, mut rest) = (Vec::new(), html);
    while let Some((_, tag, after)) = next_tag(rest) {
        let found = names.iter().filter_map(|name| attribute(tag, name));
        values.extend(found.map(|value| value.replace("&amp;", "&")));
        rest = after;
    }
    values
}

/// Returns the ids of all elements.
fn ids(html: &str) -> BTreeSet<String> {
    attributes(html, &["id"]).into_iter().collect()
}

/// Decodes percent-encoded bytes.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) if first == b'%' => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Resolves `.` and `..`; `None` if the path leaves its start.
fn clean(path: &Path) -> Option<PathBuf> {
    let mut result = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => result.push(name),
            Component::ParentDir => {
                if !result.pop() {
                    return None;
                }
            }
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(result)
}

/// Returns the path from a page to the start of the book.
fn up(page: &str) -> String {
    "../".repeat(page.matches('/').count())
}

fn slashed(path: &Path) -> String {
    path.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

fn relative(path: &Path, base: &Path) -> String {
    slashed(path.strip_prefix(base).unwrap_or(path))
}

/// Returns all pages below a folder.
fn html_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let read = |e: std::io::Error| format!("{}: {e}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(read)? {
        let path = entry.map_err(read)?.path();
        if path.is_dir() {
            files.extend(html_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "html") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a repository and a book, and runs [`finish`].
    fn finished(name: &str, page: &str) -> Result<String> {
        let folder = std::env::temp_dir().join(format!("petal-book-{}-{name}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for file in [
            "LICENSE-MIT",
            "LICENSE-APACHE",
            "CHANGELOG.md",
            "peers/README.md",
            "docs/design/README.md",
        ] {
            write(file, "");
        }
        write("book/changelog.html", "<h2 id=\"v1\">1</h2>");
        write("book/design/index.html", page);
        let pages = finish(&folder, &folder.join("book"));
        let text = fs::read_to_string(folder.join("book/design/index.html")).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        pages.map(|_| text)
    }

    #[test]
    fn links_to_root_files_lead_to_their_pages() {
        let link = |target: &str| format!("<p id=\"top\"><a href=\"{target}\">x</a></p>");
        for (name, target, becomes) in [
            ("page", "../../CHANGELOG.html#v1", "../changelog.html#v1"),
            ("included", "CHANGELOG.html", "../changelog.html"),
            ("included-docs", "docs/design/README.html", "../design/index.html"),
            ("readme", "README.html", "../design/index.html"),
            ("licence", "../../LICENSE-MIT", "../LICENSE-MIT"),
            ("same", "#top", "#top"),
            ("web", "https://example.org/a.html#b", "https://example.org/a.html#b"),
        ] {
            assert_eq!(finished(name, &link(target)), Ok(link(becomes)), "{target}");
        }
    }

    #[test]
    fn link_into_the_source_tree_becomes_text() {
        let page =
            finished("source", "<a href=\"../../peers/README.html\">x</a> <a href=\"#\">y</a>");
        let expected = "<span class=\"source-file\">x</span> <a href=\"#\">y</a>";
        assert_eq!(page.as_deref(), Ok(expected));
    }

    #[test]
    fn broken_links_are_errors() {
        for (at, page) in [
            "<a href=\"none.html\">x</a>",
            "<a href=\"../changelog.html#v2\">x</a>",
            "<img src=\"none.png\">",
            "<a href=\"#none\">x</a>",
            "<a href=\"/changelog.html\">x</a>",
        ]
        .iter()
        .enumerate()
        {
            let outcome = finished(&format!("broken-{at}"), page);
            assert_eq!(outcome, Err("book: 1 broken links".to_owned()), "{page}");
        }
    }

    #[test]
    fn scripts_and_comments_contain_no_links() {
        let page = "<script>'<a href=\"no\">'</script><!-- <a href=\"no\"> --> 1 < 2";
        assert_eq!(finished("script", page).as_deref(), Ok(page));
    }
}
