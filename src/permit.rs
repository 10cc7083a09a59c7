//! A held slot.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::Receiver;

use crate::Error;
use crate::engine::waiter::Waiter;
use crate::events::PermitEvent;
use crate::ticket::TicketState;

/// How a permit stands, judged without asking the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PermitState {
    /// Held, and confirmed within the lease.
    Valid,
    /// Held as far as is known, but the store has been silent for a lease.
    Unconfirmed,
    /// Lost.
    Lost,
    /// Given back.
    Released,
}

/// A held slot of a limiter. Dropping it gives the slot back in the background; [`Permit::release`] waits for the
/// store's answer. May be moved to and dropped on any thread.
#[must_use = "dropping a permit gives the slot back"]
pub struct Permit {
    waiter: Arc<Waiter>,
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit")
            .field("limiter", &self.waiter.limiter().name)
            .field("ticket", &self.waiter.no)
            .field("fence", &self.fence())
            .field("state", &self.state())
            .finish()
    }
}

impl Permit {
    pub(crate) fn new(waiter: Arc<Waiter>) -> Self {
        Permit { waiter }
    }

    /// A number that grows with every grant of the limiter. Hand it to the guarded resource, which can then refuse
    /// whoever comes with a smaller one. 0 for a permit admitted locally while the store was away.
    pub fn fence(&self) -> u64 {
        self.waiter.ticket.fence()
    }

    /// The request's place in line, given once at its arrival: microseconds of the store's clock.
    pub fn order(&self) -> u64 {
        self.waiter.order()
    }

    /// How much of the limit it takes.
    pub fn cost(&self) -> u64 {
        self.waiter.cost()
    }

    /// The ticket's full name, as [`Limiter::revoke`](crate::Limiter::revoke) takes it.
    pub fn ticket_id(&self) -> String {
        self.waiter.engine().ticket_name(self.waiter.no)
    }

    /// Whether nobody else can have the slot: it was neither lost nor given back, and the store has confirmed it
    /// within the lease, counted from before the question was sent. Local, and therefore conservative.
    pub fn is_valid(&self) -> bool {
        self.state() == PermitState::Valid
    }

    /// How it stands. Does not ask the store.
    pub fn state(&self) -> PermitState {
        match self.waiter.ticket.state() {
            TicketState::Released => PermitState::Released,
            TicketState::Lost => PermitState::Lost,
            _ if self.waiter.engine().confirmed(&self.waiter) => PermitState::Valid,
            _ => PermitState::Unconfirmed,
        }
    }

    /// What happens to the permit from now on. The channel closes when the permit ends.
    pub fn events(&self) -> Receiver<PermitEvent> {
        self.waiter.subscribe()
    }

    /// Gives the slot back and waits for the store's answer, at most about twice the I/O timeout; after that the
    /// release goes on in the background.
    ///
    /// # Errors
    /// [`Error::Stale`] when the permit had been taken back already, [`Error::PermitLost`] when that was known,
    /// [`Error::Unavailable`] when the store did not answer in time, [`Error::Forked`] in a forked child.
    pub fn release(self) -> Result<(), Error> {
        self.release_shared()
    }

    /// As [`Permit::release`], for owners who share it; the second finds it given back.
    pub(crate) fn release_shared(&self) -> Result<(), Error> {
        self.waiter.engine().release(&self.waiter)
    }

    #[cfg(all(test, not(loom)))]
    pub(crate) fn lost_reason(&self) -> Option<crate::LostReason> {
        self.waiter.lost.get().copied()
    }

    /// The waiter that becomes of it when it is put back; its end is not waited for.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn put_back_by_hand(self, max_wait: Duration) -> Result<Arc<Waiter>, Error> {
        self.waiter.engine().start_again(&self.waiter, max_wait)
    }

    /// Returns to the line, at the request's original place, and waits again for at most `max_wait`.
    ///
    /// # Errors
    /// As [`Limiter::acquire`](crate::Limiter::acquire); the slot is given back in any case.
    pub fn put_back(self, max_wait: Duration) -> Result<Permit, Error> {
        self.waiter.engine().put_back(&self.waiter, max_wait).map(Permit::new)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.waiter.engine().give_back(&self.waiter);
        Waiter::retire(&mut self.waiter);
    }
}
