//! Connections: accepted, bounded, and ended.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::gate::Gate;

/// How long a client may take to send the head of a request, and may leave a connection unused.
const HEAD: Duration = Duration::from_secs(10);

/// How large that head may be, in bytes.
const HEAD_BYTES: usize = 64 << 10;

/// How long connections may take to end once the server stops. Their streams end at once; a client that does not read keeps its
/// own open.
const CLOSING: Duration = Duration::from_secs(1);

/// How long to wait before the next try where no connection could be accepted, as when there are no descriptors left.
const RETRY: Duration = Duration::from_millis(500);

/// Accepts connections until `stop`, and ends them. It never gives up: what is lacking now may be there later.
pub(super) async fn accept(
    listener: TcpListener,
    gate: Arc<Gate>,
    max_connections: usize,
    stop: &CancellationToken,
) {
    let room = Arc::new(Semaphore::new(max_connections));
    // Dropping the set ends what is in it.
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let next = async {
            let place = Arc::clone(&room).acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            () = stop.cancelled() => break,
            next = next => next,
        };
        match accepted {
            Ok((stream, _)) => {
                let connection = serve(stream, Arc::clone(&gate), stop.clone());
                connections.spawn(async move {
                    connection.await;
                    drop(place);
                });
            }
            Err(error) if is_passing(&error) => tracing::debug!(%error, "a connection was lost"),
            Err(error) => {
                tracing::warn!(%error, "no connection could be accepted");
                tokio::select! {
                    () = stop.cancelled() => break,
                    () = tokio::time::sleep(RETRY) => {}
                }
            }
        }
    }
    let ended = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(CLOSING, ended).await;
    connections.shutdown().await;
}

async fn serve(stream: TcpStream, gate: Arc<Gate>, stop: CancellationToken) {
    // Messages are small and wait for nothing.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let gate = Arc::clone(&gate);
        async move { Ok::<_, Infallible>(gate.answer(request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection has ended");
    }
}

/// Tells whether an error is about the connection that was to be accepted, and says nothing of the next one.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted
    )
}
