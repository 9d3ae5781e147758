//! Everything that gives a program a terminal.

use anyhow::Result;

use crate::candidate::Candidate;
use crate::finding::Name;
use crate::floor::terminal::RawTerminals;
use crate::peers::{BlockingPtyProcess, PortablePty, PtyProcess};
use crate::project::{WorldTerminals, tiers};

/// The size of every terminal.
pub(crate) const ROWS: u16 = 24;
pub(crate) const COLS: u16 = 80;

/// Something that gives programs terminals.
pub(crate) trait Terminals {
    /// Runs a program on a terminal of its own until nothing of either is left, and requires its success. Reads into a
    /// buffer what is printed, over and over, and returns how many bytes that was.
    fn run(&mut self, argv: &[String], buffer: &mut [u8]) -> Result<u64>;

    /// Starts a program on a terminal of its own. It is ended by the end of the conversation, or by that of this process.
    fn converse(self: Box<Self>, argv: &[String]) -> Result<Box<dyn Conversation>>;
}

/// A program that answers each byte with a byte.
pub(crate) trait Conversation {
    /// Waits for the next byte that is printed.
    fn hear(&mut self) -> Result<u8>;

    /// Types a byte, and waits for the next that is printed.
    fn exchange(&mut self, typed: u8) -> Result<u8>;
}

/// Compares what `sampler` makes of everything there is: the floor, this project (once per tier, and once more under tokio),
/// and the peers.
pub(super) fn candidates<S: FnMut() -> Result<f64> + 'static>(
    sampler: impl Fn(Box<dyn Terminals>) -> Result<S> + Clone + 'static,
) -> Vec<Candidate> {
    let candidate = |name, make: Make| {
        let sampler = sampler.clone();
        Candidate::new(name, move || sampler(make()?))
    };
    let mut candidates = vec![candidate(
        RawTerminals::NAME,
        Box::new(|| Ok(Box::new(RawTerminals::new()?))),
    )];
    let tiers = tiers();
    for &tier in &tiers {
        candidates.push(candidate(
            Name::project(tier.name()),
            Box::new(move || Ok(Box::new(WorldTerminals::new(tier)?))),
        ));
    }
    if let Some(&strongest) = tiers.first() {
        candidates.push(candidate(
            Name::project_under_tokio(strongest.name()),
            Box::new(move || Ok(Box::new(WorldTerminals::under_tokio(strongest)?))),
        ));
    }
    candidates.extend([
        candidate(PortablePty::NAME, Box::new(|| Ok(Box::new(PortablePty)))),
        candidate(PtyProcess::NAME, Box::new(|| Ok(Box::new(PtyProcess::new()?)))),
        candidate(
            BlockingPtyProcess::NAME,
            Box::new(|| Ok(Box::new(BlockingPtyProcess))),
        ),
    ]);
    candidates
}

/// Makes one of them.
type Make = Box<dyn FnOnce() -> Result<Box<dyn Terminals>>>;
