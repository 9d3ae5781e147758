//! Contract I: what a program prints, and how that ends.

use std::time::Duration;

use dsh_subprocess::Outcome;
use tokio::io::AsyncReadExt;

use super::World;
use super::child::{by_now, numbered};
use super::session::{open, plain, ready, spawned};
use super::watchdog::within;

/// Every byte comes as it is, valid UTF-8 or not.
pub async fn item_88_every_byte_value_is_printed_unchanged(world: &World) {
    let every: Vec<u8> = (0..=255).collect();
    let hex = every
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect::<Vec<_>>()
        .concat();
    let Some(session) = ready(world, &["terminal", "raw", "pieces", &hex, "c3", "a9"]).await else {
        return;
    };
    session.types("123").await;
    let (outcome, printed) = session.finish().await;
    assert_eq!(printed, [&every[..], b"\xc3\xa9"].concat());
    assert!(outcome.success(), "{outcome}");
}

/// A reader that does not read holds the program up, and loses nothing.
pub async fn item_88_unread_output_holds_the_program_up(world: &World) {
    let length = 4_000_000;
    let Some(session) = open(world, world.terminal_spec(&["flood", &length.to_string()])).await else {
        return;
    };
    // Questions and answers give a world that buffers without end the time to do so.
    for _ in 0..100 {
        within("members", session.tree().members())
            .await
            .expect("an answer");
    }
    assert!(
        by_now(session.done()).is_none(),
        "the program ended although nobody reads"
    );
    let (outcome, printed) = session.finish().await;
    assert!(outcome.success(), "{outcome}");
    assert!(
        plain(&printed) == numbered(length),
        "{} bytes came",
        printed.len()
    );
}

/// The end of the program is known without a reader, and what was printed before it can still be read.
pub async fn item_89_done_does_not_wait_for_a_reader(world: &World) {
    let Some(mut session) = open(world, world.terminal_spec(&["echo", "still", "here"])).await else {
        return;
    };
    assert!(session.outcome().await.success());
    assert_eq!(plain(&session.rest().await), b"still here\n");
}

/// An exit code and a signal are results, and are told to everybody alike.
pub async fn item_89_done_tells_how_the_program_ended(world: &World) {
    let Some(session) = open(world, world.terminal_spec(&["exit", "42"])).await else {
        return;
    };
    let (first, second) = (session.done(), session.done());
    for done in [first, second] {
        assert_eq!(within("done", done).await.expect("an outcome").code(), Some(42));
    }
    session.finish().await;
    let Some(session) = ready(world, &["sleep"]).await else {
        return;
    };
    session.end().await;
    let terminated = Outcome::Signaled {
        signal: "SIGTERM".into(),
        core_dumped: false,
    };
    assert_eq!(session.outcome().await, terminated);
}

/// A program that ends at once loses nothing of what it printed, however often: all of it, then a normal end.
pub async fn o21_a_fast_exit_loses_nothing(world: &World) {
    let runtime = world.runtime();
    for _ in 0..50 {
        let spec = world.terminal_spec(&["flood", "20480"]);
        let Some(mut terminal) = spawned(world, &*runtime, spec).await else {
            return;
        };
        let mut output = terminal.output().expect("not taken yet");
        let mut printed = Vec::new();
        within("the end of the output", output.read_to_end(&mut printed))
            .await
            .expect("the end of a terminal is no error");
        assert!(
            plain(&printed) == numbered(20_480),
            "{} bytes came",
            printed.len()
        );
        assert!(
            within("done", terminal.done())
                .await
                .expect("an outcome")
                .success()
        );
    }
    let Some(spec) = world.shell_terminal("seq 1 3000; exit 3") else {
        return;
    };
    let Some(session) = open(world, spec).await else {
        return;
    };
    let (outcome, printed) = session.finish().await;
    let lines = (1..=3000)
        .map(|line| format!("{line}\n"))
        .collect::<Vec<_>>()
        .concat();
    assert!(
        plain(&printed) == lines.as_bytes(),
        "{} bytes came",
        printed.len()
    );
    assert_eq!(outcome.code(), Some(3));
}

/// A process that outlives the program and holds its terminal open does not hold up the end of the output.
pub async fn o21_a_holder_of_the_terminal_does_not_hold_up_the_end(world: &World) {
    let mut spec = world.terminal_spec(&["hold-stdout", "ignore-term"]);
    spec.drain = Duration::from_millis(1);
    spec.grace = Duration::from_millis(100);
    let Some(session) = open(world, spec).await else {
        return;
    };
    let (outcome, _) = session.finish().await;
    assert_eq!(outcome.code(), Some(0));
}

/// A reader that has gone lets the program go on.
pub async fn item_88_a_dropped_output_lets_the_program_go_on(world: &World) {
    let runtime = world.runtime();
    let spec = world.terminal_spec(&["flood", "1000000"]);
    let Some(mut terminal) = spawned(world, &*runtime, spec).await else {
        return;
    };
    drop(terminal.output());
    assert!(
        within("done", terminal.done())
            .await
            .expect("an outcome")
            .success()
    );
}

/// A termination is not held up by output that nobody reads.
pub async fn item_184_a_termination_needs_no_reader(world: &World) {
    let Some(session) = open(world, world.terminal_spec(&["flood", "4000000"])).await else {
        return;
    };
    session.end().await;
    assert!(session.outcome().await.signal().is_some());
}
