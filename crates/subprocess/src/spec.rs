//! What a caller asks for. Fully explicit: nothing here has a default, because a default that varies with the deployment
//! belongs to the caller's configuration.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU64;
use std::time::Duration;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use crate::environment::OverlayNames;
use crate::{Error, ErrorKind, WorldPath, WorldString};

/// The variables to change after the scrub: `Some` sets one, `None` removes it (removing an absent one does nothing).
///
/// An explicit entry always wins, whatever its name: a credential that a caller names reaches the child.
pub type EnvOverlay = BTreeMap<WorldString, Option<WorldString>>;

/// The variable that tells a child the number of its control descriptor. Only the runtime sets it: a spec that names it is
/// refused.
pub const CONTROL_VARIABLE: &str = "DSH_SUBPROCESS_CONTROL";

/// The largest grace or drain: 2,147,483,647 ms, the largest timer of the system this contract comes from.
pub const MAX_GRACE: Duration = Duration::from_millis(i32::MAX as u64);

/// One process tree to start.
///
/// ```
/// use std::{collections::BTreeMap, time::Duration};
/// use dsh_subprocess::{Collect, ErrorOutput, Output, SpawnSpec, Stdin};
/// use tokio_util::sync::CancellationToken;
///
/// let tail = Collect { max_bytes: 65_536, head_bytes: 0, spill: None };
/// let spec = SpawnSpec {
///     argv: vec!["cargo".into(), "test".into()],
///     cwd: "/srv/project".into(),
///     env: BTreeMap::from([("CARGO_TERM_COLOR".into(), Some("never".into()))]),
///     stdin: Stdin::Ignore,
///     stdout: Output::Collect(tail.clone()),
///     stderr: ErrorOutput::Own(Output::Collect(tail)),
///     grace: Duration::from_secs(3),
///     drain: Duration::from_secs(1),
///     control: false,
///     cancel: CancellationToken::new(),
/// };
/// assert!(spec.validate().is_ok());
/// ```
#[derive(Clone)]
pub struct SpawnSpec {
    /// The program and its arguments, never interpreted by a shell. A program without a slash is searched on the
    /// child's own `PATH`.
    pub argv: Vec<WorldString>,
    /// The working directory, absolute in the world's spelling.
    pub cwd: WorldPath,
    /// Changes to the scrubbed environment.
    pub env: EnvOverlay,
    /// What the child reads.
    pub stdin: Stdin,
    /// Where its output goes.
    pub stdout: Output,
    /// Where its error output goes.
    pub stderr: ErrorOutput,
    /// The time between `SIGTERM` and `SIGKILL` when the tree is terminated: more than zero, at most [`MAX_GRACE`].
    pub grace: Duration,
    /// How long `done` waits, after the target's exit, for streams that somebody still holds open: zero to
    /// [`MAX_GRACE`]. [`Process::cut_drain`](crate::Process::cut_drain) ends it early.
    pub drain: Duration,
    /// Whether the child gets a control pipe: a duplex byte stream on a descriptor beside its standard ones, whose number is
    /// in the variable [`CONTROL_VARIABLE`]. The caller's end is [`Process::control`](crate::Process::control). Neither
    /// `done` nor the tree's end waits for it.
    pub control: bool,
    /// Terminates the tree when cancelled, at any time until the tree is gone.
    pub cancel: CancellationToken,
}

/// What a child reads on descriptor 0.
#[derive(Clone)]
pub enum Stdin {
    /// The null device: end of file at once.
    Ignore,
    /// The host's own standard input. Whoever else reads it takes bytes away from the child.
    Inherit,
    /// A raw pipe, given to the caller as [`Process::stdin`](crate::Process::stdin).
    Pipe,
    /// These bytes, then end of file. A child that does not read them all is no error.
    Data(Bytes),
}

/// Where one output stream goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// A raw pipe, given to the caller, who owns its decoding. The runtime neither buffers nor reads it.
    Pipe,
    /// The host's own stream.
    Inherit,
    /// Bounded memory, readable by offset; see [`Collect`].
    Collect(Collect),
}

/// Where the error output goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ErrorOutput {
    /// A stream of its own. No order between the two streams is known or claimed.
    Own(Output),
    /// The same pipe as standard output, so that both come out in the order they were written.
    Merge,
}

/// How much of a stream to retain.
///
/// The retained window is exactly the first `head_bytes` and the last `max_bytes` of the stream, whatever the chunks
/// it arrived in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Collect {
    /// Bytes kept from the end.
    pub max_bytes: usize,
    /// Bytes kept from the beginning, beside the tail. 0 keeps none.
    pub head_bytes: usize,
    /// A file for the whole stream, made when it first exceeds `max_bytes`.
    pub spill: Option<Spill>,
}

/// A file that holds a whole stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spill {
    /// The largest file. A longer stream has no file at all: a spill is complete or withdrawn.
    pub max_bytes: NonZeroU64,
    /// When the file goes.
    pub life: SpillLife,
}

