//! Inputs and outputs in object stores: real servers, Ceph's Object Gateway here and emulators of Azure and Google in
//! `clouds`, and a proxy that fails.

#![cfg(feature = "object-store")]
#![allow(clippy::unwrap_used, reason = "a failed helper should fail the test")]

mod clouds;
#[path = "../common/mod.rs"]
mod common;
mod emulators;
mod proxy;
mod server;

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use common::{EXACT_COMMANDS, MEMORY_OVERHEAD, RunOutput, TestDir, expected, run_with_input};
use petal_testkit::rng::Rng;
use proxy::{Fault, Proxy};
use server::{SECRET, Server, free_port};

/// Returns `count` lines, many of them twice.
fn lines(seed: u64, count: usize) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let mut text = String::new();
    for _ in 0..count {
        text +=
            &format!("https://example.org/{:016x}\n", rng.below(count).wrapping_mul(0x9e37_79b9));
    }
    text.into_bytes()
}

/// Returns the program with arguments separated by spaces, and the server at this address.
fn petal(dir: &TestDir, endpoint: &str, args: &str) -> Command {
    let mut command = dir.petal(args);
    Server::get().set_env(&mut command, endpoint);
    command
}

fn direct() -> String {
    format!("http://127.0.0.1:{}", Server::get().port)
}

fn run(dir: &TestDir, endpoint: &str, args: &str) -> RunOutput {
    let output = run_with_input(petal(dir, endpoint, args), b"");
    dir.assert_no_temp_files();
    assert_no_secret(&output);
    output
}

/// Fails if a message has a secret or the access key.
fn assert_no_secret(output: &RunOutput) {
    let text = output.err.replace("AWS_SECRET_ACCESS_KEY", "");
    assert!(!text.contains("SECRET") && !text.contains("PETALKEY"), "{text}");
}

#[test]
#[ignore = "needs Ceph in PETAL_PEERS"]
fn objects_are_read_like_files() {
    let (server, dir) = (Server::get(), TestDir::new());
    let (a, b) = (lines(1, 60_000), lines(2, 60_000));
    server.put("a", &a);
    server.put("folder/b", &b);
    server.put("b.zst", &zstd::encode_all(&b[..], 1).unwrap());
    server.put("empty", b"");
    dir.write("b", &b);
    for command in EXACT_COMMANDS {
        for other in ["s3://lines/folder/b", "s3://lines/b.zst", "b"] {
            for memory in ["32M", "1G"] {
                let mut petal = petal(&dir, &direct(), &format!("{command} -m {memory}"));
                petal.args(["s3://lines/a", other]);
                let found = run_with_input(petal, b"").ok();
                let files: [&[u8]; 2] = [&a, &b];
                assert!(found == expected(command, &files, b'\n'), "{command} {other} {memory}");
            }
        }
    }
    assert!(run(&dir, &direct(), "dedup s3://lines/empty").ok().is_empty());
    let error = run(&dir, &direct(), "dedup -m 31M s3://lines/a").failure();
    assert!(error.contains("-m: 31 MiB is too little, at least 32 MiB is needed"), "{error}");
}

#[test]
#[ignore = "needs Ceph in PETAL_PEERS"]
fn filters_are_built_from_objects_into_objects() {
    let (server, dir) = (Server::get(), TestDir::new());
    server.put("members", &lines(3, 1000));
    run(&dir, &direct(), "build s3://lines/members -o s3://lines/members.petal").ok();
    dir.write("members.petal", server.object("members.petal").unwrap());
    let count = run(&dir, &direct(), "check -c members.petal s3://lines/members").text();
    assert_eq!(count, "1000\n");
}

