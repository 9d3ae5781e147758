//! Contract items about one command that need a real one.

use std::time::Duration;

use dsh_shell::{Cause, OnExpiry, ShellRequest, SignalName, render, view};
use dsh_subprocess::SubprocessRuntime;

use crate::fixture::{Tier, on_each_tier};
use crate::stage::{LONG, Stage, assert_exit, stderr, stdout};

on_each_tier! {
    item_117_a_command_has_a_plain_shell_of_its_own,
    item_118_a_timeout_is_shortened_to_the_maximum_and_reported,
    item_119_more_room_is_for_standard_output_in_the_foreground_alone,
    item_121_the_first_cause_counts_and_a_self_kill_is_none,
    item_121_a_disposed_runtime_is_a_failure_of_the_machinery,
    item_122_a_command_that_traps_the_signal_was_timed_out_all_the_same,
    item_128_the_markers_come_in_their_order,
    item_187_without_an_expiry_the_deadline_ends_nothing,
    a_dropped_call_ends_its_tree,
    a_token_does_not_switch_the_timeout_off,
}

/// Not a login shell, not an interactive one, and no startup file.
fn item_117_a_command_has_a_plain_shell_of_its_own(tier: Tier) {
    let stage = Stage::new(tier);
    let directory = tempfile::tempdir().expect("a temporary directory");
    for name in [".bashrc", ".bash_profile", ".profile"] {
        std::fs::write(directory.path().join(name), "echo startup\n").expect("it is ours");
    }
    let mut request =
        ShellRequest::new("shopt -q login_shell; echo $?; case $- in *i*) echo interactive;; esac; echo $0");
    request
        .env
        .insert("HOME".into(), Some(directory.path().to_owned().into()));
    let result = stage.run_request(request);
    assert_exit(&result, 0);
    assert_eq!(stdout(&result), "1\nbash\n");
    stage.end();
}

fn item_118_a_timeout_is_shortened_to_the_maximum_and_reported(tier: Tier) {
    let stage = Stage::with(tier, |config| config.max_timeout = Duration::from_millis(400));
    let result = stage.run_for("sleep 300", LONG);
    assert_eq!(
        (result.cause, result.timeout),
        (Cause::TimedOut, Duration::from_millis(400))
    );
    stage.end();
}

fn item_119_more_room_is_for_standard_output_in_the_foreground_alone(tier: Tier) {
    let stage = Stage::with(tier, |config| config.max_output_bytes = 1000);
    let command = "yes | head -c 5000; yes | head -c 5000 >&2";
    let mut request = ShellRequest::new(command);
    request.stdout_max_bytes = Some(5000);
    let result = stage.run_request(request.clone());
    let errors = result.stderr.as_ref().expect("it is a stream of its own");
    assert_eq!(
        (result.stdout.snapshot.dropped(), errors.snapshot.dropped()),
        (0, 4000)
    );
    let spec = stage.shell.resolve(request).expect("it is valid");
    let execution = stage
        .within(async { stage.shell.start(spec) })
        .expect("it starts");
    stage.within(execution.done());
    assert_eq!(execution.stdout().snapshot().dropped(), 4000);
    stage.end();
}

fn item_121_the_first_cause_counts_and_a_self_kill_is_none(tier: Tier) {
    let stage = Stage::new(tier);
    for signal in ["TERM", "KILL", "INT"] {
        let result = stage.run(&format!("kill -{signal} $$; sleep 300"));
        assert_eq!(result.cause, Cause::Ended, "{signal}");
        let name = format!("SIG{signal}");
        assert_eq!(result.outcome.signal().map(SignalName::as_str), Some(&name[..]));
    }
    // The token is cancelled while the grace of the timeout runs.
    let mut request =
        ShellRequest::new("trap 'echo asked; sleep 0.3' TERM; echo ready; while :; do sleep 0.02; done");
    request.timeout = Some(Duration::from_secs(1));
    let cancel = request.cancel.clone();
    let graceful = Stage::with(tier, |config| config.grace = Duration::from_millis(800));
    let execution = graceful.execute(request);
    graceful.wait_for_word(execution.stdout(), "asked");
    cancel.cancel();
    let result = graceful.within(execution.result()).expect("the command is run");
    assert_eq!(result.cause, Cause::TimedOut);
    graceful.end();
    stage.end();
}

