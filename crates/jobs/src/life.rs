//! The life of one job: pure, with time as an argument.

use std::sync::Arc;
use std::time::Instant;

use crate::work::ForeignError;
use crate::{Delivery, JobStatus, Settled, Settlement};

/// Where one job stands, and who knows of its end.
#[derive(Debug)]
pub(crate) struct Life {
    pub(crate) status: JobStatus,
    pub(crate) detail: Option<String>,
    pub(crate) output: Option<Arc<str>>,
    pub(crate) started: Instant,
    pub(crate) ended: Option<Instant>,
    pub(crate) reported: bool,
    /// A notice of its end was handed out.
    noticed: bool,
    /// Calls under way that will tell their caller of the end. They hold the notice back; the last one to go without
    /// having told anybody sets it free.
    waiters: usize,
}

/// How a job ends.
#[derive(Clone, Debug)]
pub(crate) struct Ending {
    status: JobStatus,
    detail: Option<String>,
    output: Option<Arc<str>>,
}

impl Ending {
    pub(crate) fn failed(why: impl Into<String>) -> Self {
        Self {
            status: JobStatus::Failed,
            detail: Some(why.into()),
            output: None,
        }
    }
}

impl From<Settlement> for Ending {
    fn from(settlement: Settlement) -> Self {
        Self {
            status: match settlement.status {
                Settled::Completed => JobStatus::Completed,
                Settled::Killed => JobStatus::Killed,
            },
            detail: settlement.detail,
            output: settlement.output.map(Arc::from),
        }
    }
}

impl From<ForeignError> for Ending {
    fn from(error: ForeignError) -> Self {
        Self::failed(in_full(&*error))
    }
}

/// Puts an error into one line, its causes after it.
pub(crate) fn in_full(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

impl Life {
    pub(crate) fn new(started: Instant) -> Self {
        Self {
            status: JobStatus::Running,
            detail: None,
            output: None,
            started,
            ended: None,
            reported: false,
            noticed: false,
            waiters: 0,
        }
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.status.is_settled()
    }

    /// Its work was cancelled by somebody who therefore needs no telling.
    pub(crate) fn stop(&mut self) {
        if self.status == JobStatus::Running {
            self.status = JobStatus::Stopping;
        }
        self.reported = true;
    }

    /// Ends it, unless it has ended: the first ending is the one that counts. Tells whether this was it.
    pub(crate) fn settle(&mut self, ending: Ending, now: Instant) -> bool {
        if self.is_settled() {
            return false;
        }
        self.status = ending.status;
        self.detail = ending.detail;
        self.output = ending.output;
        self.ended = Some(now);
        true
    }

    /// Its owner knows of its end, or will not ask any more.
    pub(crate) fn report(&mut self) {
        self.reported = true;
    }

    /// Somebody begins to wait for the end.
    pub(crate) fn begin_wait(&mut self) {
        self.waiters += 1;
    }

    /// Somebody waits no longer, whether or not the end came.
    pub(crate) fn end_wait(&mut self) {
        self.waiters -= 1;
    }

    /// Tells whether its owner has yet to be told of its end, and nobody is about to.
    pub(crate) fn notice_due(&self) -> bool {
        self.is_settled() && !self.reported && !self.noticed && self.waiters == 0
    }

    /// A notice of its end is handed out. One that nobody is to be disturbed with reports nothing.
    pub(crate) fn notice(&mut self, delivery: Delivery) {
        self.noticed = true;
        self.reported |= delivery != Delivery::Quiet;
    }
}
