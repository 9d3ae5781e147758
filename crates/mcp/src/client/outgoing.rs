//! The server's standard input.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use dsh_subprocess::PipeWriter;
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage};
use tokio::io::AsyncWrite;
use tokio::sync::Semaphore;

/// How many answers to the server's own requests may wait for it to read them, until no more of its messages are read.
const UNREAD_ANSWERS: usize = 1024;

/// The writing end. Messages go out one after the other; each is sent once the pipe has taken all of it.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// Whose turn it is, in the order of asking.
    turn: tokio::sync::Mutex<()>,
    pipe: Mutex<Pipe>,
    answers: Arc<Semaphore>,
}

#[derive(Debug)]
struct Pipe {
    state: State,
    /// What the pipe has not taken of the last line. It outlives the future that began it: half a line would spoil the next.
    rest: Vec<u8>,
    taken: usize,
    /// Whom the end of the session must wake.
    blocked: Option<Waker>,
}

#[derive(Debug)]
enum State {
    Open(PipeWriter),
    /// A write failed.
    Broken,
    Closed,
}

/// Why a message was not sent.
#[derive(Debug)]
pub(super) enum Failure {
    /// The session was closed from this side.
    Closed,
    /// The message is no JSON.
    Encode(serde_json::Error),
    /// The server's end is closed; of the first message that found it so, the cause.
    Broken(Option<io::Error>),
}

impl Outgoing {
    pub(super) fn new(pipe: PipeWriter) -> Self {
        Self {
            turn: tokio::sync::Mutex::default(),
            pipe: Mutex::new(Pipe {
                state: State::Open(pipe),
                rest: Vec::new(),
                taken: 0,
                blocked: None,
            }),
            answers: Arc::new(Semaphore::new(UNREAD_ANSWERS)),
        }
    }

    /// Gives the server its end of file, at once, whatever is being written. A later send fails.
    pub(super) fn close(&self) {
        let mut pipe = self.lock();
        let end = std::mem::replace(&mut pipe.state, State::Closed);
        pipe.rest = Vec::new();
        let blocked = pipe.blocked.take();
        drop(pipe);
        drop(end);
        if let Some(blocked) = blocked {
            blocked.wake();
        }
    }

    /// Resolves when the server is not too far behind with the answers to its own requests. A server that asks and never reads
    /// would otherwise fill the memory with them.
    pub(super) async fn few_answers_wait(&self) {
        // The semaphore is never closed.
        drop(self.answers.acquire().await);
    }

