//! A session over two byte streams: a message on each line.

use std::fmt;
use std::io;
use std::pin::{Pin, pin};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::client::{BadLine, BadLineCause, Decoded, Envelope, Line, Lines, decode};

/// How many messages may wait for a client that does not read. Whoever wants to send one more waits.
const QUEUED_MESSAGES: usize = 16;

/// Bytes asked for with one read.
const CHUNK: usize = 8 << 10;

/// How much is read ahead of a client's answers being read.
const READ_AHEAD: usize = 1 << 20;

/// How long the last messages may take on their way to a client that does not read.
const CLOSING: Duration = Duration::from_secs(1);

/// Both directions of one session.
///
/// A line that is no message, or longer than the cap, is answered and skipped, and the session goes on. Writing is done by
/// a task, so that an answer whose sender is dropped half-way is written whole all the same.
pub(super) struct LineTransport<R> {
    read: Pin<Box<R>>,
    /// What was read and is in no line yet.
    ahead: BytesMut,
    /// Nothing more is to be read.
    ended: bool,
    lines: Lines,
    cap: usize,
    /// The answer to a bad line, until there is room for it.
    answer: Option<Bytes>,
    outgoing: Option<mpsc::Sender<Outgoing>>,
    writer: Option<JoinHandle<()>>,
}

/// A line to be written, and who wants to know when it is.
struct Outgoing {
    line: Bytes,
    written: Option<oneshot::Sender<io::Result<()>>>,
}

impl<R: AsyncRead + Send> LineTransport<R> {
    /// Takes lines of at most `cap` bytes for messages.
    pub(super) fn new(read: R, write: impl AsyncWrite + Send + 'static, cap: usize) -> Self {
        let (outgoing, queue) = mpsc::channel(QUEUED_MESSAGES);
        Self {
            read: Box::pin(read),
            ahead: BytesMut::new(),
            ended: false,
            lines: Lines::new(cap),
            cap,
            answer: None,
            outgoing: Some(outgoing),
            writer: Some(tokio::spawn(write_all(write, queue))),
        }
    }

    /// Gives the next line, or `None` at the end of the input or where it cannot be read.
    ///
    /// Dropping the future loses nothing: what was consumed is in `lines`.
    async fn line(&mut self) -> Option<Line> {
        loop {
            let mut available = &self.ahead[..];
            let line = self.lines.feed(&mut available);
            let consumed = self.ahead.len() - available.len();
            self.ahead.advance(consumed);
            if line.is_some() {
                return line;
            }
            if self.ended {
                return self.lines.finish();
            }
            self.read_on().await;
        }
    }

    /// Reads what there is. Dropping the future loses nothing.
    async fn read_on(&mut self) {
        self.ahead.reserve(CHUNK);
        match self.read.read_buf(&mut self.ahead).await {
            Ok(0) => self.ended = true,
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(%error, "the client's messages cannot be read any more");
                self.ended = true;
            }
        }
    }

    /// Waits for room for one more answer: a client that does not read its answers is not asked for more requests, since each
    /// answer waits in memory. `None` where nobody will read it.
    ///
    /// The input is read on meanwhile, up to a bound, to see its end. Dropping the future loses nothing.
    async fn room(&mut self) -> Option<mpsc::OwnedPermit<Outgoing>> {
        let mut room = pin!(self.outgoing.clone()?.reserve_owned());
        loop {
            let reads = !self.ended && self.ahead.len() < READ_AHEAD;
            tokio::select! {
                biased;
                room = &mut room => return room.ok(),
                () = self.read_on(), if reads => {}
                // It has said all it has to say, and still does not listen.
                () = tokio::time::sleep(CLOSING), if self.ended => return None,
            }
        }
    }
}

impl<R: AsyncRead + Send> Transport<RoleServer> for LineTransport<R> {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let outgoing = self.outgoing.clone();
        async move {
            let broken = || io::Error::from(io::ErrorKind::BrokenPipe);
            let line = encoded(&message)?;
            let (written, result) = oneshot::channel();
            let outgoing = outgoing.ok_or_else(broken)?;
            let message = Outgoing {
                line,
                written: Some(written),
            };
            outgoing.send(message).await.map_err(|_| broken())?;
            result.await.map_err(|_| broken())?
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let room = self.room().await?;
            if let Some(line) = self.answer.take() {
                room.send(Outgoing { line, written: None });
                continue;
            }
            drop(room);
            let unheard = self.outgoing.clone();
            let line = tokio::select! {
                line = self.line() => line?,
                // Nothing that is written arrives any more, so nobody is there to answer.
                () = closed(unheard.as_ref()) => return None,
            };
            match decode::<ClientJsonRpcMessage>(&line) {
                Decoded::Message(message) => return Some(message),
                Decoded::Blank => {}
                Decoded::Bad(bad) => {
                    tracing::warn!(%bad, "a line was skipped");
                    self.answer = answer(&line, &bad, self.cap).and_then(|answer| encoded(&answer).ok());
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.outgoing = None;
        let Some(mut writer) = self.writer.take() else {
            return Ok(());
        };
        if tokio::time::timeout(CLOSING, &mut writer).await.is_err() {
            // The client does not read. What it would have read is given up.
            writer.abort();
        }
        Ok(())
    }
}

impl<R> Drop for LineTransport<R> {
    fn drop(&mut self) {
        if let Some(writer) = &self.writer {
            writer.abort();
        }
    }
}

impl<R> fmt::Debug for LineTransport<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LineTransport")
    }
}

