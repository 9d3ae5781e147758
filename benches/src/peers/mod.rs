//! What a user might pick instead, used as its own documentation shows.
//!
//! `PEERS` are what children are run with, `PortablePty` and the two of pty-process what terminals are had with.
//!
//! None of them but processkit knows of a tree: what they wait for is the child alone, and the rows that are about trees
//! leave out those with no way to end one.

mod portable_pty;
mod pty_process;
mod std_process;
#[expect(unsafe_code, reason = "pre_exec, which a session needs, is unsafe to call")]
mod tokio_process;
mod tree_crates;

use anyhow::{Result, ensure};

pub(crate) use portable_pty::PortablePty;
pub(crate) use pty_process::{BlockingPtyProcess, PtyProcess};
pub(crate) use std_process::{StdProcess, on_threads};
pub(crate) use tokio_process::TokioProcess;
pub(crate) use tree_crates::{ProcessWrap, Processkit};

use crate::finding::Name;

/// Something that runs children.
pub(crate) trait Peer {
    /// Runs a program without arguments, collecting both of its output streams, and waits for it.
    fn run(&self, program: &str) -> Result<()>;

    /// Runs a program `times` times, at most `at_once` at the same time.
    fn run_many(&self, program: &str, times: usize, at_once: usize) -> Result<()>;
}

/// Makes a peer.
type Make = fn() -> Result<Box<dyn Peer>>;

/// All that run children without a terminal.
pub(crate) const PEERS: [(Name, Make); 5] = [
    (StdProcess::NAME, || Ok(Box::new(StdProcess))),
    (TokioProcess::NAME, || Ok(Box::new(TokioProcess::new(false)?))),
    (TokioProcess::WITH_SESSION, || {
        Ok(Box::new(TokioProcess::new(true)?))
    }),
    (ProcessWrap::NAME, || Ok(Box::new(ProcessWrap::new()?))),
    (Processkit::NAME, || Ok(Box::new(Processkit::new()?))),
];

/// Those that make their children by `fork`, because they have something to do in them.
pub(crate) const FORKING: [Name; 3] = [TokioProcess::WITH_SESSION, ProcessWrap::NAME, Processkit::NAME];

/// An executor as a program that runs one child at a time has it: on the caller's own thread.
pub(crate) fn one_thread() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?)
}

/// An executor with its usual threads, one per core.
pub(crate) fn many_threads() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?)
}

/// Runs `times` tasks, at most `at_once` at the same time.
pub(crate) fn tasks<Task>(
    executor: &tokio::runtime::Runtime,
    times: usize,
    at_once: usize,
    task: impl Fn() -> Task,
) -> Result<()>
where
    Task: Future<Output = Result<()>> + Send + 'static,
{
    executor.block_on(async {
        let mut running = tokio::task::JoinSet::new();
        for _ in 0..times {
            if running.len() == at_once
                && let Some(ended) = running.join_next().await
            {
                ended??;
            }
            running.spawn(task());
        }
        while let Some(ended) = running.join_next().await {
            ended??;
        }
        Ok(())
    })
}

pub(crate) fn require_success(status: std::process::ExitStatus) -> Result<()> {
    ensure!(status.success(), "the child ended with {status}");
    Ok(())
}
