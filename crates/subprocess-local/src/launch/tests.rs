//! The end of a tree between the call and the clone, which no caller can time.

use std::sync::Arc;
use std::time::Duration;

use dsh_subprocess::{EnvOverlay, ErrorKind, MayHaveStarted, Outcome, SubprocessRuntime};
use dsh_subprocess_sys::spawn::StartError;
use tokio_util::sync::CancellationToken;

use crate::tree::Tree;
use crate::{LocalRuntime, OwnershipChoice};

fn runtime() -> LocalRuntime {
    LocalRuntime::builder()
        .ownership(OwnershipChoice::ProcessGroup)
        .handshake(Duration::ZERO)
        .build()
        .expect("it works everywhere")
}

/// A tree that no launcher has come to, and never will.
fn waiting(runtime: &LocalRuntime, cancel: &CancellationToken) -> Arc<Tree> {
    let second = Duration::from_secs(1);
    let tree = runtime
        .machine()
        .new_tree(&EnvOverlay::new(), second, second, cancel)
        .expect("the runtime is not disposed of");
    assert!(tree.await_launch());
    tree
}

/// The launcher comes, and is to find nothing left to do.
#[track_caller]
fn assert_never_runs(runtime: &LocalRuntime, tree: &Arc<Tree>) {
    assert!(tree.is_over());
    let reborn = tree.bear(|| -> Result<_, StartError> { panic!("a tree that was ended is started") });
    assert!(reborn.is_none());
    assert!(!tree.set_off(), "a tree that was ended is started");
    let why = runtime
        .block_on(tree.started.get())
        .expect_err("there is no target");
    assert_eq!(
        (why.kind(), why.started()),
        (ErrorKind::Cancelled, MayHaveStarted::No)
    );
    let terminated = Outcome::Signaled {
        signal: "SIGTERM".into(),
        core_dumped: false,
    };
    for outcome in [tree.outcome.get(), tree.done.get()].map(Box::pin) {
        let outcome = runtime
            .block_on(outcome)
            .expect("it was ended, and had not failed");
        assert_eq!(outcome, terminated);
    }
    assert!(
        runtime.machine().close().is_empty(),
        "the tree is over, and nothing waits for it"
    );
}

#[test]
fn item_176_a_termination_before_the_launch_is_the_end() {
    let runtime = runtime();
    let tree = waiting(&runtime, &CancellationToken::new());
    tree.terminate();
    assert_never_runs(&runtime, &tree);
}

#[test]
fn item_176_a_kill_before_the_launch_is_the_end() {
    let runtime = runtime();
    let tree = waiting(&runtime, &CancellationToken::new());
    tree.kill();
    assert_never_runs(&runtime, &tree);
}

#[test]
fn item_176_a_kill_of_all_before_the_launch_is_the_end() {
    let runtime = runtime();
    let tree = waiting(&runtime, &CancellationToken::new());
    runtime.kill_all();
    assert_never_runs(&runtime, &tree);
}

#[test]
fn item_176_a_cancellation_before_the_launch_is_the_end() {
    let runtime = runtime();
    let cancel = CancellationToken::new();
    let tree = waiting(&runtime, &cancel);
    cancel.cancel();
    assert_never_runs(&runtime, &tree);
}

#[test]
fn item_79_a_disposal_before_the_launch_is_the_end() {
    let runtime = runtime();
    let tree = waiting(&runtime, &CancellationToken::new());
    runtime.block_on(runtime.dispose()).expect("nothing was started");
    assert_never_runs(&runtime, &tree);
}

#[test]
fn item_176_a_tree_that_was_ended_even_earlier_is_not_launched() {
    let runtime = runtime();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let second = Duration::from_secs(1);
    let tree = runtime
        .machine()
        .new_tree(&EnvOverlay::new(), second, second, &cancel)
        .expect("the runtime is not disposed of");
    assert!(!tree.await_launch());
    assert_never_runs(&runtime, &tree);
}

#[test]
fn item_176_a_failure_that_was_recorded_wins_over_a_later_end() {
    let runtime = runtime();
    let tree = waiting(&runtime, &CancellationToken::new());
    let failure = dsh_subprocess::Error::new(ErrorKind::ResourceExhausted, "spawn", "expected by this test");
    tree.failed(&failure);
    tree.terminate();
    tree.kill();
    for error in [
        runtime.block_on(tree.started.get()).expect_err("it failed"),
        runtime.block_on(tree.done.get()).expect_err("it failed"),
    ] {
        assert_eq!(error.kind(), ErrorKind::ResourceExhausted);
    }
}

#[test]
fn a_handshake_above_its_maximum_is_refused() {
    let long = Duration::from_millis(1001);
    let error = LocalRuntime::builder()
        .handshake(long)
        .build()
        .expect_err("it is above 1 s");
    assert_eq!(error.kind(), ErrorKind::InvalidSpec);
    assert!(error.to_string().contains("1000 ms"), "{error}");
}
