//! One command text through the executor of agents' commands, from its start to the report of its end.
//!
//! Written against the seam, as [`run`](crate::run) is.

mod json;
mod options;
mod report;
mod request;

use std::time::Instant;

use dsh_shell::{Shell, ShellError};
use dsh_subprocess::Error;

use crate::attendance::Attendance;
use crate::failure::Failure;
use crate::options::OwnershipOption;
use crate::run::World;
use crate::signals::Interrupts;
use crate::supervision;

pub(crate) use json::ShObject;
pub(crate) use options::ShOptions;
pub(crate) use report::ShReport;
pub(crate) use request::Subject;

use request::Request;

/// Runs what the options say, and returns the report. `make_world` is called once, when all else is in order.
pub(crate) fn sh(
    options: ShOptions,
    make_world: impl FnOnce(OwnershipOption) -> Result<World, Error>,
) -> ShReport {
    let mut subject = Subject::default();
    let request = match Request::new(options, &mut subject) {
        Ok(request) => request,
        Err(failure) => return ShReport::refused(subject, failure),
    };
    supervision::carry_out(supervise(request, &subject, make_world))
        .unwrap_or_else(|failure| ShReport::refused(subject, failure))
}

async fn supervise(
    request: Request,
    subject: &Subject,
    make_world: impl FnOnce(OwnershipOption) -> Result<World, Error>,
) -> Result<ShReport, Failure> {
    // From here on nobody ends this process before its tree by asking for it.
    let interrupts = Interrupts::watch().map_err(supervision::no_signals)?;
    let timeout = request.timeout();
    let world = make_world(request.ownership).map_err(|error| Failure::from(&error))?;
    let shell = Shell::new(world.runtime.clone(), request.config)
        .map_err(|error| Failure::bad_option(error.to_string()))?;
    let cancel = request.asked.cancel.clone();
    let mut attendance = Attendance::new(interrupts, &world);

    let began = Instant::now();
    let spec = shell.resolve(request.asked).map_err(|error| failure_of(&error))?;
    let execution = shell.execute(spec).map_err(|error| failure_of(&error))?;
    let result = attendance.wait_for(execution.result(), || cancel.cancel()).await;
    let mut report = ShReport::ended(subject.clone(), timeout, result, attendance.interrupt());
    report.duration = report.duration.or_else(|| Some(began.elapsed()));
    let process = execution.process();
    report.pid = process.pid();
    report.usage = process.usage().await.unwrap_or_default();
    if report.started {
        report.ownership = process.ownership().await.ok();
    }
    let disposed = attendance.wait_for(world.runtime.dispose(), || ()).await;
    if let Err(error) = disposed {
        report.add_failed_end(&error);
    }
    Ok(report)
}

/// Tells an error of the executor in the words of the command line.
fn failure_of(error: &ShellError) -> Failure {
    match error {
        ShellError::Runtime { error, .. } => Failure::from(error),
        other => Failure::bad_option(other.to_string()),
    }
}

#[cfg(test)]
mod tests;
