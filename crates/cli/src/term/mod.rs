//! One session on a terminal of its own, from its start to the report of its end.
//!
//! Written against the seam, as [`run`](crate::run) is. It serves two sorts of users: one who sits at a terminal, which is
//! then *attached*, and a program that types through a pipe.

mod asciicast;
mod attachment;
mod keyboard;
mod options;
mod record;
mod request;
mod screen;
mod session;
mod settings;
mod typing;
mod user;
pub(crate) mod watcher;

use dsh_subprocess::{Error, WorldString};
use tokio::time::Instant;

use crate::failure::Failure;
use crate::options::OwnershipOption;
use crate::report::Report;
use crate::request::Subject;
use crate::run::World;
use crate::signals::Interrupts;
use crate::supervision::{self, Supervision};

pub(crate) use options::TermOptions;

use attachment::Attachment;
use request::Request;
use session::Session;

/// Runs what the options say on a terminal, and returns the report. `make_world` is called once, when all else is in order.
///
/// When this returns, an attached terminal has its settings back.
pub(crate) fn term(
    mut options: TermOptions,
    make_world: impl FnOnce(OwnershipOption) -> Result<World, Error>,
) -> Report {
    let command = std::mem::take(&mut options.command);
    let mut subject = match Subject::of(command, options.cwd.as_deref()) {
        Ok(subject) => subject,
        Err((subject, failure)) => return Report::refused(subject, failure),
    };
    Request::new(options, &subject)
        .and_then(|request| supervision::carry_out(supervise(request, &mut subject, make_world)))
        .unwrap_or_else(|failure| Report::refused(subject, failure))
}

async fn supervise(
    mut request: Request,
    subject: &mut Subject,
    make_world: impl FnOnce(OwnershipOption) -> Result<World, Error>,
) -> Result<Report, Failure> {
    // From here on nobody ends this process before its tree by asking for it.
    let (interrupts, notices) = if request.attached {
        Interrupts::watch_terminal().map(|(interrupts, notices)| (interrupts, Some(notices)))
    } else {
        Interrupts::watch().map(|interrupts| (interrupts, None))
    }
    .map_err(supervision::no_signals)?;
    let world = make_world(request.ownership).map_err(|error| Failure::from(&error))?;
    let mut supervision = Supervision::new(interrupts, &world, request.spec.drain);
    if request.spec.argv.is_empty() {
        let shell = default_shell(&world).await?;
        subject.argv = vec![shell.clone()];
        request.spec.argv = vec![shell];
    }
    // Declared after the supervision, and so let go of before interrupts have their usual effect again.
    let attachment = notices.map(Attachment::prepare).transpose()?;
    if attachment.is_some() {
        supervision.attach();
    }

    let began = Instant::now();
    let deadline = request.timeout.map(|timeout| began + timeout);
    let cancel = request.spec.cancel.clone();
    let allocation = world.runtime.spawn_terminal(request.spec.clone());
    let spawned = supervision
        .wait_for(allocation, deadline, || cancel.cancel())
        .await;
    let terminal = match spawned {
        Ok(terminal) => terminal,
        Err(error) => {
            let (duration, stopped) = (began.elapsed(), supervision.stopped());
            let mut report = Report::ended(subject.clone(), duration, Err(error), stopped);
            report.stderr = None;
            return Ok(report);
        }
    };
    let mut session = Session::start(terminal, request, attachment, &supervision);
    let result = session.wait_for_end(&mut supervision, deadline).await;
    let (duration, stopped) = (began.elapsed(), supervision.stopped());
    let mut report = Report::ended(subject.clone(), duration, result, stopped);
    session.end(&mut supervision, &world, &mut report).await;
    Ok(report)
}

/// Names the shell that is run where no command is.
async fn default_shell(world: &World) -> Result<WorldString, Failure> {
    let environment = world.runtime.terminal_environment().await;
    let shell = environment.map_err(|error| Failure::from(&error))?.shell;
    Ok(shell.as_world_string().clone())
}

#[cfg(test)]
mod tests;
