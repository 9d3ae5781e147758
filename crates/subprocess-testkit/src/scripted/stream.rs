//! The streams of one scripted tree, on the world's side.

use std::collections::VecDeque;
use std::io;
use std::task::{Poll, Waker};

use bytes::{Buf, Bytes};
use dsh_subprocess::Collector;
use tokio::io::ReadBuf;

use super::spill::SpillWriter;

/// Bytes a raw pipe holds before its writer has to wait.
const PIPE_CAPACITY: usize = 65_536;

/// One output stream.
#[derive(Debug)]
pub(super) struct OutputStream {
    pub(super) sink: Sink,
    /// Whether the target has closed its own end.
    pub(super) target_closed: bool,
    /// Whether nobody can write any more, or the drain cut the stream off.
    pub(super) ended: bool,
}

/// Where an output stream goes.
#[derive(Debug)]
pub(super) enum Sink {
    Inherited(Vec<u8>),
    Collected {
        collector: Collector,
        max_bytes: usize,
        spill: Option<SpillWriter>,
    },
    /// Collected, and complete.
    Sealed,
    Piped(OutputPipe),
}

/// What is between a scripted target and the reader of its raw output.
#[derive(Debug)]
pub(super) struct OutputPipe {
    buffer: VecDeque<u8>,
    capacity: usize,
    /// Whether what nobody will read is thrown away, as on a terminal.
    forgets: bool,
    reader: Option<Waker>,
    reader_gone: bool,
}

/// What came of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Written {
    All,
    /// The pipe is full.
    Some,
    /// Nobody will ever read.
    Broken,
}

impl OutputStream {
    pub(super) fn new(sink: Sink) -> Self {
        Self {
            sink,
            target_closed: false,
            ended: false,
        }
    }

    /// Takes as many bytes as the stream has room for. What is written to a stream that has ended is lost.
    pub(super) fn write(&mut self, bytes: &mut Bytes, wakers: &mut Vec<Waker>) -> Written {
        if self.ended {
            bytes.clear();
            return Written::All;
        }
        match &mut self.sink {
            Sink::Inherited(written) => written.extend_from_slice(&std::mem::take(bytes)),
            Sink::Collected {
                collector,
                max_bytes,
                spill,
            } => {
                let bytes = std::mem::take(bytes);
                collector.push(&bytes);
                if let Some(spill) = spill {
                    spill.append(&bytes, *max_bytes, collector);
                }
            }
            Sink::Sealed => bytes.clear(),
            Sink::Piped(pipe) => return pipe.write(bytes, wakers),
        }
        Written::All
    }

    /// Takes bytes that the world keeps to itself where the stream is collected.
    pub(super) fn keep(&mut self, bytes: &mut Bytes, wakers: &mut Vec<Waker>) -> Written {
        match &mut self.sink {
            Sink::Collected {
                collector,
                max_bytes,
                spill,
            } if !self.ended => {
                let bytes = std::mem::take(bytes);
                collector.skip(bytes.len() as u64);
                if let Some(spill) = spill {
                    spill.append(&bytes, *max_bytes, collector);
                }
                Written::All
            }
            _ => self.write(bytes, wakers),
        }
    }

    /// Ends the stream: there will be no more bytes.
    pub(super) fn end(&mut self, wakers: &mut Vec<Waker>) {
        self.ended = true;
        match &mut self.sink {
            Sink::Inherited(_) | Sink::Sealed => {}
            Sink::Collected { collector, .. } => {
                collector.seal();
                // From here on only readers hold the stream, and its spill with it.
                self.sink = Sink::Sealed;
            }
            Sink::Piped(pipe) => wakers.extend(pipe.reader.take()),
        }
    }

    /// Sets how many bytes a raw stream holds from now on.
    pub(super) fn set_capacity(&mut self, bytes: usize) {
        if let Sink::Piped(pipe) = &mut self.sink {
            pipe.capacity = bytes;
        }
    }

    /// Tells whether the runtime keeps its bytes.
    pub(super) fn is_collected(&self) -> bool {
        matches!(self.sink, Sink::Collected { .. })
    }

    /// Tells whether `done` waits for its end: the host's own streams never end with a child.
    pub(super) fn is_owned(&self) -> bool {
        !matches!(self.sink, Sink::Inherited(_))
    }

    /// Returns what was written to the host's own stream.
    pub(super) fn inherited(&self) -> &[u8] {
        match &self.sink {
            Sink::Inherited(written) => written,
            Sink::Collected { .. } | Sink::Sealed | Sink::Piped(_) => &[],
        }
    }