/// When a spilled stream's file is removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpillLife {
    /// With the last of the process handle and its readers.
    Handle,
    /// With the runtime, or earlier when the runtime's total is used up: oldest settled first.
    Runtime,
    /// Never by the runtime: it is moved to a place that no cleaner touches.
    Keep,
}

/// An executable to look up.
#[derive(Clone)]
pub struct Lookup {
    /// An absolute path, or a bare name.
    pub command: WorldString,
    /// Changes to the scrubbed environment, whose `PATH` is searched.
    pub env: EnvOverlay,
    /// Abandons the search when cancelled.
    pub cancel: CancellationToken,
}

/// Prints the names of variables without their values, which may be credentials.
impl fmt::Debug for SpawnSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            argv,
            cwd,
            env,
            stdin,
            stdout,
            stderr,
            grace,
            drain,
            control,
            cancel,
        } = self;
        f.debug_struct("SpawnSpec")
            .field("argv", argv)
            .field("cwd", cwd)
            .field("env", &OverlayNames(env))
            .field("stdin", stdin)
            .field("stdout", stdout)
            .field("stderr", stderr)
            .field("grace", grace)
            .field("drain", drain)
            .field("control", control)
            .field("cancel", cancel)
            .finish()
    }
}

/// Prints the length of the data, which may be a password that the child asks for.
impl fmt::Debug for Stdin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ignore => f.write_str("Ignore"),
            Self::Inherit => f.write_str("Inherit"),
            Self::Pipe => f.write_str("Pipe"),
            Self::Data(bytes) => write!(f, "Data({} bytes)", bytes.len()),
        }
    }
}

/// Prints the names of variables without their values, which may be credentials.
impl fmt::Debug for Lookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { command, env, cancel } = self;
        f.debug_struct("Lookup")
            .field("command", command)
            .field("env", &OverlayNames(env))
            .field("cancel", cancel)
            .finish()
    }
}

impl SpawnSpec {
    /// Checks what can be known without asking the world.
    ///
    /// Providers call it first thing in `spawn`. The order is fixed: grace and drain, cancellation, argv, cwd,
    /// environment.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Cancelled`] for a token that is already cancelled; [`ErrorKind::InvalidSpec`] for a grace of zero, a
    /// grace or drain above [`MAX_GRACE`], an empty argv or program, an empty cwd, a variable name that is empty or
    /// contains `=`, [`CONTROL_VARIABLE`], and a NUL byte anywhere; the text names which.
    pub fn validate(&self) -> Result<(), Error> {
        validate_common(
            self.grace,
            self.drain,
            &self.cancel,
            &self.argv,
            &self.cwd,
            &self.env,
        )
    }
}

/// Checks what every spec has, in this order.
pub(crate) fn validate_common(
    grace: Duration,
    drain: Duration,
    cancel: &CancellationToken,
    argv: &[WorldString],
    cwd: &WorldPath,
    env: &EnvOverlay,
) -> Result<(), Error> {
    if grace.is_zero() || grace > MAX_GRACE {
        return Err(invalid(format!(
            "grace is {grace:?}: it must be more than zero and at most {} ms",
            MAX_GRACE.as_millis()
        )));
    }
    if drain > MAX_GRACE {
        return Err(invalid(format!(
            "drain is {drain:?}: it must be at most {} ms",
            MAX_GRACE.as_millis()
        )));
    }
    if cancel.is_cancelled() {
        return Err(Error::new(
            ErrorKind::Cancelled,
            "spawn",
            "cancelled before spawn: nothing was started",
        ));
    }
    match argv.first() {
        None => return Err(invalid("argv is empty: it must start with a program")),
        Some(program) if program.is_empty() => {
            return Err(invalid("argv[0] is empty: it must name a program"));
        }
        Some(_) => {}
    }
    for (index, argument) in argv.iter().enumerate() {
        no_nul(argument.as_bytes(), || format!("argv[{index}]"))?;
    }
    if cwd.as_bytes().is_empty() {
        return Err(invalid("cwd is empty: it must name a directory"));
    }
    no_nul(cwd.as_bytes(), || "cwd".to_owned())?;
    if env
        .keys()
        .any(|name| name.as_bytes() == CONTROL_VARIABLE.as_bytes())
    {
        return Err(invalid(format!(
            "the variable {CONTROL_VARIABLE} is reserved: it names the child's control descriptor"
        )));
    }
    validate_overlay(env)
}

