//! Waiting for a future and for descriptors at once, on one thread and without an executor.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::{read, write};

/// What wakes the thread when a future has moved on: a counter of the kernel's (eventfd(2)).
pub(super) struct Bell(Arc<Counter>);

struct Counter(OwnedFd);

impl Wake for Counter {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // A counter that is full rings already.
        let _ = write(&self.0, &1_u64.to_ne_bytes());
    }
}

impl Bell {
    /// Makes one.
    ///
    /// # Errors
    ///
    /// There is no descriptor left.
    pub(super) fn new() -> io::Result<Self> {
        let counter = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self(Arc::new(Counter(counter))))
    }

    /// Asks a future, which rings when it is worth asking again.
    pub(super) fn poll<T>(&self, future: Pin<&mut impl Future<Output = T>>) -> Option<T> {
        let waker = Waker::from(Arc::clone(&self.0));
        match future.poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        }
    }

    /// Waits for a future alone.
    pub(super) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        loop {
            if let Some(value) = self.poll(future.as_mut()) {
                // What it took from another future's rings is given back.
                self.0.wake_by_ref();
                return value;
            }
            self.wait_for(&mut [PollFd::new(&self.0.0, PollFlags::IN)]);
        }
    }

    /// Waits until the bell rings or a descriptor is readable, and tells which of the descriptors are.
    pub(super) fn wait(&self, one: &impl AsFd, other: Option<&impl AsFd>) -> (bool, bool) {
        let mut waited = vec![
            PollFd::new(&self.0.0, PollFlags::IN),
            PollFd::new(one, PollFlags::IN),
        ];
        waited.extend(other.map(|other| PollFd::new(other, PollFlags::IN)));
        self.wait_for(&mut waited);
        let is_ready = |at: usize| waited.get(at).is_some_and(|fd| !fd.revents().is_empty());
        (is_ready(1), is_ready(2))
    }

    fn wait_for(&self, waited: &mut [PollFd<'_>]) {
        // Interrupted by a signal that has a handler, or out of kernel memory for a moment: whoever waits asks again.
        let _ = poll(waited, None);
        let mut rings = [0; size_of::<u64>()];
        // Empty unless it rang.
        let _ = read(&self.0.0, &mut rings);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::thread;

    /// Ready when it was asked for the third time; each time another thread rings.
    fn third_time() -> impl Future<Output = u32> {
        let mut asked = 0;
        poll_fn(move |context| {
            asked += 1;
            if asked == 3 {
                return Poll::Ready(asked);
            }
            let waker = context.waker().clone();
            thread::spawn(move || waker.wake());
            Poll::Pending
        })
    }

    #[test]
    fn a_future_is_asked_whenever_it_rings() {
        let bell = Bell::new().expect("a descriptor is left");
        assert_eq!(bell.block_on(third_time()), 3);
    }

    #[test]
    fn a_future_that_is_waited_for_meanwhile_takes_no_ring_from_another() {
        let bell = Bell::new().expect("a descriptor is left");
        let mut other = pin!(third_time());
        assert_eq!(bell.poll(other.as_mut()), None);
        assert_eq!(bell.block_on(third_time()), 3);
        assert_eq!(bell.block_on(other), 3);
    }

    #[test]
    fn it_is_told_which_descriptor_is_readable() {
        let bell = Bell::new().expect("a descriptor is left");
        let (silent, _kept) = io::pipe().expect("a pipe can be made");
        let (ended, writer) = io::pipe().expect("a pipe can be made");
        drop(writer);
        assert_eq!(bell.wait(&silent, Some(&ended)), (false, true));
        assert_eq!(bell.wait(&ended, Some(&silent)), (true, false));
        assert_eq!(bell.wait(&ended, None::<&io::PipeReader>), (true, false));
    }
}
