//! Sessions in a scripted world: what no machine of this kind shows on demand.

use std::sync::Arc;
use std::time::Duration;

use clap::Parser as _;
use dsh_subprocess::{ErrorKind, Member};
use dsh_subprocess_testkit::scripted::{Script, ScriptedMember, ScriptedWorld};

use super::*;
use crate::options::{Cli, Command};
use crate::report::Cause;

/// Runs what the words say in this world, without anybody at a terminal.
fn run_in(world: ScriptedWorld, words: &[&str]) -> Report {
    let words = [&["dsh-subprocess", "term", "--json", "--cwd", "/site"], words].concat();
    let Command::Term(mut options) = Cli::try_parse_from(words).expect("the options are good").command else {
        unreachable!("the words say term");
    };
    let command = std::mem::take(&mut options.command);
    let mut subject = Subject::of(command, options.cwd.as_deref()).expect("the directory is named");
    let mut request = Request::new(*options, &subject).expect("nothing is refused");
    request.attached = false;
    let make_world = |_| {
        Ok(World {
            runtime: Arc::new(world),
            kill_now: Box::new(|| ()),
        })
    };
    supervision::carry_out(supervise(request, &mut subject, make_world))
        .unwrap_or_else(|failure| Report::refused(subject, failure))
}

/// Runs the program `p`.
fn run_script(options: &[&str], script: Script) -> Report {
    let world = ScriptedWorld::free_running();
    world.program("p", script);
    run_in(world, &[options, &["--", "p"]].concat())
}

fn text(report: &Report) -> String {
    let retained = report.stdout.retained.as_ref();
    retained.expect("it is collected").text().tail
}

#[test]
fn a_session_is_reported_as_one_stream() {
    let script = Script::new()
        .starts()
        .stdout("a")
        .stderr("b")
        .prints_size()
        .exits(3);
    let report = run_script(&["--rows", "7", "--cols", "9"], script);
    assert_eq!((report.cause, report.status), (Cause::Exited, 3));
    assert_eq!(text(&report), "ab7 9\n");
    assert!(report.stderr.is_none() && report.failure.is_none());
}

#[test]
fn the_shell_is_the_worlds() {
    let world = ScriptedWorld::free_running();
    world.program("sh", Script::new().starts().exits(0));
    let report = run_in(world, &[]);
    assert_eq!((report.cause, report.status), (Cause::Exited, 0));
    assert_eq!(report.subject.argv, [WorldString::from("world://bin/sh")]);
}

#[test]
fn a_timeout_covers_an_allocation_that_never_comes() {
    let script = Script::new().wait_for("a dead file system").starts();
    let report = run_script(&["--timeout", "10ms"], script);
    assert_eq!((report.cause, report.status), (Cause::TimedOut, 124));
    assert_eq!(report.failure, None, "that it was abandoned is no failure");
    let line = report.line(true).expect("there are facts");
    assert!(
        line.starts_with("timed out in ") && line.ends_with(" · terminal 0 B"),
        "{line}"
    );
}

#[test]
fn a_start_that_fails_late_is_a_failed_spawn_all_the_same() {
    let error = Error::new(ErrorKind::ProgramFormat, "spawn", "`p` is of no known format");
    let report = run_script(&[], Script::new().waits(Duration::from_secs(60)).fails(error));
    assert_eq!((report.cause, report.status), (Cause::SpawnFailed, 126));
    assert_eq!(report.pid, None);
}

#[test]
fn what_outlives_sigkill_is_named_and_the_status_is_the_commands() {
    let stuck = ScriptedMember::new(77, "stuck").ignoring_term().unkillable();
    let report = run_script(&[], Script::new().starts().bears(stuck).exits(3));
    assert_eq!((report.cause, report.status), (Cause::Exited, 3));
    assert_eq!(report.survivors, [Member::new(77, "stuck")]);
    assert_eq!(report.failure.expect("it is said").kind, "survivors");
}
