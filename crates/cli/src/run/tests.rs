//! Runs in a scripted world: what no machine of this kind shows on demand. Nothing here knows of this machine's processes,
//! so neither does [`run`](super::run).

use std::time::Duration;

use clap::Parser as _;
use dsh_subprocess::{Error, ErrorKind, Member, Outcome, StreamName, Usage};
use dsh_subprocess_testkit::scripted::{Reaction, Script, ScriptedMember, ScriptedWorld};

use super::*;
use crate::options::{Cli, Command};
use crate::report::Cause;

/// Runs the program `p` with --json and these options.
fn run_script(options: &[&str], script: Script) -> Report {
    let world = ScriptedWorld::free_running();
    world.program("p", script);
    run_in(options, move |_| {
        Ok(World {
            runtime: Arc::new(world),
            kill_now: Box::new(|| ()),
        })
    })
}

fn run_in(options: &[&str], make: impl FnOnce(OwnershipOption) -> Result<World, Error>) -> Report {
    let words = [
        &["dsh-subprocess", "run", "--json", "--cwd", "/site"],
        options,
        &["--", "p"],
    ]
    .concat();
    match Cli::try_parse_from(words).expect("the options are good").command {
        Command::Run(options) => run(*options, make),
        _ => unreachable!("the words say run"),
    }
}

fn text(stream: &StreamReport) -> String {
    stream
        .retained
        .as_ref()
        .map(|retained| retained.text().tail)
        .expect("the stream is collected")
}

#[test]
fn a_world_without_process_ids_is_reported_without_one() {
    let usage = Usage::new(Some(Duration::from_millis(7)), None, Some(4096));
    let script = Script::new()
        .starts()
        .stdout("out")
        .stderr("err")
        .uses(usage)
        .exits(0xC000_0005);
    let report = run_script(&[], script);
    assert_eq!(
        (report.cause, report.pid, report.status),
        (Cause::Exited, None, 255)
    );
    assert_eq!(report.outcome, Some(Outcome::Exited { code: 0xC000_0005 }));
    assert_eq!(
        (
            text(&report.stdout),
            text(report.stderr.as_ref().expect("there are two streams"))
        ),
        ("out".to_owned(), "err".to_owned())
    );
    assert_eq!(report.usage, usage);
    assert_eq!(
        report.ownership.expect("it was owned").mechanism.to_string(),
        "remote job_object"
    );
}

#[test]
fn a_process_id_that_arrives_late_is_told() {
    let script = Script::new()
        .waits(Duration::from_secs(90))
        .starts_as(4711)
        .exits(0);
    assert_eq!(run_script(&[], script).pid, Some(4711));
}

#[test]
fn a_signal_that_this_machine_does_not_have_is_no_success() {
    let report = run_script(&[], Script::new().starts().dies_of("SIGINFO".to_owned()));
    assert_eq!((report.cause, report.status), (Cause::Signaled, 125));
}

#[test]
fn an_end_that_nobody_saw_is_no_success() {
    let report = run_script(&[], Script::new().starts().ends(Outcome::Unknown));
    assert_eq!((report.cause, report.status), (Cause::Exited, 125));
    assert_eq!(report.failure.expect("it is said").kind, "status_unknown");
}

#[test]
fn an_owner_that_fails_is_no_failed_spawn() {
    let report = run_script(
        &[],
        Script::new()
            .starts()
            .stdout("so far")
            .loses_ownership("the agent is gone"),
    );
    assert_eq!((report.cause, report.status), (Cause::Aborted, 125));
    assert_eq!(report.failure.expect("it is said").kind, "ownership_lost");
    assert_eq!(text(&report.stdout), "so far");
}

#[test]
fn a_start_that_fails_late_is_a_failed_spawn_all_the_same() {
    let error = Error::new(ErrorKind::ProgramFormat, "spawn", "`p` is of no known format");
    let report = run_script(&[], Script::new().waits(Duration::from_secs(60)).fails(error));
    assert_eq!(
        (report.cause, report.status, report.pid),
        (Cause::SpawnFailed, 126, None)
    );
    assert!(report.ownership.is_none(), "nothing was owned");
}

#[test]
fn a_timeout_covers_a_start_that_never_comes() {
    let report = run_script(
        &["--timeout", "10ms"],
        Script::new().wait_for("a dead file system").starts(),
    );
    assert_eq!((report.cause, report.status), (Cause::TimedOut, 124));
}

#[test]
fn what_outlives_sigkill_is_named_and_the_status_is_the_commands() {
    let stuck = ScriptedMember::new(77, "stuck").ignoring_term().unkillable();
    let report = run_script(&[], Script::new().starts().bears(stuck).exits(3));
    assert_eq!((report.cause, report.status), (Cause::Exited, 3));
    assert_eq!(report.survivors, [Member::new(77, "stuck")]);
    assert_eq!(report.failure.expect("it is said").kind, "survivors");
}

#[test]
fn holders_and_what_was_ended_are_named() {
    let helper = ScriptedMember::new(78, "helper").holding(StreamName::Stdout);
    let report = run_script(&[], Script::new().starts().bears(helper).stdout("x").exits(0));
    assert_eq!(report.ended, [Member::new(78, "helper")]);
    assert_eq!(report.holders.len(), 1);
    assert_eq!(
        (report.holders[0].member.pid, report.holders[0].stream),
        (Some(78), StreamName::Stdout)
    );
    assert!(report.survivors.is_empty() && report.failure.is_none());
}

#[test]
fn a_command_that_ends_well_after_a_timeout_has_timed_out() {
    let reaction = Reaction::Ends {
        after: Duration::from_secs(1),
        outcome: Outcome::Exited { code: 0 },
    };
    let script = Script::new().on_term(reaction).starts().wait_for("never");
    let report = run_script(&["--timeout", "10ms"], script);
    assert_eq!((report.cause, report.status), (Cause::TimedOut, 124));
    assert_eq!(report.outcome, Some(Outcome::Exited { code: 0 }));
}

#[test]
fn a_mechanism_that_is_not_there_is_our_own_failure() {
    let report = run_in(&["--ownership", "cgroup"], |ownership| {
        assert_eq!(ownership, OwnershipOption::Cgroup);
        Err(Error::new(
            ErrorKind::OwnershipUnavailable,
            "build",
            "no control group can be made here",
        ))
    });
    assert_eq!((report.cause, report.status), (Cause::SpawnFailed, 125));
    assert_eq!(report.failure.expect("it is said").kind, "ownership_unavailable");
}
