//! Error output: drained, kept, and never the host's.

use std::fs;

use serde_json::json;

use crate::fixture::{call, closed, connected, python, world};

#[tokio::test]
async fn o30_a_server_that_complains_at_length_does_not_block() {
    let world = world();
    for (noise, written, end) in [
        ("lines", 1_120_000, "trouble ahead"),
        ("one line", 1_120_000, "trouble"),
    ] {
        let (client, server) = connected(&world, python(&[noise])).await;
        for number in ["one", "two", "three"] {
            assert_eq!(call(&client, "echo", json!({"text": number})).await, number);
        }
        let snapshot = server.stderr().snapshot();
        assert_eq!(snapshot.total, written);
        assert_eq!(snapshot.tail.len(), 64 * 1024);
        assert!(server.stderr_tail().ends_with(end));
        assert!(server.stderr_tail().len() <= 2048);
        closed(client, &server).await;
    }
}

#[tokio::test]
async fn the_error_output_can_be_read_during_the_session_and_after_it() {
    let world = world();
    let (client, server) = connected(&world, python(&[])).await;
    call(&client, "complain", json!({})).await;
    crate::fixture::within(server.stderr().changed(0)).await;
    assert_eq!(server.stderr_tail(), "complaint");
    closed(client, &server).await;
    assert_eq!(server.stderr_tail(), "complaint");
    assert!(server.stderr().is_sealed());
}

#[tokio::test]
async fn a_server_has_none_of_the_hosts_streams() {
    let world = world();
    let (client, server) = connected(&world, python(&[])).await;
    let pid = server.pid().expect("it was started");
    for number in 0..3 {
        let stream = |process: &str| fs::read_link(format!("/proc/{process}/fd/{number}")).ok();
        let theirs = stream(&pid.to_string()).expect("it runs");
        assert!(theirs.to_string_lossy().starts_with("pipe:"), "{theirs:?}");
        assert_ne!(Some(theirs), stream("self"));
    }
    closed(client, &server).await;
}
