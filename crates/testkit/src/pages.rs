//! The Markdown pages of the repository: links, headings, code, and the commands of console blocks with their output.
//!
//! "To add a page" in CONTRIBUTING.md has the rules that the tests check.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::{fs, mem};

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// A page.
#[derive(Debug)]
pub struct Page {
    /// The path relative to the root of the repository.
    pub path: String,
    /// The code blocks, in order.
    pub blocks: Vec<Block>,
    /// The targets of links and images.
    pub links: Vec<Link>,
    /// Code within text.
    pub inline_code: Vec<InlineCode>,
    /// The anchors of the headings, and the `id`s of HTML elements.
    pub anchors: BTreeSet<String>,
}

/// A link or an image.
#[derive(Debug)]
pub struct Link {
    /// Its line, from 1.
    pub line: usize,
    /// The address, with the anchor.
    pub target: String,
}

/// Code within text.
#[derive(Debug)]
pub struct InlineCode {
    /// Its line, from 1.
    pub line: usize,
    /// The code.
    pub code: String,
}

/// A code block.
#[derive(Debug)]
pub struct Block {
    /// The line of its first line of code, from 1.
    pub line: usize,
    /// The language after the fence; `None` for a block that is only indented.
    pub language: Option<String>,
    /// The code.
    pub code: String,
    /// The reason of `<!-- not run: REASON -->` before the block.
    pub not_run: Option<String>,
    /// The commands of `<!-- setup: COMMANDS -->` before the block, with their lines.
    pub setup: Vec<(usize, String)>,
    /// The name in `<!-- file: NAME -->` before the block, whose code is the content of this file.
    pub file: Option<String>,
}

/// A command of a console block.
#[derive(Debug, PartialEq, Eq)]
pub struct Command {
    /// Its line, from 1.
    pub line: usize,
    /// The text after the prompt.
    pub text: String,
    /// The output that the page shows; empty if it shows none.
    pub shown: String,
}

/// Returns the root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns all pages: those of the root that a reader may open, and those of the book.
///
/// # Panics
/// If a page cannot be read.
pub fn pages() -> Vec<Page> {
    let mut paths: Vec<PathBuf> =
        ["README.md", "README.zh-CN.md", "CONTRIBUTING.md", "ARCHITECTURE.md"]
            .iter()
            .map(|name| root().join(name))
            .filter(|path| path.exists())
            .collect();
    find_pages(&root().join("docs"), &mut paths);
    paths.iter().map(|path| read(path)).collect()
}

fn find_pages(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut entries: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            find_pages(&path, found);
        } else if path.extension().is_some_and(|ext| ext == "md") {
            found.push(path);
        }
    }
}

/// Reads a page of the repository.
///
/// # Panics
/// If it cannot be read.
pub fn read(path: &Path) -> Page {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let name = path.strip_prefix(root()).expect("a path in the repository");
    parse(&name.to_string_lossy(), &text)
}

/// Parses a page.
pub fn parse(path: &str, text: &str) -> Page {
    let page = Page {
        path: path.to_owned(),
        blocks: Vec::new(),
        links: Vec::new(),
        inline_code: Vec::new(),
        anchors: BTreeSet::new(),
    };
    let mut reader = Reader {
        text,
        page,
        comments: Comments::default(),
        block: None,
        heading: None,
        repeated: HashMap::new(),
        html: None,
    };
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        reader.read(event, range);
    }
    reader.page
}

/// The comments before a block.
#[derive(Default)]
struct Comments {
    not_run: Option<String>,
    setup: Vec<(usize, String)>,
    file: Option<String>,
}

struct Reader<'a> {
    text: &'a str,
    page: Page,
    comments: Comments,
    /// The code block that is being read.
    block: Option<Block>,
    /// The text of the heading that is being read.
    heading: Option<String>,
    /// How often each anchor occurred.
    repeated: HashMap<String, usize>,
    /// The start of the HTML block that is being read.
    html: Option<usize>,
}

