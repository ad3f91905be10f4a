//! Other programs' filters through the verbs.

#![allow(clippy::unwrap_used, reason = "the helpers of a test may panic as the test may")]

mod kit;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use kit::Place;

/// A folder with the golden files and their keys.
fn place() -> Place {
    let place = Place::new();
    for name in ["text.txt", "text.asked", "longs.txt", "longs.asked", "five.txt"] {
        place.write(name, std::fs::read(golden("keys").join(name)).unwrap());
    }
    for name in ["guava-utf8-text", "guava-utf16-text", "guava-long", "dcso-text", "dcso-text.gz"] {
        place.write(name, std::fs::read(golden(name)).unwrap());
    }
    place
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/foreign").join(name)
}

/// The lines of a list that a producer found in its file.
fn found_by_the_producer(file: &str, asked: &str) -> String {
    let answers = std::fs::read_to_string(golden(&format!("{file}.answers"))).unwrap();
    let lines = std::fs::read_to_string(golden("keys").join(asked)).unwrap();
    let held = lines.lines().zip(answers.chars()).filter(|(_, answer)| *answer == '1');
    held.map(|(line, _)| format!("{line}\n")).collect()
}

#[test]
fn check_answers_as_the_producer_does() {
    let place = place();
    for (file, words, asked) in [
        ("guava-utf8-text", "", "text.asked"),
        ("guava-utf16-text", "--as utf16", "text.asked"),
        ("guava-long", "--format guava --as int64", "longs.asked"),
        ("dcso-text", "", "text.asked"),
        ("dcso-text.gz", "--format dcso", "text.asked"),
    ] {
        let expect = found_by_the_producer(file, asked);
        for jobs in ["-j 1", "-j 3"] {
            let text = place.run(&format!("check {jobs} {words} {file} {asked}")).text();
            assert_eq!(text, expect, "{file}");
        }
    }
}

/// DCSO's program drops a CR at the end of a line. petal does with --as text-crlf, and says so.
#[test]
fn lines_that_end_in_cr_lf_are_found_in_a_file_of_dcso() {
    let place = place();
    place.write("dcso-crlf", std::fs::read(golden("dcso-crlf")).unwrap());
    place.write("crlf.txt", std::fs::read(golden("keys").join("crlf.txt")).unwrap());
    let members = place.read("crlf.txt");
    assert!(place.run("check --as text-crlf dcso-crlf crlf.txt").ok() == members);
    assert!(place.run("check dcso-crlf crlf.txt").out.len() < members.len() / 3);
    assert!(place.run("info dcso-crlf").text().contains("--as text-crlf for lines that end in CR"));
    let trouble = place.run("check --probe-known crlf.txt dcso-crlf five.txt").trouble();
    assert!(trouble.contains("with --as text-crlf all are found"), "{trouble}");
    place.run("build -q --as text-crlf --format dcso -n 200 -p 10% -o ours crlf.txt").ok();
    assert!(place.read("ours") == place.read("dcso-crlf"));
}

/// Files that open and that `verify` refuses: `add` and `merge` refuse them, too, and write nothing.
#[test]
fn damaged_files_are_not_written_again() {
    let place = place();
    place.run("build -q -o digest --format squid-digest -n 100 -p 5% five.txt").ok();
    place.run("build -q -o go --format go-bloom -n 5 -p 1% five.txt").ok();
    place.run("build -q -o hadoop --format hadoop-murmur -n 7 -p 1% five.txt").ok();
    // A reserved byte, and bits behind the last one.
    for (name, at) in [("digest", 100), ("go", 24), ("hadoop", 21)] {
        let whole = place.read(name);
        let mut damaged = whole.clone();
        damaged[at] |= 0x80;
        assert_ne!(damaged, whole);
        place.write("damaged", &damaged);
        let trouble = place.run("verify damaged").trouble();
        assert!(trouble.contains("no sound"), "{name}: {trouble}");
        for words in [
            "add -q damaged five.txt",
            &format!("merge -q -o never damaged {name}"),
            &format!("merge -q -o never {name} damaged"),
        ] {
            assert_eq!(place.run(words).trouble(), trouble, "{words}");
            assert!(place.read("damaged") == damaged, "{words}");
            assert!(!place.files.file("never").exists(), "{words}");
        }
    }
}

