//! Three masters: keys are where they belong, and move while clients write.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::server::{Cluster, slot};
use crate::zoo;

#[test]
#[ignore = "cargo x test --foreign"]
fn a_key_belongs_to_one_master() {
    let cluster = Cluster::new();
    let owner = cluster.nodes.iter().filter(|node| !node.ask("BF.ADD key item").is_error()).count();
    assert_eq!(owner, 1);
    let away = cluster.nodes.iter().filter_map(|node| match node.ask("BF.EXISTS key item") {
        crate::server::Reply::Error(error) => Some(error),
        _ => None,
    });
    assert!(away.into_iter().all(|error| error.starts_with("MOVED ")));
    // A command with several keys needs them in one slot: see zoo's own for those that have.
    assert_eq!(slot(b"{user1}.a"), slot(b"{user1}.b"));
    let theirs = cluster.nodes[0].ask("CLUSTER KEYSLOT {user1}.a").int();
    assert_eq!(theirs, i64::from(slot(b"{user1}.a")));
}

#[test]
#[ignore = "cargo x test --foreign"]
fn slots_move_while_a_client_writes_and_nothing_is_lost() {
    let cluster = Cluster::new();
    // One slot for all of them, so that every move takes every kind.
    let tag = "{moving}";
    let home = slot(&tag.as_bytes()[1..tag.len() - 1]);
    let mut first = cluster.client();
    for line in zoo::lines_that_make(tag) {
        first.ask(&line).ok();
    }
    let keys = zoo::keys_with(tag);
    let done = AtomicBool::new(false);
    let mut client = cluster.client();
    let added = std::thread::scope(|scope| {
        let done = &done;
        let keys = &keys;
        let writer = scope.spawn(move || {
            let mut added = 0_usize;
            while !done.load(Relaxed) {
                for (key, family, _) in keys {
                    let reply = client.ask(&format!("{family}.ADD {key} item:{added}"));
                    assert!(!reply.is_error(), "{key}: {reply:?}");
                    let reply = client.ask(&format!("{family}.EXISTS {key} item:{added}"));
                    assert_eq!(reply.int(), 1, "{key} lost item:{added}");
                }
                added += 1;
            }
            added
        });
        // Also when a move fails, or the writer would go on forever.
        let _stop = Stop(done);
        let mut from = cluster.owner(home);
        for _ in 0..12 {
            let to = (from + 1) % 3;
            cluster.move_slot(home, from, to);
            from = to;
            std::thread::sleep(std::time::Duration::from_millis(30));
        }
        done.store(true, Relaxed);
        writer.join().unwrap()
    });
    println!("{added} items were added to {} keys during twelve moves", keys.len());
    assert!(added > 0);
    for (key, family, holds) in keys {
        for item in added.saturating_sub(holds)..added {
            assert_eq!(first.ask(&format!("{family}.EXISTS {key} item:{item}")).int(), 1, "{key}");
        }
    }
}

/// Tells that it is done when it is dropped.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}
