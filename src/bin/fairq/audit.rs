//! The proof: what workers recorded about their grants, held against the promises.
//!
//! A worker notes the time after it learnt of a grant and before it gives the permit back, so a recorded interval lies
//! inside the true one: what is found here did happen. (That nothing was missed is the business of the tests.)

use std::ops::Range;

/// One grant, as the process saw it that got it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    pub fence: u64,
    pub order: u64,
    pub cost: u64,
    pub start_ns: u64,
    pub end_ns: u64,
    /// Which process it was.
    pub process: usize,
}

/// A limit that was in force from a moment on.
#[derive(Clone, Copy, Debug)]
pub struct LimitChange {
    /// The earliest moment at which it can have taken effect: before the call.
    pub asked_ns: u64,
    /// The moment from which it was in force for certain: after the call.
    pub done_ns: u64,
    pub limit: u64,
}

/// A process may hear of its grant this much after the store decided it; a lowered limit binds only from then on.
const NEWS_NS: u64 = 100_000_000;

/// The highest cost held at once.
pub fn most_at_once(grants: &[Grant]) -> u64 {
    let mut edges: Vec<(u64, bool, u64)> = Vec::with_capacity(grants.len() * 2);
    for grant in grants {
        edges.push((grant.start_ns, true, grant.cost));
        edges.push((grant.end_ns, false, grant.cost));
    }
    // At the same nanosecond the end (false) comes first.
    edges.sort_unstable();
    let (mut held, mut most) = (0u64, 0);
    for (_, starts, cost) in edges {
        held = if starts { held + cost } else { held.saturating_sub(cost) };
        most = most.max(held);
    }
    most
}

/// How many grants came while the cost held, with theirs, exceeded the limit in force.
pub fn over_limit(grants: &[Grant], limits: &[LimitChange]) -> usize {
    let mut ordered = grants.to_vec();
    ordered.sort_unstable_by_key(|grant| grant.start_ns);
    let mut held: Vec<Grant> = Vec::new();
    let mut over = 0;
    for grant in ordered {
        held.retain(|other| other.end_ns > grant.start_ns);
        held.push(grant);
        let used: u64 = held.iter().map(|other| other.cost).sum();
        over += usize::from(used > limit_for(grant.start_ns, limits));
    }
    over
}

/// How many grants were overtaken: given after one that stood behind them in line.
pub fn overtaken(grants: &[Grant]) -> usize {
    let mut ordered = grants.to_vec();
    ordered.sort_unstable_by_key(|grant| grant.fence);
    let mut highest = 0;
    let mut count = 0;
    for grant in ordered {
        count += usize::from(grant.order < highest);
        highest = highest.max(grant.order);
    }
    count
}

/// How many fences were given more than once.
pub fn repeated_fences(grants: &[Grant]) -> usize {
    let mut fences: Vec<u64> = grants.iter().map(|grant| grant.fence).collect();
    fences.sort_unstable();
    let all = fences.len();
    fences.dedup();
    all - fences.len()
}

/// From a release to the moment at which another process has the grant that follows it. Meaningful at limit 1 only,
/// where the grant with the next fence is the one that the release made possible.
pub fn handoffs_ns(grants: &[Grant]) -> Vec<u64> {
    let mut ordered = grants.to_vec();
    ordered.sort_unstable_by_key(|grant| grant.fence);
    let pairs = ordered.windows(2).filter(|pair| pair[0].process != pair[1].process);
    pairs.map(|pair| pair[1].start_ns.saturating_sub(pair[0].end_ns)).collect()
}