#[test]
fn known_members_guard_against_the_wrong_form() {
    let place = place();
    let guarded = "check -c --probe-known text.txt guava-utf16-text text.asked";
    let trouble = place.run(guarded).trouble();
    assert!(trouble.contains("of the 600 lines of text.txt are not in it"), "{trouble}");
    assert!(trouble.contains("with --as utf16 all are found"), "{trouble}");
    place.run(&guarded.replace("check", "check --as utf16")).ok();
    // A line that cannot even be a key.
    let words = "check --as int32 --probe-known longs.txt guava-long longs.asked";
    let trouble = place.run(words).trouble();
    assert!(trouble.contains("with --as int64 all are found"), "{trouble}");
    // Petal's own filters as well.
    place.run("build -q -o f text.txt").ok();
    place.run("check -c --probe-known text.txt f text.asked").ok();
    place.run("check -c --probe-known longs.txt f text.asked").trouble();
    // Nothing is added to a filter that is not the one that was meant.
    let before = place.read("guava-utf16-text");
    place.run("add --probe-known text.txt guava-utf16-text five.txt").trouble();
    assert!(place.read("guava-utf16-text") == before);
    place.write("empty", "");
    place.run("check --probe-known empty guava-long longs.asked").trouble();
}

#[test]
fn a_known_list_that_can_be_read_once_is_read_once() {
    let place = place();
    place.fifo("known", place.read("text.txt"));
    let trouble = place.run("check --probe-known known guava-utf16-text text.asked").trouble();
    assert!(trouble.contains("are not in it; its keys are of another form"), "{trouble}");
}

#[test]
fn many_words_of_a_key_take_no_more_memory() {
    let place = Place::new();
    // A filter of pybloom-live with 4,000 slices of 2 bits, all set.
    let mut file = [0.5f64.to_bits(), 4000, 2, 10, 1].map(u64::to_le_bytes).concat();
    file.resize(file.len() + 1000, 0xff);
    place.write("f", file);
    place.write("lines", (0..20_000).map(|n| format!("{n}\n")).collect::<String>());
    let ran = place.run("check -c -m 8M f lines");
    assert!(ran.peak < 26 << 20, "{} bytes", ran.peak);
    assert_eq!(ran.text(), "20000\n");
}

#[test]
fn an_unpacked_filter_is_within_the_cap() {
    let place = Place::new();
    let mut lines = String::new();
    (0..200_000).for_each(|n| lines += &format!("line {n}\n"));
    place.write("lines", &lines);
    place.run("build -q -o f.gz --format dcso --gzip -n 40000000 -p 0.01 lines").ok();
    let ran = place.run("check -c -m 64M --allow lines f.gz lines");
    assert!(ran.peak < 80 << 20, "{} bytes", ran.peak);
    assert_eq!(ran.out, b"0\n");
    place.run("check -c -m 32M f.gz lines").trouble();
}

#[test]
fn build_makes_the_same_file_as_the_program() {
    let place = place();
    for (format, words, file, keys) in [
        ("guava", "", "guava-utf8-text", "text.txt"),
        ("guava", "--as utf16", "guava-utf16-text", "text.txt"),
        ("guava", "--as int64", "guava-long", "longs.txt"),
        ("dcso", "", "dcso-text", "text.txt"),
    ] {
        place.run(&format!("build -q -o f --format {format} {words} -p 0.1 {keys}")).ok();
        assert!(place.read("f") == std::fs::read(golden(file)).unwrap(), "{file}");
        // The same in two steps.
        let text = std::fs::read_to_string(golden("keys").join(keys)).unwrap();
        let (first, rest) = text.split_at(text.match_indices('\n').nth(299).unwrap().0 + 1);
        place.write("first", first);
        place.write("rest", rest);
        place.run(&format!("build -q -o g --format {format} {words} -n 600 -p 0.1 first")).ok();
        place.run(&format!("add -q {words} --probe-known first g rest")).ok();
        assert!(place.read("g") == place.read("f"), "{file}");
    }
}

