//! Servers that are not started.

use dsh_mcp::client::{ServerCommand, ServerError, ServerTransport};
use dsh_subprocess::ErrorKind;

use crate::fixture::{python, within, world};

async fn refusal(command: ServerCommand) -> ServerError {
    let world = world();
    within(ServerTransport::spawn(&world, command))
        .await
        .expect_err("it cannot be started")
}

#[tokio::test]
async fn a_server_that_cannot_be_started_is_an_error_of_the_seams_kind() {
    let missing = ServerCommand::new(vec!["no-such-server".into()], "/");
    let error = refusal(missing).await;
    assert_eq!(error.kind(), Some(ErrorKind::ProgramNotFound));
    assert!(error.to_string().contains("no-such-server"), "{error}");

    let mut elsewhere = python(&[]);
    elsewhere.cwd = "/no/such/directory".into();
    let error = refusal(elsewhere).await;
    assert_eq!(error.kind(), Some(ErrorKind::CwdNotFound));
    assert!(error.to_string().contains("/no/such/directory"), "{error}");

    let nothing = ServerCommand::new(Vec::new(), "/");
    assert_eq!(refusal(nothing).await.kind(), Some(ErrorKind::InvalidSpec));
}

#[tokio::test]
async fn a_limit_that_no_line_fits_is_refused() {
    let mut command = python(&[]);
    command.limits.line_bytes = 0;
    assert!(matches!(refusal(command).await, ServerError::NoLineFits));
    let mut command = python(&[]);
    command.limits.grace = std::time::Duration::ZERO;
    assert_eq!(refusal(command).await.kind(), Some(ErrorKind::InvalidSpec));
}
