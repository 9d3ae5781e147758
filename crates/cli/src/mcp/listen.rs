//! The server for clients that come over HTTP.

use std::net::IpAddr;
use std::path::PathBuf;

use dsh_mcp::server::{HttpConfig, McpServer, ServeError};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::request::Http;
use super::token;
use crate::failure::Failure;
use crate::publish;

/// A place where clients are listened for, and who of them is served.
pub(super) struct Endpoint {
    listener: TcpListener,
    config: HttpConfig,
    token_file: PathBuf,
}

impl Endpoint {
    /// Begins to listen, and finds or makes the token.
    ///
    /// # Errors
    ///
    /// The address or the token cannot be used, or an origin or a host is none.
    pub(super) async fn open(http: Http) -> Result<Self, Failure> {
        let address = http.address;
        // Before the token: where nothing can be served, no file is left.
        let listener = TcpListener::bind(address)
            .await
            .map_err(|error| Failure::new("listen", format!("--http {address}: {error}")))?;
        let (token, token_file) = token::obtain(http.token_file)?;
        let mut config = HttpConfig::new(token);
        config.allowed_origins = http.allowed_origins;
        config.allowed_hosts = http.allowed_hosts;
        // The names of the loopback interface are allowed already.
        if !address.ip().is_loopback() && !address.ip().is_unspecified() {
            config.allowed_hosts.push(match address.ip() {
                IpAddr::V4(ip) => ip.to_string(),
                IpAddr::V6(ip) => format!("[{ip}]"),
            });
        }
        config
            .validate()
            .map_err(|error| Failure::bad_option(error.to_string()))?;
        Ok(Self {
            listener,
            config,
            token_file,
        })
    }

    /// Says where, and serves until `stop`.
    pub(super) async fn serve(self, server: &McpServer, stop: CancellationToken) -> Result<(), ServeError> {
        if let Ok(address) = self.listener.local_addr() {
            publish::note(&format!(
                "listening on http://{address}/mcp; clients show the token in {}",
                self.token_file.display()
            ));
        }
        server.serve_http(self.listener, self.config, stop).await
    }
}