#[test]
#[ignore = "needs Ceph in PETAL_PEERS"]
fn filters_in_a_store_are_asked_in_parts() {
    let (server, dir) = (Server::get(), TestDir::new());
    let (members, others) = (lines(7, 200_000), lines(8, 3000));
    dir.write("members", &members);
    dir.write("others", &others);
    let unlisted = String::from_utf8(lines(9, 100_000)).unwrap().replace("https", "ftp");
    dir.write("unlisted", unlisted);
    let one = members.split_inclusive(|byte| *byte == b'\n').next().unwrap();
    for args in ["", "--type classic", "--type static", "--not-in unlisted"] {
        dir.run(&format!("build -p 1% {args} -o known.petal members")).ok();
        let filter = dir.read("known.petal");
        server.put("known.petal", &filter);
        for verb in ["check -v", "check -c -j 1", "check --assert-members members"] {
            let expected = dir.run(&format!("{verb} known.petal others")).ok();
            let found = run(&dir, &direct(), &format!("{verb} s3://lines/known.petal others")).ok();
            assert!(found == expected, "{args} {verb}");
        }
        // A line takes a few small requests.
        let proxy = Proxy::new(server.port, |_, _| Fault::None);
        dir.write("one", one);
        let found = run(&dir, &proxy.endpoint(), "check s3://lines/known.petal one").ok();
        assert!(found == one, "{args}");
        let requests = proxy.count("GET");
        assert!(requests <= 9, "{args}: {requests} requests");
        // A new version of the file is noticed.
        let proxy = Proxy::new(server.port, move |number, _| {
            if number == 1 {
                Server::get().put("known.petal", &[&filter[..], b" "].concat());
            }
            Fault::None
        });
        let error = run(&dir, &proxy.endpoint(), "check s3://lines/known.petal others").failure();
        assert!(error.contains("s3://lines/known.petal: "), "{error}");
    }
    dir.run("build --type static-fuse -o known.petal members").ok();
    server.put("known.petal", &dir.read("known.petal"));
    let error = run(&dir, &direct(), "check s3://lines/known.petal others").failure();
    assert!(error.contains("is not queried in parts"), "{error}");
    server.put("known.petal", b"no filter");
    let error = run(&dir, &direct(), "check s3://lines/known.petal others").failure();
    assert!(error.contains("s3://lines/known.petal: "), "{error}");
}

#[cfg(feature = "parquet")]
#[test]
#[ignore = "needs Ceph in PETAL_PEERS"]
fn rows_are_written_to_objects_but_not_read_from_them() {
    let (server, dir) = (Server::get(), TestDir::new());
    let table = petal_testkit::pages::root().join("testdata/tables/a.parquet");
    let table = std::fs::read(table).unwrap();
    dir.write("a.parquet", &table);
    server.put("a.parquet", &table);
    let error = run(&dir, &direct(), "dedup --column url s3://lines/a.parquet").failure();
    let expected = "s3://lines/a.parquet: is a Parquet file, expected lines; save it to a file";
    assert!(error.contains(expected), "{error}");
    run(&dir, &direct(), "dedup --column url a.parquet -o s3://lines/rows.parquet").ok();
    run(&dir, &direct(), "dedup --column url a.parquet -o rows.parquet").ok();
    assert!(server.object("rows.parquet").unwrap() == dir.read("rows.parquet"));
}

