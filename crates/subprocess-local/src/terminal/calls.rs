//! Calls of a handle that are in flight on another thread, so that a termination can wait for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// How many there are.
#[derive(Debug, Default)]
pub(super) struct Calls {
    count: AtomicUsize,
    none: Notify,
}

/// One of them, for as long as it lives.
#[derive(Debug)]
pub(super) struct Call(Arc<Calls>);

impl Calls {
    pub(super) fn begin(self: &Arc<Self>) -> Call {
        self.count.fetch_add(1, Ordering::AcqRel);
        Call(Arc::clone(self))
    }

    /// Waits until there is none.
    pub(super) async fn ended(&self) {
        loop {
            // Registered before the look, so that no wake-up falls between the two.
            let mut none = std::pin::pin!(self.none.notified());
            none.as_mut().enable();
            if self.count.load(Ordering::Acquire) == 0 {
                return;
            }
            none.await;
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.none.notify_waiters();
        }
    }
}
