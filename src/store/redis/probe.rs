//! Whether the subscription is alive. TCP alone does not tell: after a fail-over a subscriber may stay connected to a
//! server on which nobody publishes any more. So a sync now and then publishes a probe to the instance's own channel,
//! by the command connection, and the Pub/Sub thread expects to hear it.
//!
//! And on which server it is: others take a process for dead whose subscription has gone from the server that the
//! process said it listens on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::sync::Mutex;

/// Silence for so long asks for a probe, and a probe is expected back within it.
const PATIENCE: Duration = Duration::from_secs(2);

/// When the subscription was last heard, and when a probe was last sent.
pub(super) struct Probe {
    enabled: bool,
    start: Instant,
    heard: AtomicU64,
    /// 0: none is under way.
    sent: AtomicU64,
    /// The run id of the server that the subscription is on.
    server: Mutex<Option<String>>,
}

impl Probe {
    pub(super) fn new(enabled: bool) -> Self {
        Probe {
            enabled,
            start: Instant::now(),
            heard: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            server: Mutex::new(None),
        }
    }

    /// Subscribed on the server with this run id, or no more.
    pub(super) fn set_server(&self, run_id: Option<String>) {
        *self.server.lock() = run_id;
    }

    /// Whether the subscription is on the server with this run id.
    pub(super) fn listens_on(&self, run_id: &str) -> bool {
        self.server.lock().as_deref() == Some(run_id)
    }

    fn now(&self) -> u64 {
        self.start.elapsed().as_millis() as u64 + 1
    }

    pub(super) fn is_due(&self) -> bool {
        self.enabled
            && self.sent.load(Ordering::Relaxed) == 0
            && self.now() > self.heard.load(Ordering::Relaxed) + PATIENCE.as_millis() as u64
    }

    /// Called before it is sent: its echo may come before the answer.
    pub(super) fn sending(&self) {
        self.sent.store(self.now(), Ordering::Relaxed);
    }

    /// It did not get through, or nobody knows.
    pub(super) fn not_sent(&self) {
        self.sent.store(0, Ordering::Relaxed);
    }

    /// Something has come in.
    pub(super) fn heard(&self) {
        self.heard.store(self.now(), Ordering::Relaxed);
        self.sent.store(0, Ordering::Relaxed);
    }

    /// A probe was sent, and should have been heard by now.
    pub(super) fn is_overdue(&self) -> bool {
        let sent = self.sent.load(Ordering::Relaxed);
        sent != 0 && self.now() > sent + PATIENCE.as_millis() as u64
    }
}
