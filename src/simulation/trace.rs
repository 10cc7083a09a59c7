//! What happened in a run: always as a number that two runs can be compared by, and as text when somebody reads it.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::rng::Rng;
use crate::clock::Nanos;

pub(super) struct Trace {
    hash: DefaultHasher,
    lines: Option<Vec<String>>,
}

impl Trace {
    /// `text`: keeps the lines.
    pub(super) fn new(text: bool) -> Self {
        Trace { hash: DefaultHasher::new(), lines: text.then(Vec::new) }
    }

    pub(super) fn line(&mut self, now: Nanos, text: impl FnOnce() -> String) {
        now.hash(&mut self.hash);
        if let Some(lines) = &mut self.lines {
            let text = text();
            text.hash(&mut self.hash);
            lines.push(format!("{:10.4} {text}", now as f64 / 1e9));
        }
    }

    /// What is left of chance, so that a difference in it shows even where no line tells of it.
    pub(super) fn digest(&self, rng: &mut Rng) -> u64 {
        let mut hash = self.hash.clone();
        rng.next().hash(&mut hash);
        hash.finish()
    }

    pub(super) fn take_lines(&mut self) -> Vec<String> {
        self.lines.take().unwrap_or_default()
    }
}
