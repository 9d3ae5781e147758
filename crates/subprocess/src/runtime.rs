//! The trait every world implements.

use futures_core::future::BoxFuture;

use crate::{
    Error, Lookup, Mechanism, Process, SpawnSpec, Terminal, TerminalEnvironment, TerminalSpec, WorldPath,
};

/// The process half of one execution world.
///
/// Object-safe: consumers take `&dyn SubprocessRuntime` and name no provider. None of its methods needs a running
/// executor of any kind; the futures may be polled by whichever one the caller has.
///
/// Dropping the last reference to a runtime begins the end of every tree it has left, and waits for nothing; whether they
/// have their grace then is in each world's own documentation.
///
/// The conformance suite in `dsh-subprocess-testkit` is this contract in code: it runs against every world. Below, *Tests*
/// names the checks of each guarantee; a name that ends in `…` stands for all that begin so.
pub trait SubprocessRuntime: Send + Sync {
    /// Finds an executable in this world.
    ///
    /// An absolute path must name an executable regular file and is answered verbatim. A bare name is searched on the
    /// `PATH` of the scrubbed environment with `lookup.env` on top; the answer is absolute, and symbolic links in it are
    /// kept.
    ///
    /// # Errors
    ///
    /// [`InvalidSpec`](crate::ErrorKind::InvalidSpec) for an empty command and for a relative path with a separator in
    /// it, [`ProgramNotFound`](crate::ErrorKind::ProgramNotFound) for a completed search that found nothing,
    /// [`ProgramNotExecutable`](crate::ErrorKind::ProgramNotExecutable) for an absolute path that is no executable
    /// file, [`Cancelled`](crate::ErrorKind::Cancelled).
    ///
    /// # Cancellation
    ///
    /// `lookup.cancel` is looked at before and after each candidate. Dropping the future abandons the answer.
    ///
    /// # Tests
    ///
    /// `item_10_…` to `item_14_…`, `item_179_…`.
    fn resolve_executable(&self, lookup: Lookup) -> BoxFuture<'static, Result<WorldPath, Error>>;

    /// Starts a process tree and returns its live handle at once.
    ///
    /// A world on this machine may first complete a bounded handshake (at most 1 s), so that [`Process::pid`] is known
    /// when this returns.
    ///
    /// # Errors
    ///
    /// Only what is known without asking the world: [`InvalidSpec`](crate::ErrorKind::InvalidSpec),
    /// [`Cancelled`](crate::ErrorKind::Cancelled), [`Disposed`](crate::ErrorKind::Disposed),
    /// [`ForkedProcess`](crate::ErrorKind::ForkedProcess), and [`Unsupported`](crate::ErrorKind::Unsupported) for a control
    /// pipe where there is none. Every other failure is told by [`Process::started`] and
    /// [`Process::done`]; the handle of a failed spawn is inert and its tree counts as gone.
    ///
    /// # Cancellation
    ///
    /// `spec.cancel` terminates the tree, from before its start until it is gone.
    ///
    /// # Tests
    ///
    /// Refusals: `item_18_…` to `item_20_…`, `item_178_…`, `item_29_a_disposed_runtime_starts_nothing`. The failed handle:
    /// `item_22_…` to `item_24_…`. The handshake: `item_171_…`. The search: `item_177_…`. Cancellation: `item_175_…`,
    /// `item_176_…`, `item_61_the_token_terminates`. No executor: `issue_2_spawn_works_from_any_thread`.
    fn spawn(&self, spec: SpawnSpec) -> Result<Process, Error>;

