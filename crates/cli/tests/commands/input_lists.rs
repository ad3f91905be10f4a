//! Lists of inputs and directories: each command with a list does what it does with the same names on the
//! command line.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use petal_testkit::model;
use petal_testkit::rng::Rng;

use crate::common::{STRATEGIES, TestDir, pack};

/// Names with spaces, quotes and line ends, which a shell or a list of lines would divide.
const NAMES: [&str; 5] = ["z", "a b", "quo'te", "line\nend", "-m"];

/// Writes a file, whose directory need not exist.
fn write(dir: &TestDir, name: &str, content: impl AsRef<[u8]>) {
    fs::create_dir_all(dir.files.file(name).parent().unwrap()).unwrap();
    dir.write(name, content);
}

/// A directory with these files of random lines; returns what they have.
fn dir(names: &[&str], seed: u64) -> (TestDir, Vec<Vec<u8>>) {
    let (dir, mut rng) = (TestDir::new(), Rng::new(seed));
    let mut contents = Vec::new();
    for name in names {
        let lines = (0..200).map(|_| format!("line {}\n", rng.below(300)));
        let content = lines.collect::<String>().into_bytes();
        write(&dir, name, &content);
        contents.push(content);
    }
    (dir, contents)
}

fn list(names: &[&str], end: char) -> String {
    names.iter().map(|name| format!("{name}{end}")).collect()
}

#[test]
fn list_is_the_same_as_names_on_the_command_line() {
    let (dir, contents) = dir(&NAMES, 1);
    dir.write("list", list(&NAMES, '\0'));
    dir.write("first", &contents[0]);
    dir.run("build -q -n 1000 --type counting -o old first").ok();
    for (command, outputs) in [
        ("common", &[][..]),
        ("common first", &[]),
        ("common --at-least 2 first", &[]),
        ("diff", &[]),
        ("diff first", &[]),
        ("dedup", &[]),
        ("dedup -d", &[]),
        ("dedup -u --approx -n 5", &[]),
        ("count", &[]),
        ("build -o out", &["out"]),
        ("build -o out --counts", &["out"]),
        ("add old", &["old"]),
        ("remove old", &["old"]),
        ("check old", &[]),
        ("check --filter old", &[]),
        ("check -c --filter old first", &[]),
        ("seen -n 1000 --exact seen", &[]),
        ("plan common", &[]),
        ("plan common first", &[]),
        ("plan dedup", &[]),
        ("verify", &[]),
        ("merge -o out", &[]),
    ] {
        let run = |by_list: bool| {
            let old = dir.read("old");
            let mut run = dir.petal(command);
            match by_list {
                true => run.args(["--files0-from", "list"]),
                false => run.arg("--").args(NAMES),
            };
            let result = crate::common::run_with_input(run, b"");
            let written: Vec<_> = outputs.iter().map(|name| dir.read(name)).collect();
            dir.write("old", old);
            for name in ["seen", "seen.exact"] {
                let _ = fs::remove_file(dir.files.file(name));
            }
            // The time of an estimate varies.
            let text = String::from_utf8(result.out).unwrap();
            let text: Vec<_> =
                text.lines().filter(|line| !line.starts_with("time")).map(str::to_owned).collect();
            (result.code, result.err, text, written)
        };
        if command.contains("-c --filter old first") {
            let message = "petal: --files0-from: list has the names of the files, and the command line \
                           names first; leave out one of them\n";
            assert_eq!(run(true).1, message);
            continue;
        }
        assert_eq!(run(true), run(false), "{command}");
    }
}

#[test]
fn order_of_lines_is_that_of_the_list() {
    let names: Vec<_> = NAMES.into_iter().filter(|name| !name.contains('\n')).collect();
    let (dir, contents) = dir(&names, 2);
    let mut order: Vec<usize> = (0..names.len()).collect();
    let mut rng = Rng::new(3);
    for strategy in STRATEGIES {
        rng.shuffle(&mut order);
        let chosen: Vec<_> = order.iter().map(|at| names[*at]).collect();
        let files: Vec<_> = order.iter().map(|at| &contents[*at][..]).collect();
        dir.write("list", list(&chosen, '\n'));
        let out = dir.run(&format!("dedup {strategy} --files-from list")).ok();
        assert_eq!(out, model::dedup(&files, b'\n'));
        // The last name may lack its end, and the list may be packed or on standard input.
        let text = list(&chosen, '\0');
        let text = text.strip_suffix('\0').unwrap();
        dir.write("list.gz", pack::gz(text.as_bytes()));
        let args = format!("diff {strategy} --files0-from");
        let expected = model::diff(files[0], &files[1..], b'\n');
        assert_eq!(dir.run(&format!("{args} list.gz")).ok(), expected);
        assert_eq!(dir.run_with(&format!("{args} -"), text.as_bytes()).ok(), expected);
    }
    // Within a list, - is standard input.
    dir.write("list", "z\n-\n-m\n");
    let out = dir.run_with("dedup --files-from list", b"typed\n").ok();
    let expected = model::dedup(&[&contents[0], b"typed\n", contents.last().unwrap()], b'\n');
    assert_eq!(out, expected);
}

