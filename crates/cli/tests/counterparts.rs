//! The Chinese pages and their English counterparts: each links the other, and the Chinese page has no command, output
//! or figure that the English page does not have. So a change of one page that the other needs, too, fails here.

#![allow(clippy::unwrap_used, reason = "a failed helper should fail the test")]

use std::collections::BTreeSet;
use std::fs;

use petal_testkit::pages::{Block, Page, pages, parse, root};

/// Pages that are for Chinese readers alone.
const CHINESE_ALONE: [&str; 1] = ["docs/zh/terms.md"];

/// The pages on which readers begin: the counterparts of the first two may repeat what is on any of them.
const ENTRANCES: [&str; 3] = ["README.md", "docs/introduction.md", "docs/two-huge-files.md"];

/// Figures below this are also in sentences that are not about them.
const SMALL: f64 = 10.0;

/// Words for numbers before `million` and `billion`.
const WORDS: [&str; 10] =
    ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];

/// Words that multiply the number before them.
const SCALES: [(&str, f64); 5] =
    [("thousand", 1e3), ("million", 1e6), ("billion", 1e9), ("万", 1e4), ("亿", 1e8)];

/// Returns the Chinese pages, each with the path of its English counterpart.
fn counterparts() -> Vec<(Page, String)> {
    let chinese = pages().into_iter().filter_map(|page| {
        let path = match page.path.as_str() {
            "README.zh-CN.md" => "README.md".to_owned(),
            path if CHINESE_ALONE.contains(&path) => return None,
            path => format!("docs/{}", path.strip_prefix("docs/zh/")?),
        };
        Some((page, path))
    });
    chinese.collect()
}

fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Returns the texts in which the commands and figures of a page may be.
fn sources(english: &str) -> Vec<(String, String)> {
    let mut paths = BTreeSet::from([english]);
    if english == ENTRANCES[0] || english == ENTRANCES[1] {
        paths.extend(ENTRANCES);
    }
    paths.into_iter().map(|path| (path.to_owned(), text(path))).collect()
}

