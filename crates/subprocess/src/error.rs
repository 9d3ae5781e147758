//! The one error of the seam.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

/// A failure of the runtime. A non-zero exit, a signal, a timeout and truncated output are results, never errors.
///
/// The text names the input and the cause. The original cause, where there is one, is the
/// [`source`](std::error::Error::source). Cloning is cheap: every waiter of a handle gets the same error.
///
/// ```
/// use dsh_subprocess::{Error, ErrorKind, MayHaveStarted};
/// let error = Error::new(ErrorKind::ProgramNotFound, "spawn", "no program named `frob` on PATH");
/// assert_eq!(error.kind(), ErrorKind::ProgramNotFound);
/// assert_eq!(error.started(), MayHaveStarted::No);
/// assert_eq!(error.to_string(), "no program named `frob` on PATH");
/// ```
#[derive(Clone)]
pub struct Error(Arc<Repr>);

struct Repr {
    kind: ErrorKind,
    operation: &'static str,
    started: MayHaveStarted,
    message: String,
    survivors: Vec<crate::Member>,
    written: Option<u64>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// Whether the command possibly ran before the failure.
///
/// A caller that wants to run a command at most once retries only after [`MayHaveStarted::No`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MayHaveStarted {
    /// The program's first instruction was never reached.
    No,
    /// The program was running.
    Yes,
    /// Nobody can tell any more.
    Unknown,
}

/// What kind of failure an [`Error`] is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request itself is wrong: an empty argv, a NUL byte, a grace out of range, a relative cwd.
    InvalidSpec,
    /// The working directory does not exist.
    CwdNotFound,
    /// The working directory is not a directory.
    CwdNotDirectory,
    /// The working directory may not be entered (it lacks search permission).
    CwdNotSearchable,
    /// No such program: the path does not exist, or the bare name is nowhere on `PATH`. (A look-up of an absolute path that
    /// does not exist says [`ProgramNotExecutable`](Self::ProgramNotExecutable), as for every other reason.)
    ProgramNotFound,
    /// The program exists and may not be executed (permission, a directory, a busy text file, a noexec mount).
    ProgramNotExecutable,
    /// The program exists and is of no format the world can run.
    ProgramFormat,
    /// The program exists; the interpreter it names (after `#!`, or its loader) does not.
    InterpreterNotFound,
    /// One argument or variable, or all of them together, exceed the world's limit.
    ArgumentTooLong,
    /// A path is too long, or its symbolic links never end.
    PathUnresolvable,
    /// The world ran out of descriptors, processes or memory.
    ResourceExhausted,
    /// A security policy of the world forbids the operation.
    PermissionDenied,
    /// The caller's token was cancelled before the command started.
    Cancelled,
    /// The runtime was disposed of.
    Disposed,
    /// The runtime was made in another process (before a `fork`) and does nothing here.
    ForkedProcess,
    /// The ownership mechanism that was asked for does not work in this world.
    OwnershipUnavailable,
    /// The owner of the tree failed; what it knew is lost.
    OwnershipLost,
    /// Members of the tree outlived `SIGKILL` and the bound after it. [`Error::survivors`] names them.
    Survivors,
    /// Several independent failures; the text holds each.
    Several,
    /// A spilled stream was asked for and is not there (never made, withdrawn, or removed at the end of its life).
    SpillUnavailable,
    /// The program has ended, or its session is being terminated, and what was asked needs it.
    Exited,
    /// A terminal took no more input for as long as the runtime waits: its program does not read, or nobody reads what the
    /// program prints. [`Error::written`] tells how much was taken.
    InputNotRead,
    /// A line is longer than a terminal can collect, and its rest would be lost. [`Error::written`] tells how much was taken
    /// before it.
    LineTooLong,
    /// No process group has the terminal.
    NoForeground,
    /// A signal would have ended a terminal's own program, which is asked for by other means.
    OwnGroup,
    /// The connection to the world failed.
    Transport,
    /// This world cannot do what was asked.
    Unsupported,
    /// An operating-system call failed in a way that has no kind of its own.
    Os,
}

impl Error {
    /// Makes an error. `message` is a lower-case fragment that names the input and the cause.
    ///
    /// [`started`](Self::started) is [`MayHaveStarted::No`] until [`with_started`](Self::with_started) says otherwise.
    pub fn new(kind: ErrorKind, operation: &'static str, message: impl Into<String>) -> Self {
        Self(Arc::new(Repr {
            kind,
            operation,
            started: MayHaveStarted::No,
            message: message.into(),
            survivors: Vec::new(),
            written: None,
            source: None,
        }))
    }

    /// Says whether the command possibly ran.
    #[must_use]
    pub fn with_started(self, started: MayHaveStarted) -> Self {
        self.map(|repr| repr.started = started)
    }

    /// Attaches the cause.
    #[must_use]
    pub fn with_source(self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        let source = source.into();
        self.map(|repr| repr.source = Some(source))
    }

    /// Attaches the members that could not be ended.
    #[must_use]
    pub fn with_survivors(self, survivors: Vec<crate::Member>) -> Self {
        self.map(|repr| repr.survivors = survivors)
    }

    /// Says how many bytes of a write were taken before it failed.
    #[must_use]
    pub fn with_written(self, bytes: u64) -> Self {
        self.map(|repr| repr.written = Some(bytes))
    }

    /// A builder step runs before the error is shared, so the allocation is its own.
    fn map(mut self, change: impl FnOnce(&mut Repr)) -> Self {
        match Arc::get_mut(&mut self.0) {
            Some(repr) => change(repr),
            None => unreachable!("an error is completed before it is cloned"),
        }
        self
    }

    /// Returns the kind of failure.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the operation that failed: `"spawn"`, `"terminate"`, `"wait"`, `"dispose"`, `"look-up"`, `"observe"` or
    /// `"read"`; and of a terminal `"write"`, `"resize"`, `"inspect"` or `"signal"`.
    pub fn operation(&self) -> &'static str {
        self.0.operation
    }

    /// Tells whether the command possibly ran.
    pub fn started(&self) -> MayHaveStarted {
        self.0.started
    }

    /// Returns the members that could not be ended. Empty for every kind but [`ErrorKind::Survivors`] and
    /// [`ErrorKind::Several`].
    pub fn survivors(&self) -> &[crate::Member] {
        &self.0.survivors
    }

    /// Returns how many bytes of a failed write to a terminal were taken, which stay typed. `None` for every other failure.
    pub fn written(&self) -> Option<u64> {
        self.0.written
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("operation", &self.0.operation)
            .field("started", &self.0.started)
            .field("message", &self.0.message)
            .field("source", &self.0.source)
            .finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}
