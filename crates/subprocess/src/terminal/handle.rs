//! The handle of one live terminal, and what a provider supplies under it.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::future::BoxFuture;
use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::sync::CancellationToken;

use super::{Foreground, TerminalSignal, TerminalSize};
use crate::process::{Process, ProcessDriver, ProcessStreams, Termination};
use crate::{Error, Outcome};

/// What a provider implements for each terminal, beside the [`ProcessDriver`] of the tree on it.
pub trait TerminalDriver: Send + Sync + 'static {
    /// See [`Terminal::write`].
    fn write(&self, data: Bytes) -> BoxFuture<'static, Result<(), Error>>;
    /// See [`Terminal::resize`]. The size was validated.
    fn resize(&self, size: TerminalSize) -> BoxFuture<'static, Result<(), Error>>;
    /// See [`Terminal::inspect_foreground`].
    fn inspect_foreground(&self) -> BoxFuture<'static, Result<Option<Foreground>, Error>>;
    /// See [`Terminal::signal_foreground`].
    fn signal_foreground(&self, signal: TerminalSignal) -> BoxFuture<'static, Result<u32, Error>>;
    /// Resolves when the session is gone and no call of this handle is in flight, or with the reason why that cannot be
    /// told (yet).
    fn session_exited(&self) -> BoxFuture<'static, Result<(), Error>>;
}

/// One live terminal and the process tree on it. The same type for every world.
///
/// The program leads a session of its own, has the terminal as its controlling one, and is in the foreground at first. When
/// it exits, by itself or not, what is left of its session is terminated.
///
/// Dropping the handle ends nothing: the runtime still owns the tree, and goes on reading what nobody else will, so that no
/// program is left waiting for a reader. [`scoped`](Self::scoped) gives a guard whose drop terminates.
pub struct Terminal {
    process: Process,
    driver: Arc<dyn TerminalDriver>,
    output: Option<TerminalOutput>,
}

impl Terminal {
    /// Assembles a handle. Providers call it; callers get one from
    /// [`SubprocessRuntime::spawn_terminal`](crate::SubprocessRuntime::spawn_terminal).
    pub fn new(
        process: Arc<dyn ProcessDriver>,
        driver: Arc<dyn TerminalDriver>,
        output: TerminalOutput,
    ) -> Self {
        Self {
            process: Process::new(process, ProcessStreams::default()),
            driver,
            output: Some(output),
        }
    }

    /// Returns the program's id, where its world has ids. It is the id of its session and of its process group, too.
    pub fn pid(&self) -> Option<u32> {
        self.process.pid()
    }

    /// Returns the tree on the terminal, as of any spawn: who owns it, its members, its usage, its survivors. It has no
    /// streams of its own.
    pub fn tree(&self) -> &Process {
        &self.process
    }

    /// Takes the output. `None` after the first call.
    pub fn output(&mut self) -> Option<TerminalOutput> {
        self.output.take()
    }

