//! Crates that promise more than a single child.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use process_wrap::tokio::{ChildWrapper, CommandWrap, ProcessSession};
use processkit::{Command, OutputBufferPolicy, ProcessGroup, RunningProcess};
use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::runtime::Runtime;

use super::{Peer, many_threads, one_thread, require_success, tasks};
use crate::collect::RETAINED;
use crate::finding::Name;

/// The time that a tree gets to end on `SIGTERM`.
const GRACE: Duration = Duration::from_secs(10);

/// process-wrap, with its wrapper for sessions.
pub(crate) struct ProcessWrap {
    alone: Runtime,
    shared: Runtime,
}

fn wrapped(argv: &[impl AsRef<str>]) -> CommandWrap {
    let mut wrap = CommandWrap::with_new(argv[0].as_ref(), |command| {
        command.args(argv[1..].iter().map(AsRef::as_ref));
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
    });
    wrap.wrap(ProcessSession);
    wrap
}

impl ProcessWrap {
    pub(crate) const NAME: Name = Name::peer("process-wrap");

    pub(crate) fn new() -> Result<Self> {
        Ok(Self {
            alone: one_thread()?,
            shared: many_threads()?,
        })
    }

    /// Starts a tree that says `ready` and returns once it has.
    pub(crate) fn start_tree(&self, argv: &[String]) -> Result<Box<dyn ChildWrapper>> {
        self.alone.block_on(async {
            let mut child = wrapped(argv).spawn()?;
            let out = child.stdout().take().context("standard output is a pipe")?;
            BufReader::new(out).read_line(&mut String::new()).await?;
            Ok(child)
        })
    }

    /// Ends a tree's process group, and waits for those of its members that are children of this process.
    pub(crate) fn end_tree(&self, mut child: Box<dyn ChildWrapper>) -> Result<()> {
        self.alone.block_on(async {
            child.signal(Signal::TERM.as_raw())?;
            child.wait().await?;
            Ok(())
        })
    }
}

impl Peer for ProcessWrap {
    fn run(&self, program: &str) -> Result<()> {
        let output = self
            .alone
            .block_on(async { Box::into_pin(wrapped(&[program]).spawn()?.wait_with_output()).await })?;
        require_success(output.status)
    }

    fn run_many(&self, program: &str, times: usize, at_once: usize) -> Result<()> {
        tasks(&self.shared, times, at_once, || {
            let mut wrap = wrapped(&[program]);
            async move { require_success(Box::into_pin(wrap.spawn()?.wait_with_output()).await?.status) }
        })
    }
}

/// processkit, with whatever mechanism it chooses here.
pub(crate) struct Processkit {
    alone: Runtime,
    shared: Runtime,
}

/// A tree of processkit's.
pub(crate) struct KitTree {
    group: ProcessGroup,
    leader: RunningProcess,
}

fn kit(argv: &[impl AsRef<str>]) -> Command {
    Command::new(argv[0].as_ref()).args(argv[1..].iter().map(AsRef::as_ref))
}

impl Processkit {
    pub(crate) const NAME: Name = Name::peer("processkit");

    pub(crate) fn new() -> Result<Self> {
        Ok(Self {
            alone: one_thread()?,
            shared: many_threads()?,
        })
    }

    /// Starts a tree that says `ready` and returns once it has.
    pub(crate) fn start_tree(&self, argv: &[String]) -> Result<KitTree> {
        self.alone.block_on(async {
            let group = ProcessGroup::new()?;
            let mut leader = group.start(&kit(argv)).await?;
            leader.wait_for_line(|line| line == "ready", GRACE).await?;
            Ok(KitTree { group, leader })
        })
    }

    /// Ends a tree and waits for it.
    pub(crate) fn end_tree(&self, tree: KitTree) -> Result<()> {
        self.alone.block_on(async {
            let (stopped, ended) = tokio::join!(tree.group.stop(GRACE, true), tree.leader.wait());
            stopped?;
            ended?;
            Ok(())
        })
    }

    /// Runs a program, keeping the tail of what it writes. Returns how many bytes it wrote.
    pub(crate) fn read(&self, argv: &[String]) -> Result<u64> {
        let policy = OutputBufferPolicy::unbounded().with_max_bytes(RETAINED);
        let result = self
            .alone
            .block_on(kit(argv).output_buffer(policy).output_bytes())?;
        ensure!(result.is_success(), "the child ended with {:?}", result.outcome());
        Ok(result.total_bytes() as u64)
    }
}

impl Peer for Processkit {
    fn run(&self, program: &str) -> Result<()> {
        let result = self.alone.block_on(kit(&[program]).output_bytes())?;
        ensure!(result.is_success(), "the child ended with {:?}", result.outcome());
        Ok(())
    }

    fn run_many(&self, program: &str, times: usize, at_once: usize) -> Result<()> {
        tasks(&self.shared, times, at_once, || {
            let command = kit(&[program]);
            async move {
                let result = command.output_bytes().await?;
                ensure!(result.is_success(), "the child ended with {:?}", result.outcome());
                Ok(())
            }
        })
    }
}
