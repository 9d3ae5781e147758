//! What is typed: whole, in order, and never without an end. Case O22.

use std::fs;
use std::future::Future;
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

use dsh_subprocess::{Error, ErrorKind, TerminalSignal, TerminalSize};
use tokio::io::AsyncReadExt;

use super::session::{Session, Terminals, lines, open_gate, plain, signal};
use crate::fixture::{Case, Tier, alive, eventually, on_each_tier, within};

on_each_tier! {
    o22_a_paste_that_nobody_reads_yet_comes_back_whole,
    o22_a_paste_into_an_echoing_terminal_arrives_whole,
    o22_a_write_beyond_what_is_kept_goes_on_with_a_reader,
    o22_a_write_beyond_what_is_kept_goes_on_when_there_will_be_no_reader,
    item_90_what_is_typed_while_nobody_has_the_terminal_open_is_not_lost,
    o22_a_program_that_never_reads_is_told_and_can_be_interrupted,
    o22_a_program_that_never_reads_can_be_ended,
    item_90_writers_on_many_threads_do_not_mix,
    item_90_the_next_write_goes_on_after_one_that_was_dropped,
    item_98_a_termination_ends_a_write_that_is_stuck,
}

/// Case O22's own: 3,000 lines of 80 bytes, 240,000 in all.
fn paste() -> String {
    lines(3000, |line| format!("{line:079}\n"))
}

/// What a case says of a program that never reads.
const SOON: Duration = Duration::from_millis(200);

fn o22_a_paste_that_nobody_reads_yet_comes_back_whole(tier: Tier) {
    let case = Case::new(tier);
    let session = case.ready(case.terminal_spec(case.bash("stty -echo; echo ready; exec cat")));
    // All of it, before the first byte is read.
    session.types(paste());
    session.types("\u{4}");
    let (outcome, copy) = session.finish();
    assert!(outcome.success(), "{outcome}");
    assert!(plain(&copy) == paste(), "{} bytes came back", copy.len());
    case.assert_gone();
}

/// The kernel drops echoes for which it has no room. What the program gets is another matter.
fn o22_a_paste_into_an_echoing_terminal_arrives_whole(tier: Tier) {
    let case = Case::new(tier);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut spec = case.terminal_spec(case.bash("echo ready; cat >copy"));
    spec.cwd = directory.path().into();
    let session = case.ready(spec);
    session.types(paste());
    session.types("\u{4}");
    assert!(session.outcome().success());
    let copy = fs::read_to_string(directory.path().join("copy")).expect("it was written");
    assert!(copy == paste(), "{} bytes arrived", copy.len());
}

/// Three times as much as is kept of the output: it takes somebody who reads.
fn large_paste() -> String {
    paste().repeat(13)
}

/// Types a large paste into a program that prints what it reads, up to where nothing goes on without a reader.
#[track_caller]
fn held_up(session: &Session) -> impl Future<Output = Result<(), Error>> + use<> {
    let mut write = session.write(large_paste());
    let mut context = Context::from_waker(Waker::noop());
    assert!(write.as_mut().poll(&mut context).is_pending(), "nobody reads");
    write
}

fn o22_a_write_beyond_what_is_kept_goes_on_with_a_reader(tier: Tier) {
    let case = Case::new(tier);
    let session = case.ready(case.terminal_spec(case.bash("stty -echo; echo ready; exec cat")));
    let write = held_up(&session);
    let (terminal, mut output) = session.into_parts();
    let mut copy = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            within(write).expect("somebody reads");
            within(terminal.write("\u{4}")).expect("the program reads");
        });
        within(output.read_to_end(&mut copy)).expect("the end is no error");
    });
    assert!(plain(&copy) == large_paste(), "{} bytes came back", copy.len());
}

