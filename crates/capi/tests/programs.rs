//! Programs in C and C++ use the library as others do: the headers, and the shared or the static library.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::collections::BTreeSet;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use petal_testkit::scratch::Scratch;
use serde_json::Value;

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the folder of the libraries, which cargo builds for this test.
fn libraries() -> PathBuf {
    // Beside this program: target/PROFILE/deps.
    env::current_exe().unwrap().parent().unwrap().to_path_buf()
}

/// How a program is compiled.
struct Compiler {
    program: PathBuf,
    standard: &'static str,
}

/// Returns a program that `cargo x peers` installs.
fn peer(name: &str) -> PathBuf {
    let peers = env::var_os("PETAL_PEERS").expect("PETAL_PEERS: run cargo x test --foreign");
    Path::new(&peers).join("bin").join(name)
}

impl Compiler {
    fn gcc(is_cpp: bool) -> Self {
        Self::new(if is_cpp { "g++" } else { "gcc" }.into(), is_cpp)
    }

    fn clang(is_cpp: bool) -> Self {
        Self::new(peer(if is_cpp { "clang++" } else { "clang" }), is_cpp)
    }

    fn new(program: PathBuf, is_cpp: bool) -> Self {
        Self { program, standard: if is_cpp { "c++17" } else { "c99" } }
    }

