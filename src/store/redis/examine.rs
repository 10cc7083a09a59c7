//! What operators ask: whether the servers are fit, and which limiters there are. On a connection of its own to each
//! master; blocks.

use std::sync::Arc;

use redis::Connection;

use super::connect::{self, RedisOptions, Tested, at};
use super::lookout::Lookout;
use super::map::Map;
use super::url::{Address, Layout};
use super::{fault, keys};
use crate::jitter;
use crate::status::ServerInfo;
use crate::store::StoreError;

/// All masters, by what somebody says who was asked just now.
fn masters(options: &RedisOptions) -> Result<Map, StoreError> {
    let mut map = Map::new(options.layout());
    let view = Lookout::new(options.clone()).look_closely()?;
    map.learn(&view);
    Ok(map)
}

/// A connection to each master, with its name.
pub(super) fn connect_all(options: &RedisOptions) -> Result<Vec<(Address, Connection)>, StoreError> {
    let masters = masters(options)?.masters();
    masters.into_iter().map(|address| options.connect(&address).map(|connection| (address, connection))).collect()
}

/// A connection to one of the masters, and a name that begins with `prefix` of a limiter that lives there.
pub(super) fn connect_first(options: &RedisOptions, prefix: &str) -> Result<(Connection, String), StoreError> {
    let map = masters(options)?;
    let node = map.nodes().first().ok_or_else(|| StoreError::away("no master is known"))?;
    let name = map.name_on(node, prefix).ok_or_else(|| StoreError::away("a master has no slots"))?;
    Ok((options.connect(&node.address)?, name))
}

/// Looks at every master. What it says of one of several is about the worst of them.
pub(super) fn check(options: &RedisOptions, instance: &Arc<str>) -> Result<ServerInfo, StoreError> {
    let map = masters(options)?;
    let several = map.nodes().len() > 1;
    let mut all: Option<ServerInfo> = None;
    for node in map.nodes() {
        let scratch = format!("selftest:{}", jitter::random_name().map_err(StoreError::Fatal)?);
        let scratch = map.name_on(node, &scratch).unwrap_or(scratch);
        let info = check_one(options, instance, &node.address, &scratch).map_err(|error| at(&node.address, error))?;
        let info = if several { named(info, &node.address) } else { info };
        all = Some(match all {
            None => info,
            Some(before) => worse_of(before, info),
        });
    }
    all.ok_or_else(|| StoreError::away("no master is known"))
}

fn check_one(
    options: &RedisOptions,
    instance: &Arc<str>,
    address: &Address,
    scratch: &str,
) -> Result<ServerInfo, StoreError> {
    let mut connection = options.connect(address)?;
    let mut info = match address {
        Address::AsGiven => connect::info_of_the_only_one(&mut connection, &options.target.shown)?,
        Address::At { .. } => connect::server_info(&mut connection)?,
    };
    if connect::self_test(&mut connection, instance, scratch)? == Tested::NotHere && *address == Address::AsGiven {
        return Err(connect::not_alone(&options.target.shown));
    }
    connect::add_advice(&mut connection, &mut info);
    match options.layout() {
        Layout::Single => {}
        Layout::Sentinel { .. } => connect::add_advice_on_replicas(&mut connection, &mut info),
        Layout::Cluster { .. } => connect::add_advice_on_coverage(&mut connection, &mut info),
    }
    if options.subscribe {
        connect::subscribe(&mut connection, instance)?;
    }
    Ok(info)
}

fn named(mut info: ServerInfo, address: &Address) -> ServerInfo {
    info.warnings.iter_mut().for_each(|warning| *warning = format!("{address}: {warning}"));
    info
}

fn worse_of(mut before: ServerInfo, info: ServerInfo) -> ServerInfo {
    if (&before.kind, &before.version) != (&info.kind, &info.version) {
        let (one, other) = (format!("{} {}", before.kind, before.version), format!("{} {}", info.kind, info.version));
        before.warnings.push(format!("the masters are of different versions: {one} and {other}"));
    }
    if before.maxmemory_policy.as_deref() == Some("noeviction") {
        before.maxmemory_policy = info.maxmemory_policy;
    }
    if before.persistence.as_deref() != Some("none") {
        before.persistence = info.persistence;
    }
    before.warnings.extend(info.warnings);
    before
}

/// The names of all limiters, sorted.
pub(super) fn limiters(options: &RedisOptions) -> Result<Vec<String>, StoreError> {
    let mut names = Vec::new();
    for (address, mut connection) in connect_all(options)? {
        scan(&mut connection, &mut names).map_err(|error| at(&address, error))?;
    }
    names.sort();
    names.dedup();
    Ok(names)
}

fn scan(connection: &mut Connection, names: &mut Vec<String>) -> Result<(), StoreError> {
    let mut cursor: u64 = 0;
    loop {
        let mut scan = redis::cmd("SCAN");
        scan.arg(cursor).arg("MATCH").arg(keys::ALL_LIMITERS).arg("COUNT").arg(1000);
        let (next, page): (u64, Vec<String>) = scan.query(connection).map_err(|e| fault::of_connect(&e))?;
        names.extend(page.iter().filter_map(|key| keys::limiter_in(key)));
        cursor = next;
        if cursor == 0 {
            return Ok(());
        }
    }
}
