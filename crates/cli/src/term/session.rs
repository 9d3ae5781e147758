//! A live session, and the four things that go on beside it: its output is shown, keys are typed, the user's terminal is
//! looked after, and all of that is recorded.

use std::sync::Arc;

use dsh_subprocess::{Collector, Error, Outcome, OutputReader, StreamName, Terminal};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::attachment::{Attachment, Attention};
use super::record::Recording;
use super::request::Request;
use super::screen::Screen;
use super::typing::{self, Typing};
use super::user;
use crate::own_stream;
use crate::report::{Report, StreamReport};
use crate::run::World;
use crate::stop::Stop;
use crate::stream::{self, Progress};
use crate::supervision::Supervision;

/// A session from its start to its end.
pub(super) struct Session {
    terminal: Arc<Terminal>,
    attachment: Option<Attachment>,
    typing: Typing,
    recording: Option<Recording>,
    progress: Arc<Progress>,
    /// What the terminal showed, where that is collected.
    collected: Option<OutputReader>,
    /// Passes the output on.
    showing: JoinHandle<()>,
    /// Whether somebody sees the output on a terminal.
    is_seen: bool,
}

impl Session {
    /// Starts all that goes on beside the terminal. What cannot be started ends the session.
    pub(super) fn start(
        mut terminal: Terminal,
        request: Request,
        attachment: Option<Attachment>,
        supervision: &Supervision<'_>,
    ) -> Self {
        let is_attached = attachment.is_some();
        if let Some(recording) = &request.recording {
            recording.begin(request.spec.size, &request.spec.terminal_type.to_string_lossy());
        }
        let (collector, collected) = (request.collect)
            .map(|collect| Collector::new(&collect, None))
            .unzip();
        // Before a byte of the output: what a terminal makes of that depends on its settings.
        let begun = attachment.as_ref().map_or(Ok(()), Attachment::begin);
        let display = user::display(is_attached, collector.is_some());
        let display = begun.and(display).unwrap_or_else(|error| {
            supervision.stop(user::lost(error));
            None
        });
        let is_seen = display.as_ref().is_some_and(|display| display.is_terminal);
        let progress = Arc::<Progress>::default();
        let output = terminal.output().expect("it is taken here alone");
        let screen = Screen::new(display, collector, request.recording.clone());
        let showing = supervision.watch(
            stream::pass_on(output, screen, Arc::clone(&progress), supervision.remainder()),
            move |error| {
                if is_attached && is_seen && user::is_gone(&error) {
                    user::lost(error)
                } else {
                    Stop::of_output(StreamName::Stdout, error)
                }
            },
        );
        let terminal = Arc::new(terminal);
        let typing = if is_attached {
            typing::keys(Arc::clone(&terminal), supervision)
        } else {
            typing::input(Arc::clone(&terminal), own_stream::stdin(), supervision)
        };
        let attachment = attachment.map(|attachment| {
            attachment.attend(
                Attention {
                    terminal: Arc::clone(&terminal),
                    window: request.window,
                    size: request.spec.size,
                    recording: request.recording.clone(),
                },
                supervision,
            )
        });
        Self {
            terminal,
            attachment,
            typing,
            recording: request.recording,
            progress,
            collected,
            showing,
            is_seen,
        }
    }

    /// Waits for the command's end, and brings it about when the time is up or something stops the session.
    pub(super) async fn wait_for_end(
        &mut self,
        supervision: &mut Supervision<'_>,
        deadline: Option<Instant>,
    ) -> Result<Outcome, Error> {
        let (done, terminal) = (self.terminal.done(), &self.terminal);
        let result = supervision
            .wait_for(done, deadline, || drop(terminal.terminate()))
            .await;
        // What is typed from here on is for whoever reads the user's terminal next.
        self.typing.end();
        result
    }

    /// Ends what is left of the tree, lets go of the user's terminal, and reports what became of all.
    pub(super) async fn end(mut self, supervision: &mut Supervision<'_>, world: &World, report: &mut Report) {
        let terminal = &self.terminal;
        supervision
            .end_tree(terminal.tree(), || terminal.terminate(), report)
            .await;
        if !self.is_seen {
            // Whoever reads the output may take long, and the user's keys must be able to interrupt that.
            self.attachment = None;
        }
        supervision.flush(vec![self.showing], report).await;
        self.attachment = None;
        supervision.conclude(terminal.tree(), world, report).await;
        report.stdout = match &self.collected {
            Some(reader) => StreamReport::of(reader),
            None => StreamReport {
                total: self.progress.written(),
                ..StreamReport::default()
            },
        };
        report.stderr = None;
        report.inside_line = self.is_seen && self.progress.is_inside_line();
        report.recording_stopped = self.recording.and_then(|recording| recording.end());
    }
}
