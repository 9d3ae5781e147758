//! The end of the whole tree, for all who wait for it.

use std::sync::Mutex;

use dsh_subprocess::Error;
use tokio::sync::Notify;

use crate::reactor::lock;

/// Whether the tree is gone. Unlike a promise it may change its mind, until the tree is gone.
#[derive(Debug, Default)]
pub(super) struct Exit {
    known: Mutex<Known>,
    waiters: Notify,
}

#[derive(Debug, Default)]
enum Known {
    #[default]
    Alive,
    /// Members outlived `SIGKILL` by the bound. They may still go.
    Overdue(Error),
    Gone,
}

impl Exit {
    pub(super) fn set_gone(&self) {
        *lock(&self.known) = Known::Gone;
    }

    pub(super) fn set_overdue(&self, error: Error) {
        *lock(&self.known) = Known::Overdue(error);
    }

    /// Forgets that the tree is overdue.
    pub(super) fn try_again(&self) {
        let mut known = lock(&self.known);
        if matches!(*known, Known::Overdue(_)) {
            *known = Known::Alive;
        }
    }

    /// Wakes everybody who waits. Needed after a change, without the tree's lock.
    pub(super) fn wake(&self) {
        self.waiters.notify_waiters();
    }

    pub(super) fn is_gone(&self) -> bool {
        matches!(*lock(&self.known), Known::Gone)
    }

    pub(super) fn is_overdue(&self) -> bool {
        matches!(*lock(&self.known), Known::Overdue(_))
    }

    /// Waits for the end, or for the news that it is overdue.
    pub(super) async fn get(&self) -> Result<(), Error> {
        loop {
            // Registered before the look, so that no wake-up falls between the two.
            let mut changed = std::pin::pin!(self.waiters.notified());
            changed.as_mut().enable();
            match &*lock(&self.known) {
                Known::Gone => return Ok(()),
                Known::Overdue(error) => return Err(error.clone()),
                Known::Alive => {}
            }
            changed.await;
        }
    }
}
