//! Commands on filters of other programs.

#![allow(clippy::unwrap_used, reason = "the helpers of a test may panic as the test may")]

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::TestDir;

/// A directory with the golden files and their keys.
fn dir() -> TestDir {
    let dir = TestDir::new();
    for name in ["text.txt", "text.asked", "longs.txt", "longs.asked", "five.txt"] {
        dir.write(name, std::fs::read(golden("keys").join(name)).unwrap());
    }
    for name in [
        "guava-utf8-text",
        "guava-utf16-text",
        "guava-long",
        "dcso-text",
        "dcso-text.gz",
        "poppy-text-best",
    ] {
        dir.write(name, std::fs::read(golden(name)).unwrap());
    }
    dir
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/foreign").join(name)
}

/// Returns the lines that the other program found in its filter.
fn found_by_the_producer(file: &str, asked: &str) -> String {
    let answers = std::fs::read_to_string(golden(&format!("{file}.answers"))).unwrap();
    let lines = std::fs::read_to_string(golden("keys").join(asked)).unwrap();
    let found = lines.lines().zip(answers.chars()).filter(|(_, answer)| *answer == '1');
    found.map(|(line, _)| format!("{line}\n")).collect()
}

#[test]
fn check_agrees_with_the_other_program() {
    let dir = dir();
    for (file, args, asked) in [
        ("guava-utf8-text", "", "text.asked"),
        ("guava-utf16-text", "--key-type utf16", "text.asked"),
        ("guava-long", "--format guava --key-type int64", "longs.asked"),
        ("dcso-text", "", "text.asked"),
        ("dcso-text.gz", "--format dcso", "text.asked"),
        ("poppy-text-best", "", "text.asked"),
    ] {
        let expect = found_by_the_producer(file, asked);
        for jobs in ["-j 1", "-j 3"] {
            let text = dir.run(&format!("check {jobs} {args} {file} {asked}")).text();
            assert_eq!(text, expect, "{file}");
        }
    }
}

/// DCSO's program removes a CR at the end of a line; petal does so with `--key-type text-crlf`, which
/// the error recommends.
#[test]
fn lines_that_end_in_cr_lf_are_found_in_a_file_of_dcso() {
    let dir = dir();
    dir.write("dcso-crlf", std::fs::read(golden("dcso-crlf")).unwrap());
    dir.write("crlf.txt", std::fs::read(golden("keys").join("crlf.txt")).unwrap());
    let members = dir.read("crlf.txt");
    assert!(dir.run("check --key-type text-crlf dcso-crlf crlf.txt").ok() == members);
    assert!(dir.run("check dcso-crlf crlf.txt").out.len() < members.len() / 3);
    let info = dir.run("info dcso-crlf").text();
    assert!(info.contains("; text-crlf for lines that end in CR LF\n"), "{info}");
    let failure = dir.run("check --assert-members crlf.txt dcso-crlf five.txt").failure();
    assert!(failure.contains("use --key-type text-crlf, which finds all"), "{failure}");
    dir.run("build -q --key-type text-crlf --format dcso -n 200 -p 10% -o ours crlf.txt").ok();
    assert!(dir.read("ours") == dir.read("dcso-crlf"));
}

/// `add` and `merge` refuse the files that `verify` refuses, and write nothing.
#[test]
fn add_refuses_damaged_files() {
    let dir = dir();
    dir.run("build -q -o digest --format squid-digest -n 100 -p 5% five.txt").ok();
    dir.run("build -q -o go --format go-bloom -n 5 -p 1% five.txt").ok();
    dir.run("build -q -o hadoop --format hadoop-murmur -n 7 -p 1% five.txt").ok();
    // A reserved byte, and bits after the last one.
    for (name, at) in [("digest", 100), ("go", 24), ("hadoop", 21)] {
        let whole = dir.read(name);
        let mut damaged = whole.clone();
        damaged[at] |= 0x80;
        assert_ne!(damaged, whole);
        dir.write("damaged", &damaged);
        let failure = dir.run("verify damaged").failure();
        assert!(failure.contains("not a valid"), "{name}: {failure}");
        for args in [
            "add -q damaged five.txt",
            &format!("merge -q -o never damaged {name}"),
            &format!("merge -q -o never {name} damaged"),
        ] {
            assert_eq!(dir.run(args).failure(), failure, "{args}");
            assert!(dir.read("damaged") == damaged, "{args}");
            assert!(!dir.files.file("never").exists(), "{args}");
        }
    }
}

