//! Contract H: the end of a runtime.

use std::time::Duration;

use dsh_subprocess::{ErrorKind, Mechanism, Output};

use super::World;
use super::child::{done_error, gone, raw_line, raw_rest, ready};
use super::watchdog::within;

/// After a disposal nothing is started any more.
pub async fn item_29_a_disposed_runtime_starts_nothing(world: &World) {
    let runtime = world.runtime();
    within("disposal", runtime.dispose())
        .await
        .expect("nothing is left to end");
    let error = runtime
        .spawn(world.spec(&["exit", "0"]))
        .expect_err("the runtime was disposed of");
    assert_eq!(error.kind(), ErrorKind::Disposed);
}

/// A disposal refuses spawns from the moment it is called, awaited or not.
pub async fn item_29_a_disposal_begins_when_it_is_called(world: &World) {
    let runtime = world.runtime();
    let process = runtime.spawn(world.spec(&["sleep"])).expect("a valid spec");
    ready(&process).await;
    drop(runtime.dispose());
    let error = runtime
        .spawn(world.spec(&["exit", "0"]))
        .expect_err("the runtime was disposed of");
    assert_eq!(error.kind(), ErrorKind::Disposed);
    gone(&process).await;
}

/// A disposal ends every tree, stubborn ones too, and waits for each.
pub async fn item_79_a_disposal_ends_every_tree(world: &World) {
    let runtime = world.runtime();
    let (mut trees, mut streams) = (Vec::new(), Vec::new());
    for call in [
        &["sleep"][..],
        &["ignore-term"],
        &["tree", "2"],
        &["hold-stdout", "ignore-term"],
    ] {
        let mut spec = world.spec(call);
        spec.stdout = Output::Pipe;
        spec.grace = Duration::from_millis(100);
        spec.drain = Duration::ZERO;
        let mut process = runtime.spawn(spec).expect("a valid spec");
        let mut stdout = process.stdout().expect("piped");
        raw_line(&mut stdout).await;
        trees.push(process);
        streams.push(stdout);
    }
    within("disposal", runtime.dispose())
        .await
        .expect("every tree can be ended");
    for process in &trees {
        // Known already: a token that is cancelled does not hide it.
        let cancelled = tokio_util::sync::CancellationToken::new();
        cancelled.cancel();
        assert!(
            process
                .wait_for_exit(&cancelled)
                .await
                .expect("the tree is observed"),
            "{process:?} was left"
        );
    }
    for mut stream in streams {
        assert_eq!(raw_rest(&mut stream).await, b"");
    }
}

/// A failed spawn does not hinder a disposal.
pub async fn item_79_a_failed_spawn_does_not_hinder_a_disposal(world: &World) {
    let runtime = world.runtime();
    let mut spec = world.spec(&[]);
    spec.argv[0] = world.missing.as_world_string().clone();
    let process = runtime
        .spawn(spec)
        .expect("only the world knows that the program is missing");
    assert_eq!(done_error(&process).await.kind(), ErrorKind::ProgramNotFound);
    within("disposal", runtime.dispose())
        .await
        .expect("nothing is left to end");
}

/// A second disposal waits for the same end.
pub async fn item_79_a_disposal_can_be_awaited_twice(world: &World) {
    let runtime = world.runtime();
    let process = runtime.spawn(world.spec(&["sleep"])).expect("a valid spec");
    ready(&process).await;
    let (first, second) = (runtime.dispose(), runtime.dispose());
    within("the second disposal", second)
        .await
        .expect("the tree can be ended");
    within("the first disposal", first)
        .await
        .expect("the tree can be ended");
    within("a third disposal", runtime.dispose())
        .await
        .expect("nothing is left to end");
    gone(&process).await;
}

/// Handles outlive their runtime and tell how their tree ended.
pub async fn handles_outlive_their_runtime(world: &World) {
    let runtime = world.runtime();
    let process = runtime.spawn(world.spec(&["sleep"])).expect("a valid spec");
    ready(&process).await;
    let other = runtime.spawn(world.spec(&["exit", "7"])).expect("a valid spec");
    assert_eq!(
        within("done", other.done()).await.expect("an outcome").code(),
        Some(7)
    );
    drop(runtime);
    // Nobody holds the runtime: what it owned is ended, and is told.
    gone(&process).await;
    within("done", process.done()).await.expect("an outcome");
    other.cut_drain();
    assert_eq!(
        within("done", other.done()).await.expect("an outcome").code(),
        Some(7)
    );
}

/// Two runtimes live beside each other: the disposal of one leaves the other's trees alone.
pub async fn two_runtimes_do_not_touch_each_other(world: &World) {
    let (first, second) = (world.runtime(), world.runtime());
    let spared = second
        .spawn(world.spec(&["trap-term", "spared", "0"]))
        .expect("a valid spec");
    let ended = first.spawn(world.spec(&["sleep"])).expect("a valid spec");
    ready(&spared).await;
    ready(&ended).await;
    within("disposal", first.dispose())
        .await
        .expect("the tree can be ended");
    gone(&ended).await;
    let output = spared.collected_stdout().expect("collected");
    assert!(
        !output.text().contains("spared"),
        "the other runtime's tree was signalled"
    );
    within("disposal", second.dispose())
        .await
        .expect("the tree can be ended");
    assert!(output.text().ends_with("spared\n"));
}

/// What a world says it can do is what its trees say of themselves.
pub async fn capabilities_are_true(world: &World) {
    let runtime = world.runtime();
    let capabilities = runtime.capabilities();
    assert_eq!(capabilities.spill, world.guarantees.spill);
    assert_eq!(capabilities.terminal, world.guarantees.terminal);
    assert_eq!(capabilities.immediate_pid, world.guarantees.immediate_pid);
    let process = runtime.spawn(world.spec(&["sleep"])).expect("a valid spec");
    ready(&process).await;
    let ownership = within("ownership", process.ownership()).await.expect("an answer");
    assert_eq!(ownership.mechanism, capabilities.mechanism);
    if ownership.mechanism == Mechanism::ProcessGroup {
        assert!(!ownership.weaknesses.is_empty(), "a process group can be left");
    }
    within("disposal", runtime.dispose())
        .await
        .expect("the tree can be ended");
}
