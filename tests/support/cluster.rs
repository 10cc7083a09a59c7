//! A Redis Cluster on loopback: some masters, and for each of them a replica.

use std::collections::HashSet;

use parking_lot::Mutex;
use redis::Value;

use super::wait::{SOON, eventually};
use super::{Flavor, Server, ServerBuilder};

const SLOTS: u16 = 16_384;

/// A running cluster. The first `masters` nodes began as masters, the others as their replicas, in the same order.
pub struct Cluster {
    nodes: Vec<Server>,
    masters: usize,
    /// One slot moves at a time: the epochs of two moves at once may collide, and then nodes disagree for good.
    moving: Mutex<()>,
}

impl Cluster {
    /// Starts masters that have all slots between them, and waits until all agree. With replicas, each master has one.
    pub fn start(flavor: Flavor, masters: usize, with_replicas: bool) -> Cluster {
        Cluster::start_with(masters, with_replicas, || Server::builder(flavor))
    }

    /// As [`Cluster::start`], of servers that are told by `builder` what else they are.
    pub fn start_with(masters: usize, with_replicas: bool, builder: impl Fn() -> ServerBuilder) -> Cluster {
        let count = if with_replicas { 2 * masters } else { masters };
        let nodes: Vec<Server> = (0..count).map(|_| node(builder())).collect();
        let cluster = Cluster { nodes, masters, moving: Mutex::new(()) };
        for (epoch, node) in (1..).zip(&cluster.nodes) {
            run(node, &["SET-CONFIG-EPOCH", &epoch.to_string()]);
        }
        for (index, node) in cluster.nodes[..masters].iter().enumerate() {
            let share = |index: usize| index * usize::from(SLOTS) / masters;
            let slots: Vec<String> = (share(index)..share(index + 1)).map(|slot| slot.to_string()).collect();
            let words: Vec<&str> = ["ADDSLOTS"].into_iter().chain(slots.iter().map(String::as_str)).collect();
            run(node, &words);
        }
        let first = cluster.nodes[0].told_port().to_string();
        cluster.nodes[1..].iter().for_each(|node| drop(run(node, &["MEET", "127.0.0.1", &first])));
        eventually("all nodes know each other", SOON, || cluster.nodes.iter().all(|node| nodes_known(node) == count));
        for (master, replica) in cluster.nodes[..masters].iter().zip(&cluster.nodes[masters..]) {
            run(replica, &["REPLICATE", &id(master)]);
        }
        cluster.wait_until_settled();
        cluster
    }

    /// All masters, as a user would give them.
    pub fn url(&self) -> String {
        let nodes: Vec<String> = self.nodes[..self.masters].iter().map(|n| format!("127.0.0.1:{}", n.port())).collect();
        format!("redis-cluster://{}", nodes.join(","))
    }

    /// All masters, by TLS.
    pub fn tls_url(&self) -> String {
        let nodes: Vec<String> =
            self.nodes[..self.masters].iter().map(|n| format!("127.0.0.1:{}", n.tls_port())).collect();
        format!("rediss-cluster://{}", nodes.join(","))
    }

    pub fn node(&self, index: usize) -> &Server {
        &self.nodes[index]
    }

    /// The node that began as the replica of this one.
    pub fn replica_of(&self, master: usize) -> usize {
        master + self.masters
    }

    /// The master of a limiter's slot, as `asked` sees it.
    pub fn owner(&self, limiter: &str, asked: usize) -> Option<usize> {
        let slot = self.slot(limiter, asked);
        let port = owners(&self.nodes[asked]).into_iter().find(|(a, b, _)| (*a..=*b).contains(&slot))?.2;
        self.nodes.iter().position(|node| node.port() == port)
    }

    /// A limiter's name that begins with `prefix` and lives on this master.
    pub fn name_on(&self, prefix: &str, master: usize) -> String {
        let names = (0..).map(|number| format!("{prefix}-{number}"));
        let mut names = names.take(10_000);
        names.find(|name| self.owner(name, master) == Some(master)).expect("the master has slots")
    }

    pub fn slot(&self, limiter: &str, asked: usize) -> u16 {
        let Value::Int(slot) = run(&self.nodes[asked], &["KEYSLOT", &format!("fq:{{{limiter}}}")]) else {
            panic!("no slot");
        };
        slot as u16
    }

    /// Moves a slot with all its keys, as resharding does.
    pub fn move_slot(&self, slot: u16, from: usize, to: usize) {
        self.move_slot_watched(slot, from, to, || {}, || {});
    }

