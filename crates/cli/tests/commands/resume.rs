//! Killed jobs that are resumed: the output is the same, and no temporary files remain.

use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use petal_testkit::rng::Rng;

use crate::common;
use crate::common::pack::gz;
use crate::common::{TestDir, overlapping, skipped, write_lines};

/// A directory with two files that share a tenth of their lines.
fn dir(lines: u64) -> TestDir {
    sharing(lines, 10)
}

/// A directory with two files that share a part of their lines.
fn sharing(lines: u64, percent: u64) -> TestDir {
    let dir = TestDir::new();
    let [a, b] = overlapping(lines, percent, 3);
    write_lines(&dir.files.file("a"), a);
    write_lines(&dir.files.file("b"), b);
    dir
}

/// Returns the number of finished phases in the journal of `work`.
fn done(dir: &TestDir) -> u64 {
    let text = std::fs::read_to_string(dir.files.file("work/petal.journal")).unwrap_or_default();
    let rest = text.split("\"done\":").nth(1).unwrap_or_default();
    rest.split(',').next().unwrap_or_default().parse().unwrap_or(0)
}

/// Starts a job whose standard output is a full pipe, and waits until `phases` are finished.
fn stuck(dir: &TestDir, args: &str, phases: u64) -> (Child, std::io::PipeReader) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    // The capacity of a pipe.
    writer.write_all(&[0; 1 << 16]).unwrap();
    let mut child =
        dir.petal(&format!("{args} --work-dir work -m 8M")).stdout(writer).spawn().unwrap();
    wait_for(dir, &mut child, args, phases);
    (child, reader)
}

