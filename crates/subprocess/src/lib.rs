//! The seam of dsh-subprocess: one contract for running whole process trees, whichever world runs them.
//!
//! A *world* is a place where processes run: this machine, a container, another host. A provider implements
//! [`SubprocessRuntime`] for one world; a consumer is written against `&dyn SubprocessRuntime` and works in all of them.
//! This crate makes no operating-system call: the world of this machine is the crate `dsh-subprocess-local`.
//!
//! * [`SpawnSpec`] says what to run, with no hidden default.
//! * [`Process`] is the live handle: raw pipes, [collected output](OutputReader), how the target [ended](Outcome), and one
//!   verb, [`terminate`](Process::terminate), for the whole tree.
//! * [`TerminalSpec`] says what to run on a terminal of its own, and [`Terminal`] is the live handle of that.
//! * [`Scrub`] makes the environment a child gets, for trees of this runtime and for programs that spawn by other
//!   means.
//!
//! ```
//! use dsh_subprocess::{Error, Outcome, SpawnSpec, SubprocessRuntime};
//! use tokio_util::sync::CancellationToken;
//!
//! /// Runs one command to its end, in whichever world it is given.
//! async fn run(world: &dyn SubprocessRuntime, spec: SpawnSpec) -> Result<(Outcome, String), Error> {
//!     let process = world.spawn(spec)?;
//!     let outcome = process.done().await?;
//!     process.terminate().await?; // what the target left behind
//!     let output = process.collected_stdout().map(|out| out.text()).unwrap_or_default();
//!     Ok((outcome, output))
//! }
//! ```
#![forbid(unsafe_code)]

mod environment;
mod error;
mod outcome;
mod output;
mod ownership;
mod pipe;
mod process;
mod runtime;
mod spec;
mod terminal;
mod world;

pub use environment::{
    DSH_ENV_PREFIX, DropReason, Dropped, EnvIntoIter, EnvIter, Environment, NameCase, SENSITIVE_ENV_PATTERN,
    Scrub, ScrubRule, Scrubbed, merge,
};
#[cfg(unix)]
pub use environment::{child_env, scrubbed_parent_env};
pub use error::{Error, ErrorKind, MayHaveStarted};
pub use outcome::{Outcome, SignalName};
pub use output::{
    Collector, OutputRead, OutputReader, Snapshot, SnapshotText, SpillNotice, SpillSource, SpillState,
    SpilledStream, TextCursor, TextRead, whole_characters,
};
pub use ownership::{Holder, Mechanism, Member, Ownership, StreamName, Usage};
pub use pipe::{ControlPipe, PipeReader, PipeSink, PipeSource, PipeWriter};
pub use process::{Process, ProcessDriver, ProcessStreams, ScopedProcess, Started, Termination};
pub use runtime::{Capabilities, SubprocessRuntime};
pub use spec::{
    CONTROL_VARIABLE, Collect, EnvOverlay, ErrorOutput, Lookup, MAX_GRACE, Output, SpawnSpec, Spill,
    SpillLife, Stdin, validate_overlay,
};
pub use terminal::{
    Foreground, InputWaiting, ScopedTerminal, Terminal, TerminalDriver, TerminalEnvironment, TerminalOutput,
    TerminalSignal, TerminalSize, TerminalSpec,
};
pub use world::{WorldPath, WorldString};
