//! One runtime, and what the rows do with it.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::num::NonZeroU64;
use std::path::Path;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use dsh_subprocess::{
    Collect, ErrorOutput, Output, Process, SpawnSpec, Spill, SpillLife, Stdin, SubprocessRuntime as _,
};
use dsh_subprocess_local::LocalRuntime;
use tokio_util::sync::CancellationToken;

use super::Tier;
use crate::collect::RETAINED;

/// A runtime of one tier.
pub(crate) struct World {
    pub(super) runtime: LocalRuntime,
    pub(super) never: CancellationToken,
}

impl World {
    /// Makes a runtime.
    pub(crate) fn new(tier: Tier) -> Result<Self> {
        Self::with_spills_in(tier, &std::env::temp_dir())
    }

    /// Makes a runtime that spills below a directory.
    pub(crate) fn with_spills_in(tier: Tier, directory: &Path) -> Result<Self> {
        let runtime = LocalRuntime::builder()
            .ownership(tier.choice())
            .spill_parent(directory)
            .build()?;
        Ok(Self {
            runtime,
            never: CancellationToken::new(),
        })
    }

    /// Starts a tree.
    pub(crate) fn spawn(&self, argv: &[impl AsRef<str>], spill: Option<Spill>) -> Result<Process> {
        let collect = |spill| {
            Output::Collect(Collect {
                max_bytes: RETAINED,
                head_bytes: 0,
                spill,
            })
        };
        let process = self.runtime.spawn(SpawnSpec {
            argv: argv.iter().map(|word| word.as_ref().into()).collect(),
            cwd: "/".into(),
            env: BTreeMap::new(),
            stdin: Stdin::Ignore,
            stdout: collect(spill),
            stderr: ErrorOutput::Own(collect(None)),
            grace: Duration::from_secs(10),
            drain: Duration::from_secs(10),
            control: false,
            cancel: CancellationToken::new(),
        })?;
        Ok(process)
    }

    /// Waits until a tree has ended by itself and is gone, with its streams complete.
    pub(crate) fn finish(&self, process: &Process) -> Result<()> {
        self.runtime.block_on(self.finished(process))
    }

    async fn finished(&self, process: &Process) -> Result<()> {
        let outcome = process.done().await?;
        ensure!(outcome.success(), "the child {outcome}");
        process.wait_for_exit(&self.never).await?;
        Ok(())
    }

    /// Waits until a tree is gone.
    pub(crate) fn wait_until_gone(&self, process: &Process) -> Result<()> {
        self.runtime.block_on(process.wait_for_exit(&self.never))?;
        Ok(())
    }

    /// Ends a tree.
    pub(crate) fn terminate(&self, process: &Process) -> Result<()> {
        Ok(self.runtime.block_on(process.terminate())?)
    }

    /// Waits until a tree has said something on its standard output, and returns what.
    pub(crate) fn said(&self, process: &Process) -> Result<String> {
        let out = process
            .collected_stdout()
            .context("standard output is collected")?;
        self.runtime.block_on(out.changed(0));
        Ok(out.text())
    }

    /// Lists the live members of a tree.
    pub(crate) fn members(&self, process: &Process) -> Result<Vec<u32>> {
        let members = self.runtime.block_on(process.members())?;
        Ok(members.iter().filter_map(|member| member.pid).collect())
    }

    /// Runs a program to the end of its tree.
    pub(crate) fn run(&self, argv: &[impl AsRef<str>]) -> Result<()> {
        self.finish(&self.spawn(argv, None)?)
    }

    /// Runs a program `times` times, at most `at_once` at the same time, on a thread per core: each blocks on its share.
    pub(crate) fn run_many(&self, argv: &[&str], times: usize, at_once: usize) -> Result<()> {
        let threads = thread::available_parallelism()?.get().min(at_once);
        let left = AtomicUsize::new(times);
        thread::scope(|scope| {
            let workers: Vec<_> = (0..threads)
                .map(|index| {
                    let share = at_once / threads + usize::from(index < at_once % threads);
                    scope.spawn({
                        let left = &left;
                        move || self.run_share(argv, left, share)
                    })
                })
                .collect();
            workers
                .into_iter()
                .try_for_each(|worker| worker.join().expect("a worker does not panic"))
        })
    }

    /// Runs a program as long as there are some `left`, at most `at_once` at the same time, on this thread.
    fn run_share(&self, argv: &[&str], left: &AtomicUsize, at_once: usize) -> Result<()> {
        let take = || {
            left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
                .is_ok()
        };
        let mut running: Vec<Pin<Box<dyn Future<Output = Result<()>> + '_>>> = Vec::new();
        self.runtime.block_on(poll_fn(|context| {
            let mut failed = None;
            running.retain_mut(|run| match run.as_mut().poll(context) {
                Poll::Pending => true,
                Poll::Ready(ended) => {
                    failed = failed.take().or(ended.err());
                    false
                }
            });
            while failed.is_none() && running.len() < at_once && take() {
                let mut run: Pin<Box<dyn Future<Output = _>>> = Box::pin(async {
                    let process = self.spawn(argv, None)?;
                    self.finished(&process).await
                });
                match run.as_mut().poll(context) {
                    Poll::Pending => running.push(run),
                    Poll::Ready(ended) => failed = ended.err(),
                }
            }
            match failed {
                Some(error) => Poll::Ready(Err(error)),
                None if running.is_empty() => Poll::Ready(Ok(())),
                None => Poll::Pending,
            }
        }))
    }

    /// Starts programs, awaits them all on one thread, and calls `idle` on this one while they run. They are left running.
    pub(crate) fn await_many<T>(
        &self,
        argv: &[&str],
        count: usize,
        idle: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let processes = (0..count)
            .map(|_| self.spawn(argv, None))
            .collect::<Result<Vec<Process>>>()?;
        self.await_all(processes.iter().map(Process::done).collect(), idle)
    }

    /// Awaits futures that do not end on one thread, and calls `idle` on this one.
    pub(super) fn await_all<T>(
        &self,
        mut ends: Vec<impl Future + Send + Unpin>,
        idle: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        thread::scope(|scope| {
            scope.spawn(move || {
                self.runtime.block_on(async {
                    let mut stopped = pin!(stopped.cancelled());
                    poll_fn(|context| {
                        // All of them are asked at each wake-up, and there is none but the last.
                        ends.retain_mut(|end| Pin::new(end).poll(context).is_pending());
                        if ends.is_empty() {
                            Poll::Ready(())
                        } else {
                            stopped.as_mut().poll(context)
                        }
                    })
                    .await;
                });
            });
            let answer = idle();
            stop.cancel();
            answer
        })
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // A process that ended at once would leave the runtime's group and its children behind.
        if let Err(error) = self.runtime.block_on(self.runtime.dispose()) {
            eprintln!("a runtime could not be disposed of: {error}");
        }
    }
}

/// A file for a whole stream, gone with the handle.
pub(crate) fn spill() -> Spill {
    Spill {
        max_bytes: NonZeroU64::MAX,
        life: SpillLife::Handle,
    }
}
