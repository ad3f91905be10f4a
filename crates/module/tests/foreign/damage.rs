//! Damaged commands in an append-only file: a filter that lost data answers with errors, never with
//! a wrong *no*, until its key is deleted.

use crate::aof::rewrite;
use crate::captures::chunks;
use crate::server::{Server, Setup, command};

const ITEMS: usize = 1000;

/// The commands that make a filter again, and the position of each.
fn rewritten(server: &Server, family: &str, key: &str, own: bool) -> Vec<(String, u64, Vec<u8>)> {
    let mut offset = 0;
    let all = chunks(server, family, key).into_iter();
    let commands = all.map(|(position, data)| {
        let before = offset;
        offset += data.len() as u64;
        if own {
            ("PETAL.LOADCHUNK".to_owned(), before, data)
        } else {
            (format!("{family}.LOADCHUNK"), position, data)
        }
    });
    commands.collect()
}

#[derive(Clone, Copy)]
enum Damage {
    None,
    /// A byte of the first chunk.
    Byte(usize),
    /// The position of a chunk.
    Position(usize),
    /// A chunk is lost, as if the name of its key were another.
    Lost(usize),
    /// A chunk has fewer bytes.
    Short(usize),
}

/// A log of a filter in chunks, with damage, and of items added after.
fn log(key: &str, family: &str, commands: &[(String, u64, Vec<u8>)], damage: Damage) -> Vec<u8> {
    let mut log = Vec::new();
    for (at, (name, position, data)) in commands.iter().enumerate() {
        let (mut position, mut data) = (*position, data.clone());
        match damage {
            Damage::Byte(byte) if at == 0 => data[byte] ^= 0x10,
            Damage::Position(chunk) if at == chunk => position += 1 << 40,
            Damage::Lost(chunk) if at == chunk => continue,
            Damage::Short(chunk) if at == chunk => data.truncate(data.len() - 1),
            _ => {}
        }
        let position = position.to_string();
        log.extend(command(&[name.as_bytes(), key.as_bytes(), position.as_bytes(), &data]));
    }
    for item in ["late:1", "late:2"] {
        log.extend(command(&[format!("{family}.ADD").as_bytes(), key.as_bytes(), item.as_bytes()]));
    }
    log
}

fn members() -> Vec<String> {
    (0..ITEMS).map(|item| format!("item:{item}")).collect()
}

/// Whether a key answers for all that it was given; otherwise every answer is an error that says
/// why.
#[track_caller]
fn answers(server: &Server, family: &str, key: &str) -> bool {
    let name = format!("{family}.MEXISTS");
    let words: Vec<_> = [name, key.to_owned()].into_iter().chain(members()).collect();
    let reply = server.ask_words(&words);
    if reply.is_error() {
        // Where the last chunk is short, the filter waits for the rest.
        let errors = ["ERR the filter is damaged: ", "ERR the filter has not come whole yet"];
        let expected = errors.iter().any(|error| reply.error().starts_with(error));
        assert!(expected, "{key}: {reply:?}");
        for line in ["ADD {} x", "EXISTS {} x", "INFO {}"] {
            let line = format!("{family}.{}", line.replace("{}", key));
            assert!(server.ask(&line).is_error(), "{line}");
        }
        return false;
    }
    assert!(reply.ints().iter().all(|&found| found == 1), "{key}: members are missing");
    true
}

