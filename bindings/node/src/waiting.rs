//! Waiting for the runtime from a thread that has an event loop.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Blocks this thread until a future answers, for at most `bound`.
pub(crate) fn within<T>(bound: Duration, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Sleeper(thread::current())));
    let mut context = Context::from_waker(&waker);
    let deadline = Instant::now() + bound;
    loop {
        if let Poll::Ready(answer) = future.as_mut().poll(&mut context) {
            return Some(answer);
        }
        let left = deadline.checked_duration_since(Instant::now())?;
        thread::park_timeout(left);
    }
}

/// Wakes a thread that sleeps in [`within`].
struct Sleeper(Thread);

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
