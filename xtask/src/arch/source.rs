//! One Rust file: its first sentence, its length, its unsafe code, and the paths in it.

use std::collections::HashMap;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::step::Result;

/// A module path or item path from the root of the crate.
pub(super) type ItemPath = Vec<String>;

/// What `arch` needs of a file.
pub(super) struct SourceFile {
    /// Path from the root of the repository, with `/`.
    pub(super) path: String,
    /// The first sentence of the module's documentation.
    pub(super) summary: String,
    /// Lines, unit tests excluded.
    pub(super) lines: usize,
    /// Lines with the keyword `unsafe`, unit tests excluded.
    pub(super) unsafe_lines: Vec<usize>,
    /// Paths into the same crate, with their lines.
    pub(super) uses: Vec<(usize, ItemPath)>,
    /// Imported names and what they stand for, re-exports included.
    pub(super) imports: HashMap<String, ItemPath>,
    /// Modules that exist only for unit tests.
    pub(super) test_modules: Vec<ItemPath>,
    /// Child modules that have files of their own.
    children: Vec<String>,
}

impl SourceFile {
    pub(super) fn parse(path: String, text: &str) -> Result<Self> {
        let tokens: TokenStream =
            text.parse().map_err(|e| format!("{path}: not valid Rust: {e}"))?;
        let module = module_path(&path);
        let top: Vec<TokenTree> = tokens.clone().into_iter().collect();
        let children = top.windows(3).filter_map(|tokens| match tokens {
            [TokenTree::Ident(word), TokenTree::Ident(name), end] => {
                (word == "mod" && is_semicolon(end)).then(|| name.to_string())
            }
            _ => None,
        });
        let mut file = Self {
            path,
            summary: first_sentence(text),
            lines: text.lines().count(),
            unsafe_lines: Vec::new(),
            uses: Vec::new(),
            imports: HashMap::new(),
            test_modules: Vec::new(),
            children: children.collect(),
        };
        file.read(tokens, &module);
        Ok(file)
    }

    /// Whether this is code of a crate, not one of its tests, benches or examples.
    pub(super) fn in_src(&self) -> bool {
        self.path.contains("/src/")
            && !self.path.ends_with("/tests.rs")
            && !self.path.contains("/tests/")
    }

    fn read(&mut self, tokens: TokenStream, module: &[String]) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            let rest = &tokens[at + 1..];
            match token {
                TokenTree::Punct(hash) if hash.as_char() == '#' && is_cfg_test(rest) => {
                    at += 2 + self.skip_item(&rest[1..], token, module);
                    continue;
                }
                TokenTree::Group(group) => self.read(group.stream(), module),
                TokenTree::Ident(word) if word == "unsafe" => {
                    self.unsafe_lines.push(line_of(token));
                }
                TokenTree::Ident(word) if word == "mod" => {
                    if let [TokenTree::Ident(name), TokenTree::Group(body), ..] = rest {
                        let inner = [module, &[name.to_string()]].concat();
                        self.read(body.stream(), &inner);
                        at += 3;
                        continue;
                    }
                }
                TokenTree::Ident(word) if word == "use" => {
                    let end = rest.iter().position(is_semicolon).unwrap_or(0);
                    let is_pub = |token: &TokenTree| matches!(token, TokenTree::Ident(word) if word == "pub");
                    let public = match &tokens[..at] {
                        [.., keyword, TokenTree::Group(_)] if is_pub(keyword) => true,
                        [.., keyword] => is_pub(keyword),
                        [] => false,
                    };
                    self.read_use(&rest[..end], &[], module, public);
                    at += 1 + end;
                    continue;
                }
                TokenTree::Ident(_) => {
                    let (path, length) = path_at(&tokens[at..]);
                    if path.len() > 1 {
                        self.uses.extend(
                            self.absolute(&path, module).map(|path| (line_of(token), path)),
                        );
                    }
                    at += length;
                    continue;
                }
                _ => {}
            }
            at += 1;
        }
    }

    /// Reads one tree of a `use` item. A re-export is not a use: the file only gives another file's item a name.
    fn read_use(&mut self, tree: &[TokenTree], prefix: &[String], module: &[String], public: bool) {
        let (mut path, length) = path_at(tree);
        path.splice(0..0, prefix.iter().cloned());
        let rest = &tree[length..];
        if let Some(TokenTree::Group(group)) =
            rest.iter().find(|t| matches!(t, TokenTree::Group(_)))
        {
            let inner: Vec<TokenTree> = group.stream().into_iter().collect();
            for tree in inner.split(|t| matches!(t, TokenTree::Punct(p) if p.as_char() == ',')) {
                self.read_use(tree, &path, module, public);
            }
            return;
        }
        let Some(token) = tree.first() else { return };
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let alias = match rest {
            [TokenTree::Ident(word), TokenTree::Ident(alias)] if word == "as" => {
                Some(alias.to_string())
            }
            _ => path.last().cloned(),
        };
        let Some(full) = self.absolute(&path, module) else { return };
        if !public {
            self.uses.push((line_of(token), full.clone()));
        }
        self.imports.extend(alias.map(|alias| (alias, full)));
    }

    /// A path as it is from the root of the crate; `None` if it starts in another crate.
    fn absolute(&self, path: &[String], module: &[String]) -> Option<ItemPath> {
        let (base, skip) = match path.first()?.as_str() {
            "crate" => (0, 1),
            "self" => (module.len(), 1),
            "super" => {
                let up = path.iter().take_while(|part| *part == "super").count();
                (module.len().checked_sub(up)?, up)
            }
            name if self.children.iter().any(|child| child == name) => (module.len(), 0),
            _ => return None,
        };
        Some([&module[..base], &path[skip..]].concat())
    }

    /// Skips the item after `#[cfg(test)]`, subtracts its lines, and returns its number of tokens.
    fn skip_item(&mut self, item: &[TokenTree], start: &TokenTree, module: &[String]) -> usize {
        let is_end = |token: &TokenTree| {
            is_semicolon(token)
                || matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
        };
        let Some(end) = item.iter().position(is_end) else { return 0 };
        if let [.., TokenTree::Ident(word), TokenTree::Ident(name), TokenTree::Punct(_)] =
            &item[..=end]
            && word == "mod"
        {
            self.test_modules.push([module, &[name.to_string()]].concat());
        }
        self.lines -= item[end].span().end().line - line_of(start) + 1;
        end + 1
    }
}

