//! A session without anybody who sees it.

use std::process::Stdio;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::fixture::{Case, finish, signal, start, stdout_line};

/// The options under which a session says nothing of its own.
const QUIET: [&str; 1] = ["--quiet"];

#[test]
fn the_command_has_a_terminal_and_every_byte_is_passed_on() {
    let case = Case::new();
    let script = "test -t 0 && test -t 1 && test -t 2 && test -r /dev/tty && printf 'a\\377\\nb'; exit 3";
    let done = case.term_sh(&QUIET, script);
    assert_eq!((done.code(), &done.stderr[..]), (3, ""));
    assert_eq!(done.stdout, b"a\xff\r\nb");
}

#[test]
fn every_owner_has_terminals() {
    let case = Case::new();
    for (owner, mechanism) in [("reaper", "reaper"), ("process-group", "process_group")] {
        let done = case.term_sh(&["--json", "--ownership", owner], "tty > /dev/null; exit $?");
        assert_eq!((done.code(), &done.object()["ownership"]), (0, &json!(mechanism)));
    }
}

#[test]
fn the_line_of_facts_is_that_of_one_stream() {
    let done = Case::new().term_sh(&[], "echo out; echo err >&2; exit 3");
    assert_eq!(done.text(), "out\r\nerr\r\n");
    let line = done.line();
    assert!(
        line.starts_with("exited with code 3 in ") && line.ends_with(" · terminal 10 B"),
        "{line}"
    );
}

#[test]
fn an_object_says_all_that_a_run_has() {
    let case = Case::new();
    let done = case.term_sh(&["--json"], "echo out; echo err >&2; exit 3");
    let object = done.object();
    assert_eq!((done.code(), &done.stderr[..]), (3, ""));
    assert_eq!(object["outcome"], json!({ "exit_code": 3, "signal": null }));
    assert_eq!(
        (&object["cause"], &object["error"]),
        (&json!("exited"), &Value::Null)
    );
    assert!(object["pid"].as_u64().is_some_and(|pid| pid > 1));
    let stream = |text: &str| {
        json!({
            "text": text, "head": "", "total_bytes": text.len(), "dropped_bytes": 0, "truncated": false,
            "spill_path": null,
        })
    };
    assert_eq!(object["stdout"], stream("out\r\nerr\r\n"));
    assert_eq!(object["stderr"], stream(""));
    assert_eq!(object["ended"], json!([]));
}

#[test]
fn the_text_is_capped_and_what_is_missing_is_counted() {
    let case = Case::new();
    let script = "i=0; while [ $i -lt 2500 ]; do printf %080d $i; i=$((i+1)); done";
    let stream = |options: &[&str]| {
        let object = case.term_sh(&[&["--json"], options].concat(), script).object();
        let length = |name: &str| object["stdout"][name].as_str().expect("it is text").len();
        (
            length("head"),
            length("text"),
            object["stdout"]["dropped_bytes"].as_u64(),
        )
    };
    assert_eq!(stream(&[]), (0, 65_536, Some(200_000 - 65_536)));
    assert_eq!(
        stream(&["--max-bytes", "4", "--head-bytes", "3"]),
        (3, 4, Some(199_993))
    );
}

#[test]
fn the_last_bytes_of_a_command_that_ends_at_once_are_there() {
    // What o21 of the library proves for its own stream.
    let case = Case::new();
    for _ in 0..20 {
        let done = case.term_sh(&QUIET, "printf %020480d 0; exit 3");
        assert_eq!((done.code(), done.stdout.len()), (3, 20_480));
    }
}

#[test]
fn the_size_is_the_one_that_was_asked_for() {
    let case = Case::new();
    let size = |options: &[&str]| {
        let done = case.term_sh(&[&QUIET[..], options].concat(), "stty size");
        done.text().trim_end().to_owned()
    };
    assert_eq!(size(&[]), "24 80");
    assert_eq!(size(&["--rows", "7"]), "7 80");
    assert_eq!(size(&["--rows", "1", "--cols", "65535"]), "1 65535");
}

