//! What has become of a round's calls, and which of them are sent once more. Without I/O, so that the simulation goes
//! through the same.
//!
//! Requests of one limiter that follow one another travel in a parcel: one run of a script for all of them, as half of
//! what a call costs the server is what every script begins and ends with.

use redis::Value;

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use super::decode;
use super::encode::{By, letter};
use super::fault::{self, Fault, Redirect};
use super::script::Script;
use crate::store::{Answer, Call, StoreError, TicketNo, Verb, Verdict};

/// What a server says to a call.
#[derive(Clone)]
pub(super) enum Said {
    Answer(Result<Answer, StoreError>),
    /// To ask another one.
    Elsewhere(Redirect),
}

/// Which calls of a pass carry the source of their script.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Teach {
    Nothing,
    /// Once by source teaches the server.
    EachOnce,
    /// It has forgotten again between two breaths.
    Always,
}

/// The most calls in one parcel: the server does nothing else meanwhile.
const LARGEST_PARCEL: usize = 32;

/// Calls that are sent in one command: mostly one, by their places in the pass.
pub(crate) struct Parcel {
    pub place: Range<usize>,
    pub by: By,
}

/// The calls of a round, by their numbers, in passes.
pub(crate) struct Passes {
    said: Vec<Option<Said>>,
    /// Of each call, whether it has to be sent by itself.
    alone: Vec<bool>,
    /// The calls of this pass.
    which: Vec<usize>,
    /// Those of the next.
    again: Vec<usize>,
    teach: Teach,
    /// What ended the connection, if anything did.
    pub(super) broken: Option<String>,
    /// This is not the server to talk to.
    pub(super) elsewhere: bool,
    /// The cluster has not agreed yet on who has what.
    pub(super) unsettled: bool,
    /// A limiter has heard of a younger connection of ours: that of another node, from which it has moved here.
    outdated: bool,
}

impl Passes {
    pub(crate) fn new(calls: usize) -> Self {
        Passes {
            said: vec![None; calls],
            alone: vec![false; calls],
            which: (0..calls).collect(),
            again: Vec::new(),
            teach: Teach::Nothing,
            broken: None,
            elsewhere: false,
            unsettled: false,
            outdated: false,
        }
    }

