//! What happened, as far as the stage has heard of it.

use std::time::Duration;

use super::plan::{Ending, LIMIT};
use super::worker::{Event, What};
use crate::audit::{Grant, LimitChange};
use crate::clock;

/// The life of one request.
#[derive(Clone, Debug, Default)]
pub struct Life {
    pub asked_ns: Option<u64>,
    pub granted: Option<Granted>,
    /// When an operator took the permit: it ended there, and its holder learns it a little later.
    pub taken_ns: Option<u64>,
    /// Every end that was reported; a promise says that there is one.
    pub ends: Vec<(u64, Ending)>,
}

#[derive(Clone, Debug)]
pub struct Granted {
    pub at_ns: u64,
    pub fence: u64,
    pub order: u64,
    pub ticket: String,
}

#[derive(Debug)]
pub struct Record {
    pub start_ns: u64,
    pub lives: Vec<Life>,
    pub limits: Vec<LimitChange>,
    /// From the kill (or the revocation) until the store had forgotten the permit.
    pub freed_after: Option<Duration>,
    pub most_waiting: u64,
    /// Held and waiting when all had ended.
    pub left_over: Option<(u64, u64)>,
}

impl Record {
    pub fn new(requests: usize) -> Record {
        let start_ns = clock::now_ns();
        Record {
            start_ns,
            lives: vec![Life::default(); requests],
            limits: vec![LimitChange { asked_ns: 0, done_ns: 0, limit: LIMIT }],
            freed_after: None,
            most_waiting: 0,
            left_over: None,
        }
    }

    pub fn life(&self, id: usize) -> &Life {
        &self.lives[id - 1]
    }

    pub fn add(&mut self, event: &Event) {
        let Some(life) = self.lives.get_mut(event.id.wrapping_sub(1)) else { return };
        match &event.what {
            What::Asked => life.asked_ns = Some(event.at_ns),
            What::Granted { fence, order, ticket } => {
                let (fence, order, ticket) = (*fence, *order, ticket.clone());
                life.granted = Some(Granted { at_ns: event.at_ns, fence, order, ticket });
            }
            What::Ended(ending) => life.ends.push((event.at_ns, *ending)),
        }
    }

    pub fn all_ended(&self) -> bool {
        self.lives.iter().all(|life| !life.ends.is_empty())
    }

    /// The grants, for the audit.
    pub fn grants(&self, plan: &super::plan::Plan) -> Vec<Grant> {
        let lives = self.lives.iter().zip(&plan.requests);
        lives
            .filter_map(|(life, request)| {
                let granted = life.granted.as_ref()?;
                Some(Grant {
                    fence: granted.fence,
                    order: granted.order,
                    cost: request.cost,
                    start_ns: granted.at_ns,
                    end_ns: life.held_until(),
                    process: request.process,
                })
            })
            .collect()
    }
}

impl Life {
    pub fn end(&self) -> Option<(u64, Ending)> {
        self.ends.first().copied()
    }

    /// When the permit ended for all others.
    fn held_until(&self) -> u64 {
        let reported = self.end().map_or(u64::MAX, |end| end.0);
        self.taken_ns.map_or(reported, |taken| taken.min(reported))
    }

    /// How long it stood in line, if it was granted.
    pub fn waited(&self) -> Option<Duration> {
        let granted = self.granted.as_ref()?;
        Some(Duration::from_nanos(granted.at_ns.saturating_sub(self.asked_ns?)))
    }
}
