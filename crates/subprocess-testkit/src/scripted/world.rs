//! The scripted world itself: what a test sets up, steps and looks at.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use dsh_subprocess::{
    Capabilities, Environment, Error, ErrorKind, Lookup, Mechanism, NameCase, Ownership, Process, SpawnSpec,
    SubprocessRuntime, Terminal, TerminalEnvironment, TerminalSpec, WorldPath,
};
use futures_core::future::BoxFuture;

use super::agenda::Agenda;
use super::inner::{Core, Inner, Scene, observe};
use super::record::Request;
use super::script::Script;
use super::spill::SpillStore;
use super::terminal::TerminalRequest;

/// Where bare program names are placed, and what `PATH` says.
pub(super) const PROGRAM_DIRECTORY: &str = "world://bin";

/// A world without any process: each program does what its [`Script`] says, in virtual time.
///
/// Its time passes only as the test [advances](Self::advance) it ([`stepped`](Self::stepped)), or as fast as events come
/// ([`free_running`](Self::free_running)); no clock of this machine is ever read. It is remote in everything: `spawn`
/// returns before anything has started, questions are answered after a [latency](Self::set_latency), there are no
/// process ids unless a script gives some, paths are spelt `world://…`, a spilled stream is in the world's own memory,
/// and the environment of this machine does not cross.
///
/// Cloning it gives another reference to the same world. When the last one is dropped every tree gets `SIGKILL`.
///
/// ```
/// use std::{collections::BTreeMap, time::Duration};
/// use dsh_subprocess::{ErrorOutput, Output, SpawnSpec, Stdin, SubprocessRuntime};
/// use dsh_subprocess_testkit::scripted::{Script, ScriptedWorld};
/// use tokio_util::sync::CancellationToken;
///
/// let world = ScriptedWorld::stepped();
/// world.program("deploy", Script::new().waits(Duration::from_secs(90)).starts().exits(7));
///
/// let process = world.spawn(SpawnSpec {
///     argv: vec!["deploy".into(), "--now".into()],
///     cwd: "world://site".into(),
///     env: BTreeMap::new(),
///     stdin: Stdin::Ignore,
///     stdout: Output::Inherit,
///     stderr: ErrorOutput::Merge,
///     grace: Duration::from_secs(3),
///     drain: Duration::from_secs(1),
///     control: false,
///     cancel: CancellationToken::new(),
/// })?;
/// assert_eq!(process.pid(), None);
///
/// world.advance(Duration::from_secs(90)); // takes no time at all
/// assert_eq!(pollster::block_on(process.done())?.code(), Some(7));
/// assert_eq!(world.requests()[0].spec.argv[1], "--now".into());
/// # Ok::<(), dsh_subprocess::Error>(())
/// ```
#[derive(Clone)]
pub struct ScriptedWorld(Arc<Owner>);

/// The runtime's own reference; handles have others.
struct Owner(Arc<Inner>);

/// What a path of a scripted world leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// A directory that may be entered.
    Directory,
    /// A file that is no program.
    File,
    /// A directory that may not be entered.
    Locked,
}

impl ScriptedWorld {
    /// Makes a world whose time stands still until the test advances it.
    pub fn stepped() -> Self {
        let base = Environment::from_iter([("PATH".into(), PROGRAM_DIRECTORY.into())]);
        let remote = Mechanism::Remote(Box::new(Mechanism::JobObject));
        let core = Core {
            scene: Scene {
                agenda: Agenda::default(),
                open_gates: [].into(),
                kill_bound: Duration::from_secs(5),
                write_bound: Duration::from_secs(5),
                violations: Vec::new(),
                wakers: Vec::new(),
                retired: Vec::new(),
            },
            trees: Vec::new(),
            programs: BTreeMap::new(),
            places: BTreeMap::new(),
            base,
            name_case: NameCase::Exact,
            platform: "scripted".to_owned(),
            ownership: Ownership::new(remote, Vec::new()),
            latency: Duration::from_millis(1),
            horizon: Duration::MAX,
            spills: SpillStore::default(),
            disposed: false,
            abandoned: false,
        };
        Self(Arc::new(Owner(Arc::new(Inner::new(core)))))
    }

