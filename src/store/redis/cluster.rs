//! What the nodes of a Redis Cluster say about who has which slots.

use redis::{Connection, Value};

use super::access::Whom;
use super::connect::{RedisOptions, at};
use super::fault;
use super::lookout::{PATIENCE, better};
use super::slots::View;
use super::url::Address;
use crate::store::StoreError;

/// Asks nodes, one after the other, until one has a view that is not older than what is known (`epoch`); failing that,
/// takes the best.
pub(super) fn look(options: &RedisOptions, nodes: &[Address], epoch: u64) -> Result<(View, Address), StoreError> {
    let mut best: Option<(View, Address)> = None;
    let mut failed = StoreError::away("no node of the cluster is known");
    for node in nodes {
        match ask(options, node) {
            Ok(view) if view.settled && view.epoch >= epoch => return Ok((view, node.clone())),
            Ok(view) => best = better(best, (view, node.clone())),
            Err(error) => failed = error,
        }
    }
    best.ok_or(failed)
}

fn ask(options: &RedisOptions, node: &Address) -> Result<View, StoreError> {
    let patience = options.connect_timeout.min(PATIENCE);
    let asked =
        options.connect_briefly(Whom::Server, node, patience).and_then(|mut connection| view_of(&mut connection, node));
    asked.map_err(|error| at(node, error))
}

/// The view of the node at the other end, whose address is `node`.
pub(super) fn view_of(connection: &mut Connection, node: &Address) -> Result<View, StoreError> {
    let both = redis::pipe().cmd("CLUSTER").arg("INFO").cmd("CLUSTER").arg("SLOTS").clone();
    let (info, slots): (String, Value) = both.query(connection).map_err(|e| fault::of_connect(&e))?;
    let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim);
    let epoch = field("cluster_current_epoch").and_then(|epoch| epoch.parse().ok()).unwrap_or(0);
    let settled = field("cluster_state") == Some("ok");
    let parts = parts(slots, node);
    if parts.is_empty() {
        return Err(StoreError::away("it is no node of a cluster with slots"));
    }
    Ok(View { epoch, settled, parts })
}

fn parts(slots: Value, node: &Address) -> Vec<(Address, Vec<(u16, u16)>)> {
    let mut parts: Vec<(Address, Vec<(u16, u16)>)> = Vec::new();
    let Value::Array(rows) = slots else { return parts };
    for (master, range) in rows.into_iter().filter_map(|row| part(row, node)) {
        match parts.iter_mut().find(|(address, _)| *address == master) {
            Some((_, ranges)) => ranges.push(range),
            None => parts.push((master, vec![range])),
        }
    }
    parts
}

/// One row: first slot, last slot, the master, its replicas.
fn part(row: Value, node: &Address) -> Option<(Address, (u16, u16))> {
    let Value::Array(row) = row else { return None };
    let [Value::Int(first), Value::Int(last), Value::Array(master), ..] = &row[..] else { return None };
    let [host, Value::Int(port), ..] = &master[..] else { return None };
    let host = match host {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok()?,
        Value::SimpleString(text) => text,
        _ => "",
    };
    let range = (u16::try_from(*first).ok()?, u16::try_from(*last).ok()?);
    Some((named(host, u16::try_from(*port).ok()?, node), range))
}

/// A node that does not know its host's name, or is not to tell it, means the one by which it was reached.
pub(super) fn named(host: &str, port: u16, node: &Address) -> Address {
    match node {
        Address::At { host: reached, .. } if matches!(host, "" | "?") => Address::at(reached, port),
        _ => Address::at(host, port),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    #[test]
    fn rows_are_gathered_by_master() {
        let node = |host, port| Value::Array(vec![text(host), Value::Int(port), text("id")]);
        let row = |a, b, master| Value::Array(vec![Value::Int(a), Value::Int(b), master, node("r", 9)]);
        let rows = vec![row(0, 9, node("a", 1)), row(10, 19, node("", 2)), row(20, 29, node("a", 1)), text("?")];
        let here = Address::at("here", 7);
        let [(a, ranges), (b, _)] = &parts(Value::Array(rows), &here)[..] else { panic!("two masters") };
        assert_eq!((a, &ranges[..]), (&Address::at("a", 1), &[(0, 9), (20, 29)][..]));
        assert_eq!(b, &Address::at("here", 2));
    }
}
