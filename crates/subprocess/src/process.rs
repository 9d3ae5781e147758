//! The handle of one live tree, and what a provider supplies under it.

use std::any::Any;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::{
    ControlPipe, Error, Holder, Member, Outcome, OutputReader, Ownership, PipeReader, PipeWriter, Usage,
};

/// What a provider implements for each tree. Small and object-safe; the conveniences are on [`Process`].
///
/// Each future answers at any time, before and after the end of the tree, and any number of times.
pub trait ProcessDriver: Any + Send + Sync {
    /// Returns the target's pid, where it is known by now and the world has one.
    fn pid(&self) -> Option<u32>;
    /// See [`Process::started`].
    fn started(&self) -> BoxFuture<'static, Result<Started, Error>>;
    /// See [`Process::exited`].
    fn exited(&self) -> BoxFuture<'static, Result<Outcome, Error>>;
    /// See [`Process::done`].
    fn done(&self) -> BoxFuture<'static, Result<Outcome, Error>>;
    /// Begins the termination ladder, once; see [`Process::terminate`].
    fn terminate(&self);
    /// Ends the drain early; see [`Process::cut_drain`]. Wakers call it too, so it may rely on no lock that is held while
    /// they run.
    fn cut_drain(&self);
    /// Resolves when the tree is gone, or with the reason why that cannot be told (yet).
    fn tree_exited(&self) -> BoxFuture<'static, Result<(), Error>>;
    /// See [`Process::ownership`].
    fn ownership(&self) -> BoxFuture<'static, Result<Ownership, Error>>;
    /// See [`Process::usage`].
    fn usage(&self) -> BoxFuture<'static, Result<Usage, Error>>;
    /// See [`Process::members`].
    fn members(&self) -> BoxFuture<'static, Result<Vec<Member>, Error>>;
    /// See [`Process::ended`].
    fn ended(&self) -> BoxFuture<'static, Result<Vec<Member>, Error>>;
    /// See [`Process::survivors`].
    fn survivors(&self) -> BoxFuture<'static, Result<Vec<Member>, Error>>;
    /// See [`Process::holders`].
    fn holders(&self) -> BoxFuture<'static, Result<Vec<Holder>, Error>>;
}

/// That the target runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Started {
    /// The target's id in its world, where that world has ids.
    pub pid: Option<u32>,
}

impl Started {
    /// States that the target runs under this id.
    pub fn new(pid: Option<u32>) -> Self {
        Self { pid }
    }
}

/// The parts of a handle that a provider hands over.
#[derive(Default)]
pub struct ProcessStreams {
    /// The writing end of the child's standard input, for [`Stdin::Pipe`](crate::Stdin::Pipe).
    pub stdin: Option<PipeWriter>,
    /// The stream of [`Output::Pipe`](crate::Output::Pipe).
    pub stdout: Option<PipeReader>,
    /// The stream of [`Output::Pipe`](crate::Output::Pipe).
    pub stderr: Option<PipeReader>,
    /// The caller's end of the control pipe, where the spec asked for one.
    pub control: Option<ControlPipe>,
    /// The reader of [`Output::Collect`](crate::Output::Collect).
    pub collected_stdout: Option<OutputReader>,
    /// The reader of [`Output::Collect`](crate::Output::Collect).
    pub collected_stderr: Option<OutputReader>,
}

/// One live tree. The same type for every world.
///
/// Dropping it ends nothing: the runtime still owns, drains and reaps the tree, and only the raw pipe ends that were not
/// taken are closed. [`scoped`](Self::scoped) gives a guard whose drop terminates.
pub struct Process {
    driver: Arc<dyn ProcessDriver>,
    streams: ProcessStreams,
}

impl Process {
    /// Assembles a handle. Providers call it; callers get one from
    /// [`SubprocessRuntime::spawn`](crate::SubprocessRuntime::spawn).
    pub fn new(driver: Arc<dyn ProcessDriver>, streams: ProcessStreams) -> Self {
        Self { driver, streams }
    }

