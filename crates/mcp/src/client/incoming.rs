//! The server's standard output.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use dsh_subprocess::{Error, Outcome, PipeReader};
use futures_core::future::BoxFuture;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Instant, timeout_at};

use super::framing::{Line, Lines};
use super::process::{EXIT_WAIT, ServerProcess};

/// How much is read at once, in bytes: as much as a pipe holds.
const CHUNK: usize = 64 * 1024;
/// What may lie in a pipe, in bytes, when its last writer has gone.
const LARGEST_PIPE: usize = 1024 * 1024;

/// The reading end. Every method may be cancelled: what was read is kept for the next call.
pub(super) struct Incoming {
    pipe: PipeReader,
    lines: Lines,
    chunk: Box<[u8]>,
    /// The part of the chunk that was read and not looked at yet.
    unseen: std::ops::Range<usize>,
    at_end: bool,
    /// The server's end, waited for beside its output: what it started may hold the output open for ever.
    done: BoxFuture<'static, Result<Outcome, Error>>,
    outcome: Option<Result<Outcome, Error>>,
    /// What may still be read, in bytes, once the server has ended. Whatever writes more than a pipe holds and a last line
    /// takes is not the server.
    remaining: usize,
    exit_deadline: Option<Instant>,
}

impl Incoming {
    pub(super) fn new(pipe: PipeReader, server: &ServerProcess, line_bytes: usize) -> Self {
        Self {
            pipe,
            lines: Lines::new(line_bytes),
            chunk: vec![0; CHUNK].into_boxed_slice(),
            unseen: 0..0,
            at_end: false,
            done: server.handle().done(),
            outcome: None,
            remaining: line_bytes.saturating_add(LARGEST_PIPE),
            exit_deadline: None,
        }
    }

    /// Returns the next line. `None` when the server's output has ended, or the server has and nothing of its output is left.
    pub(super) async fn line(&mut self) -> Option<Line> {
        loop {
            let mut unseen = &self.chunk[self.unseen.clone()];
            let line = self.lines.feed(&mut unseen);
            self.unseen.start = self.unseen.end - unseen.len();
            if line.is_some() {
                return line;
            }
            if self.at_end {
                return self.lines.finish();
            }
            // A pipe that always has something is never waited for: others of this task must have their turn, too.
            tokio::task::coop::consume_budget().await;
            self.unseen = 0..poll_fn(|context| self.poll_read(context)).await;
            self.at_end = self.unseen.is_empty();
        }
    }

    /// Returns how the server ended, once its output has. It is waited for a moment: most servers exit right then.
    pub(super) async fn outcome(&mut self) -> Option<Result<Outcome, Error>> {
        if self.outcome.is_none() {
            let deadline = *self
                .exit_deadline
                .get_or_insert_with(|| Instant::now() + EXIT_WAIT);
            self.outcome = timeout_at(deadline, &mut self.done).await.ok();
        }
        self.outcome.clone()
    }

    /// Reads on and forgets it, until the future is dropped: a server that blocks while it writes does not see the end of its
    /// input.
    pub(super) async fn discard(&mut self) {
        while !self.at_end {
            tokio::task::coop::consume_budget().await;
            self.at_end = poll_fn(|context| self.poll_pipe(context)).await == 0;
        }
        std::future::pending::<()>().await;
    }

    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<usize> {
        if self.outcome.is_none()
            && let Poll::Ready(outcome) = self.done.as_mut().poll(context)
        {
            self.outcome = Some(outcome);
        }
        match self.poll_pipe(context) {
            // Whoever holds the pipe now is not the server.
            Poll::Pending if self.outcome.is_some() => Poll::Ready(0),
            Poll::Ready(count) if self.outcome.is_some() => {
                let count = count.min(self.remaining);
                self.remaining -= count;
                Poll::Ready(count)
            }
            polled => polled,
        }
    }

    /// Reads into the chunk. A failure is the end: the pipe gives nothing more.
    fn poll_pipe(&mut self, context: &mut Context<'_>) -> Poll<usize> {
        let mut buffer = ReadBuf::new(&mut self.chunk);
        Pin::new(&mut self.pipe)
            .poll_read(context, &mut buffer)
            .map(|result| {
                if let Err(error) = result {
                    tracing::warn!(%error, "the output of an MCP server cannot be read");
                    return 0;
                }
                buffer.filled().len()
            })
    }
}
