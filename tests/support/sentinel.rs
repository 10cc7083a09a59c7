//! A master with two replicas, watched by three sentinels, on loopback.

use std::collections::HashMap;

use super::wait::{SOON, eventually};
use super::{Flavor, Server, ServerBuilder};

/// The name of the service.
pub const SERVICE: &str = "main";

/// A watched service. The first server began as the master.
pub struct Watched {
    pub servers: Vec<Server>,
    pub sentinels: Vec<Server>,
}

impl Watched {
    /// Starts everything, and waits until the sentinels know of each other and of the replicas. `arg` is an option of the
    /// servers.
    pub fn start(flavor: Flavor, args: &[(&str, &str)]) -> Watched {
        Watched::start_with(args, || Server::builder(flavor))
    }

    /// As [`Watched::start`], of servers and sentinels that are told by `kind` what else they are.
    pub fn start_with(args: &[(&str, &str)], kind: impl Fn() -> ServerBuilder) -> Watched {
        let builder = || {
            let builder = kind().arg("--repl-diskless-sync-delay", "0");
            args.iter().fold(builder, |builder, (option, value)| builder.arg(option, value))
        };
        let master = builder().start();
        let port = master.told_port().to_string();
        let replica = || {
            let server = builder().start();
            redis::cmd("REPLICAOF").arg("127.0.0.1").arg(&port).exec(&mut server.conn()).expect("REPLICAOF");
            server
        };
        let servers = vec![master, replica(), replica()];
        eventually("the replicas replicate", SOON, || servers[0].info("replication").contains("connected_slaves:2"));
        let up = |server: &Server| server.info("replication").contains("master_link_status:up");
        eventually("the replicas are up to date", SOON, || servers[1..].iter().all(up));
        let lines = format!(
            "sentinel monitor {SERVICE} 127.0.0.1 {port} 2\nsentinel down-after-milliseconds {SERVICE} 800\n\
             sentinel failover-timeout {SERVICE} 3000\nsentinel parallel-syncs {SERVICE} 2\n"
        );
        let sentinels = (0..3).map(|_| kind().sentinel(&lines).start()).collect();
        let watched = Watched { servers, sentinels };
        watched.wait_until_known();
        watched
    }

    pub fn url(&self) -> String {
        self.url_by(&self.sentinel_list())
    }

    /// By other addresses that lead to the sentinels.
    pub fn url_by(&self, sentinels: &str) -> String {
        format!("redis-sentinel://{sentinels}/{SERVICE}")
    }

    pub fn tls_url(&self) -> String {
        let addresses: Vec<String> = self.sentinels.iter().map(|s| format!("127.0.0.1:{}", s.tls_port())).collect();
        format!("rediss-sentinel://{}/{SERVICE}", addresses.join(","))
    }

    pub fn sentinel_list(&self) -> String {
        let addresses: Vec<String> = self.sentinels.iter().map(|s| format!("127.0.0.1:{}", s.port())).collect();
        addresses.join(",")
    }

    /// The server that a sentinel takes for the master.
    pub fn master(&self, sentinel: usize) -> usize {
        let port = details(&self.sentinels[sentinel]).get("port").and_then(|port| port.parse().ok());
        self.servers.iter().position(|server| Some(server.told_port()) == port).expect("one of ours")
    }

    /// Waits until all sentinels that run take another server than `old` for the master, and it is one.
    pub fn wait_for_another(&self, old: usize, sentinels: &[usize]) -> usize {
        eventually("the sentinels have chosen another master", 2 * SOON, || {
            let masters: Vec<usize> = sentinels.iter().map(|sentinel| self.master(*sentinel)).collect();
            masters[0] != old && masters.iter().all(|master| *master == masters[0]) && self.role(masters[0]) == "master"
        });
        self.master(sentinels[0])
    }

    /// What `ROLE` says; empty while the server closes its connections, as it does when it is made a replica.
    pub fn role(&self, server: usize) -> String {
        let ask = |mut conn| redis::cmd("ROLE").query::<Vec<redis::Value>>(&mut conn);
        let reply = self.servers[server].try_conn().and_then(ask);
        let first = reply.ok().and_then(|cells| cells.into_iter().next());
        first.and_then(|word| redis::from_redis_value(word).ok()).unwrap_or_default()
    }

    fn wait_until_known(&self) {
        eventually("the sentinels know of everybody", 2 * SOON, || {
            self.sentinels.iter().all(|sentinel| {
                let details = details(sentinel);
                let says = |key: &str, value: &str| details.get(key).is_some_and(|found| found == value);
                says("num-slaves", "2") && says("num-other-sentinels", "2") && says("flags", "master")
            })
        });
    }
}

fn details(sentinel: &Server) -> HashMap<String, String> {
    redis::cmd("SENTINEL").arg("MASTER").arg(SERVICE).query(&mut sentinel.conn()).unwrap_or_default()
}
