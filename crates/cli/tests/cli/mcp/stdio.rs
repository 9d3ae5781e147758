//! A session over the standard streams.

use std::process::{Command, Stdio};

use serde_json::json;

use super::client::{Client, text};
use crate::fixture::{BINARY, Case, finish, start};

#[test]
fn a_client_that_writes_lines_runs_a_command_and_sees_what_a_model_sees() {
    let case = Case::new();
    let mut client = Client::start(&case, &[]);
    let tools = client.request("tools/list", &json!({}));
    let names: Vec<_> = tools["tools"]
        .as_array()
        .expect("it is a list")
        .iter()
        .map(|tool| tool["name"].as_str().expect("it has a name"))
        .collect();
    for name in ["bash", "job_output", "job_kill", "job_list", "process_info"] {
        assert!(names.contains(&name), "{names:?}");
    }
    let result = client.call("bash", &json!({ "command": "echo out; echo err >&2; exit 3" }));
    assert_eq!(text(&result), "out\n[stderr]\nerr\n[exit code: 3]");
    assert_eq!(result["structuredContent"]["exit_code"], 3);
    client.close();
    let done = client.finish();
    assert_eq!((done.code(), &done.stderr[..]), (0, ""));
}

#[test]
fn a_bad_line_does_not_end_the_session() {
    let case = Case::new();
    let mut client = Client::start(&case, &["--log", "off"]);
    client.send(&json!("no message"));
    client.send(&json!([1, 2, 3]));
    assert_eq!(client.bash("echo alive"), "alive\n[exit code: 0]");
    client.close();
    assert_eq!(client.finish().code(), 0);
}

#[test]
fn the_options_decide_how_commands_run() {
    let case = Case::new();
    std::fs::create_dir(case.path("below")).expect("a directory can be made");
    let options = [
        "--cwd",
        "below",
        "--timeout",
        "1s",
        "--max-timeout",
        "2s",
        "--max-bytes",
        "400",
        "--shell",
        "sh",
        "--grace",
        "200ms",
    ];
    let mut client = Client::start(&case, &options);
    let shown = client.bash("basename \"$PWD\"; echo ${BASH_VERSION-none}");
    assert_eq!(shown, "below\nnone\n[exit code: 0]");
    let shown = client.bash("seq 1 1000");
    assert!(shown.contains(" 3493 bytes "), "{shown}");
    let result = client.call(
        "bash",
        &json!({ "command": "trap '' TERM; while :; do sleep 0.05; done" }),
    );
    assert_eq!(result["structuredContent"]["timeout_ms"], 1000, "{result:#}");
    assert!(text(&result).ends_with("[timed out after 1000ms]\n[killed by signal: SIGKILL]"));
    let result = client.call(
        "bash",
        &json!({ "command": "exec sleep 300", "timeout_ms": 600_000 }),
    );
    assert_eq!(result["structuredContent"]["timeout_ms"], 2000, "{result:#}");
    client.close();
    assert_eq!(client.finish().code(), 0);
    case.assert_nothing_lives();
}

#[test]
fn o1_what_a_command_leaves_running_is_a_job_or_is_ended() {
    for (option, expected) in [
        (&[][..], "[left running as job bash-1: "),
        (&["--left-behind", "job"], "[left running as job bash-1: "),
        (&["--left-behind", "end"], "[ended what was left running: "),
    ] {
        let case = Case::new();
        let mut client = Client::start(&case, option);
        let shown = client.bash("sleep 300 & echo done");
        assert!(shown.starts_with("done\n") && shown.contains(expected), "{shown}");
        client.close();
        assert_eq!(client.finish().code(), 0);
        case.assert_nothing_lives();
    }
}

#[test]
fn what_is_logged_holds_no_command_and_no_output() {
    let case = Case::new();
    let mut client = Client::start(&case, &["--log", "debug"]);
    let shown = client.bash("echo very-$((1))-secret");
    assert_eq!(shown, "very-1-secret\n[exit code: 0]");
    client.close();
    let done = client.finish();
    assert!(
        done.stderr.contains("dsh-subprocess: info: a session has ended"),
        "{}",
        done.stderr
    );
    assert!(!done.stderr.contains("secret"), "{}", done.stderr);
}

#[test]
fn whoever_starts_it_at_a_terminal_is_told_what_it_is() {
    let case = Case::new();
    let mut terminal = Command::new("script");
    terminal.args([
        "--quiet",
        "--return",
        "--command",
        "\"$BINARY\" mcp >/dev/null",
        "/dev/null",
    ]);
    let mut terminal = case.dress(terminal);
    terminal.env("BINARY", BINARY).env("SHELL", "/bin/sh");
    // The end of our input is typed as Ctrl-D.
    let done = finish(start(terminal.stdin(Stdio::null())));
    assert_eq!(done.code(), 0);
    assert!(done.text().contains("MCP server"), "{}", done.text());
}
