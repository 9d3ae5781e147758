//! Signals that the binary gets are the tree's.

use std::os::unix::process::ExitStatusExt;
use std::process::Child;

use nix::sys::signal::Signal;

use super::{OWNERS, exec_words};
use crate::fixture::{Case, eventually, finish, signal, start};

/// Sends a signal, and waits until the binary has taken it. Whatever is sent later is passed on later.
#[track_caller]
fn signal_taken(call: &Child, which: Signal) {
    signal(call, which);
    let status = format!("/proc/{}/status", call.id());
    eventually("the signal to be taken", || {
        let status = std::fs::read_to_string(&status).expect("the binary lives");
        status.contains("ShdPnd:\t0000000000000000")
    });
}

/// Counts the lines of the log.
fn count(case: &Case, line: &str) -> usize {
    case.log().iter().filter(|logged| *logged == line).count()
}

#[test]
fn each_member_gets_a_signal_once_wherever_it_went() {
    for owner in OWNERS {
        let case = Case::new();
        let script = format!(
            "setsid sh {0} daemon & (sh {0} orphan &) ; exec sh {0} command",
            case.member()
        );
        let call = start(&mut case.exec(&["--ownership", owner], &["sh", "-c", &script]));
        let members = ["daemon", "orphan", "command"];
        for member in members {
            case.wait_for_log(&format!("{member} ready"));
        }
        for which in ["HUP", "TERM", "WINCH"] {
            let sent: Signal = format!("SIG{which}").parse().expect("it is a signal");
            signal_taken(&call, sent);
            for member in members {
                case.wait_for_log(&format!("{member} {which}"));
            }
        }
        // A second one of the others would have come before.
        signal_taken(&call, Signal::SIGUSR1);
        for member in members {
            case.wait_for_log(&format!("{member} USR1"));
            for which in ["HUP", "TERM", "WINCH"] {
                assert_eq!(
                    count(&case, &format!("{member} {which}")),
                    1,
                    "{owner} {member} {which}"
                );
            }
        }
        signal(&call, Signal::SIGUSR2);
        assert_eq!(finish(call).code(), 3);
        case.wait_for_nothing();
    }
}

#[test]
fn a_signal_that_ends_the_command_ends_us_in_the_same_way() {
    for owner in OWNERS {
        for which in [
            Signal::SIGHUP,
            Signal::SIGINT,
            Signal::SIGTERM,
            Signal::SIGALRM,
            Signal::SIGUSR1,
        ] {
            let case = Case::new();
            let mut call = start(&mut case.exec(
                &["--ownership", owner],
                &["sh", "-c", "echo ready; exec sleep 300"],
            ));
            assert_eq!(crate::fixture::stdout_line(&mut call), "ready");
            signal(&call, which);
            assert_eq!(finish(call).status.signal(), Some(which as i32), "{owner}");
            case.wait_for_nothing();
        }
    }
}

#[test]
fn a_signal_that_was_ignored_before_is_not_passed_on() {
    let case = Case::new();
    let words = exec_words(&[], &["sh", "-c", "echo ready; exec sleep 300"]);
    let mut call = start(&mut case.command_after("trap '' HUP USR1; exec", words));
    assert_eq!(crate::fixture::stdout_line(&mut call), "ready");
    signal(&call, Signal::SIGHUP);
    signal(&call, Signal::SIGUSR1);
    signal(&call, Signal::SIGTERM);
    assert_eq!(finish(call).status.signal(), Some(Signal::SIGTERM as i32));
}

#[test]
fn a_signal_that_was_blocked_before_is_passed_on() {
    let case = Case::new();
    let words = exec_words(&[], &["sh", "-c", "echo ready; exec sleep 300"]);
    let mut call = start(&mut case.command_after("exec env --block-signal=TERM", words));
    assert_eq!(crate::fixture::stdout_line(&mut call), "ready");
    signal(&call, Signal::SIGTERM);
    assert_eq!(finish(call).status.signal(), Some(Signal::SIGTERM as i32));
}

#[test]
fn case_o28_the_command_begins_with_every_signal_in_its_usual_state() {
    let case = Case::new();
    for owner in OWNERS {
        let words = exec_words(
            &["--ownership", owner],
            &["grep", "-E", "Sig(Ign|Blk)", "/proc/self/status"],
        );
        for script in ["trap '' HUP INT QUIT PIPE XFSZ; exec", "exec env --block-signal"] {
            let done = finish(start(&mut case.command_after(script, &words)));
            assert_eq!(
                done.text(),
                "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n",
                "{owner}: {script}"
            );
        }
    }
}

#[test]
fn a_signal_that_the_command_sends_to_its_own_group_does_not_come_back() {
    for owner in OWNERS {
        let case = Case::new();
        let script = format!(
            "trap 'echo own >> log' TERM; kill -TERM 0; exec sh {} command",
            case.member()
        );
        // The group is the call's alone.
        let words = exec_words(&["--ownership", owner], &["sh", "-c", &script]);
        let call = start(&mut case.command_after("exec setsid", words));
        case.wait_for_log("command ready");
        signal_taken(&call, Signal::SIGUSR1);
        case.wait_for_log("command USR1");
        assert_eq!(
            (count(&case, "own"), count(&case, "command TERM")),
            (1, 0),
            "{owner}"
        );
        signal(&call, Signal::SIGUSR2);
        assert_eq!(finish(call).code(), 3);
        case.wait_for_nothing();
    }
}

#[test]
fn a_stopped_command_goes_on_when_we_are_continued() {
    let case = Case::new();
    let mut call = start(&mut case.exec(&[], &["sh", "-c", "echo $$; kill -STOP $$; echo continued"]));
    let pid = crate::fixture::stdout_line(&mut call)
        .parse()
        .expect("it is a number");
    eventually("the stop", || crate::fixture::state(pid) == Some('T'));
    signal(&call, Signal::SIGCONT);
    assert_eq!(finish(call).text(), "continued\n");
}
