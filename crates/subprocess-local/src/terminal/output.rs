//! The caller's reading end.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};

use super::Master;

/// Reads what the programs print.
#[derive(Debug)]
pub(super) struct Output(pub(super) Arc<Master>);

impl AsyncRead for Output {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if buffer.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        match self.0.read(context.waker(), buffer.initialize_unfilled()) {
            Some(read) => Poll::Ready(read.map(|length| buffer.advance(length))),
            None => Poll::Pending,
        }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.0.leave_unread();
    }
}
