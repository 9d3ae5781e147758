//! The local world, as callers see it.

use std::any::Any;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use dsh_subprocess::{
    Capabilities, Error, ErrorKind, Lookup, MayHaveStarted, Ownership, Process, SpawnSpec, SubprocessRuntime,
    Terminal, TerminalEnvironment, TerminalSpec, WorldPath, WorldString,
};
use dsh_subprocess_sys::pidfd::Signal;
use futures_core::future::BoxFuture;

use crate::driver::LocalProcess;
use crate::environment::Ambient;
use crate::machine::Machine;
use crate::tree::Tree;
use crate::{LocalRuntimeBuilder, drive, launch, lookup, terminal};

/// The world of this machine.
///
/// Cloning it gives another reference to the same runtime. Dropping the last one, without
/// [`dispose`](SubprocessRuntime::dispose), begins the end of every tree that is left, and neither blocks nor panics: where
/// a warden sees this process's end, as control groups and the reaper have one, each tree gets `SIGTERM`, its own grace, and
/// `SIGKILL`, also when this process does not live to send it; elsewhere it gets `SIGKILL` at once.
///
/// A runtime has a thread of its own, which sleeps while nothing happens; it needs no executor, and its futures may be
/// awaited under any. A thread that has nothing to do but wait is served best by [`block_on`](Self::block_on).
///
/// ```
/// use dsh_subprocess::{Collect, ErrorOutput, Output, SpawnSpec, Stdin, SubprocessRuntime};
/// use dsh_subprocess_local::LocalRuntime;
/// use std::{collections::BTreeMap, time::Duration};
///
/// let world = LocalRuntime::new()?;
/// let process = world.spawn(SpawnSpec {
///     argv: vec!["sh".into(), "-c".into(), "echo hello; exit 7".into()],
///     cwd: "/".into(),
///     env: BTreeMap::new(),
///     stdin: Stdin::Ignore,
///     stdout: Output::Collect(Collect { max_bytes: 65_536, head_bytes: 0, spill: None }),
///     stderr: ErrorOutput::Merge,
///     grace: Duration::from_secs(3),
///     drain: Duration::from_secs(1),
///     control: false,
///     cancel: Default::default(),
/// })?;
/// let outcome = world.block_on(process.done())?;
/// assert_eq!(outcome.code(), Some(7));
/// assert_eq!(process.collected_stdout().unwrap().text(), "hello\n");
/// world.block_on(world.dispose())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct LocalRuntime {
    reference: Arc<Reference>,
    ambient: Ambient,
}

/// What the callers share. Its drop is the drop of the last of them.
#[derive(Debug)]
struct Reference(Arc<Machine>);

impl Drop for Reference {
    fn drop(&mut self) {
        // A forked child drops its copy of somebody else's runtime: it is not its to end.
        if self.0.is_at_home() {
            self.0.abandon();
        }
    }
}

impl LocalRuntime {
    /// Makes a runtime with the strongest ownership that works here.
    ///
    /// # Errors
    ///
    /// See [`LocalRuntimeBuilder::build`].
    pub fn new() -> Result<Self, Error> {
        Self::builder().build()
    }

    /// Starts making a runtime.
    pub fn builder() -> LocalRuntimeBuilder {
        LocalRuntimeBuilder::default()
    }

    pub(crate) fn from_machine(machine: Arc<Machine>) -> Self {
        Self {
            reference: Arc::new(Reference(machine)),
            ambient: Ambient::Host,
        }
    }

    pub(crate) fn machine(&self) -> &Arc<Machine> {
        &self.reference.0
    }

    /// Returns another reference to this runtime whose trees, terminals, look-ups and
    /// [`terminal_environment`](SubprocessRuntime::terminal_environment) start from the given environment instead of this
    /// process's own. It is scrubbed in the same way, and `TMPDIR`, `HOME` and the like are taken from it where spilled streams
    /// are to go to the user's usual places.
    ///
    /// For a host that has another environment in mind than the one of its C library, which then is not even read: another
    /// thread of such a host may be changing it. Of two entries of the same name one is taken.
    ///
    /// The last environment that was given is remembered with the scrub's judgement of it, so giving the same one for each
    /// spawn costs a comparison at most, and nothing where it is the same [`Arc`]. The environment does not change afterwards; for
    /// a new one a new reference is made. The runtime lives as long as any reference to it, of either kind.
    ///
    /// ```
    /// use dsh_subprocess::{SubprocessRuntime, WorldPath};
    /// use dsh_subprocess_local::LocalRuntime;
    ///
    /// let world = LocalRuntime::new()?;
    /// let elsewhere = world.with_ambient(vec![("SHELL".into(), "/bin/elsewhere".into())]);
    /// let told = world.block_on(elsewhere.terminal_environment())?;
    /// assert_eq!(told.shell, WorldPath::from("/bin/elsewhere"));
    /// # Ok::<(), dsh_subprocess::Error>(())
    /// ```
    #[must_use]
    pub fn with_ambient(&self, ambient: impl Into<Arc<Vec<(OsString, OsString)>>>) -> Self {
        Self {
            reference: Arc::clone(&self.reference),
            ambient: self.machine().environment.give(ambient.into()),
        }
    }

