//! What is printed on a terminal, to its last byte: case O21.

use std::thread;
use std::time::Duration;

use dsh_subprocess::{Outcome, SubprocessRuntime, TerminalSize, TerminalSpec};

use super::session::{Terminals, lines, open_gate, plain};
use crate::fixture::{Case, Tier, alive, eventually, on_each_tier, within};

on_each_tier! {
    issue_4_the_end_of_a_terminal_is_seen_however_much_is_unread,
    o21_a_short_burst_before_the_exit_is_read_whole,
    o21_many_lines_before_the_exit_are_read_whole,
    o21_a_stubborn_holder_does_not_hold_up_the_end_of_the_output,
    o21_a_stubborn_holder_is_ended_with_the_session,
    an_output_that_is_held_open_ends_when_the_drain_is_cut,
    o21_a_holder_that_goes_on_printing_does_not_hold_up_the_end_of_the_output,
    o21_a_holder_in_another_session_does_not_hold_up_the_end_of_the_output,
    o12_characters_and_invalid_bytes_pass_as_they_are,
    output_after_everybody_closed_the_terminal_arrives,
    output_is_kept_for_a_reader_that_comes_after_the_end,
}

/// Sessions of one script, on several threads at a time; each must print this, and end in this way.
#[track_caller]
fn two_hundred_times(tier: Tier, script: &str, code: u32, printed: &str) {
    let case = Case::new(tier);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let session = case.open(case.terminal_spec(case.bash(script)));
                    let (outcome, rest) = session.finish();
                    assert_eq!(outcome, Outcome::Exited { code });
                    // Not shown: it is long.
                    assert!(plain(&rest) == printed, "{} of {}", rest.len(), printed.len());
                }
            });
        }
    });
    case.assert_gone();
}

/// One write of 20 KiB, more than the kernel holds for a reader at once.
fn o21_a_short_burst_before_the_exit_is_read_whole(tier: Tier) {
    let script = r#"printf %s "$(head -c 20480 /dev/zero | tr '\0' h)""#;
    two_hundred_times(tier, script, 0, &"h".repeat(20_480));
}

fn o21_many_lines_before_the_exit_are_read_whole(tier: Tier) {
    let lines = lines(3000, |line| format!("{}\n", line + 1));
    two_hundred_times(tier, "seq 1 3000; exit 3", 3, &lines);
}

/// A background process that keeps the terminal, and minds neither the hang-up nor the request to end.
fn holder(case: &Case) -> TerminalSpec {
    let script = r#""$PROBE" ignore-term & read -r line; echo last; exit 3"#;
    case.terminal_spec(case.bash(script))
}

fn o21_a_stubborn_holder_does_not_hold_up_the_end_of_the_output(tier: Tier) {
    let case = Case::new(tier);
    let mut spec = holder(&case);
    // The grace is 300 s: the holder is there for all of the test.
    spec.drain = Duration::from_millis(50);
    let mut session = case.open(spec);
    let [holder] = session.announced("ready")[..] else {
        panic!("one holder")
    };
    session.types("go\n");
    let rest = session.rest();
    assert!(plain(&rest).ends_with("last\n"), "{:?}", plain(&rest));
    assert_eq!(session.outcome(), Outcome::Exited { code: 3 });
    assert!(alive(holder), "it has its grace");
    let holders = within(session.tree().holders()).expect("the table can be read");
    assert!(
        holders.iter().any(|held| held.member.pid == Some(holder)),
        "{holder}: {holders:?}"
    );
}

/// The exit of the program begins the end of its session, and what is stubborn is killed after the grace.
fn o21_a_stubborn_holder_is_ended_with_the_session(tier: Tier) {
    let case = Case::new(tier);
    let mut spec = holder(&case);
    // The drain is 300 s: the output ends because nobody holds the terminal any more.
    spec.grace = Duration::from_millis(50);
    let mut session = case.open(spec);
    session.line_of("ready");
    session.types("go\n");
    let (outcome, rest) = session.finish();
    assert!(plain(&rest).ends_with("last\n"), "{:?}", plain(&rest));
    assert_eq!(outcome, Outcome::Exited { code: 3 });
    case.assert_gone();
}

/// Neither the drain nor the grace, of 300 s each, is over: it ends because the caller does not wait any longer.
fn an_output_that_is_held_open_ends_when_the_drain_is_cut(tier: Tier) {
    let case = Case::new(tier);
    let mut session = case.open(holder(&case));
    let [holder] = session.announced("ready")[..] else {
        panic!("one holder")
    };
    session.types("go\n");
    let exited = within(session.tree().exited()).expect("the outcome is known");
    assert_eq!(exited, Outcome::Exited { code: 3 });
    session.tree().cut_drain();
    let rest = session.rest();
    assert!(plain(&rest).ends_with("last\n"), "{:?}", plain(&rest));
    assert_eq!(session.outcome(), exited);
    assert!(alive(holder), "it has its grace");
    let holders = within(session.tree().holders()).expect("the table can be read");
    assert!(
        holders.iter().any(|held| held.member.pid == Some(holder)),
        "{holder}: {holders:?}"
    );
}

