//! What ends with a call, with a session, and with the server.

use dsh_mcp::server::SessionEnd;
use rmcp::model::{CallToolRequest, ClientRequest};
use rmcp::service::PeerRequestOptions;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::fixture::{Client, Served, bounded, content, parameters};

/// A command that says when it runs, and ignores the polite signal.
const STUBBORN: &str = "trap '' TERM; echo up > up; while :; do sleep 0.1; done";

async fn call_in_background(
    client: &Client,
    command: &str,
) -> rmcp::service::RequestHandle<rmcp::RoleClient> {
    let request = CallToolRequest::new(parameters("bash", json!({ "command": command })));
    let request = ClientRequest::CallToolRequest(request);
    bounded(
        client
            .service
            .send_cancellable_request(request, PeerRequestOptions::no_options()),
    )
    .await
    .expect("the call is sent")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_calls_tree_ends_and_the_session_goes_on() {
    let served = Served::new();
    let client = served.connect().await;
    let call = call_in_background(&client, &format!("sleep 300 | cat & {STUBBORN}")).await;
    content(&served.directory.path().join("up")).await;
    bounded(call.cancel(None)).await.expect("it is cancelled");
    served.is_empty().await;
    assert_eq!(
        client.bash("echo still here").await["stdout"]["text"],
        "still here\n"
    );
    client.close().await;
    served.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_ends_takes_its_jobs_and_its_calls_with_it() {
    let served = Served::new();
    let client = served.connect().await;
    client.start("sleep 300 | cat").await;
    client
        .start(&format!(
            "setsid bash -c \"{}\" & wait",
            STUBBORN.replace("> up", "> job")
        ))
        .await;
    let _call = call_in_background(&client, STUBBORN).await;
    content(&served.directory.path().join("up")).await;
    content(&served.directory.path().join("job")).await;
    client.close().await;
    // The server's own word that it is over, and nothing runs.
    assert_eq!(served.processes(), Vec::<u32>::new());
    served.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_vanishes_in_the_middle_of_a_call_leaves_nothing() {
    let served = Served::new();
    let client = served.connect().await;
    let call = call_in_background(&client, STUBBORN).await;
    client.start("sleep 300").await;
    content(&served.directory.path().join("up")).await;
    drop(call);
    client.vanish().await;
    assert_eq!(served.processes(), Vec::<u32>::new());
    served.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_stopped_in_the_middle_ends_everything() {
    let served = Served::new();
    let client = served.connect().await;
    let _call = call_in_background(&client, STUBBORN).await;
    client.start("sleep 300").await;
    content(&served.directory.path().join("up")).await;
    client.stop().await;
    assert_eq!(served.processes(), Vec::<u32>::new());
    served.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_outlast_their_session_where_configured() {
    let served = Served::with(|_, config| config.session_end = SessionEnd::KeepJobs);
    let client = served.connect().await;
    client
        .start("while [ ! -e go ]; do sleep 0.05; done; echo over > over")
        .await;
    client.close().await;
    std::fs::write(served.directory.path().join("go"), "").expect("it is written");
    assert_eq!(content(&served.directory.path().join("over")).await, "over\n");
    served.is_empty().await;
    served.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_nearly_done_is_answered_after_the_last_message() {
    let served = Served::new();
    let client = served.connect().await;
    let (mut ours, theirs) = tokio::io::duplex(1 << 16);
    let (read, write) = tokio::io::split(theirs);
    let server = served.server.clone();
    let session = tokio::spawn(async move { server.serve(read, write, CancellationToken::new()).await });
    let messages = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "pipe", "version": "1" } } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
            "name": "bash", "arguments": { "command": "echo piped" } } }),
    ];
    let lines: String = messages
        .iter()
        .map(|message| message.to_string() + "\n")
        .collect();
    let written = bounded(async {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        ours.write_all(lines.as_bytes()).await.expect("it is written");
        ours.shutdown().await.expect("its end is told");
        let mut answers = String::new();
        ours.read_to_string(&mut answers).await.expect("it is read");
        answers
    })
    .await;
    assert!(written.contains("piped\\n[exit code: 0]"), "{written}");
    bounded(session)
        .await
        .expect("no panic")
        .expect("the session ends");
    client.close().await;
    served.finish().await;
}
