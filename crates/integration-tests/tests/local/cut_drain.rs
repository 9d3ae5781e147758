//! Drains that are cut short while everything else goes on: from many threads, beside the natural end, and in a forked child.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use dsh_subprocess::{ErrorKind, Output, Process, Stdin, SubprocessRuntime};
use tokio::io::AsyncReadExt;
use tokio_util::sync::CancellationToken;

use crate::fixture::{Case, Tier, announced, finished, numbered, on_each_tier, text, within};

on_each_tier! {
    cuts_beside_the_end_of_the_drain_settle_once,
    cuts_beside_the_end_of_the_streams_lose_nothing,
    cuts_from_the_start_on_lose_nothing_that_the_target_wrote,
    cuts_beside_a_termination_hold_nothing_up,
    a_cut_leaves_a_raw_stream_and_names_its_holder,
    a_cut_after_a_disposal_does_nothing,
    a_cut_in_a_forked_child_moves_nothing_in_the_parent,
}

/// Threads that cut at once.
const CUTTERS: usize = 4;

/// Cuts from several threads, which begin together with `beside` and go on until it has returned.
fn cut_beside(process: &Process, beside: impl FnOnce()) {
    let (start, stop) = (Barrier::new(CUTTERS + 1), CancellationToken::new());
    thread::scope(|scope| {
        for _ in 0..CUTTERS {
            scope.spawn(|| {
                start.wait();
                process.cut_drain();
                while !stop.is_cancelled() {
                    process.cut_drain();
                    thread::yield_now();
                }
            });
        }
        // Also where an assertion fails, so that the threads end.
        let _stop = stop.clone().drop_guard();
        start.wait();
        beside();
    });
}

/// A member holds both streams when the drain of about a millisecond is over, and that is cut at every moment around it.
fn cuts_beside_the_end_of_the_drain_settle_once(tier: Tier) {
    let case = Case::new(tier);
    for round in 0..40 {
        let mut spec = case.probe(["hold-stdout", "sleep"]);
        spec.drain = Duration::from_micros(round * 50);
        let process = case.spawn(spec);
        within(process.exited()).expect("the outcome is known");
        cut_beside(&process, || assert!(finished(&process).success()));
        for output in [process.collected_stdout(), process.collected_stderr()] {
            let output = output.expect("it is collected");
            assert!(output.is_sealed(), "done, and a stream is open");
        }
        within(process.terminate()).expect("the tree ends");
    }
    case.assert_gone();
}

/// A member lets go of the streams at the very moment of the cuts: `done` has one outcome, whichever was first.
fn cuts_beside_the_end_of_the_streams_lose_nothing(tier: Tier) {
    let case = Case::new(tier);
    for _ in 0..40 {
        let mut spec = case.probe(["hold-stdout", "pieces", "61"]);
        spec.stdin = Stdin::Pipe;
        let mut process = case.spawn(spec);
        let mut input = process.stdin().expect("it is a pipe");
        within(process.exited()).expect("the outcome is known");
        // What is in the stream before the cut is read.
        within(tokio::io::AsyncWriteExt::write_all(&mut input, b".")).expect("the member reads");
        let output = process.collected_stdout().expect("it is collected").clone();
        within(output.changed(0));
        cut_beside(&process, || {
            drop(input);
            assert!(finished(&process).success());
        });
        assert!(output.is_sealed(), "done, and the stream is open");
        assert_eq!(text(&process), "a");
        within(process.terminate()).expect("the tree ends");
    }
    case.assert_gone();
}