    /// Reads from a raw pipe.
    pub(super) fn poll_read(&mut self, buffer: &mut ReadBuf<'_>, waker: &Waker) -> Poll<io::Result<()>> {
        let Sink::Piped(pipe) = &mut self.sink else {
            return Poll::Ready(Ok(()));
        };
        if pipe.buffer.is_empty() && !self.ended {
            pipe.reader = Some(waker.clone());
            return Poll::Pending;
        }
        let (first, _) = pipe.buffer.as_slices();
        let count = first.len().min(buffer.remaining());
        buffer.put_slice(&first[..count]);
        pipe.buffer.drain(..count);
        Poll::Ready(Ok(()))
    }

    /// Notes that the reader of the raw pipe was dropped.
    pub(super) fn reader_dropped(&mut self) {
        if let Sink::Piped(pipe) = &mut self.sink {
            pipe.reader_gone = true;
            pipe.buffer.clear();
        }
    }
}

impl OutputPipe {
    /// Makes a pipe.
    pub(super) fn new() -> Self {
        Self {
            buffer: VecDeque::new(),
            capacity: PIPE_CAPACITY,
            forgets: false,
            reader: None,
            reader_gone: false,
        }
    }

    /// Makes the output of a terminal, of which a reader that has gone is no failure.
    pub(super) fn of_terminal() -> Self {
        Self {
            forgets: true,
            ..Self::new()
        }
    }

    fn write(&mut self, bytes: &mut Bytes, wakers: &mut Vec<Waker>) -> Written {
        if bytes.is_empty() {
            return Written::All;
        }
        if self.reader_gone {
            if self.forgets {
                bytes.clear();
                return Written::All;
            }
            return Written::Broken;
        }
        let count = bytes.len().min(self.capacity.saturating_sub(self.buffer.len()));
        if count > 0 {
            self.buffer.extend(&bytes[..count]);
            bytes.advance(count);
            wakers.extend(self.reader.take());
        }
        if bytes.is_empty() {
            Written::All
        } else {
            Written::Some
        }
    }
}

/// The target's standard input.
#[derive(Debug, Default)]
pub(super) struct InputStream {
    buffer: VecDeque<u8>,
    /// Whether there will be no more bytes.
    writer_closed: bool,
    reader_gone: bool,
    writer: Option<Waker>,
    /// Everything the target has read.
    received: Vec<u8>,
}

impl InputStream {
    /// Makes an input of these bytes and no more.
    pub(super) fn holding(bytes: &[u8]) -> Self {
        Self {
            buffer: bytes.iter().copied().collect(),
            writer_closed: true,
            ..Self::default()
        }
    }

    /// Reads what is there, at most `limit` bytes of it.
    pub(super) fn read(&mut self, limit: usize, wakers: &mut Vec<Waker>) -> Bytes {
        let bytes: Bytes = self.buffer.drain(..limit.min(self.buffer.len())).collect();
        self.received.extend_from_slice(&bytes);
        if !bytes.is_empty() {
            wakers.extend(self.writer.take());
        }
        bytes
    }

    /// Reads to the end of a line. `None` while there is none.
    pub(super) fn read_line(&mut self, wakers: &mut Vec<Waker>) -> Option<Bytes> {
        let end = self.buffer.iter().position(|&byte| byte == b'\n')?;
        Some(self.read(end + 1, wakers))
    }

    /// Takes bytes that were typed; whether there is room is the terminal's affair.
    pub(super) fn hold(&mut self, bytes: &[u8]) {
        self.buffer.extend(bytes);
    }

    /// Tells how many bytes wait to be read.
    pub(super) fn unread(&self) -> usize {
        self.buffer.len()
    }

    /// Returns all that ever came, read or not.
    pub(super) fn all(&self) -> Vec<u8> {
        self.received.iter().chain(&self.buffer).copied().collect()
    }

    /// Tells whether everything was read and no more will come.
    pub(super) fn is_at_end(&self) -> bool {
        self.reader_gone || (self.writer_closed && self.buffer.is_empty())
    }

    pub(super) fn received(&self) -> &[u8] {
        &self.received
    }

    /// Writes into the pipe.
    pub(super) fn poll_write(&mut self, bytes: &[u8], waker: &Waker) -> Poll<io::Result<usize>> {
        if self.reader_gone || self.writer_closed {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let count = bytes.len().min(PIPE_CAPACITY.saturating_sub(self.buffer.len()));
        if count == 0 && !bytes.is_empty() {
            self.writer = Some(waker.clone());
            return Poll::Pending;
        }
        self.buffer.extend(&bytes[..count]);
        Poll::Ready(Ok(count))
    }

    /// Says that no more bytes come.
    pub(super) fn close(&mut self) {
        self.writer_closed = true;
    }

    /// Says that nobody reads any more.
    pub(super) fn reader_ended(&mut self, wakers: &mut Vec<Waker>) {
        self.reader_gone = true;
        wakers.extend(self.writer.take());
    }
}
