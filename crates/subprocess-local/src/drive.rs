//! A thread that blocks on a future does the runtime's waiting meanwhile, so that what happens wakes this thread and no
//! other.
//!
//! Otherwise two idle threads would be woken one after the other: the runtime's, which sees the event, and then the one
//! that waits for its outcome.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use dsh_subprocess_sys::event::Patience;

use crate::reactor::Reactor;

/// The thread is busy: with the future, or with serving. It looks for a notice before it sleeps.
const BUSY: u8 = 0;
/// It sleeps in the reactor's wait, or is about to: the bell wakes it.
const DRIVING: u8 = 1;
/// It sleeps, or is about to, and somebody else drives.
const PARKED: u8 = 2;
/// The future is to be polled again.
const NOTIFIED: u8 = 3;

/// Runs a future to its end on this thread.
pub(crate) fn block_on<F: Future>(reactor: &Arc<Reactor>, future: F) -> F::Output {
    let mut future = pin!(future);
    let sleeper = Arc::new(Sleeper {
        state: AtomicU8::new(BUSY),
        thread: thread::current(),
        reactor: Arc::clone(reactor),
    });
    let waker = Waker::from(Arc::clone(&sleeper));
    let mut context = Context::from_waker(&waker);
    loop {
        // Without the drive: this may take long.
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        sleeper.sleep();
    }
}

/// A thread that blocks on a future. As a waker it may outlive that by any time.
struct Sleeper {
    state: AtomicU8,
    thread: Thread,
    reactor: Arc<Reactor>,
}

impl Sleeper {
    /// Sleeps until notified, and takes the notice.
    fn sleep(&self) {
        if !self.drive() {
            while self.enter(PARKED) {
                thread::park();
                self.leave(PARKED);
            }
        }
        self.state.store(BUSY, Ordering::Release);
    }

    /// Drives the reactor until notified. `false` when somebody else does, or nobody may.
    fn drive(&self) -> bool {
        let Some(mut drive) = self.reactor.try_drive() else {
            return false;
        };
        let mut able = true;
        while able && self.enter(DRIVING) {
            drive.tidy();
            able = drive.wait(Patience::Endless);
            // Before anything is served, so that a notice from this very thread rings no bell.
            self.leave(DRIVING);
            drive.serve();
            able &= !self.reactor.is_closing();
        }
        drop(drive);
        // The bell that told of the end was heard here, and is meant for the reactor's own thread.
        self.reactor.nudge();
        able
    }

    /// Goes to sleep this way, unless notified.
    fn enter(&self, way: u8) -> bool {
        self.state
            .compare_exchange(BUSY, way, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// Has woken up. A notice stays.
    fn leave(&self, way: u8) {
        let _ = self
            .state
            .compare_exchange(way, BUSY, Ordering::AcqRel, Ordering::Acquire);
    }
}

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        match self.state.swap(NOTIFIED, Ordering::AcqRel) {
            // It may have left its wait by now, and somebody else hears the bell. That one serves nothing then, and waits on.
            DRIVING => self.reactor.ring(),
            PARKED => self.thread.unpark(),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio_util::sync::CancellationToken;

    fn reactor() -> Arc<Reactor> {
        Reactor::start("test-io", || false, || {}).expect("a thread can be made")
    }

    #[test]
    fn issue_2_a_thread_that_does_not_get_the_drive_sleeps_until_its_future_is_woken() {
        let reactor = reactor();
        let drive = reactor.try_drive().expect("nobody has it");
        let token = CancellationToken::new();
        thread::scope(|scope| {
            let blocked = scope.spawn(|| block_on(&reactor, token.cancelled()));
            token.cancel();
            blocked.join().expect("it does not panic");
        });
        drop(drive);
        assert!(reactor.try_drive().is_some());
        reactor.close();
    }

    #[test]
    fn issue_2_nobody_else_drives_a_reactor_that_is_to_end() {
        let reactor = reactor();
        reactor.close();
        assert!(reactor.try_drive().is_none());
        block_on(&reactor, async {});
    }

    #[test]
    fn issue_2_what_was_put_off_is_done_before_the_thread_sleeps() {
        let reactor = reactor();
        let (token, chore) = (CancellationToken::new(), CancellationToken::new());
        // A panic of one keeps none of the others from being done.
        reactor.put_off(|| panic!("expected by this test"));
        let (cancelled, done) = (token.clone(), chore.clone());
        reactor.put_off(move || {
            done.cancel();
            cancelled.cancel();
        });
        block_on(&reactor, token.cancelled());
        assert!(chore.is_cancelled());
        reactor.close();
    }
}