#[test]
fn item_184_the_terminal_type_becomes_term() {
    let case = Case::new();
    let of = |options: &[&str]| {
        let mut command = case.term(
            &[&QUIET[..], options].concat(),
            &["/bin/sh", "-c", "printf %s \"$TERM\""],
        );
        finish(start(command.env("TERM", "dumb"))).text().to_owned()
    };
    // Nobody sits at the terminal that ours may be the type of.
    assert_eq!(of(&[]), "xterm-256color");
    assert_eq!(of(&["--term", "vt100"]), "vt100");
    assert_eq!(of(&["--term", "vt100", "--env", "TERM=ansi"]), "ansi");
}

#[test]
fn without_a_command_it_is_the_users_shell() {
    let case = Case::new();
    let keys = case.file("keys", "echo $((6 * 7))\nexit 5\n");
    let mut command = case.command(["term", "--json"]);
    command
        .env("SHELL", "/bin/sh")
        .stdin(std::fs::File::open(keys).expect("it was just written"));
    let done = finish(start(&mut command));
    assert_eq!(done.code(), 5);
    let object = done.object();
    assert_eq!(object["argv"], json!(["/bin/sh"]));
    let text = object["stdout"]["text"].as_str().expect("it is text");
    assert!(text.contains("42\r\n"), "{text}");
}

#[test]
fn a_command_that_a_signal_ended_is_told_as_in_a_shell() {
    let done = Case::new().term_sh(&["--json"], "kill -9 $$");
    assert_eq!(done.code(), 137);
    assert_eq!(done.object()["cause"], "signaled");
}

#[test]
fn the_time_that_is_up_ends_the_session() {
    let case = Case::new();
    let done = case.term_sh(&["--json", "--timeout", "300ms"], "echo on it; exec sleep 300");
    assert_eq!(done.code(), 124);
    let object = done.object();
    assert_eq!(object["cause"], "timed_out");
    assert_eq!(object["stdout"]["text"], "on it\r\n");
    case.assert_nothing_lives();
}

#[test]
fn an_interrupt_ends_the_session_and_reports_it() {
    let case = Case::new();
    for (sent, status) in [
        (Signal::SIGTERM, 143),
        (Signal::SIGINT, 130),
        (Signal::SIGHUP, 129),
    ] {
        let script = "setsid sleep 300 & echo ready; exec sleep 300";
        let mut call = start(&mut case.term(&[], &["/bin/sh", "-c", script]));
        assert_eq!(stdout_line(&mut call), "ready\r");
        signal(&call, sent);
        let done = finish(call);
        assert_eq!(done.code(), status);
        let line = done.line();
        assert!(
            line.starts_with(&format!("interrupted by {}", sent.as_str())),
            "{line}"
        );
        case.assert_nothing_lives();
    }
}

#[test]
fn what_the_command_leaves_behind_is_ended_and_named() {
    let case = Case::new();
    // The terminal's own end asks it in vain.
    let script = "trap '' HUP; sleep 300 > /dev/null 2>&1 < /dev/null &\n\
        until grep -q sleep /proc/$!/comm; do :; done; exit 4";
    let done = case.term_sh(&["--json"], script);
    assert_eq!(done.code(), 4);
    let ended = &done.object()["ended"];
    assert_eq!(
        (ended.as_array().map(Vec::len), &ended[0]["command"]),
        (Some(1), &json!("sleep 300"))
    );
    case.assert_nothing_lives();
}

#[test]
fn a_reader_that_goes_away_ends_the_session() {
    let case = Case::new();
    let mut call = start(&mut case.term(&[], &["yes"]));
    drop(call.stdout.take());
    let done = finish(call);
    assert_eq!(done.code(), 141);
    assert!(done.line().starts_with("stdout was closed"), "{}", done.line());
    case.assert_nothing_lives();
}

#[test]
fn output_that_cannot_be_written_ends_the_session() {
    let case = Case::new();
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .expect("it is there");
    let mut command = case.term(&[], &["yes"]);
    let done = finish(start(command.stdout(Stdio::from(full))));
    assert_eq!(done.code(), 125);
    assert!(done.line().contains("No space left"), "{}", done.line());
    case.assert_nothing_lives();
}