/// Checks the names and values of an overlay.
///
/// # Errors
///
/// [`ErrorKind::InvalidSpec`] for a name that is empty or contains `=`, and for a NUL byte. A value is never quoted.
pub fn validate_overlay(overlay: &EnvOverlay) -> Result<(), Error> {
    for (name, value) in overlay {
        if name.is_empty() {
            return Err(invalid("the name of an environment variable is empty"));
        }
        no_nul(name.as_bytes(), || {
            format!("the name of environment variable {name:?}")
        })?;
        if name.as_bytes().contains(&b'=') {
            return Err(invalid(format!(
                "the name of environment variable {name:?} contains `=`"
            )));
        }
        if let Some(value) = value {
            no_nul(value.as_bytes(), || {
                format!("the value of environment variable {name:?}")
            })?;
        }
    }
    Ok(())
}

pub(crate) fn no_nul(bytes: &[u8], what: impl FnOnce() -> String) -> Result<(), Error> {
    match bytes.iter().position(|&byte| byte == 0) {
        Some(at) => Err(invalid(format!("{} contains a NUL byte at offset {at}", what()))),
        None => Ok(()),
    }
}

pub(crate) fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidSpec, "spawn", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> SpawnSpec {
        SpawnSpec {
            argv: vec!["true".into()],
            cwd: "/".into(),
            env: EnvOverlay::new(),
            stdin: Stdin::Ignore,
            stdout: Output::Inherit,
            stderr: ErrorOutput::Merge,
            grace: Duration::from_secs(1),
            drain: Duration::ZERO,
            control: false,
            cancel: CancellationToken::new(),
        }
    }

    fn refusal(change: impl FnOnce(&mut SpawnSpec)) -> (ErrorKind, String) {
        let mut spec = spec();
        change(&mut spec);
        let error = spec.validate().expect_err("the spec is wrong");
        (error.kind(), error.to_string())
    }

    #[test]
    fn item_18_grace_is_positive_and_bounded() {
        assert!(spec().validate().is_ok());
        for grace in [Duration::ZERO, MAX_GRACE + Duration::from_millis(1)] {
            let (kind, text) = refusal(|spec| spec.grace = grace);
            assert_eq!(kind, ErrorKind::InvalidSpec);
            assert!(text.contains("2147483647"), "{text}");
        }
    }

    #[test]
    fn item_19_grace_is_checked_before_cancellation_and_that_before_argv() {
        let cancelled = CancellationToken::new();
        cancelled.cancel();
        let (kind, _) = refusal(|spec| {
            spec.cancel = cancelled.clone();
            spec.grace = Duration::ZERO;
        });
        assert_eq!(kind, ErrorKind::InvalidSpec);
        let (kind, _) = refusal(|spec| {
            spec.cancel = cancelled.clone();
            spec.argv.clear();
        });
        assert_eq!(kind, ErrorKind::Cancelled);
    }

    #[test]
    fn item_20_a_program_must_be_named() {
        assert!(refusal(|spec| spec.argv.clear()).1.contains("argv is empty"));
        assert!(refusal(|spec| spec.argv[0] = "".into()).1.contains("argv[0]"));
    }

    #[test]
    fn item_178_a_nul_byte_is_refused_and_its_place_is_named() {
        assert!(
            refusal(|spec| spec.argv.push("a\0b".into()))
                .1
                .contains("argv[1]")
        );
        assert!(refusal(|spec| spec.cwd = "/a\0b".into()).1.contains("cwd"));
        let (_, text) = refusal(|spec| {
            spec.env.insert("NAME".into(), Some("secret\0".into()));
        });
        assert!(text.contains("NAME") && !text.contains("secret"), "{text}");
    }

    #[test]
    fn item_181_the_control_variable_is_reserved() {
        for value in [None, Some("3".into())] {
            let (kind, text) = refusal(|spec| drop(spec.env.insert(CONTROL_VARIABLE.into(), value)));
            assert_eq!(kind, ErrorKind::InvalidSpec);
            assert!(text.contains(CONTROL_VARIABLE), "{text}");
        }
    }

    #[test]
    fn a_variable_name_is_not_empty_and_holds_no_equals_sign() {
        assert!(
            refusal(|spec| drop(spec.env.insert("".into(), None)))
                .1
                .contains("empty")
        );
        assert!(
            refusal(|spec| drop(spec.env.insert("A=B".into(), None)))
                .1
                .contains("A=B")
        );
    }

    #[test]
    fn no_value_of_a_variable_and_no_input_is_printed() {
        let mut spec = spec();
        spec.env.insert("SET".into(), Some("hunter2".into()));
        spec.env.insert("REMOVED".into(), None);
        spec.stdin = Stdin::Data("hunter2".into());
        let lookup = Lookup {
            command: "x".into(),
            env: spec.env.clone(),
            cancel: CancellationToken::new(),
        };
        for text in [format!("{spec:?}"), format!("{lookup:?}")] {
            assert!(text.contains(r#"{"REMOVED": removed, "SET": set}"#), "{text}");
            assert!(!text.contains("hunter2"), "{text}");
        }
        assert_eq!(format!("{:?}", spec.stdin), "Data(7 bytes)");
    }
}
