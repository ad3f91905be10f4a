//! Descriptions, keys and ACL rules of the commands.

use crate::sample_filters;
use crate::server::{Reply, Server};

/// A valid line for each command; the keys are `key` and `key2`.
const LINES: &[&str] = &[
    "bf.reserve key 0.01 100 EXPANSION 2",
    "bf.add key item",
    "bf.madd key item item2",
    "bf.insert key CAPACITY 100 ERROR 0.01 ITEMS item",
    "bf.exists key item",
    "bf.mexists key item item2",
    "bf.card key",
    "bf.info key CAPACITY",
    "bf.debug key",
    "bf.scandump key 0",
    "bf.loadchunk key 1 chunk",
    "cf.reserve key 100 BUCKETSIZE 2",
    "cf.add key item",
    "cf.addnx key item",
    "cf.insert key CAPACITY 100 ITEMS item",
    "cf.insertnx key ITEMS item",
    "cf.exists key item",
    "cf.mexists key item item2",
    "cf.del key item",
    "cf.count key item",
    "cf.mdel key item item2",
    "cf.compact key",
    "cf.debug key",
    "cf.info key",
    "cf.scandump key 0",
    "cf.loadchunk key 1 chunk",
    "petal.reserve key 0.01 100 TYPE window LAST GENERATIONS 3",
    "petal.seen key item item2",
    "petal.seenat key 1000 item item2",
    "petal.seencreate key 0.01 100 WINDOW 7d ITEMS item item2",
    "petal.exists key item item2",
    "petal.clear key",
    "petal.del key item item2",
    "petal.count key item item2",
    "petal.merge key key2 key3",
    "petal.compare key key2",
    "petal.info key FULL",
    "petal.import key 0 bytes",
    "petal.export key 0 COUNT 1000",
    "petal.loadchunk key 0 bytes",
];

/// Returns the names of the module's commands.
fn names(server: &Server) -> Vec<String> {
    let all = server.call("COMMAND LIST FILTERBY MODULE petal");
    let mut all: Vec<_> = all.items().iter().map(Reply::text).collect();
    all.sort();
    all
}

fn name(line: &str) -> &str {
    line.split(' ').next().unwrap()
}

/// Returns the words of a set or an array, such as flags.
fn words(reply: &Reply) -> Vec<String> {
    match reply {
        Reply::Array(items) | Reply::Set(items) => items.iter().map(Reply::text).collect(),
        other => panic!("not a list: {other:?}"),
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn commands_are_those_of_this_list() {
    let server = Server::new();
    let mut listed: Vec<_> = LINES.iter().map(|line| name(line).to_owned()).collect();
    listed.sort();
    assert_eq!(names(&server), listed);
}

#[test]
#[ignore = "cargo x test --foreign"]
fn commands_have_arity_flags_and_keys() {
    let server = Server::new();
    for name in names(&server) {
        let info = server.call(&format!("COMMAND INFO {name}"));
        let fields = info.items()[0].items();
        let (arity, flags) = (fields[1].int(), words(&fields[2]));
        assert!(arity.abs() >= 2, "{name}: {arity}");
        let reads = flags.contains(&"readonly".to_owned());
        assert_ne!(reads, flags.contains(&"write".to_owned()), "{name}: {flags:?}");
        assert!(flags.contains(&"module".to_owned()));
        if !reads
            && !matches!(&*name, "cf.del" | "cf.mdel" | "cf.compact" | "petal.del" | "petal.clear")
        {
            assert!(flags.contains(&"denyoom".to_owned()), "{name} needs memory");
        }
        let specs = fields[8].items();
        assert!(!specs.is_empty(), "{name}: no keys");
        for spec in specs {
            let flags = words(spec.field("flags"));
            let formatted = format!("{name}: {flags:?}");
            assert!(
                flags.iter().any(|flag| flag == if reads { "RO" } else { "RW" }) || !reads,
                "{formatted}"
            );
            assert!(
                reads || !flags.iter().any(|flag| flag == "RO") || specs.len() > 1,
                "{formatted}"
            );
        }
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn command_getkeys_finds_all_keys() {
    let server = Server::new();
    for line in LINES {
        let keys = server.call(&format!("COMMAND GETKEYS {line}"));
        let expected: Vec<_> = line.split(' ').filter(|word| word.starts_with("key")).collect();
        assert_eq!(words(&keys), expected, "{line}");
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn every_command_has_documentation() {
    let server = Server::new();
    for name in names(&server) {
        let docs = server.call(&format!("COMMAND DOCS {name}"));
        let docs = &docs.items()[1];
        for field in ["summary", "since", "complexity"] {
            assert!(!docs.field(field).text().is_empty(), "{name}: {field}");
        }
        assert_eq!(docs.field("group").text(), "module");
        let arguments = docs.field("arguments").items();
        assert!(arguments.iter().any(|argument| argument.field("type").text() == "key"), "{name}");
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn read_only_user_can_query_but_not_write() {
    let server = Server::new();
    let filters = sample_filters::create(&server, 10);
    server.call("ACL SETUSER reader on >secret +@all %R~*").ok();
    let mut reader = server.client();
    reader.call("AUTH reader secret").ok();
    for line in LINES {
        let info = server.call(&format!("COMMAND INFO {}", name(line)));
        let reads = words(&info.items()[0].items()[2]).contains(&"readonly".to_owned());
        let family = if line.starts_with("cf") { "cf-auto" } else { "bf-auto" };
        let reply = reader.call(&line.replace("key", family));
        let rejected = matches!(&reply, Reply::Error(error) if error.starts_with("NOPERM"));
        assert_eq!(rejected, !reads, "{line}: {reply:?}");
    }
    filters.assert_members(&server);
}

#[test]
#[ignore = "cargo x test --foreign"]
fn acl_restricts_keys_and_commands() {
    let server = Server::new();
    server.call("ACL SETUSER crawler on >secret +bf.madd +bf.mexists ~seen:*").ok();
    let mut crawler = server.client();
    crawler.call("AUTH crawler secret").ok();
    assert_eq!(crawler.call("BF.MADD seen:a x").ints(), [1]);
    assert_eq!(crawler.call("BF.MEXISTS seen:a x y").ints(), [1, 0]);
    for line in ["BF.MADD other x", "BF.MEXISTS other x", "BF.ADD seen:a x", "CF.ADD seen:c x"] {
        assert!(crawler.call(line).error().starts_with("NOPERM"), "{line}");
    }
    // Redis 7.4 and Valkey 8 have ACL categories for modules.
    if words(&server.call("ACL CAT")).contains(&"bloom".to_owned()) {
        server.call("ACL SETUSER bloomer on >secret +@bloom -@cuckoo ~*").ok();
        let mut bloomer = server.client();
        bloomer.call("AUTH bloomer secret").ok();
        assert_eq!(bloomer.call("BF.ADD seen:b x").int(), 1);
        assert!(bloomer.call("CF.ADD seen:c x").error().starts_with("NOPERM"));
    } else {
        println!("skipped: this server has no ACL categories for modules");
    }
}
