//! How a spec becomes a scripted terminal.

use std::sync::Arc;
use std::time::Duration;

use dsh_subprocess::{
    EnvOverlay, Environment, Error, ErrorKind, ErrorOutput, MayHaveStarted, Output, SpawnSpec, Stdin,
    StreamName, Terminal, TerminalEnvironment, TerminalOutput, TerminalSpec, merge,
};
use futures_core::future::BoxFuture;

use super::super::agenda::Due;
use super::super::driver::{ScriptedDriver, ScriptedOutput};
use super::super::inner::{Core, Inner, observe};
use super::super::record::TerminationCause;
use super::super::spawn::watch_cancel;
use super::super::stream::{InputStream, OutputPipe, OutputStream, Sink};
use super::super::tree::Tree;
use super::super::world::PROGRAM_DIRECTORY;
use super::Tty;

/// Takes a spec on, and resolves once the program runs, or will never run.
pub(in super::super) fn spawn_terminal(
    world: &Arc<Inner>,
    spec: TerminalSpec,
) -> BoxFuture<'static, Result<Terminal, Error>> {
    let token = spec.cancel.clone();
    let admitted = spec.validate().and_then(|()| {
        world.with(|core| {
            core.refuse_when_disposed()?;
            Ok(core.admit_terminal(spec))
        })
    });
    let index = match admitted {
        Ok(index) => index,
        Err(error) => return Box::pin(std::future::ready(Err(error))),
    };
    watch_cancel(world, index, token);
    let allocation = Allocation {
        world: Arc::clone(world),
        tree: index,
    };
    Box::pin(async move { allocation.complete().await })
}

/// A terminal whose handle is not with its caller yet. Its drop abandons it.
struct Allocation {
    world: Arc<Inner>,
    tree: usize,
}

impl Allocation {
    async fn complete(self) -> Result<Terminal, Error> {
        let index = self.tree;
        let started = observe(Arc::clone(&self.world), move |core| {
            core.trees[index].started.clone()
        });
        started.await?;
        if !self.publish() {
            // The token was faster: what has started is ended before that is told.
            observe(Arc::clone(&self.world), move |core| core.trees[index].exit()).await?;
            let why = "cancelled while the terminal was made: nothing is left running";
            return Err(Error::new(ErrorKind::Cancelled, "spawn", why).with_started(MayHaveStarted::Yes));
        }
        let output = TerminalOutput::new(ScriptedOutput {
            world: Arc::clone(&self.world),
            tree: index,
            stream: StreamName::Stdout,
        });
        let driver = Arc::new(ScriptedDriver {
            world: Arc::clone(&self.world),
            tree: index,
        });
        Ok(Terminal::new(
            Arc::<ScriptedDriver>::clone(&driver),
            driver,
            output,
        ))
    }

    /// Frees the terminal of the token. `false` where that was cancelled before.
    fn publish(&self) -> bool {
        self.world.with(|core| {
            let tree = &mut core.trees[self.tree];
            let cancelled = tree
                .terminations
                .iter()
                .any(|request| request.cause == TerminationCause::Cancel);
            if !cancelled {
                tree.tty_mut().published = true;
                core.scene.retired.extend(tree.cancel.take());
            }
            !cancelled
        })
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        self.world.with(|core| {
            let tree = &mut core.trees[self.tree];
            if !tree.gone && !tree.tty().published {
                tree.request_termination(TerminationCause::Cancel, &mut core.scene);
            }
        });
    }
}

impl Core {
    fn admit_terminal(&mut self, spec: TerminalSpec) -> usize {
        let index = self.trees.len();
        let shown = as_pipes(&spec);
        let environment = self.terminal_variables(&spec);
        let script = self.script(&shown, &environment, true);
        let on_signal = script.on_signal.clone();
        let printed = OutputStream::new(Sink::Piped(OutputPipe::of_terminal()));
        let mut tree = Tree::new(
            index,
            (shown, environment),
            script,
            InputStream::default(),
            (printed, None),
        );
        tree.terminal = Some(Tty::new(spec, on_signal));
        self.trees.push(tree);
        self.scene.agenda.plan(Duration::ZERO, Due::Resume(index));
        index
    }

    /// Tells what the world's terminals are like.
    pub(in super::super) fn terminal_environment(&self) -> TerminalEnvironment {
        let shell = self
            .base
            .find("SHELL", self.name_case)
            .map(|(_, shell)| shell.clone())
            .filter(|shell| !shell.is_empty())
            .unwrap_or_else(|| format!("{PROGRAM_DIRECTORY}/sh").into());
        TerminalEnvironment::new(self.platform.as_str(), shell)
    }

    /// Makes the environment of a program on a terminal. An entry of the caller's for `TERM` wins, in any spelling of this
    /// world's.
    fn terminal_variables(&self, spec: &TerminalSpec) -> Environment {
        let named = EnvOverlay::from([("TERM".into(), Some(spec.terminal_type.clone()))]);
        merge(self.environment(&named), &spec.env, self.name_case)
    }
}

/// Says with pipes what a spec says of a terminal, for whoever asks what a program does.
fn as_pipes(spec: &TerminalSpec) -> SpawnSpec {
    SpawnSpec {
        argv: spec.argv.clone(),
        cwd: spec.cwd.clone(),
        env: spec.env.clone(),
        stdin: Stdin::Pipe,
        stdout: Output::Pipe,
        stderr: ErrorOutput::Merge,
        grace: spec.grace,
        drain: spec.drain,
        control: false,
        cancel: spec.cancel.clone(),
    }
}
