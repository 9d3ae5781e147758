//! Commands in the background: no deadline, one consuming reader, an end that is told once (items 123 to 126).

use std::time::Duration;

use dsh_shell::{Cause, LeftBehindPolicy, Settings, ShellRequest, Status};
use dsh_subprocess::SubprocessRuntime;

use crate::fixture::{Tier, alive, on_each_tier};
use crate::stage::Stage;

on_each_tier! {
    item_123_a_background_command_has_no_deadline,
    item_123_a_signal_death_is_killed_and_an_exit_is_completed,
    item_123_a_cancelled_token_ends_a_background_command_as_killed,
    item_123_a_failed_start_settles_as_killed_and_is_told_once,
    item_124_reads_consume_and_stay_valid_after_the_end,
    item_125_a_kill_is_true_once,
    item_126_a_background_command_outlives_its_executor_and_ends_with_the_runtime,
}

fn item_123_a_background_command_has_no_deadline(tier: Tier) {
    let stage = Stage::with(tier, |config| config.timeout = Duration::from_millis(1));
    let execution = stage.start("sleep 0.5; echo done");
    let ended = stage.within(execution.done());
    assert_eq!(
        (ended.status, ended.outcome.map(|outcome| outcome.code()).ok()),
        (Status::Completed, Some(Some(0)))
    );
    assert_eq!(execution.read_output().delta, "done\n");
    stage.end();
}

fn item_123_a_signal_death_is_killed_and_an_exit_is_completed(tier: Tier) {
    let stage = Stage::new(tier);
    for (command, status) in [("exit 3", Status::Completed), ("kill -9 $$", Status::Killed)] {
        let execution = stage.start(command);
        let ended = stage.within(execution.done());
        assert_eq!((ended.status, execution.status()), (status, status), "{command}");
        assert!(ended.survivors.is_empty());
    }
    stage.end();
}

fn item_123_a_cancelled_token_ends_a_background_command_as_killed(tier: Tier) {
    let stage = Stage::new(tier);
    let request = ShellRequest::new("trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done");
    let cancel = request.cancel.clone();
    let execution = stage.execute(request);
    stage.wait_for_word(execution.stdout(), "ready");
    assert_eq!(execution.status(), Status::Running);
    cancel.cancel();
    let ended = stage.within(execution.done());
    assert_eq!(ended.status, Status::Killed, "an exit code of 0 changes nothing");
    assert_eq!(
        stage.within(execution.result()).expect("it has one").cause,
        Cause::Aborted
    );
    stage.case.assert_gone();
    stage.end();
}

fn item_123_a_failed_start_settles_as_killed_and_is_told_once(tier: Tier) {
    let stage = Stage::with(tier, |config| config.program = vec!["/nonexistent/sh".into()]);
    let execution = stage.start("echo hi");
    let ended = stage.within(execution.done());
    assert_eq!(ended.status, Status::Killed);
    assert!(ended.outcome.is_err());
    assert_eq!(execution.pid(), None);
    let told = execution.read_output().delta;
    assert!(
        told.starts_with("[stderr]\nspawn failed: ") && told.contains("/nonexistent/sh"),
        "{told}"
    );
    assert_eq!(execution.read_output().delta, "");
    assert!(!execution.kill());
    stage.end();
}

fn item_124_reads_consume_and_stay_valid_after_the_end(tier: Tier) {
    let stage = Stage::new(tier);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let gate = directory.path().join("gate");
    let command = format!(
        "printf out; echo err >&2; until [ -e {} ]; do sleep 0.02; done; echo more",
        gate.display()
    );
    let execution = stage.start(&command);
    stage.wait_for_word(execution.stderr().expect("it is a stream of its own"), "err");
    let mut first = execution.read_output().delta;
    if first.starts_with("[stderr]") {
        // The two streams arrive in their own time.
        stage.within(execution.stdout().changed(0));
        first = execution.read_output().delta;
        assert_eq!(first, "out");
    } else {
        // A line break is put where standard output ends without one.
        assert_eq!(first, "out\n[stderr]\nerr\n");
    }
    assert_eq!(execution.read_output().delta, "");
    std::fs::write(&gate, "").expect("it is ours");
    stage.within(execution.done());
    let last = execution.read_output();
    assert_eq!((&last.delta[..], last.lost), ("more\n", 0));
    assert_eq!(execution.read_output().delta, "");
    stage.end();
}

fn item_125_a_kill_is_true_once(tier: Tier) {
    let stage = Stage::new(tier);
    let execution = stage.start("echo ready; exec sleep 300");
    stage.wait_for_word(execution.stdout(), "ready");
    assert!(execution.kill());
    assert!(!execution.kill());
    assert_eq!(stage.within(execution.done()).status, Status::Killed);
    assert!(!execution.kill());
    stage.case.assert_gone();

    let execution = stage.start("exit 0");
    stage.within(execution.done());
    assert!(!execution.kill());
    assert_eq!(execution.status(), Status::Completed);
    stage.end();
}

fn item_126_a_background_command_outlives_its_executor_and_ends_with_the_runtime(tier: Tier) {
    let mut stage = Stage::new(tier);
    let execution = stage.start("echo ready; exec sleep 300");
    stage.wait_for_word(execution.stdout(), "ready");
    let pid = execution.pid().expect("this world has ids");
    // New settings, and then another executor in the place of this one.
    let settings = Settings {
        timeout: Some(Duration::from_secs(1)),
        left_behind: Some(LeftBehindPolicy::Keep),
        ..Settings::default()
    };
    stage.shell.set_settings(Some(&settings)).expect("they are valid");
    let world = std::sync::Arc::new(stage.case.runtime.clone());
    stage.shell = dsh_shell::Shell::new(world, dsh_shell::Config::default()).expect("it is valid");
    assert!(alive(pid));
    assert_eq!(execution.status(), Status::Running);
    stage
        .within(stage.case.runtime.dispose())
        .expect("every tree can be ended");
    assert_eq!(stage.within(execution.done()).status, Status::Killed);
    assert!(!alive(pid));
    stage.end();
}