fn item_121_a_disposed_runtime_is_a_failure_of_the_machinery(tier: Tier) {
    let stage = Stage::new(tier);
    stage.within(stage.case.runtime.dispose()).expect("nothing runs");
    let error = stage
        .try_run(ShellRequest::new("echo hi"))
        .expect_err("nothing is started any more");
    assert_eq!(error.kind(), Some(dsh_shell::ErrorKind::Disposed), "{error}");
    stage.end();
}

fn item_122_a_command_that_traps_the_signal_was_timed_out_all_the_same(tier: Tier) {
    let stage = Stage::new(tier);
    let command = "trap 'echo cleaned; exit 0' TERM; echo ready; while :; do sleep 0.02; done";
    let result = stage.run_for(command, Duration::from_secs(2));
    assert_eq!((result.cause, result.outcome.code()), (Cause::TimedOut, Some(0)));
    assert_eq!(stdout(&result), "ready\ncleaned\n");
    stage.end();
}

fn item_128_the_markers_come_in_their_order(tier: Tier) {
    let stage = Stage::with(tier, |config| {
        config.max_output_bytes = 1000;
        config.max_spill_bytes = 0;
    });
    let shown = |command: &str, timeout| {
        let result = stage.run_for(command, timeout);
        render::render(&view(&result), &render::Style::default()).text
    };
    assert_eq!(shown("true", LONG), "(no output)\n[exit code: 0]");
    assert_eq!(
        shown("printf out; printf err >&2; exit 3", LONG),
        "out\n[stderr]\nerr\n[exit code: 3]"
    );
    let text = shown("yes | head -c 5000; sleep 300 & kill -9 $$", LONG);
    let last: Vec<&str> = text.lines().rev().take(3).collect();
    assert_eq!(last[0], "[killed by signal: SIGKILL]", "{text}");
    assert!(last[1].starts_with("[ended what was left running: "), "{text}");
    assert_eq!(
        last[2], "[output truncated; full output: (unavailable)]",
        "{text}"
    );
    let text = shown(
        "trap 'exit 0' TERM; while :; do sleep 0.02; done",
        Duration::from_secs(1),
    );
    assert!(
        text.ends_with("\n[timed out after 1000ms]\n[exit code: 0]"),
        "{text}"
    );
    stage.end();
}

fn item_187_without_an_expiry_the_deadline_ends_nothing(tier: Tier) {
    let stage = Stage::new(tier);
    let mut request = ShellRequest::new("sleep 0.5; echo done");
    request.timeout = Some(Duration::from_millis(1));
    request.on_expiry = OnExpiry::None;
    let result = stage.run_request(request);
    assert_exit(&result, 0);
    assert_eq!((&stdout(&result)[..], &stderr(&result)[..]), ("done\n", ""));
    stage.end();
}

fn a_dropped_call_ends_its_tree(tier: Tier) {
    let stage = Stage::new(tier);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let ready = directory.path().join("ready");
    let command = format!("sleep 300 | cat & touch {}; sleep 300", ready.display());
    let spec = stage
        .shell
        .resolve(ShellRequest::new(command))
        .expect("it is valid");
    stage.within(async {
        let until_ready = async {
            while !ready.exists() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::select! {
            result = stage.shell.run(spec) => panic!("it ended: {result:?}"),
            () = until_ready => {}
        }
    });
    crate::fixture::eventually("the tree is gone", || stage.case.living().is_empty());
    stage.end();
}

fn a_token_does_not_switch_the_timeout_off(tier: Tier) {
    let stage = Stage::new(tier);
    let mut request = ShellRequest::new("sleep 300");
    request.timeout = Some(Duration::from_millis(300));
    // It is the caller's own, and stays uncancelled.
    request.cancel = tokio_util::sync::CancellationToken::new();
    let result = stage.run_request(request);
    assert_eq!(result.cause, Cause::TimedOut);
    stage.end();
}
