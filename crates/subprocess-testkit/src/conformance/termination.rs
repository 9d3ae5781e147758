//! Contract G: ending a tree, and knowing that it is gone.

use std::time::Duration;

use dsh_subprocess::{Outcome, Output, SpawnSpec, Stdin};
use tokio_util::sync::CancellationToken;

use super::World;
use super::child::{Abandoned, Child, abandoned, end, finish, gone, line, raw_line, raw_rest, ready, start};
use super::watchdog::{BOUND, within};

/// A grace that is over soon, for children that are known to outlive `SIGTERM`.
const SHORT: Duration = Duration::from_millis(100);

fn killed() -> Outcome {
    Outcome::Signaled {
        signal: "SIGKILL".into(),
        core_dumped: false,
    }
}

fn impatient(mut spec: SpawnSpec) -> SpawnSpec {
    spec.grace = SHORT;
    spec
}

async fn started(world: &World, spec: SpawnSpec) -> Child {
    let process = start(world, spec);
    ready(&process).await;
    process
}

/// A termination lets the target clean up, and waits until the tree is gone.
pub async fn item_61_term_comes_first_and_is_given_time(world: &World) {
    let process = started(world, world.spec(&["trap-term", "cleaned", "50"])).await;
    end(&process).await;
    let finished = finish(&process).await;
    assert_eq!(finished.outcome, Outcome::Exited { code: 0 });
    assert!(finished.stdout.ends_with(b"cleaned\n"), "{:?}", finished.stdout);
}

/// What outlives the grace is killed.
pub async fn item_61_kill_comes_after_the_grace(world: &World) {
    let process = started(world, impatient(world.spec(&["ignore-term"]))).await;
    end(&process).await;
    assert_eq!(
        within("done", process.done()).await.expect("an outcome"),
        killed()
    );
}

/// Every member is ended, however deep in the tree.
pub async fn item_61_every_member_is_ended(world: &World) {
    let process = started(world, world.spec(&["tree", "3", "--depth", "3"])).await;
    let members = within("members", process.members()).await.expect("an answer");
    let target = usize::from(world.guarantees.process_ids);
    assert_eq!(members.len(), 9 + target, "{members:?}");
    assert!(members.iter().all(|member| !member.uncertain), "{members:?}");
    end(&process).await;
    let members = within("members", process.members()).await.expect("an answer");
    assert!(members.is_empty(), "{members:?}");
}

/// The token of the spec does what a termination does.
pub async fn item_61_the_token_terminates(world: &World) {
    let spec = world.spec(&["tree", "2"]);
    let cancel = spec.cancel.clone();
    let process = started(world, spec).await;
    cancel.cancel();
    gone(&process).await;
    let signal = within("done", process.done())
        .await
        .expect("an outcome")
        .signal()
        .cloned();
    assert_eq!(signal.expect("a signal").as_str(), "SIGTERM");
}

/// A second termination joins the first: it neither shortens nor restarts the grace.
pub async fn item_62_a_second_termination_joins_the_first(world: &World) {
    let process = started(world, world.spec(&["trap-term", "once", "50"])).await;
    let (first, second) = (process.terminate(), process.terminate());
    within("the first termination", first)
        .await
        .expect("the tree can be ended");
    within("the second termination", second)
        .await
        .expect("the tree can be ended");
    let finished = finish(&process).await;
    assert_eq!(finished.outcome, Outcome::Exited { code: 0 });
    assert_eq!(
        String::from_utf8_lossy(&finished.stdout).lines().count(),
        2,
        "{:?}",
        finished.stdout
    );

    // Where there is a shell, it counts the signals: one, however often the end is asked for.
    let counting = "trap 'echo term; seen=1' TERM; echo ready; while [ -z \"$seen\" ]; do sleep 1; done; read x; echo end";
    let Some(mut spec) = world.shell_spec(counting) else {
        return;
    };
    spec.stdin = Stdin::Pipe;
    let mut process = started(world, spec).await;
    let stdin = process.stdin().expect("piped");
    let first = process.terminate();
    line(process.collected_stdout().expect("collected"), 1).await;
    let second = process.terminate();
    drop(stdin);
    within("the first termination", first)
        .await
        .expect("the tree can be ended");
    within("the second termination", second)
        .await
        .expect("the tree can be ended");
    assert_eq!(finish(&process).await.stdout, "ready\nterm\nend\n");
}

