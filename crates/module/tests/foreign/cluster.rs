//! A cluster of three masters: redirections, slots that move while clients write, and unions over all nodes.

use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::sample_filters;
use crate::server::{Cluster, Reply, Server, Setup, program, slot};

#[test]
#[ignore = "cargo x test --foreign"]
fn key_is_served_by_one_master() {
    let cluster = Cluster::new();
    let owner =
        cluster.nodes.iter().filter(|node| !node.call("BF.ADD key item").is_error()).count();
    assert_eq!(owner, 1);
    let away = cluster.nodes.iter().filter_map(|node| match node.call("BF.EXISTS key item") {
        Reply::Error(error) => Some(error),
        _ => None,
    });
    assert!(away.into_iter().all(|error| error.starts_with("MOVED ")));
    // A command with several keys needs them in one slot.
    assert_eq!(slot(b"{user1}.a"), slot(b"{user1}.b"));
    let theirs = cluster.nodes[0].call("CLUSTER KEYSLOT {user1}.a").int();
    assert_eq!(theirs, i64::from(slot(b"{user1}.a")));
}

#[test]
#[ignore = "cargo x test --foreign"]
fn no_item_is_lost_while_slots_move() {
    write_while_slots_move(&Cluster::new(), Cluster::move_slot);
}

#[test]
#[ignore = "cargo x test --foreign"]
fn no_item_is_lost_while_slots_move_atomically() {
    let info = Server::new().call("COMMAND INFO cluster|migrateslots");
    if !matches!(info.items()[0], Reply::Array(_)) {
        println!("skipped: this server has no atomic slot migration");
        return;
    }
    for setup in [Setup::new, Setup::redisbloom_layout] {
        let cluster = Cluster::of(setup);
        let (home, owner) = write_while_slots_move(&cluster, Cluster::migrate_slot);
        let to = (owner + 1) % cluster.nodes.len();
        // Filters that another node accepted before are not checked.
        cluster.nodes[to].call("CONFIG SET petal.memory-limit 1kb").ok();
        let digest = cluster.nodes[owner].digest();
        cluster.migrate_slot(home, owner, to);
        assert_eq!(cluster.nodes[to].digest(), digest);
        assert_eq!(cluster.nodes[owner].call("DBSIZE").int(), 0);
    }
}

/// Adds items to filters of every type while their slot moves from node to node. Returns the slot
/// and its last owner.
fn write_while_slots_move(
    cluster: &Cluster,
    move_slot: impl Fn(&Cluster, u16, usize, usize),
) -> (u16, usize) {
    // One slot for all keys, so that every move includes every type.
    let tag = "{moving}";
    let home = slot(&tag.as_bytes()[1..tag.len() - 1]);
    let mut first = cluster.client();
    for line in sample_filters::reserve_commands(tag) {
        first.call(&line).ok();
    }
    let keys = sample_filters::keys_with_suffix(tag);
    let done = AtomicBool::new(false);
    let mut client = cluster.client();
    let mut owner = cluster.owner(home);
    let added = std::thread::scope(|scope| {
        let done = &done;
        let keys = &keys;
        let writer = scope.spawn(move || {
            let mut added = 0_usize;
            while !done.load(Relaxed) {
                for (key, family, _) in keys {
                    let reply = client.call(&format!("{family}.ADD {key} item:{added}"));
                    assert!(!reply.is_error(), "{key}: {reply:?}");
                    let reply = client.call(&format!("{family}.EXISTS {key} item:{added}"));
                    assert_eq!(reply.int(), 1, "{key} lost item:{added}");
                }
                added += 1;
            }
            added
        });
        // Also stops the writer if a move fails.
        let _stop = Stop(done);
        for _ in 0..12 {
            let to = (owner + 1) % 3;
            move_slot(cluster, home, owner, to);
            owner = to;
            std::thread::sleep(std::time::Duration::from_millis(30));
        }
        done.store(true, Relaxed);
        writer.join().unwrap()
    });
    println!("{added} items added to {} keys during twelve moves", keys.len());
    assert!(added > 0);
    for (key, family, holds) in keys {
        for item in added.saturating_sub(holds)..added {
            assert_eq!(first.call(&format!("{family}.EXISTS {key} item:{item}")).int(), 1, "{key}");
        }
    }
    (home, owner)
}

#[test]
#[ignore = "cargo x test --foreign"]
fn union_over_all_nodes_equals_a_filter_of_all_items() {
    let cluster = Cluster::new();
    let mut client = cluster.client();
    let parts = ["seen:{0}", "seen:{1}", "seen:{3}"];
    let all = [&parts[..], &["direct"]].concat();
    for key in &all {
        let options = "NONSCALING SEED 000102030405060708090a0b0c0d0e0f";
        client.call(&format!("PETAL.RESERVE {key} 0.01 3000 {options}")).ok();
    }
    let mut owners: Vec<_> =
        parts.iter().map(|part| cluster.owner(slot(&part.as_bytes()[6..7]))).collect();
    owners.sort_unstable();
    assert_eq!(owners, [0, 1, 2], "each part is on another node");
    for item in 0..3000 {
        client.call(&format!("BF.ADD {} item:{item}", parts[item % 3])).int();
        client.call(&format!("BF.ADD direct item:{item}")).int();
    }

    let output = union(&cluster, &["{all}", parts[0], parts[1], parts[2]]);
    let problem = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{problem}");

    let others =
        (0..20).map(|batch| (batch * 1000..).take(1000).map(|item| format!("item:{item}")));
    let mut found = 0;
    for items in others {
        let items = items.collect::<Vec<_>>().join(" ");
        let union = client.call(&format!("BF.MEXISTS {{all}} {items}")).ints();
        assert_eq!(union, client.call(&format!("BF.MEXISTS direct {items}")).ints());
        found += union.iter().sum::<i64>();
    }
    assert!((3000..4000).contains(&found), "{found}");
    for part in parts {
        assert_eq!(client.call(&format!("EXISTS {part}:copy")).int(), 0, "a copy is left");
    }

    let output = union(&cluster, &["{none}", parts[0], "{missing}"]);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "{missing}: no such key\n");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(client.call("EXISTS {none}").int(), 0);
}

/// Runs the program `union.py` of the release.
fn union(cluster: &Cluster, args: &[&str]) -> Output {
    let script =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/redis/archive/tools/union.py");
    // Cargo builds `petal` beside the folder of the tests.
    let built = std::env::current_exe().unwrap();
    let built = built.parent().and_then(|deps| deps.parent()).unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    Command::new(program("python/bin/python"))
        .arg(script)
        .args(args)
        .env("PATH", format!("{}:{path}", built.display()))
        .env("REDIS_URL", format!("redis://127.0.0.1:{}", cluster.nodes[0].port()))
        .output()
        .unwrap()
}

/// Sets the flag when it is dropped.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}
