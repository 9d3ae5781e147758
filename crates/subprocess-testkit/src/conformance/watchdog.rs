//! The bound on every wait of the suite: a world that breaks its promise fails a check, and never hangs it.
//!
//! Two nets. [`within`] bounds one wait and panics inside the check, so that unwinding drops the runtime and with it
//! whatever the check had started. [`run`] bounds a check that blocks its thread and can be unwound by nobody.

use std::fmt::Display;
use std::future::{Future, poll_fn};
use std::panic::resume_unwind;
use std::pin::pin;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How long one wait may take: 30 s. It is generous, since it only tells a slow machine from a broken promise.
pub const BOUND: Duration = Duration::from_secs(30);

/// Awaits something that a world promises.
///
/// ```
/// use dsh_subprocess_testkit::conformance::within;
/// let answer = pollster::block_on(within("an answer", async { 7 }));
/// assert_eq!(answer, 7);
/// ```
///
/// # Panics
///
/// With `what`, after [`BOUND`].
pub async fn within<T>(what: impl Display, future: impl Future<Output = T>) -> T {
    match within_span(BOUND, future).await {
        Some(value) => value,
        None => panic!("waited {BOUND:?} in vain for {what}"),
    }
}

/// The state that a timer and the future it bounds share.
#[derive(Default)]
struct Alarm {
    rung: bool,
    waker: Option<Waker>,
}

/// Awaits a future for a span of time. `None` when the span was over first.
async fn within_span<T>(span: Duration, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let alarm = Arc::new(Mutex::new(Alarm::default()));
    // The timer thread sleeps until the span is over or this sender is dropped, whichever is first.
    let mut timer = None;
    poll_fn(|context| {
        if let Poll::Ready(value) = future.as_mut().poll(context) {
            return Poll::Ready(Some(value));
        }
        let mut state = alarm.lock().unwrap_or_else(PoisonError::into_inner);
        if state.rung {
            return Poll::Ready(None);
        }
        state.waker = Some(context.waker().clone());
        // Most waits are over at the first poll and need no thread.
        timer.get_or_insert_with(|| start_timer(span, Arc::clone(&alarm)));
        Poll::Pending
    })
    .await
}

fn start_timer(span: Duration, alarm: Arc<Mutex<Alarm>>) -> (mpsc::Sender<()>, JoinHandle<()>) {
    let (stop, stopped) = mpsc::channel();
    let thread = thread::spawn(move || {
        if let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(span) {
            let waker = {
                let mut state = alarm.lock().unwrap_or_else(PoisonError::into_inner);
                state.rung = true;
                state.waker.take()
            };
            waker.into_iter().for_each(Waker::wake);
        }
    });
    (stop, thread)
}

/// Runs one check on a thread of its own, without any executor but the simplest, and passes its panic on.
///
/// The tests that [`conformance_suite!`](crate::conformance_suite) makes call it.
///
/// ```
/// dsh_subprocess_testkit::conformance::run("sums_are_right", async || assert_eq!(1 + 1, 2));
/// ```
///
/// # Panics
///
/// As the check does, and when the check blocks its thread for longer than any of its waits may take.
pub fn run(name: &str, check: impl AsyncFnOnce() + Send + 'static) {
    run_bounded(name, BOUND * 3, check);
}

fn run_bounded(name: &str, bound: Duration, check: impl AsyncFnOnce() + Send + 'static) {
    let (done, finished) = mpsc::channel::<()>();
    let checking = thread::spawn(move || {
        // Dropped at the end, also by a panic.
        let _done = done;
        pollster::block_on(check());
    });
    match finished.recv_timeout(bound) {
        Err(RecvTimeoutError::Timeout) => panic!("`{name}` has blocked its thread for {bound:?}"),
        Ok(()) | Err(RecvTimeoutError::Disconnected) => {
            if let Err(panic) = checking.join() {
                resume_unwind(panic);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    const SHORT: Duration = Duration::from_millis(10);

    fn panic_text(run: impl FnOnce()) -> String {
        let panic = catch_unwind(AssertUnwindSafe(run)).expect_err("it did not panic");
        match panic.downcast::<String>() {
            Ok(text) => *text,
            Err(other) => (*other.downcast::<&str>().expect("a text")).to_owned(),
        }
    }

    #[test]
    fn what_is_there_is_given_without_a_timer() {
        assert_eq!(pollster::block_on(within_span(Duration::ZERO, ready(7))), Some(7));
    }

    #[test]
    fn what_never_comes_is_given_up() {
        assert_eq!(pollster::block_on(within_span(SHORT, pending::<()>())), None);
    }

    #[test]
    fn what_comes_from_another_thread_is_waited_for() {
        let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
        let sending = thread::spawn(move || sender.blocking_send(7));
        assert_eq!(
            pollster::block_on(within_span(BOUND, receiver.recv())),
            Some(Some(7))
        );
        assert!(sending.join().expect("the sender").is_ok());
    }

    #[test]
    fn a_timer_ends_with_the_wait_it_bounds() {
        let alarm = Arc::new(Mutex::new(Alarm::default()));
        let (stop, timer) = start_timer(BOUND, Arc::clone(&alarm));
        drop(stop);
        timer.join().expect("the timer");
        assert!(
            !alarm.lock().expect("nobody panicked").rung,
            "the alarm rang although it was stopped"
        );
    }

    #[test]
    fn the_panic_of_a_check_is_passed_on() {
        assert_eq!(
            panic_text(|| run("check", async || panic!("broken promise"))),
            "broken promise"
        );
    }

    #[test]
    fn a_check_that_blocks_its_thread_is_named() {
        let (hold, held) = mpsc::channel::<()>();
        let text = panic_text(|| run_bounded("stuck", SHORT, async move || assert!(held.recv().is_err())));
        assert!(text.contains("`stuck`"), "{text}");
        drop(hold);
    }
}
