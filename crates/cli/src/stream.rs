//! Passing streams on, live: the command's output to ours, and our input to the command.
//!
//! Our own streams may be files, pipes or terminals, so they are read and written by threads that may block; the
//! command's pipes are read and written by the executor. Between the two there is room for one chunk: a slow reader of
//! our output fills it, then the command's pipe, and then the command waits.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use dsh_subprocess::PipeWriter;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Bytes passed on at once: what a pipe holds by default.
const CHUNK: usize = 64 * 1024;

/// What was written before the tree's end is at most this much: twice the largest pipe that a process may ask for
/// (pipe(7)), which is also the most that is kept of a terminal nobody reads.
const MOST_LEFT: usize = 2 << 20;

/// How far an output stream has come.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    written: AtomicU64,
    inside_line: AtomicBool,
}

impl Progress {
    /// Returns how many bytes were passed on.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Tells whether the last byte was no line end.
    pub(crate) fn is_inside_line(&self) -> bool {
        self.inside_line.load(Ordering::Relaxed)
    }
}

/// Passes an output stream on until its end, a failure of ours, or `over` (see [`Remainder`]).
///
/// # Errors
///
/// What writing to `ours` gave. A failure to read is the stream's end: what came before it was passed on.
pub(crate) async fn pass_on(
    mut theirs: impl AsyncRead + Unpin,
    ours: impl Write + Send + 'static,
    progress: Arc<Progress>,
    mut remainder: Remainder,
) -> io::Result<()> {
    let (chunks, queue) = mpsc::channel(1);
    let (report, written) = oneshot::channel();
    thread::Builder::new().name("output".to_owned()).spawn(move || {
        // Nobody listens any more when the wait for a stuck reader was given up.
        let _ = report.send(write_all(queue, ours, &progress));
    })?;

    let mut buffer = BytesMut::new();
    // Room first, then a read: nothing is taken from the command that cannot be passed on.
    while let Ok(room) = chunks.reserve().await {
        buffer.reserve(CHUNK);
        let count = tokio::select! {
            biased;
            count = remainder.read(&mut theirs, &mut buffer) => count,
            // The last write failed: told at once, not when the command happens to write again.
            () = chunks.closed() => break,
        };
        match count {
            Ok(0) | Err(_) => break,
            Ok(_) => room.send(buffer.split().freeze()),
        }
    }
    drop((chunks, theirs));
    written
        .await
        .unwrap_or_else(|_| Err(io::Error::other("the writing thread failed")))
}

/// Writes what comes, until there is no more of it or a write fails.
fn write_all(mut queue: mpsc::Receiver<Bytes>, mut ours: impl Write, progress: &Progress) -> io::Result<()> {
    while let Some(chunk) = queue.blocking_recv() {
        ours.write_all(&chunk)?;
        progress.written.fetch_add(chunk.len() as u64, Ordering::Relaxed);
        progress
            .inside_line
            .store(chunk.last() != Some(&b'\n'), Ordering::Relaxed);
    }
    Ok(())
}

/// How much longer a stream is read once its tree is over.
///
/// A process that escaped may hold the pipe, silent or chatty. So from then on the time spent in waiting for bytes is
/// bounded in sum, and so is their number: all that the tree itself wrote is in the pipe by then. Time spent in waiting
/// for our own reader does not count.
pub(crate) struct Remainder {
    over: CancellationToken,
    left: Duration,
    bytes_left: usize,
}

impl Remainder {
    /// Bounds the time by `left` once `over` is cancelled.
    pub(crate) fn new(over: CancellationToken, left: Duration) -> Self {
        Self {
            over,
            left,
            bytes_left: MOST_LEFT,
        }
    }

    async fn read(
        &mut self,
        theirs: &mut (impl AsyncRead + Unpin),
        buffer: &mut BytesMut,
    ) -> io::Result<usize> {
        if !self.over.is_cancelled() {
            tokio::select! {
                biased;
                count = theirs.read_buf(buffer) => return count,
                () = self.over.cancelled() => {}
            }
        }
        if self.bytes_left == 0 {
            return Ok(0);
        }
        let asked = Instant::now();
        let count = tokio::time::timeout(self.left, theirs.read_buf(buffer))
            .await
            .unwrap_or(Ok(0))?;
        self.left = self.left.saturating_sub(asked.elapsed());
        self.bytes_left = self.bytes_left.saturating_sub(count);
        Ok(count)
    }
}

/// Pumps an input into the command until either of them ends.
///
/// Up to two chunks may be read ahead of what the command takes.
///
/// # Errors
///
/// What reading the input gave. A command that reads no further is no error.
pub(crate) async fn pump(source: impl Read + Send + 'static, mut theirs: PipeWriter) -> io::Result<()> {
    let mut queue = read_ahead(source)?;
    while let Some(chunk) = queue.recv().await {
        if theirs.write_all(&chunk?).await.is_err() {
            break;
        }
    }
    Ok(())
}

/// Reads a source on a thread, a chunk ahead, to its end or its failure, which is the last item.
///
/// The thread is left behind in its read when nobody wants the chunks any more: nothing but the source, or the end of this
/// process, wakes it.
///
/// # Errors
///
/// There is no thread left to read with.
pub(crate) fn read_ahead(
    mut source: impl Read + Send + 'static,
) -> io::Result<mpsc::Receiver<io::Result<Bytes>>> {
    let (chunks, queue) = mpsc::channel(1);
    thread::Builder::new().name("input".to_owned()).spawn(move || {
        loop {
            let chunk = read_chunk(&mut source);
            let failed = chunk.is_err();
            if matches!(&chunk, Ok(bytes) if bytes.is_empty())
                || chunks.blocking_send(chunk).is_err()
                || failed
            {
                return;
            }
        }
    })?;
    Ok(queue)
}

fn read_chunk(source: &mut impl Read) -> io::Result<Bytes> {
    let mut chunk = vec![0; CHUNK];
    loop {
        match source.read(&mut chunk) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
            Ok(count) => {
                chunk.truncate(count);
                return Ok(chunk.into());
            }
        }
    }
}