/// It prints for ever, whether anybody reads or not.
fn o21_a_holder_that_goes_on_printing_does_not_hold_up_the_end_of_the_output(tier: Tier) {
    for reads in [true, false] {
        let case = Case::new(tier);
        let script = r#"trap "" HUP TERM; "$PROBE" chatter & read -r line; exit 3"#;
        let mut spec = case.terminal_spec(case.bash(script));
        spec.drain = Duration::from_millis(50);
        let mut session = case.open(spec);
        session.line_of("tick");
        session.types("go\n");
        if reads {
            session.rest();
        }
        assert_eq!(session.outcome(), Outcome::Exited { code: 3 });
        // The rest is what was kept.
        session.rest();
        // It is told that nobody has the terminal any more, and obeys that.
        session.gone();
        case.assert_gone();
    }
}

/// As much is kept as is ever kept when the last of them ends, and nothing is read: the end is seen all the same.
fn issue_4_the_end_of_a_terminal_is_seen_however_much_is_unread(tier: Tier) {
    let case = Case::new(tier);
    // The second is started when nothing ends the first any more.
    let script =
        r#"exec 3< <(trap "" HUP TERM; echo up; exec yes >/dev/tty); read -r up <&3; "$PROBE" sleep; exit 3"#;
    let mut spec = case.terminal_spec(case.bash(script));
    spec.grace = Duration::from_millis(300);
    // Longer than any test waits.
    spec.drain = Duration::from_secs(3600);
    let mut session = case.ready(spec);
    session.end();
    assert_eq!(session.outcome(), Outcome::Exited { code: 3 });
    session.rest();
    case.assert_gone();
}

/// A daemon that has the terminal open, and is in no session of it.
fn o21_a_holder_in_another_session_does_not_hold_up_the_end_of_the_output(tier: Tier) {
    let case = Case::new(tier);
    let script = r#"(setsid "$PROBE" ignore-term &); read -r line"#;
    let mut spec = case.terminal_spec(case.bash(script));
    spec.grace = Duration::from_millis(50);
    // Where the daemon is not ended, nothing else ends the output.
    spec.drain = Duration::from_millis(50);
    let mut session = case.open(spec);
    let [daemon] = session.announced("ready")[..] else {
        panic!("one daemon")
    };
    session.types("go\n");
    session.rest();
    assert!(session.outcome().success());
    session.gone();
    let survivors = within(session.tree().survivors()).expect("the table can be read");
    if tier.owns_all() {
        case.assert_gone();
        assert!(survivors.is_empty(), "{survivors:?}");
    } else {
        assert!(
            survivors.iter().any(|member| member.pid == Some(daemon)),
            "{daemon}: {survivors:?}"
        );
        case.end_strays();
    }
}

/// Nothing is decoded on the way: a character in two writes, and bytes that are none.
fn o12_characters_and_invalid_bytes_pass_as_they_are(tier: Tier) {
    let case = Case::new(tier);
    let script =
        r"stty -opost; printf '\303'; printf '\251 \360\237\230'; printf '\200 \377\376 \300\200 \000\r\n'";
    let (outcome, rest) = case.open(case.terminal_spec(case.bash(script))).finish();
    assert!(outcome.success());
    assert_eq!(rest, b"\xc3\xa9 \xf0\x9f\x98\x80 \xff\xfe \xc0\x80 \0\r\n");
}

/// Whoever has a controlling terminal can open it again, when all its descriptors were closed.
fn output_after_everybody_closed_the_terminal_arrives(tier: Tier) {
    let case = Case::new(tier);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut spec = case.terminal_spec(case.spec([
        "/bin/sh",
        "-c",
        "echo early; exec <&- >&- 2>&-; mkfifo gate; : >closed; read -r go <gate; echo late >/dev/tty; exit 6",
    ]));
    spec.cwd = directory.path().into();
    let mut session = case.open(spec);
    session.line_of("early");
    eventually("the program has closed its terminal", || {
        directory.path().join("closed").exists()
    });
    let size = TerminalSize { rows: 5, cols: 50 };
    within(session.resize(size)).expect("the program lives");
    open_gate(&directory.path().join("gate"), "go");
    let (outcome, rest) = session.finish();
    assert_eq!(outcome, Outcome::Exited { code: 6 });
    assert_eq!(plain(&rest), "late\n");
}

/// The session is over and its terminal given back; what was printed waits for whoever reads it.
fn output_is_kept_for_a_reader_that_comes_after_the_end(tier: Tier) {
    let case = Case::new(tier);
    let mut session = case.open(case.terminal_spec(case.bash("seq 1 500; exit 2")));
    assert_eq!(session.outcome(), Outcome::Exited { code: 2 });
    session.gone();
    within(case.runtime.dispose()).expect("nothing is left");
    let lines = lines(500, |line| format!("{}\n", line + 1));
    assert_eq!(plain(&session.rest()), lines);
}
