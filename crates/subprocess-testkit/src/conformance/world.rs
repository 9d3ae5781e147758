//! What the suite has to know of a world.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dsh_subprocess::{
    Collect, ErrorOutput, NameCase, Output, SpawnSpec, Stdin, SubprocessRuntime, TerminalSize, TerminalSpec,
    WorldPath, WorldString,
};
use tokio_util::sync::CancellationToken;

/// One world, or one ownership tier of it, as the suite sees it. A provider's test makes one for each check.
///
/// ```
/// use std::sync::Arc;
/// use dsh_subprocess::NameCase;
/// use dsh_subprocess_testkit::conformance::{Guarantees, World};
/// use dsh_subprocess_testkit::scripted::{Place, Script, ScriptedWorld};
///
/// let world = World {
///     runtime: Box::new(|| {
///         let scripted = ScriptedWorld::free_running();
///         scripted.program("probe", Script::new().exits(7));
///         scripted.place("world://work", Place::Directory);
///         Arc::new(scripted)
///     }),
///     probe: "world://bin/probe".into(),
///     probe_name: "probe".into(),
///     probe_directory: "world://bin".into(),
///     directory: "world://work".into(),
///     file: "world://work/notes".into(),
///     missing: "world://nowhere".into(),
///     locked_directory: None,
///     shell: None,
///     hidden: vec!["SCRIPTED_API_KEY".into()],
///     kept: vec!["PATH".into()],
///     guarantees: Guarantees {
///         immediate_pid: false,
///         process_ids: false,
///         name_case: NameCase::Exact,
///         ends_session_leavers: true,
///         names_holders: true,
///         measures_usage: false,
///         spill: true,
///         raw_descriptors: false,
///         argument_limit: None,
///         terminal: true,
///         proves_input_waiting: true,
///     },
///     resources: Box::new(()),
/// };
/// let runtime = world.runtime();
/// let process = runtime.spawn(world.spec(&["exit", "7"]))?;
/// assert_eq!(pollster::block_on(process.done())?.code(), Some(7));
/// # Ok::<(), dsh_subprocess::Error>(())
/// ```
pub struct World {
    /// Makes a runtime. Checks that need two call it twice.
    pub runtime: Box<dyn Fn() -> Arc<dyn SubprocessRuntime> + Send + Sync>,
    /// The location of the probe program: [`probe_directory`](Self::probe_directory), the world's separator,
    /// [`probe_name`](Self::probe_name).
    pub probe: WorldString,
    /// The probe's name without its directory.
    pub probe_name: WorldString,
    /// The directory that holds the probe. As a value of `PATH` it must mean that directory alone.
    pub probe_directory: WorldString,
    /// A directory that may be entered.
    pub directory: WorldPath,
    /// A regular file that is not executable.
    pub file: WorldPath,
    /// A path that leads nowhere, absolute.
    pub missing: WorldPath,
    /// A directory that may not be entered. `None` where the user may enter all of them.
    pub locked_directory: Option<WorldPath>,
    /// A POSIX shell, where the world has one. Checks about jobs and signals need it.
    pub shell: Option<WorldString>,
    /// Names of variables in the world's own environment that the scrub must leave out: at least one credential by name,
    /// and at least one `DSH_` name. For a world on this machine they must be in the environment of the test process.
    pub hidden: Vec<WorldString>,
    /// Names of variables in the world's own environment that must reach every child: at least one.
    pub kept: Vec<WorldString>,
    /// What this world, at this tier, promises beyond the contract that all share.
    pub guarantees: Guarantees,
    /// Whatever has to live as long as the check, such as temporary directories.
    pub resources: Box<dyn Any + Send + Sync>,
}

/// What differs between worlds that all keep the contract.
///
/// A check of a guarantee asserts it where it is made, and its honest opposite where it is not.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a promise of its own, and any combination may be kept"
)]
pub struct Guarantees {
    /// The target's id is known when `spawn` returns. Otherwise it is not, and `started` tells it.
    pub immediate_pid: bool,
    /// Processes have ids. Otherwise there is none, ever.
    pub process_ids: bool,
    /// How names of variables are compared.
    pub name_case: NameCase,
    /// A termination reaches members that left for a session of their own. Otherwise `ownership` has weaknesses, and
    /// `survivors` names the one that left.
    pub ends_session_leavers: bool,
    /// Whoever holds a stream when its drain runs out is named. Otherwise nobody is.
    pub names_holders: bool,
    /// The processor time of a tree is measured. Otherwise it is unknown, and not 0.
    pub measures_usage: bool,
    /// A stream is spilled where that was asked for. Otherwise it stays in memory alone.
    pub spill: bool,
    /// Raw pipes are descriptors of this machine. Otherwise asking for one says that they are not.
    pub raw_descriptors: bool,
    /// An argument of so many bytes is too long for the world. `None` where no argument is that this machine can hold.
    pub argument_limit: Option<usize>,
    /// There are terminals. Otherwise asking for one says that there are none.
    pub terminal: bool,
    /// That somebody waits for a terminal's input is proven. Otherwise it is not known, and not denied.
    pub proves_input_waiting: bool,
}

impl World {
    /// Makes a runtime. The drop of its last reference ends its trees.
    pub fn runtime(&self) -> Arc<dyn SubprocessRuntime> {
        (self.runtime)()
    }

    /// Makes a spec for a call of the probe: nothing to read, both streams collected up to 1 MiB, a grace and a drain of
    /// 20 s, so that neither ends anything by itself within a check.
    pub fn spec(&self, call: &[&str]) -> SpawnSpec {
        let collected = || {
            Output::Collect(Collect {
                max_bytes: 1 << 20,
                head_bytes: 0,
                spill: None,
            })
        };
        let patience = Duration::from_secs(20);
        SpawnSpec {
            argv: std::iter::once(self.probe.clone())
                .chain(call.iter().map(|word| WorldString::from(*word)))
                .collect(),
            cwd: self.directory.clone(),
            env: BTreeMap::new(),
            stdin: Stdin::Ignore,
            stdout: collected(),
            stderr: ErrorOutput::Own(collected()),
            grace: patience,
            drain: patience,
            control: false,
            cancel: CancellationToken::new(),
        }
    }

    /// Makes a spec for a shell command, otherwise as [`spec`](Self::spec). `None` where the world has no shell.
    pub fn shell_spec(&self, command: &str) -> Option<SpawnSpec> {
        let shell = self.shell.clone()?;
        let mut spec = self.spec(&[]);
        spec.argv = vec![shell, "-c".into(), command.into()];
        Some(spec)
    }

    /// Makes a spec for a call of the probe on a terminal of 24 rows and 80 columns, with the patience of
    /// [`spec`](Self::spec).
    pub fn terminal_spec(&self, call: &[&str]) -> TerminalSpec {
        let pipes = self.spec(call);
        TerminalSpec {
            argv: pipes.argv,
            cwd: pipes.cwd,
            env: pipes.env,
            terminal_type: "xterm-256color".into(),
            size: TerminalSize { rows: 24, cols: 80 },
            grace: pipes.grace,
            drain: pipes.drain,
            cancel: pipes.cancel,
        }
    }

    /// Makes a spec for a shell command on a terminal, otherwise as [`terminal_spec`](Self::terminal_spec). `None` where the
    /// world has no shell.
    pub fn shell_terminal(&self, command: &str) -> Option<TerminalSpec> {
        let mut spec = self.terminal_spec(&[]);
        spec.argv = self.shell_spec(command)?.argv;
        Some(spec)
    }
}
