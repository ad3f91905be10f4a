//! The pages: README.md, CONTRIBUTING.md, ARCHITECTURE.md and docs/. Links and anchors exist, commands and flags are
//! valid, and the console blocks run and print what the page shows. "To add a page" in CONTRIBUTING.md has the rules.

#![allow(clippy::unwrap_used, reason = "a failed helper should fail the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Component, Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use petal_testkit::pages::{Block, Page, is_as_shown, pages, parse, root};
use petal_testkit::scratch::Scratch;

const PETAL: &str = env!("CARGO_BIN_EXE_petal");

/// The languages of code blocks.
const LANGUAGES: [&str; 19] = [
    "console",
    "python",
    "rust",
    "toml",
    "text",
    "json",
    "ini",
    "yaml",
    "bash",
    "dockerfile",
    "html",
    "c",
    "cmake",
    "cpp",
    "scala",
    "diff",
    "go",
    "java",
    "javascript",
];

/// Programs that no console block may start here: they use the network, build for minutes or need rights.
const NOT_STARTED: [&str; 14] = [
    "apt",
    "apt-get",
    "brew",
    "cargo",
    "curl",
    "docker",
    "env/bin/pip",
    "git",
    "pip",
    "rustup",
    "scrapy",
    "spark-submit",
    "sudo",
    "systemctl",
];

/// Flags of programs other than petal, and of `cargo x`, that pages mention without the program's name.
const OTHER_FLAGS: [&str; 5] = ["--dry-run", "--foreign", "--from", "--kernel", "--quick"];

/// Files that `cargo x book` makes.
const MADE_BY_THE_BOOK: [&str; 1] = ["docs/interactive/petal-wasm.js"];

/// Problems, one a line: `page:line: problem`.
#[derive(Default)]
struct Problems(String);

impl Problems {
    fn add(&mut self, page: &Page, line: usize, problem: impl AsRef<str>) {
        writeln!(self.0, "{}:{line}: {}", page.path, problem.as_ref()).unwrap();
    }

    #[track_caller]
    fn none(self) {
        assert!(self.0.is_empty(), "\n{}", self.0);
    }
}

#[test]
fn links_and_anchors_exist() {
    let pages = pages();
    let anchors: BTreeMap<&str, &BTreeSet<String>> =
        pages.iter().map(|page| (page.path.as_str(), &page.anchors)).collect();
    let mut problems = Problems::default();
    for page in &pages {
        for link in &page.links {
            let Some(problem) = link_problem(page, &link.target, &anchors) else { continue };
            problems.add(page, link.line, format!("{}: {problem}", link.target));
        }
    }
    problems.none();
}

/// Returns what is wrong with a link.
fn link_problem(
    page: &Page,
    target: &str,
    anchors: &BTreeMap<&str, &BTreeSet<String>>,
) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") || target.starts_with("data:") {
        return None;
    }
    let (file, anchor) =
        target.split_once('#').map_or((target, None), |(file, anchor)| (file, Some(anchor)));
    let path = if file.is_empty() {
        page.path.clone()
    } else {
        let folder = Path::new(&page.path).parent()?;
        normal(&folder.join(file.split('?').next()?))
    };
    if MADE_BY_THE_BOOK.contains(&path.as_str()) {
        return None;
    }
    // `/x` is not a file of the repository, and an HTML page is built from its Markdown page.
    let exists = !file.starts_with('/') && root().join(&path).exists();
    if !exists {
        return Some(format!("there is no file {path}"));
    }
    let anchor = anchor?;
    let known = anchors.get(path.as_str())?;
    (!known.contains(anchor)).then(|| format!("{path} has no heading with the anchor #{anchor}"))
}

/// Returns a path without `..`.
fn normal(path: &Path) -> String {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(parts.pop()),
            Component::CurDir => {}
            part => parts.push(part),
        }
    }
    parts.to_string_lossy().into_owned()
}

#[test]
fn links_to_missing_files_and_anchors_are_found() {
    let page = parse(
        "docs/choosing.md",
        "# A\n[x](nowhere.md) [y](choosing.md#b) [z](#a) [w](../README.md)\n",
    );
    let anchors = BTreeMap::from([("docs/choosing.md", &page.anchors)]);
    let found: Vec<_> =
        page.links.iter().map(|link| link_problem(&page, &link.target, &anchors)).collect();
    assert_eq!(found.iter().map(Option::is_some).collect::<Vec<_>>(), [true, true, false, false]);
}

