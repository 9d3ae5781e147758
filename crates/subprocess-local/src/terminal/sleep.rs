//! Waiting for something, but not for ever.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use crate::reactor::{Reactor, TimerKey};

/// Waits for a future, for at most `bound`. `None` when that is over.
pub(super) async fn or_after<T>(
    reactor: &Arc<Reactor>,
    bound: Duration,
    awaited: impl Future<Output = T>,
) -> Option<T> {
    let mut awaited = pin!(awaited);
    let due = Instant::now() + bound;
    let mut alarm = Alarm { reactor, key: None };
    poll_fn(move |context| {
        if let Poll::Ready(value) = awaited.as_mut().poll(context) {
            return Poll::Ready(Some(value));
        }
        if due <= Instant::now() {
            return Poll::Ready(None);
        }
        alarm.set(due, context.waker());
        Poll::Pending
    })
    .await
}

/// Somebody who is to be woken, unless this is dropped before.
struct Alarm<'a> {
    reactor: &'a Arc<Reactor>,
    key: Option<TimerKey>,
}

impl Alarm<'_> {
    fn set(&mut self, due: Instant, waker: &Waker) {
        self.take_back();
        self.key = Some(self.reactor.wake_at(due, waker.clone()));
    }

    fn take_back(&mut self) {
        if let Some(key) = self.key.take() {
            self.reactor.unschedule(key);
        }
    }
}

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        self.take_back();
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;
    use crate::LocalRuntime;

    #[test]
    fn what_does_not_come_is_waited_for_no_longer_than_the_bound() {
        let runtime = LocalRuntime::new().expect("it works here");
        let reactor = &runtime.machine().reactor;
        let bound = Duration::from_millis(1);
        assert_eq!(
            pollster::block_on(or_after(reactor, bound, pending::<()>())),
            None
        );
        assert_eq!(pollster::block_on(or_after(reactor, bound, ready(7))), Some(7));
    }
}