impl Reader<'_> {
    fn line(&self, offset: usize) -> usize {
        self.text[..offset].matches('\n').count() + 1
    }

    fn read(&mut self, event: Event<'_>, range: Range<usize>) {
        let line = self.line(range.start);
        match event {
            Event::Start(Tag::CodeBlock(kind)) => {
                let comments = mem::take(&mut self.comments);
                let (line, language) = match kind {
                    CodeBlockKind::Fenced(language) => (line + 1, Some(language.to_string())),
                    CodeBlockKind::Indented => (line, None),
                };
                let Comments { not_run, setup, file } = comments;
                self.block =
                    Some(Block { line, language, code: String::new(), not_run, setup, file });
            }
            Event::End(TagEnd::CodeBlock) => self.page.blocks.extend(self.block.take()),
            Event::Start(Tag::HtmlBlock) => self.html = Some(range.start),
            Event::End(TagEnd::HtmlBlock) => {
                let start = self.html.take().unwrap_or(range.start);
                self.html(start..range.end);
            }
            Event::InlineHtml(_) => self.html(range),
            Event::Start(Tag::Heading { .. }) => {
                self.heading = Some(String::new());
                self.comments = Comments::default();
            }
            Event::End(TagEnd::Heading(_)) => {
                let anchor = anchor(&self.heading.take().unwrap_or_default());
                let count = self.repeated.entry(anchor.clone()).or_default();
                let unique = if *count == 0 { anchor } else { format!("{anchor}-{count}") };
                *count += 1;
                self.page.anchors.insert(unique);
            }
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                self.page.links.push(Link { line, target: dest_url.to_string() });
            }
            Event::Start(Tag::Paragraph | Tag::Table(_)) => self.comments = Comments::default(),
            Event::Code(code) => {
                if let Some(heading) = &mut self.heading {
                    heading.push_str(&code);
                }
                self.page.inline_code.push(InlineCode { line, code: code.to_string() });
            }
            Event::Text(text) => {
                if let Some(block) = &mut self.block {
                    block.code.push_str(&text);
                } else if let Some(heading) = &mut self.heading {
                    heading.push_str(&text);
                }
            }
            _ => {}
        }
    }

    /// Takes comments, links and anchors from HTML.
    fn html(&mut self, range: Range<usize>) {
        let text = &self.text[range.clone()];
        for (at, _) in text.match_indices("<!--") {
            let Some(end) = text[at..].find("-->") else { continue };
            let comment = text[at + 4..at + end].trim();
            let line = self.line(range.start + at);
            if let Some(reason) = comment.strip_prefix("not run:") {
                self.comments.not_run = Some(reason.trim().to_owned());
            } else if let Some(commands) = comment.strip_prefix("setup:") {
                self.comments.setup.push((line, commands.trim().to_owned()));
            } else if let Some(name) = comment.strip_prefix("file:") {
                self.comments.file = Some(name.trim().to_owned());
            }
        }
        for (at, value) in attributes(text, &["href", "src"]) {
            let line = self.line(range.start + at);
            self.page.links.push(Link { line, target: value.to_owned() });
        }
        self.page
            .anchors
            .extend(attributes(text, &["id", "name"]).map(|(_, value)| value.to_owned()));
    }
}

/// Returns the values of attributes in double quotes, with their offsets.
fn attributes<'a>(html: &'a str, names: &'a [&str]) -> impl Iterator<Item = (usize, &'a str)> {
    html.match_indices("=\"").filter_map(move |(at, _)| {
        let name = html[..at].rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '-').next()?;
        let value = &html[at + 2..];
        names.contains(&name).then_some((at, &value[..value.find('"')?]))
    })
}

/// Returns the anchor of a heading as GitHub and mdBook make it: letters in lower case, digits, `-` and `_`; `-` for
/// each space; nothing for other characters.
pub fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter_map(|c| match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
        _ => None,
    });
    kept.collect::<String>().to_lowercase()
}

impl Block {
    /// Returns true if the language after the fence is this one.
    pub fn is(&self, language: &str) -> bool {
        self.language.as_deref() == Some(language)
    }

    /// Returns true for console blocks of a Redis or Valkey server, in its prompt or by `redis-cli`.
    pub fn is_for_a_server(&self) -> bool {
        self.is("console")
            && self
                .code
                .lines()
                .any(|line| line.starts_with("127.0.0.1:6379> ") || line.contains("redis-cli"))
    }

    /// Returns true for console blocks of `cargo x example`, which `examples/test_pages.py` runs.
    pub fn is_for_an_example(&self) -> bool {
        self.is("console") && self.code.lines().any(|line| line.starts_with("$ cargo x example "))
    }