/// Waits until `phases` of a job are finished.
fn wait_for(dir: &TestDir, child: &mut Child, args: &str, phases: u64) {
    let end = Instant::now() + Duration::from_secs(60);
    while done(dir) < phases {
        assert!(child.try_wait().unwrap().is_none() && Instant::now() < end, "{args}: no phase");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Starts a job and kills it when `phases` are finished.
fn killed(dir: &TestDir, args: &str, phases: u64) {
    let (mut child, _reader) = stuck(dir, args, phases);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[track_caller]
fn nothing_kept(dir: &TestDir) {
    dir.assert_no_temp_files();
    let names = dir.files.names();
    assert!(!names.iter().any(|name| name.starts_with("work")), "{names:?}");
}

/// Kills a job at random moments and resumes it until it is done; several rounds.
fn kill_at_random(dir: &TestDir, jobs: &[&str], rounds: u64, seed: u64) {
    let mut rng = Rng::new(seed);
    for job in jobs {
        let args = format!("{job} -q -j 2 -m 8M -o out");
        let start = Instant::now();
        dir.run(&format!("{args} --work-dir work")).ok();
        let whole = start.elapsed();
        nothing_kept(dir);
        let expect = dir.read("out");
        for round in 0..rounds {
            let report = format!("seed {seed}, round {round}: {args}");
            std::fs::remove_file(dir.files.file("out")).unwrap();
            let mut tries = 0;
            loop {
                let resume = if tries > 0 { "--resume" } else { "" };
                let mut child =
                    dir.petal(&format!("{args} --work-dir work {resume}")).spawn().unwrap();
                let moment = whole * rng.below(1100) as u32 / 1000;
                if tries < 4 {
                    std::thread::sleep(moment);
                    // Fails if the job has ended; then its exit code is checked below.
                    let _ = child.kill();
                }
                let status = child.wait().unwrap();
                if let Some(code) = status.code() {
                    assert_eq!(code, 0, "{report}");
                    break;
                }
                assert!(dir.temp().read_dir().unwrap().next().is_none(), "{report}");
                tries += 1;
            }
            assert!(dir.read("out") == expect, "{report}");
            nothing_kept(dir);
        }
    }
}

const JOBS: [&str; 6] = [
    "common --strategy narrow a b",
    "common --strategy partition a b",
    "diff --strategy narrow a b",
    "diff --strategy partition a b",
    "dedup --strategy narrow a b a",
    "dedup --strategy partition a b",
];

#[test]
fn resumes_after_kills_at_random_moments() {
    kill_at_random(&dir(400_000), &JOBS, 3, 1);
}

#[test]
#[ignore = "takes several minutes"]
fn resumes_after_many_kills_at_random_moments() {
    kill_at_random(&dir(4_000_000), &JOBS, 30, 2);
}

#[test]
fn jobs_on_inputs_of_other_keys_resume_after_kills() {
    let dir = TestDir::new();
    let [a, b] = overlapping(200_000, 10, 5);
    let rows = |numbers: &[u64], row: &dyn Fn(u64) -> String| {
        numbers.iter().map(|number| row(*number)).collect::<String>()
    };
    dir.write("a.csv", format!("id,url\n{}", rows(&a, &|n| format!("{},\"u\"\"{n}\"\n", n % 7))));
    dir.write("b.jsonl", rows(&b, &|n| format!("{{\"u\":\"u\\\"{n}\"}}\n")));
    dir.write("b", rows(&b, &|n| format!("u\"{n}\n")));
    let answer = dir.run("common -q --column url a.csv b.jsonl#/u").ok();
    assert!(answer == dir.run("common -q a.csv#url b").ok() && answer.len() > 100_000);
    let jobs = [
        "common --strategy partition a.csv#url b.jsonl#/u",
        "diff --strategy narrow b.jsonl#/u a.csv#url",
    ];
    kill_at_random(&dir, &jobs, 2, 3);
    let args = "common -q --strategy partition -m 8M -o out --work-dir work a.csv#url";
    let mut child = dir.petal(&format!("{args} b.jsonl#/u")).spawn().unwrap();
    wait_for(&dir, &mut child, args, 1);
    child.kill().unwrap();
    assert!(child.wait().unwrap().code().is_none(), "the job ended before it was killed");
    for other in ["b.jsonl#/n", "b.jsonl#", "b.jsonl", "--column url b.jsonl#/u"] {
        let error = dir.run(&format!("{args} {other} --resume")).failure();
        assert!(error.contains("belongs to another job"), "{error}");
    }
    dir.run(&format!("{args} b.jsonl#/u --resume")).ok();
    assert!(dir.read("out") == answer);
}

/// Kills jobs after each phase; resumes them with other threads and another memory limit.
#[test]
fn resumes_after_each_phase_with_other_threads_and_memory() {
    // Few candidates are decided at once, which is no phase. The table of many does not fit.
    let (few, many) = (dir(300_000), sharing(300_000, 95));
    let phases = [
        (&few, "common", "narrow", 2),
        (&many, "common", "narrow", 4),
        (&few, "diff", "narrow", 2),
        (&many, "diff", "narrow", 4),
        (&few, "symdiff", "narrow", 2),
        (&few, "dedup", "partition", 2),
    ];
    for (dir, command, strategy, all) in phases {
        let args = format!("{command} --strategy {strategy} a b");
        let expect = dir.run(&args).ok();
        for phase in 1..=all {
            for (before, after) in [("-j 64", "-j 1 -m 8M"), ("-j 1", "-j 64 -m 64M")] {
                killed(dir, &format!("{args} {before}"), phase);
                let resumed = format!("{args} --work-dir work --resume --report report {after}");
                assert!(dir.run(&resumed).ok() == expect, "phase {phase}: {before}: {resumed}");
                let report: serde_json::Value =
                    serde_json::from_slice(&dir.read("report")).unwrap();
                assert!(report["resumed"].as_u64() >= Some(phase), "{resumed}: {report}");
                nothing_kept(dir);
            }
        }
    }
}

#[test]
fn resumed_job_prints_a_note() {
    let dir = dir(400_000);
    let args = "common --strategy narrow a b";
    killed(&dir, args, 2);
    let output = dir.run(&format!("{args} --work-dir work --resume"));
    let note = output.err.strip_prefix("petal: note: resuming the job in work: ").unwrap();
    assert!(note.ends_with(" phases are done\n") && note.lines().count() == 1, "{note}");
    // A job that begins prints none.
    assert_eq!(dir.run(&format!("{args} --work-dir work --resume")).err, "");
    killed(&dir, args, 2);
    assert_eq!(dir.run(&format!("{args} --work-dir work --resume -q")).err, "");
}

/// Printing needs the positions of lines, counting does not.
#[test]
fn counting_job_is_resumed_as_printing_job() {
    let dir = sharing(300_000, 95);
    for args in ["common --strategy narrow a b", "diff --strategy partition a b"] {
        let expect = dir.run(args).ok();
        let phases = if args.contains("narrow") { 4 } else { 3 };
        killed(&dir, &format!("{args} -c"), phases);
        assert!(dir.run(&format!("{args} --work-dir work --resume")).ok() == expect, "{args}");
        killed(&dir, args, phases);
        let counted = dir.run(&format!("{args} -c --work-dir work --resume")).text();
        let lines = expect.iter().filter(|&&byte| byte == b'\n').count();
        assert_eq!(counted, format!("{lines}\n"), "{args}");
        nothing_kept(&dir);
    }
}

#[test]
fn compressed_inputs_and_duplicates_are_resumed() {
    let dir = dir(300_000);
    dir.write("ga", gz(&dir.read("a")));
    dir.write("gb", gz(&dir.read("b")));
    let expect = dir.run("dedup a b a --dupes-output dupes").ok();
    let dupes = dir.read("dupes");
    for strategy in ["narrow", "partition"] {
        let args = format!("dedup --strategy {strategy} ga gb ga --dupes-output again");
        for phase in 1..=2 {
            killed(&dir, &args, phase);
            let output = dir.run(&format!("{args} --work-dir work --resume"));
            assert!(output.ok() == expect && dir.read("again") == dupes, "{phase}: {args}");
            nothing_kept(&dir);
        }
    }
}

#[test]
fn in_memory_job_is_not_resumable() {
    let dir = dir(1000);
    let expect = dir.run("common a b").ok();
    for resume in ["", "--resume"] {
        assert!(dir.run(&format!("common a b --work-dir work {resume}")).ok() == expect);
        nothing_kept(&dir);
    }
    // A directory with other files is refused, and those files are not changed.
    std::fs::create_dir(dir.files.file("work")).unwrap();
    dir.write("work/mine", "x");
    let line = dir.run("common --strategy partition a b --work-dir work").failure();
    assert!(line.contains("not petal's") && line.contains("work"), "{line}");
    dir.write("work/petal.records", "a line\n");
    std::fs::remove_file(dir.files.file("work/mine")).unwrap();
    let line = dir.run("dedup --strategy partition work/petal.records --work-dir work").failure();
    assert!(line.contains("it contains an input"), "{line}");
    assert_eq!(dir.read("work/petal.records"), b"a line\n");
    // A file that was created there while the job was unfinished is kept.
    std::fs::remove_file(dir.files.file("work/petal.records")).unwrap();
    dir.run("common a b --work-dir work -o /dev/full").failure();
    dir.write("work/mine", "x");
    assert!(dir.run("common --strategy partition a b --work-dir work").ok() == expect);
    let left: Vec<_> = std::fs::read_dir(dir.files.file("work")).unwrap().collect();
    assert!(left.len() == 1 && dir.read("work/mine") == b"x", "{left:?}");
}

#[test]
fn resuming_another_job_is_an_error() {
    let dir = dir(200_000);
    dir.write("c", "x\n");
    let args = "common --strategy partition a b";
    killed(&dir, args, 2);
    let kept = common::inode_and_content(&dir.files.file("work/petal.journal"));
    let refused = |args: &str, message: &str| {
        let line = dir.run(&format!("{args} --work-dir work -o out")).failure();
        assert!(line.contains("work") && line.contains(message), "{args}: {line}");
        assert_eq!(
            common::inode_and_content(&dir.files.file("work/petal.journal")),
            kept,
            "{args}"
        );
        assert!(!dir.files.file("out").exists());
    };
    refused(args, "--resume");
    for other in
        ["diff a b", "dedup a b", "common b a", "common a b c", "common a c", "common -z a b"]
    {
        refused(&format!("{other} --resume"), "belongs to another job");
    }
    let line = dir.run_with("common a - --work-dir work --resume", b"x\n").failure();
    assert!(line.contains("pipe"), "{line}");
    let line = dir.run_with("common a - --work-dir other", b"x\n").failure();
    assert!(line.contains("pipe") && !dir.files.file("other").exists(), "{line}");
    // A changed input, with the same size.
    let mut b = dir.read("b");
    let middle = b.len() / 2;
    b[middle] ^= 1;
    dir.write("b", &b);
    refused(&format!("{args} --resume"), "changed");
    for wrong in ["common a b --resume", "common a b --approx --work-dir work"] {
        dir.run(wrong).failure();
    }
    dir.write("file", "");
    let line = dir.run("common a b --work-dir file").failure();
    assert!(line.contains("file"), "{line}");
}

#[test]
fn resume_uses_inputs_as_they_were_at_the_start() {
    let dir = dir(200_000);
    let args = "common --strategy partition a b";
    let expect = dir.run(args).ok();
    let resumed = format!("{args} --work-dir work --resume");
    let changes = [
        "cp a a.new && mv a.new a",
        "touch a b; chmod 600 b",
        "printf 'https://example.org/more\\nunfinished' | tee -a a >> b",
    ];
    for change in changes {
        for phases in [2, 3] {
            killed(&dir, args, phases);
            assert_eq!(dir.sh(change).code, Some(0), "{change}");
            assert!(dir.run(&resumed).ok() == expect, "{change}, after phase {phases}");
            nothing_kept(&dir);
            // Restores the files for the next job.
            dir.sh("for f in a b; do grep -vxE 'https://example.org/more|unfinished.*' $f > t; cp t $f; done; rm t");
        }
    }
    // Bytes that the job has read were changed, and the file has grown.
    killed(&dir, args, 2);
    dir.sh("printf X | dd of=a bs=1 seek=4000000 conv=notrunc 2>/dev/null; echo more >> a");
    let line = dir.run(&resumed).failure();
    assert!(line.contains("a, an input of its job, has changed since"), "{line}");
}

/// Positions in a redirected standard input are relative to its offset at the start of the job.
#[test]
fn resume_with_another_offset_of_stdin_is_an_error() {
    let dir = dir(200_000);
    let at = |offset: u64| {
        let mut file = File::open(dir.files.file("a")).unwrap();
        file.seek(SeekFrom::Start(offset)).unwrap();
        file
    };
    let args = "dedup --strategy partition -q -m 8M --work-dir work";
    let start_offset = 1 << 20;
    let whole = dir.petal("dedup -o whole -").stdin(at(start_offset)).status().unwrap();
    assert!(whole.success());
    let (_reader, mut writer) = std::io::pipe().unwrap();
    // The capacity of a pipe.
    writer.write_all(&[0; 1 << 16]).unwrap();
    let mut job = dir.petal(&format!("{args} -"));
    let mut child = job.stdin(at(start_offset)).stdout(writer).spawn().unwrap();
    wait_for(&dir, &mut child, args, 1);
    child.kill().unwrap();
    child.wait().unwrap();
    let resumed = format!("{args} --resume -o out -");
    for offset in [0, start_offset / 2, 2 * start_offset] {
        let output = dir.petal(&resumed).stdin(at(offset)).output().unwrap();
        let line = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{offset}: {line}");
        assert!(line.contains(&format!("byte {start_offset}")), "{offset}: {line}");
        assert!(line.contains(&format!("byte {offset}")), "{offset}: {line}");
        assert!(!dir.files.file("out").exists(), "{offset}");
    }
    // Lines appended to the file are ignored.
    dir.sh("printf 'https://example.org/more\\n' >> a");
    assert!(dir.petal(&resumed).stdin(at(start_offset)).status().unwrap().success());
    assert!(dir.read("out") == dir.read("whole"));
    nothing_kept(&dir);
}

#[test]
fn second_job_in_the_work_dir_is_an_error() {
    let dir = dir(200_000);
    let args = "common --strategy partition a b";
    let (mut child, _reader) = stuck(&dir, args, 3);
    for resume in ["", "--resume"] {
        let line = dir.run(&format!("{args} --work-dir work {resume}")).failure();
        assert!(line.contains("another job is working there"), "{line}");
    }
    let mut names = Vec::new();
    for entry in std::fs::read_dir(dir.files.file("work")).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{entry:?}");
        names.push(entry.file_name().into_string().unwrap());
    }
    names.sort();
    assert_eq!(names, ["petal.journal", "petal.lock", "petal.records"]);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn interrupted_run_continues() {
    let dir = dir(300_000);
    let args = "diff --strategy partition a b";
    let expect = dir.run(args).ok();
    for signal in ["INT", "TERM"] {
        let (mut child, _reader) = stuck(&dir, args, 1);
        let kill = ["-s", signal, &child.id().to_string()].map(str::to_owned);
        assert!(std::process::Command::new("kill").args(kill).status().unwrap().success());
        assert_eq!(common::wait(&mut child, 30).code(), Some(130), "{signal}");
        assert!(dir.run(&format!("{args} --work-dir work --resume")).ok() == expect);
        nothing_kept(&dir);
    }
}

/// The disk of the work directory is full; with more space the job is resumed.
#[test]
fn full_disk_keeps_finished_phases() {
    let dir = dir(300_000);
    let inside = |script: &str| {
        let probe = "mkdir -p full && mount -t tmpfs -o size=6m none full";
        let script = format!("{probe} && {{ {script}; }}").replace('\'', "'\\''");
        let mut shell = dir.shell(&format!("exec unshare -rm bash -c '{script}'"));
        shell.stderr(Stdio::piped());
        common::run_with_input(shell, b"")
    };
    if inside("true").code != Some(0) || inside("mount -o remount,size=7m full").code != Some(0) {
        return skipped("full_disk_keeps_finished_phases", "no namespaces or no mounts here");
    }
    let output = inside("\"$petal\" common --strategy partition a b --work-dir full/work -o out");
    assert!(
        output.err.contains("free some space and run again, or use --resume"),
        "{}",
        output.err
    );
    assert!(!output.err.contains("-m"), "{}", output.err);
    for (strategy, command) in
        [("partition", "common"), ("partition", "dedup"), ("narrow", "dedup")]
    {
        let args = format!("{command} --strategy {strategy} a b a");
        let expect = dir.run(&args).ok();
        let job = format!("\"$petal\" {args} -q -m 8M --work-dir full/work");
        let output = inside(&format!(
            "{job} -o out; [ $? = 2 ] && [ ! -e out ] && [ -e full/work/petal.journal ] || exit 9; \
             mount -o remount,size=200m full; {job} --resume || exit 8; [ ! -e full/work ]"
        ));
        assert_eq!(output.code, Some(0), "{args}: {}", output.err);
        assert!(
            output.err.contains("no space left") && output.err.lines().count() == 1,
            "{}",
            output.err
        );
        assert!(output.out == expect, "{args}");
    }
}

#[test]
fn resume_with_less_memory_is_an_error() {
    let dir = dir(200_000);
    let args = "common --strategy narrow a b";
    let expect = dir.run(args).ok();
    let (mut child, reader) = stuck(&dir, args, 2);
    child.kill().unwrap();
    child.wait().unwrap();
    drop(reader);
    let resumed = format!("{args} --work-dir work --resume");
    assert!(dir.run(&format!("{resumed} -m 16M")).ok() == expect);
    let mut child = dir.petal(&format!("{args} -m 32M --work-dir work -o /dev/full"));
    child.status().unwrap();
    let line = dir.run(&format!("{resumed} -m 16M")).failure();
    assert!(line.contains("began with a memory limit of 32 MiB; raise -m to 32 MiB"), "{line}");
    assert!(dir.run(&format!("{resumed} -m 32M")).ok() == expect);
    nothing_kept(&dir);
}
