//! What the library has to say to operators, for hosts that have no `tracing`: lines on standard error, when the environment
//! variable `FAIRQ_LOG` asks for them.

use std::fmt::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Looks into the environment, once.
pub(super) fn start() {
    static STARTED: AtomicBool = AtomicBool::new(false);
    if STARTED.swap(true, Ordering::SeqCst) {
        return;
    }
    let Ok(asked) = std::env::var("FAIRQ_LOG") else { return };
    match asked.parse::<LevelFilter>() {
        // A Rust host that loads this has its own already, which stays.
        Ok(level) => drop(tracing::subscriber::set_global_default(Lines { level })),
        Err(_) => say(format_args!("FAIRQ_LOG={asked:?} is none of off, error, warn, info, debug, trace")),
    }
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
        say(format_args!("{}: {}{}", event.metadata().level(), line.message, line.fields));
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

/// Straight to the descriptor, in one write: a lock of the standard library's could be held by a thread that a forked child
/// does not have.
fn say(what: fmt::Arguments<'_>) {
    let text = format!("fairq[{}] {what}\n", std::process::id());
    // SAFETY: so many bytes are readable. Nobody is there to be told when standard error is closed.
    let _ = unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
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
