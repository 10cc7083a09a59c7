//! An instance's way to the server: what `store::redis` does with a link thread and sockets, as a state machine that
//! the world moves. The commands, what is made of the answers, and what is sent once more, are the real ones.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Weak};
use std::time::Duration;

use ::redis::Value;

use crate::Error;
use crate::clock::Nanos;
use crate::status::ServerInfo;
use crate::store::model::Caller;
use crate::store::redis::test_access::{self, Parcel, Passes};
use crate::store::{Call, Listener, Reply, Store, StoreError};
use crate::sync::Mutex;

/// Where an engine leaves its calls.
#[derive(Default)]
pub(super) struct Mailbox {
    pub calls: VecDeque<(Call, Reply)>,
    pub closed: bool,
}

pub(super) type SharedMailbox = Arc<Mutex<Mailbox>>;

/// An engine's store, which only takes calls in.
pub(super) struct Mail(pub SharedMailbox);

impl Store for Mail {
    fn submit(&self, call: Call, reply: Reply) {
        let mut mailbox = self.0.lock();
        if mailbox.closed {
            drop(mailbox);
            return reply(Err(StoreError::Fatal(Error::Closed)));
        }
        mailbox.calls.push_back((call, reply));
    }

    fn submit_and_wait(&self, call: Call, reply: Reply) {
        self.submit(call, reply);
    }

    fn check(&self) -> Result<ServerInfo, StoreError> {
        Ok(ServerInfo::default())
    }

    fn limiters(&self) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }

    fn close(&self) {
        self.0.lock().closed = true;
    }
}

pub(super) struct Link {
    pub mailbox: SharedMailbox,
    pub listener: Weak<dyn Listener>,
    pub instance: Arc<str>,
    /// The connection's number, unique in the run.
    pub connection: Option<u64>,
    pub generation: u64,
    pub run: Arc<str>,
    /// The server's time in microseconds, and when it was that.
    pub time: (u64, Nanos),
    pub connecting: bool,
    pub next_attempt: Nanos,
    pub pause: Duration,
    pub round: Option<Round>,
    pub last_error: String,
    /// The subscription's number.
    pub subscription: Option<u64>,
    /// Of the server that it is on.
    pub subscribed_at: Arc<str>,
    /// The server has it, too.
    pub is_served: bool,
    pub deaf_until: Nanos,
    /// Nothing gets through before; what is sent meanwhile arrives after.
    pub cut_until: Nanos,
    /// What was sent arrives in order: not before this.
    pub sent_until: Nanos,
    pub answered_until: Nanos,
}

impl Link {
    pub(super) fn new(mailbox: SharedMailbox, listener: Weak<dyn Listener>, instance: &Arc<str>) -> Self {
        Link {
            mailbox,
            listener,
            instance: instance.clone(),
            connection: None,
            generation: 0,
            run: "".into(),
            time: (0, 0),
            connecting: false,
            next_attempt: 0,
            pause: Duration::ZERO,
            round: None,
            last_error: "not connected".into(),
            subscription: None,
            subscribed_at: "".into(),
            is_served: false,
            deaf_until: 0,
            cut_until: 0,
            sent_until: 0,
            answered_until: 0,
        }
    }

    pub(super) fn caller(&self, now: Nanos) -> Caller {
        let sent = self.time.0 + now.saturating_sub(self.time.1) / 1000;
        Caller { instance: self.instance.clone(), generation: self.generation, run: self.run.clone(), sent }
    }

    /// As `store::redis::probe` says it.
    pub(super) fn listens(&self) -> bool {
        self.subscription.is_some() && self.subscribed_at == self.run
    }

    pub(super) fn has_calls(&self) -> bool {
        !self.mailbox.lock().calls.is_empty()
    }

    /// Nothing can be sent: whoever asked is told.
    pub(super) fn fail_all(&self) {
        let calls = std::mem::take(&mut self.mailbox.lock().calls);
        for (_, reply) in calls {
            reply(Err(StoreError::Away { detail: self.last_error.clone(), down: true }));
        }
    }

    /// Neither connecting nor waiting for answers.
    pub(super) fn is_free(&self) -> bool {
        !self.connecting && self.round.is_none()
    }

    pub(super) fn begin_round(&mut self, id: u64) {
        let calls = std::mem::take(&mut self.mailbox.lock().calls);
        self.round = Some(Round::new(id, calls));
    }

    /// The connection is given up. Those whose answers have not come are told that nobody knows.
    pub(super) fn give_up(&mut self, why: &str) {
        self.connection = None;
        self.last_error = why.to_owned();
        self.next_attempt = 0;
        if let Some(round) = self.round.take() {
            round.finish();
        }
    }
}

/// One batch on its way.
pub(super) struct Round {
    pub id: u64,
    pub calls: Vec<Call>,
    replies: Vec<Reply>,
    passes: Passes,
    /// Nothing was sent a second time yet.
    pub is_first: bool,
    /// What this pass has sent, and has no answer yet.
    unanswered: VecDeque<Range<usize>>,
}

impl Round {
    fn new(id: u64, calls: VecDeque<(Call, Reply)>) -> Self {
        let (calls, replies): (Vec<Call>, Vec<Reply>) = calls.into_iter().unzip();
        let passes = Passes::new(calls.len());
        Round { id, calls, replies, passes, is_first: true, unanswered: VecDeque::new() }
    }

    /// The commands of this pass, each with its first call's number.
    pub(super) fn commands(&mut self, caller: &Caller, says: (bool, bool)) -> Vec<(usize, ::redis::Cmd)> {
        let (calls, parcels) = self.passes.parcels(|index| (&self.calls[index], false));
        self.unanswered = parcels.iter().map(|parcel| parcel.place.clone()).collect();
        let command = |parcel: Parcel| {
            let number = self.passes.number(parcel.place.start);
            (number, test_access::sent(&calls[parcel.place], caller, parcel.by, says))
        };
        parcels.into_iter().map(command).collect()
    }

    /// The next answer of this pass. True: the pass is over.
    pub(super) fn take(&mut self, value: Value) -> bool {
        if let Some(place) = self.unanswered.pop_front() {
            let calls: Vec<&Call> = place.clone().map(|place| &self.calls[self.passes.number(place)]).collect();
            self.passes.take(place, &calls, value);
        }
        self.unanswered.is_empty()
    }

    /// Makes ready for another pass. False: there is nothing left to send.
    pub(super) fn next_pass(&mut self) -> bool {
        self.is_first = false;
        self.passes.next(|index| &self.calls[index])
    }

    /// It seems to come by an old connection: the next pass has a new number.
    pub(super) fn take_outdated(&mut self) -> bool {
        self.passes.take_outdated()
    }

    /// The server is no master any more.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.passes.is_elsewhere()
    }

    pub(super) fn finish(self) {
        for (reply, answer) in self.replies.into_iter().zip(test_access::answers(self.passes)) {
            reply(answer);
        }
    }

    /// The one caller has lost patience, and the connection stays good.
    pub(super) fn abandon(self) {
        for reply in self.replies {
            reply(Err(StoreError::Busy { detail: "no answer yet".into() }));
        }
    }
}
