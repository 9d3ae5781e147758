//! The sessions of the HTTP endpoint: rmcp's, each with one of ours.

use std::collections::HashMap;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError, SessionConfig,
};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId, SessionManager};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::config::HttpConfig;
use crate::server::Inner;
use crate::server::link::Linked;
use crate::server::session::{Listening, OpenError, SessionRef};

/// The header that names a request's session.
pub(super) const SESSION_ID: &str = "mcp-session-id";

/// How long rmcp may take to notice that a session is over: it may be held up by a client that does not read.
const CLOSING: Duration = Duration::from_secs(5);

/// All sessions of one endpoint.
pub(super) struct Sessions {
    local: LocalSessionManager,
    server: Arc<Inner>,
    open: Mutex<HashMap<SessionId, SessionRef>>,
    most: usize,
    idle: Duration,
    reconnect: Duration,
    stop: CancellationToken,
    tasks: TaskTracker,
}

/// Why a session could not be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum SessionsError {
    #[error("there are {0} sessions already, and no more are allowed at once")]
    Full(usize),
    #[error("there is no such session")]
    Unknown,
    #[error("{0}")]
    Open(#[from] OpenError),
    #[error("{0}")]
    Local(#[from] LocalSessionManagerError),
}

impl Sessions {
    pub(super) fn new(
        server: Arc<Inner>,
        config: &HttpConfig,
        stop: CancellationToken,
        tasks: TaskTracker,
    ) -> Self {
        let mut local = LocalSessionManager::default();
        local.session_config = SessionConfig::default();
        // What rmcp takes for idle has calls that run and streams that are open; ours is counted below.
        local.session_config.keep_alive = None;
        local.session_config.sse_retry = None;
        Self {
            local,
            server,
            open: Mutex::default(),
            most: config.max_sessions,
            idle: config.session_idle,
            reconnect: config.reconnect,
            stop,
            tasks,
        }
    }

    /// Tells whether another session would be refused.
    pub(super) fn are_full(&self) -> bool {
        self.open().len() >= self.most
    }

    fn open(&self) -> MutexGuard<'_, HashMap<SessionId, SessionRef>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens one of our sessions for one of rmcp's, if there is room.
    fn admit(&self, id: &SessionId) -> Result<SessionRef, SessionsError> {
        let mut open = self.open();
        if open.len() >= self.most {
            return Err(SessionsError::Full(self.most));
        }
        let session = self.server.open(&self.stop, &self.tasks)?;
        open.insert(id.clone(), session.clone());
        drop(open);
        self.tasks
            .spawn(attend(session.clone(), self.idle, self.reconnect));
        Ok(session)
    }

    fn find(&self, id: &SessionId) -> Result<SessionRef, SessionsError> {
        let session = self.open().get(id).cloned().ok_or(SessionsError::Unknown)?;
        session.traffic().message();
        Ok(session)
    }
}

impl SessionManager for Sessions {
    type Error = SessionsError;
    type Transport = Linked<<LocalSessionManager as SessionManager>::Transport>;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let (id, transport) = self.local.create_session().await?;
        // From here on nothing waits: a request that is given up half-way must leave no session that nobody ends.
        let refused = match self.admit(&id) {
            Ok(session) => return Ok((id, Linked::new(transport, session))),
            Err(refused) => refused,
        };
        drop(transport);
        let _ = self.local.close_session(&id).await;
        Err(refused)
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.find(id)?;
        Ok(self.local.initialize_session(id, message).await?)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        let is_open = self.find(id).is_ok_and(|session| !session.is_closed());
        Ok(is_open && self.local.has_session(id).await?)
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        let session = self.open().remove(id);
        if let Some(session) = session {
            session.close();
        }
        match tokio::time::timeout(CLOSING, self.local.close_session(id)).await {
            Ok(closed) => Ok(closed?),
            // Our side of it is over; rmcp's ends with the client's connection.
            Err(_) => Ok(()),
        }
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let session = self.find(id)?;
        let listening = session.listen();
        let stream = self.local.create_stream(id, message).await?;
        Ok(Attended::new(stream, listening))
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        self.find(id)?;
        Ok(self.local.accept_message(id, message).await?)
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let listening = self.find(id)?.listen();
        let stream = self.local.create_standalone_stream(id).await?;
        Ok(Attended::new(stream, listening))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let listening = self.find(id)?.listen();
        let stream = self.local.resume(id, last_event_id).await?;
        Ok(Attended::new(stream, listening))
    }
}

/// Closes a session that nothing happens in, and ends the calls of one whose client is gone.
async fn attend(session: SessionRef, idle: Duration, reconnect: Duration) {
    let abandoned = async {
        loop {
            session.traffic().abandoned_for(reconnect).await;
            session.give_calls_up();
            session.traffic().no_calls().await;
        }
    };
    tokio::select! {
        () = session.closed() => {}
        () = session.traffic().idle_for(idle) => session.close(),
        () = abandoned => {}
    }
}

/// A stream that counts as the client's presence until it is dropped.
struct Attended<S> {
    stream: Pin<Box<S>>,
    _listening: Listening,
}

impl<S> Attended<S> {
    fn new(stream: S, listening: Listening) -> Self {
        Self {
            stream: Box::pin(stream),
            _listening: listening,
        }
    }
}

impl<S: Stream> Stream for Attended<S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<S::Item>> {
        self.stream.as_mut().poll_next(context)
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions")
            .field("open", &self.open().len())
            .finish_non_exhaustive()
    }
}