#[test]
fn code_blocks_have_a_language_and_code_of_rust_is_a_doctest() {
    let doctests = doctests();
    let mut problems = Problems::default();
    for page in pages() {
        for block in &page.blocks {
            let first = block.code.lines().next().unwrap_or_default();
            match block.language.as_deref().map(|language| language.split(',').next().unwrap_or_default()) {
                None | Some("" | "text") => {
                    let commands = ["petal ", "$ ", "cargo ", "redis-cli "];
                    if commands.iter().any(|start| first.starts_with(start)) && !first.contains("COMMAND") {
                        problems.add(&page, block.line, "write commands in a ```console block, after `$ `");
                    }
                }
                Some("bash") if block.not_run.is_none() && block.file.is_none() => problems.add(
                    &page,
                    block.line,
                    "precede the script by <!-- file: NAME -->, which writes it for later blocks, or by \
                     <!-- not run: REASON -->",
                ),
                Some("rust") if block.not_run.is_none() && !doctests.contains(&page.path) => problems.add(
                    &page,
                    block.line,
                    "no crate includes this page in its doctests (crates/*/src/lib.rs); include it, or precede the \
                     block by <!-- not run: REASON -->",
                ),
                Some(language) if !LANGUAGES.contains(&language) => {
                    problems.add(&page, block.line, format!("`{language}` is not one of {LANGUAGES:?}"));
                }
                Some(_) => {}
            }
            if block.not_run.as_ref().is_some_and(String::is_empty) {
                problems.add(&page, block.line, "<!-- not run: --> has no reason");
            }
        }
    }
    problems.none();
}

/// Returns the pages that are doctests of a crate.
fn doctests() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let root = root().canonicalize().unwrap();
    for entry in fs::read_dir(root.join("crates")).unwrap() {
        let src = entry.unwrap().path().join("src");
        let Ok(text) = fs::read_to_string(src.join("lib.rs")) else { continue };
        for included in text.split("#[doc = include_str!(\"").skip(1) {
            let path = src.join(included.split('"').next().unwrap());
            let path = path.canonicalize().unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            found.insert(path.strip_prefix(&root).unwrap().to_string_lossy().into_owned());
        }
    }
    found
}

#[test]
fn flags_and_commands_within_text_exist() {
    let flags = flags();
    let all: BTreeSet<&str> =
        flags.values().flatten().map(String::as_str).chain(OTHER_FLAGS).collect();
    let mut problems = Problems::default();
    for page in pages() {
        for inline in &page.inline_code {
            for problem in inline_problems(&inline.code, &flags, &all) {
                problems.add(&page, inline.line, problem);
            }
        }
    }
    problems.none();
}

/// Returns what is wrong with code within text: `petal VERB ... --flag`, or `--flag` alone.
fn inline_problems(
    code: &str,
    flags: &BTreeMap<String, BTreeSet<String>>,
    all: &BTreeSet<&str>,
) -> Vec<String> {
    let is_flag = |word: &&str| {
        word.starts_with("--") && word.len() > 2 || word.len() == 2 && word.starts_with('-')
    };
    let words = code.split(|c: char| c.is_whitespace() || "[]()=,|".contains(c));
    let mut words = words
        .map(|word| word.trim_end_matches([':', ';', '.']))
        .filter(|word| !word.is_empty())
        .peekable();
    let is_petal = words.next_if_eq(&"petal").is_some();
    let verb = words.peek().copied().unwrap_or_default();
    // Not `petal/scrapy`, or a name such as `petal k=6`.
    let is_petal = is_petal && !code.contains(&format!("{verb}="));
    if is_petal && !verb.is_empty() && verb.bytes().all(|c| c.is_ascii_lowercase()) {
        let Some(known) = flags.get(verb) else {
            return vec![format!("`{code}`: petal has no command `{verb}`")];
        };
        let unknown = words.filter(is_flag).filter(|flag| !known.contains(*flag));
        return unknown
            .map(|flag| format!("`{code}`: `petal {verb}` has no flag `{flag}`"))
            .collect();
    }
    if !code.starts_with("--") {
        return Vec::new();
    }
    let flag = verb;
    let missing = is_flag(&flag) && !all.contains(flag);
    missing
        .then(|| format!("`{code}`: no command of petal has the flag `{flag}`"))
        .into_iter()
        .collect()
}

