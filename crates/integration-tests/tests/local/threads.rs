//! Any thread, any executor or none: what point 3 of the local world promises to its callers.

use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use dsh_subprocess::{Collect, Output, SubprocessRuntime};
use tokio_util::sync::CancellationToken;

use crate::fixture::{Case, Host, Tier, announced, eventually, finished, numbered, on_each_tier, within};

on_each_tier! {
    spawn_works_from_many_threads_without_an_executor,
    a_child_outlives_the_thread_that_spawned_it,
    a_handle_outlives_its_executor,
    a_blocked_executor_stops_neither_draining_nor_reaping,
    two_runtimes_in_one_process_are_independent,
    the_last_reference_can_be_dropped_in_async_code,
    runtimes_leave_nothing_behind,
    item_69_any_number_of_waits_share_the_end,
    dropping_a_scoped_handle_terminates,
}

/// Sixteen plain threads spawn at once; no executor exists.
fn spawn_works_from_many_threads_without_an_executor(tier: Tier) {
    let case = Case::new(tier);
    thread::scope(|scope| {
        for code in 0..16_u32 {
            let case = &case;
            scope.spawn(move || {
                for _ in 0..10 {
                    let (outcome, _) = case.run(case.probe(["exit", &code.to_string()]));
                    assert_eq!(outcome.code(), Some(code));
                }
            });
        }
    });
    case.assert_gone();
}

/// A child does not end with the thread that spawned it.
fn a_child_outlives_the_thread_that_spawned_it(tier: Tier) {
    let case = Case::new(tier);
    let process = thread::scope(|scope| {
        scope
            .spawn(|| case.spawn(case.bash("read -r line; echo \"$line\"; exit 4")))
            .join()
            .expect("it spawns")
    });
    // Standard input is the null device, so the script goes on by itself, on a thread that is gone.
    assert_eq!(finished(&process).code(), Some(4));
}

/// A handle made inside an executor works when that executor is gone.
fn a_handle_outlives_its_executor(tier: Tier) {
    let case = Case::new(tier);
    let executor = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("it starts");
    let process = executor.block_on(async {
        let process = case
            .runtime
            .spawn(case.probe(["tree", "2"]))
            .expect("the spec is valid");
        process.started().await.expect("it starts");
        process
    });
    let waiting = process.done();
    drop(executor);
    announced(&process, "ready");
    within(process.terminate()).expect("the tree ends");
    assert!(within(waiting).expect("it is known").signal().is_some());
    case.assert_gone();
}

/// An executor that is blocked stops neither draining nor reaping.
fn a_blocked_executor_stops_neither_draining_nor_reaping(tier: Tier) {
    let case = Case::new(tier);
    let executor = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("it starts");
    // More than any pipe holds: it ends only if somebody reads.
    let mut spec = case.probe(["flood", "4000000"]);
    spec.stdout = Output::Collect(Collect {
        max_bytes: 4_000_000,
        head_bytes: 0,
        spill: None,
    });
    let process = executor.block_on(async { case.runtime.spawn(spec).expect("the spec is valid") });
    let output = process.collected_stdout().expect("it is collected").clone();
    let pid = process.pid().expect("it is known");
    let (send, unblock) = channel::<()>();
    let done = process.done();
    thread::scope(|scope| {
        let blocked = scope.spawn(move || {
            executor.block_on(async move {
                // Blocks the only thread of this executor, with the future of the outcome on it.
                unblock.recv().expect("the test goes on");
                done.await
            })
        });
        while !output.is_sealed() {
            within(output.changed(output.total()));
        }
        assert!(output.read_from(0).bytes == numbered(4_000_000));
        eventually("the child is reaped", || crate::fixture::row(pid).is_none());
        send.send(()).expect("the executor waits");
        assert!(
            blocked
                .join()
                .expect("it resolves")
                .expect("the outcome is known")
                .success()
        );
    });
}

