//! Options that all commands share, errors of options in the wrong place, and names in messages.

use crate::common::{TestDir, run, run_with_input, write_lines};

#[test]
fn usual_names_of_options_are_known() {
    let dir = TestDir::new();
    dir.write("a", "x\0y\0x\0");
    assert_eq!(dir.run("dedup -0 a").ok(), b"x\0y\0");
    assert_eq!(dir.run("dedup -z --threads 2 a").ok(), b"x\0y\0");
    assert_eq!(dir.run("dedup -0c --threads=1 a").text(), "2\n");
    assert_eq!(dir.run("build -0 --threads 1 -o f a").text(), "");
    assert_eq!(dir.run("check -0 --threads 1 f a").ok(), b"x\0y\0x\0");
    let plan = dir.run("plan dedup a -0 --threads 1 --json").text();
    assert!(plan.contains("\"jobs\": 1") && plan.contains("\"lines\": 3"), "{plan}");
}

#[test]
fn last_of_repeated_options_counts() {
    let dir = TestDir::new();
    dir.write("a", "x\ny\n");
    dir.run("dedup -o first -o second -m 1G -m 64M -j 1 -j 2 -q -q a").ok();
    assert_eq!(dir.files.names(), ["a", "second"]);
    assert!(dir.run("dedup -m 64M -m 1M a").failure().contains("1 MiB is too little"));
    let plan = dir.run("plan -n 100 -n 1000 -p 5% -p 1% --json").text();
    assert_eq!(plan, dir.run("plan -n 1000 -p 1% --json").text());
    // Inputs are a list.
    assert_eq!(dir.run("dedup a a second -c").text(), "2\n");
}

#[test]
fn verbose_prints_phases() {
    let dir = TestDir::new();
    write_lines(&dir.files.file("a"), 0..50_000);
    let output = dir.run("common --verbose -c a a --strategy partition -m 8M");
    assert_eq!(output.code, Some(0));
    let lines: Vec<_> = output.err.lines().collect();
    for phase in ["petal: reading: ", "petal: deciding: ", "petal: memory: ", "petal: strategy: "] {
        assert!(lines.iter().any(|line| line.starts_with(phase)), "{phase}: {}", output.err);
    }
    let deciding = lines.iter().find(|line| line.starts_with("petal: deciding: ")).unwrap();
    assert!(deciding.contains("iB in ") && deciding.ends_with(" s"), "{deciding}");
    assert_eq!(dir.run("build --verbose -o f a").err.lines().count(), 3);
    assert_eq!(dir.run("dedup --verbose -q a").code, Some(2));
}

#[test]
fn decision_has_a_fraction() {
    let dir = TestDir::new();
    write_lines(&dir.files.file("a"), 0..400_000);
    write_lines(&dir.files.file("b"), 200_000..600_000);
    for command in ["common", "diff", "dedup"] {
        let args = format!("{command} -c a b --strategy partition -m 8M --progress always");
        let output = dir.run(&args);
        let deciding = output.err.lines().find(|line| line.starts_with("petal: deciding: "));
        let text = deciding.unwrap_or_else(|| panic!("{command}: {}", output.err));
        let (done, of) = text["petal: deciding: ".len()..].split_once(" of ").unwrap();
        assert!(done != "0 bytes" && of.ends_with("iB"), "{text}");
    }
}

#[test]
fn option_of_another_mode_or_command_is_explained() {
    let dir = TestDir::new();
    dir.write("a", "x\n");
    for (args, parts) in [
        ("dedup -n 100 a", ["'--capacity <N>' is an option of approximate jobs", "add --approx"]),
        ("common a a -p1%", ["'--fpr <RATE>' is an option of approximate jobs", "add --approx"]),
        ("dedup --resume a", ["'--resume' continues the job of a work directory", "--work-dir"]),
        ("build -o f --gzip a", ["'--gzip' is an option of filters of other programs", "--format"]),
        ("plan -j 4 -n 100", ["'--jobs <N>' is an option of the estimate of a job", "inputs"]),
        ("plan --threads 4 -n 9", ["'--jobs <N>' is an option of the estimate of a job", "inputs"]),
        ("plan common a a -n 5", ["'--capacity <N>' is an option of sizing a filter", "leave"]),
        (
            "common --window 7d a a",
            ["'--window' is an option of petal build, petal seen", "petal: unexpected"],
        ),
        (
            "dedup --row-groups a",
            ["'--row-groups' is an option of petal probe", "petal: unexpected"],
        ),
        (
            "dedup --expected=5 --width=5 a",
            ["'--width' is an option of petal build", "petal: unexpected"],
        ),
        ("dedup -v a", ["'-v' is an option of petal check, petal probe", "petal: unexpected"]),
        (
            "symdiff --approx a a",
            ["'--approx' is an option of petal common, petal diff", "petal: unexpected"],
        ),
        (
            "symdiff -n 5 a a",
            ["'-n' is an option of petal common, petal diff", "petal: unexpected"],
        ),
        ("dedup -d -n 5 a", ["--only-duplicates", "cannot be used with"]),
        ("dedup -u -p 1% a", ["--only-unique", "cannot be used with"]),
        ("dedup --keep last -d a", ["--keep", "cannot be used with"]),
        ("dedup --approx --keep last a", ["--keep", "cannot be used with"]),
        ("common --at-least 1 -n 5 a a", ["--at-least <K>", "cannot be used with"]),
        ("dedup --work-dir w -n 5 a", ["--work-dir <DIR>", "cannot be used with"]),
        (
            "dedup --nothing a",
            ["unexpected argument '--nothing' found", "see `petal dedup --help`"],
        ),
        ("dedup --cuont a", ["a similar argument exists: '--count'", "petal: unexpected"]),
    ] {
        let line = dir.run(args).failure();
        for part in parts {
            assert!(line.contains(part), "{args}: {part}: {line}");
        }
    }
}

