//! The two kinds of server that the scripts are run on.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use redis::{Cmd, Connection, Value};

use super::*;
use crate::simulation::redis::Redis as Simulated;

/// A server, and a subscription to everything that is published there.
pub(super) trait Wire {
    /// An error reply is an answer, too.
    fn ask(&mut self, cmd: &Cmd) -> Value;
    /// The next message: channel and payload.
    fn hear(&mut self) -> (String, String);
    /// Whether there is another message, if that is known without waiting for one.
    fn has_more(&self) -> bool;
    /// Moves the server's clock, if that is to be had.
    fn set_wall(&mut self, _micros: u64) {}
    /// Fills the server's memory, or frees it, if that is to be had.
    fn set_full(&mut self, _full: bool) {}
    /// All there is on the server, if that is to be had.
    fn data(&self) -> Option<String> {
        None
    }
}

/// A real server.
pub(super) struct Sockets {
    pub connection: Connection,
    pub subscriber: Connection,
}

impl Wire for Sockets {
    fn ask(&mut self, cmd: &Cmd) -> Value {
        self.connection.send_packed_command(&cmd.get_packed_command()).expect("a live connection");
        self.connection.recv_response().expect("an answer")
    }

    fn hear(&mut self) -> (String, String) {
        loop {
            let Value::Array(parts) = self.subscriber.recv_response().expect("a message") else { continue };
            let text = |value: &Value| redis::from_redis_value_ref::<String>(value).unwrap();
            if let [_, _, channel, payload] = &parts[..] {
                return (text(channel), text(payload));
            }
        }
    }

    fn has_more(&self) -> bool {
        false
    }
}

/// The simulation's server. Clones are the same server, which has compiled its scripts only once.
#[derive(Clone)]
pub(super) struct InMemory {
    server: Rc<RefCell<Simulated>>,
    heard: VecDeque<(String, String)>,
}

impl InMemory {
    pub(super) fn new(rewrite: Option<crate::simulation::redis::Rewrite>) -> Self {
        InMemory { server: Rc::new(RefCell::new(Simulated::new(rewrite))), heard: VecDeque::new() }
    }
}

impl Wire for InMemory {
    fn ask(&mut self, cmd: &Cmd) -> Value {
        let mut server = self.server.borrow_mut();
        let value = server.execute(&crate::simulation::redis::words(cmd));
        self.heard.extend(server.take_published());
        value
    }

    fn hear(&mut self) -> (String, String) {
        self.heard.pop_front().expect("another message")
    }

    fn has_more(&self) -> bool {
        !self.heard.is_empty()
    }

    fn set_wall(&mut self, micros: u64) {
        self.server.borrow_mut().set_wall(micros);
    }

    fn set_full(&mut self, full: bool) {
        self.server.borrow_mut().set_full(full);
    }

    fn data(&self) -> Option<String> {
        Some(format!("{:?}", self.server.borrow().data()))
    }
}
