//! Terminals of a runtime whose calls wait for nothing, and the kill of one session.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use dsh_subprocess::{ErrorKind, SignalName, SubprocessRuntime};
use tokio_util::sync::CancellationToken;

use super::session::{Session, Terminals, plain};
use crate::fixture::{Case, Tier, on_each_tier, within};
use crate::handshake;
use crate::hanging::Gate;

on_each_tier! {
    a_kill_ends_a_session_at_once,
    item_86_a_program_that_is_missing_is_told_by_the_future,
    item_84_an_allocation_that_is_given_up_at_once_leaves_nothing,
}

on_each_tier! {
    as root:
    a_hanging_exec_holds_up_no_call,
}

/// Whoever waits for the grace of its termination waits no longer.
fn a_kill_ends_a_session_at_once(tier: Tier) {
    for case in [Case::new(tier), handshake::case(tier)] {
        let session = case
            .ready(case.terminal_spec(case.bash("trap '' TERM HUP; echo ready; while :; do read -r; done")));
        let termination = session.terminate();
        case.runtime.kill(session.tree());
        within(termination).expect("it ends");
        let never = CancellationToken::new();
        assert!(within(session.tree().wait_for_exit(&never)).expect("it is gone"));
        assert_eq!(
            session.outcome().signal().map(SignalName::as_str),
            Some("SIGKILL")
        );
        case.assert_gone();
    }
}

fn item_86_a_program_that_is_missing_is_told_by_the_future(tier: Tier) {
    let case = handshake::case(tier);
    let spec = case.terminal_spec(case.spec(["/nonexistent/program"]));
    let error = case.try_terminal(spec).expect_err("there is none");
    assert_eq!(error.kind(), ErrorKind::ProgramNotFound, "{error}");
    within(case.runtime.dispose()).expect("nothing is left");
}

/// Before a launcher comes to it, or while one is at it.
fn item_84_an_allocation_that_is_given_up_at_once_leaves_nothing(tier: Tier) {
    let case = handshake::case(tier);
    for by_token in [true, false, true, false] {
        let spec = case.terminal_spec(case.probe(["sleep"]));
        let token = spec.cancel.clone();
        let allocation = case.runtime.spawn_terminal(spec);
        if by_token {
            token.cancel();
            let error = within(allocation).expect_err("it was cancelled");
            assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
        } else {
            drop(allocation);
        }
    }
    within(case.runtime.dispose()).expect("nothing is left");
    case.assert_gone();
}

/// The call returns, and so do others', while the gate is closed.
fn a_hanging_exec_holds_up_no_call(tier: Tier) {
    let case = handshake::case(tier);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = directory.path().join("hanging");
    fs::copy("/bin/echo", &program).expect("the directory is ours");
    fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("it is ours");
    let mut gate = Gate::close(&program);
    let shown = program.to_str().expect("temporary directories are text");
    let allocation = case
        .runtime
        .spawn_terminal(case.terminal_spec(case.spec([shown, "through"])));
    gate.wait_for("held");
    let other = case.open(case.terminal_spec(case.probe(["exit", "6"])));
    assert_eq!(other.outcome().code(), Some(6));
    gate.open();
    let mut terminal = within(allocation).expect("it starts");
    let output = terminal.output().expect("it was not taken yet");
    let (outcome, printed) = Session::new(terminal, output).finish();
    assert!(outcome.success());
    assert_eq!(plain(&printed), "through\n");
}
