//! A scenario that comes to every step of a spawn, for a host that is killed at one of them.

use std::error::Error;
use std::num::NonZeroU64;
use std::time::Duration;

use dsh_subprocess::{Collect, Output, SpawnSpec, Spill, SpillLife, Stdin, SubprocessRuntime};
use dsh_subprocess_local::LocalRuntime;
use pollster::block_on;

use super::{Report, announced, spec};

/// A daemon in a session of its own, and output that overflows its window.
const TREE: &str = "setsid sleep 300 & head -c 500 /dev/zero | tr '\\0' x; echo; echo ready; exec sleep 300";

/// `steps`: has a tree alive, and lets another one end before a third is spawned, which may have what the second one had;
/// then disposes of the runtime and says `passed`.
pub(super) fn steps(runtime: &LocalRuntime, report: &Report) -> Result<(), Box<dyn Error>> {
    let stays = runtime.spawn(tree())?;
    announced(&stays, "ready")?;
    let ends = runtime.spawn(tree())?;
    block_on(ends.terminate())?;
    let last = runtime.spawn(tree())?;
    announced(&last, "ready")?;
    block_on(runtime.dispose())?;
    report.line("passed", "");
    Ok(())
}

fn tree() -> SpawnSpec {
    let mut spec = spec(&["/bin/sh", "-c", TREE]);
    spec.stdin = Stdin::Pipe;
    // Who is born while the others are asked to end is not asked, and ends with the grace.
    spec.grace = Duration::from_millis(10);
    spec.drain = Duration::ZERO;
    spec.stdout = Output::Collect(Collect {
        max_bytes: 100,
        head_bytes: 0,
        spill: Some(Spill {
            max_bytes: NonZeroU64::MAX,
            life: SpillLife::Runtime,
        }),
    });
    spec
}
