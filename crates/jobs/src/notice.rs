//! How an owner is told of an end: pure, and the same for every owner.

use crate::JobInfo;

/// A job of this owner is over, and the owner has not been told.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Notice {
    /// The job.
    pub info: JobInfo,
    /// What to do about it.
    pub delivery: Delivery,
}

/// How a notice should reach its owner.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Delivery {
    /// The owner is at work: put it into what the owner reads next.
    Inject,
    /// The owner is idle: begin a turn for it.
    Wake,
    /// The owner is idle and was woken as often as it may be without a word of its user: do not disturb it. The job
    /// stays unreported.
    Quiet,
}

/// Whether an owner may be disturbed.
///
/// The budget ends a circle that would otherwise need nobody: a notice wakes the owner, who starts a job, whose end
/// wakes the owner.
#[derive(Debug)]
pub(crate) struct Attention {
    busy: bool,
    budget: u32,
    wakes_left: u32,
}

impl Attention {
    pub(crate) fn new(budget: u32) -> Self {
        Self {
            busy: false,
            budget,
            wakes_left: budget,
        }
    }

    pub(crate) fn set_busy(&mut self, busy: bool) {
        self.busy = busy;
    }

    /// The user said something, so there is somebody to wake the owner for.
    pub(crate) fn user_input(&mut self) {
        self.wakes_left = self.budget;
    }

    /// Decides about one notice that is handed out now, and counts it.
    pub(crate) fn deliver(&mut self) -> Delivery {
        if self.busy {
            return Delivery::Inject;
        }
        match self.wakes_left.checked_sub(1) {
            Some(left) => {
                self.wakes_left = left;
                Delivery::Wake
            }
            None => Delivery::Quiet,
        }
    }
}