    /// As [`Cluster::move_slot`]; calls `half_way` when half of the keys are moved, and `with_keys` when all are, but the
    /// slot is not yet.
    pub fn move_slot_watched(
        &self,
        slot: u16,
        from: usize,
        to: usize,
        half_way: impl FnOnce(),
        with_keys: impl FnOnce(),
    ) {
        let _moving = self.moving.lock();
        // Or the target does not know that it has to raise its own, and messages of before the move undo it.
        eventually("all masters know one another's epochs", SOON, || {
            let views: HashSet<Vec<(String, String)>> = self.nodes[..self.masters].iter().map(epochs).collect();
            views.len() == 1
        });
        let (source, target) = (&self.nodes[from], &self.nodes[to]);
        let slot = slot.to_string();
        run(target, &["SETSLOT", &slot, "IMPORTING", &id(source)]);
        run(source, &["SETSLOT", &slot, "MIGRATING", &id(target)]);
        let keys = || -> Vec<String> {
            let mut list = redis::cmd("CLUSTER");
            list.arg("GETKEYSINSLOT").arg(&slot).arg(1000);
            list.query(&mut source.conn()).expect("list the keys of a slot")
        };
        let first = keys();
        migrate(source, target, &first[..first.len() / 2]);
        half_way();
        // More may have come, or gone.
        loop {
            let left = keys();
            if left.is_empty() {
                break;
            }
            migrate(source, target, &left);
        }
        with_keys();
        // The new owner has to know it before the old one forgets it.
        let others = self.nodes[..self.masters].iter().enumerate().filter(|(index, _)| ![from, to].contains(index));
        for node in [target, source].into_iter().chain(others.map(|(_, node)| node)) {
            run(node, &["SETSLOT", &slot, "NODE", &id(target)]);
        }
        let (slot, port) = (slot.parse().expect("a number"), target.port());
        let owner = |node| owners(node).into_iter().find(|(a, b, _)| (*a..=*b).contains(&slot)).map(|row| row.2);
        eventually("all masters agree on the slot", SOON, || {
            self.nodes[..self.masters].iter().all(|node| owner(node) == Some(port))
        });
    }

    /// Has a replica take its master's place, in agreement with it.
    pub fn fail_over(&self, master: usize) {
        let replica = self.replica_of(master);
        eventually("the replica takes over", SOON, || {
            // Refused while the master is not known to be up.
            let _ = redis::cmd("CLUSTER").arg("FAILOVER").exec(&mut self.nodes[replica].conn());
            is_master(&self.nodes[replica])
        });
    }

    pub fn is_master(&self, node: usize) -> bool {
        is_master(&self.nodes[node])
    }

    /// Waits until every node says that all is well, all have the same view, and the replicas replicate.
    pub fn wait_until_settled(&self) {
        eventually("the cluster has settled", 2 * SOON, || {
            let views: HashSet<Vec<(u16, u16, u16)>> = self.nodes.iter().map(owners).collect();
            let well = self.nodes.iter().all(|node| info(node).contains("cluster_state:ok"));
            let linked = self.nodes.iter().all(|node| {
                let info = node.info("replication");
                info.contains("role:master") || info.contains("master_link_status:up")
            });
            views.len() == 1 && well && linked
        });
    }
}

fn node(builder: ServerBuilder) -> Server {
    let builder = builder.of_cluster();
    let builder = builder.arg("--cluster-node-timeout", "1500").arg("--repl-diskless-sync-delay", "0");
    builder.arg("--cluster-replica-validity-factor", "0").start()
}

fn run(node: &Server, words: &[&str]) -> Value {
    let result = redis::cmd("CLUSTER").arg(words).query(&mut node.conn());
    result.unwrap_or_else(|error| panic!("CLUSTER {}: {error}", words[0]))
}

/// The epoch of each node, as this one knows it.
fn epochs(node: &Server) -> Vec<(String, String)> {
    let text: String = redis::cmd("CLUSTER").arg("NODES").query(&mut node.conn()).unwrap_or_default();
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let mut all: Vec<_> =
        text.lines().map(words).filter(|row| row.len() > 6).map(|row| (row[0].clone(), row[6].clone())).collect();
    all.sort();
    all
}

fn info(node: &Server) -> String {
    redis::cmd("CLUSTER").arg("INFO").query(&mut node.conn()).unwrap_or_default()
}

fn nodes_known(node: &Server) -> usize {
    let text: String = redis::cmd("CLUSTER").arg("NODES").query(&mut node.conn()).unwrap_or_default();
    text.lines().filter(|line| !line.contains("handshake")).count()
}

fn id(node: &Server) -> String {
    redis::cmd("CLUSTER").arg("MYID").query(&mut node.conn()).expect("a node has an id")
}

fn is_master(node: &Server) -> bool {
    node.info("replication").contains("role:master")
}

/// First slot, last slot, port of the master; in order.
fn owners(node: &Server) -> Vec<(u16, u16, u16)> {
    type Row = (u16, u16, (String, u16));
    let rows: Vec<Value> = redis::cmd("CLUSTER").arg("SLOTS").query(&mut node.conn()).unwrap_or_default();
    let read = |row: Value| {
        let Value::Array(mut cells) = row else { return None };
        cells.truncate(3);
        if let Some(Value::Array(master)) = cells.get_mut(2) {
            master.truncate(2);
        }
        let (first, last, (_, port)): Row = redis::from_redis_value(Value::Array(cells)).ok()?;
        Some((first, last, port))
    };
    let mut owners: Vec<_> = rows.into_iter().filter_map(read).collect();
    owners.sort_unstable();
    owners
}

fn migrate(source: &Server, target: &Server, keys: &[String]) {
    if keys.is_empty() {
        return;
    }
    let mut migrate = redis::cmd("MIGRATE");
    migrate.arg("127.0.0.1").arg(target.port()).arg("").arg(0).arg(5000).arg("KEYS").arg(keys);
    migrate.exec(&mut source.conn()).expect("MIGRATE");
}