#[test]
fn names_that_cannot_be_inputs_are_errors_of_one_line() {
    let (dir, _) = dir(&["a", "b", "tree/c"], 4);
    dir.run("build -o filter a").ok();
    dir.write("empty", "");
    dir.write("gap", "a\n\nb\n");
    dir.write("missing", "a\nno such file\n");
    dir.write("stdin", "-\na\n-\n");
    dir.write("one", "a\n");
    dir.write("tree-only", "tree\n");
    fs::create_dir_all(dir.files.file("hollow/deep")).unwrap();
    fs::create_dir(dir.files.file("loop")).unwrap();
    symlink("../loop", dir.files.file("loop/again")).unwrap();
    for (args, message) in [
        ("dedup --files-from empty", "empty: has no names, expected those of the files"),
        ("dedup --files-from -", "standard input: has no names, expected those of the files"),
        ("dedup --files-from gap", "gap: name 2: expected the name of a file, found none"),
        ("count --files-from missing", "no such file: cannot read: no such file"),
        ("dedup --files-from lost", "lost: cannot read: no such file"),
        ("dedup --files-from stdin", "-: is named twice"),
        ("common a --files-from stdin", "-: is named twice"),
        ("common - --files-from -", "-: is named twice"),
        (
            "dedup --files-from one b",
            "--files-from: one has the names of the files, and the command",
        ),
        (
            "common a b --files0-from one",
            "--files0-from: one has the names of the files, and the comm",
        ),
        ("common --files-from one", "one: names one input, expected another to compare it with"),
        ("plan diff --files-from one", "one: names one input, expected another to compare it with"),
        ("verify --files-from one a", "the command line names a; leave out one of them"),
        (
            "dedup --files-from one --files0-from one",
            "'--files-from <LIST>' cannot be used with '--files0-from <LIST>'; leave out one of them",
        ),
        ("dedup --recursive", "--recursive: no directory is named"),
        ("dedup --glob *.x a", "--recursive"),
        ("dedup --recursive --glob [ tree", "--glob [: invalid range pattern"),
        ("dedup --recursive hollow", "hollow: is a directory without files; leave it out"),
        (
            "dedup --recursive --glob *.x tree",
            "tree: is a directory without files that match --glob",
        ),
        ("dedup --recursive loop", "loop/again: is a link to loop, a directory that it is in"),
        (
            "dedup tree",
            "tree: is a directory, expected a file of lines; name the files in it, or add --rec",
        ),
        (
            "dedup --files-from tree-only",
            "tree: is a directory, expected a file of lines; name the fi",
        ),
        ("symdiff --files-from one", "'--files-from' is an option of petal common, petal diff"),
        ("dedup --recursive tree -o tree/c", "tree/c: is the same file as the input tree/c"),
    ] {
        let line = dir.run(args).failure();
        assert!(line.contains(message), "{args}: {line}");
    }
    for args in
        ["check --allow - filter", "build -o new --not-in -", "add --assert-members - filter"]
    {
        let line = dir.run_with(&format!("{args} --files-from -"), b"a\n").failure();
        assert!(line.contains("-: is named twice"), "{args}: {line}");
    }
    let line = dir.run_with("dedup --files-from -", b"a\n-\n").failure();
    assert!(
        line.contains("standard input: name 2: - is standard input, which is the list"),
        "{line}"
    );
    dir.write("long", "a name that needs memory\n".repeat(200_000));
    let line = dir.run("dedup -m 8M --files-from long").failure();
    assert!(line.contains("long: its names take more than a quarter of the 8 MiB"), "{line}");
}

/// The files below a directory, by recursion: those of each directory in the order of their names.
fn files_below(dir: &Path, prefix: &str, found: &mut Vec<String>) {
    let mut names: Vec<_> = fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    for name in names {
        let (path, name) = (dir.join(&name), format!("{prefix}/{}", name.to_str().unwrap()));
        match path.metadata().unwrap() {
            data if data.is_dir() => files_below(&path, &name, found),
            data if data.is_file() => found.push(name),
            _ => {}
        }
    }
}