/// Returns the flags of each verb, from its help text.
fn flags() -> BTreeMap<String, BTreeSet<String>> {
    let help = |args: &[&str]| {
        let output = Command::new(PETAL).args(args).arg("--help").output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let verbs = help(&[]);
    let verbs = verbs.split("\nCommands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let verbs = verbs.lines().map(|line| line.trim_start().split(' ').next().unwrap());
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for verb in verbs.chain(["uniq", "help"]) {
        let text = help(if verb == "help" { &[] } else { std::slice::from_ref(&verb) });
        let words = text
            .lines()
            .filter(|line| line.trim_start().starts_with('-'))
            .flat_map(str::split_whitespace);
        // `[aliases: --threads]`
        let aliases = text.split_whitespace().filter_map(|word| word.strip_suffix(']'));
        let flags = words
            .chain(aliases)
            // `--full-scan[=<WHEN>]`
            .map(|word| word.split([',', '[']).next().unwrap_or_default())
            .filter(|word| word.starts_with('-'));
        found.insert(verb.to_owned(), flags.map(ToOwned::to_owned).collect());
    }
    let flags: BTreeSet<String> = ["-h", "--help", "-V", "--version"].map(ToOwned::to_owned).into();
    found.insert(String::new(), flags);
    found
}

#[test]
fn unknown_flags_and_commands_are_found() {
    let flags = flags();
    let all: BTreeSet<&str> = flags.values().flatten().map(String::as_str).collect();
    let count = |code| inline_problems(code, &flags, &all).len();
    assert_eq!(
        ["petal nothing", "petal plan -o x", "--nothing", "petal common A --fold"].map(count),
        [1; 4]
    );
    assert_eq!(
        [
            "petal COMMAND",
            "petal seen F < log >> new.txt",
            "--fpr RATE",
            "petal man [--dir DIR]",
            "petal",
            "sort -u"
        ]
        .map(count),
        [0; 6]
    );
}

#[test]
fn commands_that_are_not_run_are_valid() {
    let mut problems = Problems::default();
    for page in pages() {
        for block in
            page.blocks.iter().filter(|block| block.is("console") && block.not_run.is_some())
        {
            for command in block.commands("$ ").unwrap_or_default() {
                for problem in arguments_problems(&command.text) {
                    problems.add(&page, command.line, problem);
                }
            }
        }
    }
    problems.none();
}

/// Returns what the program says about the arguments of each `petal` in a command line.
fn arguments_problems(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    for mut words in simple_commands(line) {
        // After `sudo`, `env X=Y` and the like.
        let Some(at) = words.iter().position(|word| word == "petal" || word.ends_with("/petal"))
        else {
            continue;
        };
        let args = words.split_off(at + 1);
        // `--help` stops before anything is read, but after the arguments are parsed.
        let output = Command::new(PETAL).args(&args).arg("--help").output().unwrap();
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            found.push(format!("{line}: {}", text.lines().next().unwrap_or_default()));
        }
    }
    found
}

/// Returns the words of each command in a line of a shell, without redirections.
fn simple_commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                word.extend(chars.by_ref().take_while(|&other| other != c));
            }
            '\\' => {
                if let Some(next) = chars.next().filter(|&next| next != '\n') {
                    word.get_or_insert_default().push(next);
                }
            }
            '#' if word.is_none() => break,
            '|' | ';' | '&' | '(' | ')' | '\n' => {
                commands.last_mut().unwrap().extend(word.take());
                commands.push(Vec::new());
            }
            '<' | '>' => {
                commands.last_mut().unwrap().extend(word.take());
                // The name of the file is not an argument.
                while chars.next_if(|&c| c == '>' || c == ' ').is_some() {}
                while chars.next_if(|&c| !c.is_whitespace() && c != ')').is_some() {}
            }
            c if c.is_whitespace() => commands.last_mut().unwrap().extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    commands.last_mut().unwrap().extend(word);
    commands.retain(|command| !command.is_empty());
    commands
}

