//! `az://` and `gs://`, against Azurite and fake-gcs-server.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use crate::common::{EXACT_COMMANDS, RunOutput, TestDir, expected, run_with_input};
use crate::emulators::{CLOUDS, Cloud, KEY_BASE64, azure_object, azure_token};
use crate::proxy::{Fault, Proxy};
use crate::server::free_port;
use crate::{lines, wait_for};

/// Names of objects that mean something in addresses of the web.
const NAMES: [&str; 3] = ["with spaces and ä.txt", "folder/a+b%20c", "a?b#c&d=e"];

/// Returns the program with arguments separated by spaces, and the cloud at this address.
fn petal(dir: &TestDir, cloud: Cloud, endpoint: &str, args: &str) -> Command {
    let mut command = dir.petal(args);
    cloud.set_env(&mut command, endpoint);
    command
}

fn run(command: Command) -> RunOutput {
    let output = run_with_input(command, b"");
    assert_no_secret(&output);
    output
}

/// Fails if a message has a part of a credential.
fn assert_no_secret(output: &RunOutput) {
    let text = output.err.to_lowercase();
    let signature = azure_token().rsplit('=').next().unwrap().to_lowercase();
    for secret in ["secret", &KEY_BASE64.to_lowercase(), &signature] {
        assert!(!text.contains(secret), "{text}");
    }
}

#[test]
#[ignore = "needs Azurite and fake-gcs-server in PETAL_PEERS"]
fn objects_of_clouds_are_read_like_files() {
    let dir = TestDir::new();
    let (a, b) = (lines(21, 20_000), lines(22, 20_000));
    dir.write("b", &b);
    for cloud in CLOUDS {
        cloud.put("a", &a);
        cloud.put("b.zst", &zstd::encode_all(&b[..], 1).unwrap());
        cloud.put("empty", b"");
        for command in EXACT_COMMANDS {
            for other in [cloud.address("b.zst"), "b".to_owned()] {
                let mut petal = petal(&dir, cloud, &cloud.direct(), command);
                petal.args(["-m", "32M", &cloud.address("a"), &other]);
                let files: [&[u8]; 2] = [&a, &b];
                assert!(run(petal).ok() == expected(command, &files, b'\n'), "{command} {other}");
            }
        }
        let mut empty = petal(&dir, cloud, &cloud.direct(), "dedup");
        empty.arg(cloud.address("empty"));
        assert!(run(empty).ok().is_empty(), "{cloud:?}");
    }
    dir.assert_no_temp_files();
}

#[test]
#[ignore = "needs Azurite and fake-gcs-server in PETAL_PEERS"]
fn names_of_clouds_are_taken_literally() {
    let dir = TestDir::new();
    for cloud in CLOUDS {
        for name in NAMES {
            cloud.put(name, format!("{name}\n").as_bytes());
        }
        for name in NAMES {
            let mut petal = petal(&dir, cloud, &cloud.direct(), "dedup");
            // What follows the last `#` says what the keys are: nothing, so lines.
            let fragment = if name.contains('#') { "#" } else { "" };
            petal.arg(format!("{}{fragment}", cloud.address(name)));
            assert_eq!(run(petal).text(), format!("{name}\n"), "{cloud:?}");
        }
    }
}

/// Requests that are served at the same time.
#[derive(Default)]
struct Together {
    /// The number that are served now, and the highest number so far.
    counts: Mutex<(usize, usize)>,
    reached: Condvar,
}

impl Together {
    /// Holds a request until `count` were served at the same time, for at most half a second.
    fn hold(&self, count: usize) {
        let mut counts = self.counts.lock().unwrap();
        counts.0 += 1;
        counts.1 = counts.1.max(counts.0);
        self.reached.notify_all();
        let limit = Duration::from_millis(500);
        let held = self.reached.wait_timeout_while(counts, limit, |counts| counts.1 < count);
        held.unwrap().0.0 -= 1;
    }
}

