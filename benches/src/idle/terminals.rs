//! `pty-idle-200`: two hundred terminals whose programs wait for input.

use anyhow::{Result, bail};

use super::load::{Load, allow_descriptors, ask, tell, watch};
use crate::finding::{Finding, Name};
use crate::options::Row;
use crate::peers::{PortablePty, PtyProcess};
use crate::project::{Tier, WorldTerminals, tiers};
use crate::spawn::TRUE;
use crate::terminal::Terminals;

const TERMINALS: usize = 200;

const CAT: [&str; 1] = ["/bin/cat"];

/// Measures the row, each contender in a host of its own.
pub(crate) fn measure() -> Result<Vec<Finding>> {
    let tiers = tiers().into_iter().map(|tier| Name::project(tier.name()));
    let names = tiers.chain([PortablePty::NAME, PtyProcess::NAME]);
    ask(Row::PtyIdle200, "idle-terminals-host", names)
}

/// Is an idle host: starts programs on terminals, awaits what they print, and tells what they cost.
pub(crate) fn host(which: &str) -> Result<()> {
    allow_descriptors(TERMINALS * 4 + 100)?;
    let watch = || watch(&CAT);
    // What the first terminal costs is not the price of each.
    let (before, after) = if let Some(tier) = Tier::named(which) {
        let terminals = first(WorldTerminals::new(tier)?)?;
        (Load::now()?, terminals.await_many(&CAT, TERMINALS, watch)?)
    } else if which == PortablePty::NAME.implementation {
        let _ = first(PortablePty)?;
        let before = Load::now()?;
        // A thread reads each of them.
        let _terminals = (0..TERMINALS)
            .map(|_| PortablePty::start(&CAT))
            .collect::<Result<Vec<_>>>()?;
        (before, watch()?)
    } else if which == PtyProcess::NAME.implementation {
        let terminals = first(PtyProcess::new()?)?;
        (Load::now()?, terminals.await_many(&CAT, TERMINALS, watch)?)
    } else {
        bail!("no host is named {which}")
    };
    tell(&before, after, TERMINALS);
    Ok(())
}

/// Runs a program on a terminal.
fn first<T: Terminals>(mut terminals: T) -> Result<T> {
    terminals.run(&[TRUE.to_owned()], &mut [0; 64])?;
    Ok(terminals)
}
