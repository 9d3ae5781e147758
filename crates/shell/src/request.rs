//! What a caller asks for, and what that comes to.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use dsh_subprocess::{EnvOverlay, WorldPath, WorldString};
use tokio_util::sync::CancellationToken;

/// A command as it is asked for: what is left out is filled in by [`Shell::resolve`](crate::Shell::resolve).
#[derive(Clone)]
pub struct ShellRequest {
    /// The text for the shell. Any length: see [`ShellSpec::command`].
    pub command: WorldString,
    /// Where it runs. A relative directory begins at the configured one.
    pub workdir: Option<WorldPath>,
    /// How long it may take: more than zero, shortened to the configured maximum.
    pub timeout: Option<Duration>,
    /// What happens then.
    pub on_expiry: OnExpiry,
    /// Bytes retained of standard output, where they are not the configured number: more than zero.
    pub stdout_max_bytes: Option<usize>,
    /// What the command reads; `None` is end of file at once.
    pub stdin: Option<Bytes>,
    /// Whether error output goes into standard output, in the order both are written. Two streams have no such order.
    pub merge_stderr: bool,
    /// Changes to the environment: they win over everything but the managed `DSH_*` facts.
    pub env: EnvOverlay,
    /// The id of the agent's session, told to the command as `DSH_SESSION_ID`.
    pub session: Option<String>,
    /// Ends the command's tree when cancelled. It has no effect on the timeout.
    pub cancel: CancellationToken,
}

/// What happens when a command's time is up.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum OnExpiry {
    /// Its tree is ended.
    #[default]
    Kill,
    /// Nothing: no timer is set, and the caller limits its own wait.
    None,
}

/// A command with nothing left to decide.
#[derive(Clone)]
pub struct ShellSpec {
    /// The text for the shell, as in `bash -c TEXT`.
    ///
    /// A text longer than one argument may be (128 KiB on Linux, `execve(2)`) is handed over in several, which the shell joins
    /// before it reads them; no variable and no positional parameter of that is left. Beyond the limit for all arguments and
    /// variables together it is an error that names the size and the limit.
    pub command: WorldString,
    /// Where it runs, absolute.
    pub workdir: WorldPath,
    /// How long it may take, from the call on.
    pub timeout: Duration,
    /// What happens then.
    pub on_expiry: OnExpiry,
    /// Bytes retained of standard output. Error output, and a background command's output, are retained as configured.
    pub stdout_max_bytes: usize,
    /// What the command reads; `None` is end of file at once.
    pub stdin: Option<Bytes>,
    /// Whether error output goes into standard output.
    pub merge_stderr: bool,
    /// Changes to the environment.
    pub env: EnvOverlay,
    /// The id of the agent's session.
    pub session: Option<String>,
    /// Ends the command's tree when cancelled.
    pub cancel: CancellationToken,
}

impl ShellRequest {
    /// Asks for a command with everything else as configured.
    pub fn new(command: impl Into<WorldString>) -> Self {
        Self {
            command: command.into(),
            workdir: None,
            timeout: None,
            on_expiry: OnExpiry::Kill,
            stdout_max_bytes: None,
            stdin: None,
            merge_stderr: false,
            env: EnvOverlay::new(),
            session: None,
            cancel: CancellationToken::new(),
        }
    }
}

/// Prints the names of variables and the length of the input: values may be credentials.
impl fmt::Debug for ShellRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShellRequest")
            .field("command", &self.command)
            .field("workdir", &self.workdir)
            .field("timeout", &self.timeout)
            .field("on_expiry", &self.on_expiry)
            .field("stdout_max_bytes", &self.stdout_max_bytes)
            .field("stdin", &self.stdin.as_ref().map(Bytes::len))
            .field("merge_stderr", &self.merge_stderr)
            .field("env", &self.env.keys())
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}

/// Prints the names of variables and the length of the input: values may be credentials.
impl fmt::Debug for ShellSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShellSpec")
            .field("command", &self.command)
            .field("workdir", &self.workdir)
            .field("timeout", &self.timeout)
            .field("on_expiry", &self.on_expiry)
            .field("stdout_max_bytes", &self.stdout_max_bytes)
            .field("stdin", &self.stdin.as_ref().map(Bytes::len))
            .field("merge_stderr", &self.merge_stderr)
            .field("env", &self.env.keys())
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}