#[test]
fn completions_have_no_hidden_options() {
    for shell in ["bash", "zsh", "fish"] {
        let script = run(["completions", shell]).text();
        for hidden in ["strategy", "save-every", "kernel"] {
            assert!(!script.contains(hidden), "{shell}: {hidden}");
        }
        for shown in ["threads", "uniq", "work-dir", "dupes-output"] {
            assert!(script.contains(shown), "{shell}: {shown}");
        }
    }
}

#[test]
fn control_characters_in_names_are_escaped() {
    let dir = TestDir::new();
    let name = "new\nline \u{1b}[2J\u{202e}txt";
    for args in [vec!["dedup", name], vec!["check", name, "a"], vec!["common", "a", name]] {
        dir.write("a", "x\n");
        let mut command = dir.petal("");
        command.args(&args);
        let line = run_with_input(command, b"").failure();
        assert!(line.contains(r"new\nline \u{1b}[2J\u{202e}txt: "), "{line}");
    }
    dir.write(name, "\u{feff}x\r\n");
    let mut command = dir.petal("dedup a");
    command.arg(name);
    let output = run_with_input(command, b"");
    assert_eq!((output.code, output.err.lines().count()), (Some(0), 2), "{}", output.err);
    dir.run("build -o f a").ok();
    std::fs::rename(dir.files.file("f"), dir.files.file(name)).unwrap();
    let mut command = dir.petal("verify");
    command.arg(name);
    let text = run_with_input(command, b"").text();
    assert!(text.starts_with(r"new\nline \u{1b}[2J\u{202e}txt: "), "{text}");
}

/// A job that waits for a pipe, while its other input grows.
#[test]
fn input_that_has_grown_is_noted() {
    let dir = TestDir::new();
    dir.write("lines", "one\ntwo\n");
    dir.run("build -o f lines").ok();
    for (command, added, note) in [
        (
            "dedup log p",
            "three\n",
            "log has grown by 6 bytes since it was opened; its first 8 bytes were read",
        ),
        ("common log p", "three\n", "log has grown by 6 bytes"),
        ("check f log p", "three\n", "log has grown by 6 bytes"),
        ("seen -n 100 s log p", "three\n", "log has grown by 6 bytes"),
        ("build -n 100 -o g log p", "three\n", "log has grown by 6 bytes"),
    ] {
        for cut in [false, true] {
            let _ = std::fs::remove_file(dir.files.file("s"));
            dir.write("log", if cut { "one\ntwo" } else { "one\ntwo\n" });
            let script = format!(
                "rm -f p; mkfifo p; \"$petal\" {command} & n=0; \
                 until ls -l /proc/$!/fd 2>/dev/null | grep -q log$ || [ $((n+=1)) -gt 2000 ]; \
                 do sleep 0.01; done; printf '{added}' >> log; chmod 600 log; mv log log.1; \
                 timeout 20 sh -c 'echo one > p'; wait $!"
            );
            let output = dir.sh(&script);
            assert_eq!(output.code, Some(0), "{command}: {}", output.err);
            if !command.starts_with("build") {
                let text = String::from_utf8(output.out.clone()).unwrap();
                assert!(text.starts_with("one\n") && !text.contains("three"), "{command}: {text}");
            }
            let notes: Vec<_> = output.err.lines().filter(|line| line.contains("grown")).collect();
            assert_eq!(notes.len(), 1, "{command}: {}", output.err);
            let note = if cut {
                "its first 7 bytes were read; its last line was incomplete"
            } else {
                note
            };
            assert!(
                notes[0].starts_with("petal: note: ") && notes[0].contains(note),
                "{}",
                notes[0]
            );
        }
    }
}

