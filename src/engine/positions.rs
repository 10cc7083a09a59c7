//! Tells waiting requests where they stand, when they asked to be told. One call per poll interval, process and limiter,
//! whose cost is bounded: of many waiting tickets a sample is asked about, evenly spread over the line, and the others lie
//! between their neighbours in it.

use std::collections::HashMap;

use super::*;
use crate::status::Position;
use crate::store::{Answer, Few, StoreError, Verdict};

/// So many tickets are asked about in one call.
const SAMPLE: usize = 100;

impl Engine {
    /// Asks where the watched tickets stand, unless that was done just now.
    pub(super) fn watch_positions(&self, turn: &mut Turn<'_>, limiter: LimiterIndex) {
        let state = &mut turn.table.limiters[limiter];
        let just_now = state.positions_asked_at + state.poll / 2 > turn.now;
        if state.watched.is_empty() || state.asking_positions || just_now {
            return;
        }
        state.asking_positions = true;
        state.positions_asked_at = turn.now;
        let sample = sample(&state.watched.iter().map(|(_, no)| *no).collect::<Vec<_>>());
        let call = turn.table.call(limiter, Verb::Position(Few::from_slice(&sample)), turn.now);
        turn.fx.calls.push((call, Asked::Positions { tickets: sample }));
    }

    pub(super) fn positions_answered(
        &self,
        turn: &mut Turn<'_>,
        limiter: LimiterIndex,
        tickets: &[TicketNo],
        result: Result<Answer, StoreError>,
    ) {
        turn.table.limiters[limiter].asking_positions = false;
        // Without an answer there is no news; the next interval asks again.
        let Ok(Answer { verdict: Verdict::Positions(positions), .. }) = result else { return };
        let told = tickets.iter().copied().zip(positions).filter(|(_, (position, _))| *position > 0);
        let known = told.map(|(no, (position, estimate))| (no, Position { position, estimate })).collect();
        let line: Vec<TicketNo> = turn.table.limiters[limiter].watched.iter().map(|(_, no)| *no).collect();
        for (no, position) in fill_in(&line, &known) {
            self.set_position(turn, no, position, known.contains_key(&no));
        }
    }

    /// Notes where a ticket stands, and has its owner told if that is news. What is only estimated never moves a
    /// ticket back.
    pub(super) fn set_position(&self, turn: &mut Turn<'_>, no: TicketNo, position: Position, exact: bool) {
        let Some(slot) = turn.table.tickets.get(&no) else { return };
        let was = slot.waiter.position();
        let back = was.is_some_and(|was| was.position < position.position);
        if was == Some(position) || back && !exact {
            return;
        }
        slot.waiter.set_position(Some(position));
        if slot.waiter.reports_position() {
            turn.fx.moved.push(slot.waiter.clone());
        }
    }
}

/// At most [`SAMPLE`] of the line, the first and the last among them.
fn sample(line: &[TicketNo]) -> Vec<TicketNo> {
    if line.len() <= SAMPLE {
        return line.to_vec();
    }
    (0..SAMPLE).map(|i| line[i * (line.len() - 1) / (SAMPLE - 1)]).collect()
}

/// The positions of all tickets that have a known one at or behind them. Those between two known ones are spread evenly,
/// which is exact where nobody else's tickets stand between them.
fn fill_in(line: &[TicketNo], known: &HashMap<TicketNo, Position>) -> Vec<(TicketNo, Position)> {
    let mut all = Vec::with_capacity(line.len());
    let (mut ahead, mut before) = (Vec::new(), 0);
    for no in line {
        let Some(here) = known.get(no) else {
            ahead.push(*no);
            continue;
        };
        let (parts, distance) = (ahead.len() as u64 + 1, here.position.saturating_sub(before));
        for (part, no) in (1..).zip(ahead.drain(..)) {
            let position = (before + distance * part / parts).max(1);
            let share = position as f64 / here.position as f64;
            all.push((no, Position { position, estimate: here.estimate.map(|e| e.mul_f64(share.min(1.0))) }));
        }
        all.push((*no, *here));
        before = here.position;
    }
    all
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn at(position: u64) -> Position {
        Position { position, estimate: Some(Duration::from_secs(position)) }
    }

    #[test]
    fn a_sample_spans_the_line_and_is_bounded() {
        let line: Vec<TicketNo> = (0..10_000).collect();
        let sample = sample(&line);
        assert_eq!((sample.len(), sample[0], sample[SAMPLE - 1]), (SAMPLE, 0, 9_999));
        assert_eq!(super::sample(&line[..3]), [0, 1, 2]);
    }

    #[test]
    fn positions_between_known_ones_are_exact_when_nobody_else_stands_there() {
        let line: Vec<TicketNo> = (1..=9).collect();
        let known = HashMap::from([(1, at(1)), (5, at(5)), (9, at(13))]);
        let filled = fill_in(&line, &known);
        assert_eq!(filled[..5], [(1, at(1)), (2, at(2)), (3, at(3)), (4, at(4)), (5, at(5))]);
        assert_eq!(filled[6], (7, at(9)), "half of the others stand before it");
    }

    #[test]
    fn behind_the_last_known_one_nothing_is_claimed() {
        assert_eq!(fill_in(&[1, 2, 3], &HashMap::from([(2, at(7))])).len(), 2);
        assert!(fill_in(&[1, 2, 3], &HashMap::new()).is_empty());
    }
}
