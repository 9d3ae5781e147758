//! What is rendered, and within which bounds.

use std::time::Duration;

use dsh_subprocess::{Outcome, Snapshot};
use thiserror::Error;

/// One command as it stands: what it printed so far, and what became of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RenderInput {
    /// Its output. With [`stderr`](Self::stderr) merged into it where that is `None`.
    pub stdout: StreamView,
    /// Its error output. `None`: merged into stdout.
    pub stderr: Option<StreamView>,
    /// How it ended. `None`: it still runs.
    pub outcome: Option<Outcome>,
    /// The deadline that ended it, where one did.
    pub timed_out: Option<Duration>,
    /// Whether its caller ended it.
    pub aborted: bool,
    /// What else is to be said, in this order, each on a line of its own: what was denied and why, hints, what it left
    /// behind. They are folded like output. Empty ones are left out.
    pub notes: Vec<String>,
}

impl RenderInput {
    /// Renders merged output of a command that still runs, until more is said about it.
    pub fn new(stdout: StreamView) -> Self {
        Self {
            stdout,
            stderr: None,
            outcome: None,
            timed_out: None,
            aborted: false,
            notes: Vec::new(),
        }
    }
}

/// One stream: what was kept of it, and where the rest is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StreamView {
    /// The kept head and tail.
    pub snapshot: Snapshot,
    /// Where the whole stream is.
    pub whole: Whole,
}

/// Where a whole stream is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Whole {
    /// Nowhere but in the snapshot, which has all of it.
    InMemory,
    /// At a path or address that the reader of the text can open.
    At(String),
    /// Nowhere any more.
    Unavailable,
}

/// How much of the output is shown.
///
/// ```
/// use dsh_shell::render::Style;
///
/// let style = Style::default().with_max_text_bytes(16_000)?;
/// assert_eq!((style.max_line_bytes(), style.max_text_bytes()), (2_000, 16_000));
/// assert!(Style::default().with_max_line_bytes(0).is_err());
/// # Ok::<(), dsh_shell::render::StyleError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Style {
    max_line_bytes: usize,
    max_text_bytes: usize,
}

/// A bound that leaves no room for anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("{name} is {value}, and must be at least {least}")]
#[non_exhaustive]
pub struct StyleError {
    /// The bound's name.
    pub name: &'static str,
    /// What was given.
    pub value: usize,
    /// The least it may be.
    pub least: usize,
}

impl Style {
    /// The least that a bound may be: with less, what says how much is left out would be most of what is shown.
    pub const LEAST: usize = 200;

    /// Sets the length of the longest line that is shown whole, in bytes of shown text. Initially 2,000.
    ///
    /// # Errors
    ///
    /// A value below [`LEAST`](Self::LEAST).
    pub fn with_max_line_bytes(self, max_line_bytes: usize) -> Result<Self, StyleError> {
        Ok(Self {
            max_line_bytes: bound("max_line_bytes", max_line_bytes)?,
            ..self
        })
    }

    /// Sets of how many bytes of each stream the text is shown, the first and the last ones. Initially all that were
    /// kept, `usize::MAX`.
    ///
    /// They are counted before folding, so that what is left out has an exact place in the stream. Shown, they are at
    /// most four times as long (see [`fold`](super::fold)), and usually shorter.
    ///
    /// # Errors
    ///
    /// A value below [`LEAST`](Self::LEAST).
    pub fn with_max_text_bytes(self, max_text_bytes: usize) -> Result<Self, StyleError> {
        Ok(Self {
            max_text_bytes: bound("max_text_bytes", max_text_bytes)?,
            ..self
        })
    }

    /// Returns the length of the longest line that is shown whole.
    pub fn max_line_bytes(&self) -> usize {
        self.max_line_bytes
    }

    /// Returns of how many bytes of each stream the text is shown.
    pub fn max_text_bytes(&self) -> usize {
        self.max_text_bytes
    }
}

impl Default for Style {
    fn default() -> Self {
        Self {
            max_line_bytes: 2_000,
            max_text_bytes: usize::MAX,
        }
    }
}

fn bound(name: &'static str, value: usize) -> Result<usize, StyleError> {
    let least = Style::LEAST;
    if value < least {
        return Err(StyleError { name, value, least });
    }
    Ok(value)
}
