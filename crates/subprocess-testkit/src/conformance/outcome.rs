//! Contract F: how a target ended, and when that is told.

use dsh_subprocess::{Outcome, Output, Stdin};
use tokio::io::AsyncWriteExt;
use tokio_util::sync::CancellationToken;

use super::World;
use super::child::{Abandoned, abandoned, by_now, end, finish, gone, raw_line, raw_rest, ready, start};
use super::watchdog::within;

/// An exit code is given as it is, success or not, and is never an error.
pub async fn item_56_an_exit_code_is_a_result(world: &World) {
    let runtime = world.runtime();
    for code in ["0", "1", "77", "255"] {
        let finished = finish(&runtime.spawn(world.spec(&["exit", code])).expect("a valid spec")).await;
        assert_eq!(
            finished.outcome,
            Outcome::Exited {
                code: code.parse().expect("a number")
            }
        );
        assert_eq!(finished.outcome.success(), code == "0");
        assert!(finished.stdout.is_empty() && finished.stderr.is_empty());
    }
}

/// A signal is given by its name, and is never an error; where the world has no shell, the signal is a termination's.
pub async fn item_56_a_signal_is_a_result(world: &World) {
    let runtime = world.runtime();
    if world.shell.is_some() {
        for name in ["KILL", "TERM", "HUP", "USR1"] {
            let spec = world
                .shell_spec(&format!("kill -s {name} $$"))
                .expect("there is a shell");
            let finished = finish(&runtime.spawn(spec).expect("a valid spec")).await;
            let signal = finished.outcome.signal().expect("it was signalled");
            assert_eq!(signal.as_str(), format!("SIG{name}"));
            assert_eq!(finished.outcome.code(), None);
        }
    }
    let process = runtime.spawn(world.spec(&["sleep"])).expect("a valid spec");
    ready(&process).await;
    end(&process).await;
    let outcome = within("done", process.done()).await.expect("an outcome");
    assert_eq!(
        outcome,
        Outcome::Signaled {
            signal: "SIGTERM".into(),
            core_dumped: false
        }
    );
}

/// `exited` does not wait for the streams, which a member may hold for long; `done` gives the same outcome later.
pub async fn an_exit_is_told_before_the_streams_end(world: &World) {
    let mut spec = world.spec(&["hold-stdout", "pieces", "6c617374"]);
    spec.stdin = Stdin::Pipe;
    let mut process = start(world, spec);
    let mut stdin = process.stdin().expect("piped");
    let mut done = process.done();
    let early = process.exited();
    for exited in [early, process.exited()] {
        let outcome = within("exited", exited).await.expect("an outcome");
        assert_eq!(outcome.code(), Some(0));
    }
    assert!(
        by_now(&mut done).is_none(),
        "done settled although a member held the stream"
    );
    within("room for one byte", stdin.write_all(b"."))
        .await
        .expect("the member reads");
    let outcome = within("done", done).await.expect("an outcome");
    assert_eq!(
        within("exited", process.exited()).await.expect("an outcome"),
        outcome
    );
}

/// `done` settles when the target has ended and its streams are complete: the last byte is there.
pub async fn item_57_done_settles_at_close(world: &World) {
    // The target exits at once; a member goes on with its streams until it is told to write, and the drain is long.
    let mut spec = world.spec(&["hold-stdout", "pieces", "6c6173742077", "6f726473"]);
    spec.stdin = Stdin::Pipe;
    let mut process = start(world, spec);
    let mut stdin = process.stdin().expect("piped");
    let mut done = process.done();
    for _ in 0..2 {
        assert!(
            by_now(&mut done).is_none(),
            "done settled although a member held the stream"
        );
        within("room for one byte", stdin.write_all(b"."))
            .await
            .expect("the member reads");
    }
    assert_eq!(within("done", done).await.expect("an outcome").code(), Some(0));
    assert_eq!(
        process.collected_stdout().expect("collected").text(),
        "last words"
    );
    assert!(
        within("holders", process.holders())
            .await
            .expect("an answer")
            .is_empty(),
        "no drain ran out"
    );
}

/// `done` does not wait longer than the drain for whoever holds a collected stream, which is cut off there; the holder is
/// named where the world can name it, and is still owned.
pub async fn item_58_done_settles_when_the_drain_runs_out(world: &World) {
    let Abandoned {
        child, mut stdout, ..
    } = abandoned(world, &["ignore-term"]).await;
    let stderr = child.collected_stderr().expect("collected");
    assert!(stderr.is_sealed(), "done has settled, and its stream has not");
    let holders = within("holders", child.holders()).await.expect("an answer");
    assert_eq!(!holders.is_empty(), world.guarantees.names_holders, "{holders:?}");
    end(&child).await;
    assert_eq!(raw_rest(&mut stdout).await, b"");
    let ended = within("ended", child.ended()).await.expect("an answer");
    assert_eq!(ended.len(), 1, "one process outlived the target: {ended:?}");
}