    /// Has the private directory for spilled streams made below this one, for trees that are spawned from now on: through any
    /// reference to this runtime. `None` is what the [builder](LocalRuntimeBuilder::spill_parent) had.
    ///
    /// The directory is made with the first spill below a parent, and goes with the runtime. Streams of earlier trees stay with the
    /// parent they had. Below a parent that cannot be used streams are collected without a file:
    /// [`SpillState::Withdrawn`](dsh_subprocess::SpillState::Withdrawn) says why. So it is, too, when the runtime has directories
    /// below 128 parents already.
    pub fn set_spill_parent(&self, directory: Option<PathBuf>) {
        self.machine().spills.set_parent(directory);
    }

    /// Runs a future to its end on this thread, which waits for the runtime's processes meanwhile.
    ///
    /// For a thread that has nothing else to do until then. Under tokio or another executor nothing like it is needed, and
    /// every other way to block on a future works as well. This one saves a thread switch: the end of a process wakes this
    /// thread itself, not the runtime's own, which would then have to wake this one.
    ///
    /// The future may be any: one of another runtime's, or one that has nothing to do with processes. Any number of threads
    /// may block at once, and a future may block in its turn: one of them waits for the runtime, and the others sleep. While
    /// the code of the future has the thread, the runtime's own thread drains and reaps. The wakers of other futures of this
    /// runtime may run on this thread.
    ///
    /// In a process that was forked from the runtime's own it only sleeps until the future is woken.
    ///
    /// ```
    /// # use dsh_subprocess::{Collect, ErrorOutput, Output, SpawnSpec, Stdin, SubprocessRuntime};
    /// # let world = dsh_subprocess_local::LocalRuntime::new()?;
    /// # let spec = SpawnSpec {
    /// #     argv: vec!["true".into()],
    /// #     cwd: "/".into(),
    /// #     env: Default::default(),
    /// #     stdin: Stdin::Ignore,
    /// #     stdout: Output::Collect(Collect { max_bytes: 65_536, head_bytes: 0, spill: None }),
    /// #     stderr: ErrorOutput::Merge,
    /// #     grace: std::time::Duration::from_secs(3),
    /// #     drain: std::time::Duration::from_secs(1),
    /// #     control: false,
    /// #     cancel: Default::default(),
    /// # };
    /// let process = world.spawn(spec)?;
    /// assert!(world.block_on(process.done())?.success());
    /// world.block_on(world.dispose())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// When the future does.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        drive::block_on(&self.machine().reactor, future)
    }

    /// Returns the mechanism that owns the trees started from now on, and what it does not guarantee.
    pub fn ownership(&self) -> Ownership {
        self.machine().ownership(true)
    }

    /// Sends a signal, by its number, once to every member of a tree, which is named by its target's pid. A tree that is over
    /// gets none: its numbers may be a stranger's.
    ///
    /// A stopped member acts on it when it is continued. What it does to a tree is the caller's to know; to end one there is
    /// [`Process::terminate`].
    ///
    /// # Errors
    ///
    /// [`InvalidSpec`](ErrorKind::InvalidSpec) for a number that is no signal's; [`Os`](ErrorKind::Os) when the members could not be
    /// listed.
    pub fn signal(&self, pid: u32, signal: i32) -> Result<(), Error> {
        let machine = self.machine();
        machine.check_usable("signal")?;
        let Some(named) = Signal::from_named_raw(signal) else {
            let message = format!("{signal} is the number of no signal");
            return Err(Error::new(ErrorKind::InvalidSpec, "signal", message));
        };
        let Some(tree) = machine.tree(pid) else {
            return Ok(());
        };
        tree.signal(named).map_err(|errno| {
            Error::new(
                ErrorKind::Os,
                "signal",
                format!("the members of the tree of {pid} could not be listed: {errno}"),
            )
        })
    }

    /// Sends `SIGKILL` to one tree at once, whether or not its target runs already, and waits for nothing. It takes the
    /// handle of a process, or the [tree](Terminal::tree) of a terminal.
    ///
    /// Nothing is sent to a tree that is gone, nor to one of another runtime. A tree whose target was not started yet never has
    /// one, and its outcome is that of `SIGTERM`. As for [`kill_all`](Self::kill_all), a host that is about to exit may call it,
    /// whatever hangs, and the runtime stays usable.
    pub fn kill(&self, process: &Process) {
        let driver: &dyn Any = process.driver();
        if let Some(LocalProcess(tree)) = driver.downcast_ref()
            && Arc::ptr_eq(&tree.machine, self.machine())
        {
            tree.kill();
        }
    }

    /// Sends `SIGKILL` to every tree at once and waits for nothing: for a host that is about to exit.
    ///
    /// It makes no promise, allocates little, and never panics. The runtime stays usable.
    pub fn kill_all(&self) {
        self.machine().kill_all();
    }
}

