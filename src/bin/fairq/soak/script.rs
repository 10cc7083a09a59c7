//! What follows from the seed: what workers ask for, and what is broken when.

use std::time::Duration;

/// The limits of the limiters: one alone, a few, and many.
pub const LIMITS: [u64; 3] = [1, 4, 10];
/// Long for a patient one; who is not served by then never will be.
pub const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// A sequence of numbers that depends on its seed only.
#[derive(Clone)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        let mut dice = Dice(seed ^ 0x5851_f42d_4c95_7f2d);
        dice.roll(1); // small seeds look alike at first
        dice
    }

    /// Below `sides`.
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    pub fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.roll(to - from))
    }
}

/// One request.
pub struct Wish {
    pub limiter: usize,
    pub cost: u64,
    pub wait: Duration,
    pub hold: Duration,
    /// Given up after so long, if it still waits.
    pub cancel_after: Option<Duration>,
    /// Dropped rather than released.
    pub dropped: bool,
}

impl Wish {
    pub fn next(dice: &mut Dice) -> Wish {
        let limiter = dice.roll(LIMITS.len() as u64) as usize;
        let cost = 1 + dice.roll(LIMITS[limiter].min(3));
        let wait = if dice.roll(6) == 0 { dice.millis(0, 60) } else { LONGEST_WAIT };
        let hold = if dice.roll(20) == 0 { dice.millis(50, 200) } else { dice.millis(0, 20) };
        let cancel_after = (dice.roll(6) == 0).then(|| dice.millis(0, 50));
        Wish { limiter, cost, wait, hold, cancel_after, dropped: dice.roll(5) == 0 }
    }
}

/// Something that goes wrong. None lasts so long that a lease could end, but for stops and deaths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// kill -9; another process takes its place.
    Kill(usize),
    /// SIGSTOP for a time, perhaps longer than a lease.
    Stop(usize, Duration),
    /// Connections are closed by the proxy.
    Cut,
    /// Connections are closed by the server.
    ClientKill,
    /// Connections fall silent for good.
    Freeze,
    /// Nothing passes for a while.
    Hang(Duration),
    /// Everything takes longer for a while.
    Slow(Duration, Duration),
    /// Some replies are lost, with their connections, for a while.
    Lossy(Duration),
}

impl Fault {
    /// The next one, and how long it comes after the last.
    pub fn next(dice: &mut Dice, processes: usize, network: bool) -> (Duration, Fault) {
        let pause = dice.millis(500, 3_000);
        let process = dice.roll(processes as u64) as usize;
        let fault = match dice.roll(if network { 8 } else { 2 }) {
            0 => Fault::Kill(process),
            1 => Fault::Stop(process, dice.millis(100, 6_000)),
            2 => Fault::Cut,
            3 => Fault::ClientKill,
            4 => Fault::Freeze,
            5 => Fault::Hang(dice.millis(50, 600)),
            6 => Fault::Slow(dice.millis(5, 100), dice.millis(500, 2_000)),
            _ => Fault::Lossy(dice.millis(200, 1_000)),
        };
        (pause, fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_breaks_the_same_things() {
        let faults = |seed| {
            let mut dice = Dice::new(seed);
            (0..50).map(|_| Fault::next(&mut dice, 4, true)).collect::<Vec<_>>()
        };
        assert_eq!(faults(7), faults(7));
        assert_ne!(faults(7), faults(8));
    }

    #[test]
    fn nobody_asks_for_more_than_there_can_be() {
        let mut dice = Dice::new(1);
        for _ in 0..1000 {
            let wish = Wish::next(&mut dice);
            assert!((1..=LIMITS[wish.limiter]).contains(&wish.cost));
        }
    }
}
