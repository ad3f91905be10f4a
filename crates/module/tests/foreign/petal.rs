//! PETAL.*: windows, counts, SEEN, MERGE and COMPARE, and that replicas and logs follow them to the bit.

use crate::aof;
use crate::server::{Client, Server, Setup, until};

const SEED: &str = "000102030405060708090a0b0c0d0e0f";

/// A command about many items.
#[track_caller]
fn many(server: &Server, line: &str, items: impl Iterator<Item = u32>) -> Vec<i64> {
    let words = line.split(' ').map(str::to_owned);
    let items = items.map(|item| format!("item:{item}"));
    server.ask_words(&words.chain(items).collect::<Vec<_>>()).ints()
}

fn pair() -> (Server, Server) {
    let (master, replica) = (Server::new(), Server::new());
    replica.follow(&master);
    (master, replica)
}

#[track_caller]
fn assert_same(master: &Server, replica: &Server) {
    replica.wait_for(master);
    assert_eq!(replica.digest(), master.digest());
}

#[test]
#[ignore = "cargo x test --foreign"]
fn seen_tells_each_item_once_among_many_clients() {
    let server = Server::new();
    server.ask("PETAL.RESERVE seen 0.0001 100000").ok();
    let new: usize = std::thread::scope(|scope| {
        let ask = |mut client: Client| {
            let mut seen = |item: &u32| client.ask(&format!("PETAL.SEEN seen item:{item}")).ints();
            (0..2000).map(|item| seen(&item)).filter(|seen| *seen == [0]).count()
        };
        let clients: Vec<_> = (0..4)
            .map(|_| server.client())
            .map(|client| scope.spawn(move || ask(client)))
            .collect();
        clients.into_iter().map(|client| client.join().unwrap()).sum()
    });
    // A false positive hides an item; nothing makes one new twice.
    assert!((1990..=2000).contains(&new), "{new} new");
    assert_eq!(server.ask("PETAL.SEEN none item").error(), "ERR not found");
}

#[test]
#[ignore = "cargo x test --foreign"]
fn a_window_of_items_forgets_and_its_replica_with_it() {
    let (master, replica) = pair();
    master.ask("PETAL.RESERVE last 0.01 100 TYPE window LAST").ok();
    // Items that come again are put where the new ones are: a change without a new item.
    for round in 0..40_u32 {
        many(&master, "PETAL.SEEN last", (0..30).map(|at| (round * 17 + at * at) % 400));
        many(&master, "BF.MADD last", (0..5).map(|at| round * 5 + at));
        master.ask(&format!("BF.ADD last item:{}", round % 3));
        assert_same(&master, &replica);
    }
    many(&master, "PETAL.SEEN last", 1000..2000);
    let old = many(&master, "BF.MEXISTS last", 1000..1500).iter().sum::<i64>();
    assert!(old < 50, "{old} of 500 are not forgotten");
    assert!(many(&master, "BF.MEXISTS last", 1900..2000).iter().all(|&yes| yes == 1));
    assert_same(&master, &replica);
}

#[test]
#[ignore = "cargo x test --foreign"]
fn a_window_of_time_forgets_and_its_replica_with_it() {
    let (master, replica) = pair();
    master.ask("PETAL.RESERVE recent 0.01 1000 TYPE window WINDOW 600ms").ok();
    for round in 0..20 {
        many(&master, "PETAL.SEEN recent", (0..10).map(|at| round * 3 + at));
        many(&master, "BF.MADD recent", (0..5).map(|at| round * 5 + at));
        master.ask(&format!("BF.ADD recent item:{}", round % 3));
        std::thread::sleep(std::time::Duration::from_millis(40));
        assert_same(&master, &replica);
    }
    master.ask("BF.ADD recent last");
    assert_eq!(replica_asks(&replica, &master, "BF.EXISTS recent last"), 1);
    until("it is forgotten", || master.ask("BF.EXISTS recent last").int() == 0);
    until("it is forgotten there too", || replica.ask("BF.EXISTS recent last").int() == 0);
    // Asking has changed nothing.
    assert_same(&master, &replica);
}

fn replica_asks(replica: &Server, master: &Server, line: &str) -> i64 {
    replica.wait_for(master);
    replica.ask(line).int()
}

#[test]
#[ignore = "cargo x test --foreign"]
fn logs_follow_windows_and_counts_to_the_bit() {
    let words = "--appendonly yes --appendfsync always --aof-use-rdb-preamble no";
    let mut server = Setup::new().words(words).start();
    server.ask("PETAL.RESERVE last 0.01 100 TYPE window LAST").ok();
    server.ask("PETAL.RESERVE recent 0.01 1000 TYPE window WINDOW 300ms GENERATIONS 3").ok();
    server.ask("PETAL.RESERVE counting 0.01 1000 TYPE counting").ok();
    for round in 0..30 {
        many(&server, "PETAL.SEEN last", (0..30).map(|at| (round * 17 + at * at) % 400));
        many(&server, "PETAL.SEEN recent", (0..9).map(|at| round * 3 + at));
        many(&server, "BF.MADD counting", (0..9).map(|at| round * 3 + at));
        many(&server, "PETAL.DEL counting", (0..9).map(|at| round * 2 + at));
        std::thread::sleep(std::time::Duration::from_millis(15));
    }
    let digest = server.digest();
    server.kill();
    server.start();
    assert_eq!(server.digest(), digest);
    aof::rewrite(&server);
    server.restart();
    assert_eq!(server.digest(), digest);
}

