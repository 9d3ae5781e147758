//! The writing end.

use std::fmt;
use std::io::{self, IoSliceMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::Notify;

use super::window::Window;
use crate::{Collect, OutputReader, SpillSource, SpillState, SpilledStream};

/// The smallest tail that [`Collector::fill`] reads into in place. A smaller one would cost more system calls than the
/// copy it saves.
const SMALLEST_IN_PLACE: usize = 32 * 1024;

/// What [`Collector::fill`] offers while it cannot read in place. On the stack.
const BUFFER_BYTES: usize = 16 * 1024;

/// One stream, shared by its collector and its readers.
pub(super) struct Stream {
    state: Mutex<State>,
    /// Wakes those who wait for growth or the end.
    pub(super) grown: Notify,
    pub(super) source: Option<Arc<dyn SpillSource>>,
}

pub(super) struct State {
    pub(super) window: Window,
    pub(super) sealed: bool,
    pub(super) spill: SpillState,
    /// The smallest offset that a waiter wants exceeded; `u64::MAX` where there is none. It spares a push that nobody
    /// waits for the cost of a notification.
    pub(super) awaited: u64,
}

impl Stream {
    /// Locks the stream. A poisoned lock is taken as it is: the only foreign code under it is the `read` of
    /// [`Collector::fill`], which runs before anything is changed.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn withdraw_spill(&self, why: String) {
        let mut state = self.lock();
        if !matches!(state.spill, SpillState::Withdrawn(_)) {
            state.spill = SpillState::Withdrawn(why);
        }
    }
}

/// Tells the readers of a stream, if there are any left, that its spill is gone. Made by [`Collector::spill_notice`].
#[derive(Clone)]
pub struct SpillNotice(Weak<Stream>);

impl SpillNotice {
    /// Says so, and why, as [`Collector::spill_withdrawn`] does.
    pub fn withdrawn(&self, why: impl Into<String>) {
        if let Some(stream) = self.0.upgrade() {
            stream.withdraw_spill(why.into());
        }
    }
}

impl fmt::Debug for SpillNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SpillNotice")
    }
}

/// The writing end of a collected stream. A provider pushes bytes, or skips ones it will never send, and seals it at
/// settlement. Dropping it seals it, too.
///
/// Every call is immediate, needs no async runtime, and never fails.
///
/// ```
/// use dsh_subprocess::{Collect, Collector};
///
/// let (mut collector, reader) = Collector::new(&Collect { max_bytes: 5, head_bytes: 4, spill: None }, None);
/// collector.push(b"how it began, and how it ended");
/// collector.seal();
///
/// let kept = reader.snapshot();
/// assert_eq!((&kept.head[..], &kept.tail[..], kept.dropped()), (&b"how "[..], &b"ended"[..], 21));
/// ```
pub struct Collector {
    stream: Arc<Stream>,
}

impl Collector {
    /// Makes a stream that retains what `collect` says. `source` reads the spill, where the world keeps one; it lives as
    /// long as the collector or any reader.
    ///
    /// Nothing is allocated for the window before bytes arrive. It then grows by doubling to exactly
    /// [`max_bytes`](Collect::max_bytes) and [`head_bytes`](Collect::head_bytes), never beyond.
    pub fn new(collect: &Collect, source: Option<Arc<dyn SpillSource>>) -> (Self, OutputReader) {
        let stream = Arc::new(Stream {
            state: Mutex::new(State {
                window: Window::new(collect.max_bytes, collect.head_bytes),
                sealed: false,
                spill: SpillState::None,
                awaited: u64::MAX,
            }),
            grown: Notify::new(),
            source,
        });
        let reader = OutputReader::new(Arc::clone(&stream));
        (Self { stream }, reader)
    }

    /// Appends bytes. Of a chunk larger than the window only what is retained is copied.
    pub fn push(&mut self, bytes: &[u8]) {
        self.extend(|window| window.push(bytes));
    }

    /// Counts bytes that a remote world left out because no reader can see them any more.
    ///
    /// Offsets stay true. The bytes are never served: a reader that stands before them is told a gap. Neither head nor
    /// tail reaches over them, so what was in the tail is given up, and a head that is still incomplete stays so; a
    /// world sends the head before it skips.
    pub fn skip(&mut self, count: u64) {
        self.extend(|window| window.skip(count));
    }