/// Every kind of filter in chunks, with all kinds of damage.
fn damaged_log() -> (Vec<u8>, Vec<(String, &'static str, bool)>) {
    let (mut whole, mut keys) = (Vec::new(), Vec::new());
    for compat in [false, true] {
        let server = if compat { Server::compat() } else { Server::new() };
        for family in ["BF", "CF"] {
            let reserve = if family == "BF" { "BF.RESERVE k 0.01 600" } else { "CF.RESERVE k 600" };
            server.ask("DEL k");
            server.ask(reserve).ok();
            let name = if family == "BF" { "BF.MADD" } else { "CF.INSERT" };
            let items = members();
            let front: &[&str] = if family == "BF" { &[name, "k"] } else { &[name, "k", "ITEMS"] };
            let words: Vec<_> = front.iter().map(|word| (*word).to_owned()).chain(items).collect();
            server.ask_words(&words);
            for own in [false, true] {
                if own && compat {
                    continue;
                }
                let commands = rewritten(&server, family, "k", own);
                let header = commands[0].2.len();
                let bytes = (0..header).step_by(3).map(Damage::Byte);
                let chunks = (0..commands.len())
                    .flat_map(|at| [Damage::Position(at), Damage::Lost(at), Damage::Short(at)]);
                for (at, damage) in
                    [Damage::None].into_iter().chain(bytes).chain(chunks).enumerate()
                {
                    // RedisBloom's commands do not tell that a chunk behind the header is lost or
                    // short, nor its cuckoo header that a byte is another.
                    let is_unseen = match damage {
                        Damage::Lost(chunk) | Damage::Short(chunk) => compat && chunk > 0,
                        Damage::Byte(_) => compat && family == "CF",
                        Damage::None | Damage::Position(_) => false,
                    };
                    if is_unseen {
                        continue;
                    }
                    let key = format!("{family}:{compat}:{own}:{at}");
                    whole.extend(log(&key, family, &commands, damage));
                    keys.push((key, family, matches!(damage, Damage::None)));
                }
            }
        }
    }
    (whole, keys)
}

#[test]
#[ignore = "cargo x test --foreign"]
fn damaged_chunks_in_a_log_leave_filters_that_answer_errors() {
    let (log, keys) = damaged_log();
    let setup = Setup::new().words("--appendonly yes --aof-use-rdb-preamble no");
    let mut server = setup.file("appendonly.aof", log).start();
    let mut damaged = 0;
    for (key, family, sound) in &keys {
        let answers = answers(&server, family, key);
        assert!(answers || !sound, "{key}");
        damaged += usize::from(!answers);
    }
    assert!(damaged * 2 > keys.len(), "{damaged} of {}", keys.len());
    assert!(server.log().contains("damaged filter "));
    // They stay damaged in a rewritten log, in an RDB file, on a replica, in copies and dumps.
    let is_damaged =
        |key: &str| server.ask(&format!("PETAL.INFO {key}")).field("type").text() == "damaged";
    let (key, family, _) = keys.iter().find(|(key, ..)| is_damaged(key)).unwrap();
    let digest = server.digest();
    rewrite(&server);
    server.restart();
    assert_eq!(server.digest(), digest);
    server.ask("CONFIG SET aof-use-rdb-preamble yes").ok();
    rewrite(&server);
    server.restart();
    assert_eq!(server.digest(), digest);
    let replica = Server::new();
    replica.follow(&server);
    assert_eq!(replica.digest(), digest);
    assert!(!answers(&replica, family, key));
    assert_eq!(server.ask(&format!("COPY {key} copied")).int(), 1);
    let dump = server.ask(&format!("DUMP {key}")).bytes().to_vec();
    server.ask_words(&[&b"RESTORE"[..], b"restored", b"0", &dump]).ok();
    assert!(!answers(&server, family, "copied") && !answers(&server, family, "restored"));
    assert_eq!(server.ask(&format!("PETAL.INFO {key}")).field("type").text(), "damaged");
    // A client cannot go on with it, only delete it.
    let chunk = server.ask_words(&[&b"PETAL.LOADCHUNK"[..], key.as_bytes(), b"0", b"x"]);
    assert!(chunk.error().contains("is damaged"), "{chunk:?}");
    server.ask(&format!("DEL {key}"));
    server.ask(&format!("{family}.ADD {key} x"));
    assert_eq!(server.ask(&format!("{family}.EXISTS {key} x")).int(), 1);
}

/// Other commands that fail while they are replayed, after which a key would lack items.
#[test]
#[ignore = "cargo x test --foreign"]
fn commands_that_fail_in_a_log_leave_no_default_filter() {
    let lines = [
        "PETAL.RESERVE kind 0.01 1000 TYPE caunting",
        "BF.ADD kind a",
        "BF.RESERVE rate 0.x1 1000",
        "BF.ADD rate a",
        "CF.RESERVE cuckoo 10x0",
        "CF.ADD cuckoo a",
        "PETAL.SEEN lost a b",
        "BF.ADD lost c",
        "BF.ADD there a",
        "PETAL.MERGE there nowhere",
        "BF.ADD full a",
        "BF.RESERVE full 0.01 10",
        "SET text x",
        "PETAL.LOADCHUNK text 0 xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    ];
    let log: Vec<u8> = lines
        .iter()
        .flat_map(|line| command(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>()))
        .collect();
    let server = Setup::new().words("--appendonly yes").file("appendonly.aof", log).start();
    for key in ["kind", "rate", "cuckoo", "lost", "there"] {
        let family = if key == "cuckoo" { "CF" } else { "BF" };
        let reply = server.ask(&format!("{family}.EXISTS {key} a"));
        assert!(reply.error().contains("is damaged"), "{key}: {reply:?}");
    }
    // A filter that is there and a key of another type stay as they are.
    assert_eq!(server.ask("BF.EXISTS full a").int(), 1);
    assert_eq!(server.ask("GET text").text(), "x");
    // A client's own mistakes damage nothing.
    assert!(server.ask("PETAL.SEEN missing a").is_error());
    assert!(server.ask("BF.RESERVE missing 2 1000").is_error());
    assert_eq!(server.ask("EXISTS missing").int(), 0);
}

/// A digit of a capacity is flipped: the filter is smaller than its master's and cannot take all.
#[test]
#[ignore = "cargo x test --foreign"]
fn items_that_do_not_fit_in_a_log_damage_filters_of_petals_layout() {
    const SEED: &str = "SEED 000102030405060708090a0b0c0d0e0f";
    let items: Vec<_> = (0..100).map(|item| format!("i{item}")).collect();
    let all = items.join(" ");
    let mut lines = Vec::new();
    for (key, add) in [("many", "BF.MADD"), ("seen", "PETAL.SEEN")] {
        lines.push(format!("PETAL.RESERVE {key} 0.01 10 TYPE bloom NONSCALING {SEED}"));
        lines.push(format!("{add} {key} {all}"));
    }
    lines.push(format!("PETAL.RESERVE cmany 0.01 10 TYPE cuckoo EXPANSION 0 {SEED}"));
    lines.push(format!("CF.INSERT cmany ITEMS {all}"));
    lines.push(format!("PETAL.RESERVE one 0.01 10 TYPE bloom NONSCALING {SEED}"));
    lines.push(format!("PETAL.RESERVE seen1 0.01 10 TYPE bloom NONSCALING {SEED}"));
    lines.push(format!("PETAL.RESERVE cone 0.01 10 TYPE cuckoo EXPANSION 0 {SEED}"));
    // RedisBloom sends items that its own filter refused, too.
    lines.push("BF.RESERVE theirs 0.01 10 NONSCALING".to_owned());
    lines.push(format!("BF.MADD theirs {all}"));
    lines.push("CF.RESERVE ctheirs 8 EXPANSION 0".to_owned());
    lines.push(format!("CF.INSERT ctheirs ITEMS {all}"));
    for item in &items {
        lines.push(format!("BF.ADD one {item}"));
        lines.push(format!("PETAL.SEEN seen1 {item}"));
        lines.push(format!("CF.ADD cone {item}"));
        lines.push(format!("BF.ADD theirs {item}"));
        lines.push(format!("CF.ADD ctheirs {item}"));
    }
    let log: Vec<u8> = lines
        .iter()
        .flat_map(|line| command(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>()))
        .collect();
    let server = Setup::new().words("--appendonly yes").file("appendonly.aof", log).start();
    for key in ["many", "one", "seen", "seen1", "cmany", "cone"] {
        let family = if key.starts_with('c') { "CF" } else { "BF" };
        let reply = server.ask(&format!("{family}.EXISTS {key} i99"));
        assert!(reply.error().contains("is damaged"), "{key}: {reply:?}");
    }
    assert_eq!(server.ask("BF.EXISTS theirs i0").int(), 1);
    assert_eq!(server.ask("CF.EXISTS ctheirs i0").int(), 1);
}

/// RedisBloom 2.8.20 replicates `BF.RESERVE` even if it has no memory for the filter.
#[test]
#[ignore = "cargo x test --foreign"]
fn a_reservation_that_is_too_large_in_a_log_leaves_the_key_missing() {
    let lines = [
        "BF.RESERVE huge 0.01 9000000000000000000",
        "BF.RESERVE large 0.01 1000000000000000",
        "BF.RESERVE added 0.01 9000000000000000000 NONSCALING",
        "BF.ADD added a",
        "BF.ADD there a",
        "BF.RESERVE there 0.01 9000000000000000000",
        "PETAL.RESERVE own 0.01 9000000000000000000",
    ];
    let log: Vec<u8> = lines
        .iter()
        .flat_map(|line| command(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>()))
        .collect();
    let server = Setup::new().words("--appendonly yes").file("appendonly.aof", log).start();
    assert_eq!(server.ask("EXISTS huge large").int(), 0);
    assert_eq!(server.ask("BF.INFO added CAPACITY").ints(), [100]);
    for key in ["added", "there"] {
        assert_eq!(server.ask(&format!("BF.EXISTS {key} a")).int(), 1);
    }
    assert!(server.ask("BF.EXISTS own a").error().contains("is damaged"));
    for key in ["huge", "large", "added"] {
        assert!(server.log().contains(&format!("unchanged key {key}: BF.RESERVE failed")), "{key}");
    }
}

/// The name of a key is damaged: the command is for a filter that has lost nothing.
#[test]
#[ignore = "cargo x test --foreign"]
fn commands_for_another_filter_leave_it_as_it_is() {
    let source = Server::new();
    source.ask("BF.ADD k a");
    source.ask("CF.ADD c a");
    let mut log = Vec::new();
    let lines = [
        "BF.ADD bloom a",
        "CF.ADD cuckoo a",
        "PETAL.RESERVE window 0.01 10 LAST",
        "BF.ADD window a",
        "PETAL.RESERVE own 0.01 10 TYPE cuckoo",
        "CF.ADD own a",
        "PETAL.SEEN cuckoo b",
        "CF.LOADCHUNK own 9 xxxxxxxx",
        "BF.LOADCHUNK window 9 xxxxxxxx",
        "CF.LOADCHUNK bloom 9 xxxxxxxx",
        // The items of its sources are lost from it.
        "BF.ADD merged a",
        "PETAL.MERGE merged cuckoo",
    ];
    for line in lines {
        log.extend(command(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>()));
    }
    for (family, from, to) in [("BF", "k", "bloom"), ("BF", "k", "window"), ("CF", "c", "cuckoo")] {
        for own in [false, true] {
            for (name, position, data) in rewritten(&source, family, from, own) {
                let position = position.to_string();
                log.extend(command(&[name.as_bytes(), to.as_bytes(), position.as_bytes(), &data]));
            }
        }
    }
    let server = Setup::new().words("--appendonly yes").file("appendonly.aof", log).start();
    for key in ["bloom", "window", "cuckoo", "own"] {
        assert_eq!(server.ask(&format!("PETAL.EXISTS {key} a")).ints(), [1], "{key}");
        assert!(server.log().contains(&format!("unchanged key {key}: ")), "{key}");
    }
    assert!(server.ask("BF.EXISTS merged a").error().contains("is damaged"));
}
