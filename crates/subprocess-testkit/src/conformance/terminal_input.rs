//! Contract I: what is written to a terminal.

use std::future::poll_fn;
use std::task::Poll;

use bytes::Bytes;
use dsh_subprocess::{ErrorKind, Outcome, TerminalSignal, TerminalSize};

use super::World;
use super::child::{by_now, numbered};
use super::session::{open, plain, ready, ready_with};
use super::watchdog::within;

/// Bytes that no terminal holds for a program that does not read.
const FAR_TOO_MUCH: usize = 200_000;

/// Every byte is typed as it is: no line end is converted, no byte is taken for text.
pub async fn item_90_every_byte_value_is_typed_unchanged(world: &World) {
    let Some(mut session) = ready(world, &["terminal", "raw", "cat"]).await else {
        return;
    };
    let every: Vec<u8> = (0..=255).chain(*b"\r\n\r\n\n").collect();
    session.types(every.clone()).await;
    assert_eq!(session.bytes(every.len()).await, every);
    session.types(Bytes::new()).await;
    session.end().await;
}

/// Writes follow each other, each whole.
pub async fn item_90_writes_follow_each_other(world: &World) {
    let Some(mut session) = ready(world, &["terminal", "raw", "cat"]).await else {
        return;
    };
    let mut writes = [b'a', b'b'].map(|byte| (session.write(vec![byte; 50_000]), false));
    let both = poll_fn(|context| {
        for (write, taken) in writes.iter_mut().filter(|(_, taken)| !taken) {
            if let Poll::Ready(result) = write.as_mut().poll(context) {
                result.expect("it is taken");
                *taken = true;
            }
        }
        if writes.iter().all(|(_, taken)| *taken) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    });
    within("the ends of two writes", both).await;
    let expected = [vec![b'a'; 50_000], vec![b'b'; 50_000]].concat();
    assert!(session.bytes(100_000).await == expected, "the writes were mixed");
    session.end().await;
}

/// A write after the program's exit is refused, and says that nothing was taken.
pub async fn item_90_a_write_after_the_exit_is_refused(world: &World) {
    let Some(session) = open(world, world.terminal_spec(&["exit", "0"])).await else {
        return;
    };
    session.outcome().await;
    let error = session.refused_write("late").await;
    assert_eq!(
        (error.kind(), error.written()),
        (ErrorKind::Exited, Some(0)),
        "{error}"
    );
    assert_eq!(error.operation(), "write");
}

/// A write whose future is dropped stops. What was taken of it stays typed, and the next write is whole.
pub async fn item_90_a_dropped_write_stops(world: &World) {
    let Some(mut session) = ready(world, &["terminal", "raw", "cat-after-resize"]).await else {
        return;
    };
    let mut write = session.write(vec![b'a'; FAR_TOO_MUCH]);
    if let Some(given_up) = by_now(&mut write) {
        let error = given_up.expect_err("it was taken although nobody reads");
        assert_eq!(error.kind(), ErrorKind::InputNotRead, "{error}");
    }
    drop(write);
    let size = TerminalSize { rows: 5, cols: 6 };
    within("a new size", session.resize(size))
        .await
        .expect("the program runs");
    session.types("then this").await;
    let taken = session.until("then this").await;
    assert!(taken.len() < FAR_TOO_MUCH && taken.bytes().all(|byte| byte == b'a'));
    session.end().await;
}

/// A large write to a program that prints as much is taken whole before anybody reads, and all of it comes back.
pub async fn o22_a_large_paste_is_taken_before_anybody_reads(world: &World) {
    let paste = numbered(240_000);
    let Some(mut session) = ready(world, &["terminal", "raw", "cat"]).await else {
        return;
    };
    session.types(paste.clone()).await;
    assert!(session.bytes(paste.len()).await == paste);
    session.end().await;

    let Some(spec) = world.shell_terminal("stty -echo; echo ready; exec cat") else {
        return;
    };
    let Some(session) = ready_with(world, spec).await else {
        return;
    };
    session.types(paste.clone()).await;
    // The end of input, typed.
    session.types("\x04").await;
    let (outcome, printed) = session.finish().await;
    assert!(plain(&printed) == paste, "{} bytes came back", printed.len());
    assert!(outcome.success(), "{outcome}");
}

