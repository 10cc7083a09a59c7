//! Breaks things at the moments that the seed says, and puts in order again what lasts.

use std::time::{Duration, Instant};

use super::crew::Crew;
use super::ledger::Ledger;
use super::proxy::Proxy;
use super::script::{Dice, Fault};
use crate::exit::Failure;
use crate::server::Server;
use crate::site::Site;

pub struct Faults {
    dice: Dice,
    site: Site,
    /// Only where the address is understood by it.
    proxy: Option<Proxy>,
    next_at: Instant,
    /// Processes that stand still, and until when.
    standing: Vec<(usize, Instant)>,
    made: u64,
    admin: Server,
}

impl Faults {
    pub fn new(site: &Site, dice: Dice) -> Result<Faults, Failure> {
        let proxy = Proxy::before(site.url())?;
        let admin = Server::connect(site)?;
        let site = proxy.as_ref().map_or_else(|| site.clone(), |proxy| site.by(&proxy.url));
        let next_at = Instant::now() + Duration::from_secs(1);
        Ok(Faults { dice, site, proxy, next_at, standing: Vec::new(), made: 0, admin })
    }

    /// Where the workers are to connect to.
    pub fn site(&self) -> &Site {
        &self.site
    }

    pub fn counts(&self) -> u64 {
        self.made
    }

    /// When something is due.
    pub fn next_at(&self) -> Instant {
        self.standing.iter().map(|(_, until)| *until).fold(self.next_at, Instant::min)
    }

    pub fn make_due(&mut self, crew: &mut Crew, ledger: &mut Ledger) -> Result<(), Failure> {
        let now = Instant::now();
        let over = self.standing.extract_if(.., |(_, until)| *until <= now).collect::<Vec<_>>();
        for (place, _) in over {
            crew.resume(place, ledger)?;
        }
        if self.next_at > now {
            return Ok(());
        }
        let (pause, fault) = Fault::next(&mut self.dice, crew.size(), self.proxy.is_some());
        self.next_at = now + pause;
        self.made += 1;
        tracing::info!(?fault, "breaking");
        self.make(fault, crew, ledger)
    }

    fn make(&mut self, fault: Fault, crew: &mut Crew, ledger: &mut Ledger) -> Result<(), Failure> {
        match fault {
            Fault::Kill(place) => {
                self.standing.retain(|(other, _)| *other != place);
                return crew.replace(place, ledger);
            }
            Fault::Stop(place, time) => {
                if !self.standing.iter().any(|(other, _)| *other == place) {
                    self.standing.push((place, Instant::now() + time));
                }
                return crew.halt(place, ledger);
            }
            _ => {}
        }
        let Some(proxy) = &self.proxy else { return Ok(()) };
        match fault {
            Fault::Cut => proxy.cut(),
            Fault::Freeze => proxy.freeze(),
            Fault::Hang(time) => proxy.hang(time),
            Fault::Slow(by, time) => proxy.slow(by, time),
            Fault::Lossy(time) => proxy.lossy(time),
            _ => {
                for address in proxy.addresses_at_the_server() {
                    // One that has just ended is no harm.
                    let _ = self.admin.kill_client(&address);
                }
            }
        }
        Ok(())
    }

    /// No fault from now on.
    pub fn heal(&mut self, crew: &mut Crew, ledger: &mut Ledger) -> Result<(), Failure> {
        if let Some(proxy) = &self.proxy {
            proxy.heal();
        }
        self.standing.drain(..).try_for_each(|(place, _)| crew.resume(place, ledger))
    }
}