#[test]
fn command_lines_are_divided_as_a_shell_does() {
    let commands =
        simple_commands("zcat 'a b' | X=1 petal common - \"b\" > out.txt && petal info f # what");
    let commands: Vec<String> = commands.iter().map(|words| words.join(",")).collect();
    assert_eq!(commands, ["zcat,a b", "X=1,petal,common,-,b", "petal,info,f"]);
    assert_eq!(arguments_problems("cat x | petal plan --nothing").len(), 1);
    assert_eq!(arguments_problems("petal plan -p 2").len(), 1);
    assert_eq!(arguments_problems("petal plan -n 1e6 -p 1% && petal common a b"), [""; 0]);
}

#[test]
fn console_blocks_run_and_print_what_the_page_shows() {
    let pages = pages();
    let next = std::sync::Mutex::new(pages.iter());
    let problems = std::sync::Mutex::new(Problems::default());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(page) = next.lock().unwrap().next() else { break };
                    let mut found = Problems::default();
                    run_page(page, &mut found);
                    problems.lock().unwrap().0.push_str(&found.0);
                }
            });
        }
    });
    problems.into_inner().unwrap().none();
}

/// Runs the console blocks of a page, one after another, in one folder. Those of a server run in
/// `crates/module/tests/foreign/pages.rs`, those of examples in `examples/test_pages.py`.
fn run_page(page: &Page, problems: &mut Problems) {
    let mut folder = None;
    for block in &page.blocks {
        let is_elsewhere = block.is_for_a_server() || block.is_for_an_example();
        let is_console = block.is("console") && block.not_run.is_none() && !is_elsewhere;
        if !is_console && block.file.is_none() {
            continue;
        }
        let folder = folder.get_or_insert_with(Folder::new);
        if let Some(name) = &block.file {
            folder.files.write(name, &block.code);
        } else {
            run_block(page, block, folder, problems);
        }
    }
}

fn run_block(page: &Page, block: &Block, folder: &Folder, problems: &mut Problems) {
    for (line, setup) in &block.setup {
        let (code, output) = folder.run(std::slice::from_ref(setup)).remove(0);
        if code != 0 {
            problems.add(page, *line, format!("the setup fails with {code}: {output}"));
        }
    }
    let commands = match block.commands("$ ") {
        Ok(commands) => commands,
        Err(problem) => return problems.add(page, block.line, problem),
    };
    for command in &commands {
        let starts = simple_commands(&command.text);
        let not_started =
            starts.iter().map(|words| words[0].as_str()).find(|word| NOT_STARTED.contains(word));
        if let Some(program) = not_started {
            let problem = format!(
                "precede the block by <!-- not run: REASON -->: the test does not start {program}"
            );
            return problems.add(page, command.line, problem);
        }
    }
    let texts: Vec<String> = commands.iter().map(|command| command.text.clone()).collect();
    let results = folder.run(&texts);
    for (command, (code, output)) in commands.iter().zip(results) {
        if command.shown.is_empty() && code != 0 {
            problems.add(
                page,
                command.line,
                format!("{}: exit code {code}\n{output}", command.text),
            );
        } else if !command.shown.is_empty() && !is_as_shown(&command.shown, &output) {
            let problem = format!("{}: the output is (exit code {code})\n{output}", command.text);
            problems.add(page, command.line, problem);
        }
    }
}

/// A folder with files under the names that pages use, and another one for the home and temporary files.
struct Folder {
    files: Scratch,
    home: Scratch,
}

impl Folder {
    fn new() -> Self {
        let folder = Self { files: Scratch::new(), home: Scratch::new() };
        for name in ["a.txt", "b.txt"] {
            folder.files.write(name, fs::read(root().join("testdata").join(name)).unwrap());
        }
        let urls = |range: std::ops::Range<u32>| {
            range.map(|number| format!("https://example.org/{number}\n")).collect::<String>()
        };
        folder
            .files
            .write("b.txt.zst", zstd::encode_all(&folder.files.read("b.txt")[..], 1).unwrap());
        folder.files.write("urls.txt", urls(0..2000));
        folder.files.write("new.txt", urls(1500..2500));
        folder.files.write("good.txt", urls(5000..9000));
        folder.files.write("bad.txt", urls(9000..9100));
        folder
            .files
            .write("ids.txt", (1..=1000).map(|number| format!("{number}\n")).collect::<String>());
        folder
    }

