//! A run whose own process is asked to end.

use std::process::{Command, Stdio};

use nix::sys::signal::Signal;

use crate::fixture::{Case, finish, signal, start, stdout_line};

#[test]
fn an_interrupt_ends_the_tree_and_is_reported() {
    for (which, code, name) in [
        (Signal::SIGINT, 130, "SIGINT"),
        (Signal::SIGTERM, 143, "SIGTERM"),
        (Signal::SIGHUP, 129, "SIGHUP"),
        (Signal::SIGQUIT, 131, "SIGQUIT"),
    ] {
        let case = Case::new();
        let mut call = case.start_sh(&[], "sleep 300 & echo ready; wait");
        assert_eq!(stdout_line(&mut call), "ready");
        signal(&call, which);
        let done = finish(call);
        assert_eq!(done.code(), code);
        let line = done.line();
        assert!(
            line.starts_with(&format!("interrupted by {name}, ended by SIGTERM in ")),
            "{line}"
        );
        case.assert_nothing_lives();
    }
}

#[test]
fn an_interrupt_is_an_object_too() {
    let case = Case::new();
    let gate = case.gate("gate");
    let script = format!("echo before; echo > '{}'; exec sleep 300", gate.path());
    let call = case.start_sh(&["--json"], &script);
    gate.wait();
    signal(&call, Signal::SIGINT);
    let done = finish(call);
    assert_eq!(done.code(), 130);
    let object = done.object();
    assert_eq!(object["cause"], "aborted");
    assert_eq!(object["outcome"]["signal"], "SIGTERM");
    assert_eq!(object["error"], serde_json::Value::Null);
    assert_eq!(object["stdout"]["text"], "before\n");
    assert_eq!(done.stderr, "");
    case.assert_nothing_lives();
}

#[test]
fn the_command_may_clean_up_after_an_interrupt() {
    let case = Case::new();
    let script = "trap 'echo cleaned; exit 0' TERM; echo ready; while :; do sleep 0.05; done";
    let mut call = case.start_sh(&["--quiet"], script);
    assert_eq!(stdout_line(&mut call), "ready");
    signal(&call, Signal::SIGINT);
    let done = finish(call);
    assert_eq!((done.code(), done.text()), (130, "cleaned\n"));
}

#[test]
fn a_second_interrupt_does_not_wait_for_the_grace() {
    let case = Case::new();
    let gate = case.gate("gate");
    let script = format!(
        "exec 2>/dev/null; trap 'echo > \"{}\"' TERM; echo ready; while :; do sleep 0.05; done",
        gate.path()
    );
    let mut call = case.start_sh(&["--grace", "1h"], &script);
    assert_eq!(stdout_line(&mut call), "ready");
    signal(&call, Signal::SIGINT);
    // The first one has come so far as the command's own trap.
    gate.wait();
    signal(&call, Signal::SIGINT);
    let done = finish(call);
    assert_eq!(done.code(), 130);
    assert!(
        done.line()
            .starts_with("interrupted by SIGINT, ended by SIGKILL in "),
        "{}",
        done.line()
    );
    case.assert_nothing_lives();
}

#[test]
fn a_signal_that_was_ignored_before_stays_ignored() {
    let case = Case::new();
    let binary = case.command(["run"]).get_program().to_owned();
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]).arg(binary);
    shell.args(["run", "--", "/bin/sh", "-c", "echo ready; exec sleep 300"]);
    shell
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut call = start(&mut shell);
    assert_eq!(stdout_line(&mut call), "ready");
    signal(&call, Signal::SIGHUP);
    signal(&call, Signal::SIGTERM);
    let done = finish(call);
    assert_eq!(done.code(), 143);
    assert!(
        done.line().starts_with("interrupted by SIGTERM"),
        "{}",
        done.line()
    );
}

#[test]
fn o28_the_command_ignores_no_signal_that_we_ignore() {
    let case = Case::new();
    let binary = case.command(["run"]).get_program().to_owned();
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", "trap '' HUP INT QUIT PIPE; exec \"$0\" \"$@\""])
        .arg(binary);
    shell.args([
        "run",
        "--quiet",
        "--",
        "grep",
        "-E",
        "Sig(Ign|Blk)",
        "/proc/self/status",
    ]);
    shell
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let done = finish(start(&mut shell));
    assert_eq!(
        done.text(),
        "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"
    );
}

#[test]
fn o6_a_command_that_kills_its_own_group_does_not_reach_us() {
    let done = Case::new().sh(&[], "kill -TERM 0; exec sleep 300");
    assert_eq!(done.code(), 143);
    assert!(done.line().starts_with("ended by SIGTERM in "), "{}", done.line());
}
