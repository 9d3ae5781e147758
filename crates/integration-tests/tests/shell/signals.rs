//! A command begins with the signals of a fresh login, whatever its host ignores (O28).

use dsh_shell::ShellRequest;

use crate::fixture::{Tier, on_each_tier};
use crate::stage::{Stage, assert_exit, stderr, stdout};

on_each_tier! {
    o28_a_a_writer_to_a_closed_pipe_dies_of_it,
}

/// This process ignores `SIGPIPE`, as every Rust program does.
fn o28_a_a_writer_to_a_closed_pipe_dies_of_it(tier: Tier) {
    let stage = Stage::new(tier);
    let result = stage.run_request(ShellRequest::new("yes | head -1; echo ${PIPESTATUS[0]}"));
    assert_exit(&result, 0);
    assert_eq!(stdout(&result), "y\n141\n");
    assert_eq!(stderr(&result), "");
    stage.end();
}
