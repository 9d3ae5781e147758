//! The tree ends with the binary, however that ends.

use nix::sys::signal::Signal;

use super::{OWNERS, exec_words};
use crate::fixture::{Case, finish, signal, start};

/// Kills the binary while its tree holds a daemon in a session of its own.
#[track_caller]
fn killed(owner: &str, grace: &str) -> Case {
    let case = Case::new();
    let script = format!("setsid sh {0} daemon & exec sh {0} command", case.member());
    let options = ["--ownership", owner, "--grace", grace];
    let call = start(&mut case.exec(&options, &["sh", "-c", &script]));
    case.wait_for_log("daemon ready");
    case.wait_for_log("command ready");
    signal(&call, Signal::SIGKILL);
    finish(call);
    case.wait_for_nothing();
    for line in ["daemon TERM", "command TERM"] {
        assert!(case.log().contains(&line.to_owned()), "{owner}: {line}");
    }
    case
}

#[test]
fn case_o10_killed_by_force_the_tree_is_asked_and_then_killed() {
    for owner in OWNERS {
        killed(owner, "200ms");
    }
}

#[test]
fn as_root_case_o10_killed_by_force_a_control_group_is_emptied() {
    killed("cgroup", "200ms");
}

#[test]
fn case_o10_killed_with_its_whole_process_group_the_daemons_end_as_well() {
    for owner in OWNERS {
        let case = Case::new();
        let script = format!("setsid sh {0} daemon & exec sh {0} command", case.member());
        let words = exec_words(
            &["--ownership", owner, "--grace", "200ms"],
            &["sh", "-c", &script],
        );
        let call = start(&mut case.command_after("exec setsid", words));
        case.wait_for_log("daemon ready");
        case.wait_for_log("command ready");
        let group = nix::unistd::Pid::from_raw(call.id().cast_signed());
        nix::sys::signal::killpg(group, Signal::SIGKILL).expect("the group is there");
        finish(call);
        case.wait_for_nothing();
        assert!(case.log().contains(&"daemon TERM".to_owned()), "{owner}");
    }
}
