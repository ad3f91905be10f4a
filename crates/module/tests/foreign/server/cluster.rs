//! A cluster of three masters, each with a third of the slots.

use std::collections::HashMap;

use super::{Client, Reply, Server, Setup, wait_until};

const SLOTS: u16 = 16_384;

pub(crate) struct Cluster {
    pub(crate) nodes: Vec<Server>,
}

impl Cluster {
    pub(crate) fn new() -> Self {
        Self::of(Setup::new)
    }

    /// Starts a cluster of nodes with this setup.
    pub(crate) fn of(setup: impl Fn() -> Setup) -> Self {
        let args = "--cluster-enabled yes --cluster-node-timeout 5000";
        let nodes: Vec<_> = (0..3).map(|_| setup().args(args).start()).collect();
        for (part, node) in nodes.iter().enumerate() {
            let slot = |part| SLOTS as usize * part / 3;
            let (first, last) = (slot(part), slot(part + 1) - 1);
            node.call(&format!("CLUSTER ADDSLOTSRANGE {first} {last}")).ok();
            node.call(&format!("CLUSTER SET-CONFIG-EPOCH {}", part + 1)).ok();
        }
        for node in &nodes[1..] {
            nodes[0].call(&format!("CLUSTER MEET 127.0.0.1 {}", node.port())).ok();
        }
        wait_until("the cluster is whole", || {
            nodes.iter().all(|node| {
                let info = node.call("CLUSTER INFO").text();
                info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3")
            })
        });
        Self { nodes }
    }

    /// Returns a client that follows redirections.
    pub(crate) fn client(&self) -> ClusterClient {
        let ports = self.nodes.iter().map(Server::port).collect();
        ClusterClient { ports, owners: HashMap::new(), clients: HashMap::new() }
    }

    /// Returns the node with keys of a slot.
    pub(crate) fn owner(&self, slot: u16) -> usize {
        let slot = format!("CLUSTER COUNTKEYSINSLOT {slot}");
        self.nodes.iter().position(|node| node.call(&slot).int() > 0).expect("a slot with keys")
    }

    /// Moves a slot with all its keys by one command: Valkey 9.
    pub(crate) fn migrate_slot(&self, slot: u16, from: usize, to: usize) {
        let target = self.nodes[to].call("CLUSTER MYID").text();
        let source = &self.nodes[from];
        let line = format!("CLUSTER MIGRATESLOTS SLOTSRANGE {slot} {slot} NODE {target}");
        source.call(&line).ok();
        wait_until("the slot is moved", || {
            let migrations = source.call("CLUSTER GETSLOTMIGRATIONS");
            // The newest is the first.
            let state = migrations.items()[0].field("state").text();
            assert!(state != "failed" && state != "cancelled", "{migrations:?}");
            state == "success"
        });
    }

    /// Moves a slot with all its keys, like redis-cli.
    pub(crate) fn move_slot(&self, slot: u16, from: usize, to: usize) {
        let id = |node: usize| self.nodes[node].call("CLUSTER MYID").text();
        let (from_id, to_id) = (id(from), id(to));
        let (from, to) = (&self.nodes[from], &self.nodes[to]);
        to.call(&format!("CLUSTER SETSLOT {slot} IMPORTING {from_id}")).ok();
        from.call(&format!("CLUSTER SETSLOT {slot} MIGRATING {to_id}")).ok();
        loop {
            let keys = from.call(&format!("CLUSTER GETKEYSINSLOT {slot} 10"));
            if keys.items().is_empty() {
                break;
            }
            let port = to.port().to_string();
            let mut args = ["MIGRATE", "127.0.0.1", &port, "", "0", "10000", "KEYS"]
                .map(|arg| arg.as_bytes().to_vec())
                .to_vec();
            args.extend(keys.items().iter().map(|key| key.bytes().to_vec()));
            from.call_args(&args).ok();
        }
        for node in &self.nodes {
            node.call(&format!("CLUSTER SETSLOT {slot} NODE {to_id}")).ok();
        }
    }
}

/// A client that follows redirections.
pub(crate) struct ClusterClient {
    ports: Vec<u16>,
    owners: HashMap<u16, u16>,
    clients: HashMap<u16, Client>,
}

impl ClusterClient {
    /// Sends a command whose second argument is the key.
    pub(crate) fn call(&mut self, line: &str) -> Reply {
        let args: Vec<_> = line.split_whitespace().collect();
        let slot = slot(args[1].as_bytes());
        let mut port = *self.owners.get(&slot).unwrap_or(&self.ports[0]);
        let mut asking = false;
        for _ in 0..100 {
            let client = self.clients.entry(port).or_insert_with(|| Client::connect(port).unwrap());
            if asking {
                client.call("ASKING").ok();
            }
            let reply = client.call_args(&args);
            let Reply::Error(error) = &reply else { return reply };
            let mut parts = error.split(' ');
            asking = parts.next() == Some("ASK");
            if !asking && !error.starts_with("MOVED") {
                // During a move some keys are on the source and some on the target.
                assert!(!error.starts_with("TRYAGAIN"), "a command of one key: {error}");
                return reply;
            }
            let place = parts.nth(1).unwrap();
            port = place.rsplit(':').next().unwrap().parse().unwrap();
            if !asking {
                self.owners.insert(slot, port);
            }
        }
        panic!("too many redirections: {line}");
    }
}

/// Returns the slot of a key: CRC16 (polynomial 0x1021) of its {tag}, or of the whole key.
pub(crate) fn slot(key: &[u8]) -> u16 {
    let tag = key.iter().position(|&byte| byte == b'{').and_then(|open| {
        let length = key[open + 1..].iter().position(|&byte| byte == b'}')?;
        (length > 0).then(|| &key[open + 1..open + 1 + length])
    });
    let crc = tag.unwrap_or(key).iter().fold(0u16, |crc, &byte| {
        (0..8).fold(crc ^ (u16::from(byte) << 8), |crc, _| {
            if crc & 0x8000 != 0 { (crc << 1) ^ 0x1021 } else { crc << 1 }
        })
    });
    crc % SLOTS
}
