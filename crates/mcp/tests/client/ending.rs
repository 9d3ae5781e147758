//! Servers that end unasked.

use dsh_mcp::client::{CONNECTION_CLOSED, ServerCommand, ServerTransport};
use dsh_subprocess_local::LocalRuntime;
use rmcp::ServiceExt;
use rmcp::service::ServiceError;
use serde_json::json;

use crate::fixture::{call, call_in_vain, closed, connected, python, spawned, try_call, within, world};

/// The text of the error of a handshake with such a server.
async fn handshake_error(world: &LocalRuntime, script: &str) -> String {
    let argv = ["bash", "-c", script].map(Into::into).to_vec();
    let transport: ServerTransport = spawned(world, ServerCommand::new(argv, "/")).await;
    let server = transport.process();
    let error = within(().serve(transport)).await.expect_err("nobody is there");
    within(server.gone()).await.expect("nobody is left");
    error.to_string()
}

/// Whether its end is noticed while the request is written or while the answer is awaited.
#[tokio::test]
async fn a_server_that_ends_in_the_handshake_is_quoted() {
    let world = world();
    let complaint = r"printf '\033[31mError\033[0m: cannot find module\n\tat main\n' >&2; exit 3";
    for wait in [
        "",
        "read -r line; ",
        "exec <&-; sleep 0.1; ",
        "exec >&-; sleep 0.1; ",
    ] {
        let text = handshake_error(&world, &format!("{wait}{complaint}")).await;
        assert!(text.contains("the server exited with code 3"), "{text}");
        assert!(text.contains(r"Error: cannot find module\n\tat main"), "{text}");
        assert!(!text.contains(['\u{1B}', '\n']), "{text}");
    }
}

#[tokio::test]
async fn a_server_that_says_nothing_at_its_end_is_said_to() {
    let text = handshake_error(&world(), "kill -9 $$").await;
    assert!(
        text.contains("the server ended by SIGKILL, and its error output is empty"),
        "{text}"
    );
}

/// The request's error: its code, its text and its outcome.
fn failure(error: ServiceError) -> (String, serde_json::Value) {
    let ServiceError::McpError(error) = error else {
        panic!("{error} does not say what happened");
    };
    assert_eq!(error.code, CONNECTION_CLOSED);
    let data = error.data.expect("it has some");
    (error.message.into_owned(), data["outcome"].clone())
}

#[tokio::test]
async fn a_server_that_is_killed_in_the_middle_of_a_call_fails_the_call() {
    let world = world();
    // The second time, the server's own child holds its output open.
    for tool in ["never", "never, with a child"] {
        let (client, server) = connected(&world, python(&[])).await;
        let calls = [
            call_in_vain(&client, &server, tool).await,
            call_in_vain(&client, &server, "never").await,
        ];
        let pid = server.pid().expect("it was started");
        world.signal(pid, 9).expect("it is ours");
        for call in calls {
            let result = within(call).await.expect("it does not panic");
            let (text, outcome) = failure(result.expect_err("nobody answered"));
            assert!(text.contains("ended by SIGKILL"), "{text}");
            assert!(text.contains("called"), "{text}");
            assert_eq!(outcome, "ended by SIGKILL");
        }
        assert!(
            try_call(&client, "echo", json!({"text": ""})).await.is_err(),
            "a later call fails, too"
        );
        let mut client = client;
        // The child has no reason to go by itself.
        within(client.close()).await.expect("the service ends");
        within(server.gone()).await.expect("nobody is left");
    }
}

#[tokio::test]
async fn a_server_that_exits_in_the_middle_of_a_call_is_quoted() {
    let world = world();
    let (client, server) = connected(&world, python(&[])).await;
    let error = try_call(&client, "exit", json!({})).await;
    let (text, outcome) = failure(error.expect_err("nobody answered"));
    assert_eq!(
        text,
        "the server exited with code 3, and its error output ended with: no more memory"
    );
    assert_eq!(outcome, "exited with code 3");
    closed(client, &server).await;
}

#[tokio::test]
async fn a_last_answer_without_an_end_of_line_is_an_answer() {
    let world = world();
    let (client, server) = connected(&world, python(&[])).await;
    let text = call(&client, "no end of line", json!({})).await;
    assert_eq!(text, "the last words");
    closed(client, &server).await;
}