#[test]
fn files_of_directories_are_inputs_in_the_order_of_their_names() {
    let mut rng = Rng::new(5);
    for _ in 0..10 {
        let dir = TestDir::new();
        for number in 0..30 {
            let depth = rng.below(4);
            let folders = (0..depth).map(|_| format!("{}/", ["b", "a", "a.d", "B"][rng.below(4)]));
            let folder = format!("tree/{}", folders.collect::<String>());
            let end = ["txt", "jsonl", "txt.x"][rng.below(3)];
            let name = format!("{folder}{}.{end}", rng.below(40));
            write(&dir, &name, format!("{number}\n{}\n", rng.below(10)));
        }
        fs::create_dir_all(dir.files.file("tree/b")).unwrap();
        // A link to a file is read, a FIFO is not.
        dir.write("outside", "of the tree\n");
        symlink("../../outside", dir.files.file("tree/b/0-link.txt")).unwrap();
        let fifo = dir.files.file("tree/pipe.txt");
        assert!(std::process::Command::new("mkfifo").arg(fifo).status().unwrap().success());
        dir.write("plain", "plain\n");
        let mut all = Vec::new();
        files_below(&dir.files.file("tree"), "tree", &mut all);
        type Wanted = fn(&str) -> bool;
        let cases: [(&str, Wanted); 4] = [
            ("", |_| true),
            ("--glob *.txt", |name| name.ends_with(".txt")),
            ("--glob *.x --glob *.jsonl", |name| name.ends_with(".x") || name.ends_with(".jsonl")),
            ("--glob b/*.txt", |name| {
                name.starts_with("tree/b/")
                    && name.ends_with(".txt")
                    && name.matches('/').count() == 2
            }),
        ];
        for (options, wanted) in cases {
            let files = all.iter().filter(|name| wanted(name)).map(|name| dir.read(name));
            let mut files: Vec<_> = [b"plain\n".to_vec()].into_iter().chain(files).collect();
            files.push(b"plain\n".to_vec());
            let files: Vec<_> = files.iter().map(Vec::as_slice).collect();
            let args = format!("dedup --recursive {options}");
            let out = dir.run(&format!("{args} plain tree plain")).ok();
            assert_eq!(out, model::dedup(&files, b'\n'), "{options} {all:?}");
            dir.write("list", "plain\ntree\nplain\n");
            assert_eq!(dir.run(&format!("{args} --files-from list")).ok(), out);
            // The files of a first directory are one input, those of another are others.
            let out = dir.run(&format!("diff --recursive {options} tree plain")).ok();
            let first = files[1..files.len() - 1].concat();
            assert_eq!(out, model::diff(&first, &[b"plain\n"], b'\n'));
            let out = dir.run(&format!("common --at-least 1 --recursive {options} plain tree"));
            assert_eq!(out.ok(), model::at_least(1, b"plain\n", &files[1..files.len() - 1], b'\n'));
        }
    }
}

/// Ten thousand files need neither ten thousand descriptors nor ten thousand names in a message.
#[test]
fn many_files_need_few_descriptors_and_short_messages() {
    let (dir, mut rng) = (TestDir::new(), Rng::new(6));
    let (mut files, mut names) = (Vec::new(), String::new());
    for number in 0..10_000 {
        let lines = (0..3).map(|_| format!("{},x\r\n", rng.below(20_000)));
        let lines = format!("id,{}\r\n", number % 7) + &lines.collect::<String>();
        let name = format!("d/{number:05}.csv");
        if number % 100 == 0 {
            write(&dir, &name, pack::gz(lines.as_bytes()));
        } else {
            write(&dir, &name, &lines);
        }
        names.push_str(&format!("{name}\n"));
        files.push(lines.into_bytes());
    }
    dir.write("list", &names);
    dir.write("lf", "1\n2\n");
    let files: Vec<_> = files.iter().map(Vec::as_slice).collect();
    let limited = |args: &str| {
        let out = dir.sh(&format!("ulimit -n 100; $petal {args}"));
        assert!(out.err.len() < 3000, "{}", out.err);
        out
    };
    let lines = model::dedup(&files, b'\n');
    for strategy in STRATEGIES {
        let args = format!("dedup {strategy} --progress always");
        assert_eq!(limited(&format!("{args} --files-from list")).ok(), lines);
        assert_eq!(limited(&format!("{args} -m 8M --recursive d")).ok(), lines);
    }
    // Each other input takes a pass.
    let some: String = names.split_inclusive('\n').take(1000).collect();
    dir.write("some", some);
    let expected = model::diff(b"1\n2\n", &files[..1000], b'\n');
    assert_eq!(limited("diff lf --files-from some").ok(), expected);
    limited("count --column id -o out --files-from list").ok();
    limited("build -o filter --files-from list").ok();
    let count = lines.iter().filter(|byte| **byte == b'\n').count();
    assert_eq!(limited("check -c filter --files-from list").text(), format!("{}\n", 40_000));
    assert_eq!(
        limited("seen -c -n 1e6 --exact seen --files-from list").text(),
        format!("{count}\n")
    );
    assert!(limited("plan dedup --files-from list").text().len() < 3000);
}
