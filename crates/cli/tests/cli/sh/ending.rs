//! The end: the command's own, a timeout, an interrupt; and that nobody of its tree outlives it.

use nix::sys::signal::Signal;
use serde_json::json;

use crate::fixture::{Case, eventually, finish, signal, start};

#[test]
fn o1_what_holds_the_output_open_is_ended_and_named() {
    for (text, expected) in [
        ("sleep 300 & echo done", "done\n"),
        (
            "(while :; do echo tick; sleep 0.05; done) & echo fg-done",
            "fg-done\n",
        ),
        ("nohup sleep 300 & echo done", "done\n"),
    ] {
        let case = Case::new();
        let object = case.text_object(&["--timeout", "50s"], text);
        assert_eq!(
            (&object["cause"], &object["exit_status"]),
            (&json!("ended"), &json!(0)),
            "{object:#}"
        );
        let printed = object["stdout"]["text"].as_str().expect("it is text");
        assert!(printed.contains(expected), "{object:#}");
        assert_eq!(object["left_behind"]["fate"], "ended");
        let members = object["left_behind"]["members"].as_array().expect("it is a list");
        assert!(!members.is_empty(), "{object:#}");
        let rendered = object["rendered"].as_str().expect("it is text");
        assert!(rendered.contains("[ended what was left running: "), "{rendered}");
        case.assert_nothing_lives();
    }
}

#[test]
fn o3_a_timeout_ends_every_member_of_a_pipeline() {
    for text in ["sleep 300 | cat | cat", "setsid sleep 300 & sleep 300"] {
        let case = Case::new();
        let object = case.text_object(&["--timeout", "500ms"], text);
        assert_eq!(
            (&object["cause"], &object["exit_status"]),
            (&json!("timed_out"), &json!(124))
        );
        assert_eq!(object["timeout_ms"], 500);
        case.assert_nothing_lives();
    }
}

#[test]
fn o17_a_timeout_keeps_what_was_printed() {
    let case = Case::new();
    let done = case.text(
        &["--timeout", "500ms"],
        "echo CRITICAL; echo warn >&2; exec sleep 300",
    );
    assert_eq!(done.code(), 124);
    assert_eq!(
        done.text(),
        "CRITICAL\n[stderr]\nwarn\n[timed out after 500ms]\n[killed by signal: SIGTERM]\n"
    );
    let gate = case.gate("gate");
    let text = format!(
        "echo CRITICAL; head -c 5000000 /dev/zero | tr '\\0' x; echo > '{}'; exec sleep 300",
        gate.path()
    );
    let call = case.start_text(&["--json", "--no-timeout", "--keep-spill"], &text);
    gate.wait();
    signal(&call, Signal::SIGINT);
    let object = finish(call).sh_object();
    assert_eq!(object["stdout"]["total_bytes"], 5_000_009);
    assert!(
        object["stdout"]["head"]
            .as_str()
            .is_some_and(|head| head.starts_with("CRITICAL\n"))
    );
    let spill = object["stdout"]["spill_path"].as_str().expect("there is a file");
    assert_eq!(std::fs::metadata(spill).expect("it is there").len(), 5_000_009);
    case.assert_nothing_lives();
}

#[test]
fn item_122_a_command_that_exits_0_on_sigterm_has_still_timed_out() {
    let text = "trap 'exit 0' TERM; while :; do sleep 0.05; done";
    let object = Case::new().text_object(&["--timeout", "500ms"], text);
    assert_eq!(object["cause"], "timed_out");
    assert_eq!(object["outcome"]["exit_code"], 0);
    assert_eq!(object["exit_status"], 124);
}

#[test]
fn an_interrupt_aborts_the_command_and_is_the_exit_status() {
    for (which, code) in [
        (Signal::SIGINT, 130),
        (Signal::SIGTERM, 143),
        (Signal::SIGHUP, 129),
        (Signal::SIGQUIT, 131),
    ] {
        let case = Case::new();
        let gate = case.gate("gate");
        let text = format!("echo before; sleep 300 & echo > '{}'; wait", gate.path());
        let call = case.start_text(&[], &text);
        gate.wait();
        signal(&call, which);
        let done = finish(call);
        assert_eq!((done.code(), &done.stderr[..]), (code, ""));
        assert_eq!(done.text(), "before\n[aborted]\n[killed by signal: SIGTERM]\n");
        case.assert_nothing_lives();
    }
}

#[test]
fn o7_an_interrupted_command_cleans_up_after_itself() {
    let case = Case::new();
    let gate = case.gate("gate");
    let inner = format!(
        "touch L; trap \"rm -f L; exit 143\" TERM; echo > {}; while :; do sleep 0.05; done",
        gate.path()
    );
    let call = case.start_text(&["--json", "--grace", "1h"], &format!("sh -c '{inner}; :'"));
    gate.wait();
    assert!(case.path("L").exists());
    signal(&call, Signal::SIGTERM);
    let done = finish(call);
    assert_eq!(done.sh_object()["cause"], "aborted");
    assert!(!case.path("L").exists());
    case.assert_nothing_lives();
}

#[test]
fn a_second_interrupt_does_not_wait_for_the_grace() {
    let case = Case::new();
    let (ready, trapped) = (case.gate("ready"), case.gate("trapped"));
    let text = format!(
        "trap 'echo > \"{}\"' TERM; echo > '{}'; while :; do sleep 0.05; done",
        trapped.path(),
        ready.path()
    );
    let call = case.start_text(&["--json", "--grace", "1h"], &text);
    ready.wait();
    signal(&call, Signal::SIGINT);
    trapped.wait();
    signal(&call, Signal::SIGINT);
    let object = finish(call).sh_object();
    assert_eq!(object["exit_status"], 130);
    assert_eq!(object["outcome"]["signal"], "SIGKILL");
    case.assert_nothing_lives();
}

#[test]
fn o10_killed_by_force_it_leaves_nobody() {
    let case = Case::new();
    let gate = case.gate("gate");
    let text = format!(
        "(trap '' TERM HUP; while :; do sleep 0.1; done) & setsid sleep 300 & echo > '{}'; wait",
        gate.path()
    );
    let call = case.start_text(&["--grace", "200ms"], &text);
    gate.wait();
    signal(&call, Signal::SIGKILL);
    finish(call);
    eventually("the end of the tree", || case.living().is_empty());
}

#[test]
fn a_reader_that_went_away_is_141() {
    let case = Case::new();
    let (reader, closed) = std::io::pipe().expect("a pipe can be made");
    drop(reader);
    let done = finish(start(case.command(["sh", "touch ran; echo out"]).stdout(closed)));
    assert_eq!((done.code(), &done.stderr[..]), (141, ""));
    assert!(case.path("ran").exists(), "the text is printed at the end");
}