/// When the drain runs out, a raw stream stays with the caller.
pub async fn item_58_a_raw_stream_outlives_the_drain(world: &World) {
    let Abandoned {
        child, mut stdout, ..
    } = abandoned(world, &["trap-term", "late", "0"]).await;
    end(&child).await;
    assert_eq!(raw_rest(&mut stdout).await, b"late\n");
}

/// A caller lets the drain run out before its time: `done` settles as it would have then. Collected streams are sealed with what
/// arrived, a raw one stays with the caller, and whoever holds them is named and still owned.
pub async fn a_drain_is_cut_short(world: &World) {
    let mut spec = world.spec(&["hold-stdout", "trap-term", "late", "0"]);
    spec.stdout = Output::Pipe;
    let mut child = start(world, spec);
    let mut stdout = child.stdout().expect("piped");
    let mut done = child.done();
    let exited = within("exited", child.exited()).await.expect("an outcome");
    raw_line(&mut stdout).await;
    assert!(
        by_now(&mut done).is_none(),
        "done settled although a member held the streams"
    );
    child.cut_drain();
    assert_eq!(within("done", done).await.expect("an outcome"), exited);
    let stderr = child.collected_stderr().expect("collected");
    assert!(stderr.is_sealed(), "done has settled, and its stream has not");
    let holders = within("holders", child.holders()).await.expect("an answer");
    assert_eq!(!holders.is_empty(), world.guarantees.names_holders, "{holders:?}");
    let never = CancellationToken::new();
    assert!(
        by_now(child.wait_for_exit(&never)).is_none(),
        "a cut ended more than the drain"
    );
    // There is no drain any more.
    child.cut_drain();
    end(&child).await;
    assert_eq!(raw_rest(&mut stdout).await, b"late\n");
    assert_eq!(
        within("done", child.done()).await.expect("an outcome"),
        Outcome::Exited { code: 0 }
    );

    let child = start(world, world.spec(&["hold-stdout", "sleep"]));
    let line = ready(&child).await;
    within("exited", child.exited()).await.expect("an outcome");
    child.cut_drain();
    within("done", child.done()).await.expect("an outcome");
    let stdout = child.collected_stdout().expect("collected");
    assert!(stdout.is_sealed(), "done has settled, and its stream has not");
    assert_eq!(stdout.text(), format!("{line}\n"));
    end(&child).await;
}

/// A drain that is cut while the target runs, or before it does, is zero when it exits.
pub async fn a_drain_that_was_cut_before_the_exit_is_zero(world: &World) {
    let child = start(world, world.spec(&["hold-stdout", "sleep"]));
    child.cut_drain();
    let outcome = within("done", child.done()).await.expect("an outcome");
    assert_eq!(outcome.code(), Some(0));
    assert!(child.collected_stdout().expect("collected").is_sealed());
    end(&child).await;

    let probe = world.probe.to_string_lossy();
    let Some(mut spec) = world.shell_spec(&format!("'{probe}' sleep & read -r go; exit 7")) else {
        return;
    };
    spec.stdin = Stdin::Pipe;
    let mut child = start(world, spec);
    let stdin = child.stdin().expect("piped");
    let line = ready(&child).await;
    child.cut_drain();
    let mut done = child.done();
    assert!(by_now(&mut done).is_none(), "a cut ended the target");
    drop(stdin);
    assert_eq!(within("done", done).await.expect("an outcome").code(), Some(7));
    let stdout = child.collected_stdout().expect("collected");
    assert!(stdout.is_sealed(), "done has settled, and its stream has not");
    assert_eq!(stdout.text(), format!("{line}\n"));
    let holders = within("holders", child.holders()).await.expect("an answer");
    assert_eq!(!holders.is_empty(), world.guarantees.names_holders, "{holders:?}");
    end(&child).await;
}

/// `done` gives the same answer to everybody, at any time.
pub async fn item_59_done_settles_once_for_everybody(world: &World) {
    let process = start(world, world.spec(&["exit", "5"]));
    let (early, other) = (process.done(), process.done());
    let first = within("done", early).await.expect("an outcome");
    gone(&process).await;
    end(&process).await;
    assert_eq!(within("done", other).await.expect("an outcome"), first);
    assert_eq!(within("done", process.done()).await.expect("an outcome"), first);
    assert!(within("started", process.started()).await.is_ok());
}

/// What cannot be measured is unknown, and never 0.
pub async fn usage_is_measured_where_promised(world: &World) {
    let process = start(world, world.spec(&["flood", "100000"]));
    within("done", process.done()).await.expect("an outcome");
    gone(&process).await;
    let usage = within("usage", process.usage()).await.expect("an answer");
    let measured = usage.user.is_some() && usage.system.is_some();
    assert_eq!(measured, world.guarantees.measures_usage, "{usage:?}");
    assert_ne!(usage.peak_memory_bytes, Some(0));
}
