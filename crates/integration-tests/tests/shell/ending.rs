//! A tree is ended as a whole, asked first, and nobody else is (O3, O4, O6, O7).

use std::path::Path;
use std::time::Duration;

use dsh_shell::{Cause, ShellRequest, SignalName};

use crate::fixture::{Tier, eventually, on_each_tier};
use crate::stage::{Stage, stdout};

on_each_tier! {
    o03_a_timeout_ends_every_member_of_a_pipeline,
    o03_a_cancelled_token_ends_every_member_of_a_pipeline,
    o03_a_search_of_everything_ends_with_its_timeout,
    o04_a_member_that_ignores_sigterm_is_killed_though_the_shell_is_gone,
    o06_a_a_signal_to_its_own_process_group_does_not_reach_the_host,
    o06_b_a_timeout_right_after_the_start_ends_nobody_else,
    o07_a_cancelled_command_has_its_time_to_clean_up,
}

/// Its word comes when all of them are there: who is born while the others are asked to end is not asked.
const PIPELINE: &str = "sleep 300 | cat | (echo begun; exec cat)";

fn o03_a_timeout_ends_every_member_of_a_pipeline(tier: Tier) {
    let stage = Stage::new(tier);
    let result = stage.run_for(PIPELINE, Duration::from_secs(2));
    assert_eq!(result.cause, Cause::TimedOut);
    assert_eq!(result.timeout, Duration::from_secs(2));
    assert_eq!(stdout(&result), "begun\n");
    stage.case.assert_gone();
    stage.end();
}

fn o03_a_cancelled_token_ends_every_member_of_a_pipeline(tier: Tier) {
    let stage = Stage::new(tier);
    let result = stage.cancel_at(PIPELINE, "begun");
    assert_eq!(result.cause, Cause::Aborted);
    assert_eq!(stdout(&result), "begun\n");
    stage.case.assert_gone();
    stage.end();
}

fn o03_a_search_of_everything_ends_with_its_timeout(tier: Tier) {
    let stage = Stage::new(tier);
    let result = stage.run_for(
        "grep -r x / 2>/dev/null | cat | head -n 1000000000",
        Duration::from_secs(1),
    );
    assert_eq!(result.cause, Cause::TimedOut);
    assert!(result.stdout.snapshot.sealed);
    stage.case.assert_gone();
    stage.end();
}

fn o04_a_member_that_ignores_sigterm_is_killed_though_the_shell_is_gone(tier: Tier) {
    let stage = Stage::with(tier, |config| config.grace = Duration::from_millis(300));
    let command = "(trap '' TERM; echo deaf; while :; do sleep 1; done) & sleep 300";
    let result = stage.run_for(command, Duration::from_secs(2));
    assert_eq!(result.cause, Cause::TimedOut);
    assert_eq!(stdout(&result), "deaf\n");
    assert_eq!(result.outcome.signal().map(SignalName::as_str), Some("SIGTERM"));
    assert!(result.left_behind.is_none(), "{result:?}");
    stage.case.assert_gone();
    stage.end();
}

fn o06_a_a_signal_to_its_own_process_group_does_not_reach_the_host(tier: Tier) {
    let stage = Stage::new(tier);
    let bystander = stage.start("echo ready; exec sleep 300");
    stage.wait_for_word(bystander.stdout(), "ready");
    let result = stage.run("kill -TERM 0; sleep 300");
    // Nobody of ours ended it, so its cause is its own.
    assert_eq!(result.cause, Cause::Ended);
    assert_eq!(result.outcome.signal().map(SignalName::as_str), Some("SIGTERM"));
    assert_eq!(bystander.status(), dsh_shell::Status::Running);
    stage.end();
}

fn o06_b_a_timeout_right_after_the_start_ends_nobody_else(tier: Tier) {
    let stage = Stage::new(tier);
    let bystander = stage.start("echo ready; exec sleep 300");
    stage.wait_for_word(bystander.stdout(), "ready");
    for round in 0..200 {
        let result = stage.run_for("sleep 300", Duration::from_micros(1 + round * 15));
        assert_eq!(result.cause, Cause::TimedOut, "round {round}");
    }
    assert_eq!(bystander.status(), dsh_shell::Status::Running);
    let pid = bystander.pid().expect("this world has ids");
    assert_eq!(stage.case.living(), [pid], "only the bystander is left");
    stage.end();
}

/// The handler takes a moment, and the grace is one that no test waits out.
fn o07_a_cancelled_command_has_its_time_to_clean_up(tier: Tier) {
    let stage = Stage::new(tier);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let lock = directory.path().join("index.lock");
    let mut request = ShellRequest::new(
        "sh -c 'trap \"sleep 0.1; rm -f index.lock; exit 143\" TERM; touch index.lock; \
         while :; do sleep 0.05; done'; :",
    );
    request.workdir = Some(directory.path().to_owned().into());
    let cancel = request.cancel.clone();
    let execution = stage.execute(request);
    eventually("the lock is taken", || Path::exists(&lock));
    cancel.cancel();
    let result = stage.within(execution.result()).expect("the command is run");
    assert_eq!(result.cause, Cause::Aborted);
    assert!(!lock.exists());
    stage.case.assert_gone();
    stage.end();
}