    /// Returns the target's id, where its world has ids and it is known by now. `None` for a failed spawn.
    pub fn pid(&self) -> Option<u32> {
        self.driver.pid()
    }

    /// Takes the writing end of standard input. `None` unless the spec said [`Stdin::Pipe`](crate::Stdin::Pipe), and
    /// after the first call. Dropping it is the child's end of file.
    pub fn stdin(&mut self) -> Option<PipeWriter> {
        self.streams.stdin.take()
    }

    /// Takes the raw standard output. `None` unless the spec said [`Output::Pipe`](crate::Output::Pipe), and after the
    /// first call.
    pub fn stdout(&mut self) -> Option<PipeReader> {
        self.streams.stdout.take()
    }

    /// Takes the raw standard error. `None` unless the spec said [`Output::Pipe`](crate::Output::Pipe), and after the
    /// first call.
    pub fn stderr(&mut self) -> Option<PipeReader> {
        self.streams.stderr.take()
    }

    /// Takes the control pipe. `None` unless the spec asked for one, and after the first call.
    pub fn control(&mut self) -> Option<ControlPipe> {
        self.streams.control.take()
    }

    /// Returns the reader of standard output. `None` unless the spec said
    /// [`Output::Collect`](crate::Output::Collect). With [`Merge`](crate::ErrorOutput::Merge) it holds both streams.
    pub fn collected_stdout(&self) -> Option<&OutputReader> {
        self.streams.collected_stdout.as_ref()
    }

    /// Returns the reader of standard error. `None` unless the spec said [`Output::Collect`](crate::Output::Collect)
    /// for a stream of its own.
    pub fn collected_stderr(&self) -> Option<&OutputReader> {
        self.streams.collected_stderr.as_ref()
    }

