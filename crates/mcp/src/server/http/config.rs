//! Who is let in.

use std::time::Duration;

use hyper::Uri;

use super::token::BearerToken;
use crate::server::config::{ConfigError, bounded, bounded_time};

/// The limits of an HTTP endpoint, and who may use it.
///
/// ```no_run
/// use dsh_mcp::server::{BearerToken, HttpConfig, McpServer};
/// use tokio_util::sync::CancellationToken;
///
/// # async fn serve(server: McpServer, stop: CancellationToken) -> Result<(), Box<dyn std::error::Error>> {
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:8750").await?;
/// let token = BearerToken::from_file("/run/user/1000/dsh-token")?;
/// server.serve_http(listener, HttpConfig::new(token), stop).await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct HttpConfig {
    /// What each request must show. Without it a request is answered with 401.
    pub token: BearerToken,
    /// Values of `Origin` that may be shown, as in `https://app.example:443` or `http://localhost:*`. A request without an
    /// `Origin` comes from no web page and passes; any other is answered with 403. Initially none.
    pub allowed_origins: Vec<String>,
    /// Values of `Host` beside those of the loopback interface, as in `build.example` or `build.example:8750`. Any other is
    /// answered with 403, so that no web page reaches the server by a name of its own. Initially none.
    pub allowed_hosts: Vec<String>,
    /// How long a session may be without a call, an open stream and a message before it ends: more than zero, at most a day.
    pub session_idle: Duration,
    /// How long a client may have no stream open while a call of it runs; then the call's command is ended. It is time for a
    /// connection to be made again: more than zero, at most a day.
    pub reconnect: Duration,
    /// The largest request, in bytes: from 1 KiB to 256 MiB.
    pub max_body_bytes: usize,
    /// How many sessions there may be at once: from 1 to 65,536. One more is answered with 503.
    pub max_sessions: usize,
    /// How many connections there may be at once: from 1 to 65,536. More wait.
    pub max_connections: usize,
}

impl HttpConfig {
    /// Lets in who shows a token, under the names of the loopback interface, and from no web page.
    ///
    /// A session ends after half an hour without anything; 10 s are time to reconnect; requests have at most 4 MiB; there are
    /// at most 64 sessions and 512 connections.
    pub fn new(token: BearerToken) -> Self {
        Self {
            token,
            allowed_origins: Vec::new(),
            allowed_hosts: Vec::new(),
            session_idle: Duration::from_secs(30 * 60),
            reconnect: Duration::from_secs(10),
            max_body_bytes: 4 << 20,
            max_sessions: 64,
            max_connections: 512,
        }
    }

    /// Checks what no endpoint could run with.
    ///
    /// # Errors
    ///
    /// The first value that is wrong, by its name.
    pub fn validate(&self) -> Result<(), ConfigError> {
        for origin in &self.allowed_origins {
            if !is_origin(origin) {
                return Err(ConfigError(format!(
                    "allowed_origins has {origin:?}: it must be a scheme and a host with a port or `*`, as in `http://localhost:*`"
                )));
            }
        }
        for host in &self.allowed_hosts {
            if host.trim().parse::<hyper::http::uri::Authority>().is_err() {
                return Err(ConfigError(format!(
                    "allowed_hosts has {host:?}: it must be a host, or a host with a port"
                )));
            }
        }
        bounded_time("session_idle", self.session_idle)?;
        bounded_time("reconnect", self.reconnect)?;
        bounded("max_body_bytes", self.max_body_bytes, 1 << 10, 256 << 20)?;
        bounded("max_sessions", self.max_sessions, 1, 1 << 16)?;
        bounded("max_connections", self.max_connections, 1, 1 << 16)
    }
}

/// Tells whether a text names an origin and, where it has a host, its port: without one, any would do.
fn is_origin(text: &str) -> bool {
    if text == "null" {
        return true;
    }
    let (base, any_port) = match text.strip_suffix(":*") {
        Some(base) => (base, true),
        None => (text, false),
    };
    let Ok(uri) = base.parse::<Uri>() else {
        return false;
    };
    let has_port = uri.port_u16().is_some();
    uri.scheme().is_some()
        && uri.host().is_some()
        && uri.path() == "/"
        && uri.query().is_none()
        && has_port != any_port
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_has_a_scheme_a_host_and_a_port() {
        for right in [
            "null",
            "http://localhost:*",
            "https://app.example:443",
            "http://[::1]:80",
        ] {
            assert!(is_origin(right), "{right}");
        }
        for wrong in [
            "",
            "*",
            "localhost",
            "localhost:80",
            "http://localhost",
            "http://localhost:80:*",
            "http://a:80/x",
        ] {
            assert!(!is_origin(wrong), "{wrong}");
        }
    }
}
