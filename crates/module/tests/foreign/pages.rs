//! The console blocks of the pages that need a server: those with the prompt `127.0.0.1:6379> ` and those that call
//! `redis-cli`. The replies are as the page shows them. "To add a page" in CONTRIBUTING.md has the rules. Programs of a
//! page find the server in `REDIS_URL`, and their packages in the peer `clients`.

use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::{Command, Stdio};

use petal_testkit::pages::{Block, Page, is_as_shown, pages, parse};
use petal_testkit::scratch::Scratch;

use crate::server::{Server, program};

/// The prompt of `redis-cli`.
const PROMPT: &str = "127.0.0.1:6379> ";

/// Returns true if a block is run here: it is one of a server, and not marked.
fn runs_here(block: &Block) -> bool {
    block.is_for_a_server() && block.not_run.is_none()
}

#[test]
#[ignore = "cargo x test --foreign"]
fn console_blocks_of_pages_reply_as_shown() {
    let (mut problems, mut commands) = (String::new(), 0);
    for page in pages().iter().filter(|page| page.blocks.iter().any(runs_here)) {
        commands += run(page, &mut problems);
    }
    assert!(problems.is_empty(), "\n{problems}");
    assert!(commands > 60, "{commands}");
}

#[test]
#[ignore = "cargo x test --foreign"]
fn replies_that_differ_from_the_page_are_found() {
    let text = format!(
        "```console\n{PROMPT}BF.ADD k a\n(integer) 0\n{PROMPT}BF.ADD k a\n(integer) 0\n```\n"
    );
    let mut problems = String::new();
    assert_eq!(run(&parse("p.md", &text), &mut problems), 2);
    assert!(problems.starts_with("p.md:2: BF.ADD k a: the output is\n(integer) 1\n"), "{problems}");
    assert_eq!(problems.matches("p.md:").count(), 1, "{problems}");
}

/// Runs the blocks of a page on one server, in one folder; returns the number of commands.
fn run(page: &Page, problems: &mut String) -> usize {
    let session = Session::new();
    let mut count = 0;
    for block in &page.blocks {
        if let Some(name) = &block.file {
            let path = session.files.write(name, &block.code);
            fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
            session.install_node_packages(name);
        }
        if !runs_here(block) {
            continue;
        }
        for (line, setup) in &block.setup {
            let (succeeded, output) = session.shell(&format!("set -e\n{setup}"));
            if !succeeded {
                writeln!(problems, "{}:{line}: the setup fails: {output}", page.path).unwrap();
            }
        }
        let in_client = block.code.contains(PROMPT);
        let commands = match block.commands(if in_client { PROMPT } else { "$ " }) {
            Ok(commands) => commands,
            Err(problem) => {
                writeln!(problems, "{}:{}: {problem}", page.path, block.line).unwrap();
                continue;
            }
        };
        for command in commands {
            count += 1;
            // The client reads the words as in its own prompt.
            let script = format!("redis-cli <<'END OF COMMAND'\n{}\nEND OF COMMAND", command.text);
            let (succeeded, output) =
                session.shell(if in_client { &script } else { &command.text });
            let is_right = match command.shown.as_str() {
                "" => succeeded,
                shown => is_as_shown(shown, &output),
            };
            if !is_right {
                let place = format!("{}:{}", page.path, command.line);
                writeln!(problems, "{place}: {}: the output is\n{output}", command.text).unwrap();
            }
        }
    }
    count
}

/// A server, and a folder in whose shell `redis-cli` is connected to it.
struct Session {
    server: Server,
    files: Scratch,
    programs: Scratch,
}

impl Session {
    fn new() -> Self {
        let session =
            Self { server: Server::new(), files: Scratch::new(), programs: Scratch::new() };
        let client = program("bin/redis-cli");
        let script =
            format!("#!/bin/sh\nexec {} -p {} \"$@\"\n", client.display(), session.server.port());
        let path = session.programs.write("redis-cli", script);
        fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
        session
    }

    /// Makes the packages of Node available to a file, if it is a program for Node.
    fn install_node_packages(&self, name: &str) {
        let packages = self.files.file("node_modules");
        if name.ends_with(".mjs") && !packages.exists() {
            symlink(program("clients/node_modules"), packages).unwrap();
        }
    }

    /// Runs a script; returns whether it succeeded, and its output with standard error.
    fn shell(&self, script: &str) -> (bool, String) {
        // On a terminal the client prints the types of replies. Scripts such as filter.sh need them without.
        let function = "redis-cli() { command redis-cli --no-raw --no-auth-warning \"$@\"; }";
        // Cargo builds `petal` beside the folder of the tests.
        let built = std::env::current_exe().unwrap();
        let built = built.parent().and_then(|deps| deps.parent()).unwrap().to_owned();
        assert!(built.join("petal").exists(), "run cargo build -p petal-cli first");
        let path = std::env::var("PATH").unwrap_or_default();
        let folders = [self.programs.path(), &built, &program("clients/bin")];
        let folders = folders.map(|folder| folder.display().to_string()).join(":");
        let output = Command::new("bash")
            .args(["-c", &format!("set -o pipefail; exec 2>&1\n{function}\n{script}")])
            .current_dir(self.files.path())
            .env("PATH", format!("{folders}:{path}"))
            .env("REDIS_URL", format!("redis://127.0.0.1:{}", self.server.port()))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    }
}
