//! A run whose own process is asked to end.

use std::io::Write;
use std::process::Child;

use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::signal::Signal;

use crate::fixture::{Case, eventually, finish, readable, signal, start, stdout_line};

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
    let words = ["run", "--", "/bin/sh", "-c", "echo ready; exec sleep 300"];
    let mut call = start(&mut case.command_after("trap '' HUP; exec", words));
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
    let words = [
        "run",
        "--quiet",
        "--",
        "grep",
        "-E",
        "Sig(Ign|Blk)",
        "/proc/self/status",
    ];
    for script in ["trap '' HUP INT QUIT PIPE XFSZ; exec", "exec env --block-signal"] {
        let done = finish(start(&mut case.command_after(script, words)));
        assert_eq!(
            done.text(),
            "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n",
            "{script}"
        );
    }
}

#[test]
fn a_signal_that_was_blocked_before_is_heard() {
    let case = Case::new();
    for (which, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let words = [
            "run",
            "--quiet",
            "--",
            "/bin/sh",
            "-c",
            "echo ready; exec sleep 300",
        ];
        let mut call = start(&mut case.command_after("exec env --block-signal=INT,TERM", words));
        assert_eq!(stdout_line(&mut call), "ready");
        signal(&call, which);
        assert_eq!(finish(call).code(), code);
        case.assert_nothing_lives();
    }
}

/// A run whose object is too long for the pipe that nobody reads yet, in the middle of writing it.
fn stuck_in_its_object(case: &Case) -> Child {
    let call = start(&mut case.command(["run", "--json", "--", "head", "-c", "500000", "/dev/zero"]));
    readable(call.stdout.as_ref().expect("stdout is a pipe"));
    call
}

#[test]
fn an_interrupt_ends_an_object_that_nobody_reads() {
    let case = Case::new();
    for (which, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let mut call = stuck_in_its_object(&case);
        let stdout = call.stdout.take();
        signal(&call, which);
        let done = finish(call);
        drop(stdout);
        assert_eq!((done.code(), &done.stderr[..]), (code, ""));
    }
}

#[test]
fn an_interrupt_leaves_time_for_an_object_that_is_read() {
    let case = Case::new();
    let call = stuck_in_its_object(&case);
    signal(&call, Signal::SIGINT);
    let done = finish(call);
    assert_eq!(done.code(), 0, "the run was over before");
    assert_eq!(done.object()["stdout"]["total_bytes"], 500_000);
}

#[test]
fn interrupts_end_a_line_that_nobody_reads() {
    let case = Case::new();
    let (_reader, mut full) = std::io::pipe().expect("a pipe can be made");
    let room = fcntl(&full, FcntlArg::F_GETPIPE_SZ).expect("a pipe has a size");
    full.write_all(&vec![b'x'; room.try_into().expect("it is a size")])
        .expect("so much fits");
    let mut call = start(case.command(["run", "--", "echo", "ran"]).stderr(full));
    readable(call.stdout.as_ref().expect("stdout is a pipe"));
    let mut status = None;
    // Whether the first one meets the run or the line after it cannot be seen from here.
    eventually("the end", || {
        signal(&call, Signal::SIGTERM);
        status = call.try_wait().expect("it can be waited for");
        status.is_some()
    });
    assert_eq!(status.and_then(|status| status.code()), Some(143));
    case.assert_nothing_lives();
}

#[test]
fn o6_a_command_that_kills_its_own_group_does_not_reach_us() {
    let done = Case::new().sh(&[], "kill -TERM 0; exec sleep 300");
    assert_eq!(done.code(), 143);
    assert!(done.line().starts_with("ended by SIGTERM in "), "{}", done.line());
}
