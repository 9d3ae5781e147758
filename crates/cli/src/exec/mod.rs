//! One command in this process's place: its descriptors, its terminal, its signals, its end.
//!
//! For programs that insist on starting their child themselves. What they start is this process, and what that starts is
//! an owned tree: it ends with the command, with this process, and with whoever started this process.
//!
//! No byte passes through here. When the command runs, this process has let go of its three streams, and waits on one
//! thread for three things at once: the command's end, signals to pass on, and the guardian's end.

mod end;
mod environment;
mod guardian;
mod signals;
mod wait;

use std::fs::File;
use std::io;
use std::pin::pin;
use std::time::Duration;

use dsh_subprocess::{
    Error, ErrorOutput, Outcome, Output, Process, Scrub, SpawnSpec, Stdin, SubprocessRuntime, Termination,
    WorldPath, WorldString,
};
use rustix::stdio;
use tokio_util::sync::CancellationToken;

use crate::failure::Failure;
use crate::options::{ExecOptions, OwnershipOption};
use crate::request;

pub(crate) use end::mirror;
pub(crate) use environment::Variables;

use guardian::Guardian;
use signals::{Received, Signals};
use wait::Bell;

/// A world whose commands run in this process's own session and process group.
pub(crate) struct Launcher {
    /// The seam.
    pub(crate) runtime: Box<dyn SubprocessRuntime>,
    /// Sends a signal, by its number, once to every member of the tree of the target with this pid.
    pub(crate) signal: Box<dyn Fn(u32, i32) -> Result<(), Error>>,
}

/// Runs what the options say, and returns how it ended. `make_launcher` is called once, when all else is in order.
///
/// What the command left behind is asked to end, and not waited for.
pub(crate) fn exec(
    options: ExecOptions,
    make_launcher: impl FnOnce(OwnershipOption, Scrub) -> Result<Launcher, Error>,
) -> Result<Outcome, Failure> {
    let (die_with, ownership) = (options.die_with, options.ownership);
    let (spec, scrub) = order(options)?;
    let exhausted =
        |what: &str, error: io::Error| Failure::new("resource_exhausted", format!("{what}: {error}"));
    // Before the first thread, which inherits what is blocked.
    let signals = Signals::take().map_err(|error| exhausted("signals cannot be awaited", error))?;
    let guardian = Guardian::find(die_with)?;
    let bell = Bell::new().map_err(|error| exhausted("no event can be awaited", error))?;
    // Now, since there may be no descriptor left later, and the command would run already.
    let null = File::options()
        .read(true)
        .write(true)
        .open("/dev/null")
        .map_err(|error| exhausted("/dev/null cannot be opened", error))?;

    let launcher = make_launcher(ownership, scrub).map_err(|error| Failure::from(&error))?;
    let process = launcher
        .runtime
        .spawn(spec)
        .map_err(|error| Failure::from(&error))?;
    let mut attendance = Attendance {
        process: &process,
        signal: &*launcher.signal,
        signals,
        guardian,
        bell,
        termination: None,
    };
    attendance
        .attend(process.started())
        .map_err(|error| Failure::from(&error))?;
    let_go(&null).map_err(|error| exhausted("our own streams cannot be given up", error))?;
    let outcome = attendance
        .attend(process.done())
        .map_err(|error| Failure::from(&error));
    if let Some(termination) = attendance.termination.take() {
        // Whoever is left has had the grace and SIGKILL, and there is nobody any more to tell it to.
        let _ = attendance.attend(termination);
    }
    outcome
}

/// Says what to start, and what its environment loses. All that can be refused without starting anything is.
fn order(options: ExecOptions) -> Result<(SpawnSpec, Scrub), Failure> {
    let cwd = request::working_directory(options.cwd.as_deref())?;
    let overlay = request::overlay(options.env, options.unset)?;
    let Variables { scrub, overlay } = Variables::new(options.scrub, options.keep, overlay)?;
    let spec = SpawnSpec {
        argv: options.command.into_iter().map(WorldString::from).collect(),
        cwd: WorldPath::from(cwd),
        env: overlay,
        stdin: Stdin::Inherit,
        stdout: Output::Inherit,
        stderr: ErrorOutput::Own(Output::Inherit),
        grace: options.grace,
        drain: Duration::ZERO,
        control: false,
        cancel: CancellationToken::new(),
    };
    spec.validate().map_err(|error| Failure::from(&error))?;
    Ok((spec, scrub))
}

/// Replaces this process's three streams by the null device, so that their other ends see when the command is done with
/// them.
fn let_go(null: &File) -> io::Result<()> {
    stdio::dup2_stdin(null)?;
    stdio::dup2_stdout(null)?;
    stdio::dup2_stderr(null)?;
    Ok(())
}

/// A tree, and what is looked after while it lives.
struct Attendance<'a> {
    process: &'a Process,
    signal: &'a dyn Fn(u32, i32) -> Result<(), Error>,
    signals: Signals,
    /// `None` once it has ended, or where nobody can be watched.
    guardian: Option<Guardian>,
    bell: Bell,
    /// Begun at the guardian's end.
    termination: Option<Termination>,
}

impl Attendance<'_> {
    /// Waits for something, and meanwhile passes signals on and ends the tree when the guardian ends.
    fn attend<T>(&mut self, awaited: impl Future<Output = T>) -> T {
        let mut awaited = pin!(awaited);
        loop {
            if let Some(value) = self.bell.poll(awaited.as_mut()) {
                return value;
            }
            let (signals, guardian) = self.bell.wait(&self.signals, self.guardian.as_ref());
            if signals {
                while let Some(received) = self.signals.next() {
                    self.pass_on(received);
                }
            }
            if guardian {
                self.guardian = None;
                // It begins here and now, whether it is awaited or not.
                self.termination = Some(self.process.terminate());
            }
        }
    }

    /// Passes a signal on to every member, unless they have it already.
    fn pass_on(&self, received: Received) {
        let Some(pid) = self.process.pid() else { return };
        if received.reached_the_group() || self.is_from_the_tree(received) {
            return;
        }
        // The members could not be listed, or the tree is gone.
        let _ = (self.signal)(pid, received.number());
    }

    /// Tells whether a member sent it: a command that signals its own group means us as little as itself. Passed on, a trap
    /// that ends in `kill 0` would set itself off for ever.
    fn is_from_the_tree(&self, received: Received) -> bool {
        let Some(sender) = received.sender() else {
            return false;
        };
        let members = self.bell.block_on(self.process.members());
        members.is_ok_and(|members| members.iter().any(|member| member.pid == Some(sender)))
    }
}