/// With a drain of zero, what the target wrote is all in the pipe when it has exited: more than that had room for is not.
fn cuts_from_the_start_on_lose_nothing_that_the_target_wrote(tier: Tier) {
    const TOTAL: usize = 300_000;
    let case = Case::new(tier);
    for _ in 0..20 {
        let script = format!(r#"sleep 300 & exec "$PROBE" flood {TOTAL}"#);
        let process = case.runtime.spawn(case.bash(&script)).expect("the spec is valid");
        cut_beside(&process, || assert!(finished(&process).success()));
        let read = process.collected_stdout().expect("it is collected").read_from(0);
        assert!(read.bytes == numbered(TOTAL), "{} bytes", read.bytes.len());
        within(process.terminate()).expect("the tree ends");
    }
    case.assert_gone();
}

/// The tree ends, in every order of its target's exit, its members' and the cut.
fn cuts_beside_a_termination_hold_nothing_up(tier: Tier) {
    let case = Case::new(tier);
    for _ in 0..20 {
        // One member: a second might be about to be born, and not be asked to end.
        let process = case.spawn(case.bash(r#""$PROBE" sleep & wait"#));
        announced(&process, "ready");
        cut_beside(&process, || {
            within(process.terminate()).expect("the tree ends");
            assert!(finished(&process).signal().is_some());
        });
        assert!(process.collected_stdout().expect("it is collected").is_sealed());
    }
    case.assert_gone();
}

/// The holder of a raw stream is named from the moment of the cut on, and the stream goes on.
fn a_cut_leaves_a_raw_stream_and_names_its_holder(tier: Tier) {
    let case = Case::new(tier);
    let mut spec = case.probe(["hold-stdout", "pieces", "61", "62"]);
    spec.stdin = Stdin::Pipe;
    spec.stdout = Output::Pipe;
    let mut process = case.spawn(spec);
    let mut input = process.stdin().expect("it is a pipe");
    let mut output = process.stdout().expect("it is a pipe");
    within(process.exited()).expect("the outcome is known");
    let holders = || within(process.holders()).expect("the table can be read");
    assert!(holders().is_empty(), "its drain has not run out");
    process.cut_drain();
    assert!(finished(&process).success());
    let streams: Vec<String> = holders().iter().map(|held| held.stream.to_string()).collect();
    assert_eq!(streams, ["stderr", "stdout"]);
    within(tokio::io::AsyncWriteExt::write_all(&mut input, b"..")).expect("the member reads");
    let mut rest = Vec::new();
    within(output.read_to_end(&mut rest)).expect("it can be read");
    assert_eq!(rest, b"ab");
    within(process.terminate()).expect("the tree ends");
    case.assert_gone();
}

/// Nor does it for a tree that is over, and for one that never was.
fn a_cut_after_a_disposal_does_nothing(tier: Tier) {
    let case = Case::new(tier);
    let failed = case
        .runtime
        .spawn(case.spec(["/nowhere/at-all"]))
        .expect("the world is at fault");
    failed.cut_drain();
    let process = case.spawn(case.probe(["sleep"]));
    announced(&process, "ready");
    within(case.runtime.dispose()).expect("the tree ends");
    for _ in 0..2 {
        process.cut_drain();
        failed.cut_drain();
        assert!(finished(&process).signal().is_some());
        let error = within(failed.done()).expect_err("there is no such program");
        assert_eq!(error.kind(), ErrorKind::ProgramNotFound);
    }
    case.assert_gone();
}

/// The child shares the clock of the runtime with its parent. There the drain of one tree goes on, and that of another ends
/// in its time.
fn a_cut_in_a_forked_child_moves_nothing_in_the_parent(tier: Tier) {
    let case = Case::new(tier);
    let held = |drain| {
        let mut spec = case.probe(["hold-stdout", "sleep"]);
        spec.drain = drain;
        let process = case.spawn(spec);
        announced(&process, "ready");
        within(process.exited()).expect("the outcome is known");
        process
    };
    let (long, short) = (held(Duration::from_secs(300)), held(Duration::from_secs(1)));
    match fork::fork().expect("the process can fork") {
        fork::Fork::Child => {
            short.cut_drain();
            long.cut_drain();
            std::process::exit(0);
        }
        fork::Fork::Parent(child) => {
            assert_eq!(fork::waitpid(child).expect("it is a child of this process"), 0);
        }
    }
    assert!(finished(&short).success());
    assert!(!long.collected_stdout().expect("it is collected").is_sealed());
    long.cut_drain();
    assert!(finished(&long).success());
    within(case.runtime.dispose()).expect("the trees end");
    case.assert_gone();
}