#[test]
#[ignore = "cargo x test --foreign"]
fn counting_filters_delete_and_count() {
    let (master, replica) = pair();
    master.ask("PETAL.RESERVE counting 0.001 1000 TYPE counting").ok();
    many(&master, "BF.MADD counting", 0..500);
    assert_eq!(many(&master, "PETAL.DEL counting", [0, 1, 9000].into_iter()), [1, 1, 0]);
    assert_eq!(many(&master, "BF.MEXISTS counting", 0..2), [0, 0]);
    assert!(many(&master, "BF.MEXISTS counting", 2..500).iter().all(|&yes| yes == 1));
    assert_eq!(many(&master, "PETAL.COUNT counting", [2, 0].into_iter()), [1, 0]);
    master.ask("BF.ADD bloom a");
    assert!(master.ask("PETAL.DEL bloom a").is_error());
    assert_same(&master, &replica);
}

#[test]
#[ignore = "cargo x test --foreign"]
fn filters_of_one_seed_are_merged_and_compared() {
    let (master, replica) = pair();
    for key in ["a{t}", "b{t}"] {
        master.ask(&format!("PETAL.RESERVE {key} 0.001 20000 NONSCALING SEED {SEED}")).ok();
    }
    many(&master, "BF.MADD a{t}", 0..6000);
    many(&master, "BF.MADD b{t}", 3000..9000);
    let overlap = master.ask("PETAL.COMPARE a{t} b{t}");
    let of = |name: &str| overlap.field(name).items()[0].text().parse::<f64>().unwrap();
    for (name, truth, off) in [
        ("left", 6000.0, 200.0),
        ("union", 9000.0, 200.0),
        ("intersection", 3000.0, 300.0),
        ("jaccard", 0.333, 0.05),
    ] {
        assert!((of(name) - truth).abs() < off, "{name}: {}", of(name));
    }
    master.ask("PETAL.MERGE both{t} a{t} b{t}").ok();
    assert!(many(&master, "BF.MEXISTS both{t}", 0..9000).iter().all(|&yes| yes == 1));
    master.ask("PETAL.MERGE a{t} b{t} a{t}").ok();
    assert!(many(&master, "BF.MEXISTS a{t}", 0..9000).iter().all(|&yes| yes == 1));
    assert_same(&master, &replica);
    // Another seed, another type, nothing there: refused, and nothing is changed.
    let digest = master.digest();
    master.ask("PETAL.RESERVE other{t} 0.001 20000 NONSCALING").ok();
    master.ask("PETAL.RESERVE grows{t} 0.001 20000").ok();
    master.ask("SET string{t} v").ok();
    for from in ["other{t}", "grows{t}", "string{t}", "gone{t}"] {
        assert!(master.ask(&format!("PETAL.MERGE a{{t}} b{{t}} {from}")).is_error(), "{from}");
        assert!(master.ask(&format!("PETAL.COMPARE a{{t}} {from}")).is_error(), "{from}");
    }
    master.ask("DEL other{t} grows{t} string{t}");
    assert_eq!(master.digest(), digest);
    assert_same(&master, &replica);
}

#[test]
#[ignore = "cargo x test --foreign"]
fn info_tells_what_there_is_in_both_protocols() {
    let server = Server::new();
    server.ask("PETAL.RESERVE recent 0.01 1000 TYPE window WINDOW 7d").ok();
    let info = server.ask("PETAL.INFO recent");
    assert!(info.items().len() >= 10, "{info:?}");
    let mut client = server.client();
    client.speak_resp3();
    for line in ["PETAL.INFO recent", "PETAL.INFO recent FULL"] {
        assert!(matches!(client.ask(line), crate::server::Reply::Map(_)), "{line}");
    }
}

#[test]
#[ignore = "cargo x test --foreign"]
fn many_small_windows_are_small() {
    let server = Server::new();
    let used = || server.info("used_memory").parse::<i64>().unwrap();
    let windows = 20_000;
    server.ask("CONFIG SET maxmemory 0").ok();
    // An empty module key's own part is what a string of the same name takes, about.
    let mut client = server.client();
    let lines = |line: fn(u32) -> String| (0..windows).map(line);
    let mut run = |line: fn(u32) -> String| {
        let commands: Vec<Vec<String>> =
            lines(line).map(|line| line.split(' ').map(str::to_owned).collect()).collect();
        let before = used();
        for commands in commands.chunks(1000) {
            assert!(client.pipeline(commands).iter().all(|reply| !reply.is_error()));
        }
        (used() - before) / i64::from(windows)
    };
    let empty = run(|number| format!("SET s:{number} x"));
    let each = run(|number| format!("PETAL.RESERVE w:{number} 0.01 200 TYPE window LAST"));
    // Four generations of 1 - 0.99^(1/4) each, which hold four thirds of the items.
    let bits = 1.3 * 200.0 * (5.0 / 4.0) * (1.0_f64 / (1.0 - 0.99_f64.powf(0.25))).log2()
        / std::f64::consts::LN_2;
    println!(
        "a window of 200: {each} bytes with its key; a string {empty}; bits {:.0}",
        bits / 8.0
    );
    assert!(((each - empty) as f64) < bits / 8.0 + 100.0 + 16.0);
}
