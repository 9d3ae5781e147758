//! What goes on in a session: which calls run, whether its client is there, and since when nothing has happened.

use std::time::Duration;

use dsh_jobs::JobSession;
use tokio::sync::watch;

/// The counts of one session.
pub(super) struct Traffic {
    now: watch::Sender<Counts>,
    max_calls: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Counts {
    /// Calls that run.
    calls: usize,
    /// Streams on which the client listens.
    listening: usize,
    /// Messages that came, so that each is a change.
    messages: u64,
}

/// A call that runs, until it is dropped.
pub(super) struct CallGuard<'a> {
    traffic: &'a Traffic,
    jobs: &'a JobSession,
}

impl Traffic {
    pub(super) fn new(max_calls: usize) -> Self {
        Self {
            now: watch::Sender::new(Counts::default()),
            max_calls,
        }
    }

    /// Counts a call, unless there are too many.
    pub(super) fn begin_call<'a>(&'a self, jobs: &'a JobSession) -> Option<CallGuard<'a>> {
        let begun = self.now.send_if_modified(|now| {
            let room = now.calls < self.max_calls;
            if room {
                now.calls += 1;
                jobs.set_busy(true);
            }
            room
        });
        begun.then(|| CallGuard { traffic: self, jobs })
    }

    pub(super) fn max_calls(&self) -> usize {
        self.max_calls
    }

    /// Counts a message.
    pub(super) fn message(&self) {
        self.now.send_modify(|now| now.messages += 1);
    }

    /// Counts a stream on which the client listens.
    pub(super) fn begin_listening(&self) {
        self.now.send_modify(|now| now.listening += 1);
    }

    /// Counts it no longer.
    pub(super) fn end_listening(&self) {
        self.now.send_modify(|now| now.listening -= 1);
    }

    /// Resolves when no call runs.
    pub(super) async fn no_calls(&self) {
        self.until(|now| now.calls == 0).await;
    }

    /// Resolves when the client has listened to nothing for a while, although a call of it runs.
    pub(super) async fn abandoned_for(&self, window: Duration) {
        let abandoned = |now: &Counts| now.listening == 0 && now.calls > 0;
        let mut now = self.now.subscribe();
        loop {
            // The sender is borrowed, so it cannot go while this waits.
            let _ = now.wait_for(abandoned).await;
            let back = now.wait_for(|now| !abandoned(now));
            if tokio::time::timeout(window, back).await.is_err() {
                return;
            }
        }
    }

    /// Resolves when no call has run, no stream was open and no message came for a while.
    pub(super) async fn idle_for(&self, window: Duration) {
        let mut now = self.now.subscribe();
        loop {
            let _ = now.wait_for(|now| now.calls == 0 && now.listening == 0).await;
            if tokio::time::timeout(window, now.changed()).await.is_err() {
                return;
            }
        }
    }

    async fn until(&self, mut reached: impl FnMut(&Counts) -> bool) {
        // The sender is borrowed, so it cannot go while this waits.
        let _ = self.now.subscribe().wait_for(|now| reached(now)).await;
    }
}

impl Drop for CallGuard<'_> {
    fn drop(&mut self) {
        self.traffic.now.send_modify(|now| {
            now.calls -= 1;
            if now.calls == 0 {
                self.jobs.set_busy(false);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use dsh_jobs::{Jobs, Limits};

    use super::*;

    const WINDOW: Duration = Duration::from_secs(10);

    fn jobs() -> JobSession {
        let jobs = Jobs::new(Limits::default()).expect("the limits are right");
        jobs.open("owner").expect("a session opens")
    }

    #[tokio::test]
    async fn a_call_beyond_the_limit_is_refused_and_counts_for_nothing() {
        let (traffic, jobs) = (Traffic::new(1), jobs());
        let first = traffic.begin_call(&jobs).expect("there is room");
        assert!(traffic.begin_call(&jobs).is_none());
        assert!(traffic.begin_call(&jobs).is_none());
        drop(first);
        traffic.no_calls().await;
        assert!(traffic.begin_call(&jobs).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_is_idle_once_nothing_has_happened_for_the_whole_window() {
        let (traffic, jobs) = (Traffic::new(1), jobs());
        let begin = tokio::time::Instant::now();
        let busy = async {
            let call = traffic.begin_call(&jobs).expect("there is room");
            tokio::time::sleep(WINDOW * 3).await;
            traffic.begin_listening();
            drop(call);
            tokio::time::sleep(WINDOW * 3).await;
            traffic.end_listening();
            tokio::time::sleep(WINDOW / 2).await;
            traffic.message();
        };
        tokio::join!(biased; busy, traffic.idle_for(WINDOW));
        assert_eq!(begin.elapsed(), WINDOW * 7 + WINDOW / 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_comes_back_in_time_has_not_abandoned_its_call() {
        let (traffic, jobs) = (Traffic::new(1), jobs());
        let begin = tokio::time::Instant::now();
        let client = async {
            let call = traffic.begin_call(&jobs).expect("there is room");
            tokio::time::sleep(WINDOW / 2).await;
            traffic.begin_listening();
            tokio::time::sleep(WINDOW * 2).await;
            traffic.end_listening();
            call
        };
        let (_call, ()) = tokio::join!(biased; client, traffic.abandoned_for(WINDOW));
        assert_eq!(begin.elapsed(), WINDOW * 3 + WINDOW / 2);
    }
}