    /// The calls of this pass, and the parcels they are sent in. `call` tells the call of a number, and whether `ASKING` has
    /// to go before it.
    pub(crate) fn parcels<'a>(&mut self, call: impl Fn(usize) -> (&'a Call, bool)) -> (Vec<&'a Call>, Vec<Parcel>) {
        let mut calls: Vec<&Call> = self.which.iter().map(|index| call(*index).0).collect();
        let mut loaded: Vec<&str> = Vec::new();
        let mut parcels = Vec::new();
        let mut start = 0;
        while start < calls.len() {
            let fits = |place: &usize| {
                let index = self.which[*place];
                let goes_along = || belongs_to(&calls[start..*place], calls[start], calls[*place]);
                !self.alone[index] && !call(index).1 && goes_along()
            };
            let most = calls.len().min(start + LARGEST_PARCEL);
            let more = if fits(&start) { (start + 1..most).take_while(fits).count() } else { 0 };
            let place = start..start + 1 + more;
            start = place.end;
            // What several give back is given out at once (lua/parcel.lua). None of them is of another's ticket.
            self.which[place.clone()].sort_by_key(|index| !gives_back(call(*index).0));
            calls[place.clone()].sort_by_key(|call| !gives_back(call));
            let name = Script::for_calls(&calls[place.clone()]).name;
            let by = match self.teach {
                Teach::Nothing => By::Sha,
                Teach::EachOnce if loaded.contains(&name) => By::Sha,
                Teach::EachOnce | Teach::Always => By::Source,
            };
            loaded.push(name);
            parcels.push(Parcel { place, by });
        }
        (calls, parcels)
    }

    /// The number of a call by its place in this pass.
    pub(crate) fn number(&self, place: usize) -> usize {
        self.which[place]
    }

    /// The answer to a parcel of this pass.
    pub(crate) fn take(&mut self, place: Range<usize>, calls: &[&Call], value: Value) {
        let said = match value {
            Value::ServerError(error) => match fault::of_reply(&error) {
                Fault::NoScript => return self.again.extend(&self.which[place]),
                Fault::Redirect(redirect) => Said::Elsewhere(redirect),
                Fault::Reconnect(detail) => {
                    self.elsewhere = true;
                    self.broken.get_or_insert(detail.clone());
                    Said::Answer(Err(StoreError::away(detail)))
                }
                // One of them may be what the server refuses; the others are not to wait for it.
                Fault::Store(_) if calls.len() > 1 => return self.send_apart(place),
                Fault::Store(error) => {
                    self.unsettled |= error.to_string().contains("CLUSTERDOWN");
                    Said::Answer(Err(error))
                }
            },
            value => return self.take_answers(place, calls, value),
        };
        for place in place {
            self.said[self.which[place]] = Some(said.clone());
        }
    }

    fn take_answers(&mut self, place: Range<usize>, calls: &[&Call], value: Value) {
        let read = match calls {
            [call] => decode::answer(call, value).map(|answer| Some(vec![answer])),
            _ => decode::answers(calls, value),
        };
        let answers = match read {
            Ok(Some(answers)) => answers,
            Ok(None) => return self.send_apart(place),
            Err(garbled) => {
                let detail = format!("{}: {garbled}", Script::for_calls(calls).name);
                let error = StoreError::Fatal(crate::Error::Server { detail });
                return place.for_each(|place| self.said[self.which[place]] = Some(Said::Answer(Err(error.clone()))));
            }
        };
        for (place, mut answer) in place.zip(answers) {
            let index = self.which[place];
            if answer.verdict == Verdict::Refused {
                self.outdated = true;
                self.again.push(index);
            }
            if let Some(Said::Answer(Ok(before))) = self.said[index].take() {
                answer.notices.splice(0..0, before.notices); // they are told once
            }
            self.said[index] = Some(Said::Answer(Ok(answer)));
        }
    }

    /// The calls of a parcel come once more, each by itself.
    fn send_apart(&mut self, place: Range<usize>) {
        for index in &self.which[place] {
            self.alone[*index] = true;
            self.again.push(*index);
        }
    }

    /// Makes ready for another pass, if there is anything to send once more. It comes behind calls that stood behind it,
    /// which the engine bears, but for those of the same ticket: a cancel that came before its acquire would leave it in
    /// line for ever. So these are carried out again, too.
    pub(crate) fn next<'a>(&mut self, call: impl Fn(usize) -> &'a Call) -> bool {
        let teach = match self.teach {
            Teach::Nothing => Teach::EachOnce,
            Teach::EachOnce => Teach::Always,
            Teach::Always => return false,
        };
        if self.again.is_empty() || self.broken.is_some() {
            return false;
        }
        self.teach = teach;
        let mut again = std::mem::take(&mut self.again);
        again.sort_unstable();
        self.which.sort_unstable();
        let mut late: HashSet<(&str, TicketNo)> = HashSet::new();
        self.which.retain(|index| {
            let Call { limiter, verb, .. } = call(*index);
            let tickets: Vec<_> = tickets(verb).into_iter().map(|no| (&**limiter, no)).collect();
            let comes_again = again.binary_search(index).is_ok() || tickets.iter().any(|ticket| late.contains(ticket));
            if comes_again {
                late.extend(tickets);
            }
            comes_again
        });
        true
    }

    /// The calls seem to come by an old connection, or long after they were sent: what is sent next has to say otherwise.
    pub(crate) fn take_outdated(&mut self) -> bool {
        std::mem::take(&mut self.outdated)
    }

    #[cfg(all(test, not(loom)))]
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.elsewhere
    }

    /// What was said to each call. Of those to which nothing was, nobody knows.
    pub(super) fn end(self) -> Vec<Said> {
        let lost = self.broken.unwrap_or_else(|| "no answer".into());
        let or_lost =
            |said: Option<Said>| said.unwrap_or_else(|| Said::Answer(Err(StoreError::Lost { detail: lost.clone() })));
        self.said.into_iter().map(or_lost).collect()
    }
}

fn gives_back(call: &Call) -> bool {
    matches!(call.verb, Verb::Release(_))
}

/// Those of whom the call says what is to become of them.
fn tickets(verb: &Verb) -> Vec<TicketNo> {
    match verb {
        Verb::Acquire { no, .. } | Verb::PutBack { no, .. } => vec![*no],
        Verb::Release(permits) => permits.iter().map(|(no, _)| *no).collect(),
        Verb::Cancel(tickets) => tickets.to_vec(),
        Verb::Sync { heads, .. } => heads.clone(),
        Verb::Restore(tickets) => tickets.iter().map(|ticket| ticket.no).collect(),
        _ => Vec::new(),
    }
}

