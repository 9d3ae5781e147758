//! A session is a job like any other of the user's shell.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::tmux::Pane;
use crate::fixture::{Case, eventually, state};

/// A shell with a session in the foreground, and our own process.
fn session(case: &Case) -> (Pane<'_>, Pid) {
    let pane = Pane::interactive(case);
    pane.enters("stty -g > before; clear");
    pane.enters("$BINARY term --quiet -- sh -c 'echo ready; read line; echo read $line'");
    pane.wait_for("ready\n");
    pane.wait_until_raw();
    let pid = Pid::from_raw(case.only("term"));
    (pane, pid)
}

#[track_caller]
fn assert_settings(case: &Case, pane: &Pane<'_>) {
    pane.enters("stty -g > after; echo over $((1 + 1))");
    pane.wait_for("over 2");
    let settings = |name| std::fs::read_to_string(case.path(name)).expect("stty wrote it");
    assert_eq!(settings("before"), settings("after"));
}

#[test]
fn it_stops_with_the_terminal_as_it_was_and_goes_on_where_it_was() {
    // One that asks, and one that does not.
    for sent in [Signal::SIGTSTP, Signal::SIGSTOP] {
        let case = Case::new();
        let (pane, pid) = session(&case);
        kill(pid, sent).expect("it lives");
        pane.wait_for("Stopped");
        assert_settings(&case, &pane);
        pane.enters("clear; fg");
        pane.wait_for("BINARY term");
        pane.wait_until_raw();
        eventually("it to go on", || state(pid.as_raw()) == Some('S'));
        pane.enters("typed");
        pane.wait_for("read typed");
        eventually("the end", || case.watchers().is_empty());
        assert_settings(&case, &pane);
    }
}

#[test]
fn one_that_is_stopped_can_be_ended() {
    for sent in [Signal::SIGTSTP, Signal::SIGSTOP] {
        let case = Case::new();
        let (pane, pid) = session(&case);
        kill(pid, sent).expect("it lives");
        pane.wait_for("Stopped");
        pane.enters("kill %1");
        eventually("the end", || !case.living().contains(&pid.as_raw()));
        assert_settings(&case, &pane);
    }
}

#[test]
fn one_that_begins_in_the_background_waits_for_the_foreground() {
    let case = Case::new();
    let pane = Pane::interactive(&case);
    pane.enters("$BINARY term --quiet -- sh -c 'echo rea\"\"dy; read line; echo read $line' &");
    let find = || case.living().into_iter().find(|&pid| state(pid) == Some('T'));
    eventually("it to be stopped", || find().is_some());
    pane.enters("stty -g > before; fg");
    pane.wait_for("ready");
    pane.enters("typed");
    pane.wait_for("read typed");
    eventually("the end", || case.watchers().is_empty());
    assert_settings(&case, &pane);
}
