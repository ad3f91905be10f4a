//! Values of RedisBloom that petal keeps: `CMS.*`, `TOPK.*` and `TDIGEST.*`.

use crate::server::{Reply, Server, Setup, redisbloom};

const FILL: &[&str] = &[
    "CMS.INITBYDIM {s}cms 200 5",
    "CMS.INCRBY {s}cms a 5 b 2",
    "TOPK.RESERVE {s}topk 3 50 4 0.9",
    "TOPK.ADD {s}topk a b c d e a b \u{e4}",
    "TOPK.RESERVE {s}topk-empty 2",
    "TDIGEST.CREATE {s}tdigest COMPRESSION 50",
    "TDIGEST.ADD {s}tdigest 1 2 3 4.5 -7",
    "TDIGEST.CREATE {s}tdigest-empty",
];
const QUERIES: &[&str] = &[
    "CMS.QUERY {s}cms a b c",
    "CMS.INFO {s}cms",
    "TOPK.LIST {s}topk WITHCOUNT",
    "TOPK.INFO {s}topk",
    "TDIGEST.QUANTILE {s}tdigest 0 0.25 0.5 1",
    "TDIGEST.INFO {s}tdigest-empty",
];
const TYPES: [(&str, &str); 5] = [
    ("{s}cms", "CMSk-TYPE"),
    ("{s}topk", "TopK-TYPE"),
    ("{s}topk-empty", "TopK-TYPE"),
    ("{s}tdigest", "TDIS-TYPE"),
    ("{s}tdigest-empty", "TDIS-TYPE"),
];

fn dumps(server: &Server) -> Vec<Reply> {
    TYPES.iter().map(|(key, _)| server.call(&format!("DUMP {key}"))).collect()
}

#[test]
#[ignore = "cargo x test --foreign"]
fn sketches_of_redisbloom_are_kept_and_go_back() {
    let Some(module) = redisbloom() else {
        println!("skipped: no RedisBloom for this machine");
        return;
    };
    let mut theirs = Setup::with(module.clone()).start();
    for line in FILL {
        assert!(!theirs.call(line).is_error(), "{line}");
    }
    let many = (0..5000).map(|number| number.to_string()).collect::<Vec<_>>().join(" ");
    theirs.call(&format!("TDIGEST.ADD {{s}}tdigest {many}")).ok();
    let replies: Vec<_> = QUERIES.iter().map(|line| theirs.call(line)).collect();
    let dumped = dumps(&theirs);
    theirs.call("SAVE").ok();
    let file = theirs.folder().read("dump.rdb");
    theirs.kill();

    let mut ours = Setup::new().file("dump.rdb", file).start();
    assert_eq!(ours.call("DBSIZE").int(), TYPES.len() as i64);
    for (key, name) in TYPES {
        assert_eq!(ours.call(&format!("TYPE {key}")).text(), name);
        assert!(ours.call(&format!("MEMORY USAGE {key}")).int() > 50, "{key}");
        for line in ["BF.ADD KEY x", "CF.ADD KEY x", "PETAL.INFO KEY", "BF.RESERVE KEY 0.1 9"] {
            let error = ours.call(&line.replace("KEY", key));
            assert!(error.error().starts_with("WRONGTYPE"), "{line}: {error:?}");
        }
        assert_eq!(ours.call(&format!("COPY {key} {key}:copy")).int(), 1);
        let digest = |key: &str| ours.call(&format!("DEBUG DIGEST-VALUE {key}"));
        assert_eq!(digest(key), digest(&format!("{key}:copy")));
        assert_eq!(ours.call(&format!("UNLINK {key}:copy")).int(), 1);
    }
    let same_server = std::env::var_os("PETAL_VALKEY").is_none();
    assert!(!same_server || dumps(&ours) == dumped);
    // In an RDB file, in the commands of an append-only file, and on a replica.
    let digest = ours.digest();
    ours.restart();
    assert_eq!(ours.digest(), digest);
    let file = ours.folder().read("dump.rdb");
    let replica = Server::new();
    replica.replicate_from(&ours);
    assert_eq!(replica.digest(), digest);
    let logging = Setup::new().args("--appendonly yes --aof-use-rdb-preamble no");
    let mut logging = logging.start();
    for ((key, _), dump) in TYPES.iter().zip(dumps(&ours)) {
        logging.call_args(&[b"RESTORE", key.as_bytes(), b"0", dump.bytes()]).ok();
    }
    crate::aof::rewrite(&logging);
    logging.restart();
    assert_eq!(logging.digest(), digest);

    let theirs = Setup::with(module).file("dump.rdb", file).start();
    for (line, reply) in QUERIES.iter().zip(&replies) {
        assert_eq!(theirs.call(line), *reply, "{line}");
    }
}

/// A value that cannot be loaded is named in the log.
#[test]
#[ignore = "cargo x test --foreign"]
fn keys_that_cannot_be_loaded_are_logged() {
    let server = Server::new();
    server.call("BF.RESERVE filter 0.01 1000").ok();
    let dump = server.call("DUMP filter").bytes().to_vec();
    server.call("CONFIG SET petal.memory-limit 1kb").ok();
    let reply = server.call_args(&[&b"RESTORE"[..], b"other", b"0", &dump]);
    assert!(reply.is_error());
    let log = server.log();
    assert!(log.contains("petal: key other: the filter takes"), "{log}");
}
