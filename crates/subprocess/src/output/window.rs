//! The retained window: the last bytes of a stream, and the first ones where asked. No locks, no I/O.

use std::io::{self, IoSliceMut};

/// The first allocation of a stream that says anything at all, in bytes.
const FIRST_ALLOCATION: usize = 512;

/// The first `head_bytes` and the last `max_bytes` of a stream, whatever the chunks it arrived in.
///
/// The tail is a ring. While it grows it is a plain vector that starts at index 0, so that nothing has to be unrolled when
/// it is enlarged; it wraps only once it has its full size. The head takes bytes as they *leave* the tail: no byte is
/// stored twice, and the head never overlaps the tail.
#[derive(Debug)]
pub(super) struct Window {
    max_bytes: usize,
    /// How long the head may get. A hole in the stream lowers it to the length reached: the head never continues after
    /// a hole.
    head_bytes: usize,
    head: Vec<u8>,
    ring: Vec<u8>,
    /// Index of the oldest byte in the ring. 0 while the ring is below its full size.
    oldest: usize,
    total: u64,
}

/// What one read of the window gave.
#[derive(Debug)]
pub(super) struct Retained {
    pub(super) bytes: Vec<u8>,
    /// The stream offset of the first byte.
    pub(super) offset: u64,
    /// Bytes between the asked offset and the first byte.
    pub(super) gap: u64,
    /// Whether the asked offset lay beyond the end.
    pub(super) clamped: bool,
}

impl Window {
    /// Makes an empty window. It allocates nothing.
    pub(super) fn new(max_bytes: usize, head_bytes: usize) -> Self {
        Self {
            max_bytes,
            head_bytes,
            head: Vec::new(),
            ring: Vec::new(),
            oldest: 0,
            total: 0,
        }
    }

