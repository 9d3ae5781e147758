//! Terminals of one runtime.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use dsh_subprocess::{SubprocessRuntime as _, Terminal, TerminalOutput, TerminalSize, TerminalSpec};
use tokio::io::AsyncReadExt as _;
use tokio_util::sync::CancellationToken;

use super::{Tier, World};
use crate::terminal::{COLS, Conversation, ROWS, Terminals};

/// A runtime, and whose thread waits for it.
pub(crate) struct WorldTerminals {
    world: World,
    /// Waits in place of the runtime's own `block_on`, if there is one.
    executor: Option<tokio::runtime::Runtime>,
}

impl WorldTerminals {
    pub(crate) fn new(tier: Tier) -> Result<Self> {
        Ok(Self {
            world: World::new(tier)?,
            executor: None,
        })
    }

    /// Waits on an executor of tokio's, on the caller's thread.
    pub(crate) fn under_tokio(tier: Tier) -> Result<Self> {
        let executor = tokio::runtime::Builder::new_current_thread().build()?;
        Ok(Self {
            world: World::new(tier)?,
            executor: Some(executor),
        })
    }

    /// Starts a program on a terminal of its own.
    pub(crate) fn open(self, argv: &[String]) -> Result<Session> {
        let (terminal, output) = self.wait(self.world.open(argv))?;
        Ok(Session {
            terminal,
            output,
            terminals: self,
        })
    }

    /// Starts programs, each on a terminal of its own, awaits all that they print on one thread, and calls `idle` on this one
    /// while none does. They are left running.
    pub(crate) fn await_many<T>(
        &self,
        argv: &[&str],
        count: usize,
        idle: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let terminals = (0..count)
            .map(|_| self.wait(self.world.open(argv)))
            .collect::<Result<Vec<_>>>()?;
        let ends = terminals.into_iter().map(|(terminal, mut output)| {
            Box::pin(async move {
                let mut buffer = [0; 1024];
                while output.read(&mut buffer).await? > 0 {}
                terminal.done().await?;
                anyhow::Ok(())
            })
        });
        self.world.await_all(ends.collect(), idle)
    }

    fn wait<F: Future>(&self, future: F) -> F::Output {
        match &self.executor {
            Some(executor) => executor.block_on(future),
            None => self.world.runtime.block_on(future),
        }
    }
}

impl World {
    async fn open(&self, argv: &[impl AsRef<str>]) -> Result<(Terminal, TerminalOutput)> {
        let mut terminal = self
            .runtime
            .spawn_terminal(TerminalSpec {
                argv: argv.iter().map(|word| word.as_ref().into()).collect(),
                cwd: "/".into(),
                env: BTreeMap::new(),
                terminal_type: "xterm-256color".into(),
                size: TerminalSize {
                    rows: ROWS,
                    cols: COLS,
                },
                grace: Duration::from_secs(10),
                drain: Duration::from_secs(10),
                cancel: CancellationToken::new(),
            })
            .await?;
        let output = terminal.output().context("the output is not taken yet")?;
        Ok((terminal, output))
    }

    async fn run_on_terminal(&self, argv: &[impl AsRef<str>], buffer: &mut [u8]) -> Result<u64> {
        let (terminal, mut output) = self.open(argv).await?;
        let mut total = 0;
        while let length @ 1.. = output.read(buffer).await? {
            total += length as u64;
        }
        let outcome = terminal.done().await?;
        ensure!(outcome.success(), "the child {outcome}");
        terminal.wait_for_exit(&self.never).await?;
        Ok(total)
    }
}

impl Terminals for WorldTerminals {
    fn run(&mut self, argv: &[String], buffer: &mut [u8]) -> Result<u64> {
        self.wait(self.world.run_on_terminal(argv, buffer))
    }

    fn converse(self: Box<Self>, argv: &[String]) -> Result<Box<dyn Conversation>> {
        Ok(Box::new(self.open(argv)?))
    }
}

/// One program on its terminal.
pub(crate) struct Session {
    terminal: Terminal,
    output: TerminalOutput,
    terminals: WorldTerminals,
}

impl Session {
    /// Waits until something is printed, and appends it.
    pub(crate) fn read(&mut self, printed: &mut Vec<u8>) -> Result<()> {
        let length = self.terminals.wait(self.output.read_buf(printed))?;
        ensure!(length > 0, "the program has ended");
        Ok(())
    }

    /// Tells whether the foreground group is proven to wait for input.
    pub(crate) fn waits_for_input(&self) -> Result<bool> {
        let foreground = self.terminals.wait(self.terminal.inspect_foreground())?;
        Ok(foreground.is_some_and(|foreground| foreground.input.is_proven()))
    }
}

impl Conversation for Session {
    fn hear(&mut self) -> Result<u8> {
        let heard = self.terminals.wait(self.output.read_u8());
        heard.context("nothing is heard")
    }

    fn exchange(&mut self, typed: u8) -> Result<u8> {
        self.terminals.wait(async {
            self.terminal.write(vec![typed]).await?;
            let printed = self.output.read_u8().await;
            printed.context("nothing is heard")
        })
    }
}
