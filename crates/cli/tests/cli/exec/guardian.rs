//! The tree ends when the process ends that it belongs to.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::Signal;

use super::{OWNERS, exec_words};
use crate::fixture::{Case, finish, signal, start};

/// A process that lives until it is ended.
fn guardian() -> Child {
    let mut command = Command::new("sleep");
    command.arg("300").stdin(Stdio::null());
    start(&mut command)
}

#[track_caller]
fn end(mut guardian: Child) {
    guardian.kill().expect("it lives");
    guardian.wait().expect("it is our child");
}

#[test]
fn case_o8_the_whole_tree_ends_with_the_parent() {
    for owner in OWNERS {
        let case = Case::new();
        let gate = case.gate("gate");
        let inner = format!("echo $$ > '{}'; while :; do sleep 1; done", gate.path());
        let inner = case.file("inner.sh", inner);
        let outer = format!("bash '{}'; :", inner.display());
        let words = exec_words(&["--ownership", owner], &["bash", "-c", &outer]);
        let mut parent = start(&mut case.command_in("\"$0\" \"$@\" & wait", words));
        gate.wait();
        parent.kill().expect("it lives");
        finish(parent);
        case.wait_for_nothing();
    }
}

#[test]
fn a_daemon_of_the_command_ends_with_the_parent_and_is_asked_before() {
    for owner in OWNERS {
        let case = Case::new();
        let script = format!("setsid sh {0} daemon & exec sh {0} command", case.member());
        let options = ["--ownership", owner, "--grace", "200ms"];
        let words = exec_words(&options, &["sh", "-c", &script]);
        let mut parent = start(&mut case.command_in("\"$0\" \"$@\" & wait", words));
        case.wait_for_log("daemon ready");
        case.wait_for_log("command ready");
        parent.kill().expect("it lives");
        finish(parent);
        case.wait_for_nothing();
        for line in ["daemon TERM", "command TERM"] {
            assert!(case.log().contains(&line.to_owned()), "{owner}: {line}");
        }
    }
}

#[test]
fn the_parents_ordinary_end_is_an_end_too() {
    let case = Case::new();
    let (gate, held) = (case.gate("gate"), case.gate("held"));
    let script = format!("echo ready > '{}'; exec sleep 300", gate.path());
    let words = exec_words(&[], &["sh", "-c", &script]);
    let parent = start(&mut case.command_in("\"$0\" \"$@\" & read line < held", words));
    gate.wait();
    std::fs::write(held.path(), "go\n").expect("the parent reads it");
    finish(parent);
    case.wait_for_nothing();
}

#[test]
fn a_process_that_was_named_takes_the_parents_place() {
    let case = Case::new();
    let gate = case.gate("gate");
    let guardian = guardian();
    let number = guardian.id().to_string();
    let script = format!("read line < '{}'; echo outlived; exec sleep 300", gate.path());
    let words = exec_words(&["--die-with", &number], &["sh", "-c", &script]);
    // The parent is gone at once; its output is the command's.
    let mut parent = start(&mut case.command_in("\"$0\" \"$@\" & :", words));
    parent.wait().expect("it is our child");
    std::fs::write(gate.path(), "go\n").expect("the command reads it");
    assert_eq!(crate::fixture::stdout_line(&mut parent), "outlived");
    end(guardian);
    case.wait_for_nothing();
}

#[test]
fn our_own_end_comes_after_the_trees() {
    let case = Case::new();
    let guardian = guardian();
    let number = guardian.id().to_string();
    let script = "trap 'sleep 0.2; echo cleaned >> log; exit 6' TERM; echo ready; sleep 300 & wait";
    let mut call = start(&mut case.exec(&["--die-with", &number], &["sh", "-c", script]));
    assert_eq!(crate::fixture::stdout_line(&mut call), "ready");
    end(guardian);
    assert_eq!(finish(call).code(), 6);
    case.assert_nothing_lives();
    assert_eq!(case.log(), ["cleaned"]);
}

#[test]
fn a_guardian_that_has_ended_already_starts_nothing() {
    let case = Case::new();
    let guardian = guardian();
    let number = guardian.id().to_string();
    end(guardian);
    let done = case.exec_to_end(&["--die-with", &number], &["touch", "started"]);
    assert_eq!(done.code(), 125);
    assert!(
        done.line()
            .starts_with(&format!("--die-with {number}: it has ended")),
        "{}",
        done.line()
    );
    assert!(!case.path("started").exists());
}

#[test]
fn a_signal_reaches_the_command_while_its_tree_is_being_ended() {
    let case = Case::new();
    let guardian = guardian();
    let number = guardian.id().to_string();
    let options = ["--die-with", &number, "--grace", "1h"];
    let call = start(&mut case.exec(&options, &["sh", &case.member(), "command"]));
    case.wait_for_log("command ready");
    end(guardian);
    case.wait_for_log("command TERM");
    signal(&call, Signal::SIGUSR2);
    let done = finish(call);
    assert_eq!(done.status.into_raw() >> 8, 3);
    case.wait_for_nothing();
}
