//! The threads that start targets for callers who do not wait.
//!
//! A launcher waits in each launch until the target runs, which an exec can make last for ever: a dead network file system does.
//! So there is one launcher per processor that has not been at the same launch for long, however many have.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::task::{Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use dsh_subprocess_sys::signal;

use crate::reactor::{Reactor, lock};

/// A launcher that has been at one launch for this long is stuck as far as the others are concerned. Many times what an exec
/// takes on a busy machine.
const PATIENCE: Duration = Duration::from_millis(10);

/// The launchers of one runtime. Dropping this ends them as soon as nothing is left to launch.
#[derive(Debug)]
pub(crate) struct Launchers(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Launchers that are at work, or ready for it, at the same time. Those that are stuck do not count.
    width: usize,
    /// Its alarms have references to this.
    reactor: Weak<Reactor>,
    state: Mutex<State>,
    submitted: Condvar,
}

#[derive(Default)]
struct State {
    launches: VecDeque<Launch>,
    idle: usize,
    /// Since when each launcher is at its launch, or was started for one.
    busy: HashMap<u64, Instant>,
    /// Names the next launcher.
    next: u64,
    /// Whether somebody will look for launchers that are stuck.
    alarmed: bool,
    closed: bool,
}

type Launch = Box<dyn FnOnce() + Send>;

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State")
            .field("launches", &self.launches.len())
            .field("idle", &self.idle)
            .field("busy", &self.busy)
            .finish_non_exhaustive()
    }
}

impl Launchers {
    /// Makes none yet: each is made when it is needed. The reactor has the alarm for those that are stuck.
    pub(crate) fn new(reactor: &Arc<Reactor>) -> Self {
        let width = thread::available_parallelism().map_or(1, usize::from);
        Self(Shared::new(width, reactor))
    }

    /// Has a launcher do a launch, after those that were submitted before.
    ///
    /// # Errors
    ///
    /// When there is no launcher and none can be made. The launch is dropped then.
    pub(crate) fn submit(&self, launch: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let shared = &self.0;
        let mut state = lock(&shared.state);
        state.launches.push_back(Box::new(launch));
        if state.idle >= state.launches.len() {
            drop(state);
            shared.submitted.notify_one();
            return Ok(());
        }
        if let Err(error) = shared.fill_up(&mut state)
            && state.idle == 0
            && state.busy.is_empty()
        {
            let abandoned = state.launches.pop_back();
            drop(state);
            drop(abandoned);
            return Err(error);
        }
        Ok(())
    }

    /// Ends the launchers as soon as nothing is left to launch.
    pub(crate) fn close(&self) {
        lock(&self.0.state).closed = true;
        self.0.submitted.notify_all();
    }
}

impl Drop for Launchers {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    fn new(width: usize, reactor: &Arc<Reactor>) -> Arc<Self> {
        Arc::new(Self {
            width,
            reactor: Arc::downgrade(reactor),
            state: Mutex::default(),
            submitted: Condvar::new(),
        })
    }

    /// Makes the launchers that the waiting launches lack, and sees to it that somebody looks again as long as any wait.
    fn fill_up(self: &Arc<Self>, state: &mut State) -> io::Result<()> {
        let now = Instant::now();
        let at_work = state
            .busy
            .values()
            .filter(|&&since| now.saturating_duration_since(since) < PATIENCE)
            .count();
        let lacking = self.width.saturating_sub(at_work + state.idle);
        let unserved = state.launches.len().saturating_sub(state.idle);
        let made = (0..lacking.min(unserved)).try_for_each(|_| self.make(state, now));
        if !state.alarmed
            && let Some(reactor) = self.reactor.upgrade()
        {
            state.alarmed = true;
            reactor.wake_at(now + PATIENCE, Waker::from(Arc::clone(self)));
        }
        made
    }

    fn make(self: &Arc<Self>, state: &mut State, now: Instant) -> io::Result<()> {
        let launcher = state.next;
        let shared = Arc::clone(self);
        let _mask = signal::block_for_new_thread();
        thread::Builder::new()
            .name("dsh-launch".to_owned())
            .spawn(move || shared.run(launcher))?;
        state.next += 1;
        state.busy.insert(launcher, now);
        Ok(())
    }

    /// Runs one launcher.
    fn run(&self, launcher: u64) {
        while let Some(launch) = self.take(launcher) {
            launch();
        }
    }

    /// Waits for the next launch. `None` where this launcher is not needed any more.
    fn take(&self, launcher: u64) -> Option<Launch> {
        let mut state = lock(&self.state);
        state.busy.remove(&launcher);
        loop {
            if let Some(launch) = state.launches.pop_front() {
                state.busy.insert(launcher, Instant::now());
                return Some(launch);
            }
            // Those that were stuck come back to a full house.
            if state.closed || state.idle >= self.width {
                return None;
            }
            state.idle += 1;
            state = self.submitted.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }
}

/// The alarm: launches were waiting a while ago.
impl Wake for Shared {
    fn wake(self: Arc<Self>) {
        let mut state = lock(&self.state);
        state.alarmed = false;
        if !state.launches.is_empty()
            && let Err(error) = self.fill_up(&mut state)
        {
            tracing::warn!(%error, "no thread could be made to start targets while others are stuck");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    fn reactor() -> Arc<Reactor> {
        Reactor::start("test-io", || false, || {}).expect("a thread can be made")
    }

    #[test]
    fn a_launch_that_hangs_holds_up_no_other() {
        let reactor = reactor();
        let launchers = Launchers(Shared::new(2, &reactor));
        let (ended, ends) = channel();
        let gates: Vec<_> = (0..5)
            .map(|_| {
                let (open, gate) = channel::<()>();
                let ended = ended.clone();
                let hang = move || {
                    let _ = gate.recv();
                    ended.send("hung").expect("the test goes on");
                };
                launchers.submit(hang).expect("a thread can be made");
                open
            })
            .collect();
        for _ in 0..20 {
            let ended = ended.clone();
            launchers
                .submit(move || ended.send("went on").expect("the test goes on"))
                .expect("a thread can be made");
        }
        for _ in 0..20 {
            assert_eq!(ends.recv(), Ok("went on"));
        }
        drop(gates);
        for _ in 0..5 {
            assert_eq!(ends.recv(), Ok("hung"));
        }
        reactor.close();
    }

    #[test]
    fn launchers_are_few_and_end_with_their_runtime() {
        let reactor = reactor();
        let shared = Shared::new(3, &reactor);
        let launchers = Launchers(Arc::clone(&shared));
        let (ended, ends) = channel();
        for number in 0..100 {
            let ended = ended.clone();
            launchers
                .submit(move || ended.send(number).expect("the test goes on"))
                .expect("a thread can be made");
        }
        let mut seen: Vec<i32> = ends.iter().take(100).collect();
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..100));
        drop(launchers);
        // Each has a reference of its own, and so has an alarm that is set.
        let weak = Arc::downgrade(&shared);
        drop(shared);
        while weak.strong_count() > 0 {
            thread::yield_now();
        }
        reactor.close();
    }

    #[test]
    fn what_was_submitted_is_launched_although_the_runtime_ends() {
        let reactor = reactor();
        let launchers = Launchers(Shared::new(1, &reactor));
        let (ended, ends) = channel();
        launchers.close();
        launchers
            .submit(move || ended.send(()).expect("the test goes on"))
            .expect("a thread can be made");
        drop(launchers);
        assert_eq!(ends.recv(), Ok(()));
        reactor.close();
    }
}