fn o22_a_write_beyond_what_is_kept_goes_on_when_there_will_be_no_reader(tier: Tier) {
    let case = Case::new(tier);
    let session = case.ready(case.terminal_spec(case.bash("stty -echo; echo ready; exec cat")));
    let write = held_up(&session);
    let (terminal, output) = session.into_parts();
    thread::scope(|scope| {
        let writer = scope.spawn(|| within(write));
        drop(output);
        writer
            .join()
            .expect("it does not panic")
            .expect("the output is thrown away");
    });
    within(terminal.write("\u{4}")).expect("the program reads");
    assert!(within(terminal.done()).expect("it is known").success());
}

/// Whoever has the terminal as his controlling one can come back to it, and finds what was typed meanwhile: a line, or more
/// than the terminal takes before he does.
fn item_90_what_is_typed_while_nobody_has_the_terminal_open_is_not_lost(tier: Tier) {
    for typed in ["typed\n".to_owned(), paste()] {
        let case = Case::new(tier);
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut spec = case.terminal_spec(case.spec([
            "/bin/sh",
            "-c",
            "stty -echo; mkfifo gate; exec <&- >&- 2>&-; : >closed; read -r go <gate
            exec <>/dev/tty >&0; exec cat",
        ]));
        spec.cwd = directory.path().into();
        let session = case.open(spec);
        eventually("the program has closed its terminal", || {
            directory.path().join("closed").exists()
        });
        let write = session.write(typed.clone());
        thread::scope(|scope| {
            let writer = scope.spawn(|| within(write));
            open_gate(&directory.path().join("gate"), "go");
            writer
                .join()
                .expect("it does not panic")
                .expect("it is open again");
        });
        session.types("\u{4}");
        let (outcome, copy) = session.finish();
        assert!(outcome.success(), "{outcome}");
        assert!(plain(&copy) == typed, "{} of {} bytes", copy.len(), typed.len());
    }
}

/// A session whose program never reads, and that was told so.
#[track_caller]
fn stuck(case: &Case, script: &str) -> Session {
    let session = case.ready(case.terminal_spec(case.bash(script)));
    for attempt in ["the first", "the second"] {
        let error = within(session.write(paste())).expect_err("nobody reads");
        assert_eq!(error.kind(), ErrorKind::InputNotRead, "{attempt}: {error}");
        let written = error.written().expect("it is told how much was taken");
        assert!(written < 240_000, "{attempt}: {written}");
    }
    session
}

fn impatient(tier: Tier) -> Case {
    Case::with(tier, |builder| builder.write_bound(SOON))
}

fn o22_a_program_that_never_reads_is_told_and_can_be_interrupted(tier: Tier) {
    for script in [
        r#"exec "$PROBE" sleep"#,
        r#"stty raw isig -echo; exec "$PROBE" sleep"#,
    ] {
        let case = impatient(tier);
        let session = stuck(&case, script);
        let size = TerminalSize { rows: 11, cols: 33 };
        within(session.resize(size)).expect("the session goes on");
        let asked = within(session.signal_foreground(TerminalSignal::Interrupt));
        assert_eq!(Some(asked.expect("the session goes on")), session.pid());
        assert_eq!(signal(&session.outcome()), Some("SIGINT"), "{script}");
        session.gone();
        case.assert_gone();
    }
}

fn o22_a_program_that_never_reads_can_be_ended(tier: Tier) {
    let case = impatient(tier);
    let session = stuck(&case, r#"exec "$PROBE" sleep"#);
    // The grace is 300 s.
    session.end();
    assert_eq!(signal(&session.outcome()), Some("SIGTERM"));
    case.assert_gone();
}

/// Each write is one block, wherever the threads are that type.
fn item_90_writers_on_many_threads_do_not_mix(tier: Tier) {
    const WRITERS: usize = 4;
    const WRITES: usize = 20;
    const LINES: usize = 40;
    let case = Case::new(tier);
    let session = case.ready(case.terminal_spec(case.bash("stty -echo; echo ready; exec cat")));
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let session = &session;
            scope.spawn(move || {
                for write in 0..WRITES {
                    let block = lines(LINES, |line| {
                        format!("{writer} {write} {line} and more than that\n")
                    });
                    session.types(block);
                }
            });
        }
    });
    session.types("\u{4}");
    let (outcome, copy) = session.finish();
    assert!(outcome.success(), "{outcome}");
    let copy = plain(&copy);
    let lines: Vec<[usize; 3]> = copy
        .lines()
        .map(|line| {
            let words = line.strip_suffix(" and more than that").expect("a whole line");
            let numbers: Vec<usize> = words
                .split(' ')
                .map(|word| word.parse().expect("a number"))
                .collect();
            numbers.try_into().expect("three numbers")
        })
        .collect();
    assert_eq!(lines.len(), WRITERS * WRITES * LINES);
    let mut next = [0; WRITERS];
    for block in lines.chunks(LINES) {
        let [writer, write, _] = block[0];
        assert_eq!(write, next[writer], "the writes of {writer} are out of order");
        next[writer] += 1;
        let whole: Vec<_> = (0..LINES).map(|line| [writer, write, line]).collect();
        assert_eq!(block, whole);
    }
}