    /// Makes a world whose time passes by itself: the clock jumps from event to event, on a thread of the world's own.
    ///
    /// Whatever is waited for in time comes at once: a grace, a drain, a pause of a script. Only gates, readers and writers
    /// make a script wait, and the [horizon](Self::set_horizon).
    pub fn free_running() -> Self {
        let world = Self::stepped();
        let inner = Arc::clone(world.inner());
        // The thread ends when the world was dropped and nothing is planned any more.
        thread::spawn(move || inner.run_freely());
        world
    }

    fn inner(&self) -> &Arc<Inner> {
        &self.0.0
    }

    /// Sets what a program does, in every run. A name without a slash is placed in `world://bin`, which is the world's
    /// `PATH`; any other is the program's location.
    pub fn program(&self, name: &str, script: Script) -> &Self {
        self.program_by(name, move |_| script.clone())
    }

    /// Sets what a program does, run by run: `script` sees the spec, or the one that says with pipes what a terminal's spec
    /// says of its program. It must not call the world.
    pub fn program_by(
        &self,
        name: &str,
        script: impl Fn(&SpawnSpec) -> Script + Send + Sync + 'static,
    ) -> &Self {
        let location = if name.contains('/') {
            name.to_owned()
        } else {
            format!("{PROGRAM_DIRECTORY}/{name}")
        };
        self.inner()
            .with(|core| core.programs.insert(location.into_bytes(), Arc::new(script)));
        self
    }

    /// Says what a path leads to. As long as no path was placed, every working directory is there; afterwards only those
    /// are that were placed.
    pub fn place(&self, path: impl Into<WorldPath>, place: Place) -> &Self {
        let path = path.into();
        self.inner().with(|core| core.places.insert(path, place));
        self
    }

    /// Replaces the environment that the world has by itself: before the scrub, and before any overlay. It is a `PATH` of
    /// `world://bin` otherwise; the entries of a `PATH` here are separated by `;`.
    pub fn set_base_environment(&self, base: Environment) -> &Self {
        self.inner().with(|core| core.base = base);
        self
    }

    /// Sets how the names of variables are compared: exactly, where it is not set.
    pub fn set_name_case(&self, case: NameCase) -> &Self {
        self.inner().with(|core| core.name_case = case);
        self
    }

    /// Sets how long the answer to a question takes: 1 ms of virtual time where it is not set.
    pub fn set_latency(&self, latency: Duration) -> &Self {
        self.inner().with(|core| core.latency = latency);
        self
    }

    /// Sets how far a [free-running](Self::free_running) clock jumps at once: without a limit where it is not set. What lies
    /// further ahead comes only when the test [advances](Self::advance) the world.
    pub fn set_horizon(&self, horizon: Duration) -> &Self {
        self.inner().with(|core| core.horizon = horizon);
        self
    }

    /// Sets how long the end of a tree is waited for after `SIGKILL`: 5 s of virtual time where it is not set.
    pub fn set_kill_bound(&self, bound: Duration) -> &Self {
        self.inner().with(|core| core.scene.kill_bound = bound);
        self
    }

    /// Sets how long a write to a terminal may get no further before it is given up: 5 s of virtual time where it is not
    /// set.
    pub fn set_write_bound(&self, bound: Duration) -> &Self {
        self.inner().with(|core| core.scene.write_bound = bound);
        self
    }

    /// Sets the system that the world's terminals say they are on: `scripted` where it is not set. The user's shell is
    /// `SHELL` of the [base environment](Self::set_base_environment), or `world://bin/sh`.
    pub fn set_platform(&self, platform: impl Into<String>) -> &Self {
        self.inner().with(|core| core.platform = platform.into());
        self
    }

    /// Sets what owns the world's trees: a remote job object without weaknesses where it is not set.
    pub fn set_ownership(&self, ownership: Ownership) -> &Self {
        self.inner().with(|core| core.ownership = ownership);
        self
    }

    /// Lets so much virtual time pass, with everything that happens in it. Zero gives the world its turn: what was asked
    /// of it arrives, and scripts go on as far as they can.
    pub fn advance(&self, span: Duration) {
        self.inner()
            .with(|core| core.run_until(core.scene.agenda.now().saturating_add(span)));
    }