    /// Types `data`, byte for byte: nothing is converted here, and what the terminal makes of it is its program's choice.
    ///
    /// Resolves when the terminal has taken all of it. It never waits for a reader of the output: as long as a write does
    /// not get on, what the program prints meanwhile is kept, up to 1 MiB, and read later. Writes of one handle follow each
    /// other, each whole, in the order in which their futures are first polled.
    ///
    /// # Errors
    ///
    /// [`Exited`](crate::ErrorKind::Exited) after the program's exit, and once the session is being terminated.
    /// [`InputNotRead`](crate::ErrorKind::InputNotRead) when for the runtime's bound nothing more was taken: the program
    /// does not read, or nobody reads what it prints. [`LineTooLong`](crate::ErrorKind::LineTooLong) for a line of more
    /// than 4,095 bytes while the terminal collects whole lines (canonical mode in `termios(3)`), of which its rest would be
    /// lost. In each case [`Error::written`] tells how much was taken, which stays typed; the session goes on.
    ///
    /// # Cancellation
    ///
    /// Dropping the future stops the typing. What the terminal had taken stays typed. One that is kept and not polled holds up
    /// the writes after it, which are refused when their own bound is over.
    ///
    /// # Tests
    ///
    /// `item_90_…`, `o22_…`.
    pub fn write(&self, data: impl Into<Bytes>) -> BoxFuture<'static, Result<(), Error>> {
        self.driver.write(data.into())
    }

    /// Changes the size of the window. The foreground group gets `SIGWINCH` where the size is another one.
    ///
    /// # Errors
    ///
    /// [`InvalidSpec`](crate::ErrorKind::InvalidSpec) for a size of 0; [`Exited`](crate::ErrorKind::Exited) after the
    /// program's exit, and once the session is being terminated.
    ///
    /// # Cancellation
    ///
    /// Dropping the future abandons the answer.
    ///
    /// # Tests
    ///
    /// `item_184_a_resize_…`.
    pub fn resize(&self, size: TerminalSize) -> BoxFuture<'static, Result<(), Error>> {
        match size.validate() {
            Ok(()) => self.driver.resize(size),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    /// Looks who has the terminal, and whether it waits for input. `None` where no process group has it.
    ///
    /// A snapshot: it may be out of date when it arrives.
    ///
    /// # Errors
    ///
    /// [`Exited`](crate::ErrorKind::Exited) after the program's exit, and once the session is being terminated.
    ///
    /// # Cancellation
    ///
    /// Dropping the future abandons the answer.
    ///
    /// # Tests
    ///
    /// `item_91_…`, `item_102_…`, `item_103_…`.
    pub fn inspect_foreground(&self) -> BoxFuture<'static, Result<Option<Foreground>, Error>> {
        self.driver.inspect_foreground()
    }

    /// Sends a signal to the foreground group, and returns the group's id.
    ///
    /// # Errors
    ///
    /// [`NoForeground`](crate::ErrorKind::NoForeground) where no process group has the terminal,
    /// [`OwnGroup`](crate::ErrorKind::OwnGroup) for [`Kill`](TerminalSignal::Kill) where the program's own group has it: to
    /// end the session there is [`terminate`](Self::terminate). [`PermissionDenied`](crate::ErrorKind::PermissionDenied)
    /// where no member may be signalled. [`Exited`](crate::ErrorKind::Exited) after the program's exit, and once the session
    /// is being terminated.
    ///
    /// # Cancellation
    ///
    /// Dropping the future abandons the answer.
    ///
    /// # Tests
    ///
    /// `item_92_…`.
    pub fn signal_foreground(&self, signal: TerminalSignal) -> BoxFuture<'static, Result<u32, Error>> {
        self.driver.signal_foreground(signal)
    }

    /// Resolves with how the program ended.
    ///
    /// That is its exit, and the end of the terminal or, where another process still holds that open,
    /// [`drain`](crate::TerminalSpec::drain) after the exit. It does not wait for a reader of the output: what was printed
    /// before the exit can still be read.
    ///
    /// # Errors
    ///
    /// A failure of the terminal other than its normal end, and those of [`Process::done`].
    ///
    /// # Cancellation
    ///
    /// Dropping the future changes nothing.
    ///
    /// # Tests
    ///
    /// `item_89_…`.
    pub fn done(&self) -> BoxFuture<'static, Result<Outcome, Error>> {
        self.process.done()
    }

    /// Terminates the whole session as [`Process::terminate`] does a tree. The future resolves when no member of it is
    /// left, and no other call of this handle is in flight: those that are end early, and later ones are refused.
    ///
    /// A program that cleans up may print while it does: up to 1 MiB of that is kept although nobody reads.
    ///
    /// # Errors
    ///
    /// Of the future: those of [`Process::wait_for_exit`]. After [`Survivors`](crate::ErrorKind::Survivors) another call
    /// tries again.
    ///
    /// # Cancellation
    ///
    /// Dropping the future stops the waiting only.
    ///
    /// # Tests
    ///
    /// `item_93_…`, `item_94_…`, `item_96_…`, `item_98_…`, `item_184_a_termination_needs_no_reader`.
    pub fn terminate(&self) -> Termination {
        drop(self.process.terminate());
        Termination::new(self.driver.session_exited())
    }

    /// Resolves to `true` when the whole session is gone, to `false` when `cancel` came first. See
    /// [`Process::wait_for_exit`].
    ///
    /// # Errors
    ///
    /// Those of [`Process::wait_for_exit`].
    ///
    /// # Cancellation
    ///
    /// Dropping the future changes nothing.
    pub async fn wait_for_exit(&self, cancel: &CancellationToken) -> Result<bool, Error> {
        self.process.wait_for_exit(cancel).await
    }

    /// Turns the handle into a guard that terminates the session when it is dropped.
    ///
    /// The drop does not wait: the runtime carries the ladder to its end.
    ///
    /// # Tests
    ///
    /// `a_scoped_terminal_ends_its_session`; of a bare handle, `a_dropped_terminal_ends_nothing`; of the program's exit,
    /// `item_97_…`.
    pub fn scoped(self) -> ScopedTerminal {
        ScopedTerminal(self)
    }
}

impl fmt::Debug for Terminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terminal")
            .field("pid", &self.pid())
            .finish_non_exhaustive()
    }
}

/// Terminates its session when dropped. Made by [`Terminal::scoped`].
#[derive(Debug)]
pub struct ScopedTerminal(Terminal);

impl std::ops::Deref for ScopedTerminal {
    type Target = Terminal;

    fn deref(&self) -> &Terminal {
        &self.0
    }
}

impl std::ops::DerefMut for ScopedTerminal {
    fn deref_mut(&mut self) -> &mut Terminal {
        &mut self.0
    }
}

impl Drop for ScopedTerminal {
    fn drop(&mut self) {
        drop(self.0.process.terminate());
    }
}

/// What a terminal's programs print, byte for byte and in order.
///
/// It works under any executor. A reader that does not read holds the programs up once the terminal is full (12 to 20 KiB),
/// and nothing is lost. It ends after the last byte: when the program has exited and nobody holds the terminal open any
/// more, or [`drain`](crate::TerminalSpec::drain) after the exit. The end of a terminal is no error.
///
/// Dropping it lets the programs go on: what they print from then on is thrown away.
///
/// # Tests
///
/// `item_88_…`, `o21_…`.
pub struct TerminalOutput(Box<dyn AsyncRead + Send + Sync + Unpin>);

impl TerminalOutput {
    /// Wraps a provider's terminal.
    pub fn new(source: impl AsyncRead + Send + Sync + Unpin + 'static) -> Self {
        Self(Box::new(source))
    }
}

impl AsyncRead for TerminalOutput {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl fmt::Debug for TerminalOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TerminalOutput")
    }
}
