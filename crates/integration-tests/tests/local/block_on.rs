//! A thread that blocks on a future by the runtime's own means, and so waits for the runtime's processes itself.

use std::future::{pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::task::{Poll, Waker};
use std::thread;

use dsh_subprocess::{Collect, Output, Stdin, SubprocessRuntime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_util::sync::CancellationToken;

use crate::fixture::{Case, Tier, announced, eventually, numbered, on_each_tier, row, text, within};

on_each_tier! {
    issue_2_a_blocked_thread_sees_a_tree_from_start_to_end,
    issue_2_many_threads_block_at_once,
    issue_2_a_future_may_block_in_its_turn,
    issue_2_one_thread_blocks_on_many_trees,
    issue_2_deadlines_pass_while_a_thread_blocks,
    issue_2_a_future_that_blocks_its_thread_stops_neither_draining_nor_reaping,
    issue_2_a_conversation_by_raw_pipes_wakes_the_blocked_thread,
    issue_2_a_blocked_thread_keeps_no_runtime_from_closing,
    issue_2_a_disposed_runtime_still_blocks,
    issue_2_a_panic_of_the_future_leaves_the_runtime_working,
    issue_2_the_future_of_another_runtime_is_waited_for,
}

/// Output, outcome and the end of the tree, with nobody else to wait for them.
fn issue_2_a_blocked_thread_sees_a_tree_from_start_to_end(tier: Tier) {
    let case = Case::new(tier);
    let process = case.spawn(case.bash(r#""$PROBE" sleep & echo built; exit 3"#));
    let never = CancellationToken::new();
    case.runtime.block_on(async {
        let output = process.collected_stdout().expect("it is collected");
        while !output.text().contains("built") {
            output.changed(output.total()).await;
        }
        process.terminate().await.expect("the tree ends");
        assert!(process.wait_for_exit(&never).await.expect("it has ended"));
        assert!(process.done().await.is_ok());
    });
    case.assert_gone();
    case.runtime
        .block_on(case.runtime.dispose())
        .expect("nothing is left");
}

/// One of them waits for the runtime at a time; each gets its own outcome.
fn issue_2_many_threads_block_at_once(tier: Tier) {
    let case = Case::new(tier);
    thread::scope(|scope| {
        for code in 0..8_u32 {
            let case = &case;
            scope.spawn(move || {
                for _ in 0..20 {
                    let process = case.spawn(case.probe(["exit", &code.to_string()]));
                    let outcome = case.runtime.block_on(process.done()).expect("it is known");
                    assert_eq!(outcome.code(), Some(code));
                    case.runtime.block_on(process.terminate()).expect("the tree ends");
                }
            });
        }
    });
    case.assert_gone();
}

/// The inner call waits for the runtime as the outer one did.
fn issue_2_a_future_may_block_in_its_turn(tier: Tier) {
    let case = Case::new(tier);
    let outer = case.spawn(case.probe(["exit", "1"]));
    let code = case.runtime.block_on(async {
        let inner = case.spawn(case.probe(["exit", "2"]));
        let inner = case.runtime.block_on(inner.done()).expect("it is known");
        (outer.done().await.expect("it is known").code(), inner.code())
    });
    assert_eq!(code, (Some(1), Some(2)));
}

/// The thread is woken for each of them, in whatever order they end.
fn issue_2_one_thread_blocks_on_many_trees(tier: Tier) {
    let case = Case::new(tier);
    let processes: Vec<_> = (0..32_u32)
        .map(|code| case.spawn(case.probe(["exit", &code.to_string()])))
        .collect();
    let mut ends: Vec<_> = processes.iter().map(|process| Some(process.done())).collect();
    let mut codes = vec![None; ends.len()];
    case.runtime.block_on(poll_fn(|context| {
        for (end, code) in ends.iter_mut().zip(&mut codes) {
            if let Some(waiting) = end
                && let Poll::Ready(outcome) = waiting.as_mut().poll(context)
            {
                *code = outcome.expect("it is known").code();
                *end = None;
            }
        }
        if codes.iter().all(Option::is_some) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }));
    assert!(codes.iter().copied().eq((0..32).map(Some)));
}

/// The grace runs out: the blocked thread itself sends what follows.
fn issue_2_deadlines_pass_while_a_thread_blocks(tier: Tier) {
    let case = Case::new(tier);
    let mut spec = case.probe(["ignore-term"]);
    spec.grace = std::time::Duration::from_millis(20);
    let process = case.spawn(spec);
    announced(&process, "ready");
    case.runtime.block_on(process.terminate()).expect("the tree ends");
    let outcome = case.runtime.block_on(process.done()).expect("it is known");
    assert_eq!(
        outcome.signal().map(ToString::to_string).as_deref(),
        Some("SIGKILL")
    );
}

/// While the future's own code has the thread, the runtime has its own.
fn issue_2_a_future_that_blocks_its_thread_stops_neither_draining_nor_reaping(tier: Tier) {
    let case = Case::new(tier);
    // More than any pipe holds: it ends only if somebody reads.
    let mut spec = case.probe(["flood", "4000000"]);
    spec.stdout = Output::Collect(Collect {
        max_bytes: 4_000_000,
        head_bytes: 0,
        spill: None,
    });
    let (send, blocked) = channel::<()>();
    thread::scope(|scope| {
        let (case, started) = (&case, CancellationToken::new());
        let start = started.clone();
        let waiting = scope.spawn(move || {
            case.runtime.block_on(async move {
                // The thread has waited for the runtime before it blocks.
                start.cancelled().await;
                blocked.recv().expect("the test goes on");
            });
        });
        started.cancel();
        let process = case.spawn(spec);
        let pid = process.pid().expect("it is known");
        let output = process.collected_stdout().expect("it is collected");
        while !output.is_sealed() {
            within(output.changed(output.total()));
        }
        assert!(output.read_from(0).bytes == numbered(4_000_000));
        eventually("the child is reaped", || row(pid).is_none());
        send.send(()).expect("the future waits");
        waiting.join().expect("it does not panic");
    });
}

/// Each answer wakes the thread that asked.
fn issue_2_a_conversation_by_raw_pipes_wakes_the_blocked_thread(tier: Tier) {
    let case = Case::new(tier);
    let mut spec = case.probe(["cat"]);
    spec.stdin = Stdin::Pipe;
    spec.stdout = Output::Pipe;
    let mut process = case.spawn(spec);
    let mut input = process.stdin().expect("it is a pipe");
    let mut output = process.stdout().expect("it is a pipe");
    case.runtime.block_on(async {
        for turn in 0..50_u8 {
            input.write_all(&[turn]).await.expect("the child reads");
            let mut answer = [0];
            output.read_exact(&mut answer).await.expect("the child answers");
            assert_eq!(answer, [turn]);
        }
        input.shutdown().await.expect("it closes");
        assert!(process.done().await.expect("it is known").success());
    });
}

/// The thread is still blocked, on something else, when the runtime ends.
fn issue_2_a_blocked_thread_keeps_no_runtime_from_closing(tier: Tier) {
    let case = Case::new(tier);
    let (go, gone) = (CancellationToken::new(), CancellationToken::new());
    thread::scope(|scope| {
        let (waits, says) = (go.clone(), gone.clone());
        let runtime = case.runtime.clone();
        let blocked = scope.spawn(move || {
            runtime.block_on(async {
                says.cancel();
                waits.cancelled().await;
            });
        });
        within(gone.cancelled());
        let (outcome, _) = case.run(case.probe(["exit", "0"]));
        assert!(outcome.success());
        within(case.runtime.dispose()).expect("its end is not held up");
        go.cancel();
        blocked.join().expect("it does not panic");
    });
}

/// There is nothing left to wait for, and the future resolves all the same.
fn issue_2_a_disposed_runtime_still_blocks(tier: Tier) {
    let case = Case::new(tier);
    case.runtime
        .block_on(case.runtime.dispose())
        .expect("nothing is left");
    let token = CancellationToken::new();
    let other = token.clone();
    let helper = thread::spawn(move || other.cancel());
    case.runtime.block_on(token.cancelled());
    helper.join().expect("it does not panic");
}

/// The panic is the caller's; the trees go on.
fn issue_2_a_panic_of_the_future_leaves_the_runtime_working(tier: Tier) {
    let case = Case::new(tier);
    let process = case.spawn(case.probe(["exit", "5"]));
    let done = process.done();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        case.runtime.block_on(async {
            let code = done.await.expect("it is known").code();
            assert_eq!(code, Some(6), "this is the panic");
        });
    }));
    assert!(panicked.is_err());
    let (outcome, _) = case.run(case.probe(["exit", "7"]));
    assert_eq!(outcome.code(), Some(7));
}

/// Events of the one do not reach the thread through the other, and its outcome does.
fn issue_2_the_future_of_another_runtime_is_waited_for(tier: Tier) {
    let (case, other) = (Case::new(tier), Case::new(tier));
    let process = other.spawn(other.bash("echo other; exit 9"));
    let outcome = case.runtime.block_on(process.done()).expect("it is known");
    assert_eq!((outcome.code(), text(&process).as_str()), (Some(9), "other\n"));
}

/// What has nothing to do with processes: ready at once, or woken from another thread, or by the future itself.
#[test]
fn issue_2_any_future_can_be_blocked_on() {
    let case = Case::new(Tier::ProcessGroup);
    assert_eq!(case.runtime.block_on(async { 42 }), 42);
    let mut polls = 0;
    case.runtime.block_on(poll_fn(|context| {
        polls += 1;
        if polls == 100 {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }));
    for _ in 0..1000 {
        let token = CancellationToken::new();
        let other = token.clone();
        let helper = thread::spawn(move || other.cancel());
        case.runtime.block_on(token.cancelled());
        helper.join().expect("it does not panic");
    }
}

/// A waker may be kept, and woken when nobody waits any more.
#[test]
fn issue_2_a_waker_outlives_the_thread_that_blocked() {
    let case = Case::new(Tier::ProcessGroup);
    let mut kept: Option<Waker> = None;
    case.runtime.block_on(poll_fn(|context| {
        kept = Some(context.waker().clone());
        Poll::Ready(())
    }));
    within(case.runtime.dispose()).expect("nothing is left");
    drop(case);
    let waker = kept.expect("it was polled");
    waker.wake_by_ref();
    thread::spawn(move || waker.wake())
        .join()
        .expect("it does not panic");
}

/// The copy of a runtime in a forked child touches nothing of its parent's, and the call returns.
#[test]
fn issue_2_a_forked_child_blocks_on_its_own() {
    let case = Case::new(Tier::ProcessGroup);
    // Somebody drives while the child is made.
    let stop = CancellationToken::new();
    thread::scope(|scope| {
        let (runtime, stopped) = (case.runtime.clone(), stop.clone());
        let driver = scope.spawn(move || {
            runtime.block_on(stopped.run_until_cancelled(pending::<()>()));
        });
        match fork::fork().expect("the process can fork") {
            fork::Fork::Child => {
                let token = CancellationToken::new();
                let other = token.clone();
                let helper = thread::spawn(move || other.cancel());
                case.runtime.block_on(token.cancelled());
                std::process::exit(i32::from(helper.join().is_err()));
            }
            fork::Fork::Parent(child) => {
                assert_eq!(fork::waitpid(child).expect("it is a child of this process"), 0);
            }
        }
        let (outcome, _) = case.run(case.probe(["exit", "4"]));
        assert_eq!(outcome.code(), Some(4));
        stop.cancel();
        driver.join().expect("it does not panic");
    });
}
