//! `tokio::process`: with `posix_spawn` as it comes, or with a session of its own for the child, which makes it a fork.

use std::fs::File;
use std::process::Stdio;

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::runtime::Runtime;

use super::{Peer, many_threads, one_thread, require_success, tasks};
use crate::finding::Name;

/// Tokio's children.
pub(crate) struct TokioProcess {
    session: bool,
    alone: Runtime,
    shared: Runtime,
}

/// Names a program.
fn command(session: bool, program: &str) -> Command {
    let mut command = Command::new(program);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if session {
        let setsid = || Ok(rustix::process::setsid().map(drop)?);
        #[expect(clippy::disallowed_methods, reason = "what it costs is what is measured")]
        // SAFETY: the closure makes one system call and neither allocates nor locks.
        unsafe {
            command.pre_exec(setsid)
        };
    }
    command
}

impl TokioProcess {
    pub(crate) const NAME: Name = Name::peer("tokio::process");
    pub(crate) const WITH_SESSION: Name = Name::peer("tokio::process+setsid");

    pub(crate) fn new(session: bool) -> Result<Self> {
        Ok(Self {
            session,
            alone: one_thread()?,
            shared: many_threads()?,
        })
    }

    fn start(&self, argv: &[String]) -> Result<Child> {
        Ok(command(self.session, &argv[0])
            .args(&argv[1..])
            .stderr(Stdio::inherit())
            .spawn()?)
    }

    /// Starts a tree that says `ready` and returns once it has.
    pub(crate) fn start_tree(&self, argv: &[String]) -> Result<Child> {
        self.alone.block_on(async {
            let mut child = self.start(argv)?;
            let out = child.stdout.take().context("standard output is a pipe")?;
            BufReader::new(out).read_line(&mut String::new()).await?;
            Ok(child)
        })
    }

    /// Ends the process group of a child, and waits for the child: of the others nothing can be known.
    pub(crate) fn end_tree(&self, mut child: Child) -> Result<()> {
        self.alone.block_on(async {
            let group = child
                .id()
                .and_then(|id| Pid::from_raw(id.cast_signed()))
                .context("the child runs")?;
            kill_process_group(group, Signal::TERM)?;
            child.wait().await?;
            Ok(())
        })
    }

    /// Runs a program and reads what it writes into a buffer, over and over. Returns how many bytes those were.
    pub(crate) fn read(&self, argv: &[String], buffer: &mut [u8]) -> Result<u64> {
        self.alone.block_on(async {
            let mut child = self.start(argv)?;
            let mut out = child.stdout.take().context("standard output is a pipe")?;
            let mut total = 0;
            loop {
                match out.read(buffer).await? {
                    0 => break,
                    length => total += length as u64,
                }
            }
            require_success(child.wait().await?)?;
            Ok(total)
        })
    }

    /// Runs a program and copies what it writes to a file.
    pub(crate) fn copy(&self, argv: &[String], file: File) -> Result<u64> {
        self.alone.block_on(async {
            let mut child = self.start(argv)?;
            let mut out = child.stdout.take().context("standard output is a pipe")?;
            let mut file = tokio::fs::File::from_std(file);
            let total = tokio::io::copy(&mut out, &mut file).await?;
            require_success(child.wait().await?)?;
            Ok(total)
        })
    }

    /// Starts children that sleep, awaits each in a task of its own, and calls `idle` on a thread of its own while all of
    /// them do. Then ends them.
    pub(crate) fn await_sleepers<T: Send>(
        &self,
        argv: &[&str],
        count: usize,
        idle: impl FnOnce() -> Result<T> + Send,
    ) -> Result<T> {
        let mut children = Vec::new();
        {
            let _inside = self.alone.enter();
            for _ in 0..count {
                children.push(command(self.session, argv[0]).args(&argv[1..]).spawn()?);
            }
        }
        let pids: Vec<Pid> = children
            .iter()
            .filter_map(|child| Pid::from_raw(child.id()?.cast_signed()))
            .collect();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(move || {
                self.alone.block_on(async {
                    let mut running = tokio::task::JoinSet::new();
                    for child in children {
                        running.spawn(child.wait_with_output());
                    }
                    while let Some(ended) = running.join_next().await {
                        ended??;
                    }
                    anyhow::Ok(())
                })
            });
            let answer = idle();
            for pid in pids {
                rustix::process::kill_process(pid, Signal::KILL)?;
            }
            waiting.join().expect("the waiting thread does not panic")?;
            answer
        })
    }
}

impl Peer for TokioProcess {
    fn run(&self, program: &str) -> Result<()> {
        let output = self
            .alone
            .block_on(async { command(self.session, program).output().await })?;
        require_success(output.status)
    }

    fn run_many(&self, program: &str, times: usize, at_once: usize) -> Result<()> {
        tasks(&self.shared, times, at_once, || {
            let mut command = command(self.session, program);
            async move { require_success(command.output().await?.status) }
        })
    }
}
