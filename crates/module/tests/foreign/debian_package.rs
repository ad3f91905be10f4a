//! The Debian package of the module: its fields, and a server with the unpacked module and its configuration.

use std::path::Path;
use std::process::Command;

use petal_testkit::pages::root;
use petal_testkit::scratch::Scratch;

use crate::server::{Module, Setup, petal};

const MODULE: &str = "usr/lib/redis/modules/libpetal_redis.so";

/// Runs a command and returns its output; panics if it fails.
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let problem = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {problem}");
    String::from_utf8(output.stdout).unwrap()
}

/// Builds the package with version 1.2.3 in a folder, and returns its path.
fn build(folder: &Path) -> std::path::PathBuf {
    let script = root().join("packaging/redis/deb.sh");
    output(Command::new("bash").arg(script).arg(petal()).args(["1.2.3", "amd64"]).arg(folder));
    folder.join("petal-redis_1.2.3_amd64.deb")
}

#[test]
#[ignore = "cargo x test --foreign"]
fn unpacked_module_loads_with_its_configuration() {
    let folder = Scratch::new();
    let package = build(folder.path());
    let unpacked = folder.file("root");
    output(Command::new("dpkg-deb").arg("--extract").arg(&package).arg(&unpacked));

    let server = Setup::with(Module::File(unpacked.join(MODULE))).start();
    assert_eq!(server.call("BF.ADD seen first").int(), 1);

    // Lines with # show the defaults.
    let config =
        std::fs::read_to_string(unpacked.join("usr/share/petal-redis/petal.conf")).unwrap();
    assert!(config.contains(&format!("\nloadmodule /{MODULE}\n")), "{config}");
    let settings: Vec<_> =
        config.lines().filter_map(|line| line.strip_prefix("# petal.")).collect();
    assert!(settings.len() >= 8, "{settings:?}");
    for setting in settings {
        let (name, _) = setting.split_once(' ').unwrap();
        let default = server.call(&format!("CONFIG GET petal.{name}"));
        server.call(&format!("CONFIG SET petal.{setting}")).ok();
        assert_eq!(server.call(&format!("CONFIG GET petal.{name}")), default, "{setting}");
    }

    for service in ["redis-server", "valkey-server"] {
        let path = format!("usr/lib/systemd/system/{service}.service.d/petal.conf");
        let drop_in = std::fs::read_to_string(unpacked.join(path)).unwrap();
        assert!(drop_in.contains(&format!("\nAssertPathExists=/{MODULE}\n")), "{drop_in}");
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn package_has_its_fields_and_is_reproducible() {
    let folders = [Scratch::new(), Scratch::new()];
    let [package, again] = folders.each_ref().map(|folder| build(folder.path()));
    assert_eq!(std::fs::read(&package).unwrap(), std::fs::read(again).unwrap());
    let fields = output(Command::new("dpkg-deb").arg("--info").arg(&package));
    for field in ["Package: petal-redis", "Version: 1.2.3", "Architecture: amd64", "Depends: libc6"]
    {
        assert!(fields.contains(field), "{field}: {fields}");
    }
    let files = output(Command::new("dpkg-deb").arg("--contents").arg(&package));
    for line in files.lines() {
        let expected =
            if line.starts_with('d') || line.ends_with(".so") { "rwxr-xr-x" } else { "rw-r--r--" };
        assert!(line[1..].starts_with(&format!("{expected} root/root")), "{line}");
    }
    for name in ["monitoring/petal.lua", "monitoring/grafana.json", "doc/petal-redis/README.Debian"]
    {
        assert!(files.contains(name), "{name}: {files}");
    }
}
