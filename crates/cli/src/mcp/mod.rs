//! The server of the Model Context Protocol, as a process: on its own standard streams, or listening.
//!
//! Written against the seam, as [`run`](crate::run) is.

mod listen;
mod log;
mod options;
mod request;
mod token;

use std::io::IsTerminal;

use dsh_jobs::{Jobs, Limits};
use dsh_mcp::server::{McpServer, ServeError, ServerConfig};
use dsh_shell::Shell;
use dsh_subprocess::{Error, Scrub};
use tokio_util::sync::CancellationToken;

use crate::attendance::Attendance;
use crate::failure::Failure;
use crate::options::OwnershipOption;
use crate::publish;
use crate::run::World;
use crate::signals::{Interrupt, Interrupts};
use crate::supervision;

pub(crate) use options::McpOptions;

use listen::Endpoint;
use request::Request;

/// Serves until the client goes or somebody asks for the end, and returns what to exit with. `make_world` is called once, when
/// all else is in order.
pub(crate) fn mcp(
    options: McpOptions,
    make_world: impl FnOnce(OwnershipOption, Scrub) -> Result<World, Error>,
) -> Result<u8, Failure> {
    let request = Request::new(options)?;
    log::install(request.log);
    let executor = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| {
            Failure::new(
                "resource_exhausted",
                format!("no event loop can be made: {error}"),
            )
        })?;
    let status = executor.block_on(serve(request, make_world));
    // A thread may wait for our own input for ever.
    executor.shutdown_background();
    status
}

async fn serve(
    request: Request,
    make_world: impl FnOnce(OwnershipOption, Scrub) -> Result<World, Error>,
) -> Result<u8, Failure> {
    // From here on nobody ends this process before its trees by asking for it.
    let interrupts = Interrupts::watch().map_err(supervision::no_signals)?;
    let endpoint = match request.http {
        Some(http) => Some(Endpoint::open(http).await?),
        None => None,
    };
    let world = make_world(request.ownership, request.scrub).map_err(|error| Failure::from(&error))?;
    let refused = |error: &dyn std::error::Error| Failure::bad_option(error.to_string());
    let shell = Shell::new(world.runtime.clone(), request.config).map_err(|error| refused(&error))?;
    let jobs = Jobs::new(Limits::default()).map_err(|error| refused(&error))?;
    let config = ServerConfig {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        session_end: request.session_end,
        ..ServerConfig::default()
    };
    let server = McpServer::new(world.runtime.clone(), shell, jobs.clone(), config)
        .map_err(|error| refused(&error))?;

    let mut attendance = Attendance::new(interrupts, &world);
    let stop = CancellationToken::new();
    let serving = async {
        if let Some(endpoint) = endpoint {
            endpoint.serve(&server, stop.clone()).await
        } else {
            if std::io::stdin().is_terminal() {
                publish::note(
                    "this is an MCP server, for a client that starts it and speaks JSON-RPC on its stdin and stdout; Ctrl-D ends it",
                );
            }
            server
                .serve(tokio::io::stdin(), tokio::io::stdout(), stop.clone())
                .await
        }
    };
    let served = attendance.wait_for(serving, || stop.cancel()).await;
    let ended = attendance.wait_for(jobs.dispose(), || ()).await;
    let disposed = attendance.wait_for(world.runtime.dispose(), || ()).await;
    // Whom nobody could end is told, and does not change the status.
    if let Err(error) = disposed {
        publish::note(&Failure::from(&error).message);
    } else if let Err(error) = ended {
        publish::note(&error.to_string());
    }
    served.map_err(|error| failure_of(&error))?;
    Ok(attendance.interrupt().map_or(0, Interrupt::status))
}

/// Tells why nothing was served in the words of the command line.
fn failure_of(error: &ServeError) -> Failure {
    let kind = match error {
        ServeError::Config(_) => "bad_option",
        ServeError::Handshake(_) => "protocol",
        _ => "resource_exhausted",
    };
    Failure::new(kind, error.to_string())
}
