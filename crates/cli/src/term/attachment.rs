//! A user's terminal that is attached to a session: raw, of the same size, and let go of when this process stops or ends.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dsh_subprocess::{Terminal, TerminalSize};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::record::Recording;
use super::request::Window;
use super::settings::{self, Settings};
use super::user;
use crate::failure::Failure;
use crate::signals::{self, Notice, Notices};
use crate::supervision::Supervision;

/// How long a process that was continued in the background waits for the signal that it was continued for. A shell's `kill`
/// sends a stopped job two signals, one of them `SIGCONT`; the other must not be overtaken by the next stop.
const SECOND_SIGNAL: Duration = Duration::from_millis(100);

/// A user's terminal, from before the session's start. Dropping it lets go of the terminal.
pub(super) struct Attachment {
    held: Held,
    notices: Option<Notices>,
    attendant: Option<JoinHandle<()>>,
}

/// The settings to go back to. `None` while the terminal is not ours.
#[derive(Clone)]
struct Held(Arc<Mutex<Option<Settings>>>);

/// What a session's terminal needs to follow the user's.
pub(super) struct Attention {
    pub(super) terminal: Arc<Terminal>,
    pub(super) window: Window,
    /// The size it has.
    pub(super) size: TerminalSize,
    pub(super) recording: Option<Recording>,
}

impl Attachment {
    /// Sees to it that the settings are put back, whatever happens. Nothing is changed yet.
    ///
    /// In the background this stops, as whatever uses its terminal does, until the user wants it in the foreground.
    ///
    /// # Errors
    ///
    /// There is nobody to be found who would put them back.
    pub(super) fn prepare(notices: Notices) -> Result<Self, Failure> {
        if !user::is_ours() {
            signals::stop_in_background();
        }
        let settings = Settings::keep().map_err(|error| {
            Failure::new(
                "terminal",
                format!("the terminal's settings cannot be kept: {error}"),
            )
        })?;
        Ok(Self {
            held: Held(Arc::new(Mutex::new(Some(settings)))),
            notices: Some(notices),
            attendant: None,
        })
    }

    /// Makes the terminal raw.
    ///
    /// # Errors
    ///
    /// It is gone.
    pub(super) fn begin(&self) -> io::Result<()> {
        self.held.lock().as_ref().map_or(Ok(()), Settings::make_raw)
    }

    /// Looks after the terminal from here on.
    pub(super) fn attend(mut self, attention: Attention, supervision: &Supervision<'_>) -> Self {
        if let Some(notices) = self.notices.take() {
            let attending = attend(notices, self.held.clone(), attention, supervision.ending());
            self.attendant = Some(supervision.watch(attending, user::lost));
        }
        self
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        if let Some(attendant) = &self.attendant {
            attendant.abort();
        }
        drop(self.held.lock().take());
    }
}

impl Held {
    fn lock(&self) -> MutexGuard<'_, Option<Settings>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the terminal raw again, after a stop.
    fn take_back(&self) -> io::Result<()> {
        let mut held = self.lock();
        if held.is_some() && settings::are_raw() {
            return Ok(());
        }
        // Whoever had the terminal meanwhile may have set it otherwise, and that is what it goes back to.
        *held = None;
        let settings = Settings::keep()?;
        settings.make_raw()?;
        *held = Some(settings);
        Ok(())
    }
}

/// Follows what happens to the user's terminal, until it is lost.
async fn attend(
    mut notices: Notices,
    held: Held,
    mut attention: Attention,
    ending: CancellationToken,
) -> io::Result<()> {
    loop {
        match notices.next().await {
            Notice::Resized => attention.follow().await,
            // It came too late, or has been taken back, and the session goes on to wherever it is going.
            Notice::Stop if ending.is_cancelled() || !notices.want_stop() => {}
            Notice::Stop => {
                drop(held.lock().take());
                notices.stop();
                // Nothing tells of a stop that did not take place, as an orphan's does not.
                if user::is_ours() {
                    held.take_back()?;
                    attention.follow().await;
                }
            }
            // A session that ends does not come back to the screen.
            Notice::Continued if ending.is_cancelled() => {}
            Notice::Continued if user::is_ours() => {
                held.take_back()?;
                attention.follow().await;
            }
            Notice::Continued => tokio::select! {
                biased;
                () = ending.cancelled() => {}
                // Once for each time that it is continued: nobody continues an orphan, which is not stopped, either.
                () = tokio::time::sleep(SECOND_SIGNAL) => signals::stop_in_background(),
            },
        }
    }
}

impl Attention {
    /// Gives the session's terminal the size that the user's has.
    async fn follow(&mut self) {
        let size = self.window.size(user::size());
        // It fails when the session is over, and nobody looks at its size any more.
        if size != self.size && self.terminal.resize(size).await.is_ok() {
            self.size = size;
            if let Some(recording) = &self.recording {
                recording.resize(size);
            }
        }
    }
}