    /// Runs commands in one shell; returns the exit code and the output of each, or for the last one the code 124 if
    /// it takes longer than two minutes.
    fn run(&self, commands: &[String]) -> Vec<(i32, String)> {
        let mut script = String::from("set -o pipefail; exec 2>&1\n");
        for command in commands {
            script += &format!("{command}\nprintf '\\036%d\\036' $?\n");
        }
        let path = self.home.file("output");
        let programs = Path::new(PETAL).parent().unwrap().display();
        let child = Command::new("bash")
            .args(["-c", &script])
            .process_group(0)
            .current_dir(self.files.path())
            .env("PATH", format!("{programs}:{}", std::env::var("PATH").unwrap_or_default()))
            .env("HOME", self.home.path())
            .env("TMPDIR", self.home.path())
            .stdin(Stdio::null())
            .stdout(File::create(&path).unwrap())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let in_time = wait(child, Duration::from_secs(120));
        let output = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
        let mut parts = output.split('\x1e');
        let mut results = Vec::new();
        while let (Some(text), Some(code)) = (parts.next(), parts.next()) {
            results.push((code.parse().unwrap_or(-1), text.to_owned()));
        }
        if results.len() < commands.len() {
            let text = output.rsplit('\x1e').next().unwrap_or_default();
            let reason = if in_time { "the shell ended early" } else { "no end after two minutes" };
            results.push((124, format!("{reason}\n{text}")));
        }
        results
    }
}

/// Waits for a process and kills it after a time; returns true if it ended by itself.
fn wait(mut child: Child, most: Duration) -> bool {
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > most {
            // The shell and what it started.
            let group = format!("-{}", child.id());
            Command::new("kill").args(["-KILL", "--", &group]).status().unwrap();
            child.wait().unwrap();
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

#[test]
fn wrong_output_and_failed_commands_are_found() {
    let text = "```console\n$ petal common a.txt b.txt -c\n113\n$ petal common a.txt none.txt\n$ echo x\ny\n```\n";
    let mut problems = Problems::default();
    run_page(&parse("p.md", text), &mut problems);
    let lines: Vec<&str> = problems.0.lines().filter(|line| line.starts_with("p.md:")).collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].starts_with("p.md:4: petal common a.txt none.txt: exit code 2"), "{lines:?}");
    assert!(lines[1].starts_with("p.md:5: echo x: the output is"), "{lines:?}");
}

/// The bits per key of docs/choosing.md are those of `petal plan`, or of `petal build` for `static`, whose plan is an
/// estimate.
#[test]
fn bits_per_key_of_the_choosing_page_are_right() {
    let page = fs::read_to_string(root().join("docs/choosing.md")).unwrap();
    let folder = Folder::new();
    let bits = |kind: &str, fpr: &str| {
        let command = if kind == "static" {
            format!(
                "seq 100000 | petal build --type static -p {fpr} -o s.petal && petal info --json s.petal"
            )
        } else {
            format!("petal plan --json --type {kind} -n 1e6 -p {fpr}")
        };
        let (code, output) = folder.run(&[command]).remove(0);
        assert_eq!(code, 0, "{output}");
        let field = |name: &str| {
            let value = output.split(&format!("\"{name}\": ")).nth(1)?;
            value.split([',', '\n']).next()?.trim().parse::<f64>().ok()
        };
        field("bits_per_key").or_else(|| Some(field("size_bytes")? * 8.0 / 100_000.0)).unwrap()
    };
    let mut compared = 0;
    for row in page.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let &[_, _, _, kind, shown, ..] = &cells[..] else { continue };
        let kind = kind.split('`').nth(1).unwrap_or_default();
        let Some((first, second)) = shown.split_once(" / ").filter(|_| !kind.starts_with('-'))
        else {
            continue;
        };
        let number = |text: &str| text.split(' ').next().unwrap().to_owned();
        for (shown, fpr) in [(number(first), "1%"), (number(second), "0.1%")] {
            let Ok(value) = shown.parse::<f64>() else { continue };
            let actual = bits(kind, fpr);
            let half_a_digit = if shown.contains('.') { 0.05 } else { 0.5 };
            assert!(
                (value - actual).abs() <= half_a_digit + 1e-3,
                "{kind} at {fpr}: {shown}, computed {actual}"
            );
            compared += 1;
        }
    }
    assert!(compared >= 14, "{compared}");
}
