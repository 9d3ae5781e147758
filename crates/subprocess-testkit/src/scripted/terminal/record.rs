//! What a scripted terminal was asked to do.

use std::time::Duration;

use bytes::Bytes;
use dsh_subprocess::{Environment, TerminalSize, TerminalSpec};

use super::super::record::{Delivery, TerminationRequest};
use super::super::tree::Tree;

/// One terminal, as the world received its spec, and what was asked of it since.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TerminalRequest {
    /// The spec, word for word.
    pub spec: TerminalSpec,
    /// The environment the program got: the world's own base after the scrub, `TERM`, and the overlay on top.
    pub environment: Environment,
    /// Every request to end the session, in order, joined ones too.
    pub terminations: Vec<TerminationRequest>,
    /// Every signal the world delivered, in order: those of a termination, those for the foreground group, and `SIGWINCH` for
    /// each change of the size. A group other than the program's own is named by its id.
    pub signals: Vec<Delivery>,
    /// What the terminal took of all that was written to it.
    pub typed: Bytes,
    /// What the program read of that so far.
    pub read: Bytes,
    /// Every size that was asked for after the first, in order.
    pub resizes: Vec<Resize>,
}

/// One change of a terminal's size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Resize {
    /// When, in virtual time since the world began.
    pub at: Duration,
    /// To what.
    pub size: TerminalSize,
}

impl TerminalRequest {
    /// `None` for a tree that is not on a terminal.
    pub(in super::super) fn of(tree: &Tree) -> Option<Self> {
        let tty = tree.terminal.as_ref()?;
        Some(Self {
            spec: tty.spec.clone(),
            environment: tree.environment.clone(),
            terminations: tree.terminations.clone(),
            signals: tree.signals.clone(),
            typed: [tree.input.all(), tty.typing.line().to_vec()].concat().into(),
            read: tree.received(),
            resizes: tty.resizes.clone(),
        })
    }
}
