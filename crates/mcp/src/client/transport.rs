//! The transport that rmcp is given.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use dsh_subprocess::SubprocessRuntime;
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::json;

use super::closing;
use super::command::ServerCommand;
use super::error::{Ended, ServerError};
use super::incoming::Incoming;
use super::message::{BadLine, Decoded, decode};
use super::outgoing::{Failure, Outgoing};
use super::pending::Pending;
use super::process::{EXIT_WAIT, OwnedTree, ServerProcess};

/// The code of the error that a request fails with when the server ends before it has answered. Other MCP clients use the same
/// one.
pub const CONNECTION_CLOSED: ErrorCode = ErrorCode(-32000);

/// A session with an MCP server that is a child of the seam: a transport for rmcp's client.
///
/// Messages are lines of JSON on the server's standard input and output. A JSON-RPC batch is no message here: no version of the
/// protocol that has them is spoken by rmcp.
///
/// # When the server ends unasked
///
/// Each request that it has not answered fails with an error of code [`CONNECTION_CLOSED`] whose text is that of [`Ended`]: how it
/// ended, and the end of its error output. During the handshake, that is the error of the handshake. The same where its leading
/// process ended and something that it started holds its output open: that is waited for one second.
///
/// # The end of the session
///
/// [`close`](Transport::close), which rmcp calls at the end of a service, gives the server the end of its input at once; then its whole
/// tree has [`close_wait`](super::Limits::close_wait) to go; what is left is terminated: `SIGTERM`,
/// [`grace`](super::Limits::grace), `SIGKILL`. It resolves when the tree is gone, and closing again does nothing. A server that does not
/// read its input delays nothing, and what it still writes is read and dropped.
///
/// Dropping the transport instead begins the same, and waits for nothing: in a task, where a tokio runtime is entered, and
/// otherwise without the time to go by itself (end of input, then `SIGTERM`, grace, `SIGKILL`, which the world carries out). Where
/// the runtime ends before that task, the rest of its time is forgone too.
///
/// It needs tokio's timers while messages are received and while it is closed.
pub struct ServerTransport {
    server: ServerProcess,
    /// `None` once the tree is known to be gone.
    tree: Option<OwnedTree>,
    outgoing: Arc<Outgoing>,
    /// `None` once the session is closed.
    incoming: Option<Incoming>,
    pending: Pending,
    ended: Option<Ended>,
    close_wait: Duration,
}

impl ServerTransport {
    /// Starts a server, and resolves when its program runs. Whether it speaks the protocol is found out by the handshake.
    ///
    /// # Errors
    ///
    /// [`ServerError::Start`] with the seam's [kind](ServerError::kind): the program's, the working directory's, an argument that
    /// is too long, exhausted resources. [`ServerError::NoLineFits`] for a line limit of 0.
    ///
    /// # Cancellation
    ///
    /// Dropping the future ends what was started.
    pub async fn spawn(world: &dyn SubprocessRuntime, command: ServerCommand) -> Result<Self, ServerError> {
        let mut process = world.spawn(command.spec()?).map_err(ServerError::Start)?;
        let (stdin, stdout) = (process.stdin(), process.stdout());
        let stderr = process.collected_stderr().cloned();
        let started = process.started();
        let Some(stderr) = stderr else {
            drop(process.terminate());
            started.await.map_err(ServerError::Start)?;
            return Err(ServerError::NoStream("error output"));
        };
        let server = ServerProcess::new(process, stderr, command.on_bad_line);
        let tree = OwnedTree(server.clone());
        started.await.map_err(ServerError::Start)?;
        let stdin = stdin.ok_or(ServerError::NoStream("standard input"))?;
        let stdout = stdout.ok_or(ServerError::NoStream("standard output"))?;
        Ok(Self {
            outgoing: Arc::new(Outgoing::new(stdin)),
            incoming: Some(Incoming::new(stdout, &server, command.limits.line_bytes)),
            server,
            tree: Some(tree),
            pending: Pending::default(),
            ended: None,
            close_wait: command.limits.close_wait,
        })
    }

    /// Returns the server as seen from outside: to be kept when the transport goes to rmcp.
    pub fn process(&self) -> ServerProcess {
        self.server.clone()
    }

