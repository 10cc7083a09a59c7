//! Runs: one seed after the other, and what is said of one that fails.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::faults::Faults;
use super::redis::Rewrite;
use super::trace::Trace;
use super::world::World;

/// What came of a run.
pub(super) struct Outcome {
    pub broken: Option<String>,
    pub digest: u64,
    pub lines: Vec<String>,
    pub steps: u64,
    pub granted: u64,
    pub losses: std::collections::BTreeMap<String, u64>,
    pub faults: Faults,
}

/// So many steps are more than any run takes: something goes round in circles.
const MOST_STEPS: u64 = 400_000;

pub(super) fn run(seed: u64, allowed: Faults, rewrite: Option<Rewrite>, text: bool) -> Outcome {
    let mut world = World::new(seed, allowed, rewrite, Trace::new(text));
    let mut steps = 0;
    let done = catch_unwind(AssertUnwindSafe(|| {
        while world.step() && steps < MOST_STEPS {
            steps += 1;
        }
    }));
    let mut broken = world.oracle.broken.take();
    if let Err(panic) = &done {
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        broken = Some(format!("a panic: {}", text.unwrap_or("?")));
    } else if broken.is_none() && !world.over {
        broken = Some("it does not come to an end".into());
    }
    Outcome {
        broken,
        digest: world.trace.digest(&mut world.rng),
        lines: world.trace.take_lines(),
        steps,
        granted: world.oracle.granted,
        losses: std::mem::take(&mut world.losses),
        faults: world.faults,
    }
}

/// The fewest kinds of faults with which the seed still fails in the same way.
fn shrunk(seed: u64, outcome: &Outcome) -> Faults {
    let way = |outcome: &Outcome| outcome.broken.as_ref().map(|text| text.split(':').next().map(str::to_owned));
    let mut least = outcome.faults;
    for kind in outcome.faults.kinds() {
        if way(&run(seed, least.without(kind), None, false)) == way(outcome) {
            least = least.without(kind);
        }
    }
    least
}

fn report(seed: u64, outcome: &Outcome) -> String {
    let least = shrunk(seed, outcome);
    let again = run(seed, least, None, true);
    let tail = &again.lines[again.lines.len().saturating_sub(120)..];
    format!(
        "seed {seed}: {}\n{}\n{}\nall of it: FAIRQ_SIM_SEED={seed} FAIRQ_SIM_FAULTS={least} \
         cargo test --all-features --lib simulation::run::tests::seeds -- --nocapture",
        outcome.broken.as_deref().unwrap_or_default(),
        tail.join("\n"),
        again.broken.as_deref().unwrap_or("(not with fewer faults)"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(name: &str) -> Option<u64> {
        std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
    }

    fn allowed() -> Faults {
        std::env::var("FAIRQ_SIM_FAULTS").map_or(Faults::ALL, |names| Faults::named(&names))
    }

    #[test]
    fn seeds() {
        if let Some(seed) = number("FAIRQ_SIM_SEED") {
            let outcome = run(seed, allowed(), None, true);
            println!("{}", outcome.lines.join("\n"));
            assert_eq!(outcome.broken, None);
            return;
        }
        let start = number("FAIRQ_SIM_START").unwrap_or_else(|| u64::from(std::process::id()) << 20);
        let count = number("FAIRQ_SIM_SEEDS").unwrap_or(100);
        println!("seeds {start} to {}: FAIRQ_SIM_START={start} FAIRQ_SIM_SEEDS={count}", start + count - 1);
        let (mut steps, mut granted, mut losses) = (0, 0, std::collections::BTreeMap::new());
        let mut failures = Vec::new();
        for seed in start..start + count {
            let outcome = run(seed, allowed(), None, false);
            steps += outcome.steps;
            granted += outcome.granted;
            for (why, count) in &outcome.losses {
                *losses.entry(why.clone()).or_insert(0) += count;
            }
            if outcome.broken.is_some() {
                println!("{seed}: {:.300}", outcome.broken.as_deref().unwrap_or_default());
                failures.push((seed, outcome));
                if failures.len() >= 10 {
                    break;
                }
            }
        }
        println!("{count} runs, {steps} steps, {granted} grants; lost: {losses:?}");
        if let Some((seed, outcome)) = failures.first() {
            panic!("{} runs failed; the first:\n{}", failures.len(), report(*seed, outcome));
        }
    }

    /// S28, S43, P9: whoever is well keeps what it holds, whatever happens to the server and to messages.
    #[test]
    fn nobody_loses_a_permit_to_what_happens_to_the_server() {
        let server = "stop,restart,lost-writes,lost-all,flush,keys,scripts,messages,deaf,slow,full,unsubscribe";
        for seed in 1..=15 {
            let outcome = run(seed, Faults::named(server), None, false);
            assert_eq!(outcome.broken, None, "seed {seed}");
            assert!(outcome.losses.is_empty(), "seed {seed}: {:?}", outcome.losses);
        }
    }

    /// A failure can only be looked into when it comes again.
    #[test]
    fn the_same_seed_is_the_same_run() {
        for seed in 0..5 {
            assert_eq!(run(seed, Faults::ALL, None, true).digest, run(seed, Faults::ALL, None, true).digest);
        }
    }
}
