//! The requests that the server has not answered.

use std::collections::HashSet;

use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};

/// The ids of requests that were sent and not answered: each one's caller waits.
#[derive(Debug, Default)]
pub(super) struct Pending(HashSet<RequestId>);

impl Pending {
    /// A message goes to the server.
    pub(super) fn sending(&mut self, message: &ClientJsonRpcMessage) {
        match message {
            JsonRpcMessage::Request(request) => {
                self.0.insert(request.id.clone());
            }
            // A request that was taken back need not be answered, and nobody waits for it.
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.0.remove(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
    }

    /// A message came from the server.
    pub(super) fn received(&mut self, message: &ServerJsonRpcMessage) {
        let id = match message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        if let Some(id) = id {
            self.take(id);
        }
    }

    /// Takes the request that an answer with this id is for.
    pub(super) fn take(&mut self, answered: &RequestId) -> Option<RequestId> {
        if let Some(id) = self.0.take(answered) {
            return Some(id);
        }
        // Some servers turn the number into a string, and rmcp takes that for the answer, too.
        let RequestId::String(text) = answered else {
            return None;
        };
        self.0.take(&RequestId::Number(text.parse().ok()?))
    }

    /// Takes any one.
    pub(super) fn pop(&mut self) -> Option<RequestId> {
        let id = self.0.iter().next()?.clone();
        self.0.take(&id)
    }
}