    /// Returns how many bytes the stream has so far, skipped ones included.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    pub(super) fn max_bytes(&self) -> usize {
        self.max_bytes
    }

    /// Returns the first bytes of the stream, as many as are kept and do not lie in the tail.
    pub(super) fn head(&self) -> &[u8] {
        &self.head
    }

    /// Returns the tail in two pieces, the older one first.
    pub(super) fn tail(&self) -> [&[u8]; 2] {
        let (newer, older) = self.ring.split_at(self.oldest);
        [older, newer]
    }

    /// Appends bytes. Copies those that stay in the tail, and those the head still lacks; no others.
    ///
    /// Where memory for a larger tail or head cannot be had, it stays as large as it is, for good.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total = self.total.saturating_add(bytes.len() as u64);
        let wanted = self.ring.len().saturating_add(bytes.len()).min(self.max_bytes);
        if !reserve(&mut self.ring, wanted, self.max_bytes) {
            self.max_bytes = self.ring.capacity();
        }
        let leaving = (self.ring.len() + bytes.len()).saturating_sub(self.max_bytes);
        self.save_head(leaving, bytes);
        if bytes.len() >= self.max_bytes {
            self.ring.clear();
            self.oldest = 0;
            self.ring
                .extend_from_slice(&bytes[bytes.len() - self.max_bytes..]);
            return;
        }
        let room = self.max_bytes - self.ring.len();
        let (growing, replacing) = bytes.split_at(room.min(bytes.len()));
        self.ring.extend_from_slice(growing);
        let (newer, older) = self.ring.split_at_mut(self.oldest);
        let (before_wrap, after_wrap) = replacing.split_at(replacing.len().min(older.len()));
        older[..before_wrap.len()].copy_from_slice(before_wrap);
        newer[..after_wrap.len()].copy_from_slice(after_wrap);
        self.advance(replacing.len());
    }

    /// Counts bytes that will never arrive. What lies before them leaves the tail, so that every read is contiguous.
    pub(super) fn skip(&mut self, count: u64) {
        if count == 0 {
            return;
        }
        self.save_head(self.ring.len(), &[]);
        self.head_bytes = self.head.len();
        self.ring.clear();
        self.oldest = 0;
        self.total = self.total.saturating_add(count);
    }

    /// Tells whether [`fill`](Self::fill) may be called: the tail has its full size, and the head needs nothing of what
    /// would be overwritten.
    pub(super) fn is_full(&self) -> bool {
        self.max_bytes > 0 && self.ring.len() == self.max_bytes && self.head.len() == self.head_bytes
    }

    /// Lets `read` overwrite the oldest bytes of the ring, in order, in at most two segments. Only for a
    /// [full](Self::is_full) window.
    pub(super) fn fill(
        &mut self,
        read: impl FnOnce(&mut [IoSliceMut<'_>]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        debug_assert!(self.is_full(), "only a full ring can be overwritten in place");
        let (newer, older) = self.ring.split_at_mut(self.oldest);
        let segments = if newer.is_empty() { 1 } else { 2 };
        let mut storage = [IoSliceMut::new(older), IoSliceMut::new(newer)];
        let count = read(&mut storage[..segments])?.min(self.ring.len());
        self.total = self.total.saturating_add(count as u64);
        self.advance(count);
        Ok(count)
    }

    /// Copies at most `limit` retained bytes from the asked offset on: the delta, never more.
    pub(super) fn read(&self, asked: u64, limit: usize) -> Retained {
        let tail_start = self.total - self.ring.len() as u64;
        // Where nothing is missing between head and tail they are one run from offset 0. Otherwise only the tail is
        // readable by offset: a read is contiguous, and what a reader lacks most is the end.
        let (first, head) = if self.head.len() as u64 == tail_start {
            (0, self.head())
        } else {
            (tail_start, &[][..])
        };
        let wanted = asked.min(self.total);
        let offset = wanted.max(first);
        let [older, newer] = self.tail();
        let mut before = usize::try_from(offset - first).unwrap_or(usize::MAX);
        let retained = head.len() + older.len() + newer.len();
        let mut bytes = Vec::with_capacity(limit.min(retained.saturating_sub(before)));
        for piece in [head, older, newer] {
            let start = before.min(piece.len());
            before -= start;
            let wanted = (piece.len() - start).min(limit - bytes.len());
            bytes.extend_from_slice(&piece[start..start + wanted]);
        }
        Retained {
            bytes,
            offset,
            gap: offset - wanted,
            clamped: asked > self.total,
        }
    }

    /// Gives the head its share of the next `leaving` bytes to leave the tail: those of the ring, oldest first, then
    /// those of `incoming` that never enter it.
    fn save_head(&mut self, leaving: usize, incoming: &[u8]) {
        let mut share = leaving.min(self.head_bytes - self.head.len());
        if share == 0 {
            return;
        }
        let (newer, older) = self.ring.split_at(self.oldest);
        for piece in [older, newer, incoming] {
            let taken = share.min(piece.len());
            let wanted = self.head.len() + taken;
            if !reserve(&mut self.head, wanted, self.head_bytes) {
                self.head_bytes = self.head.len();
                return;
            }
            self.head.extend_from_slice(&piece[..taken]);
            share -= taken;
        }
    }

    /// Makes the `count` oldest bytes, which were just overwritten, the newest.
    fn advance(&mut self, count: usize) {
        self.oldest += count;
        if self.oldest >= self.ring.len() {
            self.oldest -= self.ring.len();
        }
    }

    /// Returns how many bytes of memory the window holds.
    #[cfg(test)]
    pub(super) fn allocated(&self) -> usize {
        self.head.capacity() + self.ring.capacity()
    }
}

/// Makes room for a buffer to have `wanted` bytes, and never for more than `limit`. Doubling keeps one-byte chunks cheap; `Vec`
/// alone would double beyond the limit. `false` where the memory cannot be had.
pub(super) fn reserve(buffer: &mut Vec<u8>, wanted: usize, limit: usize) -> bool {
    if wanted <= buffer.capacity() {
        return true;
    }
    let capacity = wanted
        .max(buffer.capacity().saturating_mul(2))
        .max(FIRST_ALLOCATION)
        .min(limit);
    [capacity, wanted]
        .into_iter()
        .any(|capacity| buffer.try_reserve_exact(capacity - buffer.len()).is_ok())
}
