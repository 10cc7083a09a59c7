//! What ends a permit: its owner gives it back, or it is lost.

use super::*;

impl Engine {
    /// Whether the store has confirmed the permit within the lease.
    pub(crate) fn confirmed(&self, waiter: &Waiter) -> bool {
        !self.is_forked()
            && waiter.ticket.state() == TicketState::Granted
            && self.clock.now() < waiter.limiter().valid_until.load(Ordering::Acquire)
    }

    /// Gives a permit back in the background.
    pub(crate) fn give_back(&self, waiter: &Arc<Waiter>) {
        if !self.is_forked() && waiter.ticket.end(TicketState::Released) {
            waiter.close_events();
            self.with_table(|turn| {
                if self.release_at_once(turn, waiter).is_none() {
                    turn.table.clean_up(waiter.no, turn.now, turn.fx);
                    self.fill_local(turn, waiter.limiter().index);
                }
            });
        }
    }

    /// Gives a permit back and waits for the answer.
    pub(crate) fn release(&self, waiter: &Arc<Waiter>) -> Result<(), Error> {
        self.check_process()?;
        if !waiter.ticket.end(TicketState::Released) {
            return Err(waiter.lost.get().map_or(Error::Stale, |why| Error::PermitLost(*why)));
        }
        waiter.close_events();
        let answer = self.with_table(|turn| {
            if let Some(freed) = self.release_at_once(turn, waiter) {
                return Err(freed);
            }
            let (sender, answer) = crossbeam_channel::bounded(1);
            turn.fx.waits = true;
            match turn.table.tickets.get_mut(&waiter.no) {
                Some(slot) => slot.ack = Some(sender),
                None => drop(sender),
            }
            turn.table.clean_up(waiter.no, turn.now, turn.fx);
            self.fill_local(turn, waiter.limiter().index);
            Ok(answer)
        });
        let freed = match answer {
            Ok(answer) => answer.recv_timeout(self.patience),
            Err(freed) => Ok(Ok(freed)),
        };
        match freed {
            Ok(Ok(true)) => Ok(()),
            Ok(Ok(false)) => Err(Error::Stale),
            Ok(Err(error)) => Err(error),
            Err(crossbeam_channel::RecvTimeoutError::Disconnected) => Err(Error::Closed),
            Err(crossbeam_channel::RecvTimeoutError::Timeout) => Err(Error::Unavailable {
                detail: "no answer to the release yet; it goes on in the background".into(),
                retry_after: Duration::from_secs(1),
            }),
        }
    }

    /// Returns a held ticket to its original place in line and waits for it again.
    pub(crate) fn put_back(&self, waiter: &Arc<Waiter>, max_wait: Duration) -> Result<Arc<Waiter>, Error> {
        let again = self.start_again(waiter, max_wait)?;
        again.wait().map(|()| again)
    }

    /// Returns a held ticket to its original place in line.
    pub(crate) fn start_again(&self, waiter: &Arc<Waiter>, max_wait: Duration) -> Result<Arc<Waiter>, Error> {
        self.check_process()?;
        if !waiter.ticket.end(TicketState::Released) {
            return Err(waiter.lost.get().map_or(Error::Stale, |why| Error::PermitLost(*why)));
        }
        waiter.close_events();
        // The same ticket in the store, a new life here: one that was granted cannot be pending again.
        let again = Waiter::take(waiter.no, waiter.home().clone());
        again.set_order(waiter.order());
        again.set_former_fence(waiter.ticket.fence().max(waiter.former_fence()));
        let request =
            Request { max_wait: Some(max_wait), cost: waiter.cost(), label: waiter.label(), ..Request::default() };
        self.with_table(|turn| {
            let _ = again.terms.set(Terms::new(&request, 0, turn.now, nanos(self.patience), Sink::Blocking));
            if turn.table.stage != Stage::Running && again.refuse(TicketState::Closed, Error::Closed) {
                turn.table.clean_up(waiter.no, turn.now, turn.fx);
                turn.fx.settled.push(again.clone());
                return;
            }
            turn.table.remove(waiter.no, turn.fx);
            self.enter(turn, &again, true);
        });
        Ok(again)
    }

    /// A held permit is gone, and its owner is told.
    pub(super) fn lose(&self, turn: &mut Turn<'_>, no: TicketNo, why: LostReason) {
        let Some(slot) = turn.table.tickets.get(&no) else { return };
        let waiter = slot.waiter.clone();
        if waiter.ticket.end(TicketState::Lost) {
            tracing::warn!(limiter = %waiter.limiter().name, ticket = no, reason = %why, "permit lost");
            turn.fx.events.push((waiter.clone(), PermitEvent::Lost(why)));
            let _ = waiter.lost.set(why);
            turn.table.clean_up(no, turn.now, turn.fx);
        }
    }
}