    /// Compiles a program of tests/c, linked with the static or the shared library.
    fn compile(&self, source: &str, is_shared: bool, scratch: &Scratch) -> PathBuf {
        let libraries = libraries();
        let name = Path::new(source).file_name().unwrap().to_str().unwrap();
        let program = scratch.file(&format!("{name}-{is_shared}"));
        let mut command = Command::new(&self.program);
        command
            .args([
                &format!("-std={}", self.standard),
                "-D_POSIX_C_SOURCE=200809L",
                "-O1",
                "-pthread",
            ])
            .args(["-Wall", "-Wextra", "-Wpedantic", "-Werror"])
            .arg(format!("-DFOREIGN=\"{}/../../testdata/foreign/dcso-text\"", folder().display()))
            .arg("-I")
            .arg(folder().join("include"))
            .arg(folder().join("tests/c").join(source))
            .arg("-o")
            .arg(&program);
        if is_shared {
            // Under the name that it has when it is installed.
            let _ = std::os::unix::fs::symlink(
                libraries.join("libpetal_capi.so"),
                scratch.file("libpetal.so.1"),
            );
            command.arg("-L").arg(&libraries).arg("-lpetal_capi");
            command.arg(format!("-Wl,-rpath,{}", scratch.path().display()));
        } else {
            command.arg(libraries.join("libpetal_capi.a")).args(["-lm", "-ldl"]);
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        program
    }
}

fn run(program: &Path, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {}: {errors}", program.display(), output.status);
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn programs_in_c_and_cpp_use_every_function() {
    let scratch = Scratch::new();
    let file = scratch.file("filter.petal");
    for (source, is_cpp) in [("api.c", false), ("api.cpp", true)] {
        for is_shared in [false, true] {
            let program = Compiler::gcc(is_cpp).compile(source, is_shared, &scratch);
            run(&program, &[file.to_str().unwrap()]);
        }
    }
}

/// Runs a program and reports what it reads outside its memory, reads before it is set, and does not free.
fn run_in_valgrind(program: &Path, arguments: &[&str]) -> String {
    let checks = ["--quiet", "--error-exitcode=99", "--leak-check=full"];
    let kinds = ["--errors-for-leak-kinds=definite,indirect", program.to_str().unwrap()];
    run(&peer("valgrind"), &[&checks[..], &kinds, arguments].concat())
}

#[test]
#[ignore = "needs clang and valgrind in PETAL_PEERS"]
fn programs_of_clang_use_and_free_their_own_memory() {
    let scratch = Scratch::new();
    let file = scratch.file("filter.petal");
    for (source, is_cpp) in [("api.c", false), ("api.cpp", true)] {
        for is_shared in [false, true] {
            let program = Compiler::clang(is_cpp).compile(source, is_shared, &scratch);
            run_in_valgrind(&program, &[file.to_str().unwrap()]);
        }
    }
    let (list, count) = hostile_files(&scratch);
    let program = Compiler::clang(false).compile("conformance.c", true, &scratch);
    let output = run_in_valgrind(&program, &["-", "-", list.to_str().unwrap()]);
    assert_eq!(output.trim(), count.to_string());
}

/// The header, and the list in Debian's package, are what the library exports.
#[test]
fn shared_library_exports_the_functions_of_the_header_and_of_the_package() {
    let library = libraries().join("libpetal_capi.so");
    let output = Command::new("nm").args(["-D", "--defined-only"]).arg(library).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let exported: BTreeSet<&str> = text.lines().filter_map(|line| line.split(' ').nth(2)).collect();
    let header = fs::read_to_string(folder().join("include/petal.h")).unwrap();
    let declared = header.lines().filter(|line| !line.starts_with(['/', ' ']));
    let name = |line: &'_ str| Some(line[line.find("petal_")?..].to_owned());
    let declared: BTreeSet<String> = declared
        .filter_map(|line| line.split_once('('))
        .filter_map(|(before, _)| name(before.rsplit(['*', ' ']).next()?))
        .collect();
    assert!(
        declared.iter().map(String::as_str).eq(exported.iter().copied()),
        "{declared:?} {exported:?}"
    );
    let list = folder().join("../../packaging/libpetal/libpetal1.symbols");
    let list = fs::read_to_string(list).unwrap();
    let packed = list.lines().filter_map(|line| line.strip_prefix(' ')?.split('@').next());
    assert!(packed.clone().eq(exported), "{}", packed.collect::<Vec<_>>().join(" "));
}

/// The programs of docs/guides/c.md.
#[test]
fn programs_of_the_guide_run() {
    let scratch = Scratch::new();
    let page = fs::read_to_string(folder().join("../../docs/guides/c.md")).unwrap();
    let mut outputs = Vec::new();
    for (number, block) in page.split("```").skip(1).step_by(2).enumerate() {
        let (language, code) = block.split_once('\n').unwrap();
        if !["c", "cpp"].contains(&language) {
            continue;
        }
        let source = scratch.file(&format!("{number}.{language}"));
        fs::write(&source, code).unwrap();
        let compiler = Compiler::gcc(language == "cpp");
        let program = compiler.compile(source.to_str().unwrap(), true, &scratch);
        let output = Command::new(program).current_dir(scratch.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        outputs.push(String::from_utf8(output.stdout).unwrap());
    }
    assert_eq!(outputs, ["1\n0\n", "1\n0\n", "1 0\n"]);
}

fn lines(name: &str) -> Vec<Value> {
    let text = fs::read_to_string(set().join(name)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn set() -> PathBuf {
    folder().join("../../testdata/conformance")
}

fn unhex(digits: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(byte).collect()
}

fn key_of(line: &Value) -> Vec<u8> {
    if let Some(text) = line["text"].as_str() {
        return text.as_bytes().to_vec();
    }
    match line["number"].as_str() {
        Some(number) => number.parse::<u64>().unwrap().to_le_bytes().to_vec(),
        None => unhex(line["bytes"].as_str().unwrap()),
    }
}

#[test]
fn conformance_set_has_its_answers_in_c() {
    let scratch = Scratch::new();
    let program = Compiler::gcc(false).compile("conformance.c", false, &scratch);
    let answers = scratch.file("answers");
    for file in lines("files.jsonl") {
        let name = file["file"].as_str().unwrap();
        let (mut text, answered) = (String::new(), lines(&name.replace(".petal", ".jsonl")));
        for line in &answered {
            key_of(line).iter().for_each(|byte| _ = write!(text, "{byte:02x}"));
            let _ = writeln!(text, ". {}", u8::from(line["present"].as_bool().unwrap()));
        }
        fs::write(&answers, text).unwrap();
        let (path, secret) = (set().join(name), file["secret"].as_str().unwrap_or("-"));
        let output = run(&program, &[path.to_str().unwrap(), secret, answers.to_str().unwrap()]);
        assert_eq!(output.trim(), answered.len().to_string(), "{name}");
    }
    let (list, count) = hostile_files(&scratch);
    let output = run(&program, &["-", "-", list.to_str().unwrap()]);
    assert_eq!(output.trim(), count.to_string());
}

/// Writes all hostile files to one, each after its length; returns the path and their number.
fn hostile_files(scratch: &Scratch) -> (PathBuf, usize) {
    let mut list = Vec::new();
    let hostile = lines("hostile.jsonl");
    for line in &hostile {
        let mut bytes = fs::read(set().join(line["file"].as_str().unwrap())).unwrap();
        for edit in line["edits"].as_array().unwrap() {
            let (at, new) = (edit[0].as_u64().unwrap() as usize, unhex(edit[1].as_str().unwrap()));
            bytes[at..at + new.len()].copy_from_slice(&new);
        }
        bytes.resize(line["length"].as_u64().unwrap() as usize, 0);
        list.extend(u32::try_from(bytes.len()).unwrap().to_le_bytes());
        list.extend(bytes);
    }
    let path = scratch.file("hostile");
    fs::write(&path, list).unwrap();
    (path, hostile.len())
}
