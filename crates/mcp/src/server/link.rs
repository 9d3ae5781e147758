//! What ties a transport to its session.

use rmcp::RoleServer;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

use super::session::SessionRef;

/// A transport whose messages carry their session, and whose end is the session's.
///
/// rmcp gives a handler nothing that lasts as long as the session does, so it travels with each message, and a handler that
/// finds none knows that it serves a request outside of any.
pub(super) struct Linked<T> {
    transport: T,
    session: SessionRef,
}

impl<T> Linked<T> {
    pub(super) fn new(transport: T, session: SessionRef) -> Self {
        Self { transport, session }
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Linked<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.transport.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let message = tokio::select! {
            biased;
            () = self.session.closed() => None,
            message = self.transport.receive() => message,
        };
        let Some(mut message) = message else {
            // Now, and not when rmcp closes the transport: it first waits seconds for the calls that this ends.
            self.session.close();
            return None;
        };
        message.insert_extension(self.session.clone());
        Some(message)
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.session.finish();
        self.transport.close().await
    }
}

impl<T> Drop for Linked<T> {
    fn drop(&mut self) {
        self.session.finish();
    }
}
