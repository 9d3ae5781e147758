//! What a browser must be told before a page may talk to the server.
//!
//! A browser asks first, without the token (a *preflight*), whether the page's origin may send what it is about to send, and
//! shows the page an answer only where that names the origin (Fetch standard, "CORS protocol"). Requests are judged by rmcp all
//! the same; this only tells browsers what it will judge.

use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, HeaderMap, HeaderValue, ORIGIN, VARY,
};
use hyper::{Method, Request};

/// The origins of pages that may talk to the server.
#[derive(Debug)]
pub(super) struct Origins(Vec<String>);

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");
const SENT: HeaderValue = HeaderValue::from_static(
    "authorization, content-type, last-event-id, mcp-protocol-version, mcp-session-id",
);
const SHOWN: HeaderValue = HeaderValue::from_static("mcp-session-id, www-authenticate");

impl Origins {
    /// Allows origins as [`HttpConfig::allowed_origins`](super::HttpConfig::allowed_origins) names them.
    pub(super) fn new(allowed: Vec<String>) -> Self {
        Self(allowed)
    }

    /// Returns the origin that a request shows, where it is allowed.
    pub(super) fn allowed(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let shown = headers.get(ORIGIN)?;
        let text = shown.to_str().ok()?;
        let matches = |allowed: &String| match allowed.strip_suffix(":*") {
            Some(base) => {
                text.get(..base.len())
                    .is_some_and(|start| start.eq_ignore_ascii_case(base))
                    && is_port(&text[base.len()..])
            }
            None => allowed.eq_ignore_ascii_case(text) || has_default_port(allowed, text),
        };
        self.0.iter().any(matches).then(|| shown.clone())
    }

    /// Tells whether a request is a browser's question whether it may send another.
    pub(super) fn is_preflight<B>(request: &Request<B>) -> bool {
        request.method() == Method::OPTIONS && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD)
    }

    /// Lets a browser show an answer to a page of this origin.
    pub(super) fn show(origin: HeaderValue, headers: &mut HeaderMap) {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, SHOWN);
        headers.append(VARY, HeaderValue::from_static("Origin"));
    }

    /// Lets a browser send what the protocol needs.
    pub(super) fn let_send(headers: &mut HeaderMap) {
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, SENT);
    }
}

/// Tells whether this is what is left of an origin after its host: nothing, or a port.
fn is_port(rest: &str) -> bool {
    rest.is_empty()
        || rest
            .strip_prefix(':')
            .is_some_and(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Browsers leave the port out where it is the scheme's own.
fn has_default_port(allowed: &str, shown: &str) -> bool {
    let base = match allowed.split_once("://") {
        Some(("http", _)) => allowed.strip_suffix(":80"),
        Some(("https", _)) => allowed.strip_suffix(":443"),
        _ => None,
    };
    base.is_some_and(|base| base.eq_ignore_ascii_case(shown))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(allowed: &str, shown: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(ORIGIN, shown.parse().expect("it is a header"));
        Origins::new(vec![allowed.to_owned()]).allowed(&headers).is_some()
    }

    #[test]
    fn an_origin_is_allowed_by_name_and_port() {
        for (allowed, shown) in [
            ("http://localhost:*", "http://localhost:5173"),
            ("http://localhost:*", "http://localhost"),
            ("https://app.example:443", "https://app.example"),
            ("https://app.example:443", "https://app.example:443"),
            ("null", "null"),
        ] {
            assert!(allows(allowed, shown), "{allowed} {shown}");
        }
        for (allowed, shown) in [
            ("http://localhost:*", "http://localhost.evil.example"),
            ("http://localhost:*", "http://localhost:80.evil.example"),
            ("http://localhost:*", "https://localhost:5173"),
            ("http://localhost:*", "http://localhost:"),
            ("https://app.example:443", "http://app.example"),
            ("https://app.example:8443", "https://app.example"),
        ] {
            assert!(!allows(allowed, shown), "{allowed} {shown}");
        }
    }
}
