//! What the library has to say to operators, for hosts that have no `tracing`: lines on standard error, when the environment
//! variable `FAIRQ_LOG` asks for them.

use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::sync::Once;

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Looks into the environment, once.
pub(super) fn start() {
    static START: Once = Once::new();
    START.call_once(|| {
        let Ok(asked) = std::env::var("FAIRQ_LOG") else { return };
        match asked.parse::<LevelFilter>() {
            // A Rust host that loads this has its own already, which stays.
            Ok(level) => drop(tracing::subscriber::set_global_default(Lines { level })),
            Err(_) => eprintln!("fairq: FAIRQ_LOG={asked:?} is none of off, error, warn, info, debug, trace"),
        }
    });
}

struct Lines {
    level: LevelFilter,
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.level && metadata.target().starts_with("fairq")
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.level)
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        // Nobody to tell when standard error is closed.
        let level = event.metadata().level();
        let _ = writeln!(std::io::stderr(), "fairq {}[{level}]: {}{}", std::process::id(), line.message, line.fields);
    }

    // The library has no spans.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string cannot fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}