#[test]
fn numbers_are_grouped_in_text_but_not_in_json() {
    let dir = TestDir::new();
    dir.write("a", "x\ny\n");
    dir.run("build -n 1e6 -o f a").ok();
    dir.run("build -n 1e6 --type classic -o c a").ok();
    let info = dir.run("info f").text();
    assert!(info.contains("bloom, 19,728 blocks of 512 bits, 8 probes"), "{info}");
    let info = dir.run("info c").text();
    assert!(info.lines().next().unwrap().matches(',').count() > 2, "{info}");
    let explained = dir.run("explain f z").text();
    assert!(explained.contains("bloom, 19,728 blocks of 512 bits"), "{explained}");
    assert!(dir.run("info --json f").text().contains("\"blocks\": 19728"));
}

#[test]
fn answer_no_has_the_probability_of_a_yes() {
    let dir = TestDir::new();
    write_lines(&dir.files.file("a"), 0..1000);
    for options in ["", "--type static", "--window 7d -n 1000", "--not-in n", "--growing"] {
        dir.write("n", "other\n");
        dir.run(&format!("build -q -o f {options} a")).ok();
        let answers: Vec<_> =
            (0..50).map(|key| dir.run(&format!("explain f {key}")).text()).collect();
        let no = answers.iter().find(|text| text.contains("answer    no: ")).unwrap();
        let line = no.lines().find(|line| line.starts_with("answer")).unwrap();
        assert!(line.contains(" gets a yes with probability "), "{options}: {line}");
    }
}

#[test]
fn overfull_filters_have_no_wrong_number_in_their_warning() {
    let dir = TestDir::new();
    write_lines(&dir.files.file("a"), 0..100_000);
    let output = dir.run("build -o f --bits 512 -k 8 a");
    assert!(
        output
            .err
            .contains("the lines are too many for 64 bytes: the false-positive rate is 100 %"),
        "{}",
        output.err
    );
    assert!(output.err.contains("raise --bits"), "{}", output.err);
    let output = dir.run("build -o f -n 10 -p 1% a");
    assert!(
        output.err.contains("was planned for 10 keys and has too many to estimate; its estimated"),
        "{}",
        output.err
    );
    write_lines(&dir.files.file("a"), 0..100);
    let output = dir.run("build -o f -n 10 -p 1% a");
    assert!(output.err.contains("was planned for 10 keys and has about "), "{}", output.err);
}

#[test]
fn equal_ends_of_a_time_are_printed_once() {
    let dir = TestDir::new();
    dir.write("a", "x\n");
    let plan = dir.run("plan dedup a -j 2").text();
    assert!(plan.contains("time              0.1 s with 2 threads"), "{plan}");
}

/// Filters, reports and pages are not compressed.
#[test]
fn output_whose_name_says_that_it_is_compressed_is_refused() {
    let dir = TestDir::new();
    dir.write("a", "one\ntwo\n");
    dir.run("build -o f a").ok();
    for extension in ["gz", "zst", "lz4", "xz", "bz2", "GZ", "tgz", "zip"] {
        let message = format!(
            "out.{extension}: the output is not compressed, but .{extension} says that it is; leave out \
             the extension, and compress the file afterwards"
        );
        for command in [
            "diff a a -o lines --report OUT",
            "plan dedup a --html OUT",
            "build -o OUT a",
            "merge -o OUT f f",
            "seen -n 10 OUT a",
        ] {
            let out = format!("out.{extension}");
            let failure = dir.run(&command.replace("OUT", &out)).failure();
            assert!(failure.contains(&message), "{command}: {failure}");
            assert!(!dir.files.file(&out).exists(), "{command}");
        }
    }
    dir.run("common a a -o out.gzip.txt").ok();
    // petal compresses this one, and leaves it so.
    dir.run("build --format dcso --gzip -n 100 -o f.gz a").ok();
    dir.run("add f.gz a").ok();
    dir.run("merge -o g.gz f.gz f.gz").ok();
    assert!(dir.read("g.gz").starts_with(&[0x1f, 0x8b]));
    dir.run("build --format dcso -n 100 -o h a").ok();
    assert!(dir.run("merge -o h.gz h h").failure().contains("is not compressed"));
    // A FIFO may have a reader that compresses.
    let piped = dir
        .sh("mkfifo out.gz && (gzip -c < out.gz > packed & \"$petal\" common a a -o out.gz; wait)");
    assert_eq!(piped.code, Some(0), "{}", piped.err);
    assert!(dir.read("packed").starts_with(&[0x1f, 0x8b]));
}