#[test]
fn a_cascade_is_never_wrong_about_either_list() {
    let place = place();
    let good: String =
        place_lines("text.asked").difference(&place_lines("text.txt")).cloned().collect();
    place.write("good.txt", &good);
    let build = "build -q -o f --format filter-cascade";
    place.run(&format!("{build} --not-in good.txt text.txt")).ok();
    assert_eq!(place.run("check -c f text.txt").text(), "600\n");
    assert_eq!(place.run("check -c f good.txt").out, b"0\n");
    place.write("both", good.lines().next().unwrap());
    for (words, expect) in [
        (format!("{build} text.txt"), "--not-in"),
        (format!("{build} -n 7 --not-in good.txt text.txt"), "leave it out"),
        (format!("{build} --not-in good.txt text.txt both"), "both members and known non-members"),
        (build.replace("filter-cascade", "guava --not-in good.txt text.txt"), "no exceptions"),
        ("add f five.txt".to_owned(), "filter-cascade"),
    ] {
        let trouble = place.run(&words).trouble();
        assert!(trouble.contains(expect), "{words}: {trouble}");
    }
}

/// The lines of a list of keys, each with its line end.
fn place_lines(name: &str) -> std::collections::BTreeSet<String> {
    let text = std::fs::read_to_string(golden("keys").join(name)).unwrap();
    text.lines().map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_packed_filter_stays_packed() {
    let place = place();
    place.run("build -q -o f.gz --format dcso --gzip -n 700 -p 0.1 text.txt").ok();
    place.run("add -q f.gz five.txt").ok();
    assert!(place.read("f.gz").starts_with(&[0x1f, 0x8b]));
    assert_eq!(place.run("check f.gz five.txt").ok(), place.read("five.txt"));
    // Only who reads such files is given one.
    place.run("build -q -o g --format guava --gzip text.txt").trouble();
}

#[test]
fn what_will_not_serve_is_warned_of() {
    let place = place();
    place.run("build -q -o d --format squid-digest -n 100 -p 0.1 five.txt").ok();
    let ran = place.run("add d text.txt");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    for part in
        ["warning: Squid takes no digest of which more than 65 %", "planned for 100 keys, and"]
    {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
    assert!(place.run("info d").text().contains("\nwarning   Squid takes no digest"));
    place.run("build -q -o e --format guava -n 100 -p 0.01 five.txt").ok();
    assert_eq!(place.run("add e five.txt").err, "");
}

#[test]
fn a_signal_leaves_no_lock_behind() {
    let place = place();
    place.run("build -q -o f --format guava -n 100 five.txt").ok();
    let mut child = place.petal("add f -").stdin(Stdio::piped()).spawn().unwrap();
    let lock = place.files.file("f.lock");
    while !lock.exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    std::thread::sleep(std::time::Duration::from_millis(200));
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(kit::wait(&mut child, 10).code(), Some(130));
    assert!(!lock.exists());
}

#[test]
fn filters_of_one_shape_are_united() {
    let place = place();
    place.run("build -q -o a --format guava -n 700 text.txt").ok();
    place.run("build -q -o b --format guava -n 700 five.txt").ok();
    place.run("merge -q -o both a b").ok();
    assert_eq!(place.run("check -c both text.txt").text(), "600\n");
    assert_eq!(place.run("check -c both five.txt").text(), "5\n");
    place.run("build -q -o c --format guava -n 800 five.txt").ok();
    for others in ["a c", "a dcso-text", "a native", "native a"] {
        place.run("build -q -o native text.txt").ok();
        place.run(&format!("merge -q -o never {others}")).trouble();
    }
    assert!(!place.files.file("never").exists());
}

#[test]
fn info_says_what_a_format_does_not_tell() {
    let place = place();
    let text = place.run("info guava-utf8-text").text();
    for part in
        ["format    guava, strategy MURMUR128_MITZ_64", "keys      about 5", "not told  the funnel"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let json: serde_json::Value =
        serde_json::from_str(&place.run("info --json dcso-text").text()).unwrap();
    assert_eq!(json["format"], "dcso");
    assert_eq!(json["planned_keys"], 600);
    assert!(json["rate_now"].as_f64().unwrap() > 0.08, "{json}");
    let sound = place.run("verify guava-long dcso-text").text();
    assert_eq!(sound.matches("sound as far as can be told").count(), 2, "{sound}");
}

/// A small packed file that unpacks to a lot is judged by its header, before it is unpacked.
#[test]
fn packed_zeros_take_no_memory() {
    let place = place();
    let guava = place.read("guava-utf8-text");
    for (name, begin) in [("zeros", &b""[..]), ("behind", &guava), ("headless", &guava[..2])] {
        let zeros = std::io::repeat(0).take(400 << 20);
        let mut packed = Vec::new();
        flate2::read::GzEncoder::new(begin.chain(zeros), flate2::Compression::fast())
            .read_to_end(&mut packed)
            .unwrap();
        place.write(name, &packed);
        assert!(packed.len() < 4 << 20);
        for words in ["info", "verify", "check", "add"] {
            let lines = if matches!(words, "check" | "add") { "five.txt" } else { "" };
            let ran = place.run(&format!("{words} {name} {lines}"));
            assert!(ran.peak < 100 << 20, "{words} {name}: {} bytes", ran.peak);
            ran.trouble();
        }
        assert!(place.read(name) == packed);
    }
}

/// Double hashing has a floor: `info` gives the rate with it, and `build` says what it will be.
#[test]
fn rates_of_strict_filters_are_told_with_their_floor() {
    let place = place();
    for (format, expect) in
        [("spark-v2", "about 0.003"), ("guava", "about 4."), ("redisbloom", "about 3.")]
    {
        let ran = place.run(&format!("build -o f --format {format} -n 1000 -p 1e-8 text.txt"));
        assert_eq!(ran.code, Some(0));
        let warning = "cannot keep it with 1,000 keys";
        assert!(ran.err.contains(warning) && ran.err.lines().count() == 1, "{}", ran.err);
        assert!(ran.err.contains(expect), "{expect}: {}", ran.err);
        let info = place.run("info f").text();
        assert!(info.contains("of that comes from the format's double hashing"), "{info}");
        let json = place.run("info --json f").text();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let [rate, floor] = ["rate_now", "rate_floor"].map(|name| json[name].as_f64().unwrap());
        assert!(rate > 1e-7 && floor > 0.9 * rate, "{json}");
    }
    for words in ["--format spark-v2 -n 600 -p 1%", "--format dcso -n 1000 -p 1e-8"] {
        let ran = place.run(&format!("build -o f {words} text.txt"));
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{words}");
        assert!(!place.run("info f").text().contains("double hashing"), "{words}");
    }
}

#[test]
fn what_is_no_filter_is_refused_with_a_way_out() {
    let place = place();
    place.write("java", b"\xac\xed\x00\x05sr");
    place.write("zst", b"\x28\xb5\x2f\xfd and so on");
    place.write("crlf", "https://example.com/\r\nb\r\n");
    let whole = place.read("guava-utf8-text");
    let packed = place.read("dcso-text.gz");
    place.write("halfgz", &packed[..packed.len() / 2]);
    place.write("cut", &whole[..whole.len() - 1]);
    for (words, expect) in [
        ("check text.txt five.txt", "not a petal file, nor a filter of another known format"),
        ("check java five.txt", "ObjectOutputStream"),
        ("check --format guava dcso-text five.txt", "no sound guava filter"),
        ("info --format dcso guava-long", "no sound dcso filter"),
        ("info --format dcso guava-long", "recognised as a filter of guava"),
        ("check --format guava native five.txt", "recognised as a filter of petal's own"),
        (
            "check --format rbloom dcso-text five.txt",
            "is recognised as a filter of dcso, not rbloom",
        ),
        ("add --format rbloom dcso-text five.txt", "is recognised as a filter of dcso, not rbloom"),
        ("verify cut", "perhaps a guava filter of 366 bytes that was cut or added to"),
        ("verify --format guava cut", "expected 366 bytes, found 365"),
        ("check halfgz five.txt", "is packed with gzip, and damaged or cut short"),
        ("check zst five.txt", "packed with zstd"),
        ("check - five.txt", "a filter cannot come through standard input"),
        ("check -m 1M dcso-text five.txt", "at least 8 MiB"),
        ("merge --fold -o never guava-long guava-long", "only petal's own"),
        ("merge -o never native guava-long", "where one of petal's own is wanted"),
        (
            "check --probe-known crlf guava-utf8-text five.txt",
            "petal takes the CR as part of a line",
        ),
        ("shrink guava-long -o never", "is a guava filter"),
        ("remove guava-long longs.txt", "is a guava filter"),
        ("check --as int64 native five.txt", "leave it out"),
        (
            "check --as utf16 dcso-text five.txt",
            "keys of a dcso filter are text or text-crlf, not utf16",
        ),
        ("build --format spark-v2 --as int32 -o never longs.txt", "there; use --as int64"),
        ("build --format spark-v1 --as uint64 -o never longs.txt", "there; use --as int64"),
        ("build --format squid-digest --as int32 -o never five.txt", "leave it out"),
        ("build --format pybloom -o never -n 5 text.txt", "never: pybloom"),
        ("check --as int64 -z guava-long five.txt", "'a\\nhello"),
        ("check --as int64 guava-long five.txt", "is no key: expected a whole number of 64 bits"),
        ("build -o never --format dcso -n 1e12 -m 64M five.txt", "raise -m"),
    ] {
        place.run("build -q -o native text.txt").ok();
        let trouble = place.run(words).trouble();
        assert!(trouble.contains(expect), "{words}: {trouble}");
    }
    assert!(!place.files.file("never").exists());
    let usage = place.run("build -o never --format guava --type static five.txt");
    assert_eq!(usage.code, Some(2));
}

/// The digest that a running Squid gives to its siblings: fetched over HTTP, and asked.
#[test]
#[ignore = "cargo x test --foreign"]
fn a_digest_fetched_from_a_running_squid_is_asked() {
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
    drop(squid.stdin.take()); // It ends with its input.
    squid.wait().unwrap();
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
    let head = String::from_utf8_lossy(&answer[..end]);
    assert!(head.contains("200") && head.contains("application/cache-digest"), "{head}");

    let place = Place::new();
    place.write("digest", &answer[end + 4..]);
    for name in ["urls.txt", "urls.asked"] {
        place.write(name, std::fs::read(golden("keys").join(name)).unwrap());
    }
    let members = place.read("urls.txt");
    let check = "check --format squid-digest";
    assert!(place.run(&format!("{check} digest urls.txt")).ok() == members);
    place.run(&format!("{check} -c --probe-known urls.txt digest urls.asked")).ok();
    let info = place.run("info digest").text();
    assert!(info.starts_with("format    squid-digest, bits per entry 5\n"), "{info}");
    println!("a running Squid's digest of {} bytes: all members found", answer.len() - end - 4);
}