/// Two runtimes in one process know nothing of each other's trees.
fn two_runtimes_in_one_process_are_independent(tier: Tier) {
    let (one, other) = (Case::new(tier), Case::new(Tier::ProcessGroup));
    let mine = one.spawn(one.probe(["tree", "2"]));
    let theirs = other.spawn(other.probe(["tree", "2"]));
    let members = announced(&theirs, "ready");
    announced(&mine, "ready");
    within(one.runtime.dispose()).expect("its trees end");
    one.assert_gone();
    assert!(members.iter().all(|&member| crate::fixture::alive(member)));
    let (outcome, _) = other.run(other.probe(["exit", "0"]));
    assert!(outcome.success());
    within(theirs.terminate()).expect("the tree ends");
    other.assert_gone();
}

/// Dropping the last reference to a runtime neither blocks nor panics inside an executor, and its trees end: after their grace
/// where a warden would see to it should the host end meanwhile, at once where there is none.
fn the_last_reference_can_be_dropped_in_async_code(tier: Tier) {
    let case = Case::new(tier);
    let executor = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("it starts");
    executor.block_on(async {
        let runtime = tier.builder().build().expect("the tier works here");
        // It would outlast any wait for its end.
        let mut spec = case.probe(["ignore-term"]);
        if tier.owns_all() {
            spec.grace = Duration::from_millis(100);
        }
        let process = runtime.spawn(spec).expect("the spec is valid");
        process.started().await.expect("it starts");
        drop(process);
        drop(runtime);
    });
    eventually("the tree ends", || case.living().is_empty());
}

/// Runtimes come and go in one process: neither a descriptor nor a thread of them stays, whether their streams were
/// spilled or not, nor a spilled file.
fn runtimes_leave_nothing_behind(tier: Tier) {
    for spill in [None, Some("--spill"), Some("--late-spill")] {
        let parent = tempfile::tempdir().expect("a temporary directory");
        let report = Host::new(tier)
            .peculiar(format!("--spill-parent={}", parent.path().display()))
            .report(["runtimes", "30"].into_iter().chain(spill));
        assert_eq!(
            report.get("threads"),
            "0",
            "threads more than before with {spill:?}"
        );
        assert_eq!(
            report.get("descriptors"),
            "0",
            "descriptors more than before with {spill:?}"
        );
        let left: Vec<_> = std::fs::read_dir(parent.path()).expect("it is ours").collect();
        assert!(left.is_empty(), "with {spill:?}: {left:?}");
    }
}

/// Any number of waits end with the tree, also on threads of their own, and a cancelled wait ends by itself.
fn item_69_any_number_of_waits_share_the_end(tier: Tier) {
    let case = Case::new(tier);
    let process = case.spawn(case.probe(["sleep"]));
    announced(&process, "ready");
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    assert!(!within(process.wait_for_exit(&cancelled)).expect("it is only cancelled"));
    thread::scope(|scope| {
        let waits: Vec<_> = (0..16)
            .map(|_| scope.spawn(|| within(process.wait_for_exit(&CancellationToken::new()))))
            .collect();
        drop(process.terminate());
        for wait in waits {
            assert!(wait.join().expect("it resolves").expect("the tree ends"));
        }
    });
    // What is known to be gone outweighs a token cancelled long ago.
    assert!(within(process.wait_for_exit(&cancelled)).expect("it is gone"));
}

/// Dropping a handle ends nothing; dropping a scoped one does.
fn dropping_a_scoped_handle_terminates(tier: Tier) {
    let case = Case::new(tier);
    let process = case.spawn(case.probe(["sleep"]));
    let [kept] = announced(&process, "ready")[..] else {
        panic!("one pid")
    };
    drop(process);
    let scoped = case.spawn(case.probe(["sleep"])).scoped();
    let [ended] = announced(&scoped, "ready")[..] else {
        panic!("one pid")
    };
    drop(scoped);
    eventually("the scoped tree ends", || !crate::fixture::alive(ended));
    assert!(crate::fixture::alive(kept));
    within(case.runtime.dispose()).expect("all trees end");
    assert!(!crate::fixture::alive(kept));
}
