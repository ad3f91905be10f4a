//! The exact errors of failing commands, compared with `wording.txt`.
//!
//! After a deliberate change of a message, `PETAL_UPDATE_WORDING=1 cargo test -p petal-cli --test
//! wording` writes the file again; review its diff.

#![allow(clippy::unwrap_used, reason = "the helpers of a test may panic as the test may")]

mod common;

use std::path::Path;

use common::TestDir;

/// A directory with the files that the commands of `wording.txt` use.
fn dir() -> TestDir {
    let dir = TestDir::new();
    dir.write("a", "x\ny\n");
    dir.write("b", "y\n");
    dir.write("empty", "");
    dir.write("png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    dir.write("utf16", b"\xff\xfex\0\n\0");
    dir.write("cut.gz", &common::pack::gz(&b"x\n".repeat(1000))[..20]);
    let packed = common::pack::gz(b"x\n");
    dir.write("trail.gz", [&packed[..], b"x\n"].concat());
    dir.write("twice.gz", common::pack::gz(&packed));
    dir.write("old.json", "{\"strategy\": \"memory\"}");
    dir.write("new.json", "{\"version\": 3}");
    dir.write("long", vec![b'x'; (2 << 20) + 1]);
    dir.write("many", (0..2000).map(|n| format!("{n}\n")).collect::<String>());
    dir.write("pages.parquet", b"PAR1\x15\x04\x15\0PAR1");
    dir.write("a.csv", "id,url,lang\n1,x,en\n");
    dir.write("prices", "1,5;2,5\n1,7;3,5\n");
    dir.write("short.csv", "url,x\na,b\nc\n");
    dir.write("open.csv", "url\na\n\"b\nc\n");
    dir.write("long.csv", [b"url\n\"", &vec![b'x'; (2 << 20) + 1][..]].concat());
    dir.write("a.jsonl", "{\"a\":1}\n{\"a\":1,}\n");
    std::fs::create_dir(dir.files.file("work")).unwrap();
    dir.write("work/mine", "");
    for args in [
        "-n 1000 -o f",
        "-n 100000 -o large",
        "-n 1000 --type classic -o classic",
        "-n 1000 --type counting -o counting",
        "-n 1000 --type quotient -o quotient",
        "--type static -o static",
        "-n 1000 --seed 5 -o seeded",
        "-n 1000 --key-transform trim,lowercase -o changed",
        "--format guava -n 1000 -o guava",
    ] {
        dir.run(&format!("build -q {args} a")).ok();
    }
    dir.write("hashes", "0A1B2C3D".repeat(5) + "\n");
    dir.run("build -q -n 5 -o known hashes").ok();
    dir.run("seen -n 5 seen a").ok();
    dir.run("seen -n 5 --exact exact a").ok();
    dir.run("seen -n 5 --exact gone a").ok();
    std::fs::remove_file(dir.files.file("gone.exact")).unwrap();
    let whole = dir.read("f");
    dir.write("cut", &whole[..whole.len() - 1]);
    let mut flipped = whole;
    *flipped.last_mut().unwrap() ^= 1;
    dir.write("flipped", flipped);
    dir
}

#[test]
fn errors_have_the_expected_wording() {
    let dir = dir();
    let expected = include_str!("wording.txt");
    let mut found = String::new();
    let mut commands = 0;
    for line in expected.lines() {
        if line.is_empty() || line.starts_with('#') {
            found.push_str(&format!("{line}\n"));
            continue;
        }
        let Some(args) = line.strip_prefix("$ petal ") else { continue };
        commands += 1;
        let output = dir.run_with(args, b"x\n");
        assert_eq!(output.code, Some(2), "{args}: {}", output.err);
        found.push_str(&format!("{line}\n{}", output.err));
    }
    if std::env::var_os("PETAL_UPDATE_WORDING").is_some() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wording.txt");
        return std::fs::write(path, &found).unwrap();
    }
    assert!(commands > 50, "{commands}");
    if let Some((number, (is, should))) =
        found.lines().zip(expected.lines()).enumerate().find(|(_, (is, should))| is != should)
    {
        panic!("wording.txt:{}:\nexpected: {should}\n   found: {is}", number + 1);
    }
    assert_eq!(found, expected);
}
