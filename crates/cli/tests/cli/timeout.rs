//! A run that takes too long.

use crate::fixture::Case;

#[test]
fn a_timeout_is_124_and_keeps_what_was_written() {
    let case = Case::new();
    let done = case.sh(&["--timeout", "200ms"], "echo partial; exec sleep 300");
    assert_eq!((done.code(), done.text()), (124, "partial\n"));
    assert!(
        done.line().starts_with("timed out, ended by SIGTERM in "),
        "{}",
        done.line()
    );
    case.assert_nothing_lives();
}

#[test]
fn o17_a_timeout_keeps_what_was_collected() {
    let case = Case::new();
    let object = case.json(
        &["--timeout", "500ms"],
        "echo CRITICAL; echo warn >&2; exec sleep 300",
    );
    assert_eq!(object["cause"], "timed_out");
    assert_eq!(object["exit_status"], 124);
    assert_eq!(object["stdout"]["text"], "CRITICAL\n");
    assert_eq!(object["stderr"]["text"], "warn\n");
    assert_eq!(object["outcome"]["signal"], "SIGTERM");
    assert_eq!(object["error"], serde_json::Value::Null);
    case.assert_nothing_lives();
}

#[test]
fn item_122_a_command_that_exits_0_on_sigterm_has_still_timed_out() {
    let case = Case::new();
    let script = "trap 'exit 0' TERM; while :; do sleep 0.05; done";
    let object = case.json(&["--timeout", "500ms"], script);
    assert_eq!(object["cause"], "timed_out");
    assert_eq!(object["exit_status"], 124);
    assert_eq!(object["outcome"]["exit_code"], 0);
}

#[test]
fn after_the_grace_a_command_that_ignores_sigterm_is_killed() {
    let case = Case::new();
    let script = "trap '' TERM; while :; do sleep 0.05; done";
    let object = case.json(&["--timeout", "300ms", "--grace", "300ms"], script);
    assert_eq!(object["exit_status"], 124);
    assert_eq!(object["outcome"]["signal"], "SIGKILL");
    case.assert_nothing_lives();
}

#[test]
fn a_command_that_ends_in_time_did_not_time_out() {
    let object = Case::new().json(&["--timeout", "1h"], "exit 4");
    assert_eq!(object["cause"], "exited");
    assert_eq!(object["exit_status"], 4);
}

#[test]
fn o3_a_timeout_ends_every_member_of_a_pipeline() {
    let case = Case::new();
    let done = case.sh(&["--quiet", "--timeout", "300ms"], "sleep 300 | cat | cat");
    assert_eq!((done.code(), &done.stderr[..]), (124, ""));
    case.assert_nothing_lives();
}

#[test]
fn o20_a_timeout_covers_the_writing_of_input() {
    let case = Case::new();
    let file = case.file("input", vec![b'x'; 8 << 20]);
    let options = [
        "--quiet",
        "--timeout",
        "300ms",
        "--stdin-file",
        file.to_str().unwrap(),
    ];
    assert_eq!(case.run(&options, &["sleep", "300"]).code(), 124);
    case.assert_nothing_lives();
}