/// What a script judges by for all of them has to be the same, and their tickets have to be others; see `lua/parcel.lua`.
fn belongs_to(parcel: &[&Call], first: &Call, call: &Call) -> bool {
    let (a, b) = (&first.header, &call.header);
    let same = (a.epoch, a.version) == (b.epoch, b.version) && Arc::ptr_eq(&a.declaration, &b.declaration);
    let told = a.epoch != 0 && !a.declaration.declares;
    let Some((_, ticket)) = letter(call) else { return false };
    let is_named = || parcel.iter().any(|call| letter(call).is_some_and(|(_, named)| named == ticket));
    same && told && first.limiter == call.limiter && letter(first).is_some() && !is_named()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::settings::Declaration;
    use crate::store::Header;

    fn calls(verbs: Vec<Verb>, header: &Header) -> Vec<Call> {
        let limiter: Arc<str> = "a".into();
        let call = |verb| Call { limiter: limiter.clone(), header: header.clone(), verb };
        verbs.into_iter().map(call).collect()
    }

    /// How many calls go in each command.
    fn parcels(verbs: Vec<Verb>, header: &Header) -> Vec<usize> {
        let calls = calls(verbs, header);
        let mut passes = Passes::new(calls.len());
        let (_, parcels) = passes.parcels(|index| (&calls[index], false));
        parcels.into_iter().map(|parcel| parcel.place.len()).collect()
    }

    fn acquire(no: u64) -> Verb {
        Verb::Acquire { no, cost: 1, may_wait: true, order: 0, label: "".into() }
    }

    fn header(epoch: u64, declares: bool) -> Header {
        let declaration = Arc::new(Declaration { declares, ..Declaration::default() });
        Header { epoch, bare: true, version: 0, declaration }
    }

    /// The script looks up first what is known of each.
    #[test]
    fn a_ticket_is_named_once_in_a_parcel() {
        let release = |no| Verb::Release([(no, 7)].into());
        let verbs = vec![acquire(1), release(2), Verb::Cancel([1].into()), acquire(3), release(1), acquire(2)];
        assert_eq!(parcels(verbs, &header(1, false)), [2, 2, 2]);
    }

    /// Found by the simulation: a cancel came through, and then its acquire, which nobody cancelled any more.
    #[test]
    fn what_comes_again_is_still_before_what_is_said_of_the_same_ticket() {
        let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let calls = calls(vec![acquire(1), acquire(2), Verb::Cancel([1].into()), acquire(3)], &header(1, false));
        let mut passes = Passes::new(calls.len());
        let refs: Vec<&Call> = calls.iter().collect();
        passes.take(0..2, &refs[0..2], Value::Array(vec![text("apart"), Value::Int(1), text(""), Value::Int(1)]));
        passes.take(2..4, &refs[2..4], text("n;q9,1,-1 g,7,7,7"));
        assert!(passes.next(|index| &calls[index]));
        let (again, parcels) = passes.parcels(|index| (&calls[index], false));
        assert_eq!((again.len(), parcels.len()), (3, 3));
        assert!(matches!(again[2].verb, Verb::Cancel(_)));
        for (place, told) in ["q7,1,-1", "q8,2,-1", "q"].into_iter().enumerate() {
            passes.take(place..place + 1, &again[place..place + 1], text(told));
        }
        assert!(!passes.next(|index| &calls[index]));
        let said: Vec<Answer> = passes
            .end()
            .into_iter()
            .map(|said| match said {
                Said::Answer(Ok(answer)) => answer,
                _ => panic!("all were answered"),
            })
            .collect();
        assert_eq!(said[2].verdict, Verdict::Cancelled([crate::store::Was::Queued].into()));
        assert_eq!(said[3].notices.len(), 1, "what was told the first time is not lost");
    }

    #[test]
    fn releases_go_first_in_their_parcel_and_the_rest_keep_their_order() {
        let release = |no| Verb::Release([(no, 7)].into());
        let calls = calls(vec![acquire(1), release(2), acquire(3), release(4), release(1)], &header(1, false));
        let mut passes = Passes::new(calls.len());
        let (_, parcels) = passes.parcels(|index| (&calls[index], false));
        let places: Vec<_> = parcels.into_iter().map(|parcel| parcel.place).collect();
        assert_eq!(places, [0..4, 4..5]);
        assert_eq!((0..5).map(|place| passes.number(place)).collect::<Vec<_>>(), [1, 3, 0, 2, 4]);
    }

    #[test]
    fn what_has_to_be_judged_or_is_large_goes_by_itself() {
        let verbs = || (1..=3).map(acquire).collect();
        assert_eq!(parcels(verbs(), &header(1, false)), [3]);
        assert_eq!(parcels(verbs(), &header(0, false)), [1, 1, 1], "by one who knows no epoch");
        assert_eq!(parcels(verbs(), &header(1, true)), [1, 1, 1], "by one who declares");
        let several = vec![acquire(1), Verb::Cancel(vec![2, 3].into()), acquire(4), acquire(5)];
        assert_eq!(parcels(several, &header(1, false)), [1, 1, 2]);
        assert_eq!(parcels((0..40).map(acquire).collect(), &header(1, false)), [32, 8]);
    }
}
