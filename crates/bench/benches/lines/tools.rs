//! The programs that are compared.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use petal_bench::rivals;

use crate::works::Entry;

struct Program {
    path: PathBuf,
    /// A script before the arguments.
    script: Option<PathBuf>,
    version: String,
}

/// Programs by name.
pub(crate) struct Tools {
    programs: BTreeMap<&'static str, Program>,
}

impl Tools {
    /// Finds petal and `wc`.
    pub(crate) fn find(petal: &Path) -> Result<Self, String> {
        let mut tools = Self { programs: BTreeMap::new() };
        tools.add("petal", petal.to_owned(), None)?;
        tools.add("wc", "wc".into(), None)?;
        Ok(tools)
    }

    /// Installs Python libraries, each with its script; prints a note for each that cannot be installed.
    pub(crate) fn install_libraries(&mut self, folder: &Path, names: &[&'static str]) {
        for &name in names {
            let package = if name == "clickhouse" { "chdb" } else { name };
            let python = rivals::python_with(folder, package);
            self.add_rival(name, python, Some(rivals::script(name)));
        }
    }

    /// Finds `sort` and installs the other rivals; prints a note for each that cannot be installed.
    pub(crate) fn install_others(&mut self, folder: &Path) -> Result<(), String> {
        let sort = rivals::version(Path::new("sort"), &["--version".as_ref()])?;
        for name in ["sort", "sort+comm", "sort+uniq"] {
            let program = Program { path: "sh".into(), script: None, version: sort.clone() };
            self.programs.insert(name, program);
        }
        for name in ["huniq", "runiq", "zet"] {
            self.add_rival(name, rivals::crates_io(folder, name), None);
        }
        // It takes too long to compile.
        self.add_rival("qsv", Ok("qsvlite".into()), None);
        let bloom = rivals::debian(folder, "golang-github-dcso-bloom-cli", "bloom");
        self.add_rival("bloom", bloom, None);
        Ok(())
    }

    fn add(
        &mut self,
        name: &'static str,
        path: PathBuf,
        script: Option<PathBuf>,
    ) -> Result<(), String> {
        let args = script.as_deref().into_iter().chain(["--version".as_ref()]);
        let version = rivals::version(&path, &args.collect::<Vec<_>>())?;
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

    pub(crate) fn version(&self, entry: &Entry) -> &str {
        self.programs.get(entry.tool).map_or("", |program| &program.version)
    }

    /// Returns the command of an entry, and the file that is its standard input.
    pub(crate) fn command<'a>(&self, entry: &'a Entry) -> Option<(Command, Option<&'a str>)> {
        let program = self.programs.get(entry.tool)?;
        let mut command = Command::new(&program.path);
        if entry.tool.starts_with("sort") {
            command.args(["-c", &entry.command]);
            return Some((command, None));
        }
        let (line, input) = match entry.command.split_once(" < ") {
            Some((line, input)) => (line, Some(input)),
            None => (entry.command.as_str(), None),
        };
        command.args(&program.script).args(line.split_whitespace().skip(1));
        Some((command, input))
    }
}