impl SubprocessRuntime for LocalRuntime {
    fn resolve_executable(&self, lookup: Lookup) -> BoxFuture<'static, Result<WorldPath, Error>> {
        let machine = self.machine();
        if let Err(error) = machine
            .check_usable("look-up")
            .and_then(|()| lookup::validate(&lookup))
        {
            return Box::pin(std::future::ready(Err(error)));
        }
        let environment = machine.environment.child(&self.ambient, &lookup.env);
        let (command, cancel) = (lookup.command.clone(), lookup.cancel.clone());
        let search = machine.lookups.run("look-up", move || {
            let path = environment
                .get("PATH")
                .map_or(lookup::DEFAULT_PATH, WorldString::as_bytes);
            lookup::resolve(&lookup.command, path, &lookup.cancel)
        });
        // Raced, since the search may hang where the token is not looked at.
        Box::pin(async move {
            match cancel.run_until_cancelled(search).await {
                Some(found) => found?,
                None => Err(lookup::cancelled(&command)),
            }
        })
    }

    fn spawn(&self, spec: SpawnSpec) -> Result<Process, Error> {
        launch::spawn(self.machine(), &self.ambient, spec)
    }

    fn spawn_terminal(&self, spec: TerminalSpec) -> BoxFuture<'static, Result<Terminal, Error>> {
        terminal::spawn(self.machine(), &self.ambient, spec)
    }

    fn terminal_environment(&self) -> BoxFuture<'static, Result<TerminalEnvironment, Error>> {
        let machine = self.machine();
        match machine.check_usable("look-up") {
            Ok(()) => terminal::environment(machine, &self.ambient),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn dispose(&self) -> BoxFuture<'static, Result<(), Error>> {
        let machine = Arc::clone(self.machine());
        if let Err(error) = machine.check_usable("dispose") {
            return Box::pin(std::future::ready(Err(error)));
        }
        let trees = machine.close();
        for tree in &trees {
            tree.terminate();
        }
        Box::pin(async move {
            let mut failures = Vec::new();
            for tree in trees {
                failures.extend(ended(tree).await.err());
            }
            machine.shut_down();
            match failures.len() {
                0 => {
                    machine.closed().await;
                    Ok(())
                }
                1 => Err(failures.remove(0)),
                _ => Err(several(&failures)),
            }
        })
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::new(self.machine().mechanism.clone());
        capabilities.ends_trees_on_host_death = self.machine().warden.is_some();
        capabilities.spill = true;
        capabilities.control = true;
        capabilities.terminal = true;
        capabilities.immediate_pid = !self.machine().handshake.is_zero();
        capabilities
    }
}

/// Waits until a tree is over: gone, and its streams complete. A spawn that failed has told its caller so.
async fn ended(tree: Arc<Tree>) -> Result<(), Error> {
    Arc::clone(&tree).exited().await?;
    let _ = tree.done.get().await;
    Ok(())
}

fn several(failures: &[Error]) -> Error {
    let texts: Vec<String> = failures.iter().map(ToString::to_string).collect();
    let survivors = failures.iter().flat_map(Error::survivors).cloned().collect();
    Error::new(
        ErrorKind::Several,
        "dispose",
        format!("{} trees did not end: {}", failures.len(), texts.join("; ")),
    )
    .with_started(MayHaveStarted::Yes)
    .with_survivors(survivors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OwnershipChoice;

    #[test]
    fn only_a_runtime_with_a_warden_says_that_its_trees_end_with_the_host() {
        for (choice, ends) in [
            (OwnershipChoice::Reaper, true),
            (OwnershipChoice::ProcessGroup, false),
        ] {
            let runtime = LocalRuntime::builder()
                .ownership(choice)
                .build()
                .expect("it works here");
            assert_eq!(
                runtime.capabilities().ends_trees_on_host_death,
                ends,
                "{choice:?}"
            );
        }
    }
}
