//! The scout thread, where limiters may move from server to server (a cluster, or a service watched by sentinels): it
//! finds out who has what, so that no caller has to. It looks when a call has nowhere to go, when a node cannot be
//! reached or has sent somebody on, and, for sentinels, every now and then while there is work: a master that is cut off from
//! them believes in itself for a while, and so would its clients.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError};

use super::link::{Errand, FIRST_PAUSE, LAST_PAUSE};
use super::lookout::Lookout;
use super::router::Router;
use super::slots::View;
use super::url::Layout;
use crate::jitter;
use crate::store::StoreError;

/// How often sentinels are asked when nothing seems wrong: as often as attempts to connect may be made for the shortest
/// lease (an eighth of it), within these bounds.
const SHORTEST_ROUND: Duration = Duration::from_millis(500);
const LONGEST_ROUND: Duration = Duration::from_secs(2);

/// So many looks in a row that bring only old news, in trouble, are not believed.
const MOST_OLD_NEWS: u32 = 10;

/// What the scout is told.
pub(super) enum Word {
    /// A call whose limiter belongs to nobody, as far as is known.
    Errand(Errand),
    /// Something is not where it was thought to be.
    Look,
}

pub(super) struct Scout {
    router: Arc<Router>,
    words: Receiver<Word>,
    lookout: Lookout,
    /// Somebody has asked for a look.
    wanted: bool,
    /// Somebody cannot go where he was sent to; otherwise it is only time for a look.
    trouble: bool,
    pause: Duration,
    next_look: Instant,
    next_round: Instant,
    /// So many times in a row only older views were to be had than the known one.
    old_news: u32,
    last_error: Option<StoreError>,
}

impl Scout {
    pub(super) fn new(router: Arc<Router>, words: Receiver<Word>) -> Self {
        let lookout = Lookout::new(router.options.clone());
        let now = Instant::now();
        Scout {
            router,
            words,
            lookout,
            wanted: true,
            trouble: false,
            pause: Duration::ZERO,
            next_look: now,
            next_round: now,
            old_news: 0,
            last_error: None,
        }
    }

    /// Runs until its sender is dropped.
    pub(super) fn run(mut self) {
        loop {
            let stranded = match self.gather() {
                Some(stranded) => stranded,
                None => return,
            };
            self.go_round();
            if (self.wanted || !stranded.is_empty()) && self.next_look <= Instant::now() {
                self.look();
            }
            self.send_on(stranded);
        }
    }

    /// Waits for a word, or for the next look. `None`: the end.
    fn gather(&mut self) -> Option<Vec<Errand>> {
        let mut stranded = Vec::new();
        let mut word = match self.time_to_next_look() {
            None => self.words.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(left) => self.words.recv_timeout(left),
        };
        loop {
            match word {
                Ok(Word::Errand(errand)) => stranded.push(errand),
                Ok(Word::Look) => (self.wanted, self.trouble) = (true, true),
                Err(RecvTimeoutError::Timeout) => return Some(stranded),
                Err(RecvTimeoutError::Disconnected) => {
                    self.send_on(stranded);
                    return None;
                }
            }
            word = self.words.try_recv().map_err(|error| match error {
                crossbeam_channel::TryRecvError::Empty => RecvTimeoutError::Timeout,
                crossbeam_channel::TryRecvError::Disconnected => RecvTimeoutError::Disconnected,
            });
        }
    }

    fn time_to_next_look(&self) -> Option<Duration> {
        let left = |at: Instant| at.saturating_duration_since(Instant::now());
        match self.router.options.layout() {
            _ if self.wanted => Some(left(self.next_look)),
            Layout::Sentinel { .. } => Some(left(self.next_round)),
            _ => None,
        }
    }

    /// Time to ask the sentinels again, if anybody cares.
    fn go_round(&mut self) {
        if !matches!(self.router.options.layout(), Layout::Sentinel { .. }) || self.next_round > Instant::now() {
            return;
        }
        let pause = self.router.longest_pause(&|_| true);
        let round = pause.unwrap_or(LONGEST_ROUND).clamp(SHORTEST_ROUND, LONGEST_ROUND);
        self.next_round = Instant::now() + jitter::spread(round);
        self.wanted |= pause.is_some();
    }

    fn look(&mut self) {
        let (known, epoch) = self.router.known();
        let found = self.lookout.look(&known, epoch);
        self.wanted = false;
        let trouble = std::mem::take(&mut self.trouble);
        let longest = self.longest_pause();
        // News or not: nodes that do not agree would have news for ever.
        let quiet = self.next_look.elapsed() > LAST_PAUSE;
        let pause = if quiet { FIRST_PAUSE } else { self.pause * 2 };
        self.pause = pause.clamp(FIRST_PAUSE, longest.unwrap_or(LAST_PAUSE));
        match found {
            Ok(view) => {
                self.last_error = None;
                if self.is_credible(&view, epoch, trouble) {
                    self.router.learn(&view);
                }
            }
            Err(error) => {
                tracing::debug!(%error, "nobody says where the limiters are");
                let is_outage = !matches!(error, StoreError::Fatal(_));
                if let Some(listener) = self.router.listener.upgrade().filter(|_| is_outage) {
                    listener.link_down(&|name| self.router.owner(name).is_none(), &error.to_string());
                }
                // Whoever has nowhere to go goes on asking; who knows a node asks again when that fails.
                self.wanted = longest.is_some();
                self.last_error = Some(error);
            }
        }
        self.next_look = Instant::now() + jitter::spread(self.pause);
    }

    /// Whoever tells of older times than are known is cut off from the others, most likely; they will be heard again. But
    /// when what is known is of no use, and nobody else is heard any more, all may have been set up anew.
    fn is_credible(&mut self, view: &View, known: Option<u64>, trouble: bool) -> bool {
        let older = known.is_some_and(|known| view.epoch < known);
        self.old_news = if older { self.old_news + u32::from(trouble) } else { 0 };
        !older || self.old_news > MOST_OLD_NEWS
    }

    /// For how long looks may pause; `None`: everybody has somewhere to go.
    fn longest_pause(&self) -> Option<Duration> {
        let homeless = |name: &str| self.router.owner(name).is_none();
        self.router.longest_pause(&homeless).map(|pause| pause.clamp(FIRST_PAUSE, LAST_PAUSE))
    }

    /// To where the limiter lives; who still has nowhere to go is told.
    fn send_on(&self, stranded: Vec<Errand>) {
        for errand in stranded {
            match self.router.owner(&errand.call.limiter) {
                Some(_) => self.router.again(errand),
                None => (errand.reply)(Err(self.why_nowhere())),
            }
        }
    }

    fn why_nowhere(&self) -> StoreError {
        match &self.last_error {
            Some(StoreError::Away { detail, .. }) => StoreError::Away { detail: detail.clone(), down: true },
            Some(error) => error.clone(),
            None => StoreError::Away { detail: "no master has the limiter's slot".into(), down: true },
        }
    }
}
