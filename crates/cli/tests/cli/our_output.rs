//! When whoever reads our output goes away, or nothing more fits into it.

use std::fs::File;
use std::process::Stdio;

use nix::sys::signal::Signal;

use crate::fixture::{Case, eventually, finish, signal, start, stdout_line};

#[test]
fn a_closed_stdout_ends_the_tree_without_a_panic() {
    let case = Case::new();
    let mut call = start(&mut case.command(["run", "--", "yes"]));
    assert_eq!(stdout_line(&mut call), "y");
    drop(call.stdout.take());
    let done = finish(call);
    assert_eq!(done.code(), 141);
    // By our SIGTERM, or by the SIGPIPE of its own next write, whichever comes first.
    assert!(
        done.line().starts_with("stdout was closed, ended by SIG"),
        "{}",
        done.line()
    );
    case.assert_nothing_lives();
}

#[test]
fn a_closed_stdout_is_noticed_even_if_the_command_falls_silent_after_it() {
    let case = Case::new();
    let go = case.gate("go");
    let script = format!("echo one; read line < '{}'; echo two; exec sleep 300", go.path());
    let mut call = case.start_sh(&["--quiet"], &script);
    assert_eq!(stdout_line(&mut call), "one");
    drop(call.stdout.take());
    std::fs::write(go.path(), "go\n").expect("the gate is open");
    let done = finish(call);
    assert_eq!((done.code(), &done.stderr[..]), (141, ""));
    case.assert_nothing_lives();
}

#[test]
fn stdout_and_stderr_closed_at_once_are_no_panic_either() {
    let case = Case::new();
    let mut call = case.start_sh(&[], "while :; do echo out; echo err >&2; done");
    assert_eq!(stdout_line(&mut call), "out");
    drop((call.stdout.take(), call.stderr.take()));
    assert_eq!(finish(call).code(), 141);
    case.assert_nothing_lives();
}

#[test]
fn a_full_disk_under_stdout_is_named_and_ends_the_tree() {
    let case = Case::new();
    let full = File::create("/dev/full").expect("it takes writers");
    let done = finish(start(
        case.command(["run", "--", "yes"]).stdout(Stdio::from(full)),
    ));
    assert_eq!(done.code(), 125);
    assert!(
        done.line().starts_with("stdout: No space left on device"),
        "{}",
        done.line()
    );
    case.assert_nothing_lives();
}

#[test]
fn a_file_at_its_size_limit_is_a_failed_write_and_ends_the_tree() {
    let case = Case::new();
    let file = File::create(case.path("limited")).expect("it can be made");
    let words = ["run", "--", "/bin/sh", "-c", "echo too much; exec sleep 300"];
    let done = finish(start(case.command_after("ulimit -f 0; exec", words).stdout(file)));
    assert_eq!(done.code(), 125);
    assert!(
        done.line().starts_with("stdout: File too large") && done.line().contains(", ended by SIGTERM in "),
        "{}",
        done.line()
    );
    case.assert_nothing_lives();
}

#[test]
fn an_object_above_the_size_limit_is_a_failed_write() {
    let case = Case::new();
    let file = File::create(case.path("limited")).expect("it can be made");
    let words = ["run", "--json", "--", "true"];
    let done = finish(start(case.command_after("ulimit -f 0; exec", words).stdout(file)));
    assert_eq!(done.code(), 125);
    assert!(
        done.line().starts_with("stdout: File too large"),
        "{}",
        done.line()
    );
}

#[test]
fn an_object_that_nobody_reads_is_no_panic() {
    let case = Case::new();
    let gate = case.gate("gate");
    let script = format!("echo > '{}'", gate.path());
    let mut call = case.start_sh(&["--json"], &script);
    drop(call.stdout.take());
    gate.wait();
    assert_eq!(finish(call).code(), 141);
}

#[test]
fn help_that_nobody_reads_is_no_panic() {
    let case = Case::new();
    for words in [
        &["--help"][..],
        &["run", "--help"],
        &["completions", "bash"],
        &["man"],
        &["doctor"],
    ] {
        let mut command = case.command(words);
        // A pipe without a reader.
        let (reader, writer) = std::io::pipe().expect("a pipe can be made");
        drop(reader);
        let done = finish(start(command.stdout(writer)));
        assert!(matches!(done.code(), 0 | 141), "{words:?}: {}", done.code());
    }
}

#[test]
fn a_reader_that_does_not_read_does_not_outlast_an_interrupt() {
    let case = Case::new();
    let mut call = case.start_sh(&["--drain", "100ms"], "echo $$; exec yes");
    let pid: i32 = stdout_line(&mut call).parse().expect("it is a pid");
    // Nobody reads on; the rest of the output is stuck in the pipe.
    eventually("the command to be held up", || {
        crate::fixture::state(pid) == Some('S')
    });
    signal(&call, Signal::SIGTERM);
    let stdout = call.stdout.take();
    let done = finish(call);
    drop(stdout);
    assert_eq!(done.code(), 143);
    assert!(
        done.line()
            .starts_with("interrupted by SIGTERM, ended by SIGTERM in "),
        "{}",
        done.line()
    );
    case.assert_nothing_lives();
}