/// What the terminal had taken stays typed, and what comes next follows it, though nothing is printed that could tell of
/// a program that reads.
fn item_90_the_next_write_goes_on_after_one_that_was_dropped(tier: Tier) {
    let case = Case::with(tier, |builder| builder.write_bound(dsh_subprocess::MAX_GRACE));
    let directory = tempfile::tempdir().expect("a temporary directory");
    let script = "stty raw -echo; mkfifo gate; echo ready; read -r go <gate; head -c $go >copy";
    let mut spec = case.terminal_spec(case.bash(script));
    spec.cwd = directory.path().into();
    let session = case.ready(spec);
    let mut context = Context::from_waker(Waker::noop());
    let mut dropped = session.write(vec![b'a'; 200_000]);
    assert!(
        dropped.as_mut().poll(&mut context).is_pending(),
        "nobody reads yet"
    );
    let mut next = session.write(vec![b'b'; 50_000]);
    assert!(
        next.as_mut().poll(&mut context).is_pending(),
        "it is not its turn"
    );
    drop(dropped);
    // It is first now, and waits again.
    assert!(next.as_mut().poll(&mut context).is_pending(), "nobody reads yet");
    thread::scope(|scope| {
        let writer = scope.spawn(|| within(next));
        open_gate(&directory.path().join("gate"), "200000");
        writer
            .join()
            .expect("it does not panic")
            .expect("the program reads");
    });
    // Whatever is missing of what the program waits for, and more, of which its exit refuses the rest.
    drop(within(session.write(vec![b'c'; 200_000])));
    assert!(session.outcome().success());
    let copy = fs::read_to_string(directory.path().join("copy")).expect("it was written");
    let first = copy.trim_start_matches('a');
    let second = first.trim_start_matches('b');
    assert!(first.len() < copy.len() && first.len() - second.len() == 50_000);
}

/// The call of another thread, and one behind it that nobody waits for yet.
fn item_98_a_termination_ends_a_write_that_is_stuck(tier: Tier) {
    let case = Case::with(tier, |builder| builder.write_bound(dsh_subprocess::MAX_GRACE));
    let mut session = case.ready(case.terminal_spec(case.probe(["terminal", "raw", "sleep"])));
    let [program] = session.announced("ready")[..] else {
        panic!("one program")
    };
    let (error, late) = thread::scope(|scope| {
        let session = &session;
        let writer = scope.spawn(|| within(session.write(vec![b'x'; 200_000])));
        let mut queued = Box::pin(session.write("queued"));
        let mut context = Context::from_waker(Waker::noop());
        while queued.as_mut().poll(&mut context).is_ready() {
            // The other thread has not begun yet.
            thread::yield_now();
            queued = Box::pin(session.write("queued"));
        }
        session.end();
        (writer.join().expect("it does not panic"), within(queued))
    });
    for error in [error, late] {
        let error = error.expect_err("nobody reads");
        assert_eq!(error.kind(), ErrorKind::Exited, "{error}");
        assert!(error.written().is_some_and(|written| written < 200_000));
    }
    assert!(!alive(program));
    case.assert_gone();
}
