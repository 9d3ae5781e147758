//! What to start, and how much of it to bear.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use dsh_subprocess::{Collect, EnvOverlay, ErrorOutput, Output, SpawnSpec, Stdin, WorldPath, WorldString};
use tokio_util::sync::CancellationToken;

use super::error::ServerError;
use super::message::BadLine;

/// How long the streams are waited for after the server's exit, where something that it started holds them open.
const DRAIN: Duration = Duration::from_secs(1);

/// A server to start.
#[derive(Clone)]
#[non_exhaustive]
pub struct ServerCommand {
    /// The program and its arguments, never interpreted by a shell. A program without a slash is searched on the server's own
    /// `PATH`.
    pub argv: Vec<WorldString>,
    /// The working directory, absolute in the world's spelling.
    pub cwd: WorldPath,
    /// Changes to the scrubbed environment. What is set here reaches the server, whatever its name.
    pub env: EnvOverlay,
    /// How much of it to bear.
    pub limits: Limits,
    pub(super) on_bad_line: Option<BadLineObserver>,
}

pub(super) type BadLineObserver = Arc<dyn Fn(&BadLine) + Send + Sync>;

/// How large, and how slow, a server may be.
///
/// ```
/// use std::time::Duration;
/// use dsh_mcp::client::{Limits, ServerCommand};
///
/// let mut command = ServerCommand::new(["browser-server".into()].to_vec(), "/");
/// command.limits.close_wait = Duration::from_secs(20);
/// assert_eq!(command.limits.line_bytes, 16 * 1024 * 1024);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// The longest line of the protocol that is read, in bytes without its end: at least 1. A message needs its line in
    /// memory and several times that once it is parsed.
    pub line_bytes: usize,
    /// How much of the end of its error output is kept, in bytes. 0 keeps nothing.
    pub stderr_bytes: usize,
    /// How long the whole tree has, after the end of its input, until it is terminated.
    pub close_wait: Duration,
    /// The time between `SIGTERM` and `SIGKILL`: more than zero, at most [`MAX_GRACE`](dsh_subprocess::MAX_GRACE).
    pub grace: Duration,
}

/// 16 MiB of line, 64 KiB of error output, 5 s to close, 3 s of grace.
impl Default for Limits {
    fn default() -> Self {
        Self {
            line_bytes: 16 * 1024 * 1024,
            stderr_bytes: 64 * 1024,
            close_wait: Duration::from_secs(5),
            grace: Duration::from_secs(3),
        }
    }
}

impl ServerCommand {
    /// Names a server, with no change to the scrubbed environment and the default limits.
    pub fn new(argv: Vec<WorldString>, cwd: impl Into<WorldPath>) -> Self {
        Self {
            argv,
            cwd: cwd.into(),
            env: EnvOverlay::new(),
            limits: Limits::default(),
            on_bad_line: None,
        }
    }

    /// Has each line that is skipped told to this function, besides to `tracing`, which gets fewer and fewer of them.
    ///
    /// It is called by whoever awaits the next message, and the next message waits for it.
    #[must_use]
    pub fn on_bad_line(mut self, observe: impl Fn(&BadLine) + Send + Sync + 'static) -> Self {
        self.on_bad_line = Some(Arc::new(observe));
        self
    }

    pub(super) fn spec(&self) -> Result<SpawnSpec, ServerError> {
        if self.limits.line_bytes == 0 {
            return Err(ServerError::NoLineFits);
        }
        Ok(SpawnSpec {
            argv: self.argv.clone(),
            cwd: self.cwd.clone(),
            env: self.env.clone(),
            stdin: Stdin::Pipe,
            stdout: Output::Pipe,
            stderr: ErrorOutput::Own(Output::Collect(Collect {
                max_bytes: self.limits.stderr_bytes,
                head_bytes: 0,
                spill: None,
            })),
            grace: self.limits.grace,
            drain: DRAIN,
            control: false,
            cancel: CancellationToken::new(),
        })
    }
}

/// Prints the names of variables without their values, which may be credentials.
impl fmt::Debug for ServerCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerCommand")
            .field("argv", &self.argv)
            .field("cwd", &self.cwd)
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