/// The size of a block with `-m 64M`, in bytes.
const BLOCK: u64 = 512 << 10;

/// Returns the length of the range that a request demands, in bytes.
fn range_length(head: &str) -> Option<u64> {
    let head = head.to_lowercase();
    let range = head.split_once("range: bytes=")?.1.lines().next()?;
    let (first, last) = range.split_once('-')?;
    Some(last.parse::<u64>().ok()? + 1 - first.parse::<u64>().ok()?)
}

#[test]
#[ignore = "needs Azurite and fake-gcs-server in PETAL_PEERS"]
fn ranges_are_requested_from_clouds_at_the_same_time() {
    let dir = TestDir::new();
    let a = lines(23, 200_000);
    for cloud in CLOUDS {
        cloud.put("ahead", &a);
        let heads = Arc::new(Mutex::new(Vec::new()));
        let together = Arc::new(Together::default());
        let (log, held) = (Arc::clone(&heads), Arc::clone(&together));
        let proxy = Proxy::new(cloud.port(), move |_, head| {
            log.lock().unwrap().push(head.to_lowercase());
            // Samples are requested one by one.
            if range_length(head) == Some(BLOCK) {
                held.hold(3);
            }
            Fault::None
        });
        let mut petal = petal(&dir, cloud, &proxy.endpoint(), "dedup -m 64M");
        petal.arg(cloud.address("ahead"));
        assert!(run(petal).ok() == expected("dedup", &[&a], b'\n'), "{cloud:?}");
        let heads = heads.lock().unwrap();
        assert!(heads.len() as u64 > a.len() as u64 / BLOCK, "{cloud:?}: {} requests", heads.len());
        let ranges = heads.iter().filter(|head| head.contains("range: bytes=")).count();
        assert_eq!(ranges, heads.len(), "{cloud:?}");
        let versions = heads.iter().filter(|head| head.contains("if-match: \"")).count();
        assert_eq!(versions, heads.len() - 1, "{cloud:?}: all but the first demand the version");
        assert!(together.counts.lock().unwrap().1 >= 3, "{cloud:?}: no requests at the same time");
    }
}

#[test]
#[ignore = "needs Azurite and fake-gcs-server in PETAL_PEERS"]
fn object_of_a_cloud_that_changes_is_an_error() {
    let dir = TestDir::new();
    for cloud in CLOUDS {
        for (name, at) in [("changes-early", 1), ("changes-late", 6)] {
            cloud.put(name, &lines(24, 100_000));
            let proxy = Proxy::new(cloud.port(), move |number, _| {
                if number == at {
                    cloud.put(name, &lines(25, 100_000));
                }
                Fault::None
            });
            let mut petal = petal(&dir, cloud, &proxy.endpoint(), "dedup -m 32M");
            let output = run({
                petal.arg(cloud.address(name));
                petal
            });
            assert_eq!(output.code, Some(2), "{name}: {}", output.err);
            let change = "changed while it was being read: its ETag is not what it was";
            let expected = format!("{}: {change}", cloud.address(name));
            assert!(output.err.contains(&expected), "{}", output.err);
        }
    }
}

#[test]
#[ignore = "needs Azurite and fake-gcs-server in PETAL_PEERS"]
fn failures_of_clouds_are_repeated() {
    let dir = TestDir::new();
    let a = lines(26, 100_000);
    for cloud in CLOUDS {
        cloud.put("flaky", &a);
        let faults = AtomicUsize::new(0);
        let proxy = Proxy::new(cloud.port(), move |_, _| {
            match faults.fetch_add(1, Ordering::Relaxed) % 4 {
                0 => Fault::Status(503),
                1 => Fault::Cut(20_000),
                2 => Fault::Cut(0),
                _ => Fault::None,
            }
        });
        let mut petal = petal(&dir, cloud, &proxy.endpoint(), "dedup -m 64M");
        petal.arg(cloud.address("flaky"));
        assert!(run(petal).ok() == expected("dedup", &[&a], b'\n'), "{cloud:?}");
        assert!(proxy.count("GET") > 4);
    }
}

