//! Input of any size stalls nothing, and the timeout covers its writing (O20).

use std::time::Duration;

use dsh_shell::{Cause, ShellRequest};

use crate::fixture::{Tier, numbered, on_each_tier};
use crate::stage::{Stage, assert_exit, stdout, whole};

on_each_tier! {
    o20_a_large_input_comes_back_whole,
    o20_a_timeout_covers_the_writing_of_an_input_that_is_read,
    o20_a_timeout_covers_the_writing_of_an_input_that_nobody_reads,
    without_an_input_there_is_the_end_of_one,
}

const LARGE: usize = 8 << 20;

fn o20_a_large_input_comes_back_whole(tier: Tier) {
    let stage = Stage::new(tier);
    let input = numbered(LARGE);
    let mut request = ShellRequest::new("cat");
    request.stdin = Some(input.clone().into());
    request.stdout_max_bytes = Some(2 * LARGE);
    let result = stage.run_request(request);
    assert_exit(&result, 0);
    assert!(whole(&result.stdout) == input, "the bytes differ");
    stage.end();
}

#[track_caller]
fn times_out(stage: &Stage, command: &str, timeout: Duration) -> String {
    let mut request = ShellRequest::new(command);
    request.stdin = Some(numbered(LARGE).into());
    request.timeout = Some(timeout);
    let result = stage.run_request(request);
    assert_eq!(result.cause, Cause::TimedOut, "{command}");
    stage.case.assert_gone();
    stdout(&result)
}

fn o20_a_timeout_covers_the_writing_of_an_input_that_is_read(tier: Tier) {
    let stage = Stage::new(tier);
    let printed = times_out(
        &stage,
        "cat >/dev/null; echo read; sleep 300",
        Duration::from_secs(3),
    );
    assert_eq!(printed, "read\n");
    stage.end();
}

fn o20_a_timeout_covers_the_writing_of_an_input_that_nobody_reads(tier: Tier) {
    let stage = Stage::new(tier);
    times_out(&stage, "sleep 300", Duration::from_secs(1));
    stage.end();
}

fn without_an_input_there_is_the_end_of_one(tier: Tier) {
    let stage = Stage::new(tier);
    let result = stage.run("cat; read -r line; echo $?");
    assert_exit(&result, 0);
    assert_eq!(stdout(&result), "1\n");
    stage.end();
}
