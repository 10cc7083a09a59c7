//! The Pub/Sub thread: one blocking subscription to the instance's own channel. It runs nobody's code but the
//! engine's, so that the server never has to cut it off as too slow.
//!
//! In a cluster a message reaches all nodes, so that one subscription, to any of them, hears of all limiters.

use std::sync::Arc;
use std::time::Duration;

use super::connect::{at, server_info, subscribe};
use super::router::Router;
use super::url::Address;
use super::{decode, fault};
use crate::jitter;
use crate::store::StoreError;

const FIRST_PAUSE: Duration = Duration::from_millis(25);
const LAST_PAUSE: Duration = Duration::from_secs(1);
/// How long a read blocks before the thread looks whether it is still wanted.
const TURN: Duration = Duration::from_secs(1);
/// A script tells of 256 tickets at most, in less than 64 bytes each. Whoever sends more wants to keep us busy.
const LONGEST: usize = 64 * 1024;

pub(super) struct Subscriber {
    pub router: Arc<Router>,
    /// Never receives anything; its sender's end cuts a pause short.
    pub closing: crossbeam_channel::Receiver<()>,
}

impl Subscriber {
    /// Runs until it is told to close.
    pub(super) fn run(self) {
        let mut pause = Duration::ZERO;
        for attempt in 0_usize.. {
            if self.is_over() {
                return;
            }
            match self.subscribed(attempt) {
                Ok(()) => pause = FIRST_PAUSE,
                Err(error) => {
                    self.report(&error);
                    pause = (pause * 2).clamp(FIRST_PAUSE, LAST_PAUSE);
                }
            }
            let _ = self.closing.recv_timeout(jitter::spread(pause));
        }
    }

    fn report(&self, error: &StoreError) {
        match error {
            StoreError::Fatal(_) => {
                tracing::warn!(%error, "cannot subscribe: grants are found by polling only");
            }
            _ => tracing::debug!(%error, "not subscribed"),
        }
    }

    fn is_over(&self) -> bool {
        self.router.is_closed() || self.router.listener.strong_count() == 0
    }

    /// Another one with each attempt; `None`: no server is known yet.
    fn server(&self, attempt: usize) -> Option<Address> {
        let masters = self.router.known().0;
        attempt.checked_rem(masters.len()).map(|index| masters[index].clone())
    }

    /// Subscribes and listens until the connection ends. An error says that it did not come so far.
    fn subscribed(&self, attempt: usize) -> Result<(), StoreError> {
        let router = &self.router;
        let Some(server) = self.server(attempt) else { return Err(StoreError::away("no server is known yet")) };
        let mut connection = router.options.connect(&server)?;
        let info = server_info(&mut connection).map_err(|error| at(&server, error))?;
        subscribe(&mut connection, &router.instance).map_err(|error| at(&server, error))?;
        connection.set_read_timeout(Some(TURN)).map_err(|e| fault::of_connect(&e))?;
        router.probe.heard();
        self.tell_subscribed(Some(info.run_id)); // whatever was published before is found by a sync
        let mut pubsub = connection.as_pubsub();
        while !self.is_over() && self.take_message(&mut pubsub, &server) {}
        // Dropping it would wait for an acknowledgement; the whole connection goes instead.
        std::mem::forget(pubsub);
        self.tell_subscribed(None); // or others would take us for dead
        Ok(())
    }

    fn tell_subscribed(&self, server: Option<String>) {
        self.router.probe.set_server(server);
        if let Some(listener) = self.router.listener.upgrade().filter(|_| !self.is_over()) {
            listener.subscribed();
        }
    }

    /// False: the connection is of no use any more.
    fn take_message(&self, pubsub: &mut redis::PubSub<'_>, server: &Address) -> bool {
        let message = match pubsub.get_message() {
            Ok(message) => message,
            Err(error) if error.is_timeout() => return self.is_worth_listening_to(server),
            Err(error) => {
                tracing::debug!(%error, "the subscription ended");
                return false;
            }
        };
        self.router.probe.heard();
        if let Some((message, listener)) = read(message.get_payload_bytes()).zip(self.router.listener.upgrade()) {
            listener.notices(&message.limiter, message.epoch, message.notices);
        }
        true
    }

    /// It was silent for a while. One that is no master any more may hear nothing, and does not say so.
    fn is_worth_listening_to(&self, server: &Address) -> bool {
        let masters = self.router.known().0;
        !self.router.probe.is_overdue() && (masters.is_empty() || masters.contains(server))
    }
}

/// A message that tells something.
pub(super) fn read(payload: &[u8]) -> Option<decode::Message> {
    if payload.len() > LONGEST {
        tracing::warn!(bytes = payload.len(), "a message too long to be one of ours");
        return None;
    }
    match decode::message(&String::from_utf8_lossy(payload)) {
        Ok(message) => Some(message).filter(|message| !message.notices.is_empty()),
        Err(garbled) => {
            tracing::warn!(%garbled, "an unreadable message");
            None
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn only_messages_of_a_sensible_length_are_read() {
        let told = |notices: usize| read(format!("7{}|fq:{{a}}", " g,1,2,3".repeat(notices)).as_bytes());
        assert_eq!(told(256).expect("a message").notices.len(), 256);
        assert!(told(10_000).is_none());
        assert!(read(b"7 p|fq:{a}").is_none(), "a probe tells nothing");
    }
}