    /// Starts a process tree on a terminal of its own, and resolves with its live handle once the program runs.
    ///
    /// The program leads a session, whose controlling terminal it is, and has it as its standard input, output and error
    /// output. The terminal is in the state that its system gives a new one; where that has a notion of it, erasing a
    /// character erases a whole UTF-8 sequence.
    ///
    /// It begins when it is called, not when the future is polled.
    ///
    /// ```
    /// use dsh_subprocess::{Error, Outcome, SubprocessRuntime, TerminalSize, TerminalSpec};
    /// use tokio::io::AsyncReadExt;
    ///
    /// /// Types a line into a shell, and returns what its screen got.
    /// async fn ask(world: &dyn SubprocessRuntime, spec: TerminalSpec, line: String) -> Result<(Outcome, Vec<u8>), Error> {
    ///     let mut terminal = world.spawn_terminal(spec).await?;
    ///     let mut output = terminal.output().expect("it was not taken yet");
    ///     terminal.write(line + "\nexit\n").await?;
    ///     let mut screen = Vec::new();
    ///     output.read_to_end(&mut screen).await.expect("the end of a terminal is no error");
    ///     let outcome = terminal.done().await?;
    ///     terminal.terminate().await?;
    ///     Ok((outcome, screen))
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`spawn`](Self::spawn) and of [`Process::started`], each of its kind: a program or a working directory that
    /// is missing is no child that prints so and exits. [`Unsupported`](crate::ErrorKind::Unsupported) where the world has
    /// no terminals, [`ResourceExhausted`](crate::ErrorKind::ResourceExhausted) where none is left.
    ///
    /// # Cancellation
    ///
    /// `spec.cancel` abandons the allocation, and the future resolves when nothing of it is left running; members that outlive
    /// `SIGKILL` are an error of kind [`Survivors`](crate::ErrorKind::Survivors). Dropping the future has it killed, too, and waits
    /// for nothing. Neither does anything to a terminal once its handle is there.
    ///
    /// # Tests
    ///
    /// `item_83_…` to `item_88_…`.
    fn spawn_terminal(&self, spec: TerminalSpec) -> BoxFuture<'static, Result<Terminal, Error>>;

    /// Tells what this world's terminals are like: its system, and the user's shell.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](crate::ErrorKind::Unsupported) where the world has no terminals, [`Os`](crate::ErrorKind::Os) where
    /// the user's account cannot be read and `SHELL` says nothing.
    ///
    /// # Cancellation
    ///
    /// Dropping the future abandons the answer.
    ///
    /// # Tests
    ///
    /// `item_180_…`.
    fn terminal_environment(&self) -> BoxFuture<'static, Result<TerminalEnvironment, Error>>;

    /// Terminates every tree, waits until each is gone, and refuses every later [`spawn`](Self::spawn).
    ///
    /// It begins when it is called, not when the future is polled; calling it again waits for the same end.
    ///
    /// # Errors
    ///
    /// [`Survivors`](crate::ErrorKind::Survivors) names members that outlived `SIGKILL` by the world's bound;
    /// [`Several`](crate::ErrorKind::Several) holds more than one failure.
    ///
    /// # Cancellation
    ///
    /// Dropping the future stops the waiting only.
    ///
    /// # Tests
    ///
    /// `item_79_…` (terminals too), `item_29_a_disposal_begins_when_it_is_called`, `two_runtimes_do_not_touch_each_other`; of dropping instead,
    /// `handles_outlive_their_runtime`.
    fn dispose(&self) -> BoxFuture<'static, Result<(), Error>>;

    /// Returns what this world can do. It asks nothing of the world.
    ///
    /// # Tests
    ///
    /// `capabilities_are_true`.
    fn capabilities(&self) -> Capabilities;
}

/// What a world can do, fixed when its runtime was made.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent abilities, each with a name"
)]
pub struct Capabilities {
    /// The mechanism that owns the trees started from now on. A single tree may have a weaker one: ask
    /// [`Process::ownership`].
    pub mechanism: Mechanism,
    /// Whether trees are ended when the host dies without disposing of the runtime (`SIGKILL`, a crash).
    pub ends_trees_on_host_death: bool,
    /// Whether [`Collect::spill`](crate::Collect::spill) is honoured.
    pub spill: bool,
    /// Whether [`SpawnSpec::control`](crate::SpawnSpec::control) is honoured; where it is not, such a spec is refused as
    /// [`Unsupported`](crate::ErrorKind::Unsupported).
    pub control: bool,
    /// Whether [`spawn_terminal`](SubprocessRuntime::spawn_terminal) is honoured; where it is not, every spec is refused as
    /// [`Unsupported`](crate::ErrorKind::Unsupported).
    pub terminal: bool,
    /// Whether [`Process::pid`] is known when `spawn` returns, in the usual case of a spawn that took less than the handshake (at
    /// most 1 s).
    pub immediate_pid: bool,
}

impl Capabilities {
    /// States a world's mechanism, with every ability off.
    pub fn new(mechanism: Mechanism) -> Self {
        Self {
            mechanism,
            ends_trees_on_host_death: false,
            spill: false,
            control: false,
            terminal: false,
            immediate_pid: false,
        }
    }
}