    /// Lets time pass until nothing is planned any more: every script has ended, or waits for a gate, a reader, a writer
    /// or a signal.
    pub fn run(&self) {
        self.inner().with(Core::run_out);
    }

    /// Opens a gate for every script that [waits](Script::wait_for) for it, now and later.
    pub fn open(&self, gate: impl Into<String>) {
        let gate = gate.into();
        self.inner().with(|core| {
            core.scene.open_gates.insert(gate);
            core.resume_all();
        });
    }

    /// Returns the virtual time since the world began.
    pub fn now(&self) -> Duration {
        self.inner().quietly(|core| core.scene.agenda.now())
    }

    /// Returns every spawn that was accepted, in order, with what was asked of its tree since. Terminals are
    /// [not among them](Self::terminals).
    pub fn requests(&self) -> Vec<Request> {
        self.inner()
            .quietly(|core| core.trees.iter().filter_map(Request::of).collect())
    }

    /// Returns every terminal that was accepted, in order, with what was asked of it since.
    pub fn terminals(&self) -> Vec<TerminalRequest> {
        self.inner()
            .quietly(|core| core.trees.iter().filter_map(TerminalRequest::of).collect())
    }

    /// Returns what contradicted a script's [expectations](Script::expects), a sentence each. A test that sets
    /// expectations ends by asserting that this is empty.
    pub fn violations(&self) -> Vec<String> {
        self.inner().quietly(|core| core.scene.violations.clone())
    }

    /// Returns how many spilled streams the world holds.
    pub fn spilled_streams(&self) -> usize {
        self.inner().quietly(|core| core.spills.len())
    }
}

impl SubprocessRuntime for ScriptedWorld {
    fn resolve_executable(&self, lookup: Lookup) -> BoxFuture<'static, Result<WorldPath, Error>> {
        let arrival = self.inner().with(Core::plan_answer);
        let mut cancelled = Box::pin(lookup.cancel.clone().cancelled_owned());
        let mut answer = observe(Arc::clone(self.inner()), move |core| {
            core.has_arrived(arrival).then(|| core.look_up(&lookup))
        });
        Box::pin(std::future::poll_fn(move |context| {
            if cancelled.as_mut().poll(context).is_ready() {
                return Poll::Ready(Err(Error::new(
                    ErrorKind::Cancelled,
                    "look-up",
                    "the look-up was cancelled",
                )));
            }
            answer.as_mut().poll(context)
        }))
    }

    fn spawn(&self, spec: SpawnSpec) -> Result<Process, Error> {
        spec.validate()?;
        if spec.control {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "spawn",
                "the scripted world has no control pipes",
            ));
        }
        super::spawn::spawn(self.inner(), spec)
    }

    fn spawn_terminal(&self, spec: TerminalSpec) -> BoxFuture<'static, Result<Terminal, Error>> {
        super::terminal::spawn_terminal(self.inner(), spec)
    }

    fn terminal_environment(&self) -> BoxFuture<'static, Result<TerminalEnvironment, Error>> {
        let arrival = self.inner().with(Core::plan_answer);
        observe(Arc::clone(self.inner()), move |core| {
            core.has_arrived(arrival).then(|| Ok(core.terminal_environment()))
        })
    }

    fn dispose(&self) -> BoxFuture<'static, Result<(), Error>> {
        self.inner().with(Core::dispose);
        observe(Arc::clone(self.inner()), Core::disposal)
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities =
            Capabilities::new(self.inner().quietly(|core| core.ownership.mechanism.clone()));
        capabilities.spill = true;
        capabilities.terminal = true;
        capabilities
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.with(Core::abandon);
    }
}

impl fmt::Debug for ScriptedWorld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedWorld")
            .field("now", &self.now())
            .finish_non_exhaustive()
    }
}

/// Makes one result of several failures: the only one as it is, or all of them in one.
pub(super) fn all_of(mut failures: Vec<Error>) -> Result<(), Error> {
    match failures.len() {
        0 => Ok(()),
        1 => Err(failures.remove(0)),
        _ => {
            let survivors = failures.iter().flat_map(Error::survivors).cloned().collect();
            let texts: Vec<_> = failures.iter().map(ToString::to_string).collect();
            Err(Error::new(ErrorKind::Several, "dispose", texts.join("; ")).with_survivors(survivors))
        }
    }
}
