//! Why a command ended: the first cause, and one alone (items 121, 122 and 187).

use std::time::Duration;

use dsh_shell::{Cause, ErrorKind, MayHaveStarted, OnExpiry, Outcome, ShellError, ShellRequest, SignalName};
use dsh_subprocess_testkit::scripted::{Reaction, Script};
use tokio::time::sleep;

use crate::stage::{Stage, for_at_most};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn item_121_a_command_that_runs_out_of_time_is_timed_out() {
    let stage = Stage::new(Script::new().stdout("begun\n"));
    let spec = stage.shell.resolve(for_at_most(SECOND)).expect("it is valid");
    let result = stage.play(stage.shell.run(spec)).expect("it is run");
    assert_eq!((result.cause, result.timeout), (Cause::TimedOut, SECOND));
    assert_eq!(result.outcome.signal().map(SignalName::as_str), Some("SIGTERM"));
    assert_eq!(&result.stdout.snapshot.tail[..], b"begun\n");
    assert!(result.duration >= SECOND);
}

#[test]
fn item_121_a_command_whose_caller_gives_up_is_aborted() {
    let stage = Stage::new(Script::new().stdout("begun\n"));
    let request = for_at_most(10 * SECOND);
    let cancel = request.cancel.clone();
    let spec = stage.shell.resolve(request).expect("it is valid");
    let result = stage.play(async {
        let (result, ()) = tokio::join!(stage.shell.run(spec), async {
            sleep(SECOND).await;
            cancel.cancel();
        });
        result.expect("it is run")
    });
    assert_eq!(result.cause, Cause::Aborted);
    assert_eq!(&result.stdout.snapshot.tail[..], b"begun\n");
}

#[test]
fn item_121_a_signal_that_was_not_ours_is_no_cause() {
    let stage = Stage::new(Script::new().dies_of("SIGTERM"));
    let spec = stage.shell.resolve(for_at_most(SECOND)).expect("it is valid");
    let result = stage.play(stage.shell.run(spec)).expect("it is run");
    assert_eq!(result.cause, Cause::Ended);
    assert_eq!(result.outcome.signal().map(SignalName::as_str), Some("SIGTERM"));
    assert!(stage.request().signals.is_empty());
}

#[test]
fn item_121_a_token_that_is_cancelled_already_starts_nothing() {
    let stage = Stage::new(Script::new());
    let request = ShellRequest::new("make");
    request.cancel.cancel();
    let spec = stage.shell.resolve(request).expect("it is valid");
    let error = stage.play(stage.shell.run(spec)).expect_err("nothing is started");
    assert_eq!(error.kind(), Some(ErrorKind::Cancelled));
    assert!(stage.world.requests().is_empty());
}

#[test]
fn item_121_a_lost_owner_is_an_error_that_keeps_what_was_printed() {
    let stage = Stage::new(
        Script::new()
            .stdout("begun\n")
            .waits(SECOND)
            .loses_ownership("the warden died"),
    );
    let spec = stage
        .shell
        .resolve(ShellRequest::new("make"))
        .expect("it is valid");
    let error = stage
        .play(stage.shell.run(spec))
        .expect_err("nobody knows how it ended");
    let ShellError::Runtime { error, partial } = error else {
        panic!("{error}")
    };
    assert_eq!(error.kind(), ErrorKind::OwnershipLost);
    assert_ne!(error.started(), MayHaveStarted::No);
    let partial = partial.expect("it printed something");
    assert_eq!(&partial.stdout.snapshot.tail[..], b"begun\n");
}

#[test]
fn item_122_a_command_that_traps_the_signal_and_exits_well_was_timed_out() {
    let cleans_up = Reaction::Ends {
        after: SECOND,
        outcome: Outcome::Exited { code: 0 },
    };
    let stage = Stage::new(Script::new().on_term(cleans_up));
    let spec = stage.shell.resolve(for_at_most(SECOND)).expect("it is valid");
    let result = stage.play(stage.shell.run(spec)).expect("it is run");
    assert_eq!(
        (result.cause, result.outcome),
        (Cause::TimedOut, Outcome::Exited { code: 0 })
    );
    assert_eq!(stage.request().signals.len(), 1, "it took none of its grace");
}

#[test]
fn item_122_a_command_that_ignores_the_signal_is_killed_after_its_grace() {
    let stage = Stage::new(Script::new().on_term(Reaction::Ignores));
    let spec = stage.shell.resolve(for_at_most(SECOND)).expect("it is valid");
    let result = stage.play(stage.shell.run(spec)).expect("it is run");
    assert_eq!(result.cause, Cause::TimedOut);
    let request = stage.request();
    let signals: Vec<&str> = request
        .signals
        .iter()
        .map(|delivery| delivery.signal.as_str())
        .collect();
    assert_eq!(signals, ["SIGTERM", "SIGKILL"]);
    assert_eq!(
        request.signals[1].at,
        request.signals[0].at + Duration::from_secs(3)
    );
}

#[test]
fn item_187_a_deadline_counts_while_the_command_is_being_prepared() {
    let stage = Stage::new(Script::new().waits(60 * SECOND).starts().exits(0));
    let spec = stage.shell.resolve(for_at_most(SECOND)).expect("it is valid");
    let result = stage
        .play(stage.shell.run(spec))
        .expect("an end before the start has a result");
    assert_eq!(result.cause, Cause::TimedOut);
    assert!(stage.world.now() < 60 * SECOND);
}

#[test]
fn item_187_without_an_expiry_nothing_ends_a_command_but_its_caller() {
    let stage = Stage::new(Script::new().waits(60 * SECOND).exits(4));
    let mut request = for_at_most(SECOND);
    request.on_expiry = OnExpiry::None;
    let spec = stage.shell.resolve(request).expect("it is valid");
    let result = stage.play(stage.shell.run(spec)).expect("it is run");
    assert_eq!(
        (result.cause, result.outcome.code(), result.timeout),
        (Cause::Ended, Some(4), SECOND)
    );
}

#[test]
fn a_dropped_call_ends_its_tree() {
    let stage = Stage::new(Script::new());
    let spec = stage
        .shell
        .resolve(ShellRequest::new("make"))
        .expect("it is valid");
    stage.play(async {
        let call = tokio::time::timeout(SECOND, stage.shell.run(spec));
        call.await.expect_err("it does not end by itself");
        sleep(SECOND).await;
    });
    let request = stage.request();
    assert_eq!(request.signals.len(), 1);
    assert_eq!(request.signals[0].signal.as_str(), "SIGTERM");
}
