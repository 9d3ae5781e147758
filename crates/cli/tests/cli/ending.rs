//! The end of a run is the end of its tree.

use serde_json::Value;

use crate::fixture::Case;

/// Checks that a list of processes names the one `sleep`, by whatever it is called on the way to its exec: in the middle of
/// one a process has no command line, and is named in brackets.
#[track_caller]
fn assert_one_sleep(list: &Value) {
    let list = list.as_array().expect("it is a list");
    let commands: Vec<_> = list
        .iter()
        .filter_map(|process| process["command"].as_str())
        .collect();
    assert!(
        matches!(commands[..], [one] if ["sleep", "[setsid]", "[bash]", "[sh]"].iter().any(|name| one.contains(name))),
        "{commands:?}"
    );
}

#[test]
fn o1_what_holds_the_output_open_is_ended_and_named() {
    let case = Case::new();
    let done = case.sh(&["--drain", "100ms"], "sleep 300 & echo done");
    assert_eq!((done.code(), done.text()), (0, "done\n"));
    let line = done.line();
    assert!(
        line.contains("ended what was left: ") && line.contains("(sleep 300)"),
        "{line}"
    );
    assert!(
        line.contains("stdout was held open by ") && line.contains("stderr was held open by "),
        "{line}"
    );
    case.assert_nothing_lives();
}

#[test]
fn o1_json_names_holders_and_what_was_ended() {
    let case = Case::new();
    let object = case.json(&["--drain", "100ms"], "sleep 300 2>/dev/null & echo done");
    assert_eq!(object["exit_status"], 0);
    assert_eq!(object["cause"], "exited");
    assert_eq!(object["stdout"]["text"], "done\n");
    assert_one_sleep(&object["ended"]);
    assert_one_sleep(&object["holders"]);
    assert_eq!(object["holders"][0]["stream"], "stdout");
    assert_eq!(object["holders"][0]["pid"], object["ended"][0]["pid"]);
    assert_eq!(object["survivors"], serde_json::json!([]));
    case.assert_nothing_lives();
}

#[test]
fn o1_a_chatty_holder_does_not_keep_the_run_from_ending() {
    let case = Case::new();
    let script = "(while :; do echo tick; sleep 0.01; done) & echo fg-done";
    let done = case.sh(&["--quiet", "--drain", "200ms"], script);
    assert_eq!(done.code(), 0);
    assert!(done.text().contains("fg-done\n"), "{}", done.text());
    case.assert_nothing_lives();
}

#[test]
fn a_helper_that_holds_nothing_is_ended_and_named_too() {
    let case = Case::new();
    for ownership in ["auto", "reaper", "process-group"] {
        let object = case.json(&["--ownership", ownership], "sleep 300 >/dev/null 2>&1 & exit 6");
        assert_eq!(object["exit_status"], 6);
        assert_one_sleep(&object["ended"]);
        assert_eq!(object["holders"], serde_json::json!([]));
        case.assert_nothing_lives();
    }
}

#[test]
fn quiet_says_nothing_of_what_was_ended() {
    let case = Case::new();
    let done = case.sh(&["--quiet", "--drain", "0s"], "sleep 300 & exit 0");
    assert_eq!((done.code(), &done.stderr[..]), (0, ""));
    case.assert_nothing_lives();
}

#[test]
fn o5_the_run_ends_when_the_last_process_has_cleaned_up() {
    let case = Case::new();
    let inner = "trap \"sleep 0.3; touch cleaned; exit 0\" TERM; while :; do sleep 0.05; done";
    let script = format!("sh -c '{inner}' >/dev/null 2>&1 & exec sleep 0.3");
    let done = case.sh(&["--quiet"], &script);
    assert_eq!(done.code(), 0);
    assert!(case.path("cleaned").exists());
    case.assert_nothing_lives();
}

#[test]
fn jobs_in_process_groups_of_their_own_are_ended_on_each_tier() {
    let case = Case::new();
    for ownership in ["auto", "reaper", "process-group"] {
        let words = ["run", "--json", "--ownership", ownership, "--", "bash", "-c"];
        let mut command = case.command(words);
        command.arg("set -m; sleep 300 >/dev/null 2>&1 & exit 0");
        let object = crate::fixture::finish(crate::fixture::start(&mut command)).object();
        assert_one_sleep(&object["ended"]);
        case.assert_nothing_lives();
    }
}

#[test]
fn as_root_a_daemon_does_not_leave_its_control_group() {
    let case = Case::new();
    let object = case.json(
        &["--ownership", "cgroup"],
        "setsid -f sleep 300 >/dev/null 2>&1; exit 0",
    );
    assert_eq!(object["ownership"], "cgroup");
    assert_one_sleep(&object["ended"]);
    assert_eq!(object["survivors"], serde_json::json!([]));
    case.assert_nothing_lives();
}

#[test]
fn a_daemon_that_escapes_its_process_group_is_named_and_does_not_hold_the_run_up() {
    let case = Case::new();
    let options = ["--ownership", "process-group", "--drain", "100ms"];
    let object = case.json(&options, "setsid -f sleep 300; exit 0");
    assert_eq!(object["ownership"], "process_group");
    assert_eq!(object["exit_status"], 0);
    assert_one_sleep(&object["survivors"]);
    // Certain where it was seen as a member before it left; otherwise what points to it is the pipe it holds.
    assert!(object["survivors"][0]["uncertain"].is_boolean());
    assert!(!object["weaknesses"].as_array().unwrap().is_empty());

    let done = case.sh(
        &[&["--quiet"], &options[..]].concat(),
        "setsid -f sleep 300; exit 0",
    );
    assert_eq!(done.code(), 0);
    assert!(
        ["may still run: ", "could not end: "]
            .iter()
            .any(|words| done.line().starts_with(words)),
        "said even if the facts are not wanted: {}",
        done.line()
    );
}

#[test]
fn o2_an_escaped_process_that_floods_the_output_does_not_hold_the_run_up() {
    let case = Case::new();
    let options = ["--quiet", "--ownership", "process-group", "--drain", "50ms"];
    let done = case.sh(&options, "echo first; setsid -f yes; exit 0");
    assert_eq!(done.code(), 0);
    assert!(done.stdout.starts_with(b"first\n"));
}
