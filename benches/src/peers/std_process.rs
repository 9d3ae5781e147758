//! `std::process`: `posix_spawn`, blocking calls, a thread per child.

use std::fs::File;
use std::io::Read as _;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context as _, Result};

use super::{Peer, require_success};
use crate::finding::Name;

/// The standard library.
pub(crate) struct StdProcess;

impl StdProcess {
    pub(crate) const NAME: Name = Name::peer("std::process");

    fn start(argv: &[String]) -> Result<(Child, ChildStdout)> {
        let mut child = Command::new(&argv[0])
            .args(&argv[1..])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let out = child.stdout.take().context("standard output is a pipe")?;
        Ok((child, out))
    }

    /// Runs a program and reads what it writes into a buffer, over and over. Returns how many bytes those were.
    pub(crate) fn read(argv: &[String], buffer: &mut [u8]) -> Result<u64> {
        let (mut child, mut out) = Self::start(argv)?;
        let mut total = 0;
        loop {
            match out.read(buffer)? {
                0 => break,
                length => total += length as u64,
            }
        }
        require_success(child.wait()?)?;
        Ok(total)
    }

    /// Runs a program and copies what it writes to a file, by whatever means the library chooses.
    pub(crate) fn copy(argv: &[String], file: &mut File) -> Result<u64> {
        let (mut child, mut out) = Self::start(argv)?;
        let total = std::io::copy(&mut out, file)?;
        require_success(child.wait()?)?;
        Ok(total)
    }
}

impl Peer for StdProcess {
    fn run(&self, program: &str) -> Result<()> {
        require_success(Command::new(program).stdin(Stdio::null()).output()?.status)
    }

    fn run_many(&self, program: &str, times: usize, at_once: usize) -> Result<()> {
        on_threads(times, at_once, || self.run(program))
    }
}

/// Calls `run` `times` times, on `threads` threads.
pub(crate) fn on_threads(times: usize, threads: usize, run: impl Fn() -> Result<()> + Sync) -> Result<()> {
    let left = AtomicUsize::new(times);
    let take = || {
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
            .is_ok()
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    while take() {
                        run()?;
                    }
                    Ok(())
                })
            })
            .collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().expect("a worker does not panic"))
    })
}