#[test]
fn assert_members_detects_the_wrong_key_type() {
    let dir = dir();
    let guarded = "check -c --assert-members text.txt guava-utf16-text text.asked";
    let failure = dir.run(guarded).failure();
    assert!(failure.contains("of the 600 lines of text.txt are not in the filter"), "{failure}");
    assert!(failure.contains("use --key-type utf16, which finds all"), "{failure}");
    dir.run(&guarded.replace("check", "check --key-type utf16")).ok();
    // A line that is not a valid key.
    let args = "check --key-type int32 --assert-members longs.txt guava-long longs.asked";
    let failure = dir.run(args).failure();
    assert!(failure.contains("use --key-type int64, which finds all"), "{failure}");
    // Also petal's own filters.
    dir.run("build -q -o f text.txt").ok();
    dir.run("check -c --assert-members text.txt f text.asked").ok();
    dir.run("check -c --assert-members longs.txt f text.asked").failure();
    // Nothing is added if lines are missing.
    let before = dir.read("guava-utf16-text");
    dir.run("add --assert-members text.txt guava-utf16-text five.txt").failure();
    assert!(dir.read("guava-utf16-text") == before);
    dir.write("empty", "");
    dir.run("check --assert-members empty guava-long longs.asked").failure();
}

#[test]
fn assert_members_reads_a_pipe_once() {
    let dir = dir();
    dir.fifo("known", dir.read("text.txt"));
    let failure = dir.run("check --assert-members known guava-utf16-text text.asked").failure();
    assert!(failure.contains("are not in the filter; its keys have another type"), "{failure}");
}

#[test]
fn keys_with_many_hashes_stay_within_the_memory_limit() {
    let dir = TestDir::new();
    // A filter of pybloom-live with 4,000 slices of 2 bits, all set.
    let mut file = [0.5f64.to_bits(), 4000, 2, 10, 1].map(u64::to_le_bytes).concat();
    file.resize(file.len() + 1000, 0xff);
    dir.write("f", file);
    dir.write("lines", (0..20_000).map(|n| format!("{n}\n")).collect::<String>());
    let output = dir.run("check -c -m 8M f lines");
    assert!(output.peak < 26 << 20, "{} bytes", output.peak);
    assert_eq!(output.text(), "20000\n");
}

#[test]
fn decompressed_filter_counts_against_the_memory_limit() {
    let dir = TestDir::new();
    let mut lines = String::new();
    (0..200_000).for_each(|n| lines += &format!("line {n}\n"));
    dir.write("lines", &lines);
    dir.run("build -q -o f.gz --format dcso --gzip -n 40000000 -p 0.01 lines").ok();
    let output = dir.run("check -c -m 64M --allow lines f.gz lines");
    assert!(output.peak < 80 << 20, "{} bytes", output.peak);
    assert_eq!(output.out, b"0\n");
    dir.run("check -c -m 32M f.gz lines").failure();
}

#[test]
fn build_makes_the_same_file_as_the_program() {
    let dir = dir();
    for (format, args, file, keys) in [
        ("guava", "", "guava-utf8-text", "text.txt"),
        ("guava", "--key-type utf16", "guava-utf16-text", "text.txt"),
        ("guava", "--key-type int64", "guava-long", "longs.txt"),
        ("dcso", "", "dcso-text", "text.txt"),
        ("poppy", "", "poppy-text", "text.txt"),
    ] {
        dir.run(&format!("build -q -o f --format {format} {args} -p 0.1 {keys}")).ok();
        assert!(dir.read("f") == std::fs::read(golden(file)).unwrap(), "{file}");
        // Building and adding gives the same file.
        let text = std::fs::read_to_string(golden("keys").join(keys)).unwrap();
        let (first, rest) = text.split_at(text.match_indices('\n').nth(299).unwrap().0 + 1);
        dir.write("first", first);
        dir.write("rest", rest);
        dir.run(&format!("build -q -o g --format {format} {args} -n 600 -p 0.1 first")).ok();
        dir.run(&format!("add -q {args} --assert-members first g rest")).ok();
        assert!(dir.read("g") == dir.read("f"), "{file}");
    }
}

