//! The programs behind the names in the commands.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use petal_bench::rivals;

use crate::plan::Entry;

/// A program that can be run.
struct Program {
    path: PathBuf,
    /// What comes before the arguments of a command.
    script: Option<PathBuf>,
    version: String,
}

/// Programs by name.
pub(crate) struct Tools {
    programs: BTreeMap<&'static str, Program>,
}

impl Tools {
    /// Finds petal and the system's own tools, and installs the rivals that are absent. A rival that cannot be had is
    /// left out, with a note.
    pub(crate) fn gather(petal: &Path, folder: &Path, rivals: bool) -> Result<Self, String> {
        let mut tools = Self { programs: BTreeMap::new() };
        tools.add("petal", petal.to_owned(), None)?;
        tools.add("wc", "wc".into(), None)?;
        if rivals {
            let (sort, shell) =
                (rivals::version(Path::new("sort"), &["--version".as_ref()])?, "sh");
            for name in ["sort", "sort+comm"] {
                let program = Program { path: shell.into(), script: None, version: sort.clone() };
                tools.programs.insert(name, program);
            }
            let script = Some(rivals::duckdb_script());
            tools.add_rival("duckdb", rivals::python_with_duckdb(folder), script);
            for name in ["huniq", "runiq", "zet"] {
                tools.add_rival(name, rivals::crates_io(folder, name), None);
            }
            let bloom = rivals::debian(folder, "golang-github-dcso-bloom-cli", "bloom");
            tools.add_rival("bloom", bloom, None);
        }
        Ok(tools)
    }

    fn add(
        &mut self,
        name: &'static str,
        path: PathBuf,
        script: Option<PathBuf>,
    ) -> Result<(), String> {
        let asked = script.as_deref().into_iter().chain(["--version".as_ref()]);
        let version = rivals::version(&path, &asked.collect::<Vec<_>>())?;
        self.programs.insert(name, Program { path, script, version });
        Ok(())
    }

    fn add_rival(
        &mut self,
        name: &'static str,
        path: Result<PathBuf, String>,
        script: Option<PathBuf>,
    ) {
        if let Err(problem) = path.and_then(|path| self.add(name, path, script)) {
            println!("left out: {problem}");
        }
    }

    pub(crate) fn has(&self, entry: &Entry) -> bool {
        self.programs.contains_key(entry.tool)
    }

    /// The version of an entry's tool.
    pub(crate) fn version(&self, entry: &Entry) -> &str {
        self.programs.get(entry.tool).map_or("", |program| &program.version)
    }

    /// An entry's command, and the file that it reads on standard input.
    pub(crate) fn command<'a>(&self, entry: &'a Entry) -> Option<(Command, Option<&'a str>)> {
        let program = self.programs.get(entry.tool)?;
        let mut command = Command::new(&program.path);
        if entry.tool.starts_with("sort") {
            command.args(["-c", &entry.command]);
            return Some((command, None));
        }
        let (words, input) = match entry.command.split_once(" < ") {
            Some((words, input)) => (words, Some(input)),
            None => (entry.command.as_str(), None),
        };
        command.args(&program.script).args(words.split_whitespace().skip(1));
        Some((command, input))
    }
}