/// A termination begins at once: its future need not be awaited, or even kept.
pub async fn a_termination_begins_without_being_awaited(world: &World) {
    let process = started(world, world.spec(&["sleep"])).await;
    drop(process.terminate());
    gone(&process).await;
}

/// A member that ignores `SIGTERM` is killed although the leader is long gone.
pub async fn o4_a_stubborn_member_is_killed_after_its_leader(world: &World) {
    let Abandoned {
        child, mut stdout, ..
    } = abandoned(world, &["ignore-term"]).await;
    end(&child).await;
    // Its end of the stream is closed: it is gone.
    assert_eq!(raw_rest(&mut stdout).await, b"");
    let ended = within("ended", child.ended()).await.expect("an answer");
    assert_eq!(ended.len(), 1, "{ended:?}");
}

/// A termination of a tree that is gone does nothing.
pub async fn item_65_a_tree_that_is_gone_is_left_alone(world: &World) {
    let process = start(world, world.spec(&["exit", "6"]));
    gone(&process).await;
    end(&process).await;
    assert_eq!(
        within("done", process.done()).await.expect("an outcome").code(),
        Some(6)
    );
    assert!(
        within("ended", process.ended())
            .await
            .expect("an answer")
            .is_empty()
    );
}

/// The wait is for the tree and not for its leader, and ends early when its token is cancelled.
pub async fn item_69_the_wait_is_for_the_whole_tree(world: &World) {
    let Abandoned { child, .. } = abandoned(world, &["sleep"]).await;
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    let gone = within("a cancelled wait", child.wait_for_exit(&cancelled)).await;
    assert!(
        !gone.expect("the tree is observed"),
        "the tree is gone although a member runs"
    );
    end(&child).await;
    // Known to be gone by now: that comes before the token.
    let gone = within("a cancelled wait", child.wait_for_exit(&cancelled)).await;
    assert!(gone.expect("the tree is observed"));
}

/// A wait that is cancelled while it waits gives `false`, and harms nobody.
pub async fn item_69_a_wait_can_be_cancelled(world: &World) {
    let process = started(world, world.spec(&["sleep"])).await;
    let cancel = CancellationToken::new();
    let (waiting, cancelling) = (cancel.clone(), cancel);
    let cancelled = std::thread::spawn(move || cancelling.cancel());
    let gone = within("a wait that is cancelled", process.wait_for_exit(&waiting)).await;
    assert!(!gone.expect("the tree is observed"));
    cancelled.join().expect("the token was cancelled");
    assert!(within("started", process.started()).await.is_ok());
    end(&process).await;
}

/// Any number of waits see the same end.
pub async fn item_70_any_number_of_waits_see_the_end(world: &World) {
    let process = started(world, world.spec(&["sleep"])).await;
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| pollster::block_on(gone(&process)));
        }
        drop(process.terminate());
    });
}

/// A member in a process group of its own, as a job of an interactive shell is, belongs to the tree.
pub async fn item_73_a_job_in_a_group_of_its_own_is_ended(world: &World) {
    let mut spec = world.spec(&["new-group"]);
    spec.stdout = Output::Pipe;
    let mut process = start(world, spec);
    let mut stdout = process.stdout().expect("piped");
    raw_line(&mut stdout).await;
    end(&process).await;
    // Its end of the stream is closed: it is gone.
    assert_eq!(raw_rest(&mut stdout).await, b"");
}