#[test]
fn cascade_has_no_false_answers_for_either_list() {
    let dir = dir();
    let good: String =
        place_lines("text.asked").difference(&place_lines("text.txt")).cloned().collect();
    dir.write("good.txt", &good);
    let build = "build -q -o f --format filter-cascade";
    dir.run(&format!("{build} --not-in good.txt text.txt")).ok();
    assert_eq!(dir.run("check -c f text.txt").text(), "600\n");
    assert_eq!(dir.run("check -c f good.txt").out, b"0\n");
    dir.write("both", good.lines().next().unwrap());
    for (args, expect) in [
        (format!("{build} text.txt"), "--not-in"),
        (format!("{build} -n 7 --not-in good.txt text.txt"), "leave it out"),
        (format!("{build} --not-in good.txt text.txt both"), "both members and known non-members"),
        (
            build.replace("filter-cascade", "guava --not-in good.txt text.txt"),
            "a guava filter has no known non-members",
        ),
        ("add f five.txt".to_owned(), "filter-cascade"),
    ] {
        let failure = dir.run(&args).failure();
        assert!(failure.contains(expect), "{args}: {failure}");
    }
}

/// Returns the lines of a file of keys, with their line ends.
fn place_lines(name: &str) -> std::collections::BTreeSet<String> {
    let text = std::fs::read_to_string(golden("keys").join(name)).unwrap();
    text.lines().map(|line| format!("{line}\n")).collect()
}

#[test]
fn compressed_filter_stays_compressed() {
    let dir = dir();
    dir.run("build -q -o f.gz --format dcso --gzip -n 700 -p 0.1 text.txt").ok();
    dir.run("add -q f.gz five.txt").ok();
    assert!(dir.read("f.gz").starts_with(&[0x1f, 0x8b]));
    assert_eq!(dir.run("check f.gz five.txt").ok(), dir.read("five.txt"));
    // The option is accepted only by commands that read such files.
    dir.run("build -q -o g --format guava --gzip text.txt").failure();
}

#[test]
fn warnings_of_foreign_formats_are_shown() {
    let dir = dir();
    dir.run("build -q -o d --format squid-digest -n 100 -p 0.1 five.txt").ok();
    let output = dir.run("add d text.txt");
    assert_eq!(output.code, Some(0), "{}", output.err);
    for part in
        ["warning: Squid takes no digest of which more than 65 %", "planned for 100 keys and has"]
    {
        assert!(output.err.contains(part), "{part}: {}", output.err);
    }
    assert!(dir.run("info d").text().contains("\nwarning   Squid takes no digest"));
    dir.run("build -q -o e --format guava -n 100 -p 0.01 five.txt").ok();
    assert_eq!(dir.run("add e five.txt").err, "");
}

#[test]
fn signal_removes_the_lock_file() {
    let dir = dir();
    dir.run("build -q -o f --format guava -n 100 five.txt").ok();
    let mut child = dir.petal("add f -").stdin(Stdio::piped()).spawn().unwrap();
    let lock = dir.files.file("f.lock");
    while !lock.exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    std::thread::sleep(std::time::Duration::from_millis(200));
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(common::wait(&mut child, 10).code(), Some(130));
    assert!(!lock.exists());
}

#[test]
fn foreign_filters_of_one_layout_are_merged() {
    let dir = dir();
    dir.run("build -q -o a --format guava -n 700 text.txt").ok();
    dir.run("build -q -o b --format guava -n 700 five.txt").ok();
    dir.run("merge -q -o both a b").ok();
    assert_eq!(dir.run("check -c both text.txt").text(), "600\n");
    assert_eq!(dir.run("check -c both five.txt").text(), "5\n");
    dir.run("build -q -o c --format guava -n 800 five.txt").ok();
    for others in ["a c", "a dcso-text", "a native", "native a"] {
        dir.run("build -q -o native text.txt").ok();
        dir.run(&format!("merge -q -o never {others}")).failure();
    }
    assert!(!dir.files.file("never").exists());
}