    /// Returns the commands after a prompt and the output below each. A command that ends in `\` continues.
    ///
    /// # Errors
    /// The first line, if it has no prompt.
    pub fn commands(&self, prompt: &str) -> Result<Vec<Command>, String> {
        let mut commands: Vec<Command> = Vec::new();
        for (number, text) in self.code.lines().enumerate() {
            let line = self.line + number;
            if let Some(text) = text.strip_prefix(prompt) {
                commands.push(Command { line, text: text.to_owned(), shown: String::new() });
                continue;
            }
            let Some(last) = commands.last_mut() else {
                return Err(format!(
                    "expected a command that begins with `{prompt}`, found `{text}`"
                ));
            };
            if last.text.ends_with('\\') && last.shown.is_empty() {
                last.text.push('\n');
                last.text.push_str(text.strip_prefix("> ").unwrap_or(text));
            } else {
                last.shown.push_str(text);
                last.shown.push('\n');
            }
        }
        Ok(commands)
    }
}

/// Returns true if the output of a command is as the page shows it. In the page, a line `...` stands for any number of
/// lines, and `...` within a line for any text. Spaces at the ends of lines are ignored.
pub fn is_as_shown(shown: &str, output: &str) -> bool {
    let lines =
        |text: &str| text.trim_end().lines().map(|line| line.trim_end().to_owned()).collect();
    let (shown, output): (Vec<String>, Vec<String>) = (lines(shown), lines(output));
    lines_match(&shown, &output)
}

fn lines_match(shown: &[String], output: &[String]) -> bool {
    match shown.split_first() {
        None => output.is_empty(),
        Some((first, rest)) if first == "..." => {
            (0..=output.len()).any(|skipped| lines_match(rest, &output[skipped..]))
        }
        Some((first, rest)) => output
            .split_first()
            .is_some_and(|(line, others)| line_matches(first, line) && lines_match(rest, others)),
    }
}

fn line_matches(shown: &str, line: &str) -> bool {
    let Some((start, rest)) = shown.split_once("...") else { return shown == line };
    let Some(mut line) = line.strip_prefix(start) else { return false };
    let mut parts: Vec<&str> = rest.split("...").collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = line.find(part) else { return false };
        line = &line[at + part.len()..];
    }
    line.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
# A `b` — c\n\n## A b\n\n## A b\n\n<a id=\"here\"></a> [x](y.md#z) `--flag`\n
<!-- setup: seq 3 > three -->
<!-- not run: needs a server -->
```console
$ one \\
>   two   # remark
out 1
out 2
$ three
```

Text.

```toml
x = 1
```

- item

  ```console
  $ four
  ```

    $ five
";

    #[test]
    fn page_has_its_links_anchors_and_blocks() {
        let page = parse("p.md", PAGE);
        assert_eq!(Vec::from_iter(&page.anchors), ["a-b", "a-b--c", "a-b-1", "here"]);
        assert_eq!((page.links[0].line, page.links[0].target.as_str()), (7, "y.md#z"));
        assert_eq!(page.inline_code[1].code, "--flag");
        let [first, toml, inner, ..] = &page.blocks[..] else { panic!("{:?}", page.blocks) };
        assert_eq!((first.line, first.not_run.as_deref()), (12, Some("needs a server")));
        assert_eq!(first.setup, [(9, "seq 3 > three".to_owned())]);
        let commands = first.commands("$ ").expect("commands");
        assert_eq!(commands[0].text, "one \\\n  two   # remark");
        assert_eq!(commands[0].shown, "out 1\nout 2\n");
        assert_eq!((commands[1].line, commands[1].text.as_str()), (16, "three"));
        assert!(toml.is("toml") && toml.not_run.is_none() && toml.setup.is_empty());
        assert_eq!(inner.commands("$ ").expect("commands")[0].text, "four");
    }

    #[test]
    fn dots_stand_for_any_text() {
        assert!(is_as_shown("a\n...\nb ... s\n", "a\nx\ny\nb 0.3 s"));
        assert!(is_as_shown("a\n...\nb", "a\nb\n"));
        assert!(is_as_shown("in 1...2...3", "in 1x2y3"));
        for (shown, output) in
            [("a", "b"), ("a\nb", "a"), ("a", "a\nb"), ("a ... s", "a 3 m"), ("...\nb", "b\nc")]
        {
            assert!(!is_as_shown(shown, output), "{shown:?} {output:?}");
        }
    }
}
