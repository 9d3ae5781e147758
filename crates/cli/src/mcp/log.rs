//! What the server tells of itself: a line on stderr for each event.

use std::fmt::{self, Write as _};
use std::io::Write as _;

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::options::LogOption;
use crate::own_stream;
use crate::quantity::one_line;

/// The most characters of a line.
const LONGEST_LINE: usize = 1024;

/// Begins to write events, of this level and above.
pub(super) fn install(level: LogOption) {
    let lines = Lines {
        level: match level {
            LogOption::Off => LevelFilter::OFF,
            LogOption::Error => LevelFilter::ERROR,
            LogOption::Warn => LevelFilter::WARN,
            LogOption::Info => LevelFilter::INFO,
            LogOption::Debug => LevelFilter::DEBUG,
        },
    };
    // There is no other in this process.
    let _ = tracing::subscriber::set_global_default(lines);
}

/// Writes each event of this project's own crates as a line.
///
/// Others tell whole messages of the protocol, with commands and output in them.
struct Lines {
    level: LevelFilter,
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= self.level && metadata.target().starts_with("dsh_")
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.level)
    }

    fn event(&self, event: &Event<'_>) {
        let mut text = Text::default();
        event.record(&mut text);
        let level = event.metadata().level().as_str().to_ascii_lowercase();
        let line = format!("{level}: {}{}", text.message, text.fields);
        // Nothing is left to do for somebody who does not read the line.
        let _ = own_stream::stderr()
            .write_all(format!("dsh-subprocess: {}\n", one_line(&line, LONGEST_LINE)).as_bytes());
    }

    // No span is enabled.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// An event as text: what it says, then its fields.
#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // A String takes every write.
        let _ = if field.name() == "message" {
            write!(self.message, "{value:?}")
        } else {
            write!(self.fields, " {}={value:?}", field.name())
        };
    }
}
