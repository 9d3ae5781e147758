//! Servers that work.

use std::fs;

use dsh_mcp::client::ServerCommand;
use serde_json::json;

use crate::fixture::{Log, bash, call, closed, connected, python, runs, spawned, within, world};

#[tokio::test]
async fn a_server_lists_its_tools_and_answers_calls() {
    let world = world();
    let (client, server) = connected(&world, python(&[])).await;
    let tools = within(client.list_all_tools()).await.expect("it lists them");
    let names: Vec<_> = tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["echo"]);
    let text = "a line\nand another, \u{1F980}";
    assert_eq!(call(&client, "echo", json!({"text": text})).await, text);
    assert_eq!(server.bad_lines().count, 0);
    closed(client, &server).await;
    let outcome = server.handle().exited().await.expect("it is known");
    assert!(
        outcome.success(),
        "{outcome} is what the end of its input makes of it"
    );
}

/// Larger than a pipe, both ways.
#[tokio::test]
async fn a_message_of_a_megabyte_goes_there_and_back() {
    let world = world();
    let (client, server) = connected(&world, python(&[])).await;
    let text = "0123456789abcdef".repeat(65_536);
    assert!(call(&client, "echo", json!({"text": text})).await == text);
    closed(client, &server).await;
}

#[tokio::test]
async fn many_calls_at_once_get_their_own_answers() {
    let world = world();
    let (client, server) = connected(&world, python(&[])).await;
    let calls = (0..200).map(|number| {
        let peer = client.peer().clone();
        tokio::spawn(async move {
            let text = number.to_string().repeat(100);
            let arguments = json!({"text": text.clone()});
            let request = rmcp::model::CallToolRequestParams::new("echo")
                .with_arguments(arguments.as_object().expect("it is one").clone());
            let result = peer.call_tool(request).await.expect("the server answers");
            assert_eq!(result.content[0].as_text().expect("it is a text").text, text);
        })
    });
    for call in calls.collect::<Vec<_>>() {
        within(call).await.expect("no call panics");
    }
    closed(client, &server).await;
}

/// The number of this process's descriptors.
fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").expect("it is ours").count()
}

#[tokio::test]
async fn o23_fifty_sessions_leave_neither_descriptors_nor_processes() {
    let world = world();
    let log = Log::new();
    let handshake = |log: &Log| bash(include_str!("handshake.sh"), &log.path());
    let (client, server) = connected(&world, handshake(&log)).await;
    closed(client, &server).await;
    drop(server);
    let before = descriptors();
    for _ in 0..50 {
        // One that is dropped without a handshake, and one that is closed after it.
        let transport = spawned(&world, ServerCommand::new(vec!["cat".into()], "/")).await;
        let dropped = transport.process();
        drop(transport);
        let (client, server) = connected(&world, handshake(&log)).await;
        closed(client, &server).await;
        within(dropped.gone()).await.expect("nobody is left");
        for server in [server, dropped] {
            assert!(!runs(server.pid().expect("it was started")));
        }
    }
    let after = descriptors();
    assert!(after.abs_diff(before) <= 2, "{before} descriptors became {after}");
}
