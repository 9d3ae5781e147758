//! The settings of the user's terminal are put back, whatever ends this process.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::tmux::Pane;
use crate::fixture::{Case, eventually};

#[test]
fn the_settings_are_put_back_at_every_end_that_is_asked_for() {
    for (sent, status) in [
        (Signal::SIGTERM, 143),
        (Signal::SIGHUP, 129),
        (Signal::SIGINT, 130),
        (Signal::SIGQUIT, 131),
    ] {
        let case = Case::new();
        let (pane, session) = case.session("--quiet", "sh -c 'echo ready; exec sleep 300'");
        pane.wait_for("ready");
        kill(Pid::from_raw(session.pid), sent).expect("it lives");
        pane.wait_for(&format!("status {status}"));
        // Before the shell went on, and not some time later.
        assert_eq!(pane.settings(), session.before, "{sent}");
        eventually("the watcher to be gone", || case.watchers().is_empty());
    }
}

#[test]
fn the_settings_are_put_back_when_time_is_up() {
    let case = Case::new();
    let line = "stty -g > before; $BINARY term --quiet --timeout 300ms -- sleep 300; echo \"status $?\"";
    let pane = Pane::new(&case, line);
    pane.wait_for("status 124");
    let before = std::fs::read_to_string(case.path("before")).expect("stty wrote it");
    assert_eq!(pane.settings(), before);
}

#[test]
fn the_settings_are_put_back_after_an_end_that_nobody_can_catch() {
    for sent in [Signal::SIGKILL, Signal::SIGABRT, Signal::SIGSEGV] {
        let case = Case::new();
        let (pane, session) = case.session("--quiet", "sh -c 'echo ready; exec sleep 300'");
        pane.wait_for("ready");
        assert_eq!(case.watchers().len(), 1);
        let pid = Pid::from_raw(session.pid);
        kill(pid, sent).expect("it lives");
        eventually("our end", || {
            // The standard library catches the first SIGSEGV, finds no fault of ours, and lets go of the next.
            let _ = kill(pid, sent);
            !case.living().contains(&session.pid)
        });
        pane.wait_for(&format!("status {}", 128 + sent as i32));
        pane.wait_for_settings(&session.before);
        eventually("the watcher to be gone", || case.watchers().is_empty());
    }
}

#[test]
fn a_shell_with_line_editing_goes_on_as_if_nothing_had_been() {
    let case = Case::new();
    let pane = Pane::interactive(&case);
    pane.enters("stty -g > before");
    for (number, sent) in [None, Some(Signal::SIGKILL), Some(Signal::SIGTERM)]
        .into_iter()
        .enumerate()
    {
        pane.enters(&format!(
            "$BINARY term --quiet -- sh -c 'echo ready {number}; read line'"
        ));
        pane.wait_for(&format!("\nready {number}"));
        match sent {
            None => pane.press(&["Enter"]),
            Some(sent) => kill(Pid::from_raw(case.only("term")), sent).expect("it lives"),
        }
        eventually("the end", || case.watchers().is_empty());
        pane.wait_for_prompt();
        pane.enters(&format!("stty -g > after; echo \"shell $(({number} + 40))\""));
        pane.wait_for(&format!("\nshell {}", number + 40));
        let settings = |name| std::fs::read_to_string(case.path(name)).expect("stty wrote it");
        assert_eq!(settings("before"), settings("after"), "{sent:?}");
        // What is typed is shown once.
        assert_eq!(pane.shown().matches(&format!("(({number} + 40))")).count(), 1);
    }
}

#[test]
fn whoever_signals_a_whole_group_does_not_reach_the_watcher() {
    let case = Case::new();
    let pane = Pane::interactive(&case);
    pane.enters("stty -g > before; clear");
    pane.enters("$BINARY term --quiet -- sh -c 'echo ready; exec sleep 300'");
    pane.wait_for("ready\n");
    let pid = case.only("term");
    // Its group holds it alone, and is its shell's job.
    nix::sys::signal::killpg(Pid::from_raw(pid), Signal::SIGKILL).expect("it lives");
    eventually("the end", || case.watchers().is_empty());
    pane.enters("stty -g > after; echo over $((1 + 1))");
    pane.wait_for("over 2");
    let settings = |name| std::fs::read_to_string(case.path(name)).expect("stty wrote it");
    assert_eq!(settings("before"), settings("after"));
}

#[test]
fn a_watcher_that_is_killed_is_not_missed() {
    let case = Case::new();
    let (pane, session) = case.session("--quiet", "sh -c 'echo ready; read line; echo read $line'");
    pane.wait_for("ready");
    kill(Pid::from_raw(case.watchers()[0]), Signal::SIGKILL).expect("it lives");
    pane.enters("typed");
    pane.wait_for("read typed");
    pane.wait_for("status 0");
    assert_eq!(pane.settings(), session.before);
}

#[test]
fn settings_that_somebody_else_has_set_since_are_left_alone() {
    let case = Case::new();
    let (pane, session) = case.session("--quiet", "sh -c 'echo ready; exec sleep 300'");
    pane.wait_for("ready");
    let mut stty = std::process::Command::new("stty");
    stty.args(["-F", pane.device(), "sane", "-echo"]);
    assert!(case.dress(stty).status().expect("stty can be run").success());
    let set = pane.settings();
    kill(Pid::from_raw(session.pid), Signal::SIGKILL).expect("it lives");
    eventually("the watcher to be gone", || case.watchers().is_empty());
    assert_eq!(pane.settings(), set);
}
