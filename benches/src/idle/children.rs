//! `idle-1000`: a thousand children that sleep.

use anyhow::{Result, ensure};

use super::load::{Load, allow_descriptors, ask, tell, watch};
use crate::finding::{Finding, Name};
use crate::options::Row;
use crate::peers::{Peer as _, TokioProcess};
use crate::project::{Tier, World, tiers};
use crate::spawn::TRUE;

const CHILDREN: usize = 1000;

const SLEEP: [&str; 2] = ["/bin/sleep", "1000"];

/// Measures the row, each contender in a host of its own.
pub(crate) fn measure() -> Result<Vec<Finding>> {
    let tiers = tiers().into_iter().map(|tier| Name::project(tier.name()));
    ask(Row::Idle1000, "idle-host", tiers.chain([TokioProcess::NAME]))
}

/// Is an idle host: starts children, awaits them, and tells what they cost.
pub(crate) fn host(which: &str) -> Result<()> {
    allow_descriptors(CHILDREN * 4 + 100)?;
    let watch = || watch(&SLEEP);
    let (before, after) = if let Some(tier) = Tier::named(which) {
        let world = World::new(tier)?;
        // What the first child costs is the runtime's, not the child's.
        world.run(&[TRUE])?;
        (Load::now()?, world.await_many(&SLEEP, CHILDREN, watch)?)
    } else {
        ensure!(
            which == TokioProcess::NAME.implementation,
            "no host is named {which}"
        );
        let tokio = TokioProcess::new(false)?;
        tokio.run(TRUE)?;
        (Load::now()?, tokio.await_sleepers(&SLEEP, CHILDREN, watch)?)
    };
    tell(&before, after, CHILDREN);
    Ok(())
}
