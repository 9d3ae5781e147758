//! What a child between clone and exec tells its parent.

use core::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, Ordering};

use crate::protocol::SAMPLE;

/// What the child was doing when it failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FailedStep {
    /// Moving itself into its cgroup.
    JoinCgroup,
    /// Putting a standard descriptor in place.
    Stdio,
    /// Closing the host's descriptors.
    CloseDescriptors,
    /// Entering the working directory.
    EnterCwd,
    /// Executing a candidate.
    Exec,
    /// Executing `/bin/sh` for a script without an interpreter line.
    ExecShell,
    /// Setting a resource limit.
    Limits,
    /// Making the terminal the controlling one of the child's session.
    ControllingTerminal,
}

/// The steps, in the order of their codes.
const STEPS: [FailedStep; 8] = [
    FailedStep::JoinCgroup,
    FailedStep::Stdio,
    FailedStep::CloseDescriptors,
    FailedStep::EnterCwd,
    FailedStep::Exec,
    FailedStep::ExecShell,
    FailedStep::Limits,
    FailedStep::ControllingTerminal,
];

impl FailedStep {
    /// Returns the step's code, from 1 on: 0 is no failure.
    pub const fn code(self) -> u32 {
        self as u32 + 1
    }

    /// Returns the step with a code.
    pub fn from_code(code: u32) -> Option<Self> {
        STEPS.get((code as usize).checked_sub(1)?).copied()
    }
}

/// Memory that the child writes and the parent reads.
///
/// The parent looks at the other fields only after `alive` was cleared by the kernel, which orders them.
#[derive(Debug)]
pub struct Report {
    /// The futex. 1 until the kernel clears it: `CLONE_CHILD_CLEARTID`.
    pub alive: AtomicU32,
    /// 0, or the code of the step that failed.
    pub step: AtomicU32,
    /// The error number.
    pub errno: AtomicI32,
    /// The place of the candidate that decided the failure.
    pub candidate: AtomicU32,
    /// The candidate's file type and permissions, or 0 where they are not known.
    pub mode: AtomicU32,
    /// 0, or why the child is not in the session or the group that was asked for.
    pub session_errno: AtomicI32,
    /// How many bytes of `sample` were read.
    pub sample_length: AtomicU32,
    /// The first bytes of a candidate that could not be executed.
    pub sample: [AtomicU8; SAMPLE],
}

impl Default for Report {
    fn default() -> Self {
        Self::new()
    }
}

impl Report {
    /// One of a child that is about to be cloned.
    pub const fn new() -> Self {
        Self {
            alive: AtomicU32::new(1),
            step: AtomicU32::new(0),
            errno: AtomicI32::new(0),
            candidate: AtomicU32::new(0),
            mode: AtomicU32::new(0),
            session_errno: AtomicI32::new(0),
            sample_length: AtomicU32::new(0),
            sample: [const { AtomicU8::new(0) }; SAMPLE],
        }
    }

    /// Returns what the child was doing when it failed, once it has left the shared memory.
    pub fn failed_step(&self) -> Option<FailedStep> {
        FailedStep::from_code(self.step.load(Ordering::Acquire))
    }

    /// Copies the sample, and returns how long it is.
    pub fn copy_sample(&self, to: &mut [u8; SAMPLE]) -> usize {
        let length = (self.sample_length.load(Ordering::Relaxed) as usize).min(SAMPLE);
        for (to, from) in to.iter_mut().zip(&self.sample).take(length) {
            *to = from.load(Ordering::Relaxed);
        }
        length
    }
}
