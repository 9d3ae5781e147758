//! What a command does to its shell is over with the command (O24).

use dsh_shell::{Cause, Fate, SignalName};

use crate::fixture::{Tier, on_each_tier};
use crate::stage::{Stage, assert_exit, stdout};

on_each_tier! {
    o24_an_exit_is_the_commands_own,
    o24_an_exec_is_the_commands_own,
    o24_a_shell_that_kills_itself_is_honestly_told,
    o24_an_exit_with_a_background_job_is_not_awaited,
    o24_strict_mode_is_the_commands_own,
    o24_no_directory_variable_or_trap_is_left,
}

#[track_caller]
fn assert_alive(stage: &Stage) {
    let result = stage.run("echo alive $PWD");
    assert_exit(&result, 0);
    assert_eq!(stdout(&result), "alive /\n");
}

fn o24_an_exit_is_the_commands_own(tier: Tier) {
    let stage = Stage::new(tier);
    assert_exit(&stage.run("exit 42"), 42);
    assert_alive(&stage);
    stage.end();
}

fn o24_an_exec_is_the_commands_own(tier: Tier) {
    let stage = Stage::new(tier);
    assert_exit(&stage.run("exec true"), 0);
    assert_alive(&stage);
    stage.end();
}

fn o24_a_shell_that_kills_itself_is_honestly_told(tier: Tier) {
    let stage = Stage::new(tier);
    let result = stage.run("kill -9 $$");
    assert_eq!(result.cause, Cause::Ended);
    assert_eq!(result.outcome.signal().map(SignalName::as_str), Some("SIGKILL"));
    assert_alive(&stage);
    stage.end();
}

fn o24_an_exit_with_a_background_job_is_not_awaited(tier: Tier) {
    let stage = Stage::new(tier);
    let result = stage.run("sleep 300 & exit 1");
    assert_exit(&result, 1);
    let left_behind = result.left_behind.expect("it is mentioned");
    assert!(matches!(left_behind.fate, Fate::Ended), "{left_behind:?}");
    stage.case.assert_gone();
    assert_alive(&stage);
    stage.end();
}

fn o24_strict_mode_is_the_commands_own(tier: Tier) {
    let stage = Stage::new(tier);
    assert_exit(&stage.run("set -euo pipefail; false"), 1);
    assert_alive(&stage);
    stage.end();
}

fn o24_no_directory_variable_or_trap_is_left(tier: Tier) {
    let stage = Stage::new(tier);
    assert_exit(
        &stage.run("trap '' INT; exec 2>/dev/null; cd /tmp; X=1; export X; f() { :; }; umask 077"),
        0,
    );
    let result = stage.run("echo ${X-unset}; type f 2>&1; trap; echo err >&2");
    assert!(stdout(&result).starts_with("unset\n"), "{result:?}");
    assert!(stdout(&result).contains("f: not found"), "{result:?}");
    assert_eq!(crate::stage::stderr(&result), "err\n");
    assert_alive(&stage);
    stage.end();
}