/// Returns the error of reading an object with variables of the environment, and nothing else.
fn failure(dir: &TestDir, address: &str, env: &[(&str, &str)]) -> String {
    let mut command = dir.petal("dedup");
    command.arg(address).env("AWS_MAX_ATTEMPTS", "2").env("HOME", dir.files.path());
    run({
        command.envs(env.iter().copied());
        command
    })
    .failure()
}

#[test]
#[ignore = "needs Azurite and fake-gcs-server in PETAL_PEERS"]
fn errors_of_clouds_name_address_status_and_remedy() {
    let dir = TestDir::new();
    let closed = format!("http://127.0.0.1:{}", free_port());
    for cloud in CLOUDS {
        cloud.put("there", b"a\n");
        let refuses = Proxy::new(cloud.port(), |_, _| Fault::Status(401)).endpoint();
        let slow = Proxy::new(cloud.port(), |_, _| Fault::Status(503)).endpoint();
        let (missing, advice) = match cloud {
            Cloud::Azure => {
                ("404 (BlobNotFound); check container and key", "check AZURE_STORAGE_ACCOUNT_NAME,")
            }
            Cloud::Google => {
                ("404; check bucket and key", "check GOOGLE_APPLICATION_CREDENTIALS or")
            }
        };
        for (endpoint, key, text) in [
            (&cloud.direct(), "missing", format!("status {missing}")),
            (&refuses, "there", format!("status 401; {advice}")),
            (&slow, "there", "status 503; the server failed repeatedly".to_owned()),
            (&closed, "there", "connection refused; check the address".to_owned()),
            (&closed, "folder/", "expected the address of an object".to_owned()),
        ] {
            let mut command = petal(&dir, cloud, endpoint, "dedup");
            let address = cloud.address(key);
            command.arg(&address).env("AWS_MAX_ATTEMPTS", "2");
            let error = run(command).failure();
            assert!(error.contains(&format!("petal: {address}: cannot read: {text}")), "{error}");
        }
    }
}

#[test]
#[ignore = "needs Azurite and fake-gcs-server in PETAL_PEERS"]
fn wrong_credentials_of_azure_are_one_line_without_them() {
    let dir = TestDir::new();
    Cloud::Azure.put("there", b"a\n");
    let endpoint = format!("{}/petalaccount", Cloud::Azure.direct());
    let right =
        [("AZURE_STORAGE_ENDPOINT", &*endpoint), ("AZURE_STORAGE_ACCOUNT_NAME", "petalaccount")];
    let other_token = format!("{}x", azure_token());
    let (refused, malformed) =
        ("status 403 (AuthorizationFailure); check AZURE_", "are malformed; check AZURE_");
    for (name, value, text) in [
        ("AZURE_STORAGE_ACCOUNT_KEY", "U0VDUkVU", refused),
        ("AZURE_STORAGE_ACCOUNT_KEY", "SECRET!!SECRET", malformed),
        ("AZURE_STORAGE_SAS_TOKEN", &other_token, refused),
        ("AZURE_STORAGE_SAS_TOKEN", "SECRET", malformed),
        ("AZURE_STORAGE_TOKEN", "SECRET", "status 40"),
        ("AZURE_SKIP_SIGNATURE", "true", "status 40"),
    ] {
        let env = [right[0], right[1], (name, value)];
        let error = failure(&dir, "az://lines/there", &env);
        assert!(error.contains(text), "{name}={value}: {error}");
    }
    let error = failure(&dir, "az://lines/there", &[("AZURE_STORAGE_ACCOUNT_KEY", KEY_BASE64)]);
    assert!(error.contains("no storage account; set AZURE_STORAGE_ACCOUNT_NAME"), "{error}");
    let error = failure(
        &dir,
        "az://nowhere/there",
        &[right[0], right[1], ("AZURE_STORAGE_ACCOUNT_KEY", KEY_BASE64)],
    );
    assert!(error.contains("404 (ContainerNotFound); check the name of the container"), "{error}");
}

