//! A waker may run anybody's code, on the thread that wakes it: code that uses the very handle.

use std::sync::Arc;
use std::time::Duration;

use dsh_subprocess::Stdin;

use crate::fixture::{Case, InlineWait, Tier, announced, line_of, on_each_tier, text, within};

on_each_tier! {
    a_waker_that_uses_its_handle_at_drain_expiry_comes_back,
    a_waker_that_uses_its_handle_at_new_output_comes_back,
    a_waker_that_uses_its_handle_at_output_after_the_exit_comes_back,
    a_waker_that_uses_its_handle_at_the_end_of_the_stream_comes_back,
}

/// The drain runs out while a member holds the stream: the runtime seals it, and that wakes.
fn a_waker_that_uses_its_handle_at_drain_expiry_comes_back(tier: Tier) {
    let case = Case::new(tier);
    let mut spec = case.bash(r#""$PROBE" sleep & read -r go; exit 0"#);
    spec.stdin = Stdin::Pipe;
    spec.drain = Duration::from_millis(50);
    let mut process = case.spawn(spec);
    let input = process.stdin();
    announced(&process, "ready");
    let process = Arc::new(process);
    let output = process.collected_stdout().expect("it is collected");
    let wait = InlineWait::new(&process, output);
    // The target ends, and what it left holds the stream until the drain is over.
    drop(input);
    wait.returned();
    assert!(within(process.done()).expect("the outcome is known").success());
    assert!(output.is_sealed());
    within(process.terminate()).expect("the tree ends");
    case.assert_gone();
}

/// New bytes wake, while the tree lives.
fn a_waker_that_uses_its_handle_at_new_output_comes_back(tier: Tier) {
    let case = Case::new(tier);
    let mut spec = case.probe(["cat"]);
    spec.stdin = Stdin::Pipe;
    let mut process = case.spawn(spec);
    let mut input = process.stdin().expect("it is a pipe");
    let process = Arc::new(process);
    let wait = InlineWait::new(&process, process.collected_stdout().expect("it is collected"));
    within(tokio::io::AsyncWriteExt::write_all(&mut input, b"line\n")).expect("the child reads");
    wait.returned();
    // The waker terminated it.
    assert!(
        within(process.done())
            .expect("the outcome is known")
            .signal()
            .is_some()
    );
    assert_eq!(line_of(&process, "line"), "");
    within(process.terminate()).expect("the tree ends");
    case.assert_gone();
}

/// New bytes wake while the drain runs, which the waker cuts: the stream that is to be sealed is the one that wakes.
fn a_waker_that_uses_its_handle_at_output_after_the_exit_comes_back(tier: Tier) {
    let case = Case::new(tier);
    let mut spec = case.probe(["hold-stdout", "pieces", "61", "62"]);
    spec.stdin = Stdin::Pipe;
    let mut process = case.spawn(spec);
    let mut input = process.stdin().expect("it is a pipe");
    within(process.exited()).expect("the outcome is known");
    let process = Arc::new(process);
    let wait = InlineWait::new(&process, process.collected_stdout().expect("it is collected"));
    within(tokio::io::AsyncWriteExt::write_all(&mut input, b".")).expect("the member reads");
    wait.returned();
    assert!(within(process.done()).expect("the outcome is known").success());
    assert_eq!(text(&process), "a");
    within(process.terminate()).expect("the tree ends");
    case.assert_gone();
}

/// The end of the stream wakes, and with it the end of the tree.
fn a_waker_that_uses_its_handle_at_the_end_of_the_stream_comes_back(tier: Tier) {
    let case = Case::new(tier);
    let mut spec = case.bash("read -r go");
    spec.stdin = Stdin::Pipe;
    let mut process = case.spawn(spec);
    let input = process.stdin();
    let process = Arc::new(process);
    let wait = InlineWait::new(&process, process.collected_stdout().expect("it is collected"));
    drop(input);
    wait.returned();
    within(process.done()).expect("the outcome is known");
    within(process.terminate()).expect("the tree ends");
    case.assert_gone();
}