/// A program that never reads is told in bounded time, with what was taken; the session can be used on.
pub async fn o22_a_program_that_never_reads_is_told(world: &World) {
    let Some(session) = ready(world, &["terminal", "raw", "sleep"]).await else {
        return;
    };
    let error = session.refused_write(vec![b'x'; FAR_TOO_MUCH]).await;
    assert_eq!(error.kind(), ErrorKind::InputNotRead, "{error}");
    let written = error.written().expect("it tells how much was taken");
    assert!(written < FAR_TOO_MUCH as u64, "{written}");
    let size = TerminalSize { rows: 5, cols: 6 };
    within("a new size", session.resize(size))
        .await
        .expect("the program runs");
    session.foreground().await;
    within("a signal", session.signal_foreground(TerminalSignal::Interrupt))
        .await
        .expect("the program runs");
    let (outcome, _) = session.finish().await;
    let interrupted = Outcome::Signaled {
        signal: "SIGINT".into(),
        core_dumped: false,
    };
    assert_eq!(outcome, interrupted);
}

/// A write that is refused because nobody reads does not hinder a termination.
pub async fn o22_a_session_that_never_reads_can_be_ended(world: &World) {
    let Some(session) = ready(world, &["terminal", "raw", "sleep"]).await else {
        return;
    };
    session.refused_write(vec![b'x'; FAR_TOO_MUCH]).await;
    session.end().await;
    assert!(session.outcome().await.signal().is_some());
}

/// The longest line that a terminal collects arrives whole; of one that is longer nothing is typed.
pub async fn item_90_a_line_too_long_is_refused_whole(world: &World) {
    let longest = "x".repeat(4095);
    let Some(mut session) = ready(world, &["terminal", "lines"]).await else {
        return;
    };
    session.types(format!("{longest}\n")).await;
    assert_eq!(session.line().await, longest);

    let error = session.refused_write(format!("{longest}x\n")).await;
    assert_eq!(
        (error.kind(), error.written()),
        (ErrorKind::LineTooLong, Some(0)),
        "{error}"
    );
    session.types("next\n").await;
    assert_eq!(session.line().await, "next");

    // The lines before it are typed.
    let error = session
        .refused_write(format!("before\n{longest}x\nafter\n"))
        .await;
    assert_eq!(
        (error.kind(), error.written()),
        (ErrorKind::LineTooLong, Some(7)),
        "{error}"
    );
    assert_eq!(session.line().await, "before");

    // A line may be typed in several writes.
    session.types(longest[..4000].to_owned()).await;
    let error = session.refused_write(format!("{}\n", &longest[..96])).await;
    assert_eq!(
        (error.kind(), error.written()),
        (ErrorKind::LineTooLong, Some(0)),
        "{error}"
    );
    session.types(format!("{}\n", &longest[..95])).await;
    assert_eq!(session.line().await, longest);
    session.end().await;
}

/// A program that wants bytes has no longest line.
pub async fn item_90_bytes_have_no_longest_line(world: &World) {
    let Some(mut session) = ready(world, &["terminal", "raw", "cat"]).await else {
        return;
    };
    let long = vec![b'x'; 50_000];
    session.types(long.clone()).await;
    assert!(session.bytes(long.len()).await == long);
    session.end().await;
}

/// A new size is told to the program, and one that is no other is not.
pub async fn item_184_a_resize_reaches_the_program(world: &World) {
    let mut spec = world.terminal_spec(&["terminal", "watch-size"]);
    spec.size = TerminalSize { rows: 7, cols: 133 };
    let Some(mut session) = open(world, spec).await else {
        return;
    };
    assert_eq!(session.line().await, "7 133");
    for (rows, cols) in [(7, 133), (50, 1), (u16::MAX, u16::MAX)] {
        within("a new size", session.resize(TerminalSize { rows, cols }))
            .await
            .expect("the program runs");
        if (rows, cols) != (7, 133) {
            assert_eq!(session.line().await, format!("{rows} {cols}"));
        }
    }
    for (rows, cols) in [(0, 80), (24, 0)] {
        let error = within("a refusal", session.resize(TerminalSize { rows, cols }))
            .await
            .expect_err("nothing has no size");
        assert_eq!(error.kind(), ErrorKind::InvalidSpec, "{error}");
    }
    session.end().await;
}

/// After the exit there is nothing to resize.
pub async fn item_184_a_resize_after_the_exit_is_refused(world: &World) {
    let Some(session) = open(world, world.terminal_spec(&["exit", "0"])).await else {
        return;
    };
    session.outcome().await;
    let error = within("a refusal", session.resize(TerminalSize { rows: 5, cols: 6 }))
        .await
        .expect_err("the program has exited");
    assert_eq!(
        (error.kind(), error.operation()),
        (ErrorKind::Exited, "resize"),
        "{error}"
    );
}
