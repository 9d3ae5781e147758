//! A value that many wait for, set once.

use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// A value that is not there yet.
///
/// Setting it and waking the waiters are two calls: the first is made under the lock that decides the value, the second
/// without it, since a waker may run anybody's code.
#[derive(Debug)]
pub(crate) struct Promise<T> {
    value: OnceLock<T>,
    waiters: Notify,
}

impl<T: Clone> Promise<T> {
    pub(crate) fn new() -> Self {
        Self {
            value: OnceLock::new(),
            waiters: Notify::new(),
        }
    }

    /// Sets the value, unless it is set.
    pub(crate) fn set(&self, value: T) -> bool {
        self.value.set(value).is_ok()
    }

    /// Wakes everybody who waits. Needed after [`set`](Self::set).
    pub(crate) fn wake(&self) {
        self.waiters.notify_waiters();
    }

    /// Returns the value, where it is there.
    pub(crate) fn peek(&self) -> Option<&T> {
        self.value.get()
    }

    /// Waits for the value.
    pub(crate) async fn get(&self) -> T {
        loop {
            // Registered before the look, so that no wake-up falls between the two.
            let mut notified = pin!(self.waiters.notified());
            notified.as_mut().enable();
            if let Some(value) = self.value.get() {
                return value.clone();
            }
            notified.await;
        }
    }

    /// Blocks this thread until the value is there, for at most `bound`.
    pub(crate) fn wait(&self, bound: Duration) {
        if bound.is_zero() {
            return;
        }
        let deadline = Instant::now() + bound;
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut value = pin!(self.get());
        while value.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            thread::park_timeout(left);
        }
    }
}

/// Wakes a thread that is parked.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
