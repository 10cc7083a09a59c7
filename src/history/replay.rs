//! The history on the model.

use std::time::Duration;

use super::entry::{Entry, INSTANCES, Write};
use super::oracle::Oracle;
use crate::store::conformance::State;
use crate::store::model::Model;
use crate::store::redis::test_access as scripts;
use crate::store::{Answer, Notice, Verdict};

/// How often the first in line look for the dead (`lua/lib/look.lua`).
const LOOK: Duration = Duration::from_millis(200);

/// The limiter as the model sees it.
pub(super) struct Replay {
    model: Model,
}

impl Replay {
    pub(super) fn new() -> Self {
        Replay { model: Model::new() }
    }

    pub(super) fn state(&self) -> Option<State> {
        self.model.state()
    }

    /// Carries out a row; `before` is the oracle, which has not seen it yet. `Err` says what differs.
    pub(super) fn step(&mut self, entry: &Entry, before: &Oracle) -> Result<(), String> {
        match entry.script.as_str() {
            "-flush" => self.model.lose(),
            "-delete" if entry.args[0] == "1" => self.model.lose(),
            "-delete" => self.model.damage(),
            _ => return self.script(entry, before),
        }
        Ok(())
    }

    fn script(&mut self, entry: &Entry, before: &Oracle) -> Result<(), String> {
        // Who does not listen any more is taken for dead by the server's word, which the model cannot ask.
        for write in &entry.writes {
            if let Write::Add { place: INSTANCES, member, score: 0.0 } = write {
                self.model.expire(&member.as_str().into());
            }
        }
        let (calls, caller) = (entry.calls(), entry.caller());
        let (mut expected, mut others) = (Vec::new(), Vec::new());
        for call in &calls {
            let (answer, told) = self.model.call(&caller, &call.header, &call.verb, entry.wall);
            expected.push(answer);
            others.extend(told);
        }
        if let [only] = &mut expected[..] {
            if entry.is_probe() && only.verdict != Verdict::Resync {
                remind(only, before, &caller.instance);
            }
            self.hurry(only, entry);
        }
        let (got, expected) = (sorted(entry.answers(&calls)), sorted(expected));
        if got != expected {
            return Err(format!("the server answered\n{got:?}\nand the model\n{expected:?}"));
        }
        let mut told = Vec::new();
        for write in &entry.writes {
            if let Write::Publish { to, text } = write {
                let owner = to.strip_prefix("fq:").unwrap_or(to);
                told.extend(scripts::message(text).into_iter().map(|notice| (owner.to_owned(), notice)));
            }
        }
        let mut others: Vec<_> = others.into_iter().map(|(owner, notice)| (owner.to_string(), notice)).collect();
        told.sort_by(|a, b| a.0.cmp(&b.0)); // stable: to each owner in order
        others.sort_by(|a, b| a.0.cmp(&b.0));
        match told == others {
            true => Ok(()),
            false => Err(format!("the server told\n{told:?}\nand the model\n{others:?}")),
        }
    }
}

impl Replay {
    /// Who listens for others, and stands in front, is to look after them more often; the model does not know who listens.
    fn hurry(&self, answer: &mut Answer, entry: &Entry) {
        let Verdict::Synced(synced) = &mut answer.verdict else { return };
        let Some(state) = self.model.state().filter(|_| entry.listens()) else { return };
        let prefix = format!("{}:", entry.instance());
        let in_front = state.queue.iter().take(3).any(|(ticket, ..)| ticket.starts_with(&prefix));
        if in_front && state.instances.len() > 1 {
            synced.next = Some(synced.next.map_or(LOOK, |next| next.min(LOOK)));
        }
    }
}

/// A probe is answered with all that its caller held before; the model does not know probes.
fn remind(answer: &mut Answer, before: &Oracle, instance: &str) {
    for notice in before.held_by(instance) {
        if !answer.notices.contains(&notice) {
            answer.notices.push(notice);
        }
    }
}

/// The order of notices says nothing; those of a parcel come with its last answer.
fn sorted(mut answers: Vec<Answer>) -> Vec<Answer> {
    let mut notices: Vec<Notice> = answers.iter_mut().flat_map(|answer| std::mem::take(&mut answer.notices)).collect();
    let number = |notice: &Notice| match *notice {
        Notice::Granted { no, .. }
        | Notice::Impossible { no, .. }
        | Notice::PermitRevoked { no }
        | Notice::PlaceRevoked { no } => no,
    };
    notices.sort_by_key(number);
    if let Some(last) = answers.last_mut() {
        last.notices = notices;
    }
    answers
}