    /// Resolves when the target runs, or with the reason why it never will.
    ///
    /// # Errors
    ///
    /// The kinds of a failed spawn: the cwd's, the program's, [`ArgumentTooLong`](crate::ErrorKind::ArgumentTooLong),
    /// [`ResourceExhausted`](crate::ErrorKind::ResourceExhausted), [`Cancelled`](crate::ErrorKind::Cancelled) where the tree
    /// was ended before its target started (then [`done`](Self::done) says `SIGTERM`), and a world's own.
    ///
    /// # Cancellation
    ///
    /// Dropping the future changes nothing.
    ///
    /// # Tests
    ///
    /// `item_171_…`, `item_22_…`, `item_176_…`.
    pub fn started(&self) -> BoxFuture<'static, Result<Started, Error>> {
        self.driver.started()
    }

    /// Resolves with how the target ended, as soon as that is known.
    ///
    /// Its streams may not have ended then, and what it wrote last may not have arrived: [`done`](Self::done) waits for them,
    /// and gives the same outcome.
    ///
    /// # Errors
    ///
    /// Those of [`done`](Self::done).
    ///
    /// # Cancellation
    ///
    /// Dropping the future changes nothing.
    ///
    /// # Tests
    ///
    /// `an_exit_is_told_before_the_streams_end`, `item_22_…`.
    pub fn exited(&self) -> BoxFuture<'static, Result<Outcome, Error>> {
        self.driver.exited()
    }

    /// Resolves with how the target ended, once its streams are complete.
    ///
    /// That is the target's exit and the end of every collected or raw stream, or [`drain`](crate::SpawnSpec::drain)
    /// after the exit where somebody still holds one open; then collected streams are sealed with what arrived, raw ones
    /// are left to the caller, and [`holders`](Self::holders) names who holds them. Other members may still run: see
    /// [`wait_for_exit`](Self::wait_for_exit).
    ///
    /// # Errors
    ///
    /// Those of [`started`](Self::started), and [`OwnershipLost`](crate::ErrorKind::OwnershipLost). An error does not
    /// prove that the command did not run: [`Error::started`] tells what is known.
    ///
    /// # Cancellation
    ///
    /// Dropping the future changes nothing.
    ///
    /// # Tests
    ///
    /// `item_56_…` to `item_59_…`, `item_23_…`.
    pub fn done(&self) -> BoxFuture<'static, Result<Outcome, Error>> {
        self.driver.done()
    }

    /// Terminates the whole tree: `SIGTERM` to every member (and `SIGCONT`, since a stopped one cannot act on it), the
    /// spec's grace, then `SIGKILL` to whatever is left.
    ///
    /// It begins at once, whether or not the returned future is polled. A second call joins the first; on a tree that
    /// is gone it does nothing.
    ///
    /// # Errors
    ///
    /// Of the future: see [`wait_for_exit`](Self::wait_for_exit).
    ///
    /// # Cancellation
    ///
    /// Dropping the future stops the waiting only.
    ///
    /// # Tests
    ///
    /// `item_61_…`, `item_62_…`, `item_65_…`, `o4_…`, `a_stopped_member_is_continued_to_end`,
    /// `a_termination_begins_without_being_awaited`.
    pub fn terminate(&self) -> Termination {
        self.driver.terminate();
        Termination::new(self.driver.tree_exited())
    }

    /// Lets the drain run out now: for a caller who knows better than a fixed time when enough was waited for.
    ///
    /// After the target's exit, [`done`](Self::done) settles as it does at the end of [`drain`](crate::SpawnSpec::drain):
    /// collected streams are sealed with what arrived, raw ones are left to the caller, and [`holders`](Self::holders) names
    /// who holds them. Before the exit it makes the drain zero. Once `done` is settled, and for a failed spawn, it does
    /// nothing. It waits for nothing, ends no process, and may be called from any thread, from a waker too.
    ///
    /// # Tests
    ///
    /// `a_drain_is_cut_short`, `a_drain_that_was_cut_before_the_exit_is_zero`, `item_22_…`.
    pub fn cut_drain(&self) {
        self.driver.cut_drain();
    }

    /// Resolves to `true` when the whole tree is gone (no member that can run), to `false` when `cancel` came first.
    ///
    /// # Errors
    ///
    /// [`Survivors`](crate::ErrorKind::Survivors) when members outlived `SIGKILL` by the runtime's bound; the runtime
    /// goes on owning them, and a later call succeeds once they are gone.
    /// [`OwnershipLost`](crate::ErrorKind::OwnershipLost) when nobody can tell any more, and
    /// [`Transport`](crate::ErrorKind::Transport) while the world cannot be asked.
    ///
    /// # Cancellation
    ///
    /// Dropping the future changes nothing.
    ///
    /// # Tests
    ///
    /// `item_69_…`, `item_70_…`, `item_173_…`.
    pub async fn wait_for_exit(&self, cancel: &CancellationToken) -> Result<bool, Error> {
        let mut gone = self.driver.tree_exited();
        let mut cancelled = pin!(cancel.cancelled());
        // The tree is asked first, so that a token cancelled long ago does not hide an end that is already known.
        poll_fn(|context| match gone.as_mut().poll(context) {
            Poll::Ready(result) => Poll::Ready(result.map(|()| true)),
            Poll::Pending => cancelled.as_mut().poll(context).map(|()| Ok(false)),
        })
        .await
    }

    /// Tells which mechanism owns this tree, and what it does not guarantee.
    ///
    /// # Errors
    ///
    /// [`Transport`](crate::ErrorKind::Transport) where the world must be asked and cannot be, and
    /// [`OwnershipLost`](crate::ErrorKind::OwnershipLost) where nobody can tell any more.
    pub fn ownership(&self) -> BoxFuture<'static, Result<Ownership, Error>> {
        self.driver.ownership()
    }

    /// Tells what the tree used so far; after the tree's end, what it used in all.
    ///
    /// # Errors
    ///
    /// As [`ownership`](Self::ownership).
    ///
    /// # Tests
    ///
    /// `usage_is_measured_where_promised`.
    pub fn usage(&self) -> BoxFuture<'static, Result<Usage, Error>> {
        self.driver.usage()
    }

    /// Lists the live members of the tree, at most 1,024 of them, the target first where it lives.
    ///
    /// A snapshot: it may be out of date when it arrives.
    ///
    /// # Errors
    ///
    /// As [`ownership`](Self::ownership).
    ///
    /// # Tests
    ///
    /// `item_61_every_member_is_ended`.
    pub fn members(&self) -> BoxFuture<'static, Result<Vec<Member>, Error>> {
        self.driver.members()
    }

    /// Lists the processes that outlived the target and were signalled by a termination, at most 1,024 of them.
    ///
    /// # Errors
    ///
    /// As [`ownership`](Self::ownership).
    ///
    /// # Tests
    ///
    /// `item_58_done_settles_when_the_drain_runs_out`.
    pub fn ended(&self) -> BoxFuture<'static, Result<Vec<Member>, Error>> {
        self.driver.ended()
    }

    /// Lists the processes that are likely to run on whatever the runtime does: members that outlived `SIGKILL` by its
    /// bound, and processes that left the range the mechanism can see. At most 1,024 of them.
    ///
    /// Where what points to the tree is evidence and no proof, the entry is [uncertain](Member::uncertain). An empty list
    /// is no promise: [`Ownership::weaknesses`] says what the mechanism cannot see.
    ///
    /// # Errors
    ///
    /// As [`ownership`](Self::ownership).
    ///
    /// # Tests
    ///
    /// `item_73_a_daemon_is_ended_or_named`.
    pub fn survivors(&self) -> BoxFuture<'static, Result<Vec<Member>, Error>> {
        self.driver.survivors()
    }

    /// Lists the processes that still hold a stream of the tree whose drain ran out. Empty where none did.
    ///
    /// # Errors
    ///
    /// As [`ownership`](Self::ownership).
    ///
    /// # Tests
    ///
    /// `item_58_done_settles_when_the_drain_runs_out`.
    pub fn holders(&self) -> BoxFuture<'static, Result<Vec<Holder>, Error>> {
        self.driver.holders()
    }

    /// Returns what the provider supplied, for the provider's own use: as [`Any`], it can be told apart from another's.
    pub fn driver(&self) -> &dyn ProcessDriver {
        &*self.driver
    }

    /// Turns the handle into a guard that terminates the tree when it is dropped.
    ///
    /// The drop does not wait: the runtime carries the ladder to its end.
    ///
    /// # Tests
    ///
    /// `a_scoped_handle_ends_its_tree`; of a bare handle, `a_dropped_handle_ends_nothing`.
    pub fn scoped(self) -> ScopedProcess {
        ScopedProcess(self)
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process")
            .field("pid", &self.pid())
            .finish_non_exhaustive()
    }
}

/// Awaits the end of a tree that is being terminated; see [`Process::terminate`] and
/// [`Terminal::terminate`](crate::Terminal::terminate).
pub struct Termination(BoxFuture<'static, Result<(), Error>>);

impl Termination {
    pub(crate) fn new(ended: BoxFuture<'static, Result<(), Error>>) -> Self {
        Self(ended)
    }
}

impl Future for Termination {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(context)
    }
}

impl fmt::Debug for Termination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Termination")
    }
}

/// Terminates its tree when dropped. Made by [`Process::scoped`].
#[derive(Debug)]
pub struct ScopedProcess(Process);

impl std::ops::Deref for ScopedProcess {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.0
    }
}

impl std::ops::DerefMut for ScopedProcess {
    fn deref_mut(&mut self) -> &mut Process {
        &mut self.0
    }
}

impl Drop for ScopedProcess {
    fn drop(&mut self) {
        self.0.driver.terminate();
    }
}