    /// Sends one message, once those before it are sent.
    ///
    /// A future that is dropped has sent nothing, or the whole message goes out before the next one.
    pub(super) fn send(
        self: Arc<Self>,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Failure>> + Send + 'static {
        let answer = matches!(message, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_))
            .then(|| Arc::clone(&self.answers).try_acquire_owned());
        async move {
            let _answer = answer;
            let _turn = self.turn.lock().await;
            let mut line = serde_json::to_vec(&message).map_err(Failure::Encode)?;
            drop(message);
            line.push(b'\n');
            self.flushed().await?;
            self.begin(line);
            self.flushed().await
        }
    }

    fn begin(&self, line: Vec<u8>) {
        let mut pipe = self.lock();
        pipe.rest = line;
        pipe.taken = 0;
    }

    async fn flushed(&self) -> Result<(), Failure> {
        poll_fn(|context| self.poll_flush(context)).await
    }

    fn poll_flush(&self, context: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        let mut pipe = self.lock();
        match pipe.poll_flush(context) {
            Poll::Pending => {
                pipe.blocked = Some(context.waker().clone());
                Poll::Pending
            }
            Poll::Ready(Err(Failure::Broken(cause))) => {
                let broken = std::mem::replace(&mut pipe.state, State::Broken);
                drop(pipe);
                drop(broken);
                Poll::Ready(Err(Failure::Broken(cause)))
            }
            Poll::Ready(result) => Poll::Ready(result),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Pipe> {
        self.pipe.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pipe {
    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        let writer = match &mut self.state {
            State::Open(writer) => writer,
            State::Broken => return Poll::Ready(Err(Failure::Broken(None))),
            State::Closed => return Poll::Ready(Err(Failure::Closed)),
        };
        while self.taken < self.rest.len() {
            match ready!(Pin::new(&mut *writer).poll_write(context, &self.rest[self.taken..])) {
                Ok(0) => return Poll::Ready(Err(Failure::Broken(Some(io::ErrorKind::WriteZero.into())))),
                Ok(count) => self.taken += count,
                Err(error) => return Poll::Ready(Err(Failure::Broken(Some(error)))),
            }
        }
        ready!(Pin::new(writer).poll_flush(context)).map_err(|error| Failure::Broken(Some(error)))?;
        self.rest = Vec::new();
        self.taken = 0;
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use dsh_subprocess::PipeSink;
    use rmcp::model::{ClientResult, ErrorCode, ErrorData, RequestId};
    use tokio_test::{assert_pending, assert_ready, task};

    use super::*;

    /// A pipe with room for so many bytes more.
    #[derive(Clone, Default)]
    struct Narrow(Arc<Inner>);

    #[derive(Default)]
    struct Inner {
        room: AtomicUsize,
        taken: Mutex<Vec<u8>>,
    }

    impl Narrow {
        fn widen(&self, bytes: usize) {
            self.0.room.fetch_add(bytes, Ordering::Relaxed);
        }

        fn lines(&self) -> Vec<serde_json::Value> {
            let taken = self.0.taken.lock().expect("no test panics with it");
            taken
                .split_inclusive(|&byte| byte == b'\n')
                .map(|line| serde_json::from_slice(line).expect("each line is whole"))
                .collect()
        }
    }

    impl AsyncWrite for Narrow {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            let count = bytes.len().min(self.0.room.load(Ordering::Relaxed));
            if count == 0 {
                return Poll::Pending;
            }
            self.0.room.fetch_sub(count, Ordering::Relaxed);
            let mut taken = self.0.taken.lock().expect("no test panics with it");
            taken.extend_from_slice(&bytes[..count]);
            Poll::Ready(Ok(count))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    impl PipeSink for Narrow {}

    fn outgoing() -> (Narrow, Arc<Outgoing>) {
        let pipe = Narrow::default();
        (pipe.clone(), Arc::new(Outgoing::new(PipeWriter::new(pipe))))
    }

    fn answer(id: i64) -> ClientJsonRpcMessage {
        let result = ClientResult::empty(());
        ClientJsonRpcMessage::response(result, RequestId::Number(id))
    }

    #[test]
    fn a_line_whose_sender_gave_up_in_the_middle_is_completed_before_the_next() {
        let (pipe, outgoing) = outgoing();
        let mut first = task::spawn(Arc::clone(&outgoing).send(answer(1)));
        pipe.widen(10);
        assert_pending!(first.poll());
        drop(first);
        pipe.widen(1000);
        let mut second = task::spawn(outgoing.send(answer(2)));
        assert!(assert_ready!(second.poll()).is_ok());
        let ids: Vec<_> = pipe.lines().iter().map(|line| line["id"].clone()).collect();
        assert_eq!(ids, [1, 2]);
    }

    #[test]
    fn closing_ends_a_write_that_the_server_does_not_take() {
        let (pipe, outgoing) = outgoing();
        let mut blocked = task::spawn(Arc::clone(&outgoing).send(answer(1)));
        assert_pending!(blocked.poll());
        outgoing.close();
        assert!(blocked.is_woken());
        assert!(matches!(assert_ready!(blocked.poll()), Err(Failure::Closed)));
        assert_eq!(Arc::strong_count(&pipe.0), 1, "the pipe is closed");
    }

    #[test]
    fn a_server_that_asks_and_never_reads_is_not_read_on() {
        let (pipe, outgoing) = outgoing();
        let mut unread: Vec<_> = (0..)
            .take(UNREAD_ANSWERS)
            .map(|id| task::spawn(Arc::clone(&outgoing).send(answer(id))))
            .collect();
        for send in &mut unread {
            assert_pending!(send.poll());
        }
        let mut reading_on = task::spawn(outgoing.few_answers_wait());
        assert_pending!(reading_on.poll());
        pipe.widen(1000);
        assert!(assert_ready!(unread[0].poll()).is_ok());
        drop(unread.remove(0));
        assert!(reading_on.is_woken());
        assert_ready!(reading_on.poll());
    }

    #[test]
    fn an_error_is_an_answer_too() {
        let (_pipe, outgoing) = outgoing();
        let refused = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "no", None);
        let message = ClientJsonRpcMessage::error(refused, Some(RequestId::Number(1)));
        let mut send = task::spawn(Arc::clone(&outgoing).send(message));
        assert_pending!(send.poll());
        assert_eq!(outgoing.answers.available_permits(), UNREAD_ANSWERS - 1);
    }
}
