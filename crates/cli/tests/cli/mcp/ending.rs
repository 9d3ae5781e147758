//! However the server ends, nobody outlives it.

use nix::sys::signal::Signal;
use serde_json::json;

use super::client::Client;
use crate::fixture::{Case, eventually, signal};

/// What ignores every polite end, in the tree and out of its session, and says when it is there.
fn stubborn(gate: &str) -> String {
    format!(
        "(trap '' TERM HUP; while :; do sleep 0.1; done) & setsid sh -c 'trap \"\" TERM; while :; do sleep 0.1; done' & \
         echo > '{gate}'; wait"
    )
}

/// Starts a server with a job and a command that a call waits for, both stubborn.
fn busy(case: &Case, options: &[&str]) -> Client {
    let mut client = Client::start(case, options);
    let gate = case.gate("job");
    client.call(
        "bash",
        &json!({ "command": stubborn(&gate.path()), "run_in_background": true }),
    );
    gate.wait();
    let gate = case.gate("call");
    client.begin_bash(&json!({ "command": stubborn(&gate.path()) }));
    gate.wait();
    client
}

#[test]
fn o10_at_the_end_of_its_input_it_ends_with_its_jobs_and_calls() {
    let case = Case::new();
    let mut client = busy(&case, &["--grace", "200ms"]);
    client.close();
    let done = client.finish();
    assert_eq!(done.code(), 0, "{}", done.stderr);
    case.assert_nothing_lives();
}

#[test]
fn o10_a_signal_ends_it_with_its_jobs_and_calls() {
    for (which, code) in [
        (Signal::SIGTERM, 143),
        (Signal::SIGINT, 130),
        (Signal::SIGHUP, 129),
    ] {
        let case = Case::new();
        let client = busy(&case, &["--grace", "200ms"]);
        signal(client.server(), which);
        let done = client.finish();
        assert_eq!((done.code(), &done.stderr[..]), (code, ""));
        case.assert_nothing_lives();
    }
}

#[test]
fn a_second_signal_does_not_wait_for_the_grace() {
    let case = Case::new();
    let mut client = Client::start(&case, &["--grace", "1h"]);
    let (ready, trapped) = (case.gate("ready"), case.gate("trapped"));
    let command = format!(
        "trap 'echo > \"{}\"' TERM; echo > '{}'; while :; do sleep 0.05; done",
        trapped.path(),
        ready.path()
    );
    client.call("bash", &json!({ "command": command, "run_in_background": true }));
    ready.wait();
    signal(client.server(), Signal::SIGTERM);
    trapped.wait();
    signal(client.server(), Signal::SIGTERM);
    assert_eq!(client.finish().code(), 143);
    case.assert_nothing_lives();
}

#[test]
fn o10_killed_by_force_it_leaves_nobody() {
    let case = Case::new();
    let client = busy(&case, &["--grace", "200ms"]);
    signal(client.server(), Signal::SIGKILL);
    client.finish();
    eventually("the end of its trees", || case.living().is_empty());
}

#[test]
fn a_client_that_goes_before_it_says_anything_is_no_failure() {
    let case = Case::new();
    let done = case.call(["mcp"]);
    assert_eq!((done.code(), done.text(), &done.stderr[..]), (0, "", ""));
}
