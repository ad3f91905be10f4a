//! Clients: redis-py's methods for `BF.*` and `CF.*`, the crate `redis`, redis-cli.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::server::{Server, command, program};

#[test]
#[ignore = "cargo x test --foreign"]
fn redis_py_works_in_both_protocols() {
    for server in [Server::new(), Server::redisbloom_layout()] {
        for protocol in ["2", "3"] {
            server.call("FLUSHALL").ok();
            let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/foreign/redis_py.py");
            let output = Command::new(program("python/bin/python"))
                .args([script, &server.port().to_string(), protocol])
                .output()
                .unwrap();
            let trouble = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "RESP{protocol}: {trouble}");
        }
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn redis_crate_works_in_both_protocols() {
    let server = Server::new();
    for protocol in ["resp2", "resp3"] {
        server.call("FLUSHALL").ok();
        let url = format!("redis://127.0.0.1:{}/?protocol={protocol}", server.port());
        let mut connection = redis::Client::open(url).unwrap().get_connection().unwrap();
        let mut call = |line: &str| {
            let mut args = line.split(' ');
            let mut command = redis::cmd(args.next().unwrap());
            args.for_each(|arg| {
                command.arg(arg);
            });
            command.query::<redis::Value>(&mut connection)
        };
        let yes = |value: redis::Value| redis::from_redis_value::<bool>(value).unwrap();
        assert!(yes(call("BF.ADD key a").unwrap()));
        assert!(!yes(call("BF.ADD key a").unwrap()));
        let many = call("BF.MEXISTS key a b").unwrap();
        assert_eq!(redis::from_redis_value::<Vec<bool>>(many).unwrap(), [true, false]);
        assert!(yes(call("CF.ADD cuckoo a").unwrap()));
        assert!(yes(call("CF.DEL cuckoo a").unwrap()));
        let info = call("BF.INFO key").unwrap();
        let info = redis::from_redis_value::<std::collections::HashMap<String, u64>>(info).unwrap();
        assert_eq!(info["Number of items inserted"], 1);
        let error = call("BF.INFO none").unwrap_err();
        assert_eq!(error.detail(), Some("not found"));
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn redis_cli_pipe_sends_many_commands() {
    let server = Server::new();
    let mut cli = Command::new(program("bin/redis-cli"))
        .args(["-p", &server.port().to_string(), "--pipe"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = cli.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        for number in 0..50_000 {
            let item = format!("item:{number}");
            let family = if number % 2 == 0 { "BF.ADD" } else { "CF.ADD" };
            input.write_all(&command(&[family, &family[..2], &item])).unwrap();
        }
    });
    let output = cli.wait_with_output().unwrap();
    writer.join().unwrap();
    let output = String::from_utf8_lossy(&output.stdout);
    assert!(output.contains("errors: 0, replies: 50000"), "{output}");
    let items = (0..25_000).map(|number| format!("item:{}", number * 2));
    let args = ["BF.MEXISTS", "BF"].into_iter().map(str::to_owned).chain(items);
    let found = server.call_args(&args.collect::<Vec<_>>());
    assert!(found.ints().iter().all(|&yes| yes == 1));
}

#[test]
#[ignore = "cargo x test --foreign"]
fn redis_cli_formats_replies() {
    let server = Server::new();
    let cli = |args: &[&str]| {
        let port = server.port().to_string();
        let output = Command::new(program("bin/redis-cli"))
            .args(["-p", &port, "--no-raw"])
            .args(args)
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(cli(&["BF.ADD", "key", "a"]), "(integer) 1\n");
    assert_eq!(cli(&["-3", "BF.EXISTS", "key", "a"]), "(true)\n");
    assert_eq!(cli(&["BF.MEXISTS", "key", "a", "b"]), "1) (integer) 1\n2) (integer) 0\n");
    assert_eq!(cli(&["BF.INFO", "none"]), "(error) ERR not found\n");
}
