//! Jobs that are killed and go on: the answer is the same, and nothing is left when it is there.

#![allow(clippy::unwrap_used, reason = "the helpers of a test may panic as the test may")]

mod kit;

use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use kit::pack::gz;
use kit::{Place, overlapping, skipped, write_lines};
use petal_testkit::rng::Rng;

/// Two files that share a tenth of their lines.
fn place(lines: u64) -> Place {
    let place = Place::new();
    let [a, b] = overlapping(lines, 10, 3);
    write_lines(&place.files.file("a"), a);
    write_lines(&place.files.file("b"), b);
    place
}

/// How many phases the journal in `work` says are done.
fn done(place: &Place) -> u64 {
    let text = std::fs::read_to_string(place.files.file("work/petal.journal")).unwrap_or_default();
    let rest = text.split("\"done\":").nth(1).unwrap_or_default();
    rest.split(',').next().unwrap_or_default().parse().unwrap_or(0)
}

/// Starts a job whose standard output takes not one byte, and waits until so many phases are done.
fn stuck(place: &Place, words: &str, phases: u64) -> (Child, std::io::PipeReader) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    // The room that a pipe has.
    writer.write_all(&[0; 1 << 16]).unwrap();
    let mut child =
        place.petal(&format!("{words} --work-dir work -m 8M")).stdout(writer).spawn().unwrap();
    wait_for(place, &mut child, words, phases);
    (child, reader)
}

