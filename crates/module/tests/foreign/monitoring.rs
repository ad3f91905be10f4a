//! The files of packaging/redis/archive/monitoring, with the Prometheus exporter and Prometheus.

use std::process::Command;

use crate::server::{Server, Setup, program};

#[test]
#[ignore = "cargo x test --foreign"]
fn dashboard_and_alerts_have_data() {
    let server = Server::new();
    let output = Command::new(program("python/bin/python"))
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/foreign/monitoring.py"))
        .arg(program(""))
        .arg(server.port().to_string())
        .arg(server.folder().path())
        .output()
        .unwrap();
    let problem = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{problem}");
}

/// Under the name `bf` the section of `INFO` has another name, and the metrics have the same names.
#[test]
#[ignore = "cargo x test --foreign"]
fn script_finds_the_module_under_another_name() {
    let server = Setup::new().module_args("NAME bf").start();
    assert_eq!(server.call("BF.ADD key item").int(), 1);
    let script = include_str!("../../../../packaging/redis/archive/monitoring/petal.lua");
    let values = server.call_args(&["EVAL", script, "0", "0"]);
    assert_eq!(values.field("petal_filters").text(), "1");
    assert_eq!(values.field("petal_items_added").text(), "1");
}
