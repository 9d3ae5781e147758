//! The HTTP endpoint: who is let in, how many, and for how long.

mod config;
mod connections;
mod cors;
mod gate;
mod sessions;
pub(super) mod token;

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::ProtocolVersion;
use rmcp::transport::streamable_http_server::tower::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use self::config::HttpConfig;
use self::cors::Origins;
use self::gate::Gate;
use self::sessions::Sessions;
pub use self::token::{BearerToken, TokenError};
use super::Inner;
use super::handler::Handler;

/// How often a silent stream says that it is alive, so that a client that is gone is noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Serves until `stop`, and until what it served is over.
pub(super) async fn serve(
    server: &Arc<Inner>,
    listener: TcpListener,
    config: HttpConfig,
    stop: CancellationToken,
) {
    // Dropping this future cancels it, and with it every session and stream.
    let stop = stop.child_token();
    let _stopped = stop.clone().drop_guard();
    let tasks = TaskTracker::new();
    let sessions = Arc::new(Sessions::new(
        Arc::clone(server),
        &config,
        stop.clone(),
        tasks.clone(),
    ));

    let mut settings = StreamableHttpServerConfig::default()
        .enforce_origin_validation()
        .with_allowed_origins(config.allowed_origins.clone())
        .with_sse_keep_alive(Some(KEEP_ALIVE))
        // Streams would begin with an event without data, which clients of revisions before 2025-11-25 take for a message.
        .with_sse_retry(None)
        .with_cancellation_token(stop.clone())
        .with_max_request_body_bytes(config.max_body_bytes);
    settings
        .allowed_hosts
        .extend(config.allowed_hosts.iter().cloned());

    let factory = {
        let server = Arc::clone(server);
        let versions = ProtocolVersion::known_up_to(&ProtocolVersion::LATEST_WITH_INITIALIZE);
        move || Ok(Handler::new(Arc::clone(&server), versions))
    };
    let service = StreamableHttpService::new(factory, Arc::clone(&sessions), settings);
    let gate = Arc::new(Gate::new(
        config.token,
        Origins::new(config.allowed_origins),
        service,
        sessions,
    ));
    connections::accept(listener, gate, config.max_connections, &stop).await;
    tasks.close();
    tasks.wait().await;
}
