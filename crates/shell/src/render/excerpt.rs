//! Which bytes of a stream are shown: the first and the last ones of those that were kept.

use std::borrow::Cow;

use dsh_subprocess::{Snapshot, whole_characters};

/// What is shown of a stream, as text that is not folded yet.
pub(super) struct Excerpt<'a> {
    /// How the stream began. Empty where nothing is left out, and where only the end was kept.
    pub(super) head: Cow<'a, str>,
    /// How the stream ended, or all of it.
    pub(super) tail: Cow<'a, str>,
    /// Bytes of the stream between the two.
    pub(super) left_out: u64,
    /// How many times bytes that are no UTF-8 were replaced by U+FFFD.
    pub(super) replaced: usize,
}

/// Chooses at most `max_bytes` of what was kept, cut between characters.
///
/// The first part of a character at the end of a stream that goes on is not shown, and does not count as left out: the
/// rest of it is still to come.
pub(super) fn excerpt(snapshot: &Snapshot, max_bytes: usize) -> Excerpt<'_> {
    let kept = Kept {
        head: &snapshot.head,
        tail: &snapshot.tail,
    };
    let missing = snapshot.dropped() > 0;
    let (first, last) = kept.shares(missing, max_bytes);
    let cut = missing || first + last < kept.len();

    let head = kept.first(first);
    let shown = if cut {
        whole_characters(&head, true, false)
    } else {
        0..head.len()
    };
    let head = part(head, shown);

    let tail = kept.last(last);
    let shown = whole_characters(&tail, !cut, snapshot.sealed);
    let left_out = if cut {
        let tail_from = snapshot.total - (tail.len() - shown.start) as u64;
        tail_from - head.len() as u64
    } else {
        0
    };
    let tail = part(tail, shown);

    let (head, replaced_in_head) = decode(head);
    let (tail, replaced_in_tail) = decode(tail);
    Excerpt {
        head,
        tail,
        left_out,
        replaced: replaced_in_head + replaced_in_tail,
    }
}

/// What a snapshot has, in one sequence.
#[derive(Clone, Copy)]
struct Kept<'a> {
    head: &'a [u8],
    tail: &'a [u8],
}

impl<'a> Kept<'a> {
    fn len(&self) -> usize {
        self.head.len() + self.tail.len()
    }

    /// Returns how many of the first and how many of the last bytes are shown. With bytes `missing` between head and
    /// tail, the first ones are of the head and the last ones of the tail.
    fn shares(&self, missing: bool, max_bytes: usize) -> (usize, usize) {
        let half = max_bytes / 2;
        if missing {
            let first = self.head.len().min(half);
            let last = self.tail.len().min(max_bytes - first);
            (self.head.len().min(max_bytes - last), last)
        } else if self.len() <= max_bytes {
            (0, self.len())
        } else {
            (half, max_bytes - half)
        }
    }

    fn first(&self, count: usize) -> Cow<'a, [u8]> {
        match count.checked_sub(self.head.len()) {
            None | Some(0) => Cow::Borrowed(&self.head[..count]),
            Some(of_tail) if self.head.is_empty() => Cow::Borrowed(&self.tail[..of_tail]),
            Some(of_tail) => Cow::Owned([self.head, &self.tail[..of_tail]].concat()),
        }
    }

    fn last(&self, count: usize) -> Cow<'a, [u8]> {
        match count.checked_sub(self.tail.len()) {
            None | Some(0) => Cow::Borrowed(&self.tail[self.tail.len() - count..]),
            Some(of_head) => {
                let from = self.head.len() - of_head;
                Cow::Owned([&self.head[from..], self.tail].concat())
            }
        }
    }
}

fn part(bytes: Cow<'_, [u8]>, range: std::ops::Range<usize>) -> Cow<'_, [u8]> {
    match bytes {
        Cow::Borrowed(bytes) => Cow::Borrowed(&bytes[range]),
        Cow::Owned(mut bytes) => {
            bytes.truncate(range.end);
            bytes.drain(..range.start);
            Cow::Owned(bytes)
        }
    }
}

fn decode(bytes: Cow<'_, [u8]>) -> (Cow<'_, str>, usize) {
    let text = match bytes {
        Cow::Borrowed(bytes) => std::str::from_utf8(bytes)
            .map(Cow::Borrowed)
            .map_err(|_| Cow::Borrowed(bytes)),
        Cow::Owned(bytes) => String::from_utf8(bytes)
            .map(Cow::Owned)
            .map_err(|error| Cow::Owned(error.into_bytes())),
    };
    text.map_or_else(
        |bytes| {
            let replaced = bytes
                .utf8_chunks()
                .filter(|chunk| !chunk.invalid().is_empty())
                .count();
            (Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()), replaced)
        },
        |text| (text, 0),
    )
}
