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
fn a_stop_that_is_taken_back_at_once_does_not_hold_up_the_end() {
    // Several times: how far it gets with each signal before the next is up to the scheduler.
    for _ in 0..8 {
        let case = Case::new();
        let (pane, pid) = session(&case);
        for sent in [Signal::SIGTSTP, Signal::SIGCONT, Signal::SIGTERM] {
            kill(pid, sent).expect("it lives");
        }
        eventually("the end", || !case.living().contains(&pid.as_raw()));
        eventually("the watcher to be gone", || case.watchers().is_empty());
        assert_settings(&case, &pane);
    }
}

#[test]
fn one_that_is_ending_does_not_stop() {
    let case = Case::new();
    let pane = Pane::interactive(&case);
    pane.enters("stty -g > before; clear");
    pane.enters("$BINARY term --quiet --grace 300s -- sh -c 'trap \"echo asked\" HUP TERM; echo ready; while :; do sleep 1; done'");
    pane.wait_for("ready\n");
    let pid = Pid::from_raw(case.only("term"));
    kill(pid, Signal::SIGTERM).expect("it lives");
    pane.wait_for("asked");
    kill(pid, Signal::SIGTSTP).expect("it lives");
    // The second one waits for no grace.
    kill(pid, Signal::SIGTERM).expect("it lives");
    eventually("the end", || !case.living().contains(&pid.as_raw()));
    assert_settings(&case, &pane);
}

#[test]
fn one_that_nobody_would_continue_does_not_stop() {
    let case = Case::new();
    // The shell of this pane has no jobs: its group is its session's only one, and an orphan (setpgid(2)).
    let (pane, session) = case.session("--quiet", "sh -c 'echo ready; read line; echo read $line'");
    pane.wait_for("ready\n");
    let watchers = case.watchers();
    kill(Pid::from_raw(session.pid), Signal::SIGTSTP).expect("it lives");
    // It lets go of the terminal, and takes it back with another watcher.
    eventually("it to go on", || {
        let now = case.watchers();
        now.len() == 1 && now != watchers
    });
    pane.wait_until_raw();
    pane.enters("typed");
    pane.wait_for("read typed");
    pane.wait_for("status 0");
    assert_eq!(pane.settings(), session.before);
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
