//! Outputs that are compressed: by the extension of their name, or as `--compress` says.

use std::io::Read as _;
use std::process::Stdio;
use std::time::Duration;

use petal_testkit::model;
use petal_testkit::rng::Rng;

use crate::common::{self, STRATEGIES, TestDir, overlapping, write_lines};

const EXTENSIONS: [(&str, &str); 3] = [("gz", "gzip"), ("zst", "zstd"), ("lz4", "lz4")];

/// Decompresses with the decoder of the format, which fails unless the data is whole.
#[track_caller]
pub(super) fn decoded(extension: &str, bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    let mut decoder: Box<dyn std::io::Read + '_> = match extension {
        "gz" => Box::new(flate2::read::MultiGzDecoder::new(bytes)),
        "zst" => Box::new(zstd::Decoder::new(bytes).unwrap()),
        _ => Box::new(lz4_flex::frame::FrameDecoder::new(bytes)),
    };
    decoder.read_to_end(&mut text).unwrap();
    assert!(!bytes.is_empty());
    text
}

fn dir(lines: u64) -> TestDir {
    let dir = TestDir::new();
    let [a, b] = overlapping(lines, 50, 7);
    write_lines(&dir.files.file("a"), a);
    write_lines(&dir.files.file("b"), b);
    dir
}

#[test]
fn compressed_output_has_the_same_lines() {
    let dir = dir(20_000);
    dir.write("empty", "");
    dir.run("build -q --type counting -n 30000 -o filter b").ok();
    let mut commands: Vec<_> = STRATEGIES
        .iter()
        .flat_map(|strategy| {
            ["common", "diff", "symdiff", "dedup"].map(|c| format!("{c} {strategy} -m 24M a b"))
        })
        .collect();
    for command in [
        "dedup -d a b",
        "dedup -u a b",
        "count a b",
        "check filter a",
        "check -v filter a",
        "dedup empty",
        "diff empty a",
        "count --top 3 a",
    ] {
        commands.push(command.to_owned());
    }
    for (at, command) in commands.iter().enumerate() {
        let plain = dir.run(command).ok();
        let (extension, format) = EXTENSIONS[at % 3];
        let out = format!("out.{extension}");
        assert!(dir.run(&format!("{command} -o {out}")).ok().is_empty());
        assert!(decoded(extension, &dir.read(&out)) == plain, "{command} -o {out}");
        let packed = dir.run(&format!("{command} --compress {format}:1").replace("lz4:1", "lz4"));
        assert!(decoded(extension, &packed.ok()) == plain, "{command} --compress {format}");
        // What petal writes, it reads.
        if !plain.is_empty() {
            let again = dir.run(&format!("dedup {out}")).ok();
            assert!(again == model::dedup(&[&plain], b'\n'), "{command}");
        }
        let none = format!("{command} --compress none -o");
        dir.run(&format!("{none} {out}")).ok();
        assert!(dir.read(&out) == plain, "{none}");
    }
}

#[test]
fn each_output_is_compressed_as_its_own_name_says() {
    let dir = dir(5_000);
    dir.run("dedup a b a -o kept --dupes-output rest").ok();
    let (kept, rest) = (dir.read("kept"), dir.read("rest"));
    dir.run("dedup a b a -o kept.GZ --dupes-output rest.zst").ok();
    assert!(decoded("gz", &dir.read("kept.GZ")) == kept);
    assert!(decoded("zst", &dir.read("rest.zst")) == rest);
    let out = dir.run("dedup a b a --compress lz4 --dupes-output rest.lz4").ok();
    assert!(decoded("lz4", &out) == kept && decoded("lz4", &dir.read("rest.lz4")) == rest);
    assert_eq!(dir.run("dedup -c a b a --dupes-output rest.gz").text().lines().count(), 1);
    assert!(decoded("gz", &dir.read("rest.gz")) == rest);
    dir.run("build -q --type counting -n 9000 -o filter a").ok();
    dir.run("remove filter b --missing missing").ok();
    dir.run("build -q --type counting -n 9000 -o filter a").ok();
    dir.run("remove filter b --missing missing.gz").ok();
    assert!(decoded("gz", &dir.read("missing.gz")) == dir.read("missing"));
    assert!(!dir.read("missing").is_empty());
}

