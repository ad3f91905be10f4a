//! `check` of a filter on a web server that answers wrongly: one line, after a bounded time, in bounded memory.

#![cfg(feature = "object-store")]
#![allow(clippy::unwrap_used, reason = "the helpers of a test may panic as the test may")]

mod common;

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{RunOutput, TestDir, run_with_input};

/// How a server answers the requests after the first one, or all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answers {
    Right,
    /// The whole file, whatever is asked for.
    Whole,
    /// Other bytes than those that were asked for.
    OtherRange,
    /// Half of the bytes, then nothing.
    Half,
    /// A byte more than was asked for, in the length and in the body.
    Longer,
    /// A body that never ends.
    Endless,
    /// Another version with each request.
    OtherVersions,
    /// A version with the first request only.
    NoVersion,
    /// Compressed bytes, although they must be `identity`.
    Compressed,
    /// A file that is said to be longer.
    OtherLength,
}

/// Serves a file, and returns its address.
fn serve(file: Vec<u8>, answers: Answers) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/known.petal", listener.local_addr().unwrap());
    let requests = Arc::new(AtomicUsize::new(0));
    let (file, counted) = (Arc::new(file), Arc::clone(&requests));
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (file, counted) = (Arc::clone(&file), Arc::clone(&counted));
            // The client may close the connection at any time.
            std::thread::spawn(move || {
                let _ = answer(&client.unwrap(), &file, answers, &counted);
            });
        }
    });
    (address, requests)
}

fn answer(
    mut client: &TcpStream,
    file: &[u8],
    answers: Answers,
    requests: &AtomicUsize,
) -> std::io::Result<()> {
    let mut head = String::new();
    for line in BufReader::new(client).lines() {
        match line?.to_lowercase() {
            line if line.is_empty() => break,
            line => head += &(line + "\n"),
        }
    }
    let number = requests.fetch_add(1, Ordering::SeqCst);
    let range = head.split_once("range: bytes=").and_then(|(_, range)| range.lines().next());
    let Some((start, end)) = range.and_then(|range| range.split_once('-')) else {
        let length = file.len();
        write!(client, "HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: {length}\r\n\r\n")?;
        return if head.starts_with("head") { Ok(()) } else { client.write_all(file) };
    };
    let start: usize = start.parse().unwrap();
    let end = end.parse().map_or(file.len(), |end: usize| end + 1).min(file.len());
    let answers =
        if number == 0 && answers != Answers::Compressed { Answers::Right } else { answers };
    let mut etag = "ETag: \"1\"\r\n".to_owned();
    let (mut from, mut length, mut total) = (start, end - start, file.len());
    match answers {
        Answers::Whole => {
            write!(client, "HTTP/1.1 200 OK\r\n{etag}Content-Length: {total}\r\n\r\n")?;
            return client.write_all(file);
        }
        Answers::OtherRange => from = start.saturating_sub(1),
        Answers::Longer => length += 1,
        Answers::OtherVersions => etag = format!("ETag: \"{number}\"\r\n"),
        Answers::NoVersion => etag.clear(),
        Answers::Compressed => {
            assert!(head.contains("accept-encoding: identity\n"), "{head}");
            etag += "Content-Encoding: gzip\r\n";
        }
        Answers::OtherLength => total += 64,
        Answers::Endless => {
            write!(client, "HTTP/1.1 206 Partial Content\r\n{etag}Transfer-Encoding: chunked\r\n")?;
            write!(client, "Content-Range: bytes {start}-{}/{total}\r\n\r\n", end - 1)?;
            loop {
                client.write_all(b"400\r\n")?;
                client.write_all(&[7; 0x400])?;
                client.write_all(b"\r\n")?;
            }
        }
        Answers::Right | Answers::Half => {}
    }
    let last = from + length - 1;
    write!(client, "HTTP/1.1 206 Partial Content\r\n{etag}Content-Length: {length}\r\n")?;
    write!(client, "Connection: close\r\nContent-Range: bytes {from}-{last}/{total}\r\n\r\n")?;
    let mut body = file[from.min(file.len())..(last + 1).min(file.len())].to_vec();
    body.resize(length, 0);
    if answers == Answers::Compressed {
        body.fill(0x1f);
    }
    body.truncate(if answers == Answers::Half { length / 2 } else { length });
    client.write_all(&body)
}

fn check(dir: &TestDir, address: &str) -> RunOutput {
    let mut command = dir.petal(&format!("check -m 64M {address} some"));
    command.env("AWS_MAX_ATTEMPTS", "1");
    run_with_input(command, b"")
}