#[test]
#[ignore = "needs Ceph in PETAL_PEERS"]
fn blocks_are_requested_ahead_with_a_version() {
    let (server, dir) = (Server::get(), TestDir::new());
    let a = lines(4, 200_000);
    server.put("ahead", &a);
    let heads = Arc::new(Mutex::new(Vec::new()));
    let (active, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (log, most_seen) = (Arc::clone(&heads), Arc::clone(&most));
    let proxy = Proxy::new(server.port, move |_, head| {
        log.lock().unwrap().push(head.to_lowercase());
        most_seen.fetch_max(active.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(100));
        active.fetch_sub(1, Ordering::Relaxed);
        Fault::None
    });
    let found = run(&dir, &proxy.endpoint(), "dedup -m 64M s3://lines/ahead").ok();
    assert!(found == expected("dedup", &[&a], b'\n'));
    let heads = heads.lock().unwrap();
    assert!(heads.len() > a.len() / (512 << 10), "{} requests", heads.len());
    assert!(most.load(Ordering::Relaxed) >= 3, "{most:?} requests at the same time");
    let versions = heads.iter().filter(|head| head.contains("if-match: \"")).count();
    assert_eq!(versions, heads.len() - 1, "all but the first demand the version");
    assert!(heads.iter().all(|head| head.contains("range: bytes=")));
}

#[test]
#[ignore = "needs Ceph in PETAL_PEERS"]
fn outputs_appear_complete() {
    let (server, dir) = (Server::get(), TestDir::new());
    // More than one part of 5 MiB, fewer than one, and none.
    for (name, count) in [("parts", 400_000), ("part", 1000), ("none", 0)] {
        let a = lines(5, count);
        dir.write(name, &a);
        let args = format!("dedup -m 32M {name} -o s3://lines/out-{name}");
        run(&dir, &direct(), &args).ok();
        let found = server.object(&format!("out-{name}")).unwrap();
        assert!(found == expected("dedup", &[&a], b'\n'), "{name}");
        assert!(!server.is_uploading(&format!("out-{name}")));
    }
    let error = run(&dir, &direct(), "dedup -m 16M part -o s3://lines/out-part").failure();
    assert!(error.contains("-m: 16 MiB is too little, at least 31 MiB"), "{error}");
    let error = run(&dir, &direct(), "dedup s3://lines/out-part -o s3://lines/out-part").failure();
    assert!(error.contains("s3://lines/out-part: is the same object as an input"), "{error}");
    let error = run(&dir, &direct(), "dedup part -o https://127.0.0.1/x?SECRET").failure();
    assert!(error.contains("https://127.0.0.1/x?***: cannot write"), "{error}");
}

/// Waits until something is true.
fn wait_for(what: impl Fn() -> bool) {
    let start = Instant::now();
    while !what() {
        assert!(start.elapsed() < Duration::from_secs(60), "waited in vain");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
#[ignore = "needs Ceph in PETAL_PEERS"]
fn interrupted_output_leaves_the_old_object_and_no_upload() {
    let (server, dir) = (Server::get(), TestDir::new());
    server.put("kept", b"old\n");
    let mut command = petal(&dir, &direct(), "dedup -m 32M - -o s3://lines/kept");
    command.stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(&lines(6, 400_000)).unwrap();
    wait_for(|| server.is_uploading("kept"));
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!server.is_uploading("kept"));
    assert_eq!(server.object("kept").unwrap(), b"old\n");
    drop(input);
    // An error of the job.
    dir.write("bad", [b"x".repeat(9 << 20), b"\n".to_vec()].concat());
    let error = run(&dir, &direct(), "dedup -m 32M bad -o s3://lines/kept").failure();
    assert!(error.contains("is longer than"), "{error}");
    assert!(!server.is_uploading("kept"));
    assert_eq!(server.object("kept").unwrap(), b"old\n");
}

#[test]
#[ignore = "needs Ceph in PETAL_PEERS"]
fn object_that_changes_is_an_error() {
    let dir = TestDir::new();
    for (name, at) in [("changes-early", 1), ("changes-late", 6)] {
        Server::get().put(name, &lines(7, 100_000));
        let proxy = Proxy::new(Server::get().port, move |number, _| {
            if number == at {
                Server::get().put(name, &lines(8, 100_000));
            }
            Fault::None
        });
        let args = format!("dedup -m 32M s3://lines/{name}");
        let error = run_with_input(petal(&dir, &proxy.endpoint(), &args), b"");
        assert_eq!(error.code, Some(2), "{name}: {}", error.err);
        let change = "changed while it was being read: its ETag is not what it was";
        assert!(error.err.contains(&format!("s3://lines/{name}: {change}")), "{}", error.err);
    }
}

#[test]
#[ignore = "needs Ceph in PETAL_PEERS"]
fn failures_of_network_and_server_are_repeated() {
    let (server, dir) = (Server::get(), TestDir::new());
    let a = lines(9, 200_000);
    server.put("flaky", &a);
    // Completing an upload a second time is an error, so the answers to POST arrive.
    let proxy = Proxy::new(server.port, |number, head| {
        match (number.wrapping_mul(0x9e37_79b1) >> 12) & 7 {
            _ if head.starts_with("POST") => Fault::None,
            1 => Fault::Status(503),
            2 => Fault::Cut(20_000),
            3 => Fault::Cut(0),
            _ => Fault::None,
        }
    });
    let args = "dedup -m 64M s3://lines/flaky -o s3://lines/flaky-out";
    run(&dir, &proxy.endpoint(), args).ok();
    assert!(server.object("flaky-out").unwrap() == expected("dedup", &[&a], b'\n'));
    assert!(!server.is_uploading("flaky-out"));
    assert!(proxy.count("GET") > 8 && proxy.count("PUT") > 0);
}

#[test]
#[ignore = "needs Ceph in PETAL_PEERS"]
fn errors_name_address_status_and_remedy() {
    let (server, dir) = (Server::get(), TestDir::new());
    server.put("there", b"a\n");
    dir.write("a", "a\n");
    let fails = |endpoint: &str, args: &str, key: &str| {
        let mut command = petal(&dir, endpoint, args);
        command.env("AWS_SECRET_ACCESS_KEY", key).env("AWS_MAX_ATTEMPTS", "2");
        let output = run_with_input(command, b"");
        assert_no_secret(&output);
        output.failure()
    };
    let slow = Proxy::new(server.port, |_, _| Fault::Status(503)).endpoint();
    let closed = format!("http://127.0.0.1:{}", free_port());
    let cases = [
        (direct(), "s3://lines/missing", SECRET, "status 404 (NoSuchKey); check bucket and key"),
        (
            direct(),
            "s3://nowhere/a",
            SECRET,
            "status 404 (NoSuchBucket); check the name of the bucket",
        ),
        (
            direct(),
            "s3://lines/there",
            "OTHERSECRET",
            "status 403 (SignatureDoesNotMatch); check AWS_",
        ),
        (slow, "s3://lines/there", SECRET, "status 503; the server failed repeatedly"),
        (closed, "s3://lines/there", SECRET, "connection refused; check the address"),
        (direct(), "s3://lines", SECRET, "expected the address of an object: BUCKET/KEY"),
        (direct(), "s3://lines/folder/", SECRET, "expected the address of an object: BUCKET/KEY"),
        (direct(), "s3://PETALKEY:SECRET@lines/there", SECRET, "has credentials in the address"),
    ];
    for (endpoint, address, key, text) in cases {
        let shown = if address.contains('@') { "s3://***@lines/there" } else { address };
        let error = fails(&endpoint, &format!("dedup {address}"), key);
        assert!(error.contains(&format!("petal: {shown}: cannot read: {text}")), "{error}");
        // A new object needs no old one.
        if !text.contains("NoSuchKey") {
            let error = fails(&endpoint, &format!("dedup a -o {address}"), key);
            assert!(error.contains(&format!("petal: {shown}: cannot write: {text}")), "{error}");
        }
    }
}

#[test]
#[ignore = "needs Ceph in PETAL_PEERS"]
fn certificates_are_checked() {
    let (server, dir) = (Server::get(), TestDir::new());
    let a = lines(10, 20_000);
    server.put("tls", &a);
    let endpoint = format!("https://127.0.0.1:{}", server.tls_port);
    let mut command = petal(&dir, &endpoint, "dedup s3://lines/tls");
    command.env("AWS_MAX_ATTEMPTS", "1");
    let error = run_with_input(command, b"").failure();
    assert!(error.contains("its certificate is not trusted"), "{error}");
    let mut command = petal(&dir, &endpoint, "dedup s3://lines/tls");
    command.env("SSL_CERT_FILE", server.certificate());
    assert!(run_with_input(command, b"").ok() == expected("dedup", &[&a], b'\n'));
}

#[test]
#[ignore = "needs Ceph in PETAL_PEERS"]
fn addresses_of_the_web_are_read_and_masked() {
    let (server, dir) = (Server::get(), TestDir::new());
    let (a, b) = (lines(11, 50_000), lines(12, 50_000));
    server.put_public("public", &a);
    server.put("private", &a);
    dir.write("served", &b);
    // Python's server knows no ranges.
    let port = free_port();
    let mut python = Command::new("python3");
    python.args(["-m", "http.server", "--bind", "127.0.0.1", &port.to_string()]);
    python.current_dir(dir.files.path()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut python = python.spawn().unwrap();
    wait_for(|| std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    let args = format!("common {}/lines/public http://127.0.0.1:{port}/served", direct());
    let found = run(&dir, &direct(), &args);
    python.kill().unwrap();
    python.wait().unwrap();
    assert!(found.ok() == expected("common", &[&a, &b], b'\n'));
    let address = format!("127.0.0.1:{}/lines/private", server.port);
    for (secret, shown) in [
        (format!("http://{address}?X-Amz-Signature=SECRET"), format!("http://{address}?***")),
        (format!("http://user:SECRET@{address}"), format!("http://***@{address}")),
    ] {
        let error = run(&dir, &direct(), &format!("dedup {secret}")).failure();
        assert!(error.contains(&format!("{shown}: cannot read: status 40")), "{error}");
    }
}

#[test]
#[ignore = "needs Ceph in PETAL_PEERS"]
fn memory_stays_below_the_limit() {
    let (server, dir) = (Server::get(), TestDir::new());
    let a = lines(13, 1_000_000);
    server.put("large", &a);
    for memory in [32u64, 64, 256] {
        let args = format!("dedup -m {memory}M s3://lines/large -o found");
        let output = run(&dir, &direct(), &args);
        let most = (memory << 20) + MEMORY_OVERHEAD;
        assert!(output.peak <= most, "{} MiB with -m {memory}M", output.peak >> 20);
        output.ok();
    }
    assert!(dir.read("found") == expected("dedup", &[&a], b'\n'));
}