/// `crates/x/src/a/b.rs` is `[a, b]`; a crate's root is empty, and so is anything outside `src`.
pub(super) fn module_path(path: &str) -> ItemPath {
    let inside = path.split_once("/src/").map_or("", |(_, inside)| inside);
    let parts = inside
        .trim_end_matches(".rs")
        .split('/')
        .filter(|part| !matches!(*part, "" | "mod" | "lib" | "main"));
    parts.map(str::to_owned).collect()
}

/// The path `a::b::c` that starts here, and its number of tokens, a trailing `::` included; at least 1.
fn path_at(tokens: &[TokenTree]) -> (ItemPath, usize) {
    let mut path = Vec::new();
    let mut at = 0;
    while let Some(TokenTree::Ident(name)) = tokens.get(at) {
        path.push(name.to_string());
        at += 1;
        match &tokens[at..] {
            [TokenTree::Punct(a), TokenTree::Punct(b), ..]
                if a.as_char() == ':' && b.as_char() == ':' =>
            {
                at += 2
            }
            _ => break,
        }
    }
    (path, at)
}

fn is_semicolon(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == ';')
}

fn is_cfg_test(after_hash: &[TokenTree]) -> bool {
    matches!(after_hash.first(), Some(TokenTree::Group(group)) if {
        let text = group.stream().to_string().replace(' ', "");
        text == "cfg(test)" || text.starts_with("cfg(all(test,")
    })
}

fn line_of(token: &TokenTree) -> usize {
    token.span().start().line
}

/// The first sentence of a Rust module's or a Python module's documentation, in one line.
pub(super) fn first_sentence(text: &str) -> String {
    let lines = text.lines().take_while(|line| line.starts_with("//!") && line.len() > 3);
    let text = lines.map(|line| line[3..].trim()).collect::<Vec<_>>().join(" ");
    cut_sentence(&text)
}

/// `text` up to the end of its first sentence, the full stop excluded.
fn cut_sentence(text: &str) -> String {
    let end = text.find(". ").unwrap_or(text.len());
    // rustdoc resolves links, a page does not: only their text remains.
    let mut out = String::new();
    let mut rest = text[..end].trim_end_matches('.');
    while let Some((before, after)) = rest.split_once("[`") {
        let (name, after) = after.split_once("`]").unwrap_or((after, ""));
        out.extend([before, "`", name, "`"]);
        let target = after.strip_prefix('(').and_then(|target| target.split_once(')'));
        rest = target.map_or(after, |(_, after)| after);
    }
    out.push_str(rest);
    out.replace('|', "\\|")
}
