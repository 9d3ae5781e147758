//! Trees that do nothing until they are ended, and the floor for ending them.

use std::os::fd::AsFd as _;
use std::time::Instant;

use anyhow::{Context as _, Result};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, pidfd_send_signal, waitid};

use crate::floor::{Cloner, Program, fork};
use crate::turns::micros;

/// Sleeps until a signal ends the process.
fn sleep() {
    loop {
        // A signal that is handled would end the call, and there is none here.
        rustix::event::pause();
    }
}

/// Leads a tree of `count` sleepers, this one among them: says `ready` when all are there, and sleeps.
pub(super) fn lead(count: usize) -> Result<()> {
    let mut made = Vec::new();
    for _ in 1..count {
        match fork(sleep) {
            Ok(sleeper) => made.push(sleeper),
            Err(error) => {
                // Half a tree would hold the pipes of whoever waits for all of it.
                for sleeper in made {
                    let _ = kill_process(sleeper, Signal::KILL);
                }
                return Err(error);
            }
        }
    }
    println!("ready");
    sleep();
    Ok(())
}

/// Makes the same `count` processes as children of this one, ends each by `kill` and reaps each by `waitid`, and prints how
/// many microseconds the ending took.
pub(super) fn kill_and_reap(count: usize) -> Result<()> {
    // The first is a program that was executed, as the leader of a tree is; the others are copies, as its members are.
    let leader = super::command("sleepers", &["1"])?;
    let program = Program::new(&leader[0], leader[1..].iter().map(String::as_str))?;
    let (ready, says_ready) = pipe_with(PipeFlags::CLOEXEC)?;
    let leader = Cloner::new()?.spawn(&program, says_ready.as_fd(), rustix::stdio::stderr())?;
    rustix::io::read(&ready, &mut [0; 16])?;
    let others = (1..count).map(|_| fork(sleep)).collect::<Result<Vec<Pid>>>()?;

    let started = Instant::now();
    pidfd_send_signal(&leader, Signal::TERM).context("the first sleeper cannot be signalled")?;
    for &other in &others {
        kill_process(other, Signal::TERM).context("a sleeper cannot be signalled")?;
    }
    waitid(WaitId::PidFd(leader.as_fd()), WaitIdOptions::EXITED)
        .context("the first sleeper cannot be reaped")?;
    for &other in &others {
        waitid(WaitId::Pid(other), WaitIdOptions::EXITED).context("a sleeper cannot be reaped")?;
    }
    let took = micros(started.elapsed());
    println!("{took}");
    Ok(())
}