    /// Counts a bad line, and returns what its request fails with, where it was the answer to one.
    fn skip(&mut self, bad: BadLine) -> Option<ServerJsonRpcMessage> {
        let request = bad.answers.as_ref().and_then(|id| self.pending.take(id));
        let failure = request.map(|id| {
            let text = format!("the server's answer cannot be read: {bad}");
            ServerJsonRpcMessage::error(ErrorData::new(ErrorCode::PARSE_ERROR, text, None), Some(id))
        });
        self.server.skipped(bad);
        failure
    }

    /// Returns what the next unanswered request fails with, after the server's end.
    fn unanswered(&mut self) -> Option<ServerJsonRpcMessage> {
        let ended = self.ended.as_ref()?;
        self.pending.pop().map(|id| failure(ended, id))
    }
}

fn failure(ended: &Ended, id: RequestId) -> ServerJsonRpcMessage {
    let data = json!({
        "outcome": ended.outcome.as_ref().map(ToString::to_string),
        "stderr": ended.stderr,
    });
    ServerJsonRpcMessage::error(
        ErrorData::new(CONNECTION_CLOSED, ended.to_string(), Some(data)),
        Some(id),
    )
}

/// Says why the server takes no more input. Mostly it has ended, and that is worth waiting for a moment: it tells more than
/// that a pipe is broken.
async fn not_taken(server: &ServerProcess, cause: Option<io::Error>) -> ServerError {
    if let Ok(outcome) = tokio::time::timeout(EXIT_WAIT, server.handle().done()).await {
        return ServerError::Ended(server.ended(Some(outcome)));
    }
    let cause = cause.unwrap_or_else(|| io::ErrorKind::BrokenPipe.into());
    ServerError::Send(Arc::new(cause))
}

impl Transport<RoleClient> for ServerTransport {
    type Error = ServerError;

    fn name() -> Cow<'static, str> {
        "MCP server process".into()
    }

    /// Sends a message. Resolves once the pipe has taken all of it, so a server that does not read holds the sender up.
    fn send(
        &mut self,
        item: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), ServerError>> + Send + 'static {
        self.pending.sending(&item);
        let sent = Arc::clone(&self.outgoing).send(item);
        let server = self.server.clone();
        async move {
            match sent.await {
                Ok(()) => Ok(()),
                Err(Failure::Closed) => Err(ServerError::Closed),
                Err(Failure::Encode(error)) => Err(ServerError::Encode(Arc::new(error))),
                Err(Failure::Broken(cause)) => Err(not_taken(&server, cause).await),
            }
        }
    }

    /// Receives the next message. `None` once the session is over. Dropping the future loses nothing.
    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            if self.ended.is_some() {
                return self.unanswered();
            }
            self.outgoing.few_answers_wait().await;
            let incoming = self.incoming.as_mut()?;
            let Some(line) = incoming.line().await else {
                let outcome = incoming.outcome().await;
                self.ended = Some(self.server.ended(outcome));
                continue;
            };
            match decode(&line) {
                Decoded::Blank => {}
                Decoded::Message(message) => {
                    self.pending.received(&message);
                    return Some(message);
                }
                Decoded::Bad(bad) => {
                    if let Some(failure) = self.skip(bad) {
                        return Some(failure);
                    }
                }
            }
        }
    }

    /// Ends the session and the server; see [the type](ServerTransport#the-end-of-the-session).
    ///
    /// # Errors
    ///
    /// [`ServerError::End`] where members outlived `SIGKILL`; they are named. Closing again waits for them again.
    ///
    /// # Cancellation
    ///
    /// The server keeps the end of its input, and its whole time if the transport is closed again or dropped.
    async fn close(&mut self) -> Result<(), ServerError> {
        self.outgoing.close();
        if self.tree.is_some() {
            closing::ended(&self.server, self.incoming.as_mut(), self.close_wait).await?;
        }
        self.tree = None;
        self.incoming = None;
        Ok(())
    }
}

impl Drop for ServerTransport {
    fn drop(&mut self) {
        self.outgoing.close();
        let Some(tree) = self.tree.take() else {
            return;
        };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (mut incoming, wait) = (self.incoming.take(), self.close_wait);
            // The task holds the tree: where it is dropped before its end, the termination begins then.
            runtime.spawn(async move {
                if let Err(error) = closing::ended(&tree.0, incoming.as_mut(), wait).await {
                    tracing::warn!(%error, "an MCP server was not ended");
                }
            });
        }
    }
}

impl fmt::Debug for ServerTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTransport")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}
