//! `linger`: a member outlives the leader by 2 ms; how much later than its end is the tree known to be gone?

use std::num::NonZeroUsize;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::candidate::{self, Candidate};
use crate::finding::{Finding, Name, Unit, of_samples};
use crate::floor::{self, Cloner, Program};
use crate::helper::{self, Clock, Stamps, now};
use crate::options::Row;
use crate::project::{World, tiers};
use crate::turns::{Effort, take};

const EFFORT: Effort = Effort {
    warm_up: 5,
    rounds: 400,
    time: Duration::from_secs(8),
};

/// Returns the time from the leader's exit to `gone`, without the time that the member really lived longer, in
/// microseconds. Both processes stamp just before they exit.
fn excess(stamps: Stamps, gone: Clock) -> f64 {
    let lived_longer = stamps.member - stamps.leader;
    #[expect(clippy::cast_precision_loss, reason = "a few milliseconds")]
    let nanoseconds = (gone - stamps.leader - lived_longer) as f64;
    nanoseconds / 1e3
}

/// Runs the tree through this project.
fn through(world: &World, tree: &[String]) -> Result<f64> {
    let process = world.spawn(tree, None)?;
    world.wait_until_gone(&process)?;
    let gone = now();
    world.finish(&process)?;
    let out = process
        .collected_stdout()
        .context("standard output is collected")?;
    Ok(excess(Stamps::parse(&out.text())?, gone))
}

/// Runs the tree, waits for the member by a descriptor opened while it surely lived, and reaps the leader.
fn raw(cloner: &mut Cloner, program: &Program) -> Result<f64> {
    let (out, out_child) = pipe_with(PipeFlags::CLOEXEC)?;
    let leader = cloner.spawn(program, out_child.as_fd(), rustix::stdio::stderr())?;
    drop(out_child);
    let mut text = String::new();
    more(&out, &mut text)?;
    let member = text
        .lines()
        .next()
        .and_then(|line| line.strip_prefix("pid ")?.parse().ok());
    let member = member
        .and_then(Pid::from_raw)
        .with_context(|| format!("no member is named in {text:?}"))?;
    let member = pidfd_open(member, PidfdFlags::empty()).context("the member was gone early")?;
    floor::reap(&leader)?;
    poll(&mut [PollFd::new(&member, PollFlags::IN)], None)?;
    let gone = now();
    while more(&out, &mut text)? {}
    Ok(excess(Stamps::parse(&text)?, gone))
}

/// Reads on, and tells whether there was more.
fn more(out: &OwnedFd, text: &mut String) -> Result<bool> {
    let mut chunk = [0; 256];
    let length = rustix::io::read(out, &mut chunk)?;
    text.push_str(&String::from_utf8_lossy(&chunk[..length]));
    Ok(length > 0)
}

/// Returns everything that knows when a tree is gone.
pub(crate) fn candidates() -> Result<Vec<Candidate>> {
    let tree = helper::command("linger", &[])?;
    let floor = tree.clone();
    let mut candidates = vec![Candidate::new(Name::FLOOR, move || {
        let mut cloner = Cloner::new()?;
        let program = Program::new(&floor[0], floor[1..].iter().map(String::as_str))?;
        Ok(move || raw(&mut cloner, &program))
    })];
    candidates.extend(tiers().into_iter().map(|tier| {
        let tree = tree.clone();
        Candidate::new(Name::project(tier.name()), move || {
            let world = World::new(tier)?;
            Ok(move || through(&world, &tree))
        })
    }));
    Ok(candidates)
}

/// Measures the row.
pub(crate) fn measure(rounds: Option<NonZeroUsize>) -> Result<Vec<Finding>> {
    let taken = take(candidate::alone(Row::Linger)?, EFFORT.asked(rounds))?;
    Ok(of_samples(Row::Linger, Unit::Micros, &taken))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_member_s_own_life_is_no_excess() {
        let stamps = Stamps {
            leader: 1_000_000,
            member: 3_100_000,
        };
        assert!((excess(stamps, 3_150_000) - 50.0).abs() < 1e-9);
    }
}