    /// Reads into the window without a copy in between: `read` gets the oldest part of the window's own storage, the
    /// whole of it, in one or two buffers to be filled in order (as `readv` does), and returns how many bytes it put
    /// there. A count above what was offered is taken as all of it.
    ///
    /// It may be called at any time, and pays once [`is_full`](Self::is_full). Before that, `read` gets one buffer of 16
    /// KiB on the stack, and the bytes are copied as by [`push`](Self::push): a provider with a larger buffer does better
    /// to push from that. On a sealed stream `read` is not called, and the result is 0.
    ///
    /// `read` must not block and must not use this stream's readers: the stream is locked meanwhile. It must not write
    /// beyond the count it returns, nor at all when it fails or returns 0, since it holds bytes that are still retained.
    ///
    /// # Errors
    ///
    /// Those of `read`; nothing is appended then.
    pub fn fill(
        &mut self,
        read: impl FnOnce(&mut [IoSliceMut<'_>]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        if self.is_full() {
            return self.extend(|window| window.fill(read)).unwrap_or(Ok(0));
        }
        if self.stream.lock().sealed {
            return Ok(0);
        }
        let mut buffer = [0; BUFFER_BYTES];
        let count = read(&mut [IoSliceMut::new(&mut buffer)])?.min(BUFFER_BYTES);
        self.push(&buffer[..count]);
        Ok(count)
    }

    /// Tells whether [`fill`](Self::fill) reads in place: the tail is at its full size of at least 32 KiB, and the head
    /// is complete. Once true it stays so, unless bytes are skipped.
    pub fn is_full(&self) -> bool {
        let state = self.stream.lock();
        state.window.max_bytes() >= SMALLEST_IN_PLACE && state.window.is_full()
    }

    /// Returns how many bytes the stream has so far, skipped ones included.
    pub fn total(&self) -> u64 {
        self.stream.lock().window.total()
    }

    /// Copies the retained tail: the whole stream so far, while the total is at most `max_bytes` and nothing was skipped.
    pub fn tail(&self) -> Vec<u8> {
        self.stream.lock().window.tail().concat()
    }

    /// Says where the stream is spilled, and how much of it is there. Ignored once the spill was withdrawn.
    pub fn spill_reached(&mut self, stream: SpilledStream) {
        let mut state = self.stream.lock();
        if !matches!(state.spill, SpillState::Withdrawn(_)) {
            state.spill = SpillState::Available(stream);
        }
    }

    /// Says that there is no spill any more, and why. It is final, and the first reason stays. It may come after
    /// [`seal`](Self::seal), since closing the file can fail.
    pub fn spill_withdrawn(&mut self, why: impl Into<String>) {
        self.stream.withdraw_spill(why.into());
    }

    /// Returns a way to say later that the spill is gone, which keeps nothing of the stream in memory: a file can be removed
    /// long after the stream has ended, to make room.
    pub fn spill_notice(&self) -> SpillNotice {
        SpillNotice(Arc::downgrade(&self.stream))
    }

    /// Ends the stream. Later calls change neither its bytes nor its total. Dropping the collector seals it, too.
    pub fn seal(&mut self) {
        let mut state = self.stream.lock();
        if state.sealed {
            return;
        }
        state.sealed = true;
        state.awaited = u64::MAX;
        drop(state);
        self.stream.grown.notify_waiters();
    }

    /// Changes the window of a stream that has not ended, and wakes who waited for it. `None` when it has ended.
    fn extend<T>(&mut self, change: impl FnOnce(&mut Window) -> T) -> Option<T> {
        let mut state = self.stream.lock();
        if state.sealed {
            return None;
        }
        let result = change(&mut state.window);
        let awaited = state.window.total() > state.awaited;
        if awaited {
            state.awaited = u64::MAX;
        }
        // Wakers are foreign code: they run without the lock.
        drop(state);
        if awaited {
            self.stream.grown.notify_waiters();
        }
        Some(result)
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.seal();
    }
}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collector").field("stream", &self.stream).finish()
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Counts only: output may hold anything, and a log of handles is no place for it.
        let state = self.lock();
        f.debug_struct("Stream")
            .field("total", &state.window.total())
            .field("sealed", &state.sealed)
            .field("spill", &state.spill)
            .finish_non_exhaustive()
    }
}
