//! How a session ends.

use std::time::Duration;

use dsh_subprocess::Error;
use tokio_util::sync::CancellationToken;

use super::error::ServerError;
use super::incoming::Incoming;
use super::process::ServerProcess;

/// Waits for a server that has got the end of its input, and terminates what is left after `wait`. Resolves when the tree is
/// gone.
///
/// Dropping the future stops the waiting only, and a termination that has begun goes on.
pub(super) async fn ended(
    server: &ServerProcess,
    incoming: Option<&mut Incoming>,
    wait: Duration,
) -> Result<(), ServerError> {
    let ladder = async {
        let never = CancellationToken::new();
        match tokio::time::timeout(wait, server.handle().wait_for_exit(&never)).await {
            Ok(Ok(_)) => Ok(()),
            // Where nobody can tell, the termination says why.
            Ok(Err(_)) | Err(_) => server.handle().terminate().await,
        }
    };
    let ended: Result<(), Error> = match incoming {
        None => ladder.await,
        Some(incoming) => tokio::select! {
            ended = ladder => ended,
            () = incoming.discard() => unreachable!("it goes on until it is dropped"),
        },
    };
    ended.map_err(ServerError::End)
}
