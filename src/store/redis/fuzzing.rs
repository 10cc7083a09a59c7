//! What the fuzz targets need of this store: reading, without a server.

use redis::{RedisError, ServerError, Value};

use super::{decode, fault, keys, pubsub};
use crate::store::{Answer, Call, StoreError};

pub(crate) fn answer(call: &Call, value: Value) -> Result<Answer, String> {
    decode::answer(call, value).map_err(|garbled| garbled.to_string())
}

pub(crate) fn message(payload: &[u8]) -> Option<decode::Message> {
    pubsub::read(payload)
}

pub(crate) fn of_reply(error: &ServerError) -> String {
    format!("{:?}", fault::of_reply(error))
}

pub(crate) fn of_connect(error: &RedisError) -> String {
    format!("{:?}", fault::of_connect(error))
}

/// As a round does it, less the connecting anew.
pub(crate) fn store_error(error: &ServerError) -> StoreError {
    match fault::of_reply(error) {
        fault::Fault::Store(error) => error,
        fault::Fault::NoScript => StoreError::Busy { detail: "no script".into() },
        fault::Fault::Redirect(_) => StoreError::away("redirected"),
        fault::Fault::Reconnect(detail) => StoreError::away(detail),
    }
}

/// The keys of a limiter.
pub fn keys_of(limiter: &str) -> [String; 4] {
    keys::keys_of(limiter)
}

/// The limiter that a key belongs to.
pub fn limiter_in(key: &str) -> Option<String> {
    keys::limiter_in(key)
}