#[test]
fn outputs_that_cannot_be_compressed_are_errors_of_one_line() {
    let dir = TestDir::new();
    dir.write("a", "x\ny\nx\n");
    dir.run("build -o f a").ok();
    for (args, message) in [
        ("dedup a -o o.xz", "o.xz: outputs are not compressed as .xz; name it .gz, .zst or .lz4"),
        ("dedup a -o o.tgz", "o.tgz: outputs are not compressed as .tgz"),
        ("dedup a -o o --dupes-output o.bz2", "o.bz2: outputs are not compressed as .bz2"),
        ("dedup a -o o.xz --compress gzip", "o.xz: outputs are not compressed as .xz"),
        (
            "dedup a -o o.gz --compress zstd",
            "o.gz: its name is one of gzip, but --compress says zstd",
        ),
        (
            "dedup a --compress xz",
            "--compress: 'xz' is not a format; write gzip, zstd, lz4 or none",
        ),
        ("dedup a --compress zstd:40", "'40' is not a level of zstd; write a number from 1 to 19"),
        ("dedup a -c --compress gzip", "--compress: no lines are written with -c"),
        ("check f a -c --compress gzip", "--compress: no lines are written with -c"),
        ("remove f a --compress gzip", "--compress: no lines are written with -c"),
        (
            "dedup a -m 8M -o o.gz",
            "-m: 8 MiB is too little, at least 8.5 MiB is needed to compress",
        ),
        ("dedup a -m 64M --compress zstd:19", "is needed to compress the output; raise -m"),
        ("seen -n 9 s a --compress gzip", "'--compress' is an option of petal common"),
        (
            "dedup a --compress gzip -o /dev/full",
            "/dev/full: cannot write: no space left on device",
        ),
        (
            "count a --compress zstd -o /dev/full",
            "/dev/full: cannot write: no space left on device",
        ),
        ("diff a f --text --compress lz4 -o /dev/full", "/dev/full: cannot write: no space left"),
    ] {
        let line = dir.run(args).failure();
        assert!(line.contains(message), "{args}: {line}");
        assert!(!dir.files.names().iter().any(|name| name.starts_with('o')), "{args}");
    }
    // A reader that needs no more is not an error.
    let out = dir.sh("\"$petal\" dedup a --compress gzip | true; exit ${PIPESTATUS[0]}");
    assert_eq!((out.code, out.err.as_str()), (Some(0), ""));
}

#[test]
fn failed_job_leaves_no_compressed_file_and_no_whole_stream() {
    let dir = dir(20_000);
    let cut = common::pack::gz(&dir.read("b"));
    dir.write("cut.gz", &cut[..cut.len() / 2]);
    for (extension, format) in EXTENSIONS {
        let out = format!("out.{extension}");
        dir.write(&out, "old");
        assert_eq!(dir.run(&format!("dedup a cut.gz -o {out}")).code, Some(2));
        assert_eq!(dir.read(&out), b"old");
        let failed = dir.run(&format!("dedup a cut.gz --compress {format}"));
        assert_eq!(failed.code, Some(2));
        let mut text = Vec::new();
        let whole = match extension {
            _ if failed.out.is_empty() => Err(std::io::ErrorKind::UnexpectedEof.into()),
            "gz" => flate2::read::GzDecoder::new(&failed.out[..]).read_to_end(&mut text),
            "zst" => zstd::Decoder::new(&failed.out[..]).unwrap().read_to_end(&mut text),
            _ => lz4_flex::frame::FrameDecoder::new(&failed.out[..]).read_to_end(&mut text),
        };
        assert!(whole.is_err(), "{format}");
        // A signal while lines are written.
        for signal in ["TERM", "KILL"] {
            let mut child = dir.petal(&format!("dedup a - -o {out}"));
            let mut child = child.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
            std::thread::sleep(Duration::from_millis(50));
            let id = child.id().to_string();
            assert!(
                std::process::Command::new("kill")
                    .args(["-s", signal, &id])
                    .status()
                    .unwrap()
                    .success()
            );
            common::wait(&mut child, 60);
            assert_eq!(dir.read(&out), b"old", "{signal}");
            dir.assert_no_temp_files();
        }
    }
}

#[test]
fn killed_job_with_a_compressed_output_resumes() {
    let dir = dir(200_000);
    let mut rng = Rng::new(11);
    for (at, command) in
        ["diff --strategy partition a b", "dedup --strategy narrow a b a"].iter().enumerate()
    {
        let expected = dir.run(command).ok();
        let (extension, _) = EXTENSIONS[at];
        let args = format!("{command} -q -m 16M -o out.{extension} --work-dir work");
        for tries in 0.. {
            let resume = if tries > 0 { "--resume" } else { "" };
            let mut child = dir.petal(&format!("{args} {resume}")).spawn().unwrap();
            if tries < 4 {
                std::thread::sleep(Duration::from_millis(rng.below(400) as u64));
                // Fails if the job has ended; then its exit code is checked below.
                let _ = child.kill();
            }
            if let Some(code) = child.wait().unwrap().code() {
                assert_eq!(code, 0, "{args}");
                break;
            }
        }
        assert!(decoded(extension, &dir.read(&format!("out.{extension}"))) == expected);
        dir.assert_no_temp_files();
    }
}
