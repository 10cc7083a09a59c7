//! Whether what several processes held, each as it saw it, is what one limiter may have given.

use fairq::Permit;

use super::{Report, now};

/// One permit in somebody's hands.
#[derive(Clone, Debug)]
pub struct Hold {
    pub label: String,
    pub order: u64,
    pub fence: u64,
    pub from: u64,
    pub to: u64,
}

impl Hold {
    /// A permit that the test itself holds from now on, for ever.
    pub fn begin(permit: &Permit) -> Hold {
        Hold { label: "-".into(), order: permit.order(), fence: permit.fence(), from: now(), to: u64::MAX }
    }

    /// To be called before the release.
    pub fn end(&mut self) {
        self.to = now();
    }
}

pub fn holds(reports: &[Report], silenced: &[u64]) -> Vec<Hold> {
    let granted = reports.iter().enumerate().filter(|(_, report)| report.what == "granted");
    granted.map(|(at, report)| hold(report, &reports[at..], silenced)).collect()
}

fn hold(granted: &Report, later: &[Report], silenced: &[u64]) -> Hold {
    let number = |i: usize| granted.words[i].parse().expect("a number");
    let is_end = |r: &&Report| (r.what == "leaving" || r.what == "released") && r.label == granted.label;
    let release = later.iter().find(is_end);
    let silence = silenced.iter().find(|at| **at >= granted.at);
    let end = release.map_or(u64::MAX, |r| r.at).min(silence.copied().unwrap_or(u64::MAX));
    Hold { label: granted.label.clone(), order: number(0), fence: number(1), from: granted.at, to: end }
}

/// P1 and P5: never more than `limit` at once, and no fence twice.
#[track_caller]
pub fn check_limit(holds: &[Hold], limit: usize) {
    let starts = holds.iter().map(|hold| (hold.from, 1, hold.fence));
    let ends = holds.iter().map(|hold| (hold.to, -1, hold.fence));
    let mut steps: Vec<(u64, i32, u64)> = starts.chain(ends).collect();
    steps.sort_unstable(); // at the same moment an end is before a start
    let mut held = 0;
    for (at, step, fence) in steps {
        held += step;
        let labels = holds.iter().filter(|hold| hold.from <= at && at < hold.to).map(|hold| &hold.label);
        assert!(
            held <= limit as i32,
            "{held} held at {at}, when {fence} was granted: {:?}",
            labels.collect::<Vec<_>>()
        );
    }
    let mut fences: Vec<u64> = holds.iter().map(|hold| hold.fence).collect();
    fences.sort_unstable();
    assert!(fences.windows(2).all(|pair| pair[0] < pair[1]), "a fence was given twice: {fences:?}");
}

/// P6: granted in the order of arrival, over all processes.
#[track_caller]
pub fn check_order(holds: &[Hold]) {
    let mut holds: Vec<&Hold> = holds.iter().collect();
    holds.sort_unstable_by_key(|hold| hold.fence);
    for pair in holds.windows(2) {
        assert!(pair[0].order < pair[1].order, "overtaken: {:?} came before {:?}", pair[0], pair[1]);
    }
}

/// The checks can fail.
mod tests {
    use super::*;

    fn at(order: u64, from: u64, to: u64) -> Hold {
        Hold { label: "-".into(), order, fence: from, from, to }
    }

    #[test]
    fn one_after_the_other_is_within_a_limit_of_one() {
        check_limit(&[at(1, 1, 5), at(2, 5, 9)], 1);
        check_order(&[at(2, 5, 9), at(1, 1, 5)]);
    }

    #[test]
    #[should_panic(expected = "2 held")]
    fn two_at_once_are_over_a_limit_of_one() {
        check_limit(&[at(1, 1, 5), at(2, 4, 9)], 1);
    }

    #[test]
    #[should_panic(expected = "overtaken")]
    fn a_later_order_with_an_earlier_fence_is_an_overtaking() {
        check_order(&[at(2, 1, 5), at(1, 2, 9)]);
    }
}