/// Waits until so many phases of a job are done.
fn wait_for(place: &Place, child: &mut Child, words: &str, phases: u64) {
    let end = Instant::now() + Duration::from_secs(60);
    while done(place) < phases {
        assert!(child.try_wait().unwrap().is_none() && Instant::now() < end, "{words}: no phase");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A job killed when so many phases were done.
fn killed(place: &Place, words: &str, phases: u64) {
    let (mut child, _reader) = stuck(place, words, phases);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[track_caller]
fn nothing_kept(place: &Place) {
    place.nothing_left();
    let names = place.files.names();
    assert!(!names.iter().any(|name| name.starts_with("work")), "{names:?}");
}

/// Kills a job at random moments, goes on until it is done, over and over.
fn kill_at_random(place: &Place, jobs: &[&str], rounds: u64, seed: u64) {
    let mut rng = Rng::new(seed);
    for job in jobs {
        let words = format!("{job} -q -j 2 -m 8M -o out");
        let begun = Instant::now();
        place.run(&format!("{words} --work-dir work")).ok();
        let whole = begun.elapsed();
        nothing_kept(place);
        let expect = place.read("out");
        for round in 0..rounds {
            let told = format!("seed {seed}, round {round}: {words}");
            std::fs::remove_file(place.files.file("out")).unwrap();
            let mut tries = 0;
            loop {
                let resume = if tries > 0 { "--resume" } else { "" };
                let mut child =
                    place.petal(&format!("{words} --work-dir work {resume}")).spawn().unwrap();
                let moment = whole * rng.below(1100) as u32 / 1000;
                if tries < 4 {
                    std::thread::sleep(moment);
                    // Of one that has ended this is none of its business.
                    let _ = child.kill();
                }
                let status = child.wait().unwrap();
                if let Some(code) = status.code() {
                    assert_eq!(code, 0, "{told}");
                    break;
                }
                assert!(place.temp().read_dir().unwrap().next().is_none(), "{told}");
                tries += 1;
            }
            assert!(place.read("out") == expect, "{told}");
            nothing_kept(place);
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
fn killed_at_any_moment_it_goes_on_to_the_same_bytes() {
    kill_at_random(&place(400_000), &JOBS, 3, 1);
}

#[test]
#[ignore = "the long form: some minutes"]
fn killed_at_any_moment_it_goes_on_to_the_same_bytes_at_length() {
    kill_at_random(&place(4_000_000), &JOBS, 30, 2);
}

/// Each phase of each job in turn; the rest of the work may be told other threads and another cap.
#[test]
fn killed_after_any_phase_it_goes_on_with_any_threads_and_cap() {
    let place = place(400_000);
    let phases = [("common", "narrow", 4), ("diff", "narrow", 5), ("dedup", "partition", 2)];
    for (verb, strategy, all) in phases {
        let words = format!("{verb} --strategy {strategy} a b");
        let expect = place.run(&words).ok();
        for phase in 1..=all {
            for (before, after) in [("-j 64", "-j 1 -m 8M"), ("-j 1", "-j 64 -m 64M")] {
                killed(&place, &format!("{words} {before}"), phase);
                let go_on = format!("{words} --work-dir work --resume --report told {after}");
                assert!(place.run(&go_on).ok() == expect, "phase {phase}: {before}: {go_on}");
                let told: serde_json::Value = serde_json::from_slice(&place.read("told")).unwrap();
                assert!(told["resumed"].as_u64() >= Some(phase), "{go_on}: {told}");
                nothing_kept(&place);
            }
        }
    }
}

/// To count lines no position is needed, to print them it is.
#[test]
fn what_began_as_a_count_may_end_in_print() {
    let place = place(300_000);
    for words in ["common --strategy narrow a b", "diff --strategy partition a b"] {
        let expect = place.run(words).ok();
        let phases = if words.contains("narrow") { 4 } else { 3 };
        killed(&place, &format!("{words} -c"), phases);
        assert!(place.run(&format!("{words} --work-dir work --resume")).ok() == expect, "{words}");
        killed(&place, words, phases);
        let counted = place.run(&format!("{words} -c --work-dir work --resume")).text();
        let lines = expect.iter().filter(|&&byte| byte == b'\n').count();
        assert_eq!(counted, format!("{lines}\n"), "{words}");
        nothing_kept(&place);
    }
}

#[test]
fn packed_inputs_and_duplicates_go_on_too() {
    let place = place(300_000);
    place.write("ga", gz(&place.read("a")));
    place.write("gb", gz(&place.read("b")));
    let expect = place.run("dedup a b a --dupes-output dupes").ok();
    let dupes = place.read("dupes");
    for strategy in ["narrow", "partition"] {
        let words = format!("dedup --strategy {strategy} ga gb ga --dupes-output again");
        for phase in 1..=2 {
            killed(&place, &words, phase);
            let ran = place.run(&format!("{words} --work-dir work --resume"));
            assert!(ran.ok() == expect && place.read("again") == dupes, "{phase}: {words}");
            nothing_kept(&place);
        }
    }
}

#[test]
fn a_memory_job_keeps_nothing_and_repeats() {
    let place = place(1000);
    let expect = place.run("common a b").ok();
    for resume in ["", "--resume"] {
        assert!(place.run(&format!("common a b --work-dir work {resume}")).ok() == expect);
        nothing_kept(&place);
    }
    // What was there before is nobody's business, and what came meanwhile neither.
    std::fs::create_dir(place.files.file("work")).unwrap();
    place.write("work/mine", "x");
    let line = place.run("common --strategy partition a b --work-dir work").trouble();
    assert!(line.contains("not petal's") && line.contains("work"), "{line}");
    place.write("work/petal.records", "a line\n");
    std::fs::remove_file(place.files.file("work/mine")).unwrap();
    let line = place.run("dedup --strategy partition work/petal.records --work-dir work").trouble();
    assert!(line.contains("an input lies in it"), "{line}");
    assert_eq!(place.read("work/petal.records"), b"a line\n");
    // What comes in while a job is unfinished stays.
    std::fs::remove_file(place.files.file("work/petal.records")).unwrap();
    place.run("common a b --work-dir work -o /dev/full").trouble();
    place.write("work/mine", "x");
    assert!(place.run("common --strategy partition a b --work-dir work").ok() == expect);
    let left: Vec<_> = std::fs::read_dir(place.files.file("work")).unwrap().collect();
    assert!(left.len() == 1 && place.read("work/mine") == b"x", "{left:?}");
}

#[test]
fn another_job_is_refused() {
    let place = place(200_000);
    place.write("c", "x\n");
    let words = "common --strategy partition a b";
    killed(&place, words, 2);
    let kept = kit::look(&place.files.file("work/petal.journal"));
    let refused = |words: &str, says: &str| {
        let line = place.run(&format!("{words} --work-dir work -o out")).trouble();
        assert!(line.contains("work") && line.contains(says), "{words}: {line}");
        assert_eq!(kit::look(&place.files.file("work/petal.journal")), kept, "{words}");
        assert!(!place.files.file("out").exists());
    };
    refused(words, "--resume");
    for other in
        ["diff a b", "dedup a b", "common b a", "common a b c", "common a c", "common -z a b"]
    {
        refused(&format!("{other} --resume"), "another one");
    }
    let line = place.run_with("common a - --work-dir work --resume", b"x\n").trouble();
    assert!(line.contains("pipe"), "{line}");
    let line = place.run_with("common a - --work-dir other", b"x\n").trouble();
    assert!(line.contains("pipe") && !place.files.file("other").exists(), "{line}");
    // A changed input, with the same size.
    let mut b = place.read("b");
    let middle = b.len() / 2;
    b[middle] ^= 1;
    place.write("b", &b);
    refused(&format!("{words} --resume"), "changed");
    for wrong in ["common a b --resume", "common a b --approx --work-dir work"] {
        let ran = place.run(wrong);
        assert!(ran.code == Some(2) && ran.err.starts_with("error: "), "{wrong}: {}", ran.err);
    }
    place.write("file", "");
    let line = place.run("common a b --work-dir file").trouble();
    assert!(line.contains("file"), "{line}");
}

#[test]
fn inputs_that_grew_or_were_touched_go_on_as_they_were() {
    let place = place(200_000);
    let words = "common --strategy partition a b";
    let expect = place.run(words).ok();
    let go_on = format!("{words} --work-dir work --resume");
    let changes = [
        "cp a a.new && mv a.new a",
        "touch a b; chmod 600 b",
        "printf 'https://example.org/more\\nunfinished' | tee -a a >> b",
    ];
    for change in changes {
        for phases in [2, 3] {
            killed(&place, words, phases);
            assert_eq!(place.sh(change).code, Some(0), "{change}");
            assert!(place.run(&go_on).ok() == expect, "{change}, after phase {phases}");
            nothing_kept(&place);
            // The next job begins with the files as they are now.
            place.sh("for f in a b; do grep -vxE 'https://example.org/more|unfinished.*' $f > t; cp t $f; done; rm t");
        }
    }
    // Bytes that were read are other ones now, in a file that is longer.
    killed(&place, words, 2);
    place.sh("printf X | dd of=a bs=1 seek=4000000 conv=notrunc 2>/dev/null; echo more >> a");
    let line = place.run(&go_on).trouble();
    assert!(line.contains("a, an input of its job, has changed since"), "{line}");
}

/// Positions in a redirected standard input count from where the job began to read it.
#[test]
fn standard_input_at_another_offset_is_refused() {
    let place = place(200_000);
    let at = |offset: u64| {
        let mut file = File::open(place.files.file("a")).unwrap();
        file.seek(SeekFrom::Start(offset)).unwrap();
        file
    };
    let words = "dedup --strategy partition -q -m 8M --work-dir work";
    let begun_at = 1 << 20;
    let whole = place.petal("dedup -o whole -").stdin(at(begun_at)).status().unwrap();
    assert!(whole.success());
    let (_reader, mut writer) = std::io::pipe().unwrap();
    // The room that a pipe has.
    writer.write_all(&[0; 1 << 16]).unwrap();
    let mut job = place.petal(&format!("{words} -"));
    let mut child = job.stdin(at(begun_at)).stdout(writer).spawn().unwrap();
    wait_for(&place, &mut child, words, 1);
    child.kill().unwrap();
    child.wait().unwrap();
    let go_on = format!("{words} --resume -o out -");
    for offset in [0, begun_at / 2, 2 * begun_at] {
        let ran = place.petal(&go_on).stdin(at(offset)).output().unwrap();
        let line = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(ran.status.code(), Some(2), "{offset}: {line}");
        assert!(line.contains(&format!("byte {begun_at}")), "{offset}: {line}");
        assert!(line.contains(&format!("byte {offset}")), "{offset}: {line}");
        assert!(!place.files.file("out").exists(), "{offset}");
    }
    // A file that has grown goes on as it was.
    place.sh("printf 'https://example.org/more\\n' >> a");
    assert!(place.petal(&go_on).stdin(at(begun_at)).status().unwrap().success());
    assert!(place.read("out") == place.read("whole"));
    nothing_kept(&place);
}

#[test]
fn two_jobs_at_once_are_refused_and_files_are_their_owners() {
    let place = place(200_000);
    let words = "common --strategy partition a b";
    let (mut child, _reader) = stuck(&place, words, 3);
    for resume in ["", "--resume"] {
        let line = place.run(&format!("{words} --work-dir work {resume}")).trouble();
        assert!(line.contains("another job is working there"), "{line}");
    }
    let mut names = Vec::new();
    for entry in std::fs::read_dir(place.files.file("work")).unwrap() {
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
fn interrupted_in_good_order_it_goes_on() {
    let place = place(300_000);
    let words = "diff --strategy partition a b";
    let expect = place.run(words).ok();
    for signal in ["INT", "TERM"] {
        let (mut child, _reader) = stuck(&place, words, 1);
        let kill = ["-s", signal, &child.id().to_string()].map(str::to_owned);
        assert!(std::process::Command::new("kill").args(kill).status().unwrap().success());
        assert_eq!(kit::wait(&mut child, 30).code(), Some(130), "{signal}");
        assert!(place.run(&format!("{words} --work-dir work --resume")).ok() == expect);
        nothing_kept(&place);
    }
}

/// The disk of the folder fills up; with more room the job goes on.
#[test]
fn a_full_disk_keeps_what_is_done() {
    let place = place(300_000);
    let inside = |script: &str| {
        let probe = "mkdir -p full && mount -t tmpfs -o size=6m none full";
        let script = format!("{probe} && {{ {script}; }}").replace('\'', "'\\''");
        let mut shell = place.shell(&format!("exec unshare -rm bash -c '{script}'"));
        shell.stderr(Stdio::piped());
        kit::ran_with(shell, b"")
    };
    if inside("true").code != Some(0) || inside("mount -o remount,size=7m full").code != Some(0) {
        return skipped("a_full_disk_keeps_what_is_done", "no namespaces or no mounts here");
    }
    let ran = inside("\"$petal\" common --strategy partition a b --work-dir full/work -o out");
    assert!(ran.err.contains("free some, then go on with --resume"), "{}", ran.err);
    assert!(!ran.err.contains("-m"), "{}", ran.err);
    for (strategy, verb) in [("partition", "common"), ("partition", "dedup"), ("narrow", "dedup")] {
        let words = format!("{verb} --strategy {strategy} a b a");
        let expect = place.run(&words).ok();
        let job = format!("\"$petal\" {words} -q -m 8M --work-dir full/work");
        let ran = inside(&format!(
            "{job} -o out; [ $? = 2 ] && [ ! -e out ] && [ -e full/work/petal.journal ] || exit 9; \
             mount -o remount,size=200m full; {job} --resume || exit 8; [ ! -e full/work ]"
        ));
        assert_eq!(ran.code, Some(0), "{words}: {}", ran.err);
        assert!(ran.err.contains("no space left") && ran.err.lines().count() == 1, "{}", ran.err);
        assert!(ran.out == expect, "{words}");
    }
}

#[test]
fn less_memory_than_before_is_refused_and_more_is_not() {
    let place = place(200_000);
    let words = "common --strategy narrow a b";
    let expect = place.run(words).ok();
    let (mut child, reader) = stuck(&place, words, 2);
    child.kill().unwrap();
    child.wait().unwrap();
    drop(reader);
    let go_on = format!("{words} --work-dir work --resume");
    let held = place.run(&format!("{go_on} -m 16M")).ok();
    assert!(held == expect);
    let mut child = place.petal(&format!("{words} -m 32M --work-dir work -o /dev/full"));
    child.status().unwrap();
    let line = place.run(&format!("{go_on} -m 16M")).trouble();
    assert!(line.contains("-m 32 MiB"), "{line}");
    assert!(place.run(&format!("{go_on} -m 32M")).ok() == expect);
    nothing_kept(&place);
}
