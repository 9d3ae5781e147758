//! A spilled stream whose pipe somebody holds beyond the drain.

use std::fs;
use std::num::NonZeroU64;
use std::thread;
use std::time::Duration;

use dsh_subprocess::{Collect, Output, SpawnSpec, Spill, SpillLife, SpillState};
use tempfile::TempDir;

use crate::fixture::{Case, Tier, finished, numbered, on_each_tier, within};

const TOTAL: usize = 1 << 20;

on_each_tier! {
    a_spill_whose_pipe_is_held_is_sealed_with_the_outcome,
    a_spill_whose_holder_goes_on_writing_is_sealed_with_the_outcome,
    a_spill_whose_drain_is_cut_is_sealed_with_the_outcome,
}

/// A case whose kept files go to another file system, where there is one: they are copied then.
fn case(tier: Tier) -> (Case, [TempDir; 2]) {
    let parent = tempfile::tempdir().expect("a temporary directory");
    let kept = tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .expect("a temporary directory");
    let case = Case::with(tier, |builder| {
        builder
            .spill_parent(parent.path())
            .kept_spills(kept.path().join("spills"))
    });
    (case, [parent, kept])
}

fn held(mut spec: SpawnSpec, life: SpillLife) -> SpawnSpec {
    spec.drain = Duration::from_millis(50);
    spec.stdout = Output::Collect(Collect {
        max_bytes: 1000,
        head_bytes: 0,
        spill: Some(Spill {
            max_bytes: NonZeroU64::MAX,
            life,
        }),
    });
    spec
}

/// A daemon that left the session keeps the pipe open, quietly.
fn a_spill_whose_pipe_is_held_is_sealed_with_the_outcome(tier: Tier) {
    for life in [SpillLife::Keep, SpillLife::Runtime, SpillLife::Handle] {
        let (case, _directories) = case(tier);
        for _ in 0..10 {
            let script = format!(r#""$PROBE" flood {TOTAL}; exec "$PROBE" setsid-escape --leave"#);
            let process = case.spawn(held(case.bash(&script), life));
            assert!(finished(&process).success());
            let output = process.collected_stdout().expect("it is collected");
            assert!(output.is_sealed(), "done, and the stream is open: {life:?}");
            // The daemon speaks after the target's own output; its line may come after the drain.
            assert!(output.total() >= TOTAL as u64, "{} bytes", output.total());
            let SpillState::Available(stream) = output.spill() else {
                panic!("{life:?}: {:?}", output.spill())
            };
            assert_eq!(stream.length, output.total());
            let file = fs::read(stream.location.as_local_path()).expect("it is there");
            assert_eq!(file.len() as u64, stream.length);
            assert!(file[..TOTAL] == numbered(TOTAL));
            within(process.terminate()).expect("what the mechanism holds is gone");
            let (outcome, _) = case.run(case.probe(["exit", "0"]));
            assert!(outcome.success());
        }
    }
}

/// A member keeps on writing, so that the stream is never quiet when it is sealed.
fn a_spill_whose_holder_goes_on_writing_is_sealed_with_the_outcome(tier: Tier) {
    for life in [SpillLife::Keep, SpillLife::Runtime] {
        let (case, _directories) = case(tier);
        let script = r#"setsid sh -c 'echo "ready $$"; exec yes' & exec "$PROBE" flood 5000"#;
        for _ in 0..5 {
            let mut spec = held(case.bash(script), life);
            let Output::Collect(window) = &mut spec.stdout else {
                unreachable!("it is collected")
            };
            window.head_bytes = 10_000;
            let process = case.spawn(spec);
            assert!(finished(&process).success());
            let output = process.collected_stdout().expect("it is collected");
            assert!(output.is_sealed(), "done, and the stream is open: {life:?}");
            let total = output.total();
            let (outcome, _) = case.run(case.probe(["exit", "0"]));
            assert!(outcome.success());
            assert_eq!(output.total(), total, "a sealed stream grew");
            if let SpillState::Available(stream) = output.spill() {
                assert_eq!(stream.length, total);
                let length = fs::metadata(stream.location.as_local_path())
                    .expect("it is there")
                    .len();
                assert_eq!(length, total);
            }
            within(process.terminate()).expect("what the mechanism holds is gone");
            case.end_strays();
        }
    }
}

/// The thread that writes files may be at work at the cut, which is made by several threads.
fn a_spill_whose_drain_is_cut_is_sealed_with_the_outcome(tier: Tier) {
    for life in [SpillLife::Keep, SpillLife::Runtime, SpillLife::Handle] {
        let (case, _directories) = case(tier);
        for _ in 0..10 {
            let script = format!(r#"sleep 300 & exec "$PROBE" flood {TOTAL}"#);
            let mut spec = held(case.bash(&script), life);
            spec.drain = Duration::from_secs(300);
            let process = case.spawn(spec);
            within(process.exited()).expect("the outcome is known");
            thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| process.cut_drain());
                }
            });
            assert!(finished(&process).success());
            let output = process.collected_stdout().expect("it is collected");
            assert!(output.is_sealed(), "done, and the stream is open: {life:?}");
            assert_eq!(output.total(), TOTAL as u64);
            let SpillState::Available(stream) = output.spill() else {
                panic!("{life:?}: {:?}", output.spill())
            };
            let file = fs::read(stream.location.as_local_path()).expect("it is there");
            assert!(file == numbered(TOTAL), "{} bytes", file.len());
            within(process.terminate()).expect("the tree ends");
        }
        case.assert_gone();
    }
}