#[test]
fn wrong_answers_are_one_line() {
    use Answers::*;
    let dir = TestDir::new();
    let lines =
        |range: std::ops::Range<u32>| -> String { range.map(|n| format!("{n:040X}\n")).collect() };
    dir.write("members", lines(0..300_000));
    dir.write("some", lines(299_000..301_000));
    for filter in ["--type static -p 1e-6", "--type classic -p 1e-6"] {
        dir.run(&format!("build {filter} -o known.petal members")).ok();
        let (address, _) = serve(dir.read("known.petal"), Right);
        assert_eq!(check(&dir, &address).text(), lines(299_000..300_000), "{filter}");
        for wrong in [
            Whole,
            OtherRange,
            Half,
            Longer,
            Endless,
            OtherVersions,
            NoVersion,
            Compressed,
            OtherLength,
        ] {
            let (address, requests) = serve(dir.read("known.petal"), wrong);
            let run = check(&dir, &address);
            assert_eq!(run.code, Some(2), "{wrong:?}: {} {}", run.out.len(), run.err);
            assert_eq!(run.err.lines().count(), 1, "{wrong:?}: {}", run.err);
            assert!(run.err.starts_with(&format!("petal: {address}: ")), "{wrong:?}: {}", run.err);
            let (peak, requests) = (run.peak >> 20, requests.load(Ordering::SeqCst));
            assert!(peak < 80 && requests < 3000, "{wrong:?}: {peak} MiB, {requests} requests");
            let advice = ["download it first", "run again", "try again", "not a petal file"];
            let has_advice = advice.iter().any(|advice| run.err.contains(advice));
            assert!(has_advice, "{wrong:?}: {}", run.err);
        }
    }
}

#[test]
fn addresses_are_masked_wherever_filters_are_named() {
    let dir = TestDir::new();
    dir.write("members", "0A\nword\n");
    dir.write("t.csv", "a,b\n");
    dir.write("crlf", "0a\r\n0b\r\n");
    dir.run("build --type static -p 1e-6 -o known.petal members").ok();
    dir.run("build --type static --keyed --secret-file key -o keyed.petal members").ok();
    let mut broken = dir.read("known.petal");
    broken[100] ^= 1;
    let unmasked = |file: Vec<u8>| {
        let (address, _) = serve(file, Answers::Right);
        address.replace("http://", "http://USER:PASSWORD@") + "?SIGNATURE"
    };
    let [known, keyed, broken] =
        [dir.read("known.petal"), dir.read("keyed.petal"), broken].map(unmasked);
    for (args, expected) in [
        (format!("check --which --filter {known} members"), "known.petal?***\t0A"),
        (format!("check {keyed} members"), "its secret is in a file of its own"),
        (format!("check {broken} members"), "damaged"),
        (format!("check -v {known} crlf"), "end with CRLF"),
        (format!("check --column 1,2 {known} t.csv"), "a key of several fields"),
        (format!("check --key-transform trim {known} members"), "were not changed"),
        (format!("check --assert-members crlf {known} members"), "--assert-members: "),
        (format!("check --format dcso {known} members"), "--format: http://***@"),
        (format!("check --key-type int64 {known} members"), "--key-type: http://***@"),
        ("check http://USER:PASSWORD@127.0.0.1:1/f?SIGNATURE known.petal".to_owned(), "refused"),
        (format!("build --counts -o f {known}"), "is an address, expected a file"),
        (format!("build --prefix-from-name -o f {known}"), "is an address, expected a file"),
        (format!("info {known}"), "download it first"),
        (format!("merge -o f known.petal {known}"), "download it first"),
    ] {
        let run = dir.run(&args);
        let printed = String::from_utf8_lossy(&run.out).into_owned() + &run.err;
        assert!(printed.contains(expected) && printed.contains("***"), "{args}: {printed}");
        for secret in ["USER", "PASSWORD", "SIGNATURE"] {
            assert!(!printed.contains(secret), "{args}: {printed}");
        }
    }
}

#[test]
fn lines_of_a_batch_are_asked_in_bounded_memory() {
    let dir = TestDir::new();
    let low = dir.run("check -m 16M https://localhost/known.petal some").failure();
    assert_eq!(low, "petal: -m: 16 MiB is too little, at least 32 MiB is needed; raise -m");
    let lines: String = (0..30_000).map(|n| format!("{n}\n")).collect();
    dir.write("some", &lines);
    // 20 places of a line far from each other.
    dir.run("build --type classic -n 4e7 -p 1e-6 -o known.petal some").ok();
    let (address, _) = serve(dir.read("known.petal"), Answers::OtherVersions);
    let run = run_with_input(dir.petal(&format!("check -j 2 -m 64M {address} some")), b"");
    assert_eq!(run.code, Some(2), "{}", run.err);
    assert!(run.peak >> 20 < 80, "{} MiB", run.peak >> 20);
}