/// A member that left for a session of its own is ended where that is promised; where it is not, the weakness is told and
/// the one that left is named.
pub async fn item_73_a_daemon_is_ended_or_named(world: &World) {
    let mut spec = world.spec(&["setsid-escape"]);
    spec.stdout = Output::Pipe;
    let runtime = world.runtime();
    let mut process = runtime.spawn(spec).expect("a valid spec");
    let mut stdout = process.stdout().expect("piped");
    let line = raw_line(&mut stdout).await;
    end(&process).await;
    let named = within("survivors", process.survivors()).await.expect("an answer");
    if world.guarantees.ends_session_leavers {
        // Its end of the stream is closed: it is gone.
        assert_eq!(raw_rest(&mut stdout).await, b"");
        return assert!(named.is_empty(), "{named:?}");
    }
    // It is nobody's now but the check's: it is ended before anything else can fail.
    let daemon: u32 = line
        .trim_start_matches("ready ")
        .parse()
        .expect("the daemon tells its id");
    let kill = world
        .shell_spec(&format!("kill -s KILL {daemon}"))
        .expect("a world with daemons has a shell");
    let killed = finish(&runtime.spawn(kill).expect("a valid spec")).await;
    assert!(killed.outcome.success(), "{}", killed.outcome);
    assert_eq!(raw_rest(&mut stdout).await, b"");
    assert!(
        named.iter().any(|member| member.pid == Some(daemon)),
        "{daemon} escaped, and only these are named: {named:?}"
    );
    let ownership = within("ownership", process.ownership()).await.expect("an answer");
    assert!(
        !ownership.weaknesses.is_empty(),
        "a daemon escaped {}",
        ownership.mechanism
    );
}

/// A stopped member acts on `SIGTERM`: it is continued, and needs no `SIGKILL`.
pub async fn a_stopped_member_is_continued_to_end(world: &World) {
    let mut spec = world.spec(&["stop-member"]);
    // Longer than any wait: only a member that needs no `SIGKILL` ends in time.
    spec.grace = BOUND * 2;
    let process = start(world, spec);
    let line = ready(&process).await;
    assert!(line.starts_with("stopped"), "{line}");
    end(&process).await;
    let outcome = within("done", process.done()).await.expect("an outcome");
    assert_eq!(outcome.signal().expect("a signal").as_str(), "SIGTERM");
}

/// A token that is cancelled after the leader's exit still ends what is left.
pub async fn item_175_a_late_cancellation_ends_survivors(world: &World) {
    let Abandoned {
        child,
        cancel,
        mut stdout,
    } = abandoned(world, &["sleep"]).await;
    cancel.cancel();
    gone(&child).await;
    assert_eq!(raw_rest(&mut stdout).await, b"");
    let ended = within("ended", child.ended()).await.expect("an answer");
    assert_eq!(ended.len(), 1, "{ended:?}");
}

/// Dropping a scoped handle ends its tree.
pub async fn a_scoped_handle_ends_its_tree(world: &World) {
    let mut spec = world.spec(&["sleep"]);
    spec.stdout = Output::Pipe;
    let runtime = world.runtime();
    let mut process = runtime.spawn(spec).expect("a valid spec");
    let mut stdout = process.stdout().expect("piped");
    raw_line(&mut stdout).await;
    let (done, scoped) = (process.done(), process.scoped());
    drop(scoped);
    assert_eq!(raw_rest(&mut stdout).await, b"");
    let outcome = within("done", done).await.expect("an outcome");
    assert_eq!(outcome.signal().expect("a signal").as_str(), "SIGTERM");
}

/// Dropping a plain handle ends nothing: the tree runs on, owned by the runtime.
pub async fn a_dropped_handle_ends_nothing(world: &World) {
    let runtime = world.runtime();
    let process = runtime
        .spawn(world.spec(&["trap-term", "still here", "0"]))
        .expect("a valid spec");
    ready(&process).await;
    let (reader, done) = (
        process.collected_stdout().expect("collected").clone(),
        process.done(),
    );
    drop(process);
    within("disposal", runtime.dispose())
        .await
        .expect("the tree can be ended");
    assert_eq!(within("done", done).await.expect("an outcome").code(), Some(0));
    assert!(reader.text().ends_with("still here\n"), "{}", reader.text());
}
