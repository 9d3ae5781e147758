//! What a scripted world was asked to do.

use std::time::Duration;

use bytes::Bytes;
use dsh_subprocess::{Environment, SignalName, SpawnSpec};

use super::stream::OutputStream;
use super::tree::Tree;

/// One spawn, as the world received it, and what was asked of its tree since.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Request {
    /// The spec, word for word.
    pub spec: SpawnSpec,
    /// The environment the target got: the world's own base after the scrub, with the overlay on top.
    pub environment: Environment,
    /// Every request to end the tree, in order, joined ones too.
    pub terminations: Vec<TerminationRequest>,
    /// Every signal the world delivered, in order.
    pub signals: Vec<Delivery>,
    /// What the target read of its standard input so far.
    pub stdin: Bytes,
    /// What the target wrote to streams that it inherited from its host: standard output's first, then standard error's.
    pub inherited: Bytes,
}

/// One request to end a tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TerminationRequest {
    /// When it was made, in virtual time since the world began.
    pub at: Duration,
    /// Who made it.
    pub cause: TerminationCause,
}

/// Who asked for the end of a tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TerminationCause {
    /// [`Process::terminate`](dsh_subprocess::Process::terminate), or the drop of a scoped handle.
    Terminate,
    /// The token of the spec.
    Cancel,
    /// The disposal of the runtime.
    Dispose,
    /// The drop of the last reference to the runtime.
    Abandoned,
    /// The exit of a terminal's program, which left others in its session.
    ProgramExit,
}

/// One signal that was delivered.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Delivery {
    /// When, in virtual time since the world began.
    pub at: Duration,
    /// To whom: a member by its id, or the target (`None`).
    pub to: Option<u32>,
    /// Which signal.
    pub signal: SignalName,
}

impl Request {
    /// `None` for a tree on a terminal.
    pub(super) fn of(tree: &Tree) -> Option<Self> {
        if tree.terminal.is_some() {
            return None;
        }
        let streams = [Some(&tree.stdout), tree.stderr.as_ref()];
        Some(Self {
            spec: tree.spec.clone(),
            environment: tree.environment.clone(),
            terminations: tree.terminations.clone(),
            signals: tree.signals.clone(),
            stdin: tree.received(),
            inherited: streams
                .into_iter()
                .flatten()
                .flat_map(OutputStream::inherited)
                .copied()
                .collect(),
        })
    }
}

impl TerminationRequest {
    pub(super) fn new(at: Duration, cause: TerminationCause) -> Self {
        Self { at, cause }
    }
}

impl Delivery {
    pub(super) fn new(at: Duration, to: Option<u32>, signal: impl Into<SignalName>) -> Self {
        Self {
            at,
            to,
            signal: signal.into(),
        }
    }
}
