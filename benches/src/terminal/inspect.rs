//! `pty-inspect`: one look at who has a terminal, and whether it waits for input, on a machine where much else runs.

use std::io::{BufRead as _, BufReader};
use std::num::NonZeroUsize;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use rustix::process::{Pid, Signal, kill_process_group};
use rustix::termios::tcgetpgrp;

use crate::candidate::{self, Candidate};
use crate::finding::{Finding, Name, Unit, of_samples};
use crate::floor::terminal::RawTerminals;
use crate::helper;
use crate::options::Row;
use crate::project::{WorldTerminals, tiers};
use crate::turns::{Effort, micros, take};

/// Processes that are none of the terminal's.
const OTHERS: &str = "1000";

/// The tier whose session is opened last.
const LAST_TIER: &str = "process_group";

/// A shell at its prompt, which is the end of what it prints.
const PROMPT: &str = "what now> ";

/// Until this long after its prompt, a shell may still be on its way to the call it waits in.
const AT_ITS_PROMPT_WITHIN: Duration = Duration::from_secs(10);

const EFFORT: Effort = Effort {
    warm_up: 5,
    rounds: 500,
    time: Duration::from_secs(5),
};

/// Returns the command line of the shell.
fn shell() -> Vec<String> {
    [
        "/usr/bin/env",
        &format!("PS1={PROMPT}"),
        "/bin/bash",
        "--norc",
        "--noprofile",
        "-i",
    ]
    .map(str::to_owned)
    .to_vec()
}

/// Processes that do nothing, ended when this is dropped.
struct Crowd(Child);

impl Crowd {
    fn gather() -> Result<Self> {
        let argv = helper::command("sleepers", &[OTHERS])?;
        let child = Command::new(&argv[0])
            .args(&argv[1..])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .context("the others cannot be started")?;
        let mut crowd = Self(child);
        let out = crowd.0.stdout.take().context("standard output is a pipe")?;
        let mut said = String::new();
        BufReader::new(out).read_line(&mut said)?;
        ensure!(said == "ready\n", "the others said {said:?}");
        Ok(crowd)
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        // The leader is not reaped yet, so the number is still its own.
        let group = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw);
        if let Some(group) = group {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.0.wait();
    }
}

/// Reads until a shell is at its prompt.
fn read_prompt(mut more: impl FnMut(&mut Vec<u8>) -> Result<()>) -> Result<()> {
    let mut printed = Vec::new();
    while !printed.ends_with(PROMPT.as_bytes()) {
        more(&mut printed)?;
    }
    Ok(())
}

/// Looks until the shell is seen waiting, which it is as soon as it has printed its prompt, or a little later.
fn wait_until_proven(mut look: impl FnMut() -> Result<bool>) -> Result<()> {
    let started = Instant::now();
    while !look()? {
        ensure!(
            started.elapsed() < AT_ITS_PROMPT_WITHIN,
            "the shell is not seen waiting"
        );
    }
    Ok(())
}

/// Makes a sampler of looks, each of which must see the shell waiting.
fn timed(mut look: impl FnMut() -> Result<bool>) -> Result<impl FnMut() -> Result<f64>> {
    wait_until_proven(&mut look)?;
    Ok(move || {
        let started = Instant::now();
        let waits = look()?;
        let took = started.elapsed();
        ensure!(waits, "the shell was not seen waiting");
        Ok(micros(took))
    })
}

/// Looks at the leader of the foreground group alone: what must be read about a process whose place is known beforehand.
fn look(terminal: &OwnedFd) -> Result<bool> {
    let leader = tcgetpgrp(terminal)?.as_raw_nonzero();
    let stat = std::fs::read_to_string(format!("/proc/{leader}/stat"))?;
    let call = std::fs::read_to_string(format!("/proc/{leader}/task/{leader}/syscall"))?;
    let input = rustix::fs::stat(format!("/proc/{leader}/fd/0"))?;
    let is_a_device = rustix::fs::FileType::from_raw_mode(input.st_mode).is_char_device();
    // A thread that runs has no call to name (proc_pid_syscall(5)).
    Ok(stat.contains(" S ") && call != "running\n" && is_a_device)
}

/// Returns everything that can look.
pub(crate) fn candidates() -> Vec<Candidate> {
    let mut candidates = vec![Candidate::new(Name::FLOOR, || {
        let (terminal, _) = RawTerminals::new()?.start(&shell())?;
        read_prompt(|printed| {
            let mut chunk = [0; 256];
            let length = rustix::io::read(&terminal, &mut chunk)?;
            printed.extend_from_slice(&chunk[..length]);
            Ok(())
        })?;
        timed(move || look(&terminal))
    })];
    candidates.extend(tiers().into_iter().map(|tier| {
        Candidate::new(Name::project(tier.name()), move || {
            let mut session = WorldTerminals::new(tier)?.open(&shell())?;
            read_prompt(|printed| session.read(printed))?;
            // One crowd for all. It is younger than every session, so that no look can pass it over for its numbers.
            let others = (tier.name() == LAST_TIER).then(Crowd::gather).transpose()?;
            timed(move || {
                let _others = &others;
                session.waits_for_input()
            })
        })
    }));
    candidates
}

/// Measures the row.
pub(crate) fn measure(rounds: Option<NonZeroUsize>) -> Result<Vec<Finding>> {
    let taken = take(candidate::alone(Row::PtyInspect)?, EFFORT.asked(rounds))?;
    Ok(of_samples(Row::PtyInspect, Unit::Micros, &taken))
}
