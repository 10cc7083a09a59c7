//! What sentinels say about who is master.
//!
//! All of them are asked, unless one has news: after a fail-over some may not have heard of it yet (or be cut off from the
//! others), and only the epoch of its configuration tells. Each has a bounded time, and those that answer keep their
//! connection, so that asking again costs one small round trip.

use std::collections::HashMap;

use redis::{Connection, ConnectionLike};

use super::access::Whom;
use super::connect::{RedisOptions, at};
use super::fault;
use super::lookout::{PATIENCE, better};
use super::slots::View;
use super::url::{Address, Layout};
use crate::Error;
use crate::store::StoreError;

/// Open connections to sentinels.
pub(super) type Lines = HashMap<Address, Connection>;

/// Asks the sentinels, one after the other, until one knows of a newer configuration than `epoch`; failing that, takes
/// the best.
pub(super) fn look(
    options: &RedisOptions,
    lines: &mut Lines,
    sentinels: &[Address],
    epoch: Option<u64>,
) -> Result<(View, Address), StoreError> {
    let mut best: Option<(View, Address)> = None;
    let mut failed = StoreError::away("no sentinel is known");
    for sentinel in sentinels {
        match ask(options, lines, sentinel) {
            Ok(view) if epoch.is_none_or(|known| view.epoch > known) => return Ok((view, sentinel.clone())),
            Ok(view) => best = better(best, (view, sentinel.clone())),
            Err(error) => failed = at(sentinel, error),
        }
    }
    best.ok_or(failed)
}

fn ask(options: &RedisOptions, lines: &mut Lines, sentinel: &Address) -> Result<View, StoreError> {
    let mut line = match lines.remove(sentinel) {
        Some(line) if line.is_open() => line,
        // TLS, where it is asked for, holds for the sentinels as well.
        _ => options.connect_briefly(Whom::Sentinel, sentinel, options.connect_timeout.min(PATIENCE))?,
    };
    // A line that was cut in silence is connected anew the next time; another attempt now would cost its time again.
    let view = view_of(options, &mut line)?;
    lines.insert(sentinel.clone(), line);
    Ok(view)
}

fn view_of(options: &RedisOptions, line: &mut Connection) -> Result<View, StoreError> {
    let Layout::Sentinel { service, .. } = options.layout() else {
        return Err(StoreError::away("there is no sentinel"));
    };
    let asks = |what: &str| redis::cmd("SENTINEL").arg(what).arg(&**service).clone();
    // During a fail-over only the first tells where the master will be, and the epoch belongs to it.
    let both = redis::pipe().add_command(asks("get-master-addr-by-name")).add_command(asks("master")).clone();
    let (address, details): (Option<(String, u16)>, HashMap<String, String>) =
        both.query(line).map_err(|error| of_sentinel(&error, service))?;
    let (host, port) = address.ok_or_else(|| unknown(service))?;
    let epoch = details.get("config-epoch").and_then(|epoch| epoch.parse().ok()).unwrap_or(0);
    let down = details.get("flags").is_some_and(|flags| flags.contains("down") || flags.contains("disconnected"));
    Ok(View { epoch, settled: !down, parts: vec![(Address::at(&host, port), vec![(0, 0)])] })
}

fn of_sentinel(error: &redis::RedisError, service: &str) -> StoreError {
    let text = error.to_string();
    if text.contains("No such master") {
        return unknown(service);
    }
    match fault::of_connect(error) {
        // One of several may be set up wrongly, or be no sentinel at all; another will do.
        StoreError::Fatal(Error::Server { detail }) => StoreError::away(detail),
        other => other,
    }
}

fn unknown(service: &str) -> StoreError {
    let detail = format!("it watches no service {service:?}: redis-sentinel://host:26379/SERVICE has to name one");
    StoreError::Fatal(Error::Config { detail })
}
