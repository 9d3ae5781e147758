//! A tree whose leader exits first, with the moments at which its members did.

use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::time::{ClockId, clock_gettime};

use crate::floor::fork;

/// How long the member outlives the leader.
const LONGER: Duration = Duration::from_millis(2);

/// A moment on the clock that all processes share (`CLOCK_MONOTONIC`), in nanoseconds.
pub(crate) type Clock = i64;

/// Returns this moment.
pub(crate) fn now() -> Clock {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// The last thing that each process did before it exited was to write such a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stamps {
    pub(crate) leader: Clock,
    pub(crate) member: Clock,
}

impl Stamps {
    /// Reads what [`linger`] wrote.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let stamp = |who: &str| -> Result<Clock> {
            let line = text.lines().find_map(|line| line.strip_prefix(who));
            let stamp = line.with_context(|| format!("no stamp of the {who}in {text:?}"))?;
            stamp
                .parse()
                .with_context(|| format!("the stamp of the {who}is {stamp:?}"))
        };
        Ok(Self {
            leader: stamp("leader ")?,
            member: stamp("member ")?,
        })
    }
}

/// Writes `text` in one call, since two processes write to the same pipe.
fn tell(text: &str) -> Result<()> {
    rustix::io::write(rustix::stdio::stdout(), text.as_bytes())?;
    Ok(())
}

/// Leads a tree of two: names the member, stamps and exits; the member stamps and exits 2 ms after it saw that.
pub(super) fn linger() -> Result<()> {
    let (leader_lives, held_by_leader) = pipe_with(PipeFlags::CLOEXEC)?;
    // The member waits for the end of a pipe that the leader holds, and so it must not hold it itself.
    let mut to_close = Some(held_by_leader);
    let member = fork(|| {
        to_close.take();
        let mut nothing = [0];
        let _ = rustix::io::read(&leader_lives, &mut nothing);
        std::thread::sleep(LONGER);
        // Without the line the host says that the stamp is missing.
        let _ = tell(&format!("member {}\n", now()));
    })?;
    tell(&format!("pid {}\nleader {}\n", member.as_raw_nonzero(), now()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_read_in_any_order_of_the_lines() {
        let stamps = Stamps::parse("pid 7\nmember 30\nleader 10\n").expect("both are there");
        assert_eq!(
            stamps,
            Stamps {
                leader: 10,
                member: 30
            }
        );
    }

    #[test]
    fn a_missing_stamp_is_named() {
        let error = Stamps::parse("leader 10\n").expect_err("the member's is not there");
        assert!(error.to_string().contains("member"), "{error}");
    }
}
