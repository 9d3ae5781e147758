//! What is looked at before the protocol: the path, and who asks.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{Method, Request, Response, StatusCode};
use rmcp::transport::streamable_http_server::tower::StreamableHttpService;

use super::cors::Origins;
use super::sessions::{SESSION_ID, Sessions};
use super::token::BearerToken;
use crate::server::handler::Handler;

/// Where the protocol is spoken.
const PATH: &str = "/mcp";

/// How long a request may take to arrive, and its answer to begin. What is long about a call comes after that.
const ARRIVAL: Duration = Duration::from_secs(30);

/// The body of an answer.
pub(super) type Body = BoxBody<Bytes, Infallible>;

/// Lets requests through to the protocol, or answers them itself.
pub(super) struct Gate {
    token: BearerToken,
    origins: Origins,
    service: StreamableHttpService<Handler, Sessions>,
    sessions: Arc<Sessions>,
}

impl Gate {
    pub(super) fn new(
        token: BearerToken,
        origins: Origins,
        service: StreamableHttpService<Handler, Sessions>,
        sessions: Arc<Sessions>,
    ) -> Self {
        Self {
            token,
            origins,
            service,
            sessions,
        }
    }

    /// Answers a request. `Host` and `Origin` are judged by rmcp, before it looks at anything else.
    pub(super) async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let page = self.origins.allowed(request.headers());
        let mut response = match &page {
            Some(_) if Origins::is_preflight(&request) => {
                let mut leave = plain(StatusCode::NO_CONTENT, "");
                Origins::let_send(leave.headers_mut());
                leave
            }
            _ => self.judge(request).await,
        };
        if let Some(origin) = page {
            Origins::show(origin, response.headers_mut());
        }
        response
    }

    async fn judge(&self, request: Request<Incoming>) -> Response<Body> {
        if !self.is_authorized(request.headers()) {
            tracing::warn!("a request without the token was refused");
            let mut refusal = plain(
                StatusCode::UNAUTHORIZED,
                "Unauthorized: the bearer token is missing or wrong\n",
            );
            let scheme = hyper::header::HeaderValue::from_static("Bearer");
            refusal.headers_mut().insert(WWW_AUTHENTICATE, scheme);
            return refusal;
        }
        if request.uri().path() != PATH {
            return plain(StatusCode::NOT_FOUND, "Not Found: the endpoint is /mcp\n");
        }
        let begins = request.method() == Method::POST && !request.headers().contains_key(SESSION_ID);
        if begins && self.sessions.are_full() {
            let mut refusal = plain(
                StatusCode::SERVICE_UNAVAILABLE,
                "Service Unavailable: too many sessions\n",
            );
            let soon = hyper::header::HeaderValue::from_static("10");
            refusal.headers_mut().insert(RETRY_AFTER, soon);
            return refusal;
        }
        let deletes = request.method() == Method::DELETE;
        match tokio::time::timeout(ARRIVAL, self.service.handle(request)).await {
            Ok(mut response) => {
                // The session is ended by then, and there are clients that take "accepted" for a failure.
                if deletes && response.status() == StatusCode::ACCEPTED {
                    *response.status_mut() = StatusCode::OK;
                }
                response
            }
            Err(_) => plain(StatusCode::REQUEST_TIMEOUT, "Request Timeout\n"),
        }
    }

    /// Tells whether exactly one token was shown, and it is ours.
    fn is_authorized(&self, headers: &HeaderMap) -> bool {
        let mut shown = headers.get_all(AUTHORIZATION).iter();
        let (Some(value), None) = (shown.next(), shown.next()) else {
            return false;
        };
        let value = value.as_bytes();
        let Some((scheme, token)) = value.split_at_checked("bearer ".len()) else {
            return false;
        };
        scheme.eq_ignore_ascii_case(b"bearer ") && self.token.is(token.trim_ascii())
    }
}

fn plain(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed());
    *response.status_mut() = status;
    let kind = hyper::header::HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
