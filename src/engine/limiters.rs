//! The limiters that an instance knows: opened, found again, and forgotten when nobody uses them.

use super::limiter_state::{Declare, LimiterCore, LimiterState, UNKNOWN, UNTOLD};
use super::*;
use crate::coalescer::Coalescer;
use crate::settings::{Declaration, LimiterOptions};

/// So many are always kept; beyond that, the unused are looked for whenever their number has doubled.
const KEPT: usize = 256;

impl Engine {
    /// Opens a limiter, or finds it. A declaration that differs from the one before is sent with the next call.
    pub(crate) fn open_limiter(&self, name: &str, options: &LimiterOptions) -> Result<Arc<LimiterCore>, Error> {
        self.check_process()?;
        let mut table = self.lock();
        if table.stage != Stage::Running {
            return Err(Error::Closed);
        }
        let declared = options.settings.map(|settings| settings.words()).unwrap_or_default();
        if let Some(index) = table.limiter_of(name) {
            let state = &mut table.limiters[index];
            state.poll = nanos(options.poll);
            state.outage = options.outage;
            if !declared.is_empty() && state.own != declared {
                state.own = declared;
                state.declare = Declare::Due;
                state.version = if state.version == UNTOLD { UNTOLD } else { UNKNOWN };
            }
            return Ok(state.core.clone());
        }
        let declaration = Declaration { declared, description: self.description.clone(), ..Declaration::default() };
        Ok(table.add_limiter(name, options, declaration))
    }
}

impl Table {
    fn add_limiter(&mut self, name: &str, options: &LimiterOptions, declaration: Declaration) -> Arc<LimiterCore> {
        if self.names.len() >= self.forget_at {
            self.forget_unused();
        }
        let index = self.free.pop().unwrap_or(self.limiters.len());
        let core =
            Arc::new(LimiterCore { index, name: name.into(), valid_until: AtomicU64::new(0), sync: Coalescer::new() });
        let settings = options.settings.unwrap_or_default();
        let state = LimiterState::new(core.clone(), settings, declaration, nanos(options.poll), options.outage);
        match self.limiters.get_mut(index) {
            Some(place) => *place = state,
            None => self.limiters.push(state),
        }
        self.names.insert(core.name.clone(), index);
        core
    }

    /// Makes room for new names: a process may use a million of them, each once. A limiter is unused when nobody has
    /// a handle of it, and nothing of it is on its way.
    fn forget_unused(&mut self) {
        for (index, state) in self.limiters.iter().enumerate() {
            let known = self.names.get(&state.core.name) == Some(&index);
            if known && Arc::strong_count(&state.core) == 1 && state.is_empty() {
                self.names.remove(&state.core.name);
                self.free.push(index);
            }
        }
        self.forget_at = KEPT.max(2 * self.names.len());
    }
}
