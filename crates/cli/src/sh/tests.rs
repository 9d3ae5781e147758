//! Texts in a scripted world: what no machine of this kind shows on demand.

use std::sync::Arc;

use clap::Parser as _;
use dsh_subprocess::{ErrorKind, MayHaveStarted, Outcome};
use dsh_subprocess_testkit::scripted::{Script, ScriptedMember, ScriptedWorld};

use super::*;
use crate::options::{Cli, Command};

/// Runs a text whose shell does what the script says.
fn run_script(script: Script) -> ShReport {
    let world = ScriptedWorld::free_running();
    world.program("bash", script);
    let words = ["dsh-subprocess", "sh", "--cwd", "/site", "a text"];
    let Command::Sh(options) = Cli::try_parse_from(words).expect("the options are good").command else {
        unreachable!("the words say sh");
    };
    sh(*options, move |_| {
        Ok(World {
            runtime: Arc::new(world),
            kill_now: Box::new(|| ()),
        })
    })
}

#[test]
fn a_wide_exit_code_of_another_world_is_shown_whole_and_told_as_a_failure() {
    let report = run_script(Script::new().starts().stdout("out").exits(0xC000_0005));
    assert_eq!((report.status, report.pid), (255, None));
    assert_eq!(report.outcome, Some(Outcome::Exited { code: 0xC000_0005 }));
    assert_eq!(report.rendered.as_deref(), Some("out\n[exit code: 3221225477]"));
    assert_eq!(report.line(true), None);
}

#[test]
fn an_owner_that_is_lost_keeps_what_was_printed_and_is_no_failed_exec() {
    let report = run_script(
        Script::new()
            .starts()
            .stdout("so far")
            .loses_ownership("the warden died"),
    );
    assert_eq!((report.status, report.cause), (125, None));
    assert_eq!(
        report.failure.as_ref().map(|failure| &failure.kind[..]),
        Some("ownership_lost")
    );
    assert_eq!(report.rendered.as_deref(), Some("so far\n[exit status unknown]"));
    assert!(
        report
            .line(false)
            .is_some_and(|line| line.contains("the warden died"))
    );
}

#[test]
fn a_start_that_fails_has_no_result_and_nothing_to_show() {
    let error = Error::new(ErrorKind::ProgramFormat, "spawn", "of no known format");
    let report = run_script(Script::new().fails(error.with_started(MayHaveStarted::No)));
    assert_eq!(
        (report.status, report.cause, report.rendered.clone()),
        (126, None, None)
    );
    assert_eq!(report.line(false).as_deref(), Some("of no known format"));
}

#[test]
fn a_status_that_was_lost_is_never_success() {
    let report = run_script(Script::new().starts().ends(Outcome::Unknown));
    assert_eq!(report.status, 125);
    assert_eq!(
        report.rendered.as_deref(),
        Some("(no output)\n[exit status unknown]")
    );
    assert!(report.line(false).is_some_and(|line| line.contains("not known")));
}

#[test]
fn a_member_that_outlives_sigkill_is_named_and_does_not_change_the_status() {
    let stuck = ScriptedMember::new(7, "stuck").unkillable();
    let report = run_script(Script::new().starts_as(5).bears(stuck).exits(0));
    assert_eq!(report.status, 0);
    let remains = report.left_behind.expect("somebody is left");
    assert_eq!(remains.survivors.len(), 1);
    assert_eq!(remains.survivors[0].pid, Some(7));
    let rendered = report.rendered.expect("there is a result");
    assert!(
        rendered.contains("could not end") && rendered.contains("stuck"),
        "{rendered}"
    );
}
