//! The server, and one session over byte streams.

use std::sync::Arc;

use dsh_jobs::Jobs;
use dsh_shell::Shell;
use dsh_subprocess::SubprocessRuntime;
use rmcp::model::{ProtocolVersion, Tool};
use rmcp::service::ServerInitializeError;
use rmcp::{ServiceExt, model};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::config::{ConfigError, ServerConfig};
use super::handler::Handler;
use super::http::{self, HttpConfig};
use super::link::Linked;
use super::session::{OpenError, Opening, SessionRef};
use super::stream::LineTransport;
use super::tools;

/// Serves a shell and its jobs over the Model Context Protocol. Clones are the same server.
///
/// Its calls need a running tokio runtime with I/O and timers.
///
/// ```
/// use std::sync::Arc;
/// use dsh_jobs::{Jobs, Limits};
/// use dsh_mcp::server::{McpServer, ServerConfig};
/// use dsh_shell::{Config, Shell};
/// use rmcp::ServiceExt;
/// use rmcp::model::CallToolRequestParams;
/// # use dsh_subprocess_testkit::scripted::{Script, ScriptedWorld};
/// use tokio_util::sync::CancellationToken;
///
/// # let rt = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
/// # rt.block_on(async {
/// # let world = ScriptedWorld::free_running();
/// # world.program("bash", Script::new().stdout("built\n").exits(0));
/// let world = Arc::new(world);
/// let shell = Shell::new(world.clone(), Config { cwd: Some("/srv/project".into()), ..Config::default() })?;
/// let server = McpServer::new(world, shell, Jobs::new(Limits::default())?, ServerConfig::default())?;
///
/// let (client_end, server_end) = tokio::io::duplex(1 << 16);
/// let (read, write) = tokio::io::split(server_end);
/// let session = tokio::spawn(async move { server.serve(read, write, CancellationToken::new()).await });
///
/// let mut client = ().serve(client_end).await?;
/// let arguments = serde_json::json!({ "command": "make" }).as_object().cloned().unwrap();
/// let result = client.call_tool(CallToolRequestParams::new("bash").with_arguments(arguments)).await?;
/// assert_eq!(result.content[0].as_text().unwrap().text, "built\n[exit code: 0]");
///
/// client.close().await?;
/// session.await??; // over when the session's jobs are
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct McpServer(Arc<Inner>);

/// What all sessions share.
pub(super) struct Inner {
    pub(super) world: Arc<dyn SubprocessRuntime>,
    pub(super) shell: Shell,
    pub(super) jobs: Jobs,
    pub(super) config: ServerConfig,
    pub(super) tools: Vec<Tool>,
}

/// Why serving ended, where it did not end by itself.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// No session could be opened: the registry of jobs refused, or the system has no random bytes.
    #[error("no session could be opened: {0}")]
    Session(String),
    /// The client did not begin a session.
    #[error("no session was begun: {0}")]
    Handshake(String),
    /// The configuration of the HTTP endpoint is one that it cannot run with.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

impl McpServer {
    /// Makes a server.
    ///
    /// `shell` should run in `world`, which is only asked what it can do. `jobs` may have other owners beside this server's
    /// sessions.
    ///
    /// # Errors
    ///
    /// Those of [`ServerConfig::validate`].
    pub fn new(
        world: Arc<dyn SubprocessRuntime>,
        shell: Shell,
        jobs: Jobs,
        config: ServerConfig,
    ) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Self(Arc::new(Inner {
            world,
            shell,
            jobs,
            config,
            tools: tools::list(),
        })))
    }

    /// Serves one session over byte streams, as over standard input and output: a message on each line.
    ///
    /// It ends when the input does, when the output cannot be written, or with `stop`; and is over when the session's calls
    /// and jobs have ended. Calls that run then have a second to finish by themselves. A client that goes before it began a
    /// session is no error.
    ///
    /// Lines that are no messages, or longer than [`ServerConfig::max_line_bytes`], are answered with an error and skipped.
    ///
    /// # Errors
    ///
    /// [`ServeError::Session`] and [`ServeError::Handshake`].
    ///
    /// # Cancellation
    ///
    /// Dropping the future ends the session the same way, and waits for nothing.
    pub async fn serve(
        &self,
        read: impl AsyncRead + Send + 'static,
        write: impl AsyncWrite + Send + 'static,
        stop: CancellationToken,
    ) -> Result<(), ServeError> {
        let tasks = TaskTracker::new();
        let session = self
            .0
            .open(&stop, &tasks)
            .map_err(|error| ServeError::Session(error.to_string()))?;
        let lines = LineTransport::new(read, write, self.0.config.max_line_bytes);
        let transport = Linked::new(lines, session.clone());
        let handler = Handler::new(Arc::clone(&self.0), ProtocolVersion::KNOWN_VERSIONS);
        // The handshake's future is large, and whoever awaits this one should not have to carry it.
        let served = match Box::pin(handler.serve_with_ct(transport, stop.child_token())).await {
            Ok(running) => {
                // How it ended makes no difference to what has to end with it.
                let _ = running.waiting().await;
                Ok(())
            }
            Err(error) => handshake(error),
        };
        session.finish();
        tasks.close();
        tasks.wait().await;
        served
    }

    /// Serves sessions over HTTP at the path `/mcp`, until `stop`; see [`HttpConfig`] for who is let in.
    ///
    /// A session begins with `initialize` and ends with a `DELETE`, when it has been idle for
    /// [`HttpConfig::session_idle`], or with `stop`. It is over when all sessions are, and their jobs.
    ///
    /// Only revisions of the protocol that have sessions are spoken here, since jobs belong to one.
    ///
    /// # Errors
    ///
    /// [`ServeError::Config`], at once.
    ///
    /// # Cancellation
    ///
    /// Dropping the future ends all sessions, and waits for nothing.
    pub async fn serve_http(
        &self,
        listener: tokio::net::TcpListener,
        http: HttpConfig,
        stop: CancellationToken,
    ) -> Result<(), ServeError> {
        http.validate()?;
        http::serve(&self.0, listener, http, stop).await;
        Ok(())
    }
}

impl Inner {
    /// Opens a session. `tasks` has the task that ends it.
    pub(super) fn open(
        &self,
        stop: &CancellationToken,
        tasks: &TaskTracker,
    ) -> Result<SessionRef, OpenError> {
        SessionRef::open(&Opening {
            jobs: &self.jobs,
            kept_outputs: self.config.kept_outputs,
            max_calls: self.config.max_calls,
            end: self.config.session_end,
            stop,
            tasks,
        })
    }
}

/// Judges why there is no session. What the client sent instead is not repeated: it may be anything.
fn handshake(error: ServerInitializeError) -> Result<(), ServeError> {
    Err(ServeError::Handshake(match error {
        ServerInitializeError::Cancelled | ServerInitializeError::ConnectionClosed(_) => return Ok(()),
        ServerInitializeError::ExpectedInitializeRequest(Some(model::JsonRpcMessage::Notification(_))) => {
            "the first message is a notification".to_owned()
        }
        ServerInitializeError::ExpectedInitializeRequest(_) => "the first message is no request".to_owned(),
        ServerInitializeError::InitializeFailed(error) => error.message.into_owned(),
        // Its own text names types of ours, which mean nothing to whoever reads it.
        ServerInitializeError::TransportError { error, context } => {
            format!("{}, when {context}", error.error)
        }
        _ => "the answer to the client's first request was none".to_owned(),
    }))
}