/// From each release of these times to the grant that takes its slot, if somebody waits all the time and all costs are 1.
/// Slots are alike: the n-th release makes room for the grant number n + limit.
pub fn refills_ns(grants: &[Grant], limit: u64, times: Range<u64>) -> Vec<u64> {
    let mut starts: Vec<u64> = grants.iter().map(|grant| grant.start_ns).collect();
    let mut ends: Vec<u64> = grants.iter().map(|grant| grant.end_ns).collect();
    starts.sort_unstable();
    ends.sort_unstable();
    let refills = ends.iter().zip(starts.iter().skip(limit as usize));
    refills.filter(|(end, _)| times.contains(end)).map(|(end, start)| start.saturating_sub(*end)).collect()
}

/// The highest limit that a grant heard of at this moment may have been decided under.
fn limit_for(now_ns: u64, limits: &[LimitChange]) -> u64 {
    let possible = limits.iter().enumerate().filter(|(index, change)| {
        let replaced = limits.get(index + 1).is_some_and(|next| next.done_ns + NEWS_NS < now_ns);
        change.asked_ns <= now_ns && !replaced
    });
    possible.map(|(_, change)| change.limit).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(fence: u64, order: u64, start_ns: u64, end_ns: u64) -> Grant {
        Grant { fence, order, cost: 1, start_ns, end_ns, process: (fence % 2) as usize }
    }

    fn limit(at_ns: u64, limit: u64) -> LimitChange {
        LimitChange { asked_ns: at_ns, done_ns: at_ns, limit }
    }

    #[test]
    fn counts_what_is_held_at_the_same_time() {
        let grants = [grant(1, 1, 0, 10), grant(2, 2, 10, 20), grant(3, 3, 15, 30)];
        assert_eq!(most_at_once(&grants), 2);
        assert_eq!(most_at_once(&[]), 0);
    }

    #[test]
    fn a_grant_above_the_limit_is_found() {
        let grants = [grant(1, 1, 0, 10), grant(2, 2, 5, 20)];
        assert_eq!(over_limit(&grants, &[limit(0, 2)]), 0);
        assert_eq!(over_limit(&grants, &[limit(0, 1)]), 1);
    }

    #[test]
    fn a_lowered_limit_binds_new_grants_only() {
        const SECOND: u64 = 1_000_000_000;
        let limits = [limit(0, 2), limit(2 * SECOND, 1)];
        let held = [grant(1, 1, 0, 9 * SECOND), grant(2, 2, SECOND, 9 * SECOND)];
        assert_eq!(over_limit(&held, &limits), 0, "nothing is taken back");
        let late = [held[0], grant(2, 2, 3 * SECOND, 9 * SECOND)];
        assert_eq!(over_limit(&late, &limits), 1);
    }

    #[test]
    fn an_overtaken_grant_is_found() {
        assert_eq!(overtaken(&[grant(1, 1, 0, 1), grant(2, 2, 0, 1), grant(3, 3, 0, 1)]), 0);
        assert_eq!(overtaken(&[grant(1, 1, 0, 1), grant(2, 3, 0, 1), grant(3, 2, 0, 1)]), 1);
    }

    #[test]
    fn handoffs_are_between_processes() {
        let same = Grant { process: 1, ..grant(2, 2, 14, 20) };
        let grants = [grant(1, 1, 0, 10), same, Grant { process: 0, ..grant(3, 3, 27, 30) }];
        assert_eq!(handoffs_ns(&grants), vec![7]);
    }

    #[test]
    fn a_slot_is_taken_by_the_next_but_limit() {
        let grants = [grant(1, 1, 0, 10), grant(2, 2, 0, 20), grant(3, 3, 13, 30), grant(4, 4, 21, 40)];
        assert_eq!(refills_ns(&grants, 2, 0..99), vec![3, 1]);
        assert_eq!(refills_ns(&grants, 2, 11..99), vec![1]);
        assert_eq!(refills_ns(&grants, 9, 0..99), Vec::<u64>::new());
    }

    #[test]
    fn a_repeated_fence_is_found() {
        assert_eq!(repeated_fences(&[grant(1, 1, 0, 1), grant(1, 2, 0, 1)]), 1);
    }
}