#[test]
#[ignore = "needs Azurite and fake-gcs-server in PETAL_PEERS"]
fn shared_access_signature_of_azure_is_a_credential() {
    let dir = TestDir::new();
    Cloud::Azure.put("shared", b"a\na\n");
    let mut command = dir.petal("dedup az://lines/shared");
    command.env("AZURE_STORAGE_ENDPOINT", format!("{}/petalaccount", Cloud::Azure.direct()));
    command.env("AZURE_STORAGE_ACCOUNT_NAME", "petalaccount");
    command.env("AZURE_STORAGE_SAS_TOKEN", azure_token());
    assert_eq!(run(command).text(), "a\n");
}

#[test]
#[ignore = "needs Azurite and fake-gcs-server in PETAL_PEERS"]
fn malformed_credentials_of_google_are_one_line_without_them() {
    let dir = TestDir::new();
    let bad_file = dir.write("bad.json", r#"{"type":"service_account","private_key":"SECRET"}"#);
    let account = r#"{"private_key":"SECRET","private_key_id":"SECRET","client_email":"a@b"}"#;
    let (malformed, unread) =
        ("are malformed; check GOOGLE_", "cannot be read: no such file or directory; check");
    for (name, value, text) in [
        ("GOOGLE_SERVICE_ACCOUNT_KEY", "\"SECRET\"", malformed),
        ("GOOGLE_SERVICE_ACCOUNT_KEY", account, malformed),
        ("GOOGLE_APPLICATION_CREDENTIALS", &bad_file, malformed),
        ("GOOGLE_APPLICATION_CREDENTIALS", "missing.json", unread),
        ("GOOGLE_SERVICE_ACCOUNT", "missing.json", unread),
    ] {
        let error = failure(&dir, "gs://lines/there", &[(name, value)]);
        assert!(error.contains(text), "{name}={value}: {error}");
    }
}

#[test]
#[ignore = "needs Azurite and fake-gcs-server in PETAL_PEERS"]
fn outputs_to_azure_appear_complete() {
    let (dir, cloud) = (TestDir::new(), Cloud::Azure);
    // More than one part of 5 MiB, fewer than one, and none.
    for (name, count) in [("parts", 300_000), ("part", 1000), ("none", 0)] {
        let a = lines(27, count);
        dir.write(name, &a);
        cloud.put("out", b"old\n");
        let args = format!("dedup -m 32M {name} -o az://lines/out");
        run(petal(&dir, cloud, &cloud.direct(), &args)).ok();
        assert!(azure_object("out").unwrap() == expected("dedup", &[&a], b'\n'), "{name}");
    }
    // An error of the job.
    cloud.put("out", b"old\n");
    dir.write("bad", [b"x".repeat(9 << 20), b"\n".to_vec()].concat());
    let args = "dedup -m 32M bad -o az://lines/out";
    let error = run(petal(&dir, cloud, &cloud.direct(), args)).failure();
    assert!(error.contains("is longer than"), "{error}");
    assert_eq!(azure_object("out").unwrap(), b"old\n");
}

#[test]
#[ignore = "needs Azurite and fake-gcs-server in PETAL_PEERS"]
fn missing_container_of_an_output_ends_the_job_at_once() {
    let (dir, cloud) = (TestDir::new(), Cloud::Azure);
    let mut command = petal(&dir, cloud, &cloud.direct(), "dedup - -o az://nowhere/out");
    command.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Nothing is written to the input, and it does not end.
    let input = child.stdin.take().unwrap();
    let exited = Mutex::new(&mut child);
    wait_for(|| exited.lock().unwrap().try_wait().unwrap().is_some());
    let output = child.wait_with_output().unwrap();
    drop(input);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    let expected = "az://nowhere/out: cannot write: status 404 (ContainerNotFound); check the name";
    assert!(error.contains(expected), "{error}");
}
