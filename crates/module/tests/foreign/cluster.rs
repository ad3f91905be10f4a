//! A cluster of three masters: redirections, and slots that move while clients write.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::sample_filters;
use crate::server::{Cluster, slot};

#[test]
#[ignore = "cargo x test --foreign"]
fn key_is_served_by_one_master() {
    let cluster = Cluster::new();
    let owner =
        cluster.nodes.iter().filter(|node| !node.call("BF.ADD key item").is_error()).count();
    assert_eq!(owner, 1);
    let away = cluster.nodes.iter().filter_map(|node| match node.call("BF.EXISTS key item") {
        crate::server::Reply::Error(error) => Some(error),
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
    let cluster = Cluster::new();
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
    println!("{added} items added to {} keys during twelve moves", keys.len());
    assert!(added > 0);
    for (key, family, holds) in keys {
        for item in added.saturating_sub(holds)..added {
            assert_eq!(first.call(&format!("{family}.EXISTS {key} item:{item}")).int(), 1, "{key}");
        }
    }
}

/// Sets the flag when it is dropped.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}
