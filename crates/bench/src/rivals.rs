//! Installs the programs that petal is compared with into the folder of the benchmark.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns a Python in a virtual environment that has a package, whose module has the same name.
///
/// # Errors
/// If it cannot be installed.
pub fn python_with(folder: &Path, package: &str) -> Result<PathBuf, String> {
    let venv = folder.join("venv");
    let python = venv.join("bin/python");
    let works = || run(Command::new(&python).args(["-c", &format!("import {package}")]));
    if works().is_err() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&venv))
            .and_then(|()| {
                run(Command::new(&python).args(["-m", "pip", "install", "--quiet", package]))
            })
            .and_then(|()| works())
            .map_err(|e| format!("no {package} (python3 with venv and pip is needed): {e}"))?;
    }
    Ok(python)
}

/// Returns the script that runs a library's queries on files of lines, for [`python_with`].
pub fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("{name}_lines.py"))
}

/// Returns a program from crates.io.
///
/// # Errors
/// If it cannot be installed.
pub fn crates_io(folder: &Path, name: &str) -> Result<PathBuf, String> {
    let home = folder.join("rivals").join(name);
    let program = home.join("bin").join(name);
    if !program.exists() {
        run(Command::new("cargo")
            .args(["install", "--quiet", "--locked", name, "--root"])
            .arg(&home))
        .map_err(|e| format!("no {name} (cargo install failed): {e}"))?;
    }
    Ok(program)
}

/// Returns a program from a Debian package, which is unpacked into the folder.
///
/// # Errors
/// If it cannot be installed.
pub fn debian(folder: &Path, package: &str, name: &str) -> Result<PathBuf, String> {
    let home = folder.join("rivals").join(name);
    let program = home.join("usr/bin").join(name);
    if !program.exists() {
        let unpack = format!(
            "apt-get download {package} && dpkg -x {package}_*.deb . && rm {package}_*.deb"
        );
        fs::create_dir_all(&home)
            .map_err(|e| e.to_string())
            .and_then(|()| run(Command::new("sh").args(["-c", &unpack]).current_dir(&home)))
            .map_err(|e| format!("no {name} (Debian's {package} is needed): {e}"))?;
    }
    Ok(program)
}

/// Returns the first line that a program prints for `args`.
///
/// # Errors
/// If it cannot be started.
pub fn version(program: &Path, args: &[&Path]) -> Result<String, String> {
    let output = Command::new(program)
        .args(args)
        .output()
        .map_err(|e| format!("{}: {e}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}

/// Returns the first line of standard error that contains `Error: `, or the last line.
pub fn error_line(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let error = text.lines().find(|line| line.contains("Error: "));
    error.or(text.lines().next_back()).unwrap_or_default().to_owned()
}

/// Runs a command; an error has a line of its standard error.
fn run(command: &mut Command) -> Result<(), String> {
    match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(error_line(&output.stderr)),
        Err(e) => Err(e.to_string()),
    }
}