#[test]
fn info_shows_what_a_format_does_not_record() {
    let dir = dir();
    let text = dir.run("info guava-utf8-text").text();
    for part in
        ["format    guava, strategy MURMUR128_MITZ_64", "keys      about 5", "unknown   the funnel"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let json: serde_json::Value =
        serde_json::from_str(&dir.run("info --json dcso-text").text()).unwrap();
    assert_eq!(json["format"], "dcso");
    assert_eq!(json["capacity"], 600);
    assert!(json["estimated_fpr"].as_f64().unwrap() > 0.08, "{json}");
    let text = dir.run("verify guava-long dcso-text").text();
    assert_eq!(text.matches("its layout is valid, but it has no checksum").count(), 2, "{text}");
}

/// The header of a compressed file is checked before its contents are decompressed.
#[test]
fn compressed_zeros_take_no_memory() {
    let dir = dir();
    let guava = dir.read("guava-utf8-text");
    for (name, begin) in [("zeros", &b""[..]), ("behind", &guava), ("headless", &guava[..2])] {
        let zeros = std::io::repeat(0).take(400 << 20);
        let mut compressed = Vec::new();
        flate2::read::GzEncoder::new(begin.chain(zeros), flate2::Compression::fast())
            .read_to_end(&mut compressed)
            .unwrap();
        dir.write(name, &compressed);
        assert!(compressed.len() < 4 << 20);
        for args in ["info", "verify", "check", "add"] {
            let lines = if matches!(args, "check" | "add") { "five.txt" } else { "" };
            let output = dir.run(&format!("{args} {name} {lines}"));
            assert!(output.peak < 100 << 20, "{args} {name}: {} bytes", output.peak);
            output.failure();
        }
        assert!(dir.read(name) == compressed);
    }
}

/// Double hashing has a lowest rate: `info` includes it, and `build` warns of it.
#[test]
fn rate_floor_of_double_hashing_is_shown() {
    let dir = dir();
    for (format, expect) in
        [("spark-v2", "about 0.003"), ("guava", "about 4."), ("redisbloom", "about 3.")]
    {
        let output = dir.run(&format!("build -o f --format {format} -n 1000 -p 1e-8 text.txt"));
        assert_eq!(output.code, Some(0));
        let warning = "cannot keep it with 1,000 keys";
        assert!(output.err.contains(warning) && output.err.lines().count() == 1, "{}", output.err);
        assert!(output.err.contains(expect), "{expect}: {}", output.err);
        let info = dir.run("info f").text();
        assert!(info.contains("of that comes from the format's double hashing"), "{info}");
        let json = dir.run("info --json f").text();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let [rate, floor] = ["estimated_fpr", "fpr_floor"].map(|name| json[name].as_f64().unwrap());
        assert!(rate > 1e-7 && floor > 0.9 * rate, "{json}");
    }
    for args in ["--format spark-v2 -n 600 -p 1%", "--format dcso -n 1000 -p 1e-8"] {
        let output = dir.run(&format!("build -o f {args} text.txt"));
        assert_eq!((output.code, output.err.as_str()), (Some(0), ""), "{args}");
        assert!(!dir.run("info f").text().contains("double hashing"), "{args}");
    }
}

#[test]
fn invalid_foreign_files_are_errors() {
    let dir = dir();
    dir.write("java", b"\xac\xed\x00\x05sr");
    dir.write("zst", b"\x28\xb5\x2f\xfd and so on");
    dir.write("crlf", "https://example.com/\r\nb\r\n");
    let whole = dir.read("guava-utf8-text");
    let gzip = dir.read("dcso-text.gz");
    dir.write("halfgz", &gzip[..gzip.len() / 2]);
    dir.write("cut", &whole[..whole.len() - 1]);
    for (args, expect) in [
        ("check text.txt five.txt", "not a petal file, nor a filter of another known format"),
        ("check java five.txt", "ObjectOutputStream"),
        ("check --format guava dcso-text five.txt", "not a valid guava filter"),
        ("info --format dcso guava-long", "not a valid dcso filter"),
        ("info --format dcso guava-long", "detected as a filter of guava"),
        ("check --format guava native five.txt", "detected as a filter of petal's own"),
        ("check --format rbloom dcso-text five.txt", "is detected as a filter of dcso, not rbloom"),
        ("add --format rbloom dcso-text five.txt", "is detected as a filter of dcso, not rbloom"),
        ("verify cut", "perhaps a guava filter of 366 bytes that was truncated or extended"),
        ("verify --format guava cut", "expected 366 bytes, found 365"),
        ("check halfgz five.txt", "its gzip data is damaged or truncated"),
        ("check zst five.txt", "is compressed with zstd; decompress it first"),
        ("check - five.txt", "a filter cannot be read from standard input"),
        ("check -m 1M dcso-text five.txt", "at least 8 MiB"),
        ("merge --fold -o never guava-long guava-long", "only petal's own filters can be folded"),
        ("merge -o never native guava-long", "expected one of petal's own"),
        (
            "check --assert-members crlf guava-utf8-text five.txt",
            "remove it with --key-transform strip-cr",
        ),
        ("shrink guava-long -o never", "is a guava filter"),
        ("remove guava-long longs.txt", "is a guava filter"),
        ("check --key-type int64 native five.txt", "leave it out"),
        (
            "check --key-type utf16 dcso-text five.txt",
            "keys of a dcso filter are text or text-crlf, not utf16",
        ),
        (
            "build --format spark-v2 --key-type int32 -o never longs.txt",
            "there; use --key-type int64",
        ),
        (
            "build --format spark-v1 --key-type uint64 -o never longs.txt",
            "there; use --key-type int64",
        ),
        ("build --format squid-digest --key-type int32 -o never five.txt", "leave it out"),
        ("build --format pybloom -o never -n 5 text.txt", "never: pybloom"),
        ("check --key-type int64 -z guava-long five.txt", "'a\\nhello"),
        (
            "check --key-type int64 guava-long five.txt",
            "is not a key: expected a whole number of 64 bits",
        ),
        ("build -o never --format dcso -n 1e12 -m 64M five.txt", "raise -m"),
    ] {
        dir.run("build -q -o native text.txt").ok();
        let failure = dir.run(args).failure();
        assert!(failure.contains(expect), "{args}: {failure}");
    }
    assert!(!dir.files.file("never").exists());
    let usage = dir.run("build -o never --format guava --type static five.txt");
    assert_eq!(usage.code, Some(2));
}

/// Fetches the cache digest of a running Squid over HTTP and checks its URLs.
#[test]
#[ignore = "cargo x test --foreign"]
fn digest_of_a_running_squid_contains_its_urls() {
    let peers = std::env::var_os("PETAL_PEERS").expect("PETAL_PEERS: run cargo x test --foreign");
    let mut squid = Command::new(Path::new(&peers).join("bin/squid"))
        .arg("serve")
        .arg(golden("keys/urls.txt"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut url = String::new();
    BufReader::new(squid.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let (host, path) = url.trim().strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut answer = Vec::new();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path} HTTP/1.0\r\nHost: {host}\r\n\r\n").unwrap();
    stream.read_to_end(&mut answer).unwrap();
    drop(squid.stdin.take()); // Squid ends when its input ends.
    squid.wait().unwrap();
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
    let head = String::from_utf8_lossy(&answer[..end]);
    assert!(head.contains("200") && head.contains("application/cache-digest"), "{head}");

    let dir = TestDir::new();
    dir.write("digest", &answer[end + 4..]);
    for name in ["urls.txt", "urls.asked"] {
        dir.write(name, std::fs::read(golden("keys").join(name)).unwrap());
    }
    let members = dir.read("urls.txt");
    let check = "check --format squid-digest";
    assert!(dir.run(&format!("{check} digest urls.txt")).ok() == members);
    dir.run(&format!("{check} -c --assert-members urls.txt digest urls.asked")).ok();
    let info = dir.run("info digest").text();
    assert!(info.starts_with("format    squid-digest, bits per entry 5\n"), "{info}");
    println!("a running Squid's digest of {} bytes: all members found", answer.len() - end - 4);
}