/// Writes lines until nobody has any more, or one cannot be written.
async fn write_all(write: impl AsyncWrite + Send, mut queue: mpsc::Receiver<Outgoing>) {
    let mut write = Box::pin(write);
    while let Some(Outgoing { line, written }) = queue.recv().await {
        let result = async {
            write.write_all(&line).await?;
            write.flush().await
        }
        .await;
        let failed = result.is_err();
        if let Some(written) = written {
            // Whoever sent it need not wait for it any more.
            let _ = written.send(result);
        }
        if failed {
            return;
        }
    }
    // The last word was said; a client that is gone does not hear it.
    let _ = write.shutdown().await;
}

/// Resolves once the output cannot be written any more.
async fn closed(outgoing: Option<&mpsc::Sender<Outgoing>>) {
    match outgoing {
        Some(outgoing) => outgoing.closed().await,
        None => std::future::pending().await,
    }
}

fn encoded(message: &ServerJsonRpcMessage) -> io::Result<Bytes> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line.into())
}

/// Answers a bad line as JSON-RPC says: what is no JSON is a parse error, what is none of its messages is no valid request,
/// and nothing is said of notifications and answers.
fn answer(line: &Line, bad: &BadLine, cap: usize) -> Option<ServerJsonRpcMessage> {
    let envelope = match line {
        Line::Whole(bytes) => Envelope::of(bytes),
        Line::Long(long) => long.envelope.clone(),
    };
    let id: Option<RequestId> = envelope.id.clone().filter(|_| envelope.method);
    let error = match bad.cause {
        BadLineCause::TooLong => {
            if envelope.answers().is_some() {
                return None;
            }
            let text = format!("a message of {} bytes is longer than {cap} bytes", bad.length);
            ErrorData::invalid_request(text, None)
        }
        BadLineCause::NotAMessage => {
            if (envelope.method && !envelope.has_id) || envelope.answers().is_some() {
                return None;
            }
            // Whoever sent a request waits for its answer, also where that cannot name it.
            let text = if envelope.method && id.is_none() {
                "the id of a request must be a string or a whole number of 64 bits, given once"
            } else {
                "the line is JSON, and no request, notification or response; batches are not supported"
            };
            ErrorData::invalid_request(text, None)
        }
        BadLineCause::NotUtf8 => ErrorData::parse_error("the line is not UTF-8", None),
        _ => ErrorData::parse_error("the line is no JSON", None),
    };
    Some(ServerJsonRpcMessage::error(error, id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const PING: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"}\n";

    /// Receives one message from what a client wrote, and returns what was answered meanwhile.
    async fn answers(input: Vec<u8>, cap: usize) -> Vec<Value> {
        let (ours, mut theirs) = tokio::io::duplex(1 << 20);
        let mut transport = LineTransport::new(io::Cursor::new([input, PING.to_vec()].concat()), ours, cap);
        let message = transport.receive().await.expect("the session goes on");
        assert!(
            matches!(&message, ClientJsonRpcMessage::Request(request) if request.id == RequestId::Number(9)),
            "{message:?}"
        );
        transport.close().await.expect("it is closed");
        let mut written = String::new();
        theirs.read_to_string(&mut written).await.expect("it is read");
        written
            .lines()
            .map(|line| serde_json::from_str(line).expect("each line is JSON"))
            .collect()
    }

    fn code(answer: &Value) -> (Value, Value) {
        (answer["error"]["code"].clone(), answer["id"].clone())
    }

    #[tokio::test]
    async fn what_is_no_json_is_a_parse_error() {
        for line in [&b"hello\n"[..], b"{\"jsonrpc\":\n", b"\xff\xfe\n"] {
            let answers = answers(line.to_vec(), 1000).await;
            assert_eq!(answers.len(), 1);
            assert_eq!(code(&answers[0]), (json!(-32700), Value::Null));
        }
    }

    #[tokio::test]
    async fn a_request_that_is_none_is_answered_by_its_id() {
        let line = b"{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"tools/call\",\"params\":[1]}\n".to_vec();
        let answers = answers(line, 1000).await;
        assert_eq!(code(&answers[0]), (json!(-32600), json!("x")));
    }

    #[tokio::test]
    async fn a_request_whose_id_no_answer_could_have_is_refused() {
        for id in [
            "1.5",
            "9223372036854775808",
            "true",
            "null",
            "{}",
            "[1]",
            "1,\"id\":2",
        ] {
            for params in ["{}", "[1]"] {
                let line = format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{params}}}\n"
                );
                let answers = answers(line.into_bytes(), 1000).await;
                assert_eq!(answers.len(), 1, "{id} {params}");
                assert_eq!(code(&answers[0]), (json!(-32600), Value::Null), "{id} {params}");
            }
        }
    }

    #[tokio::test]
    async fn a_line_beyond_the_cap_is_answered_by_its_id_and_skipped() {
        let long = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{{\"x\":\"{}\"}}}}\n",
            "y".repeat(100_000)
        );
        let answers = answers(long.into_bytes(), 1000).await;
        assert_eq!(answers.len(), 1);
        assert_eq!(code(&answers[0]), (json!(-32600), json!(7)));
        let text = answers[0]["error"]["message"].as_str().expect("a text");
        assert!(text.ends_with("is longer than 1000 bytes"), "{text}");
    }

    #[tokio::test]
    async fn empty_lines_and_unknown_notifications_are_not_answered() {
        let input = b"\n\r\n  \n{\"jsonrpc\":\"2.0\",\"method\":\"$/progress\",\"params\":7}\n".to_vec();
        assert_eq!(answers(input, 1000).await, Vec::<Value>::new());
    }

    #[tokio::test]
    async fn requests_of_a_client_that_does_not_read_are_read_no_further() {
        let (ours, theirs) = tokio::io::duplex(64);
        let (requests, mut client) = tokio::io::duplex(1 << 20);
        let mut transport = LineTransport::new(requests, ours, 1000);
        client.write_all(&PING.repeat(1000)).await.expect("there is room");
        let mut taken = 0;
        let mut answers = Vec::new();
        while let Ok(Some(_)) = tokio::time::timeout(Duration::from_millis(300), transport.receive()).await {
            taken += 1;
            let error = ErrorData::invalid_request("x".repeat(100), None);
            answers.push(tokio::spawn(
                transport.send(ServerJsonRpcMessage::error(error, None)),
            ));
            tokio::task::yield_now().await;
        }
        assert!(taken < 3 * QUEUED_MESSAGES, "{taken} were taken");
        drop(theirs);
        drop(transport);
        for answer in answers {
            // Each sender learns what became of its message; none waits for ever.
            let _ = answer.await.expect("it does not panic");
        }
    }

    #[tokio::test]
    async fn the_end_of_the_input_is_seen_while_answers_are_unread() {
        let (ours, _theirs) = tokio::io::duplex(64);
        let input = io::Cursor::new(PING.repeat(100));
        let mut transport = LineTransport::new(input, ours, 1000);
        let mut answers = Vec::new();
        // The client has closed its end, keeps the other open, and reads nothing.
        while let Some(_request) = transport.receive().await {
            let error = ErrorData::invalid_request("x".repeat(100), None);
            answers.push(tokio::spawn(
                transport.send(ServerJsonRpcMessage::error(error, None)),
            ));
            tokio::task::yield_now().await;
        }
        assert!(answers.len() < 100, "the last are given up");
    }

    #[tokio::test]
    async fn so_it_is_while_answers_to_bad_lines_are_unread() {
        let (ours, _theirs) = tokio::io::duplex(64);
        let input = io::Cursor::new(b"garbage\n".repeat(1000));
        let mut transport = LineTransport::new(input, ours, 1000);
        let end = tokio::time::timeout(Duration::from_secs(50), transport.receive()).await;
        assert!(end.expect("the end is seen").is_none());
    }

    #[tokio::test]
    async fn a_session_ends_when_its_output_cannot_be_written() {
        let (ours, theirs) = tokio::io::duplex(64);
        let (input, mut client) = tokio::io::duplex(1 << 10);
        let mut transport = LineTransport::new(input, ours, 1000);
        drop(theirs);
        client.write_all(b"hello\n").await.expect("it is read");
        // What it is answered cannot be written; the input goes on.
        assert!(transport.receive().await.is_none());
        client
            .write_all(b"hello\n")
            .await
            .expect("the input was not closed");
    }

    #[tokio::test]
    async fn garbage_from_a_client_that_does_not_read_is_read_no_further() {
        let (ours, theirs) = tokio::io::duplex(64);
        let (garbage, mut client) = tokio::io::duplex(1 << 10);
        let mut transport = LineTransport::new(garbage, ours, 1000);
        let flood = tokio::spawn(async move { while client.write_all(b"garbage\n").await.is_ok() {} });
        let idle = tokio::time::timeout(Duration::from_millis(300), transport.receive()).await;
        assert!(idle.is_err(), "there is no message");
        assert!(!flood.is_finished(), "the flood waits");
        drop(transport);
        flood.await.expect("it ends with the session");
        drop(theirs);
    }
}