#[test]
fn counterparts_link_each_other() {
    let mut problems = Vec::new();
    for (page, english) in counterparts() {
        let folders = page.path.matches('/').count();
        let to_english = match page.path.as_str() {
            "README.zh-CN.md" => "[English](README.md)".to_owned(),
            path => {
                format!("[English]({}{})", "../".repeat(folders - 1), &path["docs/zh/".len()..])
            }
        };
        let to_chinese = match english.as_str() {
            "README.md" => "[简体中文](README.zh-CN.md)".to_owned(),
            path => format!("[中文]({}zh/{})", "../".repeat(folders - 2), &path["docs/".len()..]),
        };
        for (path, link) in [(&page.path, to_english), (&english, to_chinese)] {
            // Under the title, or, in README.md, above it.
            if !text(path).lines().take(3).any(|line| line.contains(&link)) {
                problems.push(format!("{path}: its first three lines need {link}"));
            }
        }
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn chinese_pages_link_chinese_pages() {
    let counterparts = counterparts();
    let translated: BTreeSet<_> =
        counterparts.iter().map(|(_, english)| english.as_str()).collect();
    let mut problems = Vec::new();
    for (page, english) in &counterparts {
        let folder = root().join(&page.path).parent().unwrap().to_owned();
        for link in &page.links {
            let file = link.target.split('#').next().unwrap();
            let Ok(target) = folder.join(file).canonicalize() else { continue };
            let target = target.strip_prefix(root().canonicalize().unwrap()).unwrap();
            let target = target.to_string_lossy();
            // A page may link its own counterpart for more.
            if target != *english && translated.contains(&*target) {
                problems.push(format!("{}:{}: {target} exists in Chinese", page.path, link.line));
            }
        }
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn commands_and_outputs_are_those_of_the_english_page() {
    let mut problems = Vec::new();
    for (page, english) in counterparts() {
        let sources = sources(&english);
        let known: BTreeSet<_> = sources
            .iter()
            .flat_map(|(path, text)| parse(path, text).blocks)
            .flat_map(|block| code(&block))
            .collect();
        for block in &page.blocks {
            let unknown = code(block).into_iter().filter(|line| !known.contains(line));
            problems.extend(unknown.map(|line| format!("{}: not in {english}: {line}", page.path)));
        }
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

/// Returns the lines of a block of commands or of code without their remarks, which are translated.
fn code(block: &Block) -> Vec<String> {
    let remark = match block.language.as_deref() {
        Some("console" | "python") => "#",
        Some("rust") => "//",
        _ => return Vec::new(),
    };
    let lines = block.code.lines().filter(|line| !line.starts_with(remark));
    // Two spaces before it: one is also within commands.
    let lines = lines.map(|line| line.split(&format!("  {remark}")).next().unwrap().trim());
    // `...` stands for lines that the page leaves out.
    lines.filter(|line| !["", "..."].contains(line)).map(ToOwned::to_owned).collect()
}

#[test]
fn figures_are_those_of_the_english_page() {
    let mut problems = Vec::new();
    for (page, english) in counterparts() {
        let known: BTreeSet<_> = sources(&english)
            .iter()
            .flat_map(|(_, text)| figures(text))
            .map(|(key, _)| key)
            .collect();
        let found = figures(&text(&page.path)).into_iter();
        let unknown = found.filter(|(key, _)| !known.contains(key));
        problems
            .extend(unknown.map(|(_, shown)| format!("{}: not in {english}: {shown}", page.path)));
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

/// Returns the numbers of a text, with six digits, and as they are written: `1,000`, `1e6`, `10⁻⁶`, `2^25`,
/// `five billion`, `50 亿`. Whole numbers below [`SMALL`] are left out.
fn figures(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_alphanumeric()) {
        let start = &rest[at..];
        let length = start
            .find(|c: char| !(c.is_ascii_alphanumeric() || ".,^-⁻⁰¹²³⁴⁵⁶⁷⁸⁹".contains(c)))
            .unwrap_or(start.len());
        let token = &start[..length];
        let (value, used) = match number(token) {
            Some((value, used)) => (Some(value), used),
            None => {
                let used = token.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(length).max(1);
                (word(&token[..used]), used)
            }
        };
        rest = &start[used..];
        let after = rest.trim_start_matches([' ', '\n', '-']);
        let scale =
            SCALES.iter().find(|(name, _)| after.starts_with(name)).map(|&(_, scale)| scale);
        let is_word = start.starts_with(|c: char| c.is_ascii_alphabetic());
        // A word is a number only before a scale.
        if let Some(value) = value.filter(|_| !is_word || scale.is_some()) {
            let value = value * scale.unwrap_or(1.0);
            if value >= SMALL || value.fract() != 0.0 {
                found.push((format!("{value:.5e}"), start[..used].to_owned()));
            }
        }
    }
    found
}

/// Reads the number at the start of a token; returns its value and its length.
fn number(token: &str) -> Option<(f64, usize)> {
    let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let mut end = digits(token);
    if end == 0 {
        return None;
    }
    // Groups of three digits, then a fraction.
    while token[end..].starts_with(',') && digits(&token[end + 1..]) >= 3 {
        end += 4;
    }
    if token[end..].starts_with('.') && digits(&token[end + 1..]) > 0 {
        end += 1 + digits(&token[end + 1..]);
    }
    let base: f64 = token[..end].replace(',', "").parse().ok()?;
    let after = &token[end..];
    let raised: String = after
        .chars()
        .map_while(|c| {
            let place = "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().position(|digit| digit == c);
            place.map_or((c == '⁻').then_some('-'), |place| char::from_digit(place as u32, 10))
        })
        .collect();
    if let Ok(power) = raised.parse() {
        let length = raised.chars().map(|c| if "123".contains(c) { 2 } else { 3 }).sum::<usize>();
        return Some((base.powi(power), end + length));
    }
    let sign = |text: &str| usize::from(text.starts_with('-'));
    let power = after.strip_prefix(['^', 'e']).filter(|text| digits(&text[sign(text)..]) > 0);
    let Some(power) = power else { return Some((base, end)) };
    let length = sign(power) + digits(&power[sign(power)..]);
    let exponent: i32 = power[..length].parse().ok()?;
    let value =
        if after.starts_with('^') { base.powi(exponent) } else { base * 10_f64.powi(exponent) };
    Some((value, end + 1 + length))
}

/// Returns the number that a word stands for.
fn word(word: &str) -> Option<f64> {
    let word = word.to_ascii_lowercase();
    let place = WORDS.iter().position(|name| *name == word);
    place.map(|place| (place + 1) as f64).or((word == "a").then_some(1.0))
}

#[test]
fn figures_are_read_in_both_languages() {
    let keys = |text| figures(text).into_iter().map(|(key, _)| key).collect::<Vec<_>>();
    for (chinese, english) in [
        ("50 亿个 URL", "five billion URLs"),
        ("2000 万行，1.3 GB", "20 million lines, 1.3 GB"),
        ("一共 1,730,213 行", "1,730,213 of them"),
        ("1.25 亿", "125 million"),
        ("误判率 10⁻⁶", "a rate of 10^-6"),
        ("10⁻⁶，1e-6", "10⁻⁶, 1e-6"),
        ("2²⁵ 位", "2^25 bits"),
        ("100 万", "a million"),
        ("0.78 %，7.1", "0.78 % at 7.1"),
    ] {
        assert_eq!(keys(chinese), keys(english), "{chinese}");
        assert!(!keys(chinese).is_empty(), "{chinese}");
    }
    assert_eq!(keys("k = 7, two of 9"), [""; 0]);
    assert_ne!(keys("3.92 %"), keys("3.93 %"));
}

#[test]
fn remarks_of_code_are_left_out() {
    let page = "```console\n$ petal info f    # 说明\n# 说明\nx # y\n```\n\n```toml\na = 1\n```\n";
    let lines: Vec<_> = parse("p.md", page).blocks.iter().flat_map(code).collect();
    assert_eq!(lines, ["$ petal info f", "x # y"]);
}
