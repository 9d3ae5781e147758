//! Lines that are no messages.

use std::fs;
use std::sync::{Arc, Mutex};

use dsh_mcp::client::{BadLineCause, Limits};
use rmcp::model::ErrorCode;
use rmcp::service::ServiceError;
use serde_json::json;

use crate::fixture::{call, closed, connected, python, try_call, world};

#[tokio::test]
async fn bad_lines_between_good_ones_are_skipped_counted_and_told() {
    let world = world();
    let told = Arc::new(Mutex::new(Vec::new()));
    let command = python(&[]).on_bad_line({
        let told = Arc::clone(&told);
        move |line| told.lock().expect("no test panics with it").push(line.clone())
    });
    let (client, server) = connected(&world, command).await;
    for round in 1..=2_u64 {
        assert_eq!(call(&client, "noise", json!({})).await, "after the noise");
        assert_eq!(server.bad_lines().count, round * 7);
    }
    let bad = server.bad_lines().recent;
    let seen: Vec<_> = bad.iter().take(7).map(|line| (line.cause, line.length)).collect();
    assert_eq!(
        seen,
        [
            (BadLineCause::NotJson, 22),
            (BadLineCause::NotJson, 12),
            (BadLineCause::NotUtf8, 13),
            (BadLineCause::NotJson, 22),
            (BadLineCause::NotAMessage, 5),
            (BadLineCause::NotAMessage, bad[5].length),
            (BadLineCause::TooLong, 20 * 1024 * 1024),
        ]
    );
    assert_eq!(bad[0].excerpt, "Listening on port 3000");
    assert_eq!(bad[1].excerpt, "\\u{1b}[31mred\\u{1b}[0m");
    assert_eq!(bad[6].excerpt, "x".repeat(80));
    assert!(bad.iter().all(|line| line.answers.is_none()));
    assert_eq!(*told.lock().expect("no test panics with it"), Vec::from(bad));
    closed(client, &server).await;
}

#[tokio::test]
async fn a_call_whose_answer_cannot_be_read_fails_and_the_session_goes_on() {
    let world = world();
    let mut command = python(&[]);
    command.limits.line_bytes = 1024 * 1024;
    let (client, server) = connected(&world, command).await;
    let size = json!({"size": 20 * 1024 * 1024});
    for (tool, says) in [
        ("id last", "is longer than the cap"),
        ("id first", "is longer than the cap"),
        ("cut off", "is no JSON"),
    ] {
        let error = try_call(&client, tool, size.clone()).await;
        let Err(ServiceError::McpError(error)) = error else {
            panic!("{error:?} is not what is wrong");
        };
        assert_eq!(error.code, ErrorCode::PARSE_ERROR);
        assert!(error.message.contains(says), "{}", error.message);
        assert_eq!(
            call(&client, "echo", json!({"text": "still here"})).await,
            "still here"
        );
    }
    assert_eq!(server.bad_lines().count, 3);
    closed(client, &server).await;
}

/// The most memory that this process ever had, in bytes.
fn peak_memory() -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("it is ours");
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1));
    kilobytes
        .and_then(|number| number.parse::<usize>().ok())
        .expect("it is a number")
        * 1024
}

#[tokio::test]
async fn a_long_line_is_skipped_in_bounded_memory() {
    let world = world();
    let mut command = python(&[]);
    command.limits.line_bytes = 1024 * 1024;
    let (client, server) = connected(&world, command).await;
    let small = json!({"size": 2 * 1024 * 1024});
    try_call(&client, "id last", small)
        .await
        .expect_err("it is too long");
    let before = peak_memory();
    let large = json!({"size": 128 * 1024 * 1024});
    try_call(&client, "id last", large)
        .await
        .expect_err("it is too long");
    let grown = peak_memory() - before;
    assert!(
        grown < 64 * 1024 * 1024,
        "{grown} bytes for a line of twice the bound"
    );
    closed(client, &server).await;
}

#[tokio::test]
async fn a_line_of_the_default_cap_is_a_message() {
    let world = world();
    let (client, server) = connected(&world, python(&[])).await;
    // The text, and less than 1 KiB around it.
    let size = Limits::default().line_bytes - 65_536;
    let text = call(&client, "id last", json!({ "size": size })).await;
    assert_eq!(text.len(), size);
    closed(client, &server).await;
}
